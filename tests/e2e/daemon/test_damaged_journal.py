# SPDX-License-Identifier: Apache-2.0
"""A damaged journal: it is kept and reported, frees no device that is in use, and no id is given out again."""
import contextlib
import json
import os
import signal

import journals
import pytest
import wire
from daemons import start_daemon
from steps import test_steps

DEVICES = ["nvidia0", "nvidia1", "nvidia2"]
HELD = 3


class Scene:
    """A pool of four devices with three running commands, whose daemon was killed, and its journal."""

    def __init__(self, pool):
        self.pool = pool
        self.path = pool.directory / "berth.journal"
        self.daemon = start_daemon(pool)
        self.holders = [pool.hold("--device", device) for device in DEVICES]
        self.ids = [int(holder.lease) for holder in self.holders]
        self.stop()
        self.content = journals.used(self.path.read_bytes())

    def start(self, content):
        self.path.write_bytes(content)
        self.daemon = start_daemon(self.pool)

    def stop(self):
        self.daemon.kill(signal.SIGKILL)
        self.daemon.wait()
        self.daemon.close()
        self.pool.sandbox.programs.remove(self.daemon)

    def flipped(self, at, bit=0):
        data = bytearray(self.content)
        data[at] ^= 1 << bit
        return bytes(data)

    def freed(self, client):
        """Return which of the held devices are granted at once."""
        found = []
        for device in DEVICES:
            with contextlib.suppress(wire.Refused):
                client.claim({"wanted": [device], "nonblock": True})
                found.append(device)
        return found

    def check(self):
        """Check that held devices are not granted, that the other one is, and that its lease has a new id."""
        with wire.connect(str(self.pool.socket)) as client:
            assert self.freed(client) == []
            assert client.claim({"wanted": ["nvidia3"]})["id"] > max(self.ids)
            assert self.freed(client) == []


@pytest.fixture
def scene(pool_of):
    made = Scene(pool_of(4))
    yield made
    for holder in made.holders:
        holder.process.stdin.close()
        holder.process.stdin = None
        holder.wait()


def test_whole_journal(scene):
    scene.start(scene.content)
    scene.check()


def test_any_byte(scene):
    """In `make soak` each byte of the journal is flipped, in `make test` one byte of each record's parts."""
    every = len(scene.content) // test_steps(40, len(scene.content)) or 1
    for at in range(0, len(scene.content), every):
        scene.start(scene.flipped(at, at % 8))
        try:
            scene.check()
        finally:
            scene.stop()


