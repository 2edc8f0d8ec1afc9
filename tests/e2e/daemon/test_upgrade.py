# SPDX-License-Identifier: Apache-2.0
"""A daemon is replaced by another build while there are leases and claims: all of them are kept."""
import os
import shutil
import signal
from pathlib import Path

import journals
import pytest
import wire
from daemons import start_daemon
from many_commands import ManyCommands
from waiting import look, until, until_pending, until_served

LEASES = 50
CLAIMS = 50
EXECED = ()
SUPERVISED = ("--time", "1h")


@pytest.fixture
def newer(sandbox):
    """Another build: copies of these programs in another directory. BERTH_NEWER_BUILD names the
    build directory of another version, to try a real upgrade."""
    place = sandbox.directory / "newer"
    place.mkdir()
    build = os.environ.get("BERTH_NEWER_BUILD") or os.path.dirname(os.environ["BERTH"])
    for name in ("berth", "berthd"):
        shutil.copy2(os.path.join(build, name), place)
    return place


def runs(pid, program):
    """Return whether a daemon runs this program. Only root sees that, because a daemon is not dumpable."""
    return os.getuid() != 0 or os.readlink(f"/proc/{pid}/exe") == str(program)


def picture(pool):
    """Return the leases with their devices and times, and the queue."""
    seen = look(pool)
    leases = [(entry["id"], entry["pid"], tuple(entry["devices"]), entry["granted"]) for entry in seen["leases"]]
    claims = [(entry["id"], entry["pid"], entry["position"], entry["since"]) for entry in seen["claims"]]
    return sorted(leases), claims


def fill(pool, many):
    """Start fifty commands that hold one device each until the gate opens, and fifty that wait in
    order."""
    gate = pool.sandbox.directory / "gate"
    os.mkfifo(gate)
    pool.sandbox.environment["CROWD_GATE"] = str(gate)
    script = f'#!/bin/sh\necho "start $1 $BERTH_LEASE $BERTH_DEVICES" >>"$COMMANDS_LOG"\nread line <{gate}\n'
    script += 'echo "end $1 $BERTH_LEASE $BERTH_DEVICES" >>"$COMMANDS_LOG"\nexit "$3"\n'
    many.script.write_text(script)
    for i in range(LEASES):
        many.start(*(SUPERVISED if i % 2 else EXECED), code=i % 3)
    until(lambda: len(look_leases(pool)) == LEASES, "fifty leases")
    for i in range(CLAIMS):
        many.start(*(SUPERVISED if i % 2 else EXECED), code=i % 3)
        until_pending(pool, i + 1)
    until(lambda: len(many.lines()) == LEASES, "the first line of each command")
    return gate


def look_leases(pool):
    return look(pool)["leases"] if pool.socket.exists() else []


def open_gate(gate):
    """Let all commands through, now and later: keep a writer open, and write more than enough
    lines."""
    writer = os.open(gate, os.O_RDWR)
    os.write(writer, b"\n" * (LEASES + CLAIMS) * 4)
    return writer


NUMBERS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])


def check_queue_order(many, before):
    """Check that the waiting commands were served in order, by the ids that they had before."""
    ids = [entry[0] for entry in before[1]]
    assert ids == sorted(ids)
    leases = {line.name: line.lease for line in many.lines() if line.word == "start"}
    assert [leases[member.name] for member in many.members[LEASES:]] == ids


def finish(pool, many, gate, before):
    """Check that all leases and claims are kept, and let them run to their ends."""
    until_pending(pool, CLAIMS)
    assert picture(pool) == before
    writer = open_gate(gate)
    many.wait()
    os.close(writer)
    many.check()
    check_queue_order(many, before)


@NUMBERS
def test_machine_daemon(pool_of, newer, number):
    """As with a service manager: the old daemon exits, then the new one starts."""
    pool = pool_of(LEASES)
    pool.socket = pool.sandbox.directory / "machine.sock"
    pool.sandbox.environment["BERTH_SOCKET"] = str(pool.socket)
    args = ["--socket", pool.socket, "--inventory", pool.inventory]
    many = ManyCommands(pool)
    first = pool.sandbox.start(["berthd", *args])
    until_served(pool.socket)
    gate = fill(pool, many)
    before = picture(pool)
    assert (len(before[0]), len(before[1])) == (LEASES, CLAIMS)
    first.kill(number)
    first.wait()
    second = pool.sandbox.start([newer / "berthd", *args])
    until_pending(pool, CLAIMS)
    assert runs(second.pid, newer / "berthd")
    finish(pool, many, gate, before)
    second.kill(signal.SIGTERM)
    assert second.wait() == 0


def replace_programs(place):
    """Replace the files of the running programs, as a package manager does."""
    for name in ("berth", "berthd"):
        shutil.copy2(place / name, place / "fresh")
        with open(place / "fresh", "ab") as program:
            program.write(b"newer")
        os.replace(place / "fresh", place / name)


@NUMBERS
def test_own_daemon(pool_of, newer, number):
    """A waiting command starts the new daemon, although the command itself is of the old build."""
    pool = pool_of(LEASES)
    pool.sandbox.environment["PATH"] = f"{newer}:{pool.sandbox.environment['PATH']}"
    many = ManyCommands(pool)
    assert pool.berth("run", "true").code == 0
    gate = fill(pool, many)
    before = picture(pool)
    replace_programs(newer)
    [first] = pool.daemons()
    assert runs(first, f"{newer}/berthd (deleted)")
    pool.end_daemon(number)
    until_pending(pool, CLAIMS)
    [second] = pool.daemons()
    assert runs(second, newer / "berthd")
    finish(pool, many, gate, before)


