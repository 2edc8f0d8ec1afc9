# SPDX-License-Identifier: Apache-2.0
"""The daemon's journal: torn, damaged, from another boot or for other devices, and long."""
import random
import secrets
import signal
from pathlib import Path

import journals
import pytest
import wire
from daemons import start_daemon
from steps import test_steps
from waiting import look, until

DEVICES = 4
SEARCHES = "no device is granted before berth-reader"
NOT_FOUND = wire.ERRORS["NOT_FOUND"]


def journal_of(pool):
    return pool.directory / "berth.journal"


def forget(pool, program):
    """Remove a program that has ended, so that many can follow each other."""
    program.wait()
    program.close()
    pool.sandbox.programs.remove(program)


class Claimed:
    """Claims with known tokens, so that the test can ask a later daemon for each."""

    def __init__(self):
        self.tokens = {}  # by id, in the order of the claims

    def make(self, client, *requests):
        for request in requests:
            token = secrets.randbits(128) | 1 << 64
            answer = client.receive(client.send_claim(request, token), kinds=("GRANTED", "WAITING"))
            self.tokens[answer["id"]] = token

    def ask(self, client):
        """Return a daemon's state: {id: devices} of leases, and the ids of claims in order."""
        leases, claims = {}, []
        for number, token in self.tokens.items():
            try:
                answer = client.answer(client.send_claim({}, token, resume=True), ("GRANTED", "WAITING"))
            except wire.Refused as refusal:
                assert refusal.error == NOT_FOUND
                continue
            assert answer["id"] == number
            if answer["type"] == "GRANTED":
                leases[number] = [device["id"] for device in answer["devices"]]
            else:
                claims.append(number)
        return leases, claims


@pytest.fixture
def scene(pool_of):
    """A pool whose daemon was killed twice: with four leases, of which one is left, then with
    three more leases and three claims. Also the journal that it left, and the claims."""
    pool = pool_of(DEVICES)
    daemon = start_daemon(pool)
    claimed = Claimed()
    with wire.connect(str(pool.socket)) as client:
        claimed.make(client, {}, {"gpus_min": 2, "gpus_max": 2})
        [first, second] = claimed.tokens
        claimed.make(client, {"gpus_min": 3, "gpus_max": 3}, {"time": 3600 * 10**9}, {"name": "late"})
        client.release(second)
        claimed.make(client, {}, {"gpus_min": 4, "gpus_max": 4})
        daemon.kill(signal.SIGKILL)
        forget(pool, daemon)
    return pool, claimed, journals.used(journal_of(pool).read_bytes()), first


def check_restored(pool, claimed, content):
    """Start a daemon on this journal. Check that its state is consistent and that it serves."""
    journal_of(pool).write_bytes(content)
    daemon = start_daemon(pool)
    with wire.connect(str(pool.socket)) as client:
        leases, claims = claimed.ask(client)
        seen = client.look()
        taken = [device for devices in leases.values() for device in devices]
        assert len(taken) == len(set(taken)), "a device has two holders"
        assert {lease["id"] for lease in seen["leases"]} == set(leases)
        assert [claim["id"] for claim in seen["claims"]] == claims == sorted(claims)
        until(lambda: SEARCHES not in str(client.look()["problems"]), "the end of the search for lost leases")
        for lease in leases:
            client.release(lease)
        for _ in claims:  # the waiting claims get their turn
            for lease in claimed.ask(client)[0]:
                client.release(lease)
        grant = client.claim({"all": True, "nonblock": True})
        assert len(grant["devices"]) == DEVICES, "another client has a lease or a claim"
        client.release(grant["id"])
    daemon.kill(signal.SIGKILL)
    forget(pool, daemon)
    return leases, claims


def test_whole_journal(scene):
    pool, claimed, content, first = scene
    [_, second, wide, timed, late, another, all_of_them] = claimed.tokens
    leases, claims = check_restored(pool, claimed, content)
    assert set(leases) | set(claims) == set(claimed.tokens) - {second}
    assert set(leases) == {first, wide} and claims == [timed, late, another, all_of_them]