def test_it_is_kept_and_reported(scene):
    damaged = scene.flipped(len(scene.content) // 2)
    scene.start(damaged)
    kept = scene.path.with_name("berth.journal.damaged")
    assert journals.used(kept.read_bytes()) == journals.used(damaged)
    problems = json.loads(scene.pool.berth("status", "--json").stdout)["problems"]
    assert [str(kept) in problem["message"] for problem in problems] == [True]


def test_the_end_of_what_ran(scene):
    """The devices are free once the processes that used them have ended."""
    scene.start(scene.flipped(len(scene.content) // 2))
    scene.check()
    with wire.connect(str(scene.pool.socket)) as client:
        for holder in scene.holders:
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait()
            holder.process.stdin.close()
        assert len(client.claim({"wanted": DEVICES, "gpus_min": HELD, "gpus_max": HELD}, timeout=10)["devices"]) == HELD
    scene.holders = []


# ---- Damage that cannot be put right ----


def ruined(data, since):
    """Returns the journal with two wrong bytes in each record that begins at `since` or later."""
    made = bytearray(data)
    for start, end, _ in journals.records(data):
        if start >= since:
            made[start + journals.HEADER.size] ^= 0x55
            made[end - 1] ^= 0xAA
    return bytes(made)


def test_no_id_is_given_out_again(scene):
    """The records of the newest leases are lost, with their ids, or all but the first."""
    records = list(journals.records(scene.content))[1:]
    for start, _, _ in records[:: len(records) // test_steps(4, len(records)) or 1]:
        scene.start(ruined(scene.content, start))
        with wire.connect(str(scene.pool.socket)) as client:
            assert client.claim({"wanted": ["nvidia3"]})["id"] > max(scene.ids)
            assert "leases may be lost" in str(client.look()["problems"])
        scene.stop()
    scene.start(scene.content)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, bytes(range(256)) * 16], ids=["empty", "zeros", "nonsense"])
def test_nothing_can_be_read(scene, content):
    scene.start(content)
    with wire.connect(str(scene.pool.socket)) as client:
        assert client.claim({"wanted": ["nvidia3"]})["id"] > max(scene.ids)
        assert client.look()["problems"]
    assert scene.path.with_name("berth.journal.damaged").read_bytes() == content


def lose(data, record):
    """Return the journal with two wrong bytes in one record."""
    start, end, _ = record
    made = bytearray(data)
    made[start + journals.HEADER.size] ^= 0x55
    made[end - 1] ^= 0xAA
    return bytes(made)


def test_any_lost_record(scene):
    """Whichever record is lost: no device is granted while its command runs, not even after another restart."""
    for record in {record[2]: record for record in journals.records(scene.content)}.values():
        scene.start(lose(scene.content, record))
        scene.stop()
        scene.start(scene.path.read_bytes())
        scene.check()
        scene.stop()
    scene.start(scene.content)


def last_of(content, kind):
    return [record for record in journals.records(content) if record[2] == kind][-1]


def test_lost_lease_in_status(scene):
    """The process is named, and its end frees the device."""
    scene.start(lose(scene.content, last_of(scene.content, journals.KEPT_JOB)))
    scene.check()
    holder = scene.holders.pop()
    problems = json.loads(scene.pool.berth("status", "--json").stdout)["problems"]
    words = f"process {holder.pid} (uid {os.getuid()}) has the mark of lease {holder.lease}"
    assert [words in problem["message"] for problem in problems] == [False, True]
    with wire.connect(str(scene.pool.socket)) as client:
        number = client.send_claim({"wanted": [DEVICES[-1]]})
        client.receive(number, kinds=("WAITING",))
        scene.pool.let_go(holder)
        assert client.receive(number, kinds=("GRANTED",), timeout=5)
    assert len(json.loads(scene.pool.berth("status", "--json").stdout)["problems"]) == 1


def test_undrain_grants_the_device_of_a_lost_lease(scene):
    """An administrator knows better."""
    scene.start(lose(scene.content, last_of(scene.content, journals.KEPT_JOB)))
    scene.check()
    assert scene.pool.berth("undrain", DEVICES[-1]).code == 0
    with wire.connect(str(scene.pool.socket)) as client:
        assert scene.freed(client) == [DEVICES[-1]]


def test_readers_that_do_not_start(scene):
    """Without an answer nothing is granted, and status says why."""
    scene.pool.sandbox.environment["BERTH_READER"] = "/bin/false"
    scene.start(lose(scene.content, last_of(scene.content, journals.KEPT_JOB)))
    with wire.connect(str(scene.pool.socket)) as client:
        with pytest.raises(TimeoutError):
            client.receive(client.send_claim({"wanted": ["nvidia3"]}), kinds=("GRANTED",), timeout=3)
        assert "no device is granted before berth-reader has found" in str(client.look()["problems"])
    assert scene.pool.berth("undrain", "nvidia3").code == 0
    with wire.connect(str(scene.pool.socket)) as client:
        assert client.claim({"wanted": ["nvidia3"]}, timeout=5)


@pytest.mark.parametrize("listed", [True, False, None], ids=["listed", "memory only", "not yet"])
def test_hardware_in_use_is_not_granted(pool_with, listed):
    """The journal is lost. The driver tells that the devices of the lost leases are in use, by their processes or at
    least by their memory, or does not know of it yet."""
    pool = pool_with([0, 1])
    holder = pool.hold("--device", "nvidia0")
    process = {"pid": holder.process.pid, "uid": os.getuid(), "command": "sh", "memory": 20 << 30}
    facts = {"processes": [process]} if listed else {}
    if listed is not None:
        pool.says([pool.device(0, memory_free=60 << 30, **facts), 1])
        pool.until(lambda slots: "memory_free" in slots["nvidia0"]["device"], "the memory in use")
    pool.end_daemon(signal.SIGKILL)
    (pool.directory / "berth.journal").write_bytes(b"nonsense" * 1000)
    assert pool.berth("run", "--nonblock", "true").code == 123
    done = pool.berth("run", "--wait", "10s", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert (done.code, done.stdout) == (0, "nvidia1\n"), done.stderr
    assert pool.berth("run", "--nonblock", "--device", "nvidia0", "true").code == 123
    assert pool.until_state("nvidia0", "DRAINING")
    assert f"process {holder.pid} (uid" in str(pool.problems)
    pool.let_go(holder)
    pool.says([0, 1])
    assert pool.berth("run", "--wait", "10s", "--device", "nvidia0", "true").code == 0


def test_hardware_that_cannot_be_looked_at(pool_with):
    """The probe does not start either: an administrator decides."""
    pool = pool_with([0, 1])
    holder = pool.hold("--device", "nvidia0")
    pool.end_daemon(signal.SIGKILL)
    path = pool.directory / "berth.journal"
    content = journals.used(path.read_bytes())
    path.write_bytes(lose(content, last_of(content, journals.KEPT_JOB)))
    pool.sandbox.environment["BERTH_PROBE"] = "/bin/false"
    assert pool.berth("run", "--wait", "3s", "true").code == 123
    assert "before there is a report of the hardware" in pool.berth("status", "--json").stdout
    assert pool.berth("undrain", "nvidia1").code == 0
    assert pool.berth("run", "--wait", "3s", "--device", "nvidia1", "true").code == 0
    assert pool.berth("run", "--nonblock", "--device", "nvidia0", "true").code == 123
    pool.let_go(holder)
