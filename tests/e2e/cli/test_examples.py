# SPDX-License-Identifier: Apache-2.0
"""Run each example as the comment at its top says, on the virtual machine of examples/dgx-a100.yaml."""
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


BUILD = Path(os.environ.get("BERTH_BUILD_ROOT", "build"))
COMPUTED = r"(nvidia\d(?:\.\d)?) \(a part of the CPU in its place\): .+: 1048576 elements, OK"


@pytest.fixture
def project(sandbox, source_root):
    """A directory with the examples and a pool of its own."""
    directory = sandbox.directory / "project"
    shutil.copytree(source_root / "examples", directory / "examples")
    return directory


@pytest.fixture
def dgx(pool_of, source_root):
    return pool_of((source_root / "examples/dgx-a100.yaml").read_text())


def specs(directory):
    """Return the names of the example spec files."""
    return sorted(path.name for path in (directory / "spec").glob("*"))


def said_command(project, name):
    """Return the first command in the example's comment."""
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
    here = (source_root / "tests/e2e/cli/test_examples.py").read_text()
    for name in specs(source_root / "examples"):
        assert f'"spec/{name}"' in here, name


def test_sweep(dgx, project):
    done = run(dgx, project, "spec/sweep.yaml")
    assert (done.code, done.stderr) == (0, "")
    lines = sorted(done.stdout.splitlines())
    assert [line.split()[1] for line in lines] == list("01234567")
    assert len({line.split()[4] for line in lines}) == 8  # each has its own lease


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


# examples/context.c, on PoCL.


@pytest.fixture(scope="module")
def kernels(source_root):
    """The directory where PoCL caches compiled kernels."""
    option = [source_root / "tools/build-option", BUILD, "b_sanitize"]
    if subprocess.run(option, check=True, capture_output=True, text=True).stdout.strip() not in ("", "none"):
        pytest.skip("sanitizers report errors inside PoCL and LLVM")
    if not (BUILD / "tests/example-context").exists():
        pytest.skip("no OpenCL, which the example needs")
    if not list(Path("/etc/OpenCL/vendors").glob("pocl*.icd")):
        pytest.skip("no PoCL")
    if not Path("/sys/devices/system/cpu").is_dir():
        pytest.skip("no /sys, which PoCL needs")
    with tempfile.TemporaryDirectory(prefix="b-", dir="/tmp") as directory:
        yield directory


@pytest.fixture
def computes(sandbox, kernels):
    """Run the example, if there is an OpenCL library for it."""
    sandbox.environment["BERTH_OPENCL"] = "libOpenCL.so.1"
    sandbox.environment["BERTH_PROBE"] = str(BUILD / "berth-probe")
    sandbox.environment["POCL_CACHE_DIR"] = kernels
    return BUILD / "tests/example-context"


def on_inventory(sandbox, computes, source_root, count, **env):
    env["BERTH_INVENTORY"] = source_root / "examples/dgx-a100.yaml"
    return sandbox.run([computes, count], env=env, timeout=100)


def computed_on(done):
    assert (done.code, done.stderr) == (0, "")
    found = [re.fullmatch(COMPUTED, line) for line in done.stdout.splitlines()]
    assert all(found), done.stdout
    return [match.group(1) for match in found]


def test_context_within_a_lease(dgx, computes):
    done = dgx.berth("run", "-n", "2", "--", computes, "2", timeout=100)
    assert computed_on(done) == ["nvidia0", "nvidia1"]


def test_context_alone(sandbox, computes, source_root):
    assert computed_on(on_inventory(sandbox, computes, source_root, 3)) == ["nvidia0", "nvidia1", "nvidia2"]
    mig = {"BERTH_INVENTORY": source_root / "examples/mig.yaml"}
    assert computed_on(sandbox.run([computes], env=mig, timeout=100)) == ["nvidia0.0"]


def test_context_without_a_device(sandbox, computes, source_root):
    assert sandbox.run([computes]) == (120, "", "context: this pool has no devices\n")
    done = on_inventory(sandbox, computes, source_root, 9)
    assert done == (120, "", "context: requested 9 devices, but this pool has only 8\n")


def test_context_without_opencl(sandbox, computes, source_root):
    done = on_inventory(sandbox, computes, source_root, 1, BERTH_OPENCL=None)
    reason = "cannot load libOpenCL.so.1: with BERTH_SYSROOT, set BERTH_OPENCL to the library to use"
    assert done == (1, "", f"context: nvidia0: {reason}\n")


def test_context_of_hardware_is_never_on_the_cpu(sandbox, computes, hardware_of):
    pool = hardware_of()
    pool.says([pool.device(0, name="A")])
    place = f"{pool.domain:04x}:00:00.0"
    message = f"context: nvidia0: OpenCL: cannot find GPU-0, {place}: no GPU\n"
    assert sandbox.run([computes]) == (1, "", message)


@pytest.mark.parametrize(
    ("number", "times", "said", "good"),
    [
        (-9999, 1, ["once more, in a new context"], True),  # NVIDIA's error for a wrong address
        (-9999, 2, ["once more, in a new context"] * 2, True),
        (-9999, 9, ["once more, in a new context"] * 3, False),
        (-4, 1, ["once more"], True),
        (-5, 1, ["a mistake of this program"], False),  # the context is tested and works
        (-54, 1, ["a mistake of this program"], False),
    ],
)
def test_context_that_fails(sandbox, computes, source_root, number, times, said, good):
    fault = {"LD_PRELOAD": BUILD / "tests/libopencl-fault.so", "OPENCL_FAULT": number, "OPENCL_FAULT_TIMES": times}
    done = on_inventory(sandbox, computes, source_root, 1, **fault)
    assert done.stderr.splitlines() == [f"context: OpenCL says {number}: {words}" for words in said]
    assert done.code == (0 if good else 1)
    assert bool(re.fullmatch(COMPUTED + "\n", done.stdout)) == good
