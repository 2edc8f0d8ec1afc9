# SPDX-License-Identifier: Apache-2.0
"""berth top: a pool on a full screen, as the user sees it, with a real daemon."""
import os
import re
import signal
import termios

import pytest
from daemons import start_daemon
from scripted_pool import Follower, claim, lease, slot
from shared_machine import ALICE, BOB
from tmux_screen import Screen
from users import user_name
from waiting import until, until_pending

ENTER = rb"\x1b\[\?1049h"
LEAVE = rb"\x1b\[\?1049l"


@pytest.fixture
def pool(pool_of):
    return pool_of(2)


@pytest.fixture
def top(sandbox):
    """Start berth top on a screen; it ends with the test."""
    screens = []

    def start(*options, words=(), **about):
        screens.append(Screen(sandbox, [*words, "berth", "top", *options], **about))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


# ---- The screen ----


def test_devices_appear(pool, top):
    seen = top().shows(r"^nvidia1 [^\0]*^q quit")  # its last line is drawn last
    first, title, heading, *rows = seen.splitlines()
    assert first.startswith("2 devices: 2 free, 0 leased, nobody waits  pool of ")
    assert title.startswith(" 1 Devices 2 ") and title.endswith(" by device")
    assert heading.split() == ["DEVICE▲", "MODEL", "MEMORY", "STATE"]
    assert rows[0].split() == ["nvidia0", "A100", "80", "GiB", "free"]
    assert rows[1].split() == ["nvidia1", "A100", "80", "GiB", "free"]
    assert "no leases" in seen and "nobody waits" in seen
    assert seen.rstrip("\n").splitlines()[-1].startswith("q quit  h help  Tab pane")


def test_a_claim_queues_and_is_granted_while_watching(pool, top):
    screen = top(columns=120)
    screen.shows("2 devices: 2 free")
    holder = pool.hold("-n", "2", "--name", "first", "--time", "1h")
    seen = screen.shows(r"^nvidia1 .* leased +\d+ +\S+ +\d+s +59m\d*s? +first")
    assert "2 devices: 0 free, 2 leased, nobody waits" in seen
    second = pool.start("run", "-n", "1", "--name", "second", "--", "sh", "-c", "exec cat")
    seen = screen.shows(r"^ +1 +\d+ +\S+ +\d+s +in \S+ +1 device +second +\S+ holds 2")
    assert "1 waiting" in seen and " 3 Queue 1 " in seen
    pool.let_go(holder)
    seen = screen.shows("1 free, 1 leased, nobody waits")
    screen.shows("^nvidia0 .* leased .* second")
    screen.shows("nobody waits$")
    second.process.stdin.close()
    second.process.stdin = None
    assert second.wait() == 0
    screen.shows("2 devices: 2 free, 0 leased, nobody waits")
    screen.shows("no leases")


def test_load_and_its_history(hardware_of, top):
    pool = hardware_of()

    def say(load):
        figures = {"utilization": load, "temperature": 61000, "power": 250400, "memory_free": 78 << 30}
        pool.says([pool.device(0, **figures), pool.device(1, utilization=None)])

    say(0)
    screen = top(columns=132, rows=40)
    screen.shows(r"^nvidia0 .*\[ {10}\]   0%")
    say(500)
    seen = screen.shows(r"^nvidia0 .*\[\|{5} {5}\]  50% +▁+▄+ +2/80 GiB  61°C   250W  free")
    assert "nvidia0 50% ─" in seen  # a chart
    assert "▄" in seen.split("1 Devices")[0]
    unknown = next(line for line in seen.splitlines() if line.startswith("nvidia1"))
    assert unknown.split()[2:4] == ["-", "-"]
    say(1000)
    screen.shows(r"\[\|{10}\] 100% +▁+▄+█+ ")


def test_what_is_wrong_is_said_in_words(hardware_of, top):
    pool = hardware_of()
    sick = pool.device(0, health=2, health_reason="fell off the bus")
    squatted = pool.device(1, processes=[{"pid": os.getpid(), "uid": os.getuid(), "command": "mine.py"}])
    pool.says([sick, squatted, pool.device(2)])
    assert pool.berth("drain", "nvidia2", "--reason", "fan is loud").code == 0
    screen = top(env={"NO_COLOR": "1"})
    screen.shows("^nvidia0 .* sick +fell off the bus")
    screen.shows(rf"^nvidia1 .* squatted +{user_name()}: mine.py \(pid {os.getpid()}\)$")
    screen.shows(rf"^nvidia2 .* drained +fan is loud \(drained by {user_name()} ")
    assert "3 devices: 0 free, 0 leased, 3 out of use" in screen.text()


