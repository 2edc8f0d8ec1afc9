# SPDX-License-Identifier: Apache-2.0
"""Docker containers on leased devices. Only these tests need docker, and they are skipped without
it.

Docker's containers are children of containerd's shim, regardless of the process that started them.
Like the podman tests, these tests use their own machine.
"""
import re
import shutil
import signal

import pytest
from container_machine import NODES, OPENED_NODE, OPENS, leased
from waiting import until, until_pending

DEVICE = "amd0"
PROGRAMS = ("docker", "dockerd", "containerd", "containerd-shim-runc-v2", "runc")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}")
RUNS = "echo runs; while :; do sleep 0.02; done"

# Directories that docker and containerd write to.
PRIVATE = """
cp -a /etc etc
mount --bind etc /etc
mount -t tmpfs none /opt
"""


class Docker:
    def __init__(self, machine):
        self.machine = machine
        machine.sandbox.environment["DOCKER_HOST"] = "unix:///run/docker.sock"
        script = f"cd {machine.namespace.directory}\n{PRIVATE}"
        assert machine.namespace.run("sh", "-ec", script).code == 0
        state = machine.namespace.directory / "docker"
        self.daemon = machine.namespace.start(
            *("dockerd", "--host", "unix:///run/docker.sock", "--pidfile", "/run/docker.pid"),
            *("--iptables=false", "--bridge=none", "--storage-driver=vfs"),
            f"--cgroup-parent=/{machine.podman.group}/docker",
            *("--data-root", state / "data", "--exec-root", "/run/docker-exec"),
            *("--default-ulimit=nofile=1024:1024", "--default-ulimit=nproc=16384:16384"),
        )
        try:
            until(lambda: self("version").code == 0, "docker's daemon")
            done = self("import", machine.sandbox.directory / "image.tar", "busybox")
            assert done.code == 0, done
        except BaseException:
            self.close()
            raise

    def __call__(self, *args):
        return self.machine.namespace.run("docker", *args)

    def version(self):
        return int(self("version", "--format", "{{.Server.Version}}").stdout.split(".")[0])

    def close(self):
        self.daemon.kill(signal.SIGTERM)
        self.daemon.wait(timeout=30)


@pytest.fixture(scope="module")
def docker(shared_container_machine):
    daemon = Docker(shared_container_machine)
    yield daemon
    daemon.close()


@pytest.fixture
def machine(docker, shared_container_machine):
    machine = shared_container_machine
    yield machine
    machine.pool.until(
        lambda slots: all(not slot.get("tenants") and not slot.get("state") for slot in slots.values()),
        "a pool whose devices are all free",
    )
    docker("rm", "--force", "one")


def under_a_lease(device, command, docker="--rm --name one", how="nodes"):
    words = leased(f"--device {device}", command, f"--network=none {docker}", f"$(berth cdi --arguments {how})")
    return words.replace("podman run", "docker run", 1)


def processes_left(machine):
    """Return a command that lists the processes in docker's containers."""
    return f'find /sys/fs/cgroup -path "*/{machine.podman.group}/docker/*" -name cgroup.procs -exec cat {{}} +'


def test_a_container_sees_the_leased_device_alone(machine):
    command = "env; for file in /dev/dri/* /dev/kfd /dev/nvidia*; do test -c $file && echo node $file; done; exit 7"
    done = machine.sh(under_a_lease(DEVICE, command))
    assert (done.code, done.stderr) == (7, ""), done
    lines = done.stdout.splitlines()
    assert sorted(line.split()[1] for line in lines if line.startswith("node ")) == sorted(NODES[DEVICE])
    assert {f"BERTH_DEVICES={DEVICE}", "NVIDIA_VISIBLE_DEVICES=void"} <= set(lines)
    assert any(re.fullmatch(r"BERTH_LEASE=\d+", line) for line in lines)


def test_by_cdi(machine, docker):
    if docker.version() < 25:
        pytest.skip("docker before version 25 does not support CDI")
    if "cdi" not in docker("info").stdout.lower():
        pytest.skip("docker's CDI is not enabled")
    done = machine.sh(under_a_lease(DEVICE, "ls /dev/dri", how="cdi"))
    assert (done.code, done.stdout, done.stderr) == (0, "card0\nrenderD128\n", "")


def test_a_process_of_a_container_is_known(machine):
    program = machine.start(under_a_lease(OPENS, f"exec 5<>{OPENED_NODE}; {RUNS}"))
    program.wait_for_line("^runs$")
    slots = machine.pool.until(lambda slots: slots[OPENS]["device"].get("processes"), "the process")
    found = slots[OPENS]["device"]["processes"][0]
    assert found["lease"] and found.get("container") and not found.get("squats")
    assert machine.namespace.run("docker", "stop", "--time", "0", "one").code == 0
    assert program.wait() == 137


@pytest.mark.parametrize("detached", [False, True])
def test_the_device_drains_until_the_container_has_ended(machine, docker, detached):
    if detached:
        assert machine.sh(under_a_lease(DEVICE, RUNS, "--detach --name one")).code == 0
    else:
        program = machine.start(under_a_lease(DEVICE, RUNS))
        program.wait_for_line("^runs$")
        program.kill(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL
    machine.pool.until_state(DEVICE, "DRAINING")
    assert docker("ps", "--quiet").stdout
    after = machine.start(f"berth run --device {DEVICE} -- sh -c '{processes_left(machine)}; echo all'")
    until_pending(machine.pool, 1)
    assert after.wait() == 0
    assert after.text() == "all\n"


def test_a_container_is_adopted(machine, docker):
    given = ("--network=none", "--device", "/dev/dri/renderD128")
    done = docker("run", "--detach", "--name", "one", *given, "busybox", "sleep", "1000")
    assert done.code == 0, done
    done = machine.pool.berth("adopt", "--container", done.stdout.strip(), "--device", DEVICE)
    assert (done.code, done.stderr) == (0, ""), done
    after = machine.start(f"berth run --device {DEVICE} -- sh -c '{processes_left(machine)}; echo all'")
    until_pending(machine.pool, 1)
    assert docker("kill", "one").code == 0
    assert after.wait() == 0
    assert after.text() == "all\n"


def test_what_the_document_says(machine, docker, source_root):
    """Run the blocks that need docker; the first of them uses CDI."""
    text = (source_root / "docs/CONTAINERS.md").read_text()
    blocks = re.findall(r"^<!-- needs docker -->\n```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    tried = [block for block in blocks if "--arguments nodes" in block or docker.version() >= 25]
    assert tried
    for block in tried:
        done = machine.sh(block)
        assert (done.code, done.stdout, done.stderr) == (0, "card0\ncard1\nrenderD128\nrenderD129\n", ""), block
