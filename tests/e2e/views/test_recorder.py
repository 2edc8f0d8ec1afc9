# SPDX-License-Identifier: Apache-2.0
"""The recorder: it is killed at any moment, and its disk is full, read-only or hangs. Leasing
continues as before."""
import json
import os
import random
import signal
import statistics
import time
from datetime import datetime
from pathlib import Path

import daemon_log
import processes
import pytest
import wire
from daemons import start_daemon
from lease_history import check_sound, configure, file_of, history, problems, recorders, rows, the_recorder, until_past
from small_disk import SmallDisk
from steps import test_steps
from waiting import until

LEASES = 10000
SEED = 20261116
# Up to this many seconds of records before a kill may be missing.
LAST_SECOND = 1.0
NEVER = float("inf")
# The pause between two leases of the client, which leaves time for many kills.
PACE = 0.0005
PATIENCE = 0.4
ROUNDS = 200


@pytest.fixture(autouse=True)
def all_alone(sandbox):
    """Each short lease gets a record of its own."""
    sandbox.environment["BERTH_RECORDER_ALONE"] = "1000000"


def log_of(pool):
    return pool.directory / "log"


def the_real_one():
    return Path(os.environ["BERTH"]).parent / "berth-recorder"


def write_recorder(pool, script):
    """Write a program that runs in place of the recorder."""
    program = pool.sandbox.directory / "berth-recorder"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def end_all(pool):
    """End the daemon. The recorder ends by itself."""
    pool.end_daemon()
    until(lambda: not recorders(pool), "the recorder's end")


def lease_and_release(pool, count):
    with wire.connect(str(pool.socket)) as client:
        for _ in range(count):
            client.release(client.claim()["id"])


def reload(pool, rules):
    """Apply another configuration."""
    (daemon,) = pool.daemons()
    configure(pool, rules)
    before = len([entry for entry in daemon_log.entries(log_of(pool)) if entry.word == "reloaded"])
    os.kill(daemon, signal.SIGHUP)
    daemon_log.wait_for(log_of(pool), "reloaded", before + 1)


def seen(pool):
    """Return the time in the file at which the held leases were last known."""
    return rows(file_of(pool), "SELECT seen FROM pool")


# ---- Killed ----


class Diary:
    """The client's record of its leases: when the daemon confirmed the release of each."""

    def __init__(self, pool, chance):
        self.pool = pool
        self.chance = chance
        self.released = {}
        self.told = set()
        self.daemon = None
        self.client = None
        self.kills = []
        self.next_kill = 0

    def start(self):
        self.daemon = start_daemon(self.pool)
        self.client = wire.connect(str(self.pool.socket))
        self.plan_kill()

    def plan_kill(self):
        self.next_kill = time.monotonic() + self.chance.uniform(0.1, 1.8)

    def kill(self):
        """Kill the daemon, the recorder or both. Return whether the daemon was killed."""
        victims = self.chance.choice(["recorder", "daemon", "both", "both", "reversed"])
        if victims in ("recorder", "both"):
            self.kill_recorder()
        if victims != "recorder":
            self.kills.append(time.monotonic())
            os.kill(self.daemon.pid, signal.SIGKILL)
            self.daemon.wait()
        if victims == "reversed":
            self.kill_recorder()
        return victims != "recorder"

    def kill_recorder(self):
        for pid in recorders(self.pool):
            os.kill(pid, signal.SIGKILL)
            processes.wait_for_end(pid)

    def lease(self):
        lease = self.client.claim({"name": f"lease {len(self.told)}"})["id"]
        self.told.add(lease)
        self.client.release(lease, exit_code=len(self.told) % 256)
        self.released[lease] = (time.monotonic(), len(self.told) % 256)
        time.sleep(PACE)

    def step(self):
        if time.monotonic() < self.next_kill:
            self.lease()
        elif self.kill():
            self.client.close()
            self.start()
        else:
            self.plan_kill()

    def kill_after(self, lease):
        """Return the time at which the daemon that confirmed this release was killed."""
        return min((kill for kill in self.kills if kill >= self.released[lease][0]), default=NEVER)

    def before_kill(self, lease):
        return self.kill_after(lease) - self.released[lease][0]

    def late_writes(self, lost):
        """Return the times of kills that lost more than the last second of records."""
        return sorted({self.kill_after(lease) for lease in lost if self.before_kill(lease) > LAST_SECOND})


