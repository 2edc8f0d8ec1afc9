# SPDX-License-Identifier: Apache-2.0
"""berth status and berth plan with a real daemon and holders of its devices."""
import json
import signal
import time
import unicodedata

from programs import TIMEOUT
from tmux_screen import Screen
from users import user_name
from waiting import until


USER = user_name()


def wcswidth(text):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def status(pool, *args):
    done = pool.berth("status", *args)
    assert (done.code, done.stderr) == (0, "")
    return done.stdout


def document(pool):
    return json.loads(status(pool, "--json"))


def device_lines(text):
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("nvidia")}


def queue(pool, *args):
    """Start a claim that must wait, and wait until it is queued."""
    before = document(pool)["pool"]["pending"]
    waiting = pool.start("run", *args, "--", "true")
    deadline = time.monotonic() + TIMEOUT
    while document(pool)["pool"]["pending"] == before:
        assert time.monotonic() < deadline
    return waiting


def test_looking_starts_the_daemon(pool):
    text = status(pool)
    assert text.startswith(f"8 devices, all free, nobody waits\npool of {pool.inventory.resolve()}, all NVIDIA A100")
    assert len(pool.daemons()) == 1
    assert all(line[-1] == "free" for line in device_lines(text).values())
    assert len(device_lines(text)) == 8


def test_no_devices(pool_of):
    pool = pool_of("devices: []\n")
    assert status(pool) == f"No devices\npool of {pool.inventory.resolve()}\n"
    assert document(pool)["devices"] == []


def test_holders_and_queue(pool_of):
    pool = pool_of(3)
    with pool.hold("-n", "2", "--name", "train", "--time", "1h") as holder:
        waiting = queue(pool, "-n", "2", "--name", "next")
        text = status(pool)
        assert text.startswith("3 devices, 1 free, 1 claim waiting\n")
        lines = device_lines(text)
        assert lines["nvidia2"] == ["80", "GiB", "free"]
        for name in ("nvidia0", "nvidia1"):
            assert lines[name][2:5] == ["leased", holder.lease, USER]
            assert lines[name][-1] == "train"
        assert f"needs 2, 1 free: {USER} holds 2 until " in text

        found = document(pool)
        [lease] = found["leases"]
        assert (lease["id"], lease["name"], lease["pid"]) == (int(holder.lease), "train", holder.pid)
        assert [device["id"] for device in lease["devices"]] == ["nvidia0", "nvidia1"]
        assert [device["leases"] for device in found["devices"]] == [[lease["id"]], [lease["id"]], []]
        [claim] = found["queue"]
        assert (claim["position"], claim["name"], claim["user"]) == (1, "next", USER)
        assert claim["request"] == "2 devices"
        assert 3500 < claim["estimate_s"] <= 3600
        pool.let_go(holder)
        assert waiting.wait() == 0
    until(lambda: document(pool)["leases"] == [], "the end of all leases")


def test_plan_for_a_running_pool(pool_of):
    pool = pool_of(2)
    with pool.hold("--name", "train") as holder:
        assert pool.berth("plan").stdout.startswith("now: nvidia1\n")
        done = pool.berth("plan", "-n", "2")
        assert done.code == 0
        assert done.stdout == (
            "not now\nwhy: needs 2, 1 free: 1 is busy; "
            f"nvidia0 is held by {USER} (lease {holder.lease})\n"
        )
        waiting = queue(pool, "-n", "2")
        done = pool.berth("plan")
        assert done.stdout.startswith(
            "not now\nwhy: needs 1 device, but 1 claim is before it: "
        )
        assert json.loads(pool.berth("plan", "--json").stdout)["now"] is False
        assert pool.berth("plan", "-n", "3").code == 120
        pool.let_go(holder)
        assert waiting.wait() == 0
    assert pool.berth("plan", "-n", "2").stdout.startswith("now: nvidia0,nvidia1\n")


def test_plan_starts_no_daemon(pool):
    assert pool.berth("plan").stdout.startswith("now: nvidia0\n")
    assert pool.daemons() == []


