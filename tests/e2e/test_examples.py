# SPDX-License-Identifier: Apache-2.0
"""The examples are run, each as its first lines say, on the virtual machine of examples/dgx-a100.yaml."""
import os
import re
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def project(sandbox, source_root):
    """A directory with the examples, of which nobody else has a pool."""
    directory = sandbox.directory / "project"
    shutil.copytree(source_root / "examples", directory / "examples")
    return directory


@pytest.fixture
def dgx(pool_of, source_root):
    return pool_of((source_root / "examples/dgx-a100.yaml").read_text())


def specs(directory):
    """The spec files among the examples."""
    return sorted(path.name for path in (directory / "spec").glob("*"))


def said_command(project, name):
    """What the example's own comment says to type first."""
    return re.search(r"^# {5}berth (.*)$", (project / "examples" / name).read_text(), re.MULTILINE).group(1).split()


def run(dgx, project, name, **options):
    return dgx.berth(*said_command(project, name), cwd=project, **options)


def test_every_spec_is_good(dgx, project):
    found = specs(project / "examples")
    assert len(found) >= 6
    done = dgx.berth("spec", "check", *(f"examples/spec/{name}" for name in found), cwd=project)
    assert done.code == 0 and done.stderr == ""
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [f"examples/spec/{name}" for name in found]


def test_every_spec_is_tried(source_root):
    here = (source_root / "tests/e2e/test_examples.py").read_text()
    for name in specs(source_root / "examples"):
        assert f'"spec/{name}"' in here, name


def test_sweep(dgx, project):
    done = run(dgx, project, "spec/sweep.yaml")
    assert (done.code, done.stderr) == (0, "")
    lines = sorted(done.stdout.splitlines())
    assert [line.split()[1] for line in lines] == list("01234567")
    assert len({line.split()[4] for line in lines}) == 8  # leases of their own


def test_distributed(dgx, project):
    done = run(dgx, project, "spec/distributed.yaml")
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert sorted(line.split(": ")[0] for line in lines) == list("0123")
    for device in range(4):
        assert f"nvidia{device}" in done.stdout


def test_or_cpu(dgx, project):
    done = run(dgx, project, "spec/or-cpu.yaml")
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "no GPU: on the CPU"
    assert "CUDA_VISIBLE_DEVICES=-1" in lines


def test_pinned(dgx, project):
    done = run(dgx, project, "spec/pinned.yaml")
    assert (done.code, done.stderr) == (0, "")
    assert re.fullmatch(r"nvidia\d,nvidia\d: on \d+ CPUs, near: .*\n", done.stdout)


def test_show_lease(dgx, project):
    done = run(dgx, project, "show-lease.sh")
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "lease 1: nvidia0,nvidia1"
    assert {"BERTH_DEVICES=nvidia0,nvidia1", "CUDA_VISIBLE_DEVICES=0,1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"} <= set(lines)


def test_rendezvous(dgx, project):
    done = run(dgx, project, "rendezvous.py", timeout=30)
    assert (done.code, done.stderr) == (0, "")
    met = " ".join(f"{rank}=nvidia0,nvidia1,nvidia2,nvidia3" for rank in range(4))
    assert sorted(done.stdout.splitlines()) == [f"{rank}: rank {rank} of 4 met {met}" for rank in range(4)]


def test_shared_notebook(dgx, project):
    done = run(dgx, project, "spec/shared-notebook.yaml")
    assert (done.code, done.stdout, done.stderr) == (0, "notebook of lease 1 on nvidia0\n", "")


def test_shared_inference(dgx, project):
    double = Path(os.environ["BERTH_BUILD_ROOT"]) / "tests/nvidia-cuda-mps-control"
    done = run(dgx, project, "spec/shared-inference.yaml", env={"BERTH_MPS_CONTROL": double})
    assert (done.code, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"worker {number} on nvidia0" for number in range(4)]