def test_without_colours(pool, top):
    for env in ({"NO_COLOR": "1"}, {"TERM": "vt100"}):
        screen = top(env=env)
        screen.shows("^nvidia1 .* free")
        assert not any(f"\x1b[{code}m" in screen.styled() for code in (31, 32, 33))
        assert "\x1b[7m" in screen.styled()  # the selected row
        screen.press("q")
        assert screen.wait() == 0
        screen.close()


def test_without_unicode(pool, top):
    for env in ({"LANG": "C"}, {"LC_ALL": "POSIX"}):
        screen = top(env=env)
        seen = screen.shows(r"^DEVICE\^")
        assert seen.isascii()
        screen.close()


def test_hostile_names_are_inert(pool, top):
    name = "\x1b]0;owned\x07\x1b[2Jevil\u202e漢字"
    holder = pool.hold("--name", name)
    screen = top(columns=120)
    seen = screen.shows(r"^nvidia0 .* leased .*\[2Jevil�漢字[^\0]*^q quit")  # its last line is drawn last
    assert "\nnvidia1  A100   80 GiB  free\n" in seen
    assert len(seen.splitlines()) == 30
    pool.let_go(holder)


def test_sixty_four_devices(pool_of, top):
    pool_of(64)
    screen = top(columns=80, rows=24)
    seen = screen.shows(r" 1 Devices 64 ─+ 1-\d+ of 64  by device")
    assert "nvidia0" in seen and "nvidia63" not in seen
    screen.press("End")
    screen.shows("^nvidia63 ")
    screen.press("Home")
    screen.shows("^nvidia0 ")


# ---- Keys ----


def test_sort_and_reverse(pool_of, top):
    pool_of(
        "devices:\n"
        "- {vendor: nvidia, index: 0, utilization: 0.1}\n"
        "- {vendor: nvidia, index: 1, utilization: 0.9}\n"
        "- {vendor: nvidia, index: 2}\n"
    )

    def order(text):
        return [line.split()[0] for line in text.splitlines() if line.startswith("nvidia") and "free" in line]

    screen = top("--sort", "load")
    screen.until(lambda text: order(text) == ["nvidia1", "nvidia0", "nvidia2"], "the busiest first")
    assert "by load, descending" in screen.text() and "LOAD▼" in screen.text()
    screen.press("r")
    screen.until(lambda text: order(text) == ["nvidia0", "nvidia1", "nvidia2"], "the idlest first")
    screen.press("<", "<")
    screen.shows(" by device$")
    screen.press("s")
    screen.shows(" by model$")


def test_filter(pool, top):
    holder = pool.hold("-n", "1", "--name", "train")
    screen = top("--filter", "free")
    screen.shows(" 1 Devices 1 of 2 ")
    screen.press("Escape")
    screen.shows(" 1 Devices 2 ")
    screen.type("/trai")
    screen.shows("^Show rows with: trai_")
    screen.press("Enter")
    seen = screen.shows(r" with 'trai' [^\0]* 2 Leases 1 [^\0]*^q quit")
    assert " 1 Devices 1 of 2 " in seen and " 2 Leases 1 " in seen
    assert "nvidia1" not in seen
    screen.press("Escape")
    screen.shows("^nvidia1 ")
    pool.let_go(holder)


def test_help_and_pause(pool, top):
    screen = top()
    screen.shows("^nvidia0 ")
    screen.press("h")
    screen.shows(r"release the selected lease \(asks first\)")
    screen.press("q")
    screen.hides("asks first")
    first = re.search(r"\d\d:\d\d:\d\d", screen.text())[0]
    screen.hides(first)
    screen.press("p")
    seen = screen.shows(r"^paused at \d\d:\d\d:\d\d: p continues")
    assert first not in seen  # the time of the pause, not of the last event
    holder = pool.hold()
    assert "2 free" in seen and "2 free" in screen.text()
    screen.press("p")
    screen.shows("1 free, 1 leased")
    screen.press("q")
    assert screen.wait() == 0
    pool.let_go(holder)


def test_any_size(pool_of, top):
    pool_of(8)
    screen = top(columns=100, rows=30)
    screen.shows("^nvidia7 ")
    for columns, rows in ((20, 5), (300, 100), (40, 10), (1, 1), (60, 20), (80, 24)):
        screen.resize(columns, rows)
        if columns >= 20:
            screen.shows("^nvidia0 ")
        assert all(len(line) <= columns for line in screen.text().splitlines())
    seen = screen.shows(r"^8 devices: 8 free, .* \d\d:\d\d:\d\d$")
    assert seen.count("DEVICE▲") == 1
    screen.press("q")
    assert screen.wait() == 0


# ---- Ending leases and claims ----


