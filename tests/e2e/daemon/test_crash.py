# SPDX-License-Identifier: Apache-2.0
"""SIGKILL to any process, at any moment: nothing hangs, is lost or is granted twice."""
import os
import random
import signal
import time
from pathlib import Path

import daemon_log
import processes
import pytest
import wire
from daemons import listen, start_daemon, until_readable
from many_commands import ManyCommands
from steps import test_steps
from waiting import look, pending, until, until_pending

EXECED = ()
SUPERVISED = ("--time", "1h")
KINDS = pytest.mark.parametrize("options", [EXECED, SUPERVISED], ids=["execed", "supervised"])

# A command with a child and a grandchild in its own session. All of them ignore SIGTERM, SIGHUP
# and SIGINT.
FAMILY = """
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP; echo $$ >>{0}; sleep 1000 & echo $! >>{0}; wait' &
sleep 1000 & echo $! >>{0}
echo $$ >>{0}
while test "$(wc -l <{0})" -lt 4; do sleep 0.01; done
echo ready
wait
"""


def short_grace(pool):
    """Configure the daemon to kill processes soon if they do not end by themselves."""
    rules = pool.sandbox.home / ".config/berth/berth.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("grace: 200ms\n")


# ---- The holder, berth run, the shell around them ----


@KINDS
def test_killed_command(pool_of, options):
    pool = pool_of(1)
    with pool.start("run", *options, "sh", "-c", "echo started $$; exec sleep 1000") as program:
        pid = int(program.wait_for_line("^started").split()[1])
        with pool.start("run", "echo", "next") as after:
            until_pending(pool, 1)
            os.kill(pid, signal.SIGKILL)
            after.wait_for_line("^next$")
            assert after.wait() == 0
        assert program.wait() == (137 if options else -signal.SIGKILL)


@KINDS
def test_killed_run_takes_its_family_along(pool_of, options):
    pool = pool_of(1)
    short_grace(pool)
    pids = pool.sandbox.directory / "pids"
    with pool.start("run", *options, "sh", "-c", FAMILY.format(pids)) as program:
        program.wait_for_line("^ready$")
        family = [int(line) for line in pids.read_text().split()]
        look_for = "; ".join(f"test ! -e /proc/{pid} || echo {pid}" for pid in family)
        with pool.start("run", "sh", "-c", look_for) as after:
            until_pending(pool, 1)
            program.kill(signal.SIGKILL)
            assert after.wait() == 0  # zombies would show here if init did not reap them
            left = [int(line) for line in after.text().split()]
        for pid in family:
            processes.wait_for_end(pid)
        assert all(is_dead(pid) for pid in left), "the next command ran before the end of these processes"


def is_dead(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def sleepers():
    return [pid for pid, _ in processes.descendants(os.getpid()) if processes.command_line(pid) == "sleep 1000"]


def test_devices_stay_blocked_until_the_last_is_gone(pool_of):
    """A lease drains while it has processes: its device is granted to no other claim."""
    pool = pool_of(2)
    script = "trap '' TERM; (trap '' TERM; echo $BERTH_DEVICES; exec sleep 1000) & exec sleep 1000"
    with pool.start("run", "sh", "-c", script) as program:
        device = program.wait_for_line("^nvidia")
        program.kill(signal.SIGKILL)
        daemon_log.wait_for(pool.directory / "log", "draining")
        done = pool.berth("run", "--nonblock", "sh", "-c", "echo $BERTH_DEVICES")
        assert (done.code, done.stdout) == (0, "nvidia1\n" if device == "nvidia0" else "nvidia0\n")
        until(lambda: [lease.get("draining") for lease in look(pool)["leases"]] == [True], "only the draining lease")
        assert pool.berth("run", "--nonblock", "-n2", "true").code == 123
        [left] = until(sleepers, "the process that is left")
        os.kill(left, signal.SIGKILL)
        assert pool.berth("run", "-n2", "true").code == 0
        program.wait()


@KINDS
def test_killed_shell(pool_of, options):
    """When the shell dies, its children continue and keep the lease. The lease ends with them."""
    pool = pool_of(1)
    script = f"berth run {' '.join(options)} sh -c 'echo started $$ $BERTH_LEASE; exec cat'; true"
    with pool.sandbox.start(["sh", "-c", script]) as shell:
        _, pid, lease = shell.wait_for_line("^started").split()
        shell.kill(signal.SIGKILL)
        shell.wait()
        assert pool.berth("run", "--nonblock", "true").code == 123
        with wire.connect(str(pool.socket)) as client:
            number = client.send("WATCH", id=int(lease))
            shell.process.stdin.close()
            shell.process.stdin = None
            client.answer(number, ("ENDED",))
        processes.wait_for_end(int(pid))
        assert pool.berth("run", "--nonblock", "true").code == 0


def test_killed_while_it_waits(pool_of):
    """A claim leaves the queue as soon as its process dies, and the claims behind it move up."""
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "true") as first, pool.start("run", "echo", "mine") as second:
        until_pending(pool, 2)
        first.kill(signal.SIGKILL)
        first.wait()
        until_pending(pool, 1)
        pool.let_go(holder)
        assert (second.wait(), second.text()) == (0, "mine\n")


