# SPDX-License-Identifier: Apache-2.0
"""Containers of an ordinary user's podman, without any privileges, in the user's own pool."""
import os
import signal

import daemon_log
import processes
import pytest
from container_machine import CONFIGURATION, NODES, OPENED_NODE, OPENS, leased
from machine_pool import MachinePool
from podman import IMAGE, STORAGE
from shared_machine import ALICE, needs_root
from waiting import until_pending

RUNS = "echo runs; while :; do sleep 0.02; done"


class Rootless(MachinePool):
    """A user with a home, a runtime directory, and podman's image."""

    def __init__(self, machine, uid):
        super().__init__(machine.sandbox, machine.namespace.inside)
        self.machine = machine
        self.home = machine.sandbox.directory / "user"
        self.runtime = self.directory = self.home / "run"
        self.socket = self.directory / "berth.sock"
        rules = self.home / ".config/berth/berth.yaml"
        for directory in (self.home, self.runtime, rules.parent.parent, rules.parent):
            directory.mkdir(mode=0o700)
            os.chown(directory, uid, uid)
        machine.sandbox.directory.chmod(0o711)
        rules.write_text(CONFIGURATION)
        storage = machine.sandbox.directory / "user-storage.conf"
        storage.write_text(STORAGE.format(directory=self.home / "images", runtime=self.home / "containers"))
        self.environment = {
            "HOME": self.home,
            "XDG_RUNTIME_DIR": self.runtime,
            "BERTH_RUNTIME_DIR": self.runtime,
            "BERTH_NVML": None,  # is not readable for every user
            "CONTAINERS_STORAGE_CONF": storage,
            # The user has no access to the control group of the machine's podman.
            "PATH": machine.sandbox.environment["PATH"].partition(os.pathsep)[2],
        }
        self.become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]

    def prepare(self):
        """Skip the test with podman's message if the user cannot run containers."""
        done = self.run("berth --version")
        if done.code != 0:
            pytest.skip(f"another user cannot run berth here: {done.stderr.strip()}")
        archive = self.machine.sandbox.directory / "image.tar"
        done = self.run(f"podman import {archive} {IMAGE} && podman run --rm busybox echo works")
        if done.code != 0 or not done.stdout.endswith("works\n"):
            pytest.skip("podman runs no rootless containers here: " + done.stderr.strip().rpartition("\n")[2])

    def run(self, script):
        words = [*self.inside, *self.become, "sh", "-c", script]
        return self.sandbox.run(words, env=self.environment, cwd=self.home)

    def start(self, script):
        return self.sandbox.start([*self.inside, *self.become, "sh", "-c", f"exec {script}"], env=self.environment)

    def first_process(self):
        return int(self.run("podman inspect --format {{.State.Pid}} one").stdout)

    def close(self):
        """podman leaves a process that keeps the user's namespace."""
        self.run("podman rm --all --force --time 0")
        self.end_daemon()
        processes.await_probes()
        self.machine.end_others()


@pytest.fixture(scope="module")
def made(shared_container_machine):
    needs_root()
    user = Rootless(shared_container_machine, ALICE)
    try:
        user.prepare()
        yield user
    finally:
        user.close()


@pytest.fixture
def user(made):
    yield made
    made.until(lambda slots: not any(slot.get("state") for slot in slots.values()), "a pool whose devices are all free")


def test_a_user_sees_the_leased_device_alone(user):
    command = "env; for file in /dev/dri/* /dev/kfd /dev/nvidia*; do test -c $file && echo node $file; done; id -u"
    done = user.run(leased(f"--device {OPENS}", command))
    assert done.code == 0, done
    lines = done.stdout.splitlines()
    assert sorted(line.split()[1] for line in lines if line.startswith("node ")) == sorted(NODES[OPENS])
    assert f"BERTH_DEVICES={OPENS}" in lines
    assert lines[-1] == "0"


def test_a_users_process_is_known(user):
    """The daemon attributes the process to the lease, although it is in a namespace with other pids."""
    program = user.start(leased(f"--device {OPENS}", f"exec 5<>{OPENED_NODE}; {RUNS}"))
    program.wait_for_line("^runs$")
    slots = user.until(lambda slots: slots[OPENS]["device"].get("processes"), "the process")
    found = slots[OPENS]["device"]["processes"][0]
    assert found["lease"] and not found.get("squats")
    assert user.run("podman stop --time 0 one").code == 0
    assert program.wait() == 137


def test_a_users_podman_is_killed(user):
    program = user.start(leased(f"--device {OPENS}", f"echo lease $BERTH_LEASE; {RUNS}", "--name one"))
    lease = program.wait_for_line("^lease ").split()[1]
    program.wait_for_line("^runs$")
    first = user.first_process()
    after = user.start(f"berth run --device {OPENS} -- sh -c 'kill -0 {first}; echo $?'")
    until_pending(user, 1)
    program.kill(signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    assert after.wait(timeout=20) == 0
    assert after.text() == "1\n"
    daemon_log.wait_for(user.directory / "log", "draining", id=lease)