def test_killed_at_any_moment(pool_of):
    """Ten thousand leases, and SIGKILL for the daemon, the recorder or both. The file stays valid
    and has no lease twice. At most the last second before a kill is missing, except for one or
    a few kills in twenty that meet a stalled machine."""
    pool = pool_of(64)
    diary = Diary(pool, random.Random(SEED))
    diary.start()
    wanted = test_steps(LEASES, 10 * LEASES)
    while len(diary.released) < wanted:
        diary.step()
    assert len(diary.kills) > 3
    file = file_of(pool)
    ages = {lease: diary.before_kill(lease) for lease in diary.released}
    assert sum(age > LAST_SECOND for age in ages.values()) > wanted / 10

    def missing():
        known = {row["id"] for row in rows(file, "SELECT id FROM lease WHERE end = 'released'")}
        return ages.keys() - known

    def in_the_air():
        """Return the leases of the last daemon, which was not killed, that are not in the file yet."""
        return sorted(lease for lease in missing() if ages[lease] == NEVER)

    until(lambda: not in_the_air(), lambda: f"{len(in_the_air())} records: {in_the_air()[:20]}; kills {diary.kills}")
    diary.client.close()
    end_all(pool)
    check_sound(file)
    found = {row["id"]: row for row in rows(file)}
    assert len(rows(file, "SELECT * FROM pool")) == 1
    lost = missing()
    for lease in ages.keys() - lost:
        assert found[lease]["exit_code"] == diary.released[lease][1]
    # Only leases in progress at a kill can be in the file without an answer to the client.
    assert len(found.keys() - diary.told) <= len(diary.kills)
    print(
        f"{wanted} leases, {len(diary.kills)} kills of the daemon, {len(lost)} leases not in the file, the oldest given"
        f" back {max((ages[lease] for lease in lost), default=0):.3f} s before a kill"
    )
    assert len(diary.late_writes(lost)) <= max(1, len(diary.kills) / 20)


def test_killed_recorder_misses_nothing(pool_of):
    pool = pool_of(4)
    assert pool.berth("run", "--name", "before", "true").code == 0
    first = the_recorder(pool)
    until_past(pool, 1)
    os.kill(first, signal.SIGKILL)
    lease_and_release(pool, 50)
    until(lambda: recorders(pool) not in ([], [first]), "another recorder")
    assert len(until_past(pool, 51)) == 51
    assert problems(pool) == []
    end_all(pool)
    check_sound(file_of(pool))


def test_every_daemon_counts_anew(pool):
    """The position up to which a recorder has read one daemon's leases does not apply to the next
    daemon, not even before the next daemon has sent any lease."""
    daemon = start_daemon(pool)
    lease_and_release(pool, 50)
    until_past(pool, 50)
    daemon.kill()
    daemon.wait()
    until(lambda: not recorders(pool), "the recorder's end")
    gate = pool.sandbox.directory / "gate"
    os.mkfifo(gate)
    program = write_recorder(pool, f'read line <{gate}\nexec {the_real_one()} "$@"')
    daemon = start_daemon(pool, env={"BERTH_RECORDER": program})
    lease_and_release(pool, 1)
    with open(gate, "w") as opened:
        os.kill(daemon.pid, signal.SIGSTOP)
        before = seen(pool)
        opened.write("go\n")
    until(lambda: seen(pool) != before, "a write of the recorder before the daemon sends anything")
    os.kill(daemon.pid, signal.SIGCONT)
    until_past(pool, 51)
    lease_and_release(pool, 20)
    assert len(until_past(pool, 71)) == 71


def test_recorder_that_cannot_be_started(pool):
    env = {"BERTH_RECORDER": "/nowhere/berth-recorder"}
    assert pool.berth("run", "--name", "unseen", "true", env=env).code == 0
    (words,) = until(lambda: problems(pool), "a problem")
    assert words == (
        "berth-recorder: cannot be started: No such file or directory; leases are not recorded"
    )
    text = pool.berth("status").stdout
    assert "history" in text and "berth-recorder: cannot be started" in text
    assert pool.berth("run", "true").code == 0
    # The daemon retries, each time after a longer pause.
    tries = daemon_log.wait_for(log_of(pool), "recorder", 4, what="started")
    times = [datetime.fromisoformat(entry.time.replace("Z", "+00:00")).timestamp() for entry in tries]
    pauses = [after - before for before, after in zip(times, times[1:])]
    # The log's times are truncated to milliseconds.
    assert all(pause > wanted - 0.002 for pause, wanted in zip(pauses, (0.1, 0.2, 0.4))), pauses


def test_recorder_that_dies_at_once(pool):
    program = write_recorder(pool, "echo problem of mine\nexit 3")
    assert pool.berth("run", "true", env={"BERTH_RECORDER": program}).code == 0
    until(lambda: any("exit code 3: of mine" in words for words in problems(pool)), "a problem")
    # The program is repaired.
    program.unlink()
    program.symlink_to(the_real_one())
    until_past(pool, 1)
    until(lambda: problems(pool) == [], "no problem")


