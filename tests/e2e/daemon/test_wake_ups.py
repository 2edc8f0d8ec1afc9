# SPDX-License-Identifier: Apache-2.0
"""The daemon sleeps while its helpers fail, and its readers sleep at rest. The tests count how often they wake up."""
import os
import shutil
import subprocess

import processes
import pytest
from waiting import until

SECONDS = 2.0
# A daemon that polls, or restarts a helper at once, wakes up hundreds of times a second. One that tries again after
# growing pauses wakes up a few times, each with a few system calls.
WAKE_UPS = 60

FAILURES = {"missing": "/nonexistent/program", "fails": "/bin/false", "babbles": None}


@pytest.fixture(params=FAILURES)
def failing(request, sandbox):
    """A helper program that fails in one way."""
    if FAILURES[request.param] is not None:
        return FAILURES[request.param]
    program = sandbox.directory / "babbling"
    program.write_text("#!/bin/sh\nexec cat /dev/zero >&0\n")
    program.chmod(0o755)
    return str(program)


def count_wake_ups(pool):
    """Return the wake-ups within a few seconds in which a lease is held and a claim waits."""
    holder = pool.hold()
    with pool.start("run", "--", "true") as waits:
        until(lambda: '"queue": [\n' in pool.berth("status", "--json").stdout, "a claim that waits")
        [daemon] = pool.daemons()
        counted = processes.count_wake_ups(daemon, SECONDS)
        waits.kill()
        waits.wait()
    pool.let_go(holder)
    return counted


def test_nothing_fails(pool_of):
    assert count_wake_ups(pool_of(1)) <= WAKE_UPS


def test_readers_at_rest(pool_of):
    """A reader looks for new processes once a second, or four times if many programs start. Each look may make it wait
    for the CPU or a lock of the kernel, so it may go to sleep a few times more."""
    pool = pool_of(1)
    holder = pool.hold()
    pool.let_go(holder)

    def find_readers():
        below = processes.descendants(os.getpid())
        return [pid for pid, zombie in below if not zombie and processes.name(pid) == "berth-reader"]

    # Each is a copy of the daemon until it has executed its program.
    until(lambda: len(find_readers()) == 2, "the readers")
    for reader in find_readers():
        assert processes.count_wake_ups(reader, SECONDS) <= 8 * SECONDS


def test_reader(pool_of, failing):
    pool = pool_of(1)
    pool.sandbox.environment["BERTH_READER"] = failing
    assert count_wake_ups(pool) <= WAKE_UPS


def test_probe(hardware_of, sandbox, failing):
    """The devices are known, and then the probe fails."""
    pool = hardware_of([0])
    probe = sandbox.directory / "probe"
    real = sandbox.environment["BERTH_PROBE"]
    probe.symlink_to(real)
    sandbox.environment["BERTH_PROBE"] = str(probe)
    assert pool.berth("status").code == 0
    pool.until_state("nvidia0", "FREE")
    probe.unlink()
    if os.path.exists(failing):
        probe.symlink_to(failing)
    subprocess.run(["kill", "-KILL", str(pool.probe_log.read_text().split()[1])], check=True)
    assert count_wake_ups(pool) <= WAKE_UPS


def test_log_that_nobody_reads(pool_of, sandbox):
    """The log is a pipe whose reader has ended."""
    pool = pool_of(1)
    path = sandbox.directory / "berth.sock"
    inventory = sandbox.environment["BERTH_INVENTORY"]
    read, write = os.pipe()
    daemon = subprocess.Popen(
        [shutil.which("berthd", path=sandbox.environment["PATH"]), "--socket", path, "--inventory", inventory], env=sandbox.environment, stdin=subprocess.DEVNULL, stderr=write
    )
    os.close(write)
    try:
        os.read(read, 1)
        os.close(read)
        sandbox.environment["BERTH_SOCKET"] = str(path)
        assert pool.berth("run", "true").code == 0
        assert processes.count_wake_ups(daemon.pid, SECONDS) <= WAKE_UPS
    finally:
        daemon.terminate()
        assert daemon.wait(20) == 0
