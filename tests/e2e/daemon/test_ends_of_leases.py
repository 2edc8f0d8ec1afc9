# SPDX-License-Identifier: Apache-2.0
"""The end of a lease: it ends the lease's processes and no others, and costs only its own user."""
import os
import re
import signal
import sys
import time

import processes
import pytest
import wire
from hostile_processes import IdleProcesses, StuckProcesses, setuid_root_program
from holders import Holders
from machine_daemon import MachineDaemon
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

MALLORY, ALICE = 61001, 61004
RULES = "history: no\ngrace: 200ms\n"

# Leave a process that has left its parents and keeps a connection to the daemon.
TALKER = """
import os, signal, socket, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.connect(os.environ["BERTH_SOCKET"])
        link.send(bytes.fromhex(sys.argv[1]))
        link.recv(65536)
        print("talks", os.getpid(), flush=True)
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()
"""


@pytest.fixture
def machine_of(sandbox, pool_of):
    made = []

    def make(count, rules=RULES):
        made.append(MachineDaemon(sandbox, pool_of(count).inventory))
        made[0].start(rules)
        return made[0]

    yield make
    for machine in made:
        machine.end()


def start_as(machine, uid, *args):
    return machine.sandbox.start([*machine.become(uid), *args])


def problems(machine):
    return [problem["message"] for problem in machine.root.look().get("problems", [])]


def no_leases(machine):
    return not machine.root.look()["leases"]


def end_process(pid):
    """Kill and reap an orphan, which has become a child of this process."""
    os.kill(pid, signal.SIGKILL)
    processes.wait_for_end(pid)


def test_leftover_that_keeps_a_connection(machine_of):
    machine = machine_of(1)
    hello = wire.encode("HELLO", 1).hex()
    holder = start_as(machine, MALLORY, "berth", "run", sys.executable, "-c", TALKER, hello)
    pid = int(holder.wait_for_line("^talks ").split()[1])
    holder.stop()
    try:
        assert processes.is_ended(pid, 10)
    finally:
        if not processes.is_ended(pid, 0):
            end_process(pid)


def start_roots(machine):
    """Start a lease of a user with a process that has become root. Return both."""
    become_root = setuid_root_program(machine.sandbox)
    script = f"{become_root} sh -c 'echo root $$; exec sleep 1000' & exec cat"
    holder = start_as(machine, MALLORY, "berth", "run", "sh", "-c", script)
    pid = int(holder.wait_for_line("^root ").split()[1])
    until(lambda: processes.command_line(pid) == "sleep 1000", "the program")
    assert os.stat(f"/proc/{pid}").st_uid == 0
    return holder, pid


def test_process_that_has_become_root(machine_of):
    """A user could not kill it, so the end of the user's lease does not kill it either. The device is free."""
    machine = machine_of(1)
    holder, pid = start_roots(machine)
    holder.stop()
    try:
        with machine.connect(ALICE) as alice:
            alice.claim()
        assert not processes.is_ended(pid, 0.5)
    finally:
        if not processes.is_ended(pid, 0):
            end_process(pid)


def test_a_time_limit_and_a_process_of_root(machine_of):
    machine = machine_of(1)
    holder, pid = start_roots(machine)
    try:
        [lease] = machine.root.look()["leases"]
        machine.root.stop(lease["id"])
        until(lambda: no_leases(machine), "the end of the lease")
        assert not processes.is_ended(pid, 0.5)
    finally:
        if not processes.is_ended(pid, 0):
            end_process(pid)
        holder.stop()


def test_process_of_root_is_named(machine_of):
    """Until it ends, all users see that a process of root is left of the lease."""
    machine = machine_of(1)
    holder, pid = start_roots(machine)
    [lease] = machine.root.look()["leases"]
    named = f"process {pid} of root is left of lease {lease['id']}: it was not ended, because uid {MALLORY}, "
    try:
        assert not problems(machine)
        holder.stop()
        until(lambda: [text for text in problems(machine) if text.startswith(named)], "the problem")
        assert f"process {pid} of root" in machine.berth(ALICE, "status").stdout
    finally:
        if not processes.is_ended(pid, 0):
            end_process(pid)
    until(lambda: not problems(machine), "no problem")


@pytest.mark.parametrize("who", ["holder", "leftover"])
def test_process_that_becomes_root_in_the_grace(machine_of, who):
    """On SIGTERM a process executes a program as root. After the grace the lease is over, but the process is not."""
    machine = machine_of(1, "history: no\ngrace: 2s\n")
    become_root = setuid_root_program(machine.sandbox)
    program = machine.sandbox.directory / "program"
    # It may get SIGTERM several times.
    program.write_text(
        f"""trap 'trap "" TERM; exec {become_root} sleep 1000' TERM; echo left $$; while :; do sleep 0.05; done"""
    )
    program.chmod(0o644)
    script = f"setsid sh {program} & exec cat" if who == "leftover" else f"exec sh {program}"
    holder = start_as(machine, MALLORY, "berth", "run", "sh", "-c", script)
    pid = int(holder.wait_for_line("^left ").split()[1])
    [lease] = machine.root.look()["leases"]
    try:
        machine.root.stop(lease["id"])
        until(lambda: processes.command_line(pid) == "sleep 1000", "the program of root", timeout=1.8)
        until(lambda: no_leases(machine), "the end of the lease", timeout=5)
        assert not processes.is_ended(pid, 0.5)
        assert [text for text in problems(machine) if text.startswith(f"process {pid} of root is left of lease")]
        with machine.connect(ALICE) as alice:
            alice.claim(timeout=5)
    finally:
        if not processes.is_ended(pid, 0):
            os.kill(pid, signal.SIGKILL)
        holder.stop()
        processes.is_ended(pid, 5)