# ---- The daemon ----


@KINDS
def test_command_does_not_notice(pool_of, options):
    pool = pool_of(1)
    script = "echo started; while read line; do echo $line; done; exit 7"
    with pool.start("run", *options, "sh", "-c", script) as program:
        program.wait_for_line("^started$")
        for i in range(3):
            pool.end_daemon(signal.SIGKILL)
            program.send(f"{i}\n")
            program.wait_for_line(f"^{i}$")
            assert pool.berth("run", "--nonblock", "true").code == 123  # and starts the daemon
        program.process.stdin.close()
        program.process.stdin = None
        assert program.wait() == 7
        assert program.text("stderr") == ""
        assert pool.berth("run", "--wait", "10", "true").code == 0


@KINDS
def test_killed_together(pool_of, options):
    """The holder and the daemon are killed together. The next daemon notices it."""
    pool = pool_of(1)
    with pool.start("run", *options, "sh", "-c", "echo started; exec sleep 1000") as program:
        program.wait_for_line("^started$")
        [daemon] = pool.daemons()
        os.kill(daemon, signal.SIGSTOP)
        program.kill(signal.SIGKILL)
        program.wait()
        os.kill(daemon, signal.SIGKILL)
        processes.wait_for_end(daemon)
        assert pool.berth("run", "--wait", "10", "true").code == 0


ASKING = [["run", "true"], ["reserve", "--for", "1h"], ["wait"], ["status"], ["history"]]


def ask_the_dead(pool, verb):
    """Start a verb while only a child of a killed daemon has the socket. The child keeps the
    socket until it executes another program. Connections made meanwhile are dropped without an
    answer."""
    with listen(pool.socket) as of_the_dead:
        client = pool.start(*verb)
        until_readable(of_the_dead)
    return client


@pytest.mark.parametrize("verb", ASKING, ids=lambda verb: verb[0])
def test_killed_while_it_makes_a_child(pool_of, verb):
    pool = pool_of(1)
    start_daemon(pool).stop()
    pool.socket.unlink()
    client = ask_the_dead(pool, verb)
    assert client.wait() == 0
    assert client.text("stderr") == ""


@pytest.mark.parametrize("verb", ASKING, ids=lambda verb: verb[0])
def test_the_machines_is_killed_while_it_makes_a_child(pool_of, verb):
    pool = pool_of(1)
    pool.socket = pool.sandbox.directory / "machine.sock"
    pool.sandbox.environment["BERTH_SOCKET"] = str(pool.socket)
    client = ask_the_dead(pool, verb)
    with pool.sandbox.start(["berthd", "--socket", pool.socket, "--inventory", pool.inventory]):
        assert client.wait() == 0
        assert client.text("stderr") == ""


def test_places_are_kept(pool_of):
    """Waiting claims are granted in the order of their arrival, even if the daemon is killed often
    while they wait and while they are served. With one device, the order of the commands' first
    lines is the order of their grants."""
    pool = pool_of(1)
    chance = random.Random(1)
    many = ManyCommands(pool)
    holder = pool.hold()
    for i in range(40):
        many.start(*(SUPERVISED if i % 3 else EXECED), seconds=chance.choice([0, 0.01]))
        until_pending(pool, i + 1)
    for _ in range(4):
        pool.end_daemon(signal.SIGKILL)
        until_pending(pool, 40)
    pool.let_go(holder)
    killed = 0
    while many.running():
        if killed % 3 == 2:  # only every third daemon lives long enough to serve
            until(lambda: pending(pool) is not None or not many.running(), "a daemon that serves")
        time.sleep(0.03 * chance.random())  # the moment is random
        for daemon in pool.daemons():
            os.kill(daemon, signal.SIGKILL)
            processes.wait_for_end(daemon)
            killed += 1
    many.check()
    assert [line.name for line in many.lines() if line.word == "start"] == [m.name for m in many.members]


