# SPDX-License-Identifier: Apache-2.0
"""A reused process id is another process. The tests set the id that the kernel uses next."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import processes
import pytest
import wire
from shared_machine import ALICE, BOB
from waiting import until

LAST = Path("/proc/sys/kernel/ns_last_pid")
TRIES = 200


@pytest.fixture
def shared_machine(shared_machine_of):
    if not os.access(LAST, os.W_OK):
        pytest.skip(f"{LAST} cannot be written")
    return shared_machine_of(2)


def process_with(pid, uid):
    """Start a process of this user with this pid, which must be free."""
    for _ in range(TRIES):
        try:
            LAST.write_text(str(pid - 1))
        except OSError as error:
            pytest.skip(f"{LAST}: {error}")
        process = subprocess.Popen(["sleep", "1000"], user=uid, group=uid, extra_groups=[])
        if process.pid == pid:
            return process
        end(process)  # another process got it first
    pytest.skip(f"no process got the pid {pid}")


def end(process):
    process.kill()
    process.wait()


def started(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def started_now():
    process = subprocess.Popen(["sleep", "1000"])
    try:
        return started(process.pid)
    finally:
        end(process)


def until_later_than(began):
    """Wait for the next tick: the kernel reports start times in ticks, and both processes must
    differ. In practice, pids are not reused within one tick."""
    until(lambda: started_now() > began, "the next tick")


def test_a_lease_does_not_pass_to_who_has_the_number_next(shared_machine):
    """The lease does not pass to the process with the same pid, not even after a restart, and this
    process is not signalled."""
    shared_machine.open()
    holder = shared_machine.hold(ALICE, "-n", "2")  # berth becomes its command: one process
    claimed = started_now()  # or before; a later process is not the holder
    shared_machine.close(signal.SIGKILL)
    holder.kill(signal.SIGKILL)
    holder.wait()
    until_later_than(claimed)
    other = process_with(holder.pid, BOB)
    try:
        shared_machine.open()
        until(lambda: shared_machine.look()["leases"] == [], "the end of the lease")
        assert shared_machine.berth(BOB, "run", "-n", "2", "--nonblock", "true") == (0, "", "")
        assert other.poll() is None
    finally:
        end(other)


def test_a_process_that_was_meant_is_not_who_has_its_number_next(shared_machine):
    shared_machine.open()
    meant = shared_machine.sleeper(BOB)
    began = started(meant.pid)
    with wire.connect(str(shared_machine.socket)) as client:
        until_later_than(began)
        shared_machine.end(meant)
        other = process_with(meant.pid, BOB)
        try:
            with pytest.raises(wire.Refused) as refused:
                client.claim({}, hold=wire.HOLDS["PROCESS"], pid=meant.pid, started=began)
            assert refused.value.text == f"cannot adopt process {meant.pid}: no such process"
            assert shared_machine.look()["leases"] == []
        finally:
            end(other)


def test_who_connected_and_is_gone_holds_nothing(shared_machine):
    """The pid is reused while its connection is still open in a child."""
    shared_machine.open()
    script = (
        "import os, socket, sys\n"
        "link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        f"link.connect({str(shared_machine.socket)!r})\n"
        "if os.fork(): os._exit(0)\n"
        "print('up', os.getpid(), flush=True)\n"
        "sys.stdin.readline()\n"
        f"link.send({wire.encode('CLAIM', 1, token_high=7, token_low=7, request={}, hold=wire.HOLDS['PROCESS'])!r})\n"
        "print('answer', link.recv(65536)[1], flush=True)\n"
        "sys.stdin.readline()\n"
    )
    child = shared_machine.sandbox.start([*shared_machine.become(ALICE), sys.executable, "-c", script])
    heir = int(child.wait_for_line("^up ").split()[1])
    assert child.wait() == 0  # the process that connected
    other = process_with(child.pid, BOB)
    try:
        child.send("\n")
        child.wait_for_line("^answer ")
        until(lambda: shared_machine.look()["leases"] == [], "no lease")
        assert other.poll() is None
        child.send("\n")
        processes.wait_for_end(heir)
    finally:
        end(other)
