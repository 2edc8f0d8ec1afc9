# SPDX-License-Identifier: Apache-2.0
"""The documents of libberth are correct: its manual, the programs of docs/LIBRARY.md, the example."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from hardware_pool import SICK

BUILD = Path(os.environ.get("BERTH_BUILD_ROOT", "build"))
VIDEOS = 60


def headers(source_root):
    """Return the text of the public headers without comments and attributes."""
    paths = sorted((source_root / "include/berth").glob("*.h"))
    text = "".join(re.sub(r" */\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in paths)
    return re.sub(r"^BERTH_API ", "", text, flags=re.MULTILINE)


def public_functions(source_root):
    functions = set(re.findall(r"^(?:\w+ )+\**(berth_\w+)\(", headers(source_root), re.MULTILINE))
    assert len(functions) >= 27
    return functions


# ---- The manual ----


def manual(source_root, *pages):
    """Return the text of these pages, or of all pages about libberth."""
    names = pages or ("libberth", "berth-contexts")
    return "\n".join((source_root / f"man/{name}.3.scd").read_text() for name in names)


def manual_program(source_root, page):
    """Return the example program of a page."""
    blocks = re.findall(r"^```\n(.*?)^```", manual(source_root, page), re.DOTALL | re.MULTILINE)
    [text] = [block for block in blocks if "main(" in block]
    return text.replace(r"\\", "\\")


def test_manual_names_every_function_and_error(source_root):
    page = manual(source_root)
    missing = [name for name in public_functions(source_root) if f"*{name}*(" not in page]
    assert sorted(missing) == []
    errors = re.findall(r"X\((\w+), \d+, ", (source_root / "include/berth/error.h").read_text())
    assert [name for name in errors if f"*BERTH_ERROR_{name}*" not in page] == []


def test_manual_declares_functions_as_the_header_does(source_root):
    """The synopses declare every function exactly as the headers do."""

    def declarations(text):
        return {re.sub(r"\s+", " ", found) for found in re.findall(r"^\w[^;{}#]*?berth_\w+\([^;]*;", text, re.M)}

    blocks = re.findall(r"^```\n(.*?)^```", manual(source_root), re.DOTALL | re.MULTILINE)
    synopses = "\n".join(block for block in blocks if "main(" not in block)
    assert declarations(synopses) == declarations(headers(source_root))


def test_manual_names_every_member(source_root):
    """The manual names every member of the structs that a program fills in or reads."""
    page = manual(source_root)
    structs = re.findall(r"^struct (berth_\w+) \{\n(.*?)^\};", headers(source_root), re.DOTALL | re.MULTILINE)
    for name, body in structs:
        members = re.findall(r"\(\*(\w+)\)\(|(\w+)(?:\[\w+\])?;$", body, re.MULTILINE)
        assert members, name
        missing = [one or other for one, other in members if not re.search(rf"[*_]{one or other}[*_]", page)]
        assert missing == [], f"libberth(3) lacks members of {name}"


# ---- Installed ----


class Installed(NamedTuple):
    """A staged `make install`, and functions to build and run programs with it."""

    sandbox: object
    stage: Path
    environment: dict

    def run(self, *args):
        return self.sandbox.run(args, env=self.environment, timeout=60)

    def compile(self, text, name):
        """Build a program from its text, as docs/LIBRARY.md says. Return its path."""
        source = self.sandbox.directory / f"{name}.c"
        source.write_text(text)
        script = f'cc -Wall -Wextra -Werror -o {name} {source} $(pkg-config --cflags --libs berth)'
        done = self.run("sh", "-c", script)
        assert (done.code, done.stderr) == (0, "")
        return self.sandbox.directory / name


@pytest.fixture
def installed(sandbox, source_root):
    if shutil.which("meson") is None or shutil.which("pkg-config") is None:
        pytest.skip("no meson or no pkg-config")
    stage = sandbox.directory / "stage"
    subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", stage],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    [library] = stage.rglob("libberth.so")
    # `cc` is the compiler of the build, with its sanitizers, so that it can link the library.
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    compiler = shutil.which(commands[0]["command"].split()[0])
    option = subprocess.run(
        [source_root / "tools/build-option", BUILD, "b_sanitize"], check=True, capture_output=True, text=True
    ).stdout.strip()
    sanitize = "" if option in ("", "none") else f"-fsanitize={option}"
    tools = sandbox.directory / "tools"
    tools.mkdir()
    (tools / "cc").write_text(f'#!/bin/sh\nexec {compiler} {sanitize} "$@"\n')
    (tools / "cc").chmod(0o755)
    return Installed(
        sandbox,
        stage,
        {
            "PATH": f"{tools}:{sandbox.environment['PATH']}",
            "PKG_CONFIG_PATH": library.parent / "pkgconfig",
            "PKG_CONFIG_SYSROOT_DIR": stage,
            "LD_LIBRARY_PATH": library.parent,
        },
    )


def test_page_commands(installed, source_root):
    """Build the example as documented, from the installed project directory."""
    page = (source_root / "docs/LIBRARY.md").read_text()
    [command] = re.findall(r"^cc .*$", page, re.MULTILINE)
    [examples] = installed.stage.rglob("doc/berth/examples")
    [run] = re.findall(r"^\./transcode .*$", page, re.MULTILINE)
    (installed.sandbox.directory / "examples").symlink_to(examples)
    done = installed.run("sh", "-ec", f"{command}\n{run}")
    assert (done.code, done.stderr) == (0, "")
    assert sum(videos_of(done.stdout).values()) == VIDEOS


def test_page_program(installed, source_root):
    page = (source_root / "docs/LIBRARY.md").read_text()
    [text] = re.findall(r"^```c\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    program = installed.compile(text, "page")
    inventory = installed.sandbox.directory / "machine.yaml"
    inventory.write_text("devices: [{vendor: amd, index: 1, name: Test GPU}]\n")
    installed.sandbox.environment["BERTH_INVENTORY"] = str(inventory)
    done = installed.run(program)
    assert (done.code, done.stdout, done.stderr) == (0, "working on Test GPU\n", "")
    del installed.sandbox.environment["BERTH_INVENTORY"]
    [probe] = installed.stage.rglob("bin/berth-probe")  # a staged program is not in the expected directory
    installed.sandbox.environment["BERTH_PROBE"] = str(probe)
    done = installed.run(program)  # on the hardware; the sandbox has none
    assert (done.code, done.stderr) == (0, "")
    assert re.fullmatch("working on the CPU: .*device.*\n", done.stdout)


def test_manual_program(installed, source_root):
    program = installed.compile(manual_program(source_root, "libberth"), "manual")
    done = installed.run(program, source_root / "examples/dgx-a100.yaml")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["job 0: slot 0", "job 0: slot 1", "job 1: slot 2", "job 1: slot 3"]
    done = installed.run(program, source_root / "examples/workstation.yaml")
    assert done.code == 0
    assert done.stdout == "requested 2 devices, model A100, but none of 4 devices is suitable: 4 are other models\n"


def test_manual_program_of_contexts(installed, source_root, sandbox):
    """No driver is needed: the program reports what is missing."""
    program = installed.compile(manual_program(source_root, "berth-contexts"), "contexts")
    sandbox.environment["BERTH_INVENTORY"] = str(source_root / "examples/dgx-a100.yaml")
    sandbox.environment["POCL_CACHE_DIR"] = str(sandbox.directory / "pocl")
    done = installed.run(program)
    assert done.code == 0
    if done.stdout:
        assert (done.stdout, done.stderr) == ("1 context: nvidia0 OpenCL on the CPU\n", "")
    else:
        assert re.fullmatch(r"no context: nvidia0: cannot load lib\w+\.so\.1: .*\n", done.stderr)


# ---- The example ----


def videos_of(table):
    """Return how many videos each device encoded, from the example's table."""
    rows = re.findall(r"^(.*?) +(\d+) +(\d+)$", table, re.MULTILINE)
    return {f"{number} {name}": int(videos) for number, (name, videos, _) in enumerate(rows)}


