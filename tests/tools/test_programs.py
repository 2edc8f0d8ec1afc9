# SPDX-License-Identifier: Apache-2.0
"""The helpers that start, watch and end programs for other tests."""
import os
import re
import signal
import subprocess

import pytest
from processes import wait_for_end
from programs import Deadline
from sandbox import Sandbox


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}")


@pytest.fixture
def leaky():
    """A sandbox that the test closes itself."""
    place = Sandbox()
    yield place
    if place.directory.exists():  # the test failed before that
        place.close()


def test_run(sandbox):
    done = sandbox.run(["sh", "-c", "cat; echo no >&2; exit 3"], input="yes\n")
    assert done == (3, "yes\n", "no\n")


def test_run_has_no_input_by_default(sandbox):
    assert sandbox.run(["cat"]) == (0, "", "")


def test_run_past_its_deadline(sandbox):
    with pytest.raises(Deadline, match="did not end within 2.5 s; stdout b?'early"):
        sandbox.run(["sh", "-c", "echo early; exec sleep 60"], timeout=2.5)


def test_environment_is_clean(sandbox, monkeypatch):
    for name in ("BERTH_SOCKET", "CUDA_VISIBLE_DEVICES", "NO_COLOR", "COLUMNS"):
        monkeypatch.setenv(name, "1")
    names = {line.split("=")[0] for line in sandbox.run(["env"]).stdout.splitlines()}
    kept = {name for name in names if not name.endswith("SAN_OPTIONS")}
    assert kept == {"PATH", "HOME", "LANG", "BERTH_RUNTIME_DIR", "BERTH_SYSROOT"}


def test_environment_can_be_changed(sandbox):
    done = sandbox.run(["env"], env={"EXTRA": 1, "LANG": None})
    assert "EXTRA=1\n" in done.stdout
    assert "LANG=" not in done.stdout


def test_directory_is_short_and_goes_away(leaky):
    assert len(str(leaky.directory)) < 40
    (leaky.directory / "file").touch()
    leaky.close()
    assert not leaky.directory.exists()


def test_start_lines_and_end(sandbox):
    program = sandbox.start(["sh", "-c", "echo one; echo two >&2; read x; echo got $x; exit 4"])
    assert program.wait_for_line("^on") == "one"
    assert program.wait_for_line("wo$", stream="stderr") == "two"
    program.send("word\n")
    assert program.wait_for_line("got") == "got word"
    assert program.wait() == 4
    assert program.text() == "one\ngot word\n"


def test_lines_are_taken_once_and_whole(sandbox):
    program = sandbox.start(["sh", "-c", "echo a1; echo a2; printf a3; exec sleep 60"])
    assert [program.wait_for_line("a") for _ in range(2)] == ["a1", "a2"]
    with pytest.raises(Deadline, match="a line 'a' did not come within 0.1 s"):
        program.wait_for_line("a", timeout=0.1)
    program.stop()


def test_line_that_cannot_come(sandbox):
    program = sandbox.start(["sh", "-c", "echo other; exit 5"])
    with pytest.raises(Deadline, match="the program ended with 5; seen so far: stdout b'other"):
        program.wait_for_line("this")


