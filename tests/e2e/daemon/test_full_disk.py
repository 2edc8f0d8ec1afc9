# SPDX-License-Identifier: Apache-2.0
"""The journal's disk is full: without a record there is no grant, and no grant is lost."""
import signal

import journals
import pytest
import wire
from programs import TIMEOUT
from small_disk import SmallDisk

IO = wire.ERRORS["IO"]


@pytest.fixture
def full(pool_of):
    """A pool whose daemon's directory is on a small disk."""
    pool = pool_of(4)
    disk = SmallDisk(pool.sandbox, "1m")
    pool.runtime = disk.path / "run"
    pool.sandbox.environment["BERTH_RUNTIME_DIR"] = str(pool.runtime)
    pool.directory = disk.outside / "run" / pool.directory.name
    pool.socket = pool.directory / "berth.sock"
    pool.disk = disk
    pool.berth = lambda *args, **options: pool.sandbox.run([*disk.inside, "berth", *args], **options)
    pool.start = lambda *args, **options: pool.sandbox.start([*disk.inside, "berth", *args], **options)
    yield pool
    pool.end_daemon()
    disk.close()


def connect(pool, **options):
    return wire.connect(str(pool.socket), **options)


def use_up(client, **request):
    """Claim until the journal has no space, not even for the smallest record. Return the daemon's
    messages."""
    words = []
    for command in ("x" * 3000, None):
        while True:
            try:
                message = client.answer(client.send_claim(request, command=command), ("GRANTED", "WAITING"))
            except wire.Refused as refusal:
                assert refusal.error == IO
                words.append(refusal.text)
                break
            client.ask("RELEASE" if message["type"] == "GRANTED" else "CANCEL", "DONE", id=message["id"])
    return words[-1]


def test_no_record_no_grant(full):
    holder = full.hold("-n2")
    full.disk.fill()
    with connect(full) as client:
        kept = client.claim()["id"]
        words = use_up(client)
        assert "No space left on device" in words
        done = full.berth("run", "true")
        assert (done.code, done.stdout) == (125, "")
        assert done.stderr == f"berth: run: {words}\n"
        # Existing leases stay, can be queried and can be released.
        look = client.look()
        assert {str(lease["id"]) for lease in look["leases"]} == {holder.lease, str(kept)}
        client.release(kept)
    assert full.berth("status").code == 0
    assert full.berth("run", "true").code == 125
    (full.disk.outside / "filler").unlink()
    assert full.berth("run", "-n2", "true").code == 0
    assert full.berth("run", "-n3", "--nonblock", "true").code == 123
    full.let_go(holder)
    assert full.berth("run", "-n4", "true").code == 0


def test_killed_with_a_full_disk(full):
    """The next daemon cannot start and says so. The last daemon's journal is unchanged."""
    holder = full.hold("-n2")
    full.disk.fill()
    with connect(full) as client:
        use_up(client)
        full.end_daemon(signal.SIGKILL)
    done = full.berth("run", "true")
    assert done.code == 125
    assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1
    (full.disk.outside / "filler").unlink()
    assert full.berth("run", "-n3", "--nonblock", "true").code == 123
    [lease] = [lease for lease in look_at(full)["leases"] if str(lease["id"]) == holder.lease]
    assert len(lease["devices"]) == 2
    full.let_go(holder)
    assert full.berth("run", "-n4", "true").code == 0


def look_at(pool):
    with connect(pool) as client:
        return client.look()


def test_directory_on_a_full_disk(full):
    """The first command finds no space for any file."""
    full.disk.fill()
    done = full.berth("run", "true")
    assert done.code == 125
    assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1
    (full.disk.outside / "filler").unlink()
    assert full.berth("run", "true").code == 0


def exhaust(client, other, first):
    """Release and claim in turns until the daemon answers no more: the reserved space is used up,
    too. Return the last lease with an answer, and the open question."""
    lease = first
    while True:
        number = client.send("RELEASE", id=lease, exit_code=0)
        # Another client's claim is refused at once. When the second refusal arrives, everything
        # sent before the first has been answered.
        for _ in range(2):
            with pytest.raises(wire.Refused):
                other.claim()
        try:
            client.answer(number, ("DONE",), timeout=0)
            lease = client.receive(kinds=("GRANTED",), timeout=0)["id"]
        except TimeoutError:
            return lease, number


def test_damaged_journal_on_a_full_disk(full):
    """No daemon starts without room for a new journal. The damaged one stays, and what it lost is searched for by the
    first daemon that has room."""
    holder = full.hold("-n2")
    full.end_daemon(signal.SIGKILL)
    path = full.directory / "berth.journal"
    damaged = bytearray(path.read_bytes())
    start, end, _ = [record for record in journals.records(damaged) if record[2] == journals.KEPT_JOB][-1]
    damaged[start + journals.HEADER.size] ^= 0x55
    damaged[end - 1] ^= 0xAA
    path.write_bytes(damaged)
    full.disk.fill()
    for _ in range(2):
        done = full.berth("run", "true")
        assert done.code == 125
        assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1
        assert path.read_bytes() == damaged
    (full.disk.outside / "filler").unlink()
    assert full.berth("run", "-n2", "--wait", "10s", "true").code == 0
    assert full.berth("run", "-n3", "--nonblock", "true").code == 123
    assert path.with_name("berth.journal.damaged").read_bytes() == damaged
    full.let_go(holder)
    assert full.berth("run", "-n4", "--wait", "10s", "true").code == 0


@pytest.mark.parametrize("killed", [False, True])
def test_answers_wait_for_room(full, killed):
    """The end of a lease must be in the journal. The daemon does not answer until it can write it."""
    assert full.berth("run", "true").code == 0
    with connect(full) as client:
        first = client.claim({"all": True})["id"]
        tokens = {}
        for i in range(700):
            token = 2**64 + i
            tokens[client.receive(client.send_claim({"all": True}, token), kinds=("WAITING",))["id"]] = token
        full.disk.fill()
        with connect(full) as other:
            use_up(other)
            lease, number = exhaust(client, other, first)
        assert full.berth("run", "--nonblock", "true", timeout=TIMEOUT).code == 125
        if killed:
            full.end_daemon(signal.SIGKILL)
        (full.disk.outside / "filler").unlink()
        if not killed:
            client.answer(number, ("DONE",))
            assert client.receive(kinds=("GRANTED",))["id"] > lease
            return
    assert full.berth("status").code == 0  # starts another
    with connect(full) as client:
        # Answered leases have ended. The unanswered one may have ended or not.
        held = [claim for claim, token in tokens.items() if claim >= lease and is_granted(client, token)]
        assert held in ([lease], [lease + 1])


def is_granted(client, token):
    try:
        return client.answer(client.send_claim({}, token, resume=True), ("GRANTED", "WAITING"))["type"] == "GRANTED"
    except wire.Refused:
        return False
