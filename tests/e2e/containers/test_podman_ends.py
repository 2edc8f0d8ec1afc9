# SPDX-License-Identifier: Apache-2.0
"""How containers of a real podman end. Their devices are granted again when no process of them is
left."""
import os
import re
import shutil
import signal

import daemon_log
import processes
import pytest
import wire
from container_machine import OPENED_NODE, OPENS, leased, taken
from waiting import until, until_pending

DEVICE = "amd0"

# Print that it runs, and continue until SIGTERM, then exit with code 5.
OBEDIENT = 'trap "exit 5" TERM; echo runs; while :; do sleep 0.02; done'
# The first process of a container does not receive signals for which it has no handler.
DEAF = "echo runs; while :; do sleep 0.02; done"
TELLS_LEASE = "echo lease $BERTH_LEASE"


@pytest.fixture
def machine(container_machine):
    return container_machine


def start(machine, command, options="", podman="--rm --name one", device=DEVICE):
    """Start a container on the device and wait until it runs."""
    program = machine.start(leased(f"--device {device} {options}", command, podman))
    program.wait_for_line("^runs$")
    return program


def successor(machine, device=DEVICE):
    """Start a command that waits for the device, then lists the remaining processes of containers."""
    files = f'-path "*/{machine.podman.group}/libpod-*" -name cgroup.procs'
    script = f"echo got $BERTH_DEVICES; find /sys/fs/cgroup {files} -exec cat {{}} +"
    program = machine.start(f"berth run --device {device} -- sh -c '{script}; echo all'")
    until_pending(machine.pool, 1)
    return program


def lease_of(program):
    """Return the lease that the running container has printed."""
    return re.search(r"^lease (\d+)$", program.text(), re.MULTILINE)[1]


def let_go(program):
    """End a command that waits for the end of its input."""
    program.process.stdin.close()
    program.process.stdin = None


def assert_granted_on(program):
    """Check that the command got the device, and that no process of the container was left then."""
    assert program.wait() == 0
    assert program.text() == f"got {DEVICE}\nall\n"


# ---- The command's end ----


@pytest.mark.parametrize(
    "command, code",
    [("exit 0", 0), ("exit 7", 7), ("kill -9 $$; sleep 0; exit 9", 9), ("sh -c \"kill -9 \\$\\$\"; exit $?", 137)],
)
def test_the_exit_code_is_the_containers(machine, command, code):
    assert machine.sh(leased(f"--device {DEVICE}", command)).code == code


def test_the_commands_own_end(machine):
    program = start(machine, "echo runs; cat; exit 7", podman="--rm -i --name one")
    after = successor(machine)
    let_go(program)
    assert program.wait() == 7
    assert_granted_on(after)


def test_what_the_command_leaves_ends_with_it(machine):
    """A container's processes end with its first process."""
    program = start(machine, "sleep 1000 & echo runs; cat; exit 3", podman="--rm -i --name one")
    after = successor(machine)
    let_go(program)
    assert program.wait() == 3
    assert_granted_on(after)


# ---- Ended by podman ----


@pytest.mark.parametrize(
    "words, command, code",
    [
        ("stop --time 5", OBEDIENT, 5),
        ("stop --time 0", DEAF, 137),
        ("kill", DEAF, 137),
        ("kill --signal TERM", OBEDIENT, 5),
        ("rm --force --time 0", DEAF, 137),
    ],
)
def test_ended_by_podman(machine, words, command, code):
    program = start(machine, command)
    after = successor(machine)
    done = machine.podman(*words.split(), "one")
    assert (done.code, done.stderr) == (0, ""), done
    assert program.wait() == code
    assert_granted_on(after)


# ---- Ended from outside ----


@pytest.mark.parametrize("options", ["", "--time 1h"], ids=["as the command", "above it"])
def test_a_signal_to_berth_run_reaches_the_container(machine, options):
    program = start(machine, OBEDIENT, options)
    after = successor(machine)
    program.kill(signal.SIGTERM)
    assert program.wait() == 5
    assert_granted_on(after)