def test_more_output_than_a_pipe_holds(sandbox):
    program = sandbox.start(["sh", "-c", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"])
    assert program.wait() == 0
    assert [len(program.output[name]) for name in ("stdout", "stderr")] == [1000000, 1000000]


def test_kill(sandbox):
    program = sandbox.start(["sleep", "60"])
    program.kill(signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    assert not is_alive(program.pid)


def test_wait_past_its_deadline(sandbox):
    with sandbox.start(["sleep", "60"]) as program:
        with pytest.raises(Deadline, match=f"the end of pid {program.pid} did not come"):
            program.wait(timeout=0.1)
    assert program.code == -signal.SIGKILL


def test_wait_does_not_wait_for_an_orphan_that_keeps_the_pipes(leaky):
    program = leaky.start(["sh", "-c", "sleep 60 & echo $!"])
    assert program.wait() == 0
    with pytest.raises(AssertionError, match=f"left running: {program.text().strip()} "):
        leaky.close()


def test_left_running(leaky):
    program = leaky.start(["sh", "-c", "echo up; read line"])
    program.wait_for_line("up")
    with pytest.raises(AssertionError, match=f"^left running: {program.pid} sh -c echo up; read line$"):
        leaky.close()
    assert not is_alive(program.pid)


def test_orphan_in_its_own_session(leaky):
    script = "setsid sh -c 'trap \"\" TERM HUP; echo $$; exec >&- 2>&-; sleep 62' &"
    pid = int(leaky.run(["sh", "-c", script]).stdout)
    with pytest.raises(AssertionError, match=f"left running: {pid} sh -c trap .* sleep 62"):
        leaky.close()
    assert not is_alive(pid)


def test_whole_family_and_a_stopped_one(leaky):
    program = leaky.start(["sh", "-c", "sleep 63 & sleep 64 & echo $!; kill -STOP $!; wait"])
    stopped = int(program.wait_for_line("."))
    with pytest.raises(AssertionError) as problem:
        leaky.close()
    assert len(re.findall("left running", str(problem.value))) == 3
    assert not is_alive(stopped) and not is_alive(program.pid)


def test_what_has_ended_is_reaped_in_silence(sandbox):
    program = sandbox.start(["true"])
    orphan = int(sandbox.run(["sh", "-c", "sh -c 'echo $$; exec >&-; exit 0' &"]).stdout)
    for pid in (program.pid, orphan):
        wait_for_end(pid)


def test_end_of_any_process(sandbox):
    pid = int(sandbox.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]).stdout)
    with pytest.raises(AssertionError, match=f"pid {pid} did not end within 0.1 s"):
        wait_for_end(pid, timeout=0.1)
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    os.waitpid(pid, 0)
    wait_for_end(pid)


def test_processes_started_another_way_count_too(leaky):
    process = subprocess.Popen(["sleep", "65"])
    with pytest.raises(AssertionError, match=f"left running: {process.pid}"):
        leaky.close()
    process.wait()


def test_sanitizer_report_fails_the_test(leaky):
    (leaky.directory / "sanitizer.123").write_text("ERROR: AddressSanitizer")
    with pytest.raises(AssertionError, match="AddressSanitizer"):
        leaky.close()


def test_terminal_has_its_size(sandbox):
    terminal = sandbox.terminal(["stty", "size"], columns=101, rows=33)
    assert terminal.wait() == 0
    assert terminal.screen == b"33 101\r\n"


def test_terminal_is_one(sandbox):
    terminal = sandbox.terminal(["sh", "-c", "test -t 0 && test -t 1 && test -t 2 && : >/dev/tty"])
    assert terminal.wait() == 0


def test_terminal_conversation(sandbox):
    terminal = sandbox.terminal(["sh", "-c", "printf 'name? '; read n; echo hello $n"])
    terminal.wait_for(rb"name\? ")
    terminal.send("you\n")
    assert terminal.wait_for("hello (.*)\r\n").group(1) == b"you"
    assert terminal.wait() == 0


def test_terminal_interrupt_key(sandbox):
    terminal = sandbox.terminal(["sh", "-c", "echo ready; exec sleep 60"])
    terminal.wait_for("ready")
    terminal.send(b"\x03")
    assert terminal.wait() == -signal.SIGINT


def test_terminal_resize(sandbox):
    script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done"
    terminal = sandbox.terminal(["sh", "-c", script])
    terminal.wait_for("ready")
    terminal.resize(50, 20)
    terminal.wait_for("20 50")
    terminal.wait()


def test_terminal_deadline(sandbox):
    with sandbox.terminal(["sleep", "60"]) as terminal:
        with pytest.raises(Deadline, match="b'never' did not come within 0.1 s"):
            terminal.wait_for("never", timeout=0.1)