@pytest.fixture
def older():
    """Another build, in its build directory: that of an older version, which BERTH_OLDER_BUILD names, or this one."""
    return Path(os.environ.get("BERTH_OLDER_BUILD") or os.path.dirname(os.environ["BERTH"]))


@NUMBERS
def test_two_versions_in_turn(pool_of, newer, older, number):
    """An older and a newer daemon in turn: each restores what the other wrote, with what happened meanwhile."""
    pool = pool_of(LEASES)
    pool.socket = pool.sandbox.directory / "machine.sock"
    pool.sandbox.environment["BERTH_SOCKET"] = str(pool.socket)
    args = ["--socket", pool.socket, "--inventory", pool.inventory]
    many = ManyCommands(pool)
    daemon = pool.sandbox.start([older / "berthd", *args])
    until_served(pool.socket)
    gate = fill(pool, many)
    before = picture(pool)
    [drained, *_] = before[0][0][2]
    for place in (newer, older, newer, older, newer):
        daemon.kill(number)
        daemon.wait()
        daemon = pool.sandbox.start([place / "berthd", *args])
        until_pending(pool, CLAIMS)
        assert runs(daemon.pid, place / "berthd")
        assert picture(pool) == before
        assert "journal" not in [problem["backend"] for problem in look(pool).get("problems", [])]
        # The daemon writes records of its own beside those that it has restored.
        assert pool.berth("drain" if place == newer else "undrain", drained).code == 0
    assert pool.berth("undrain", drained).code == 0
    finish(pool, many, gate, before)
    daemon.kill(signal.SIGTERM)
    assert daemon.wait() == 0


# ---- Journals of other versions ----

FIXED_BOOT = b"00000000-0000-4000-8000-000000000000"


def boot_id():
    return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()


def restored_claims(client, count):
    """Return the devices of the leases, and the ids of the claims, of the tokens 2^64 + 1 and so on."""
    leases, claims = {}, []
    for number in range(1, count + 1):
        try:
            answer = client.answer(client.send_claim({}, 2**64 + number, resume=True), ("GRANTED", "WAITING"))
        except wire.Refused as refusal:
            assert refusal.error == wire.ERRORS["NOT_FOUND"]
            continue
        assert answer["id"] == number
        if answer["type"] == "GRANTED":
            leases[number] = [device["id"] for device in answer["devices"]]
        else:
            claims.append(number)
    return leases, claims


def check_stored(pool, content):
    """Check that a daemon has all of the stored journal; tests/data/journals/README.md says what that is."""
    pool.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    (pool.directory / "berth.journal").write_bytes(content)
    daemon = start_daemon(pool)
    with wire.connect(str(pool.socket)) as client:
        assert restored_claims(client, 6) == ({1: ["nvidia0"], 2: ["nvidia1", "nvidia2"]}, [4, 5, 6])
        seen = client.look()
        assert "journal" not in [problem["backend"] for problem in seen.get("problems", [])]
        [first, second] = seen["leases"]
        assert (first["command"], second["name"]) == ("python train.py", "wide")
        [drained] = [slot for slot in seen["slots"] if slot["device"]["id"] == "nvidia3"]
        assert drained["reason"] == "a loose cable"
        client.release(1)
        client.release(2)
        assert client.receive(kinds=("GRANTED",))["id"] == 4
    daemon.kill(signal.SIGKILL)
    daemon.wait()
    daemon.close()
    pool.sandbox.programs.remove(daemon)


@pytest.fixture
def stored(pool_of, source_root):
    """A pool of the stored journals' devices."""
    if os.geteuid() != 0:
        pytest.skip("the stored claims are root's")
    pool = pool_of(4)
    shutil.copy(source_root / "tests/data/journals/inventory.yaml", pool.inventory)
    return pool


def stored_journals(source_root):
    found = sorted((source_root / "tests/data/journals").glob("*.journal"))
    assert found
    ours = [journals.replaced(path.read_bytes(), FIXED_BOOT, boot_id()) for path in found]
    return [journals.with_number(data, journals.KEPT_JOB, journals.KEPT_JOB_PID, os.getpid()) for data in ours]


def test_stored_journals(stored, source_root):
    for content in stored_journals(source_root):
        check_stored(stored, content)


def test_what_a_newer_daemon_may_write(stored, source_root):
    """Records and fields that this daemon does not know are skipped."""
    for content in stored_journals(source_root):
        check_stored(stored, journals.extended(content))


def test_nobody_waits(pool_of, newer):
    """The next command starts the daemon of its own build."""
    pool = pool_of(3)
    holder = pool.hold("-n2")
    pool.end_daemon(signal.SIGTERM)
    assert pool.daemons() == []
    pool.sandbox.environment["PATH"] = f"{newer}:{pool.sandbox.environment['PATH']}"
    assert pool.berth("run", "-n2", "--nonblock", "true").code == 123
    [daemon] = pool.daemons()
    assert runs(daemon, newer / "berthd")
    [lease] = look(pool)["leases"]
    assert (str(lease["id"]), len(lease["devices"])) == (holder.lease, 2)
    pool.let_go(holder)
