# SPDX-License-Identifier: Apache-2.0
"""A daemon that is connected but does not answer: the commands say so after 5 s, and keep their own limits."""
import contextlib
import os
import re
import signal
import time

from waiting import until, until_pending, until_served

RESTART = r"kill it with SIGKILL, and the next command restarts it \(leases are kept\)"


@contextlib.contextmanager
def stopped(pool):
    """Stops the pool's daemon, and yields its pid."""
    assert pool.berth("status").code == 0
    [daemon] = pool.daemons()
    os.kill(daemon, signal.SIGSTOP)
    try:
        yield daemon
    finally:
        os.kill(daemon, signal.SIGCONT)


def elapsed(began):
    return time.monotonic() - began


def test_plain_verbs_fail(pool):
    """Verbs without a queue fail after 5 s and name the daemon and a way out."""
    lines = [
        ["status"],
        ["status", "--watch"],
        ["release", "1"],
        ["cancel", "1"],
        ["extend", "1", "1h"],
        ["drain", "nvidia0"],
        ["plan"],
        ["run", "--nonblock", "true"],
        ["wait", "--nonblock"],
        ["history"],
    ]
    with stopped(pool) as daemon, contextlib.ExitStack() as all_verbs:
        began = time.monotonic()
        started = [all_verbs.enter_context(pool.start(*line)) for line in lines]
        for line, verb in zip(lines, started, strict=True):
            assert verb.wait() == 125, line
            assert re.fullmatch(
                f"berth: {line[0]}: the daemon \\(pid {daemon}\\) does not answer; {RESTART}\n", verb.text("stderr")
            ), line
            assert verb.text() == ""
        assert elapsed(began) > 4.9


def test_many_ids(pool):
    """The daemon's socket is full of requests long before the last id; the command says once what is wrong."""
    ids = [str(number) for number in range(1, 1001)]
    with stopped(pool) as daemon, contextlib.ExitStack() as both:
        started = [both.enter_context(pool.start(verb, *ids)) for verb in ("cancel", "release")]
        for name, verb in zip(("cancel", "release"), started, strict=True):
            assert verb.wait() == 125
            assert re.fullmatch(
                f"berth: {name}: the daemon \\(pid {daemon}\\) does not answer; {RESTART}\n", verb.text("stderr")
            )


def test_waiting_verbs_wait_on(pool):
    """Verbs that wait for devices say so once, wait on, and say when the daemon answers again."""
    lines = [
        ["run", "echo", "it", "ran"],
        ["run", "--device", "0", "echo", "it", "ran"],
        ["reserve", "--device", "1", "--for", "1h"],
        ["submit", "true"],
        ["wait"],
    ]
    with contextlib.ExitStack() as all_verbs:
        with stopped(pool) as daemon:
            started = [all_verbs.enter_context(pool.start(*line)) for line in lines]
            for line, verb in zip(lines, started, strict=True):
                news = verb.wait_for_line("does not answer", stream="stderr")
                assert re.fullmatch(
                    f"berth: {line[0]}: the daemon \\(pid {daemon}\\) does not answer; {RESTART}", news
                ), line
                assert verb.process.poll() is None
        for line, verb in zip(lines, started, strict=True):
            assert verb.wait() == 0, line
            assert verb.text("stderr").splitlines()[1:] == [
                f"berth: {line[0]}: the daemon (pid {daemon}) answers again"
            ], line
        assert started[0].text() == "it ran\n"


def test_own_limit(pool):
    """--wait is kept although the daemon does not answer; a short limit does not wait for the 5 s."""
    with stopped(pool) as daemon:
        began = time.monotonic()
        with pool.start("run", "--wait", "1s", "true") as short, pool.start("wait", "--wait", "6s") as long:
            assert short.wait() == 123
            assert 1 <= elapsed(began) < 5
            assert short.text("stderr") == f"berth: run: not granted within 1s: the daemon (pid {daemon}) does not answer\n"
            assert long.wait() == 123
            assert 6 <= elapsed(began) < 12
            lines = long.text("stderr").splitlines()
            assert len(lines) == 2, lines
            assert lines[1] == f"berth: wait: not granted within 6s: the daemon (pid {daemon}) does not answer"