def test_release_after_asking(pool, top):
    holder = pool.hold("-n", "2", "--name", "train")
    screen = top()
    screen.shows("^nvidia0 .* train")
    question = rf"^Release lease {holder.lease}\? y/N  \(train, {user_name()}, nvidia0,nvidia1\)$"
    screen.press("x")
    screen.shows(question)
    screen.press("n")
    screen.shows(f"^lease {holder.lease} was not changed")
    screen.press("2", "x")
    screen.shows(question)
    screen.resize(26, 8)  # a resize is not an answer
    screen.shows(rf"^Release lease {holder.lease}\? y/N  ")
    screen.press("y")
    screen.resize(100, 30)
    screen.shows(f"^lease {holder.lease} is being ended")
    assert holder.wait() == -signal.SIGTERM
    screen.shows("2 devices: 2 free, 0 leased")


def test_cancel_after_asking(pool, top):
    holder = pool.hold("-n", "2")
    waits = pool.start("run", "--name", "eval", "true")
    until_pending(pool, 1)
    screen = top()
    screen.shows("^ +1 .* eval")
    screen.press("3", "x")
    screen.shows("c cancels it")
    screen.press("c")
    screen.shows(rf"^Cancel claim \d+\? y/N  \(eval, {user_name()}, 1 device\)$")
    screen.press("y")
    screen.shows(r"^claim \d+ is cancelled")
    assert waits.wait() == 123
    screen.shows("nobody waits$")
    pool.let_go(holder)


def test_what_is_somebody_elses_is_refused(shared_machine_of, top):
    shared_machine = shared_machine_of(2)
    shared_machine.open()
    holder = shared_machine.hold(ALICE, "--name", "hers")
    screen = top(words=shared_machine.become(BOB))
    screen.shows("^nvidia0 .* hers")
    screen.press("x")
    screen.shows(rf"^Release {user_name(ALICE)}'s lease {holder.lease}, not yours\? y/N  \(hers, ")
    screen.press("y")
    screen.shows(rf"^cannot end lease {holder.lease}: it belongs to another user")
    shared_machine.let_go(holder)


def test_the_screen_lives_while_a_deed_is_done(sandbox, daemon, top):
    screen = top(env=daemon.env)
    follower = Follower(daemon.accept())
    follower.show([slot(0, "LEASED")], [lease(12, ["nvidia0"], name="train", uid=os.geteuid())])
    screen.shows("^nvidia0 .* train")
    screen.press("x")
    screen.shows("^Release lease 12")
    screen.press("y")
    other = daemon.accept()
    asked = other.expect("STOP")
    assert asked["id"] == 12
    screen.shows("^lease 12: waiting for the daemon")
    follower.show([slot(0, "LEASED"), slot(1)], [lease(12, ["nvidia0"], name="train")], [claim(13, 1)])
    screen.shows("2 devices: 1 free, 1 leased, 1 waiting")
    other.refuse(asked, "PERMISSION", "not\x1b[2J for you")
    screen.shows(r"^cannot end lease 12: not.\[2J for you")


# ---- The daemon goes away ----


def test_the_daemon_is_restarted(pool, top):
    daemon = start_daemon(pool)
    screen = top(env={"BERTH_SOCKET": pool.socket, "BERTH_INVENTORY": ""})
    screen.shows("^nvidia0 .* free")
    daemon.kill()
    assert daemon.wait() == 0
    seen = screen.shows(r"^as of \d\d:\d\d:\d\d: the daemon is gone, reconnecting")
    assert "nvidia0" in seen
    daemon = start_daemon(pool)
    screen.hides("^as of ")
    holder = pool.hold("--name", "after")
    screen.shows("^nvidia0 .* after")
    pool.let_go(holder)
    screen.press("q")
    assert screen.wait() == 0
    daemon.kill()
    assert daemon.wait() == 0


def test_a_daemon_that_does_not_answer(pool, top):
    """While the daemon does not answer, berth top and berth status --watch mark their data as old."""
    pool.berth("status")
    [daemon] = pool.daemons()
    screen = top()
    screen.shows("^nvidia0 .* free")
    with pool.terminal("status", "--watch", columns=120) as watch:
        watch.wait_for(rb"2 devices, all free")
        os.kill(daemon, signal.SIGSTOP)
        try:
            seen = screen.shows(r"^as of \d\d:\d\d:\d\d: the daemon \(pid \d+\) does not answer", timeout=30)
            watch.wait_for(rb"as it was at \S+: the daemon \(pid \d+\) does not answer")
        finally:
            os.kill(daemon, signal.SIGCONT)
        assert "nvidia0" in seen
        assert pool.berth("reserve", "--for", "1h").code == 0
        screen.shows("^nvidia0 .* leased")
        screen.hides("^as of ")
        watch.wait_for(rb"2 devices, 1 free, nobody waits")
        watch.send("\x03")
        assert watch.wait() == -signal.SIGINT


# ---- Restoring the terminal ----


