# SPDX-License-Identifier: Apache-2.0
"""A damaged journal: it is kept and reported, frees no device that is in use, and no id is given out again."""
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

    def check(self):
        """Check that held devices are not granted, that the other one is, and that its lease has a new id."""
        with wire.connect(str(self.pool.socket)) as client:
            for device in DEVICES:
                with pytest.raises(wire.Refused):
                    client.claim({"wanted": [device], "nonblock": True})
            assert client.claim({"wanted": ["nvidia3"]})["id"] > max(self.ids)


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
    for start, _, _ in list(journals.records(scene.content))[1:]:
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


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "memory only"])
def test_hardware_in_use_is_not_granted(pool_with, listed):
    """The journal is lost. The driver tells that the devices of the lost leases are in use, by their processes or at
    least by their memory."""
    pool = pool_with([0, 1])
    holder = pool.hold("--device", "nvidia0")
    process = {"pid": holder.process.pid, "uid": os.getuid(), "command": "sh", "memory": 20 << 30}
    facts = {"processes": [process]} if listed else {}
    pool.says([pool.device(0, memory_free=60 << 30, **facts), 1])
    pool.until(lambda slots: "memory_free" in slots["nvidia0"]["device"], "the memory in use")
    pool.end_daemon(signal.SIGKILL)
    (pool.directory / "berth.journal").write_bytes(b"nonsense" * 1000)
    done = pool.berth("run", "--nonblock", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert (done.code, done.stdout) == (0, "nvidia1\n"), done.stderr
    assert pool.berth("run", "--nonblock", "--device", "nvidia0", "true").code == 123
    slots = pool.until_state("nvidia0", "SQUATTED")
    assert "devices that a lost lease uses are not granted" in str(pool.problems)
    assert slots
    pool.let_go(holder)
    pool.says([0, 1])
    assert pool.berth("run", "--wait", "10s", "--device", "nvidia0", "true").code == 0
