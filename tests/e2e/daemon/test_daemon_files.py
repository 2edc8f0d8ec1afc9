# SPDX-License-Identifier: Apache-2.0
"""berthd opens and looks at nothing below /proc/PID while it serves: strace shows its system calls.

The directory /proc/PID itself is allowed: the kernel answers stat() without waiting for the process."""
import os
import re
import shutil
import signal
import subprocess

import processes
import pytest
import wire
from holders import Holders
from machine_daemon import MachineDaemon
from shared_machine import needs_root
from waiting import until

ALICE, CAROL = 61004, 61005
PROCESS = wire.HOLDS["PROCESS"]
# The first path of a call, and the directory to which it is relative, as strace -y prints them.
CALL = re.compile(r'^\w+\((?:(?:AT_FDCWD|\d+)<(?P<directory>[^>]*)>, )?"(?P<path>[^"]*)"')


@pytest.fixture
def machine(sandbox, pool_of):
    """A machine whose daemons run under strace."""
    needs_root()
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
        pytest.skip("strace cannot trace here")
    strace = shutil.which("strace")
    berthd = shutil.which("berthd", path=sandbox.environment["PATH"])
    if "libasan" in subprocess.run(["ldd", berthd], capture_output=True, text=True).stdout:
        pytest.skip("the leak sanitizer does not work under strace")
    program = sandbox.directory / "traced"
    # strace is not the daemon's parent. It does not follow the daemon's children: only the daemon must not wait.
    program.write_text(f'#!/bin/sh\nexec {strace} -D -qq -y -s 4096 -e trace=%file -o "{sandbox.directory}/trace.$$" {berthd} "$@"\n')
    program.chmod(0o755)
    made = MachineDaemon(sandbox, pool_of(4).inventory)
    made.program = program
    yield made
    if made.daemon is not None:
        made.end()


def start(machine):
    machine.start("history: no\ngrace: 200ms\n", program=machine.program)


def trace(machine, pid):
    """Return the absolute paths of a daemon's calls."""
    paths = []
    for line in (machine.sandbox.directory / f"trace.{pid}").read_text().splitlines():
        found = CALL.match(line)
        if found:
            paths.append(os.path.normpath(os.path.join(found["directory"] or "/", found["path"])))
    return paths


def check(machine, pid):
    paths = trace(machine, pid)
    assert str(machine.rules) in paths
    of_processes = [path for path in paths if re.match(r"/proc/\d+/", path)]
    assert [path for path in of_processes if not path.startswith(f"/proc/{pid}/")] == []


def leave_process(machine, lease):
    """Start a process that carries the mark of a lease, and does not end by itself."""
    marks = [f"BERTH_LEASE={lease}", f"BERTH_SOCKET={machine.socket}"]
    left = machine.sandbox.start([*machine.become(ALICE), "env", *marks, "sh", "-c", "trap : TERM; echo left; while :; do sleep 0.1; done"])
    left.wait_for_line("^left$")
    return left


def use(machine):
    """Hold leases in all ways, and end them."""
    with Holders(machine.socket, ALICE, ["nvidia0"]) as holders, machine.connect(CAROL) as carol, machine.connect(ALICE) as alice:
        left = leave_process(machine, holders.leases["nvidia0"][0])
        holders.kill("nvidia0")
        carol.release(carol.claim({"wanted": ["nvidia0"]}, timeout=10)["id"])
        assert processes.is_ended(left.pid, 0)
        left.stop()
        sleeper = machine.sleeper(ALICE)
        adopted = alice.claim({"wanted": ["nvidia1"]}, hold=PROCESS, pid=sleeper.pid, started=0)
        machine.root.stop(adopted["id"])
        assert processes.is_ended(sleeper.pid, 10)
        assert machine.berth(ALICE, "run", "true").code == 0
        assert machine.berth(ALICE, "status").code == 0


def test_no_file_of_a_process(machine):
    start(machine)
    use(machine)
    first = machine.daemon.pid
    with Holders(machine.socket, ALICE, ["nvidia2", "nvidia3"]) as holders:
        left = leave_process(machine, holders.leases["nvidia2"][0])
        machine.close(signal.SIGKILL)
        machine.root.close()
        holders.kill("nvidia2")
        start(machine)
        second = machine.daemon.pid
        until(lambda: processes.is_ended(left.pid, 0), "the end of what the lease has left")
        left.stop()
        use(machine)
    machine.end()
    for pid in (first, second):
        check(machine, pid)
