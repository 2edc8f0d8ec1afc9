# SPDX-License-Identifier: Apache-2.0
"""berth status and the messages between it and a daemon, one snapshot after the other."""
import json
import os
import signal

import pytest
from scripted_pool import Follower, NOW, SECOND, claim, lease, show, slot

ENTER = rb"\x1b\[\?1049h\x1b\[\?25l"
LEAVE = rb"\x1b\[\?25h\x1b\[\?1049l"


def held():
    return {"slots": [slot(0, "LEASED"), slot(1)], "leases": [lease(12, ["nvidia0"], name="train")]}


def test_words(sandbox, daemon):
    with sandbox.start(["berth", "status"], env=daemon.env) as program:
        show(daemon.accept(), **held(), claims=[claim(13, 1)])
        assert program.wait() == 0
        assert program.text("stderr") == ""
        assert program.text() == (
            "2 devices, 1 free, 1 claim waiting\n"
            f"pool at {daemon.path}, all NVIDIA A100\n"
            "\n"
            "DEVICE   MEMORY  STATE   LEASE  USER  HELD  JOB\n"
            "nvidia0  80 GiB  leased     12  root    1m  train\n"
            "nvidia1  80 GiB  free\n"
            "\n"
            "QUEUE  CLAIM  USER  WAITING  WANTS     WHY\n"
            "    1     13  root       5s  1 device  1 is busy\n"
        )


def test_json(sandbox, daemon):
    with sandbox.start(["berth", "status", "--json"], env=daemon.env) as program:
        show(daemon.accept(), **held(), claims=[claim(13, 1, estimate=1500 * 10**6)])
        assert program.wait() == 0
    document = json.loads(program.text())
    assert document["schema"] == "berth.status/1"
    assert document["pool"]["capacity"] == 2
    assert document["pool"]["socket"] == "/nowhere"
    assert [(device["id"], device["state"], device["leases"]) for device in document["devices"]] == [
        ("nvidia0", "leased", [12]),
        ("nvidia1", "free", []),
    ]
    [holder] = document["leases"]
    assert (holder["id"], holder["user"], holder["granted_at"]) == (12, "root", "2026-11-16T11:59:00.000Z")
    assert holder["devices"] == [{"id": "nvidia0", "share": 1, "memory": None}]
    assert (holder["expires_at"], holder["idle_s"], holder["parent"]) == (None, None, None)
    [waiting] = document["queue"]
    assert (waiting["position"], waiting["estimate_s"], waiting["why"]) == (1, 1.5, "1 is busy")


@pytest.mark.parametrize("args", [["status"], ["status", "--json"], ["status", "--watch"], ["status", "--json", "--watch"]])
def test_nobody_listens(sandbox, args):
    path = sandbox.directory / "none.sock"
    done = sandbox.run(["berth", *args], env={"BERTH_SOCKET": path})
    assert done == (125, "", f"berth: status: {path}: no daemon is running (no such socket)\n")


def test_no_such_inventory(sandbox):
    done = sandbox.run(["berth", "status", "--inventory", "none.yaml"])
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("berth: status: --inventory: cannot read none.yaml: ")


def test_another_inventory(sandbox, daemon):
    mine = sandbox.directory / "mine.yaml"
    mine.write_text("devices: []\n")
    with sandbox.start(["berth", "status", "--inventory", mine], env=daemon.env) as program:
        client = daemon.accept()
        client.say("POOL", client.expect("HELLO"), inventory="/other.yaml")
        assert program.wait() == 2
        assert program.text("stderr") == (
            f"berth: status: expected the pool of '{mine}', got the pool of '/other.yaml'\n"
        )


def test_refusal(sandbox, daemon):
    with sandbox.start(["berth", "status"], env=daemon.env) as program:
        client = daemon.accept()
        client.refuse(client.expect("HELLO"), "PERMISSION", "not\nfor you")
        assert program.wait() == 125
        assert program.text("stderr") == "berth: status: not?for you\n"


def test_pages_that_come_again(sandbox, daemon):
    with sandbox.start(["berth", "status"], env=daemon.env) as program:
        client = daemon.accept()
        client.say("POOL", client.expect("HELLO"))
        for _ in range(2):
            client.say("PAGE", client.expect("LOOK"), section=2, after=7)
        assert program.wait() == 125
        assert "its pages are out of order" in program.text("stderr")


def test_watch_redraws_what_changed(sandbox, daemon):
    with sandbox.terminal(["berth", "status", "--watch"], env=daemon.env) as terminal:
        follower = Follower(daemon.accept())
        follower.show(slots=[slot(0), slot(1)])
        terminal.wait_for(ENTER)
        terminal.wait_for(rb"2 devices, all free, nobody waits")
        follower.show(**held())
        terminal.wait_for(rb"2 devices, 1 free, nobody waits")
        terminal.wait_for(rb"leased\S*\s+12  root")
        follower.show(**held())  # the same: nothing is drawn
        follower.tell()
        follower.expect("LOOK")
        assert terminal.screen.count(b"\x1b[H\x1b[1m2 devices, 1 free") == 1
        terminal.send("\x03")
        terminal.wait_for(LEAVE)
        assert terminal.wait() == -signal.SIGINT


