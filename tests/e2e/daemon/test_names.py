# SPDX-License-Identifier: Apache-2.0
"""Two pools of the same devices: only one pool uses a device at a time."""
import contextlib
import errno
import os
import random
import signal
import socket
import sys
import time

import processes
import pytest
import wire
from lease_history import history
from many_commands import ManyCommands
from pool import Pool, fnv1a
from process_size import descriptors
from steps import test_steps
from wait_times import check_longest
from waiting import look, until, until_pending

ELSEWHERE = wire.STATES["ELSEWHERE"]


class OtherPool(Pool):
    """A pool on the devices of another pool, with a daemon in its own directory."""

    def __init__(self, pool, name="other"):
        self.sandbox = pool.sandbox
        self.inventory = pool.inventory
        self.runtime = pool.sandbox.directory / name
        self.directory = self.runtime / pool.directory.name
        self.socket = self.directory / "berth.sock"
        self.env = {"BERTH_RUNTIME_DIR": str(self.runtime)}

    def berth(self, *args, **options):
        return super().berth(*args, env=self.env, **options)

    def start(self, *args, **options):
        return super().start(*args, env=self.env, **options)


@pytest.fixture
def two(pool_of):
    """Two pools of the same two devices."""
    pool = pool_of(2)
    return pool, OtherPool(pool)


def devices(holder_pool, lease):
    [found] = [entry["devices"] for entry in look(holder_pool)["leases"] if str(entry["id"]) == lease]
    return found


def states(pool):
    return {slot["device"]["id"]: slot.get("state", 0) for slot in look(pool)["slots"]}


def name_of(pool, device):
    return f"\0berth/{fnv1a(os.path.realpath(pool.inventory).encode()):016x}/{device}"