# ---- Disks ----


def median_of_leases(pool):
    """Return the median time to claim and release a device, in seconds."""
    times = []
    with wire.connect(str(pool.socket)) as client:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            client.release(client.claim()["id"])
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def check_quick(pool, usual):
    """Check that leasing does not wait for the recorder. If it did, it would wait at least for the
    daemon's patience."""
    assert median_of_leases(pool) < 3 * usual + PATIENCE / 10


def test_hanging_disk(pool):
    """A stopped recorder behaves as one with a hanging disk: leasing stays fast, and status
    reports the problem."""
    env = {"BERTH_RECORDER_TIMEOUT": f"{PATIENCE}s"}
    assert pool.berth("run", "true", env=env).code == 0
    recorder = the_recorder(pool)
    until_past(pool, 1)
    usual = median_of_leases(pool)
    os.kill(recorder, signal.SIGSTOP)
    check_quick(pool, usual)
    (words,) = until(lambda: problems(pool), "a problem")
    assert words.startswith(f"berth-recorder: no progress within {int(PATIENCE * 1000)}ms")
    assert str(file_of(pool)) in words
    check_quick(pool, usual)
    daemon_log.wait_for(log_of(pool), "problem", backend="history")
    os.kill(recorder, signal.SIGCONT)
    until(lambda: problems(pool) == [], "no problem")
    assert recorders(pool) == [recorder]
    assert len(until_past(pool, 1 + 3 * ROUNDS)) == 1 + 3 * ROUNDS


def test_daemon_ends_beside_a_hanging_recorder(pool):
    assert pool.berth("run", "--name", "kept", "true").code == 0
    recorder = the_recorder(pool)
    until_past(pool, 1)
    os.kill(recorder, signal.SIGSTOP)
    assert pool.berth("run", "--name", "late", "true").code == 0
    began = time.monotonic()
    pool.end_daemon()
    assert time.monotonic() - began < 5
    # The next daemon's recorder waits for its turn, and no client waits for it.
    assert pool.berth("run", "--name", "next", "true").code == 0
    assert any("another recorder writes to it" in words for words in until(lambda: problems(pool), "a problem"))
    os.kill(recorder, signal.SIGCONT)
    until(lambda: problems(pool) == [], "no problem", timeout=20)
    names = {lease["name"] for lease in until_past(pool, 2)}
    assert {"kept", "next"} <= names


@pytest.fixture
def on_disk(pool_of):
    """A pool whose history is on a separate small disk."""
    pool = pool_of(4)
    disk = SmallDisk(pool.sandbox, "1m")
    configure(pool, f"history: {disk.path}/deep/history.db\n")
    pool.disk = disk
    pool.berth = lambda *args, **options: pool.sandbox.run([*disk.inside, "berth", *args], **options)
    pool.mount = lambda options: pool.sandbox.run([*disk.inside, "mount", "-t", "tmpfs", "-o", f"remount,{options}", "none", disk.path])
    yield pool
    pool.end_daemon()
    until(lambda: not recorders(pool), "the recorder's end")
    disk.close()


def test_full_disk(on_disk):
    pool = on_disk
    assert pool.berth("run", "--name", "before", "true").code == 0
    until_past(pool, 1)
    usual = median_of_leases(pool)
    pool.disk.fill()
    until(lambda: median_of_leases(pool) and problems(pool), "a full disk", timeout=30)
    assert problems(pool) == [f"cannot use {pool.disk.path}/deep/history.db: no space left on the disk"]
    check_quick(pool, usual)
    text = pool.berth("status").stdout
    assert "no space left on the disk" in text
    # Recorded leases can still be read.
    assert history(pool)[-1]["name"] == "before"
    (pool.disk.outside / "filler").unlink()
    assert pool.mount("size=16m").code == 0
    until(lambda: problems(pool) == [], "no problem", timeout=30)
    with wire.connect(str(pool.socket)) as client:
        told = client.claim()["id"]
        client.release(told)
    # No lease was dropped meanwhile.
    until(lambda: sum(lease["end"] is not None for lease in history(pool)) == told, "all leases")


def test_read_only_directory(on_disk):
    pool = on_disk
    assert pool.mount("ro").code == 0
    assert pool.berth("run", "--name", "unwritten", "true").code == 0
    (words,) = until(lambda: problems(pool), "a problem")
    assert words == f"cannot create {pool.disk.path}/deep: Read-only file system"
    usual = median_of_leases(pool)
    assert pool.mount("rw").code == 0
    until(lambda: problems(pool) == [], "no problem", timeout=20)
    leases = until_past(pool, ROUNDS + 1)
    assert leases[-1]["name"] == "unwritten"
    # Leasing takes no longer while the recorder works than while it did not.
    check_quick(pool, usual)


