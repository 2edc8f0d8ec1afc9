# SPDX-License-Identifier: Apache-2.0
"""Recorded machines, unpacked into directories for BERTH_SYSROOT."""
import contextlib
import json
import os
import tarfile
import tempfile
from pathlib import Path

import pytest


def data_file(source_root, path):
    """Returns a file of the data folder beside the project, or skips the test if there is none."""
    file = Path(source_root).resolve().parent / "shared/data" / path
    if not file.exists():
        pytest.skip(f"no {file.name}")
    return file


def unpack_ttar(archive, into):
    """Unpacks the text form: `Directory: X` or `Path: X`, `Lines: N` and as many lines, `SymlinkTo: Y`."""
    lines = iter(archive.read_text().splitlines())
    path = None
    for line in lines:
        key, _, value = line.partition(": ")
        if key == "Directory":
            (into / value).mkdir(parents=True, exist_ok=True)
        elif key == "Path":
            path = into / value
            path.parent.mkdir(parents=True, exist_ok=True)
        elif key == "SymlinkTo":
            path.symlink_to(value)
        elif key == "Lines":
            path.write_text("".join(next(lines) + "\n" for _ in range(int(value))))


def unpack(archive, into):
    """Unpacks an archive with the paths that the files have on the machine. Returns the root directory."""
    into.mkdir()
    if archive.suffix == ".ttar":
        unpack_ttar(archive, into)
        return into
    with tarfile.open(archive) as tar:
        for member in tar:  # faster than extractall(), which also sets the owners and times of thousands of files
            path = into / member.name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.issym():
                path.symlink_to(member.linkname)
            elif member.isfile():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())
    for nodes in list(into.glob("nodes")) + list(into.glob("topology/nodes")):
        place = into / "sys/class/kfd/kfd/topology/nodes"
        place.parent.mkdir(parents=True)
        nodes.rename(place)
    for inner in into.glob("*/sys"):
        return inner.parent
    return into


@contextlib.contextmanager
def place_for_many_files():
    """Makes a directory for thousands of files, in memory if possible."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(
        prefix="b-", dir=memory if os.access(memory, os.W_OK | os.X_OK) else "/tmp"
    ) as directory:
        yield Path(directory)


class Machine:
    """A machine's files, and the devices that a vendor's table finds in them."""

    def __init__(self, sandbox, root):
        self.sandbox = sandbox
        self.root = root

    def write(self, path, content):
        """Writes a file, whose path is that on the machine: write("/sys/x", "1\\n")."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def look(self, vendor):
        """Returns the devices, their values and their links, as a vendor's table reads them; see sight_dump.c."""
        done = self.sandbox.run([os.environ["DUMP_SIGHT"], vendor], env={"BERTH_SYSROOT": self.root})
        assert (done.code, done.stderr) == (0, "")
        sight = json.loads(done.stdout)
        assert sight["error"] is None
        return sight