def take(name, sock):
    """Bind the name. Return false if it is in use, as it is until a child of the daemon executes its
    program."""
    try:
        sock.bind(name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


@contextlib.contextmanager
def stranger(pool, device, listens=True):
    """Take the name of a device and never send a message."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as taken:
        until(lambda: take(name_of(pool, device), taken), "a free name")
        if listens:
            taken.listen()
        yield taken


def ask_for(pool, device):
    """Ask for a name as another pool does. A pool that has the name of a free device releases it. On a busy machine
    it may not know yet that the device is free, and first answers that the device is in use."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        asker.settimeout(10)
        asker.connect(name_of(pool, device))
        assert asker.recv(1) in (b"", b"u")
        assert asker.recv(1) == b""


def test_never_the_same_device(two):
    first, second = two
    one, other = first.hold(), second.hold()
    assert devices(first, one.lease) + devices(second, other.lease) in (["nvidia0", "nvidia1"], ["nvidia1", "nvidia0"])
    for pool in two:
        assert pool.berth("run", "--nonblock", "true").code == 123
    first.let_go(one)
    second.let_go(other)
    for pool in two:
        assert pool.berth("run", "-n2", "true").code == 0


def test_status_says_elsewhere(two):
    first, second = two
    holder = second.hold()
    assert first.berth("run", "-n2", "--nonblock", "true").code == 123
    [device] = devices(second, holder.lease)
    assert states(first)[device] == ELSEWHERE
    assert sorted(states(first).values()) == [wire.STATES["FREE"], ELSEWHERE]
    assert "elsewhere" in first.berth("status").stdout
    with first.start("run", "-n2", "-v", "true") as waiting:
        line = waiting.wait_for_line("waiting", "stderr")
        assert "another pool" in line
        second.let_go(holder)
        assert waiting.wait() == 0


def test_woken_when_the_other_lets_go(two):
    """The pool does not poll: the grant follows the end of the other pool's lease."""
    first, second = two
    for pool, other in (two, two[::-1]):
        holder = other.hold("-n2")
        with pool.start("run", "-n2", "echo", "mine") as waiting:
            until_pending(pool, 1)
            other.let_go(holder)
            assert (waiting.wait(), waiting.text()) == (0, "mine\n")


def test_woken_when_the_others_holder_is_killed(two):
    first, second = two
    with second.start("run", "-n2", "sh", "-c", "echo started; exec sleep 1000") as holder:
        holder.wait_for_line("^started$")
        with first.start("run", "-n2", "true") as waiting:
            until_pending(first, 1)
            holder.kill(signal.SIGKILL)
            assert waiting.wait() == 0
        holder.wait()


def test_free_devices_are_anybodys(two):
    """A pool keeps the names of free devices for a moment, but releases them when another pool
    wants them."""
    for i in range(20):
        done = two[i % 2].berth("run", "-n2", "--nonblock", "true")
        assert (i, done.code, done.stderr) == (i, 0, "")


def test_claim_that_waits_does_not_keep_free_devices(two):
    """The claim needs two devices and one is held: the pool does not keep the free one from the
    other pool."""
    first, second = two
    holder = first.hold()
    with first.start("run", "-n2", "true") as waiting:
        until_pending(first, 1)
        assert second.berth("run", "--wait", "5", "true").code == 0
        first.let_go(holder)
        assert waiting.wait() == 0


@pytest.mark.parametrize("options", [(), ("--opportunistic",)])
def test_what_the_other_took_is_not_granted(two, options):
    """A claim for both devices waits for the one that its own pool has leased. Meanwhile the other
    pool takes the other one."""
    first, second = two
    mine = first.hold()
    with first.start("run", "-n2", *options, "echo", "both") as waiting:
        until(lambda: look(first)["claims"], "the claim")
        others = second.hold()
        first.let_go(mine)
        until(lambda: len(look(first)["leases"]) == 0, "the end of the lease")
        with pytest.raises(AssertionError):
            waiting.wait(timeout=0.2)
        second.let_go(others)
        assert (waiting.wait(), waiting.text()) == (0, "both\n")


def test_wait_knows(two):
    """berth wait gives the same result as berth run --nonblock."""
    first, second = two
    holder = second.hold("-n2")
    assert first.berth("wait", "--nonblock").code == 123
    with first.start("wait", "-n2") as waiting:
        with pytest.raises(AssertionError):
            waiting.wait(timeout=0.3)
        second.let_go(holder)
        assert waiting.wait() == 0


def test_restart_keeps_the_name(two):
    first, second = two
    holder = first.hold("-n2")
    first.end_daemon(signal.SIGTERM)  # ends both daemons, if there are two
    assert first.berth("run", "--nonblock", "true").code == 123
    assert second.berth("run", "--nonblock", "true").code == 123
    first.let_go(holder)
    assert second.berth("run", "-n2", "true").code == 0


def test_other_inventories_never_meet(pool_of):
    pool = pool_of(1)
    copy = pool.sandbox.directory / "copy.yaml"
    copy.write_text(pool.inventory.read_text())
    holder = pool.hold()
    assert pool.berth("run", "--nonblock", "--inventory", copy, "true").code == 0
    pool.let_go(holder)


@pytest.mark.parametrize("listens", [True, False])
def test_stranger_with_a_name(two, listens):
    """A stranger blocks only the device whose name it has."""
    first, _ = two
    with stranger(first, "nvidia0", listens):
        done = first.berth("run", "--nonblock", "sh", "-c", "echo $BERTH_DEVICES")
        assert (done.code, done.stdout) == (0, "nvidia1\n")
        assert first.berth("run", "-n2", "--nonblock", "true").code == 123
        assert states(first)["nvidia0"] == ELSEWHERE
        waiting = first.start("run", "-n2", "echo", "both")
        until_pending(first, 1)
    assert (waiting.wait(), waiting.text()) == (0, "both\n")


def test_let_go_a_moment_later(two):
    """A pool that releases a name may have children that keep its descriptors until they execute
    their programs."""
    first, _ = two
    with stranger(first, "nvidia0") as taken, first.start("run", "-n2", "--nonblock", "echo", "both") as run:
        taken.settimeout(10)
        taken.accept()[0].close()
        with taken.accept()[0]:
            taken.close()
        assert (run.wait(), run.text()) == (0, "both\n")


def test_let_go_while_nobody_asks(two):
    """The name is released between two attempts. The waiting claim is handled as soon as the name
    is taken, not after the timeout."""
    first, _ = two
    quick = 0
    for _ in range(5):
        with stranger(first, "nvidia0") as taken, first.start("run", "-n2", "--nonblock", "true") as run:
            taken.settimeout(10)
            taken.accept()[0].close()
            look(first)  # the daemon has noticed the close
            taken.close()
            let_go = time.monotonic()
            assert run.wait() == 0
            quick += time.monotonic() - let_go < 0.5
        ask_for(first, "nvidia0")
    assert quick > 2


def test_stranger_that_talks(two):
    """It does not matter what the stranger sends and how often it disconnects."""
    first, _ = two
    with stranger(first, "nvidia0") as taken, first.start("run", "-n2", "echo", "both") as waiting:
        taken.settimeout(10)
        for words in (b"", b"u", b"nonsense" * 1000):
            connection, _ = taken.accept()
            with connection:
                if words:
                    connection.send(words)
            assert first.berth("status").code == 0
        taken.close()
        assert (waiting.wait(), waiting.text()) == (0, "both\n")


LATE = """
import socket, sys, time
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
    listener.bind("\\0" + sys.argv[1])
    listener.listen()
    print("taken", flush=True)
    while True:
        asker, _ = listener.accept()
        time.sleep(0.15)
        asker.close()
"""


def test_stranger_that_answers_late(two):
    """A stranger lets each client wait for its answer: claims for other devices do not wait long for it."""
    first, _ = two
    name = name_of(first, "nvidia0").removeprefix("\0")
    times = []
    with first.sandbox.start([sys.executable, "-c", LATE, name]) as late:
        late.wait_for_line("^taken$")
        assert first.berth("run", "--device", "nvidia1", "true").code == 0
        with wire.connect(str(first.socket)) as client:
            for _ in range(150):
                began = time.monotonic()
                client.release(client.claim({"wanted": ["nvidia1"]})["id"])
                times.append(time.monotonic() - began)
                assert not processes.is_ended(late.pid, 0.01)
        late.kill(signal.SIGKILL)
        late.wait()
        times.sort()
        assert times[len(times) * 9 // 10] < 0.05
        check_longest(times)
        assert first.berth("run", "-n2", "true").code == 0


def test_many_askers(two):
    """The daemon limits the connections of clients that ask for a name repeatedly."""
    first, _ = two
    holder = first.hold("-n2")
    [daemon] = first.daemons()
    until(lambda: history(first), "the lease in the history")
    before = descriptors(daemon)
    for _ in range(200):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
            asker.settimeout(10)
            asker.connect(name_of(first, "nvidia0"))
            assert asker.recv(1) == b"u"
    assert first.berth("status").code == 0
    until(lambda: descriptors(daemon) <= before + 70, "fewer descriptors")
    first.let_go(holder)
    until(lambda: descriptors(daemon) <= before, "the earlier number of descriptors")


def test_crowds_of_three_pools(pool_of):
    """Many commands of three pools run at once on the same devices."""
    pool = pool_of(4)
    pools = [OtherPool(pool, f"run{i}") for i in range(3)]
    chance = random.Random(3)
    many = ManyCommands(pool)
    for _ in range(test_steps(90, 900)):
        kind = chance.choice([(), ("-n2",), ("--time", "1h"), ("-n3",)])
        many.start(*kind, seconds=chance.choice([0, 0.01]), env=chance.choice(pools).env)
    many.wait(timeout=100)
    many.check(pools=3)