def test_plan_within_a_lease(pool_of):
    pool = pool_of(3)
    done = pool.berth("run", "-n", "2", "--", "sh", "-c", "berth plan; berth plan -n 3; true")
    assert done.code == 0
    assert done.stdout.startswith("now: nvidia0\n")
    assert "never\nwhy: requested 3 devices, but this pool has only 2\n" in done.stdout


def test_watch_on_a_terminal(pool_of):
    pool = pool_of(2)
    with pool.terminal("status", "--watch", columns=100) as terminal:
        terminal.wait_for(rb"2 devices, all free, nobody waits")
        with pool.hold("--name", "train") as holder:
            terminal.wait_for(rb"2 devices, 1 free, nobody waits")
            terminal.wait_for(rb"leased.*train")
            terminal.wait_for(rb"leased +\d+ +\S+ +[1-9]\d*s +train")  # the time advances although nothing happens
            pool.let_go(holder)
        terminal.wait_for(rb"2 devices, all free, nobody waits")
        terminal.send("\x03")
        terminal.wait_for(rb"\x1b\[\?25h\x1b\[\?1049l")
        assert terminal.wait() == -signal.SIGINT


def test_watch_on_screens_of_any_size(sandbox, pool_of):
    """The last column marks lines that are cut, and the last line marks missing lines."""
    pool = pool_of(8)
    holder = pool.hold("--name", "漢字" * 30)
    with Screen(sandbox, ["berth", "status", "--watch"], columns=50) as screen:
        for columns, rows in ((50, 30), (49, 30), (48, 12)):
            screen.resize(columns, rows)
            screen.until(
                lambda text: [
                    wcswidth(line) in (columns - 1, columns) and line.endswith("…")
                    for line in text.splitlines()
                    if line.startswith(("pool of ", "nvidia0 "))
                ]
                == [True, True],
                f"two lines of {columns}",
            )
        screen.resize(30, 6)
        screen.shows(r"^\(7 more lines\)$")
        screen.resize(40, 1)
        screen.shows("^8 devices, 7 free, nobody waits$")
        screen.resize(1, 1)
        screen.shows("^…$")
        screen.resize(120, 30)
        seen = screen.shows(r"^8 devices, 7 free, nobody waits$[^\0]*^nvidia7 ")
        assert [line.split()[0] for line in seen.splitlines() if line.startswith("nvidia")] == [
            f"nvidia{i}" for i in range(8)
        ]
        screen.press("C-c")
        assert screen.wait() == -signal.SIGINT
    pool.let_go(holder)


def test_watch_outlives_the_daemon(pool_of):
    pool = pool_of(2)
    with pool.hold("--name", "train") as holder:
        with pool.terminal("status", "--watch", columns=100) as terminal:
            terminal.wait_for(rb"leased.*train")
            [old] = pool.daemons()
            pool.end_daemon(signal.SIGKILL)
            terminal.wait_for(rb"the daemon is gone, reconnecting")
            terminal.wait_for(rb"\x1b\[H")
            terminal.wait_for(rb"leased.*train")
            assert pool.daemons() != [old]
            terminal.send("\x03")
            assert terminal.wait() == -signal.SIGINT
        pool.let_go(holder)


def test_watch_shows_what_happens(pool_of):
    """A terminal shows real leases and a queue, although the daemon is killed meanwhile."""
    pool = pool_of(1)
    with pool.terminal("status", "--watch", columns=120) as terminal:
        terminal.wait_for(rb"1 device, free, nobody waits")
        holder = pool.hold("--name", "first")
        terminal.wait_for(rb"1 device, not free, nobody waits")
        terminal.wait_for(rb"first")
        with pool.start("run", "--name", "second", "--", "sh", "-c", "echo running; exec cat") as waiting:
            terminal.wait_for(rb"1 claim waiting")
            terminal.wait_for(rb"second")
            pool.let_go(holder)
            waiting.wait_for_line("^running$")
            terminal.wait_for(rb"not free, nobody waits")
            pool.end_daemon(signal.SIGKILL)
            terminal.wait_for(rb"the daemon is gone, reconnecting")
            pool.let_go(waiting)
        terminal.wait_for(rb"1 device, free, nobody waits")
        terminal.send("\x03")
        assert terminal.wait() == -signal.SIGINT
