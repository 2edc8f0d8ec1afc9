# SPDX-License-Identifier: Apache-2.0
"""Containers of a real podman that were started without a lease: how berth reports and adopts
them."""
import contextlib
import re
import signal
from pathlib import Path

import pytest
import wire
from container_machine import OPENED_NODE, OPENS, leased
from waiting import until, until_pending

OTHER = "amd0"
USES = f"exec 5<>{OPENED_NODE}; echo uses; exec sleep 1000"
GIVEN = f"--device berth/gpu={OPENS}"


@pytest.fixture
def machine(container_machine):
    return container_machine


def start_without_a_lease(machine, command, arguments=GIVEN):
    """Start a container without a lease and return its id."""
    done = machine.podman("run", "--detach", "--name", "one", *arguments.split(), "busybox", "sh", "-c", command)
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout.strip()


def until_used(machine):
    slots = machine.pool.until(lambda slots: slots[OPENS]["device"].get("processes"), "a process on the device")
    return slots[OPENS]["device"]["processes"]


def claims(machine, device):
    program = machine.start(f"berth run --device {device} -- sh -c 'echo got $BERTH_DEVICES'")
    until_pending(machine.pool, 1)
    return program


def stop(machine):
    done = machine.podman("stop", "--time", "0", "one")
    assert done.code == 0, done


def test_a_container_without_a_lease_is_told_of(machine):
    container = start_without_a_lease(machine, USES)
    machine.pool.until_state(OPENS, "SQUATTED")
    status = machine.pool.berth("status").stdout
    assert container[:12] in status
    done = machine.pool.berth("run", "--nonblock", "--device", OPENS, "true")
    assert done.code == 123
    stop(machine)
    machine.pool.until_state(OPENS, "FREE")


@pytest.mark.parametrize("digits", [64, 12])
def test_a_container_is_adopted(machine, digits):
    """The lease is on the device that the container uses. Processes started in it later belong to
    the lease, too."""
    container = start_without_a_lease(machine, USES)
    machine.pool.until_state(OPENS, "SQUATTED")
    done = machine.pool.berth("adopt", "--container", container[:digits], "--name", "adopted")
    assert (done.code, done.stderr) == (0, ""), done
    lease = int(done.stdout)
    machine.pool.until_state(OPENS, "LEASED")
    assert [process["lease"] for process in until_used(machine)] == [lease]
    assert machine.podman("exec", "--detach", "one", "sh", "-c", USES).code == 0
    slots = machine.pool.until(lambda slots: len(slots[OPENS]["device"]["processes"]) == 2, "both processes")
    assert {process["lease"] for process in slots[OPENS]["device"]["processes"]} == {lease}
    after = claims(machine, OPENS)
    stop(machine)
    assert after.wait() == 0
    assert after.text() == f"got {OPENS}\n"


def test_a_container_that_uses_nothing_yet_is_adopted(machine):
    container = start_without_a_lease(machine, "sleep 1000", f"--device berth/gpu={OTHER}")
    done = machine.pool.berth("adopt", "--container", container, "--device", OTHER)
    assert (done.code, done.stderr) == (0, ""), done
    assert machine.pool.look()[OTHER]["state"] == wire.STATES["LEASED"]
    after = claims(machine, OTHER)
    stop(machine)
    assert after.wait() == 0


def test_an_adopted_container_is_ended_with_its_lease(machine):
    start = 'trap "exit 5" TERM; echo uses; while :; do sleep 0.02; done'
    container = start_without_a_lease(machine, start, f"--device berth/gpu={OTHER}")
    lease = machine.pool.berth("adopt", "--container", container, "--device", OTHER).stdout.strip()
    until(lambda: "uses" in machine.podman("logs", "one").stdout, "the container's start")
    assert machine.pool.berth("release", lease).code == 0
    assert machine.podman("wait", "one").stdout == "5\n"


def test_what_is_not_adopted(machine):
    done = machine.pool.berth("adopt", "--container", "0123456789ab", "--device", OTHER)
    assert (done.code, done.stdout) == (125, "")
    assert re.fullmatch("berth: adopt: .*0123456789ab.*\n", done.stderr)


@pytest.mark.parametrize("command", ["echo runs", f"exec 5<>{OPENED_NODE}; echo runs"], ids=["says", "is seen"])
def test_a_container_under_a_lease_is_not_adopted(machine, command):
    """The container belongs to a lease by its environment, although it uses no device yet and is
    not a descendant of the holder, or by the device it uses."""
    command = f"{command}; echo lease $BERTH_LEASE; cat"
    program = machine.start(leased(f"--device {OPENS}", command, "--rm -i --name one"))
    lease = program.wait_for_line("^lease ").split()[1]
    [container] = machine.podman.containers()
    done = machine.pool.berth("adopt", "--container", container, "--device", OTHER)
    assert (done.code, done.stdout) == (2, ""), done
    assert f"already has lease {lease}" in done.stderr
    machine.pool.let_go(program)


# ---- Containers without marks ----


def test_a_container_that_does_not_know_its_lease(machine):
    """The lease and the container belong to the same user, so the container counts as part of the
    lease, even after the lease's holder was killed."""
    run = leased(f"--device {OPENS}", USES, "--name one", arguments=GIVEN)
    program = machine.start(run)
    program.wait_for_line("^uses$")
    [process] = until_used(machine)
    assert process["lease"] and not process.get("squats")
    after = claims(machine, OPENS)
    program.kill(signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    slots = machine.pool.until_state(OPENS, "DRAINING")
    assert [found["pid"] for found in slots[OPENS]["device"]["processes"]] == [process["pid"]]
    stop(machine)
    assert after.wait() == 0
    assert after.text() == f"got {OPENS}\n"


def test_control_groups_within_a_container(machine):
    """Control groups that a container makes, such as for another container, still belong to the
    container."""
    program = machine.start(leased(f"--device {OPENS}", "echo runs; cat", "--rm -i --name one"))
    program.wait_for_line("^runs$")
    assert machine.podman("exec", "--detach", "one", "env", "-i", "/bin/sh", "-c", USES).code == 0
    [process] = until_used(machine)
    lease = process["lease"]
    assert lease
    for group in machine.podman.groups():
        for container in group.glob("libpod-*"):
            (container / "inner").mkdir()
            with contextlib.suppress(OSError):  # some controllers, such as CPUs, must be set up first
                (container / "inner/cgroup.procs").write_text(str(process["pid"]))
    assert "/inner\n" in Path(f"/proc/{process['pid']}/cgroup").read_text()
    machine.pool.end_daemon(signal.SIGKILL)  # the next daemon must find the container again
    assert machine.pool.berth("status").code == 0
    [process] = until_used(machine)
    assert (process["lease"], process.get("squats")) == (lease, None)
    machine.pool.let_go(program)