def test_who_does_not_come_back(pool_of):
    """After a restart, the daemon keeps claims, and leases held by a connection, for 5 s if their
    clients live but do not reconnect. Leases held by a process stay, and so do claims whose client
    reconnects."""
    pool = pool_of(4)
    start_daemon(pool)
    tokens = [random.getrandbits(127) + 2**64 for _ in range(3)]
    with wire.connect(str(pool.socket)) as client:
        by_connection = client.claim(token=tokens[0])
        by_process = client.claim(token=tokens[1], hold=wire.HOLDS["PROCESS"])
        lost = [client.claim()["id"], client.claim()["id"]]
        waiting = client.receive(client.send_claim(), kinds=("WAITING",))["id"]
        returning = client.receive(client.send_claim(token=tokens[2]), kinds=("WAITING",))["id"]
        pool.end_daemon(signal.SIGKILL)
    start_daemon(pool)
    with wire.connect(str(pool.socket)) as client:
        assert len(look(pool)["leases"]) == 4
        assert client.claim(token=tokens[0])["id"] == by_connection["id"]
        number = client.send_claim(token=tokens[2])
        assert client.receive(number, kinds=("WAITING",))["id"] == returning
        log = pool.directory / "log"
        abandoned = [entry.id for entry in daemon_log.wait_for(log, "abandoned", count=3)]
        assert sorted(abandoned) == sorted([*lost, waiting])
        assert client.granted(number)["id"] == returning
        assert {lease["id"] for lease in look(pool)["leases"]} == {by_connection["id"], by_process["id"], returning}


def test_time_limits_come_and_go(pool_of):
    """Time limits are set in every order, moved and removed. The daemon still runs afterwards."""
    pool = pool_of(4)
    daemon = start_daemon(pool)
    chance = random.Random(1)
    with wire.connect(str(pool.socket)) as client:
        held = []
        for _ in range(400):
            if len(held) < 4 and chance.random() < 0.6:
                held.append(client.claim({"time": chance.randrange(10**9, 10**13)})["id"])
            elif held and chance.random() < 0.5:
                client.extend(chance.choice(held), chance.randrange(10**9, 10**13))
            elif held:
                client.release(held.pop(chance.randrange(len(held))))
        assert client.hello()["pid"] == daemon.pid


@pytest.mark.parametrize("seed", [1])
def test_killed_at_random_moments(pool, seed):
    """Many commands run, exec'ed and supervised, narrow and wide, while the daemon is killed
    repeatedly: during its start, its restore and its grants."""
    chance = random.Random(seed)
    many = ManyCommands(pool)
    kinds = [EXECED, EXECED, ("-n2",), SUPERVISED, SUPERVISED, ("-n", "3", *SUPERVISED)]
    kills = test_steps(20, 400)
    killed = 0
    log = pool.directory / "log"
    while killed < kills:
        while many.running() < 24:
            seconds = chance.choice([0, 0.01, 0.05, 0.1])
            many.start(*chance.choice(kinds), seconds=seconds, code=chance.choice([0, 0, 3]))
        [daemon] = until(pool.daemons, "a daemon")
        # Every third daemon lives long enough to write its log and to serve new commands, which
        # give up after five daemons that died at the start. The moment is random.
        if killed % 3 == 2:
            before = len(daemon_log.ids(log, "granted"))
            until(lambda: len(daemon_log.ids(log, "granted")) > before, "grants in the log")
        time.sleep(chance.choice([0, 0.005, 0.02]) * chance.random())
        os.kill(daemon, signal.SIGKILL)
        processes.wait_for_end(daemon)
        killed += 1
    many.wait()
    many.check()
    granted = daemon_log.ids(log, "granted")
    assert len(granted) >= kills, "the log has lost too many lines for the next check"
    many.check_order(granted)
    assert pool.berth("run", "-n8", "true").code == 0  # no lease is left