def test_processes_of_root_beside_a_lease_are_not_named(machine_of):
    """Neither a process of root in the holder's session without the lease's mark, nor one with the mark in another
    session is named. Only processes of the session are looked at."""
    machine = machine_of(1)
    become_root = setuid_root_program(machine.sandbox)
    script = (
        f"env -i PATH=$PATH {become_root} sh -c 'echo unmarked $$; exec sleep 1000' &"
        f" setsid {become_root} sh -c 'echo elsewhere $$; exec sleep 1000' & exec cat"
    )
    holder = start_as(machine, MALLORY, "berth", "run", "sh", "-c", script)
    pids = [int(holder.wait_for_line("^(unmarked|elsewhere) ").split()[1]) for _ in range(2)]
    try:
        holder.stop()
        until(lambda: no_leases(machine), "the end of the lease")
        assert not problems(machine)
    finally:
        for pid in pids:
            end_process(pid)


def test_leases_of_root_end_processes_of_all_users(machine_of):
    """Root may signal every process, so its leases end what their processes started, as whichever user that runs."""
    machine = machine_of(1)
    started = f"setsid setpriv --reuid={ALICE} --clear-groups sh -c 'echo left $$; exec sleep 1000'"
    script = f"({started}; true) & exec cat"
    holder = start_as(machine, 0, "berth", "run", "sh", "-c", script)
    pid = int(holder.wait_for_line("^left ").split()[1])
    assert os.stat(f"/proc/{pid}").st_uid == ALICE
    holder.stop()
    assert processes.is_ended(pid, 10)
    until(lambda: no_leases(machine), "the end of the lease")


# ---- Time ----


def test_ends_beside_many_processes_of_the_user(machine_of):
    """Leases of a user with thousands of processes end. Other users do not wait for that."""
    machine = machine_of(4)
    names = [f"nvidia{index}" for index in range(4)]
    with machine.connect(ALICE) as alice, Holders(machine.socket, MALLORY, names) as holders:
        leases = {name: holders.leases[name][0] for name in names}
        left = [start_as(machine, MALLORY, "env", f"BERTH_LEASE={lease}", f"BERTH_SOCKET={machine.socket}",
                         "sh", "-c", "trap : TERM; echo left; while :; do sleep 0.1; done") for lease in leases.values()]
        for program in left:
            program.wait_for_line("^left$")
        with IdleProcesses(machine.sandbox, MALLORY, 3000):
            for name in names:
                holders.kill(name)
            times = []
            while machine.root.look()["leases"]:
                began = time.monotonic()
                alice.hello()
                times.append(time.monotonic() - began)
        for program in left:
            program.stop()
    # A daemon that looks at the processes itself needs 0.4 s for each lease. A busy machine delays single answers.
    assert sorted(times)[-len(names)] < 0.3


# ---- Processes that cannot be ended ----


def leave_unkillable(machine, lease, count=1):
    """Leave processes of this lease in state D."""
    marks = {"BERTH_LEASE": lease, "BERTH_SOCKET": machine.socket}
    return StuckProcesses(machine.sandbox, MALLORY, mode="read", count=count, variables=marks)


def test_leftover_in_state_d_keeps_the_device(machine_of):
    """Its memory on the device may still be in use."""
    machine = machine_of(1)
    with machine.connect(ALICE) as alice, Holders(machine.socket, MALLORY, ["nvidia0"]) as holders:
        with leave_unkillable(machine, holders.leases["nvidia0"][0]) as stuck:
            holders.kill("nvidia0")
            until(lambda: stuck.state() == "D", "an unkillable process")
            number = alice.send_claim()
            assert alice.answer(number, ("GRANTED", "WAITING"))["type"] == "WAITING"
            assert [lease.get("draining") for lease in machine.root.look()["leases"]] == [True]
        alice.granted(number)


def test_leftover_in_state_d_counts(machine_of):
    machine = machine_of(2, RULES + "limits: {each_user: 1}\n")
    with machine.connect(MALLORY) as mallory, Holders(machine.socket, MALLORY, ["nvidia0"]) as holders:
        with leave_unkillable(machine, holders.leases["nvidia0"][0]) as stuck:
            holders.kill("nvidia0")
            until(lambda: stuck.state() == "D", "an unkillable process")
            number = mallory.send_claim({"wanted": ["nvidia1"]})
            assert mallory.answer(number, ("GRANTED", "WAITING"))["type"] == "WAITING"
        mallory.granted(number)


def test_leftover_in_state_d_is_named(machine_of):
    machine = machine_of(1)
    with Holders(machine.socket, MALLORY, ["nvidia0"]) as holders:
        with leave_unkillable(machine, holders.leases["nvidia0"][0]) as stuck:
            holders.kill("nvidia0")
            until(lambda: stuck.state() == "D", "an unkillable process")
            until(lambda: str(stuck.pids[0]) in machine.berth(0, "status").stdout, "the pid in status")