@pytest.mark.parametrize("options", ["", "--time 1h"], ids=["as the command", "above it"])
def test_berth_run_is_killed(machine, options):
    """The container has no parent then: the device drains until the container has ended."""
    program = start(machine, f"{TELLS_LEASE}; {DEAF}", options)
    after = successor(machine)
    program.kill(signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    assert_granted_on(after)
    daemon_log.wait_for(machine.pool.log, "draining", id=lease_of(program))


def test_podman_alone_is_killed(machine):
    """A shell holds the lease, ends soon after, and reports how podman ended."""
    words = leased(f"--device {DEVICE}", f"{TELLS_LEASE}; {DEAF}").replace("exec ", "", 1)
    program = machine.start(words.removesuffix("'") + " & echo podman $!; wait $!'")
    pid = int(program.wait_for_line("^podman ").split()[1])
    program.wait_for_line("^runs$")
    after = successor(machine)
    os.kill(pid, signal.SIGKILL)
    assert program.wait() == 128 + signal.SIGKILL
    assert_granted_on(after)
    daemon_log.wait_for(machine.pool.log, "draining", id=lease_of(program))


def test_conmon_is_killed(machine):
    """podman has lost the container, but it continues to run. The lease stays until both are
    ended."""
    program = start(machine, f"{TELLS_LEASE}; {DEAF}")
    lease = lease_of(program)
    first, conmon = machine.podman.pids("one")
    after = successor(machine)
    os.kill(conmon, signal.SIGKILL)
    processes.wait_for_end(conmon)
    assert first in machine.podman.processes()
    assert machine.pool.look()[DEVICE]["state"] == wire.STATES["LEASED"]
    assert machine.pool.berth("release", lease).code == 0
    assert program.wait() != 0
    assert_granted_on(after)


def test_released(machine):
    """podman and the container get the signal at the same time: the exit code is lost if podman
    finds the container already ended."""
    program = start(machine, f"{TELLS_LEASE}; {OBEDIENT}")
    lease = lease_of(program)
    after = successor(machine)
    assert machine.pool.berth("release", lease).code == 0
    assert program.wait() in (5, -signal.SIGTERM)
    assert_granted_on(after)


def test_the_time_limit(machine):
    program = start(machine, DEAF, "--time 1s")
    after = successor(machine)
    assert program.wait() == 124
    assert_granted_on(after)


# ---- Detached ----


def test_detached(machine):
    """The lease ends with its holder. The daemon signals the remaining container to end, and kills
    it later."""
    words = leased(f"--device {DEVICE}", DEAF, "--detach --name one").replace("exec ", "", 1)
    program = machine.start(words.removesuffix("'") + "; echo detached; cat'")
    program.wait_for_line("^detached$")
    after = successor(machine)
    let_go(program)
    assert program.wait() == 0
    assert_granted_on(after)


# A runtime that reports a container as started too early: the container's first process is still
# the runtime.
LATE_RUNTIME = """#!/bin/sh
case " $* " in
*" start "*) (until test -e {gate}; do sleep 0.02; done; exec {runtime} "$@") >/dev/null 2>&1 & ;;
*) exec {runtime} "$@" ;;
esac
"""


@pytest.fixture
def late(machine):
    """Leave a container behind before it runs its command. Yield a command that waits for the
    container's device, and the path of the file that the container waits for."""
    gate = machine.sandbox.directory / "gate"
    runtime = machine.sandbox.directory / "late-runtime"
    runtime.write_text(LATE_RUNTIME.format(gate=gate, runtime=shutil.which("runc") or shutil.which("crun")))
    runtime.chmod(0o755)
    words = leased(f"--device {DEVICE}", DEAF, "--detach --name one")
    program = machine.start(words, env={"CONTAINERS_CONF": machine.podman.configure(runtime)})
    machine.pool.until(taken, "a lease")
    after = successor(machine)
    assert program.wait() == 0
    yield after, gate
    gate.touch()
    machine.podman("rm", "--force", "--time", "0", "one")
    gate.unlink()


def test_detached_before_it_is_the_command(late):
    """podman has ended before the container's environment shows the lease."""
    after, gate = late
    gate.touch()
    assert_granted_on(after)


def test_detached_and_never_the_command(late):
    """The daemon waits for the container, but only for a limited time."""
    after, _ = late
    assert after.wait() == 0
    assert f"got {DEVICE}\n" in after.text()


def test_detached_and_waited_for(machine):
    run = leased(f"--device {DEVICE}", OBEDIENT, "--detach --name one").replace("exec ", "", 1)
    program = machine.start(run.removesuffix("'") + "; podman wait one'")
    until(lambda: "runs" in machine.podman("logs", "one").stdout, "a container that runs")
    after = successor(machine)
    assert machine.podman("stop", "one").code == 0
    assert program.wait() == 0
    assert program.text().splitlines()[1:] == ["5"]
    assert_granted_on(after)


# ---- Other processes in the container ----


def test_what_is_run_in_it_besides(machine):
    program = start(machine, DEAF)
    assert machine.podman("exec", "--detach", "one", "sh", "-c", "sleep 1000").code == 0
    assert machine.podman("exec", "--detach", "one", "env", "-i", "sleep", "1000").code == 0
    until(lambda: len(machine.podman.processes()) >= 4, "more processes")
    after = successor(machine)
    program.kill(signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    assert_granted_on(after)


def test_processes_of_the_host(machine):
    """Without a pid namespace, the processes in a container do not end with its first process.
    Processes without the lease's marks are identified by their container, and by their open
    files."""
    program = start(machine, DEAF, device=OPENS, podman="--rm --name one --pid=host")
    uses = f"exec 5<>{OPENED_NODE}; exec sleep 1000"
    assert machine.podman("exec", "--detach", "one", "env", "-i", "/bin/sh", "-c", uses).code == 0
    slots = machine.pool.until(lambda slots: slots[OPENS]["device"].get("processes"), "a process on the device")
    [used] = slots[OPENS]["device"]["processes"]
    assert used["lease"]
    after = successor(machine, OPENS)
    program.kill(signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    machine.pool.until_state(OPENS, "DRAINING")
    until(lambda: machine.podman.processes() == {used["pid"]}, "the end of the rest")
    assert machine.pool.look()[OPENS]["state"] == wire.STATES["DRAINING"]
    os.kill(used["pid"], signal.SIGKILL)
    assert after.wait() == 0  # it has released the device, but may not have exited yet
