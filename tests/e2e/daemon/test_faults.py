# SPDX-License-Identifier: Apache-2.0
"""Faults around the daemon: no descriptors, full disks, stopped processes, rivals. It serves as soon as the fault is
over, without a busy loop meanwhile."""
import contextlib
import os
import random
import re
import resource
import signal
import socket
import subprocess
import time

import processes
import pytest
import wire
from daemons import own_daemon, start_daemon
from process_size import descriptors
from steps import test_steps
from waiting import look, until, until_served

PROCESS = wire.HOLDS["PROCESS"]


def cpu_time(pid):
    """Return the seconds of CPU time that a process has used."""
    fields = processes.stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def stopped(pid):
    """Stop a process for the duration of the context."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: processes.status_values(pid)[0] == b"T", "a stopped process")
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def configure(pool, text):
    rules = pool.sandbox.home / ".config/berth/berth.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text(text)


def short_grace(pool):
    configure(pool, "grace: 200ms\n")


# ---- Descriptors ----


@contextlib.contextmanager
def no_descriptors(pid):
    """Leave the process no free descriptor. It has three or more at any time."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_no_descriptors(pool_of):
    """Clients that are connected are served, others are served later, and the daemon sleeps meanwhile."""
    pool = pool_of(4)
    daemon = start_daemon(pool)
    with wire.connect(str(pool.socket)) as client:
        client.release(client.claim()["id"])
        with no_descriptors(daemon.pid):
            late = [wire.connect(str(pool.socket)) for _ in range(20)]
            numbers = [other.send("HELLO") for other in late]
            began, used = time.monotonic(), cpu_time(daemon.pid)
            while time.monotonic() < began + 1:
                client.hello()
                time.sleep(0.05)  # the daemon is idle between the messages
            assert cpu_time(daemon.pid) - used < 0.3
        for other, number in zip(late, numbers):
            other.answer(number, ("POOL",))
            other.close()
    assert pool.berth("run", "-n4", "true").code == 0


def test_no_descriptors_for_a_holder(pool_of):
    """Without a descriptor for the holder there is a refusal and no lease that would never end."""
    pool = pool_of(1)
    daemon = start_daemon(pool)
    with wire.connect(str(pool.socket)) as client:
        client.release(client.claim()["id"])
        with no_descriptors(daemon.pid):
            number = client.send_claim({}, hold=PROCESS)
            message = client.receive(number, ("GRANTED", "REFUSED"))
        assert message["type"] == "REFUSED"
        assert message["text"] == f"cannot watch process {os.getpid()}: Too many open files"
        until(lambda: not client.look()["leases"], "no lease")
        before = descriptors(daemon.pid)
        client.release(client.claim()["id"])
        assert descriptors(daemon.pid) <= before


# ---- Disks ----


def test_log_on_a_full_disk(pool_of):
    """Lines are lost, not leases. test_full_disk.py is about the journal, test_recorder.py about the history."""
    pool = pool_of(2)
    configure(pool, "history: no\n")
    args = own_daemon(pool)
    args[args.index("--log") + 1] = "/dev/full"
    daemon = pool.sandbox.start(args)
    daemon.wait_for_line("^ready$")
    with wire.connect(str(pool.socket)) as client:
        for _ in range(100):
            client.release(client.claim()["id"])
        used, began = cpu_time(daemon.pid), time.monotonic()
        until(lambda: time.monotonic() > began + 0.5, "half a second")
        assert cpu_time(daemon.pid) - used < 0.2
    assert pool.berth("run", "-n2", "true").code == 0
    assert pool.berth("status").code == 0
    daemon.kill()
    assert daemon.wait() == 0


# ---- Logs that nobody reads ----


def log_ends(kind):
    """Return the ends of a pipe or socket for a log: to read, to write."""
    if kind == "pipe":
        return os.pipe()
    reading, writing = socket.socketpair()
    return reading.detach(), writing.detach()


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_log_that_nobody_reads(pool_of, kind):
    """As with a service manager's log that was stopped: the daemon serves, and counts the lines that it leaves out."""
    pool = pool_of(2)
    path = pool.sandbox.directory / "machine.sock"
    reading, writing = log_ends(kind)
    words = ["berthd", "--socket", path, "--inventory", pool.inventory]
    daemon = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=writing, env=pool.sandbox.environment)
    os.close(writing)
    try:
        until_served(path)
        with wire.connect(str(path)) as client:
            for _ in range(3000):
                client.release(client.claim(command="x" * 200)["id"])
        os.set_blocking(reading, False)
        until(lambda: reads_left_out(reading, path), "the number of lines that were left out")
    finally:
        daemon.terminate()
        assert daemon.wait() == 0
        os.close(reading)


def reads_left_out(reading, path):
    """Read the log, to which another lease adds lines."""
    text = b""
    with contextlib.suppress(BlockingIOError):
        while part := os.read(reading, 65536):
            text += part
    with wire.connect(str(path)) as client:
        client.release(client.claim()["id"])
    return re.search(rb"^\S+ log left_out=[1-9]\d*$", text, re.MULTILINE)


# ---- Stopped processes ----


def helpers():
    """Return the daemon's helpers, which are not its children."""
    return [pid for pid, zombie in processes.descendants(os.getpid()) if not zombie and processes.is_probe(pid)]