def test_shortest_limits(pool):
    """--wait 0s is a limit, too, and a short one does not wait long for the daemon."""
    with stopped(pool) as daemon:
        began = time.monotonic()
        with pool.start("run", "--wait", "0s", "true") as none, pool.start("wait", "--wait", "1ms") as short:
            assert none.wait() == 123
            assert short.wait() == 123
            assert elapsed(began) < 2.5
            assert none.text("stderr") == f"berth: run: not granted within 0s: the daemon (pid {daemon}) does not answer\n"
            assert short.text("stderr") == f"berth: wait: not granted within 1ms: the daemon (pid {daemon}) does not answer\n"


def test_queued_claim(pool):
    """A command that is already in the queue notices a stuck daemon just as soon."""
    holder = pool.hold("--gpus", "all")
    with pool.start("run", "--gpus", "all", "echo", "it ran") as run:
        until_pending(pool, 1)
        with stopped(pool) as daemon:
            began = time.monotonic()
            news = run.wait_for_line("does not answer", stream="stderr")
            assert elapsed(began) < 8
            assert f"(pid {daemon})" in news
        run.wait_for_line("answers again", stream="stderr")
        pool.let_go(holder)
        assert run.wait() == 0


def test_limit_without_a_daemon(pool, sandbox):
    """--wait is kept while there is no daemon, which other waiting commands get 30 s for."""
    socket = sandbox.directory / "machine.sock"
    sandbox.environment["BERTH_SOCKET"] = str(socket)
    daemon = sandbox.start(["berthd", "--socket", socket, "--inventory", pool.inventory])
    pool.socket = socket
    until_served(socket)
    holder = pool.hold("--gpus", "all")
    began = time.monotonic()
    with pool.start("run", "--wait", "4s", "true") as run:
        until_pending(pool, 1)
        daemon.kill(signal.SIGKILL)
        daemon.wait()
        assert run.wait() == 123
        assert 4 <= elapsed(began) < 10
        assert run.text("stderr") == f"berth: run: not granted within 4s: the daemon at {socket} is gone\n"
    holder.kill(signal.SIGKILL)
    holder.wait()


def test_killed_while_stuck(pool):
    """The way out works: after SIGKILL the next daemon takes over, and the waiting command runs."""
    with stopped(pool) as daemon, pool.start("run", "echo", "it ran") as run:
        run.wait_for_line("does not answer", stream="stderr")
        os.kill(daemon, signal.SIGKILL)
        assert run.wait() == 0
        assert run.text() == "it ran\n"


def test_devices(machine, machine_pool):
    """berth devices reads the hardware itself, and says that the pool's part is missing."""
    machine.add_amd(4)
    with stopped(machine_pool) as daemon:
        done = machine_pool.berth("devices")
        assert done.code == 0
        assert "amd0" in done.stdout
        assert done.stderr.startswith(f"berth: pool: the daemon (pid {daemon}) does not answer; ")


def test_starting_daemon(machine, machine_pool, sandbox):
    """A daemon that waits for a slow driver at its start is not stuck."""
    slow = sandbox.directory / "slow-probe"
    slow.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    slow.chmod(0o755)
    sandbox.environment.update({"BERTH_PROBE": str(slow), "BERTH_PROBE_DEADLINE": "7s"})
    with machine_pool.start("status") as first:
        until(machine_pool.socket.exists, "a socket")
        began = time.monotonic()
        second = machine_pool.berth("status", timeout=20)
        assert (second.code, second.stderr) == (0, "")
        assert elapsed(began) > 5.5
        assert first.wait() == 0