@pytest.fixture
def terminal(pool):
    """berth top on a bare terminal, after its first drawing."""
    with pool.terminal("top") as program:
        program.wait_for(ENTER)
        program.wait_for(rb"nvidia1")
        yield program


def is_given_back(terminal):
    terminal.wait_for(LEAVE)
    until(lambda: termios.tcgetattr(terminal.master) == terminal.before, "the terminal's original settings")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signals_give_the_terminal_back(terminal, number):
    terminal.kill(number)
    is_given_back(terminal)
    assert terminal.wait() == -number


@pytest.mark.parametrize("keys, code", [("q", 0), ("\x03", -signal.SIGINT)])
def test_keys_give_the_terminal_back(terminal, keys, code):
    terminal.send(keys)
    is_given_back(terminal)
    assert terminal.wait() == code


def test_stop_and_go_on(sandbox, pool):
    env = {"PS1": "$ ", "ENV": None, "HISTFILE": "/dev/null"}
    shell = sandbox.terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"], env=env)
    with shell:
        shell.wait_for(rb"\$ ")
        before = termios.tcgetattr(shell.master)
        shell.send("berth top\n")
        shell.wait_for(rb"nvidia1")
        for _ in range(2):
            shell.send("\x1a")
            shell.wait_for(LEAVE)
            shell.wait_for(rb"Stopped")
            until(lambda: termios.tcgetattr(shell.master) == before, "the terminal's original settings")
            shell.send("fg\n")
            shell.wait_for(ENTER)
            shell.wait_for(rb"nvidia1")
        shell.send("q")
        shell.wait_for(LEAVE)
        shell.wait_for(rb"\$ ")
        shell.send("exit\n")
        assert shell.wait() == 0


def test_the_terminal_goes_away(sandbox, pool):
    terminal = pool.terminal("top")
    terminal.wait_for(rb"nvidia1")
    terminal.kill(signal.SIGSTOP)
    os.close(terminal.master)
    terminal.master = os.open(os.devnull, os.O_RDWR)
    for descriptor in list(terminal._open):
        os.close(descriptor)
    terminal._open.clear()
    terminal.kill(signal.SIGCONT)
    until(lambda: terminal.process.poll() is not None, "the end of berth top")
    terminal.code = terminal.process.returncode
    assert terminal.code in (0, -signal.SIGHUP)


# ---- Refusals ----


def test_no_terminal(pool):
    done = pool.berth("top", env={"TERM": "xterm"})
    assert done == (2, "", "berth: top: standard input and output must be a terminal"
                           " ('berth status' works without)\n")  # fmt: skip
    assert pool.daemons() == []  # no daemon was started


@pytest.mark.parametrize(
    "kind, message",
    [
        (None, "TERM: expected the type of the terminal, got nothing"),
        ("", "TERM: expected the type of the terminal, got nothing"),
        ("nonsense", "TERM: expected a terminal that ncurses knows, got 'nonsense'"),
        ("dumb", "TERM: expected a terminal with cursor movement, got 'dumb'"),
    ],
)
def test_terminals_that_cannot_do_it(pool, kind, message):
    with pool.terminal("top", env={"TERM": kind}) as terminal:
        assert terminal.wait() == 2
        assert terminal.screen.decode() == f"berth: top: {message}\r\n"


@pytest.mark.parametrize(
    "options, message",
    [
        (["--interval", "500ms"], "--interval: expected at least 1s, got 500ms"),
        (["--sort", "lod"], "--sort: "),
        (["--inventory", "none.yaml"], "--inventory: cannot read none.yaml: "),
        (["more"], "expected only options, got 'more'"),
    ],
)
def test_wrong_usage(pool, options, message):
    with pool.terminal("top", *options) as terminal:
        assert terminal.wait() == 2
        assert terminal.screen.decode().startswith(f"berth: top: {message}")
        assert not terminal.screen.count(b"\x1b")


def test_nobody_listens(sandbox):
    path = sandbox.directory / "none.sock"
    with sandbox.terminal(["berth", "top"], env={"BERTH_SOCKET": path}) as terminal:
        assert terminal.wait() == 125
        assert terminal.screen.decode() == f"berth: top: {path}: no daemon is running (no such socket)\r\n"


# ---- Cost ----


def test_it_costs_little(pool, top):
    screen = top()
    screen.shows("^nvidia0 ")

    def seconds():
        with open(f"/proc/{screen.pid}/schedstat", encoding="ascii") as stat:
            return int(stat.read().split()[0]) / 1e9

    def clock():
        return screen.text().splitlines()[0].split()[-1]

    before, seen = seconds(), {clock()}
    until(lambda: len(seen) >= 3 or seen.add(clock()), "two seconds of the clock", timeout=30)
    assert seconds() - before < 0.05