def test_stopped_daemon(pool_of):
    """The daemon notices afterwards ends of holders, closed connections, time limits and new clients."""
    pool = pool_of(4)
    short_grace(pool)
    daemon = start_daemon(pool)
    holder = pool.start("run", "--device", "nvidia0", "sh", "-c", "echo held; exec sleep 1000")
    holder.wait_for_line("^held$")
    with wire.connect(str(pool.socket)) as client:
        limited = client.claim({"wanted": ["nvidia1"], "time": 10**8})["id"]
        closing = wire.connect(str(pool.socket))
        closing.claim({"wanted": ["nvidia2"]})
        with stopped(daemon.pid):
            holder.stop()
            closing.close()
            late = wire.connect(str(pool.socket))
            number = late.send_claim({"all": True})
            until(lambda began=time.monotonic(): time.monotonic() > began + 0.15, "the time limit")
        assert client.watch(limited)["end"] == wire.ENDS["EXPIRED"]
        assert len(late.granted(number)["devices"]) == 4
        late.close()
    until(lambda: not look(pool)["leases"], "no lease")


def test_stopped_probe(pool_with):
    """Claims are granted on what is known, and status reports the problem."""
    pool = pool_with([0, 1], "history: no\n")
    probes = until(helpers, "probes")
    with contextlib.ExitStack() as stack:
        for pid in probes:
            stack.enter_context(stopped(pid))
        began = time.monotonic()
        assert pool.berth("status").code == 0
        assert time.monotonic() - began < 5
    assert pool.berth("run", "-n2", "--wait", "20s", "true", timeout=30).code == 0


def test_stopped_holder(pool_of):
    """A holder that is stopped ends when its lease is released."""
    pool = pool_of(1)
    short_grace(pool)
    holder = pool.hold()
    os.kill(holder.pid, signal.SIGSTOP)
    assert pool.berth("release", holder.lease).code == 0
    assert holder.wait() < 0
    assert pool.berth("run", "--wait", "10s", "true").code == 0


def test_helpers_stopped_and_killed_in_turn(pool_with):
    """Whichever helper of the daemon is stopped or killed: claims are served before and after."""
    pool = pool_with([0, 1], "")
    [daemon] = pool.daemons()
    chance = random.Random(1)
    for _ in range(test_steps(12, 200)):
        victim = chance.choice(until(helpers, "helpers"))
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, chance.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM]))
        with wire.connect(str(pool.socket)) as client:
            client.hello()
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGCONT)
        assert pool.berth("run", "-n2", "--wait", "20s", "true", timeout=30).code == 0
    assert pool.daemons() == [daemon]


# ---- Rivals ----


def until_one_is_left(daemons):
    def one():
        left = [daemon for daemon in daemons if daemon.process.poll() is None]
        return left if len(left) == 1 else None

    [winner] = until(one, "one daemon", timeout=20)
    return winner


def test_daemons_race_for_a_socket(pool_of):
    """One of several daemons that start at once serves; the others say why they do not."""
    pool = pool_of(1)
    socket_path = pool.sandbox.directory / "machine.sock"
    pool.sandbox.environment["BERTH_SOCKET"] = str(socket_path)
    args = ["berthd", "--socket", socket_path, "--inventory", pool.inventory]
    for _ in range(test_steps(1, 20)):
        daemons = [pool.sandbox.start(args) for _ in range(5)]
        winner = until_one_is_left(daemons)
        for daemon in daemons:
            if daemon is not winner:
                assert daemon.wait() == 125
                assert "another daemon" in daemon.text("stderr")
        assert pool.berth("run", "true").code == 0
        winner.kill(signal.SIGKILL)
        winner.wait()


def test_the_second_takes_over_at_the_end_of_the_first(pool_of):
    """A service manager may start the next daemon before the last one has ended: leases are kept."""
    pool = pool_of(1)
    first = start_daemon(pool)
    holder = pool.hold()
    second = pool.sandbox.start(own_daemon(pool))
    first.kill()
    assert first.wait() == 0
    second.wait_for_line("^ready$")
    [lease] = look(pool)["leases"]
    assert str(lease["id"]) == holder.lease
    pool.let_go(holder)


# ---- SIGKILL, as by the kernel when memory is short ----


def test_killed_at_any_moment(pool_of):
    """The daemon is killed after random short times: each next daemon knows all leases of running holders."""
    pool = pool_of(8)
    chance = random.Random(2)
    holders = [pool.hold("--device", f"nvidia{index}") for index in range(4)]
    held = {int(holder.lease) for holder in holders}
    for _ in range(test_steps(15, 500)):
        pool.end_daemon(signal.SIGKILL)
        daemon = pool.sandbox.start(own_daemon(pool))
        time.sleep(0.02 * chance.random())  # the moment is random
        daemon.kill(signal.SIGKILL)
        daemon.wait()
        daemon.close()
        pool.sandbox.programs.remove(daemon)
    start_daemon(pool)
    assert {lease["id"] for lease in look(pool)["leases"]} == held
    for holder in holders:
        pool.let_go(holder)
    assert pool.berth("run", "-n8", "true").code == 0


# ---- Rounds without a pause ----


def test_next_claim_finds_the_device_free(pool_of):
    """A command that has ended has left its device to the next command. The daemon looks for processes of the first
    command for 50 ms at most before it answers the second one; only an overloaded machine needs longer."""
    pool = pool_of(1)
    rounds = test_steps(200, 10000)
    late = 0
    for number in range(rounds):
        done = pool.berth("run", "true")
        assert (done.code, done.stderr) == (0, ""), number
        began = time.monotonic()
        done = pool.berth("run", "--nonblock", "true")
        if time.monotonic() - began >= 0.05:
            late += done.code == 123
        else:
            assert (done.code, done.stderr) == (0, ""), number
    assert late <= rounds // 20
