# SPDX-License-Identifier: Apache-2.0
"""A disk of a few hundred KiB that a test can fill: a tmpfs in a mount namespace of its own."""
import os
from pathlib import Path

import pytest


class SmallDisk:
    """A small disk. Programs that `inside` starts see it at `path`, the test sees it at `outside`."""

    def __init__(self, sandbox, size):
        self.path = sandbox.directory / "disk"
        self.path.mkdir()
        alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        script = f"mount -t tmpfs -o size={size},mode=700 none {self.path} && echo mounted && exec cat"
        self.holder = sandbox.start([*alone, "--propagation", "private", "sh", "-c", script])
        try:
            self.holder.wait_for_line("^mounted$")
        except AssertionError:
            self.holder.stop()
            pytest.skip("no mount namespaces here: " + self.holder.text("stderr").strip())
        self.outside = Path(f"/proc/{self.holder.pid}/root{self.path}")
        own = [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
        self.inside = ["nsenter", "-t", str(self.holder.pid), *own, "-m"]

    def fill(self, leave=0):
        """Fills the disk with a file, except for `leave` bytes. Returns the file's path."""
        file = self.outside / "filler"
        with open(file, "ab", buffering=0) as stream:
            try:
                while True:
                    stream.write(bytes(4096))
            except OSError:
                pass
            if leave:
                os.truncate(file, max(0, file.stat().st_size - leave))
        return file

    def close(self):
        self.holder.stop()