def thumbnails_of(table):
    return sum(int(count) for count in re.findall(r" +\d+ +(\d+)$", table, re.MULTILINE))


def transcode(sandbox, *args):
    sandbox.environment.setdefault("BERTH_PROBE", str(BUILD / "berth-probe"))
    done = sandbox.run([BUILD / "tests/example-transcode", *args], timeout=100)
    assert (done.code, done.stderr) == (0, "")
    return done.stdout


def test_example_shares_devices(sandbox, source_root):
    table = transcode(sandbox, source_root / "examples/workstation.yaml")
    videos = videos_of(table)
    assert sum(videos.values()) == VIDEOS
    assert videos["3 AMD Radeon RX 7900 XTX"] == 0  # this device is unhealthy
    assert videos["1 NVIDIA GeForce RTX 4090"] > 0
    assert thumbnails_of(table) > 0


def test_example_without_a_gpu(sandbox, source_root):
    table = transcode(sandbox)
    assert videos_of(table) == {"0 CPU": VIDEOS}
    assert thumbnails_of(table) == 0
    with_devices = transcode(sandbox, source_root / "examples/mig.yaml")
    assert with_devices.splitlines()[-1] == table.splitlines()[-1]  # the same videos


def test_example_on_the_hardware(sandbox, hardware_of):
    pool = hardware_of()
    pool.says([pool.device(0, name="A"), pool.device(1, name="B", health=SICK), pool.device(2, name="C")])
    videos = videos_of(transcode(sandbox))
    assert sum(videos.values()) == VIDEOS
    assert videos["1 B"] == 0 and videos["0 A"] > 0 and videos["2 C"] > 0


def test_example_where_no_device_could_do(sandbox, source_root):
    table = transcode(sandbox, source_root / "examples/workstation.yaml", "H100")
    assert videos_of(table)["4 CPU"] == VIDEOS
    assert thumbnails_of(table) > 0


def test_example_says_what_is_wrong(sandbox):
    done = sandbox.run([BUILD / "tests/example-transcode", "absent.yaml"])
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr == "transcode: cannot read absent.yaml: No such file or directory\n"
