# SPDX-License-Identifier: Apache-2.0
"""No space left where the journal is: no record, no grant, and nothing granted is lost."""
import signal

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
    """Claims until the journal takes no more, not even the smallest. Returns what it said."""
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
        # What there is stays, can be looked at and given back.
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
    """The next daemon cannot start, and says so; the journal of the last is as it was."""
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
    """A first command finds no room for anything."""
    full.disk.fill()
    done = full.berth("run", "true")
    assert done.code == 125
    assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1
    (full.disk.outside / "filler").unlink()
    assert full.berth("run", "true").code == 0


def exhaust(client, other, first):
    """Gives back and lets the next have it, until there is no answer any more: the room that is kept
    for that is gone too. Returns the last lease that was answered for, and the question since."""
    lease = first
    while True:
        number = client.send("RELEASE", id=lease, exit_code=0)
        # Another's claim is refused at once; by the second, what was said before the first has been answered.
        for _ in range(2):
            with pytest.raises(wire.Refused):
                other.claim()
        try:
            client.answer(number, ("DONE",), timeout=0)
            lease = client.receive(kinds=("GRANTED",), timeout=0)["id"]
        except TimeoutError:
            return lease, number


@pytest.mark.parametrize("killed", [False, True])
def test_answers_wait_for_room(full, killed):
    """Ends are written down at all costs: what cannot be written is not told, until it can."""
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
        # What was answered for is over. What was not may be, or not.
        held = [claim for claim, token in tokens.items() if claim >= lease and is_granted(client, token)]
        assert held in ([lease], [lease + 1])


def is_granted(client, token):
    try:
        return client.answer(client.send_claim({}, token, resume=True), ("GRANTED", "WAITING"))["type"] == "GRANTED"
    except wire.Refused:
        return False