def test_watch_fits_the_screen(sandbox, daemon):
    with sandbox.terminal(["berth", "status", "--watch"], columns=60, rows=10, env=daemon.env) as terminal:
        follower = Follower(daemon.accept())
        follower.show(slots=[slot(index) for index in range(20)])
        terminal.wait_for(rb"nvidia4")
        terminal.wait_for(rb"\(15 more lines\)")
        terminal.resize(60, 40)
        follower.show(slots=[slot(index) for index in range(20)])
        terminal.wait_for(rb"nvidia19")
        terminal.kill(signal.SIGTERM)
        terminal.wait_for(LEAVE)
        assert terminal.wait() == -signal.SIGTERM


def test_watch_stops_and_goes_on(sandbox, daemon):
    with sandbox.terminal(["berth", "status", "--watch"], env=daemon.env) as terminal:
        follower = Follower(daemon.accept())
        follower.show(slots=[slot(0)])
        terminal.wait_for(ENTER)
        terminal.wait_for(rb"1 device, free")
        terminal.kill(signal.SIGTSTP)
        terminal.wait_for(LEAVE)
        assert os.waitid(os.P_PID, terminal.pid, os.WSTOPPED | os.WNOWAIT).si_code == os.CLD_STOPPED
        terminal.kill(signal.SIGCONT)
        terminal.wait_for(ENTER)
        follower.show(slots=[slot(0)])
        terminal.wait_for(rb"1 device, free")


def test_watch_outlives_its_daemon(sandbox, daemon):
    with sandbox.terminal(["berth", "status", "--watch"], columns=140, env=daemon.env) as terminal:
        Follower(daemon.accept()).show(**held())
        terminal.wait_for(rb"2 devices, 1 free")
        daemon.close()
        terminal.wait_for(rb"as it was at 2026-11-16T12:00:00.000Z: the daemon is gone, reconnecting")
        terminal.wait_for(rb"leased\S*\s+12  root")
        daemon.listen()
        Follower(daemon.accept(), epoch=2).show(slots=[slot(0), slot(1)])
        terminal.wait_for(rb"2 devices, all free")


def test_watch_without_a_terminal(sandbox, daemon):
    with sandbox.start(["berth", "status", "--watch"], env=daemon.env) as program:
        follower = Follower(daemon.accept())
        follower.show(slots=[slot(0), slot(1)])
        assert program.wait_for_line("devices") == "2 devices, all free, nobody waits"
        follower.show(slots=[slot(0, device={"utilization": (500, NOW)}), slot(1)])
        follower.show(**held())
        assert program.wait_for_line("devices") == "2 devices, 1 free, nobody waits"
        program.wait_for_line("^nvidia1 ")
        follower.tell()
        follower.expect("LOOK")
    assert "\033" not in program.text()
    first, second = program.text().split("\n\n2 devices, 1 free")
    assert first.count("devices") == 1
    assert "2026-11-16T12:00:00.000Z" in second


def test_watch_as_json(sandbox, daemon):
    with sandbox.start(["berth", "status", "--watch", "--json"], env=daemon.env) as program:
        follower = Follower(daemon.accept())
        follower.show(slots=[slot(0), slot(1)])
        assert json.loads(program.wait_for_line("{"))["leases"] == []
        follower.show(slots=[slot(0), slot(1)])
        follower.show(**held())
        assert json.loads(program.wait_for_line("{"))["leases"][0]["id"] == 12
        daemon.close()
        program.wait_for_line("the daemon is gone", stream="stderr")
        daemon.listen()
        Follower(daemon.accept(), epoch=2).show(slots=[slot(0)])
        assert json.loads(program.wait_for_line("{"))["pool"]["capacity"] == 1
    assert len(program.text().splitlines()) == 3


def test_watch_ends_with_its_reader(sandbox, daemon):
    script = "berth status --watch --json | head -n 1"
    with sandbox.start(["sh", "-c", script], env=daemon.env) as program:
        follower = Follower(daemon.accept())
        follower.show(slots=[slot(0)])
        program.wait_for_line("{")
        # The reader has gone: berth ends before or after one more snapshot.
        assert program.wait() == 0


def test_colours(sandbox, daemon):
    for env, wanted in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        with sandbox.terminal(["berth", "status"], env={**daemon.env, **env}) as terminal:
            show(daemon.accept(), slots=[slot(0)])
            assert terminal.wait() == 0
            assert (b"\x1b[32mfree\x1b[0m" in terminal.screen) == wanted
            assert (b"\x1b" in terminal.screen) == wanted


def test_hostile_texts(sandbox, daemon):
    evil = "\033[2J\r\n\u202e\udcff" + "x" * 300
    with sandbox.terminal(["berth", "status"], env={**daemon.env, "NO_COLOR": "1"}) as terminal:
        show(
            daemon.accept(),
            slots=[slot(0, "LEASED", device={"name": evil})],
            leases=[lease(1, ["nvidia0", "nvidia7"], name=evil, uid=2**32 - 1, expires=-1, granted=NOW + SECOND)],
            claims=[claim(2, 1, request=evil, why=evil, estimate=2**64 - 1)],
        )
        assert terminal.wait() == 0
    assert b"\x1b" not in terminal.screen
    assert all(len(line) <= 80 or " " not in line.strip() for line in terminal.screen.decode().split("\r\n"))