def test_cut_anywhere(scene):
    """The journal is cut at the end of each record, and within records: all earlier records are
    restored."""
    pool, claimed, content, first = scene
    known = 0
    for start, end, _ in journals.records(content):
        for cut in (start + 1, start + 11, start + 12, (start + end) // 2, end - 1, end):
            for padding in (b"", bytes(4096 - cut % 4096)):
                leases, claims = check_restored(pool, claimed, content[:cut] + padding)
                assert len(leases) + len(claims) >= known - 1  # one was released
                known = max(known, len(leases) + len(claims))
    assert known == len(claimed.tokens) - 1


def test_flipped_bytes(scene):
    """A daemon that starts on a damaged journal has a consistent state, and serves."""
    pool, claimed, content, first = scene
    chance = random.Random(4)
    for _ in range(test_steps(60, 2000)):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 1, 1, 4])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        check_restored(pool, claimed, bytes(damaged))


@pytest.mark.parametrize(
    "content",
    [b"", bytes(65536), b"\xb1", b"nonsense" * 1000, random.Random(5).randbytes(5000)],
    ids=lambda content: f"{len(content)} bytes",
)
def test_no_journal_at_all(scene, content):
    pool, claimed, _, _ = scene
    assert check_restored(pool, claimed, content) == ({}, [])


def test_duplicated_tail(scene):
    """The last records are repeated: the daemon ignores records that do not fit."""
    pool, claimed, content, _ = scene
    spans = list(journals.records(content))
    for start, _, _ in spans[-6:]:
        check_restored(pool, claimed, content + content[start:])


def test_other_boot(scene):
    pool, claimed, content, _ = scene
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    assert check_restored(pool, claimed, journals.replaced(content, boot, boot[::-1])) == ({}, [])
    leases, _ = check_restored(pool, claimed, content)
    assert leases


def test_unreadable_journal(scene):
    """An unreadable journal does not count as an empty one."""
    pool, _, _, _ = scene
    journal_of(pool).unlink()
    journal_of(pool).mkdir()
    done = pool.berth("run", "true")
    assert done.code == 125
    assert str(journal_of(pool)) in done.stderr and done.stderr.count("\n") == 1


# ---- Devices that changed ----


def test_inventory_that_changed_under_leases(pool_of):
    pool = pool_of(2)
    before = pool.inventory.read_text()
    holder = pool.hold()
    pool.end_daemon(signal.SIGKILL)
    pool.inventory.write_text(before.replace("index: 1", "index: 7"))
    done = pool.berth("run", "true")
    assert done.code == 125
    assert done.stderr == (
        f"berth: run: {pool.inventory}: has changed, and leases are held on its former devices; "
        "end these leases first\n"
    )
    pool.inventory.write_text(before)
    assert pool.berth("run", "-n2", "--nonblock", "true").code == 123  # the lease still exists
    pool.end_daemon(signal.SIGKILL)
    pool.let_go(holder)
    pool.inventory.write_text(before.replace("index: 1", "index: 7"))
    done = pool.berth("run", "-n2", "sh", "-c", "echo $BERTH_DEVICES")
    assert (done.code, done.stdout) == (0, "nvidia0,nvidia7\n")


# ---- Growing ----


def test_compaction(pool_of):
    """After thousands of claims, the journal is no longer than after a thousand, and still valid."""
    pool = pool_of(DEVICES)
    start_daemon(pool)
    claimed = Claimed()
    sizes = []
    with wire.connect(str(pool.socket)) as client:
        claimed.make(client, {"name": "kept"}, {"gpus_min": 4, "gpus_max": 4, "name": "waits"})
        for _ in range(120):
            for number in [client.send_claim({"wanted": [f"nvidia{i % 3 + 1}"], "nonblock": True}) for i in range(3)]:
                with pytest.raises(wire.Refused):  # they would delay the waiting claim
                    client.granted(number)
            sizes.append(journal_of(pool).stat().st_size)
        client.cancel(list(claimed.tokens)[1])
        for _ in range(test_steps(200, 600)):
            numbers = [client.send_claim(command="x" * 1000) for _ in range(10)]
            for number in numbers:
                client.release(client.granted(number)["id"], exit_code=0)
            sizes.append(journal_of(pool).stat().st_size)
        daemon_pid = pool.daemons()
        pool.end_daemon(signal.SIGKILL)
    assert max(sizes) < 2 * 1024 * 1024
    assert any(later < sooner for sooner, later in zip(sizes, sizes[1:])), "the journal was never compacted"
    assert max(sizes) > 1024 * 1024
    start_daemon(pool)
    assert pool.daemons() != daemon_pid
    assert [lease["name"] for lease in look(pool)["leases"]] == ["kept"]
