# SPDX-License-Identifier: Apache-2.0
"""The event stream, as clients of the protocol see it: each change once, and never a backlog."""
import signal
import time

import pytest
import wire
from hardware_pool import HardwarePool
from waiting import until

ALL = sum(wire.NEWS.values())
LEASE, QUEUE, LOAD = (wire.NEWS[kind] for kind in ("LEASE", "QUEUE", "LOAD"))
SECOND = 10**9


class Reader:
    """A connection that subscribes to news and continues at its last position."""

    def __init__(self, path, kinds=ALL, duration=0):
        self.client = wire.connect(path)
        self.kinds = kinds
        self.duration = duration
        self.known = {}

    def ask(self):
        return self.client.send("FOLLOW", kinds=self.kinds, duration=self.duration, **self.known)

    def next(self, timeout=None):
        """Send a FOLLOW and return the news that answer it."""
        return self.take(self.client.answer(self.ask(), ("NEWS",), timeout))

    def take(self, news):
        self.known = {"epoch": news["epoch"], "after": news.get("after", 0), "id": news.get("id", 0)}
        return news

    def is_quiet(self):
        """Send a FOLLOW and return whether nothing is new."""
        return self.has_no_answer(self.ask())

    def has_no_answer(self, number):
        """Return whether a FOLLOW has no answer although the daemon has read it. The daemon sends
        news at the end of a turn of its loop. Thus the news of the turn that read the first HELLO
        arrive before the answer to the second HELLO."""
        self.client.hello()
        self.client.hello()
        try:
            self.take(self.client.answer(number, ("NEWS",), 0))
        except TimeoutError:
            return True
        return False

    def settle(self):
        """Read until nothing is new."""
        while not self.is_quiet():
            pass


@pytest.fixture
def reader_of(pool):
    readers = []

    def open_reader(*args, **values):
        pool.berth("status")
        readers.append(Reader(pool.socket, *args, **values))
        return readers[-1]

    yield open_reader
    for reader in readers:
        reader.client.close()


@pytest.fixture
def client(pool):
    pool.berth("status")
    with wire.connect(pool.socket) as connected:
        yield connected


def test_everything_is_new_to_who_knows_nothing(reader_of):
    reader = reader_of()
    news = reader.next()
    assert news["kinds"] == ALL and news["capacity"] == 8 and not news.get("ended")
    assert reader.is_quiet()


def test_a_claim_and_its_lease_are_news(reader_of, client):
    reader = reader_of()
    reader.next()
    lease = client.claim({"name": "train"}, command="python train.py")["id"]
    assert reader.next()["kinds"] & LEASE
    client.release(lease, 7)
    news = reader.next()
    assert news["kinds"] & LEASE
    [ended] = news["ended"]
    assert ended["end"] == wire.ENDS["RELEASED"] and ended["exit_code"] == 7
    told = ended["lease"]
    assert (told["id"], told["name"], told["command"], told["devices"]) == (lease, "train", "python train.py", ["nvidia0"])
    assert told["since"] <= told["granted"] <= ended["time"]


def test_only_what_is_wanted(reader_of, client):
    queue, loads = reader_of(QUEUE), reader_of(LOAD)
    queue.next()
    loads.next()
    client.claim({"gpus_min": 8, "gpus_max": 8})
    number = client.send_claim()
    client.receive(number, ("WAITING",))
    assert queue.next()["kinds"] == QUEUE
    assert loads.is_quiet()


def test_a_slow_reader_gets_the_newest_state(reader_of, client):
    """All changes between two FOLLOWs come in one answer, for up to 3 s if they are recorded."""
    reader = reader_of()
    reader.next()
    began = time.monotonic()
    for _ in range(300):
        client.release(client.claim()["id"])
    news = reader.next()
    assert len(news["ended"]) + news.get("lost", 0) == 300 and news["tally"]["granted"] == 300
    assert not news.get("lost") or time.monotonic() - began > 3
    assert reader.is_quiet()


def end_long_leases(client, count):
    """End leases with the longest texts that are kept of one: about 775 bytes each."""
    request = {"name": "x" * 255, "gpus_min": 8, "gpus_max": 8}
    for _ in range(count):
        client.release(client.claim(request, command="y" * 4000)["id"])


def test_what_ended_comes_in_parts(reader_of, client):
    """A message has about 64 KiB of ended leases."""
    reader = reader_of()
    reader.next()
    end_long_leases(client, 200)
    ids, parts, more = [], 0, True
    while more:
        news = reader.next()
        ids += [ended["lease"]["id"] for ended in news["ended"]]
        more = news.get("more", False)
        parts += 1
    assert parts > 1 and len(ids) == len(set(ids)) == 200 and ids == sorted(ids)


def test_what_is_not_kept_is_counted(reader_of, client):
    """Ended leases are kept within limits: of bytes, 4 MiB as here, and of time, which is 3 s for
    recorded leases."""
    reader = reader_of()
    reader.next()
    began = time.monotonic()
    end_long_leases(client, 6000)
    told, lost, more = 0, 0, True
    while more:
        news = reader.next()
        told += len(news.get("ended", []))
        lost += news.get("lost", 0)
        more = news.get("more", False)
    assert told + lost == 6000 and lost > 500
    assert told > 5000 or time.monotonic() - began > 3


