# SPDX-License-Identifier: Apache-2.0
"""The recorder sleeps while it cannot write. The tests count how often it wakes up."""
from contextlib import contextmanager

import processes
import pytest
from lease_history import configure, problems, recorders, the_recorder, until_past
from small_disk import SmallDisk
from waiting import until

SECONDS = 2.0
# A recorder that polls wakes up about 1000 times a second. One that retries with growing pauses wakes up a few times,
# each with a few waits for the disk and its locks.
WAKE_UPS = 60


def count_wake_ups(pool):
    """Return the recorder's wake-ups within a few seconds in which a lease is held and one has ended."""
    return processes.count_wake_ups(the_recorder(pool), SECONDS)


@contextmanager
def held(pool):
    holder = pool.hold("--name", "held")
    try:
        yield
    finally:
        pool.let_go(holder)


@pytest.fixture
def disk_of(pool_of):
    """A pool of four devices whose history is on a separate small disk."""
    pool = pool_of(4)
    disk = SmallDisk(pool.sandbox, "1m")
    configure(pool, f"history: {disk.path}/deep/history.db\n")
    pool.berth = lambda *args, **options: pool.sandbox.run([*disk.inside, "berth", *args], **options)
    pool.disk = disk
    yield pool
    pool.end_daemon()
    until(lambda: not recorders(pool), "the recorder's end")
    disk.close()


def test_missing_directory(pool):
    link = pool.sandbox.directory / "link"
    link.symlink_to("/proc/nowhere")
    configure(pool, f"history: {link}/history.db\n")
    with held(pool):
        assert pool.berth("run", "true").code == 0
        until(lambda: problems(pool), "a problem")
        assert count_wake_ups(pool) <= WAKE_UPS


def test_read_only_directory(disk_of):
    pool = disk_of
    remount = ["mount", "-t", "tmpfs", "-o", "remount,ro", "none", pool.disk.path]
    assert pool.sandbox.run([*pool.disk.inside, *remount]).code == 0
    assert pool.berth("run", "true").code == 0
    with held(pool):
        (words,) = until(lambda: problems(pool), "a problem")
        assert "Read-only" in words
        assert count_wake_ups(pool) <= WAKE_UPS


def test_full_disk(disk_of):
    pool = disk_of
    assert pool.berth("run", "true").code == 0
    until_past(pool, 1)
    pool.disk.fill()

    def is_full():
        assert pool.berth("run", "true").code == 0
        return problems(pool)

    with held(pool):
        until(is_full, "a full disk", timeout=30)
        assert count_wake_ups(pool) <= WAKE_UPS


def test_nothing_wrong(pool):
    with held(pool):
        assert pool.berth("run", "true").code == 0
        until_past(pool, 1)
        assert count_wake_ups(pool) <= WAKE_UPS