def test_something_else_in_its_place(pool):
    file = pool.sandbox.directory / "history.db"
    configure(pool, f"history: {file}\n")
    os.mkfifo(file)
    assert pool.berth("run", "--name", "first", "true").code == 0
    (words,) = until(lambda: problems(pool), "a problem")
    assert words == f"{file}: expected a file, got something else"
    file.unlink()
    file.write_bytes(b"Not a database at all, but long enough to be taken for one by its length.\n" * 20)
    until(lambda: problems(pool) == [f"{file}: expected a history, got something else"], "another problem", timeout=20)
    file.unlink()
    until(lambda: problems(pool) == [], "no problem", timeout=20)
    assert until_past(pool, 1)[0]["name"] == "first"


def test_file_that_is_removed(pool):
    assert pool.berth("run", "true").code == 0
    until_past(pool, 1)
    holder = pool.hold("--name", "held")
    until(lambda: len(history(pool)) == 2, "the lease")
    for path in pool.directory.glob("berth.history*"):
        path.unlink()
    assert pool.berth("run", "--name", "after", "true").code == 0
    until(lambda: [lease["name"] for lease in history(pool)] == ["after", "held"], "a new file")
    pool.let_go(holder)


# ---- Rules ----


def test_old_leases_are_forgotten(pool):
    assert pool.berth("run", "--name", "old", "true").code == 0
    holder = pool.hold("--name", "held")
    until_past(pool, 1)
    reload(pool, "history_keep: 1s\n")
    until(lambda: [lease["name"] for lease in history(pool)] == ["held"], "the removal of the old lease")
    pool.let_go(holder)


def test_command_of_a_held_lease_is_cut(pool):
    """A lease gets its record while it is held."""
    holder = pool.start("run", "--", "sh", "-c", "echo holding $BERTH_LEASE; exec cat", "x" * 5000)
    holder.wait_for_line("^holding ")
    [lease] = until(lambda: history(pool), "the record of the lease")
    assert lease["ended_at"] is None and len(lease["command"]) == 256
    pool.let_go(holder)
    [lease] = until_past(pool, 1)
    assert len(lease["command"]) == 256


def test_rules_change(pool):
    assert pool.berth("run", "--name", "one", "true").code == 0
    until_past(pool, 1)
    (daemon,) = pool.daemons()
    other = pool.sandbox.directory / "other.db"
    reload(pool, f"history: {other}\n")
    assert pool.berth("run", "--name", "two", "true").code == 0
    until(lambda: "two" in {lease["name"] for lease in history(pool)}, "the lease")
    assert other.exists()
    reload(pool, "history: no\n")
    until(lambda: not recorders(pool), "the recorder's end")
    assert pool.berth("run", "--name", "three", "true").code == 0
    assert pool.berth("history").code == 125
    reload(pool, "history: yes\n")
    assert pool.berth("run", "--name", "four", "true").code == 0
    until(lambda: history(pool)[0]["name"] == "four", "the lease")
    assert history(pool)[-1]["name"] == "one"
    assert pool.daemons() == [daemon]


# ---- Other users ----


def test_others_read_the_machines(shared_machine_of):
    """All users of a machine may read its history, even while no recorder writes it."""
    shared_machine = shared_machine_of(2)
    shared_machine.open()
    alice, bob = 61001, 61002
    assert shared_machine.berth(alice, "run", "--name", "hers", "true").code == 0
    assert shared_machine.berth(bob, "run", "--name", "his", "true").code == 0

    def seen(uid):
        done = shared_machine.berth(uid, "history", "--json")
        assert done.code == 0, done
        return {lease["name"]: lease["uid"] for lease in json.loads(done.stdout)["leases"]}

    until(lambda: seen(alice) == {"hers": alice, "his": bob}, "both leases")
    assert seen(bob) == seen(alice)
    file = shared_machine.socket.with_suffix(".history")
    assert file.stat().st_mode & 0o777 == 0o644
    shared_machine.close()
    processes.await_probes()
    done = shared_machine.berth(alice, "history", "--file", file)
    assert done.code == 0 and "hers" in done.stdout


def test_nobody_else_starts_it(sandbox):
    program = the_real_one()
    for words in ([], ["/x", "pool", "1s", "all"], ["--help"]):
        done = sandbox.run([program, *words])
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr == "berth-recorder: only berthd can start this program\n"