def test_the_interval_is_kept(reader_of, client):
    """Of many changes within the interval, all but the first come together at its end."""
    reader = reader_of(duration=SECOND)
    began = time.monotonic()
    reader.next()
    number = reader.ask()
    client.claim()
    client.claim()
    are_within = time.monotonic() - began < 1
    news = reader.take(reader.client.answer(number, ("NEWS",)))
    assert time.monotonic() - began >= 1
    assert news["kinds"] & LEASE
    assert news["tally"]["granted"] == 2 or not are_within
    assert reader.is_quiet()


def test_another_question_takes_the_place_of_the_first(reader_of, client):
    reader = reader_of()
    reader.next()
    first, second = reader.ask(), reader.ask()
    reader.client.hello()  # both have been read
    client.claim()
    reader.client.answer(second, ("NEWS",))
    assert reader.has_no_answer(first)


@pytest.mark.parametrize("kinds", [0, 1 << 20])
def test_nothing_is_wanted(client, kinds):
    with pytest.raises(wire.Refused) as refused:
        client.ask("FOLLOW", "NEWS", kinds=kinds)
    assert refused.value.error == wire.ERRORS["INVALID"]


def test_another_daemon_is_new(pool, reader_of):
    reader = reader_of()
    first = reader.next()
    pool.end_daemon(signal.SIGKILL)
    pool.berth("status")
    again = reader_of()
    again.known = reader.known
    news = again.next()
    assert news["epoch"] != first["epoch"] and news["kinds"] == ALL


def test_a_lease_is_told_of_by_the_next_daemon(pool, reader_of):
    """The lease was granted under one daemon and ended under another."""
    holder = pool.hold("--name", "long")
    pool.end_daemon(signal.SIGKILL)
    reader = reader_of()
    reader.next()
    pool.let_go(holder)
    while not (news := reader.next()).get("ended"):
        pass
    assert [ended["lease"]["name"] for ended in news["ended"]] == ["long"]


def test_counting(reader_of, client):
    reader = reader_of()
    lease = client.claim({"gpus_min": 8, "gpus_max": 8})["id"]
    waiting = client.send_claim()
    client.receive(waiting, ("WAITING",))
    for request in ({"nonblock": True}, {"gpus_min": 9, "gpus_max": 9}, {"policy": "none"}, {"wait": 1}):
        with pytest.raises(wire.Refused):
            client.claim(request)
    number = client.send_claim()
    client.cancel(client.receive(number, ("WAITING",))["id"])
    client.release(lease)
    client.release(client.granted(waiting)["id"])
    tally = reader.next()["tally"]
    assert {name: tally[name] for name in ("granted", "impossible", "refused", "busy", "timed_out", "cancelled")} == {
        "granted": 2,
        "impossible": 1,
        "refused": 1,
        "busy": 1,
        "timed_out": 1,
        "cancelled": 1,
    }
    for name in ("waited", "held"):
        assert sum(value for key, value in tally[name].items() if key != "sum") == 2


def test_sections_that_are_looked_at(client):
    client.claim()
    page = client.ask("LOOK", "PAGE", section=1, sections=1 << wire.SECTIONS["LEASES"])
    assert len(page["leases"]) == 1 and "slots" not in page and page.get("section", 0) == 0
    page = client.ask("LOOK", "PAGE", section=1, sections=1 << wire.SECTIONS["DEVICES"])
    assert len(page["slots"]) == 8 and "leases" not in page


def test_an_extended_lease_is_news(pool, reader_of, client):
    lease = client.claim({"time": 3600 * SECOND})["id"]
    reader = reader_of()
    reader.settle()
    client.extend(lease, 3600 * SECOND)
    assert reader.next()["kinds"] & LEASE


@pytest.fixture
def hardware(sandbox):
    hardware = HardwarePool(sandbox, [0, 1])
    yield hardware
    hardware.close()


def test_samples_are_news_and_tell_how_much_a_lease_is_used(hardware):
    """A client that subscribes to loads makes the daemon probe the hardware every second, even if no
    other client needs loads."""
    hardware.berth("status")
    loads = Reader(hardware.socket, LOAD, SECOND)
    loads.next()
    before = hardware.requests()
    with wire.connect(hardware.socket) as client:
        reader = Reader(hardware.socket, LEASE | LOAD, SECOND)
        reader.next()
        lease = client.claim()["id"]

        def judged():
            reader.next()
            leases = client.ask("LOOK", "PAGE", section=1, sections=1 << wire.SECTIONS["LEASES"])["leases"]
            return leases[0].get("idle_time", 0) > 0

        until(judged, "idle time")
        hardware.says([hardware.device(0, utilization=500), 1])

        def used():
            reader.next()
            leases = client.ask("LOOK", "PAGE", section=1, sections=1 << wire.SECTIONS["LEASES"])["leases"]
            return leases[0].get("judged_time", 0) > leases[0]["idle_time"]

        until(used, "time in use")
        assert loads.next()["kinds"] == LOAD
        assert hardware.requests() >= before + 2
        client.release(lease)
        while not (news := reader.next()).get("ended"):
            pass
        told = news["ended"][0]["lease"]
        assert 0 < told["idle_time"] < told["judged_time"]
        reader.client.close()
        loads.client.close()


def test_many_that_follow(pool_of):
    """The daemon notifies every subscriber."""
    pool = pool_of(1)
    pool.berth("status")
    readers = [Reader(pool.socket) for _ in range(100)]
    for reader in readers:
        reader.next()
        reader.ask()
    with wire.connect(pool.socket) as client:
        client.claim()
    for reader in readers:
        assert reader.client.receive(kinds=("NEWS",))["kinds"] & LEASE
        reader.client.close()
