# SPDX-License-Identifier: Apache-2.0
"""The documentation of containers is correct: every command of docs/CONTAINERS.md, and the
example."""
import re
import shutil

import pytest
import yaml

DOCUMENT = "docs/CONTAINERS.md"
ELSEWHERE = ("nvidia-ctk", "docker")  # programs that a block may need and that this machine may not have


@pytest.fixture
def machine(container_machine):
    return container_machine


def plain(text):
    """Replace what differs from run to run: ids of leases and containers."""
    text = re.sub(r"\b[0-9a-f]{12,64}\b", "CONTAINER", text)
    text = re.sub(r"(LEASE=)\d+", r"\1N", text)
    return re.sub(r"(?m)^\d+$", "N", text).strip()


def commands_of(text):
    """Return the commands in the console blocks, each with its expected output."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)


def test_every_command_prints_what_is_shown(machine, source_root):
    typed = 0
    for command, wanted in commands_of((source_root / DOCUMENT).read_text()):
        done = machine.sh(command.replace("sudo ", ""))
        assert done.stderr == "", command
        assert plain(done.stdout) == plain(wanted), command
        typed += 1
    assert typed >= 10


def test_guide(machine, source_root):
    guide = (source_root / "docs/USING.md").read_text()
    section = re.search(r"^## Containers\n(.*?)^## ", guide, re.DOTALL | re.MULTILINE)
    [block] = re.findall(r"^```sh\n(.*?)^```", section.group(1), re.DOTALL | re.MULTILINE)
    block = block.replace("sudo ", "").replace("IMAGE COMMAND", "busybox ls /dev/dri")
    done = machine.sh(f"set -e\n{block}")
    assert done == (0, "card0\ncard1\nrenderD128\nrenderD129\n", "")


def test_what_is_not_tried_says_so(source_root):
    """Commands in blocks that no test runs need a program that this machine may not have. Blocks
    that need docker are marked."""
    text = (source_root / DOCUMENT).read_text()
    blocks = re.findall(r"((?:<!-- needs docker -->\n)?)^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    for mark, block in blocks:
        assert any(program in block for program in ELSEWHERE), block
        assert bool(mark) == ("docker" in block), block


def block_of(source_root, language):
    """Return the document's only block in this language."""
    text = (source_root / DOCUMENT).read_text()
    [block] = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return block


def test_the_unit(machine, source_root):
    """The test runs the unit's command as systemd passes it."""
    [command] = re.findall(r"ExecStart=(.*)", block_of(source_root, "ini"))
    command = command.replace("$$", "$").replace("/usr/local/bin/", "").replace("IMAGE", "busybox ls /dev/dri")
    assert machine.sh(command) == (0, "card0\nrenderD128\n", "")


def test_the_compose_file(machine, source_root):
    """The file names all variables that a lease sets, and everything that marks a container as
    part of the lease."""
    [service] = yaml.safe_load(block_of(source_root, "yaml"))["services"].values()
    said = machine.pool.berth("run", "--device", "amd0", "berth", "cdi", "--arguments", "cdi").stdout.split()
    given = dict(word.removeprefix("--env=").split("=", 1) for word in said if word.startswith("--env="))
    for variable in service["environment"]:
        name, _, value = variable.partition("=")
        assert given[name] == (value or given[name]), variable
    assert {"BERTH_LEASE", "BERTH_SOCKET"} <= set(service["environment"])
    assert service["devices"] == ["${BERTH_CDI_DEVICES}"]


def test_example(machine, source_root):
    example = machine.sandbox.directory / "podman.sh"
    shutil.copy(source_root / "examples/podman.sh", example)
    [command] = re.findall(r"^# {5}(berth run .*)$", example.read_text(), re.MULTILINE)
    done = machine.sh(command.replace("examples/podman.sh", str(example)))
    assert (done.code, done.stderr) == (0, ""), done
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"lease \d+: amd0,amd1", lines[0])
    assert lines[1:] == ["/dev/dri/card0", "/dev/dri/card1", "/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/kfd"]


def test_example_without_a_lease(machine, source_root):
    done = machine.sh(f"sh {source_root}/examples/podman.sh")
    assert (done.code, done.stdout) == (2, "")
    assert "berth run" in done.stderr
