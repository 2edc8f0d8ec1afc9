# SPDX-License-Identifier: Apache-2.0
"""berth run on a terminal: job control, and the line that shows what berth waits for."""
import os
import re
import signal

import pytest
from programs import TIMEOUT

# Without options berth becomes the command; with --time it stays as the command's parent.
WAYS = pytest.mark.parametrize("options", [[], ["--time", "1h"]], ids=["exec", "supervised"])

# The command of these tests: print that it is ready, then its input and its signals.
COMMAND = """
trap 'echo interrupted; exit 7' INT
trap 'echo resized' WINCH
echo ready
while read line; do echo "heard $line"; done
"""


@pytest.fixture
def shell(pool):
    """An interactive shell with job control on a terminal."""
    env = {"PS1": "$ ", "ENV": None, "HISTFILE": "/dev/null"}
    program = pool.sandbox.terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"], env=env)
    (pool.sandbox.directory / "command").write_text(COMMAND)
    program.wait_for(rb"\$ ")
    yield program
    program.stop()


@WAYS
def test_terminal_is_the_commands(pool, options):
    script = "test -t 0 && test -t 1 && test -t 2 && stty size"
    with pool.terminal("run", *options, "sh", "-c", script) as program:
        assert program.wait() == 0
        assert b"24 80" in program.screen


@WAYS
def test_interrupt(pool, options):
    (pool.sandbox.directory / "command").write_text(COMMAND)
    with pool.terminal("run", *options, "sh", "command") as program:
        program.wait_for("ready")
        program.send("\x03")
        program.wait_for("interrupted")
        assert program.wait() == 7
    assert program.screen.count(b"interrupted") == 1  # berth must not repeat the terminal's signal


@WAYS
def test_interrupt_kills(pool, options):
    with pool.terminal("run", *options, "sh", "-c", "echo ready; exec sleep 60") as program:
        program.wait_for("ready")
        program.send("\x03")
        assert program.wait() in (130, -signal.SIGINT)
    assert pool.berth("wait", "-n8", "--nonblock").code == 0


@WAYS
def test_quit(pool, options):
    with pool.terminal("run", *options, "sh", "-c", "ulimit -c 0; echo ready; exec sleep 60") as program:
        program.wait_for("ready")
        program.send("\x1c")
        assert program.wait() in (131, -signal.SIGQUIT)


@WAYS
def test_stop_and_go_on(shell, options):
    shell.send(f"berth run {' '.join(options)} sh command\n")
    shell.wait_for("ready")
    shell.send("one\n")
    shell.wait_for("heard one")
    shell.send("\x1a")
    shell.wait_for("Stopped")
    shell.wait_for(rb"\$ ")
    shell.send("echo at the prompt\n")
    shell.wait_for("\nat the prompt")
    shell.send("fg\n")
    shell.wait_for("sh command")
    shell.send("two\n")
    shell.wait_for("heard two")
    shell.send("\x04")  # the end of its input
    shell.wait_for(rb"\$ ")
    shell.send("echo code $?\n")
    shell.wait_for("\ncode 0")


@WAYS
def test_background(shell, options):
    shell.send(f"berth run {' '.join(options)} sh -c 'echo in the back' & wait; echo code $?\n")
    shell.wait_for("\nin the back")
    shell.wait_for("\ncode 0")


@WAYS
def test_hang_up(pool, options):
    """The terminal disappears: the command gets SIGHUP, and the devices are released."""
    with pool.terminal("run", *options, "sh", "-c", "echo ready; exec sleep 60") as program:
        program.wait_for("ready")
        os.kill(program.pid, signal.SIGHUP)
        assert program.wait() in (129, -signal.SIGHUP)
    assert pool.berth("wait", "-n8", "--nonblock").code == 0


# ---- The status line ----


def waiting_line(program):
    """Wait for a line with the reason for the wait, and return it."""
    return program.wait_for(rb"\r\x1b\[K(berth: waiting[^\r\x1b]*)").group(1).decode()


def test_waiting_line(pool_of):
    pool = pool_of(1)
    holder = pool.hold("--time", "1h")
    with pool.terminal("run", "echo", "granted", columns=200) as program:
        line = waiting_line(program)
        estimate = r"starts in about (1h|59m[0-9]*s?)"
        so_far = r"( \(\d+s so far\))?"  # if the first line is drawn late
        assert re.match(rf"berth: waiting, 1st of 1, {estimate}{so_far}: needs 1: \S+ holds 1 until \d\d:\d\d", line), line
        assert " so far" in waiting_line(program)  # a second later
        pool.let_go(holder)
        assert program.wait() == 0
        assert program.screen.endswith(b"\r\x1b[Kgranted\r\n")
        assert b"\n" not in program.screen[: -len("granted\r\n")]


def test_waiting_line_fits(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.terminal("run", "true", columns=40) as program:
        assert len(waiting_line(program)) <= 39
        program.resize(30, 24)
        line = waiting_line(program)
        while len(line) > 29:  # berth may have drawn a longer line before the resize
            line = waiting_line(program)
        program.send("\x03")
        assert program.wait() == -signal.SIGINT
    pool.let_go(holder)
    assert pool.berth("run", "--wait", "10s", "true").code == 0


def test_dumb_terminal_gets_lines(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.terminal("run", "true", env={"TERM": "dumb"}) as program:
        program.wait_for(rb"^berth: waiting, 1st of 1[^\r]*\r\n")
        pool.let_go(holder)
        assert program.wait() == 0
        assert b"\x1b" not in program.screen


def test_stopped_while_it_waits(shell, pool):
    holder = pool.hold("-n8")
    shell.send("berth run echo granted\n")
    waiting_line(shell)
    shell.send("\x1a")
    shell.wait_for("Stopped")
    shell.send("fg\n")
    waiting_line(shell)
    pool.let_go(holder)
    shell.wait_for("granted\r\n", timeout=2 * TIMEOUT)


def test_nothing_is_drawn_from_the_background(shell, pool):
    holder = pool.hold("-n8")
    shell.send("berth run echo granted &\n")
    shell.wait_for(rb"\$ ")
    assert pool.berth("wait", "-n8", "--wait", "1500ms").code == 123  # berth run had time to draw
    pool.let_go(holder)
    shell.wait_for("granted\r\n")
    assert b"berth: waiting" not in shell.screen
