# SPDX-License-Identifier: Apache-2.0
"""--notify, and the line on the terminal: notify users who have waited for long."""
import os
import re

import processes
import pytest
from scripted_daemon import GPU
from waiting import until

SECOND = 10**9
TELL = (
    'echo "$BERTH_EVENT|$BERTH_ID|$BERTH_WAITED_S|$BERTH_NAME|$BERTH_DEVICES|$BERTH_MESSAGE|$(cat)|$PWD" > "$OUT.new";'
    ' mv "$OUT.new" "$OUT"; echo told; echo told >&2'
)
AT_ONCE = {"BERTH_NOTIFY_AFTER": "0"}


@pytest.fixture
def told(sandbox):
    """The file where the command writes what it receives."""
    path = sandbox.directory / "told"
    sandbox.environment["OUT"] = str(path)
    return path


def running():
    """Return the processes that still run below this one, including orphans."""
    return [pid for pid, zombie in processes.descendants(os.getpid()) if not zombie]


@pytest.fixture(autouse=True)
def settled(sandbox):
    """Wait for the end of notification commands, for which berth does not wait."""
    yield
    until(lambda: not running(), lambda: f"the end of {running()}")


def words_of(told):
    until(told.exists, "the notification")
    return told.read_text().rstrip("\n").split("|")


def waiting(sandbox, daemon, *args, env=AT_ONCE):
    """Start a claim that waits. Return the program, the connection, the claim and the first
    EXPLAIN."""
    program = sandbox.start(["berth", *args], env={**daemon.env, **env})
    client = daemon.accept()
    claim = client.expect("CLAIM")
    client.say("WAITING", claim, id=7, position=1)
    return program, client, claim, client.expect("EXPLAIN")


def explain(client, question, **values):
    client.say("WAITING", question, id=7, position=1, pending=1, text="busy", **values)


def test_granted(sandbox, daemon, told):
    args = ["run", "--name", "my job", "--notify", TELL, "echo", "ran"]
    program, client, claim, _ = waiting(sandbox, daemon, *args)
    client.grant(claim, devices=[GPU, {"id": "nvidia1"}])
    assert program.wait() == 0
    event, number, waited, name, devices, message, line, directory = words_of(told)
    assert (event, number, name, devices) == ("granted", "7", "my job", "nvidia0,nvidia1")
    assert int(waited) < 60
    assert re.fullmatch(r"berth: granted nvidia0, nvidia1 after \S+ \(lease 7\)", message)
    assert (line, directory) == (message, str(sandbox.directory))
    program.wait_for_line("^told$", "stderr")
    program.wait_for_line("^told$", "stderr")
    assert program.text() == "ran\n"


def test_soon(sandbox, daemon, told):
    program, client, claim, question = waiting(sandbox, daemon, "run", "--notify", TELL, "true")
    explain(client, question, estimate=61 * SECOND)
    question = client.expect("EXPLAIN")
    assert not told.exists()
    explain(client, question)  # the estimate is no longer known
    question = client.expect("EXPLAIN")
    assert not told.exists()
    explain(client, question, estimate=40 * SECOND)
    event, number, _, name, devices, message, line, _ = words_of(told)
    assert (event, number, name, devices) == ("soon", "7", "", "")
    assert re.fullmatch(r"berth: claim 7 starts in about 40s \(waited \S+\)", message)
    assert line == message
    told.unlink()
    explain(client, client.expect("EXPLAIN"), estimate=1 * SECOND)
    client.expect("EXPLAIN")
    client.grant(claim)
    assert program.wait() == 0
    until(lambda: not running(), "the end of all processes")  # the notification ran only once
    assert not told.exists()


def test_not_before_its_time(sandbox, daemon, told):
    env = {"BERTH_NOTIFY_AFTER": "1h"}
    program = sandbox.start(["berth", "run", "--notify", TELL, "true"], env={**daemon.env, **env})
    client = daemon.accept()
    claim = client.expect("CLAIM")
    client.say("WAITING", claim, id=7, position=1)
    explain(client, client.expect("EXPLAIN"), estimate=0)
    client.grant(claim)
    assert program.wait() == 0
    until(lambda: not running(), "the end of all processes")
    assert not told.exists()


def test_a_minute_is_usual(sandbox, daemon, told):
    with sandbox.start(["berth", "run", "--notify", TELL, "true"], env=daemon.env) as program:
        client = daemon.accept()
        client.grant(client.expect("CLAIM"))
        assert program.wait() == 0
    assert not told.exists()


def test_without_it_no_news_is_asked_for(sandbox, daemon):
    with sandbox.start(["berth", "run", "true"], env={**daemon.env, **AT_ONCE}) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.say("WAITING", claim, id=7, position=1)
        client.grant(claim)
        client.expect_end()
        assert program.wait() == 0
        assert program.text("stderr") == ""


def test_refused_claim_tells_nothing(sandbox, daemon, told):
    program, client, claim, _ = waiting(sandbox, daemon, "run", "--notify", TELL, "true")
    client.refuse(claim, "CANCELLED", "no")
    assert program.wait() == 123
    assert not told.exists()


@pytest.mark.parametrize("options", [[], ["--time", "1h"]], ids=["exec", "supervised"])
def test_nobody_waits_for_it(sandbox, daemon, options):
    """The notification command can neither delay the main command nor make it fail. It is an orphan,
    which this process adopts."""
    fifo = sandbox.directory / "fifo"
    os.mkfifo(fifo)
    tell = f"echo $$ > {fifo}; read line < {fifo}; exit 5"
    args = ["run", *options, "--notify", tell, "sh", "-c", "exit 3"]
    program, client, claim, _ = waiting(sandbox, daemon, *args)
    client.grant(claim, **({"expires": 2**62} if options else {}))
    with open(fifo) as told:
        teller = int(told.read())
    if options:
        client.say("DONE", client.expect("RELEASE"), id=7)
    assert program.wait() == 3
    assert [parent for pid, parent, _ in processes.processes() if pid == teller] == [os.getpid()]
    fifo.write_text("go\n")
    processes.wait_for_end(teller)


@pytest.mark.parametrize("command", ["exit 9", "/nonexistent/x 2>/dev/null", "kill -9 $$"])
def test_its_failure_is_its_own(sandbox, daemon, command):
    program, client, claim, _ = waiting(sandbox, daemon, "run", "--notify", command, "true")
    client.grant(claim)
    assert program.wait() == 0


def test_variables_of_ours_are_replaced(sandbox, daemon, told):
    env = {**AT_ONCE, "BERTH_DEVICES": "nvidia9", "BERTH_NAME": "other", "BERTH_LEASE": "3"}
    program, client, claim, question = waiting(sandbox, daemon, "run", "--notify", TELL, "true", env=env)
    explain(client, question, estimate=0)
    assert words_of(told)[3:5] == ["", ""]
    client.grant(claim)
    assert program.wait() == 0


def test_reserve(sandbox, daemon, told):
    program, client, claim, _ = waiting(sandbox, daemon, "reserve", "--for", "1h", "--notify", TELL)
    client.grant(claim)
    assert program.wait() == 0
    assert words_of(told)[0] == "granted"


def test_adopt(sandbox, daemon, told):
    program, client, claim, _ = waiting(sandbox, daemon, "adopt", os.getpid(), "--notify", TELL)
    client.grant(claim)
    assert program.wait() == 0
    assert words_of(told)[0] == "granted"


def test_submit(sandbox, daemon, told):
    with sandbox.start(["berth", "submit", "--notify", TELL, "echo", "ran"], env={**daemon.env, **AT_ONCE}) as program:
        client = daemon.accept()
        client.say("POOL", client.expect("HELLO"), pool="p")
        claim = client.expect("CLAIM")
        client.say("WAITING", claim, id=7, position=1)
        assert program.wait() == 0
        explain(client, client.expect("EXPLAIN"), estimate=1 * SECOND)
        assert words_of(told)[:2] == ["soon", "7"]
        client.grant(claim)
        client.say("DONE", client.expect("RELEASE"), id=7)
    log = next(sandbox.home.glob(".local/state/berth/*/7.log"))
    until(lambda: sorted(log.read_text().split()) == ["ran", "told", "told"], "the notification's output in the log")


def test_wait(sandbox, daemon, told):
    with sandbox.start(["berth", "wait", "--notify", TELL], env={**daemon.env, **AT_ONCE}) as program:
        client = daemon.accept()
        client.say("DONE", client.expect("TEST"))
        assert program.wait() == 0
    event, number, _, _, devices, message, _, _ = words_of(told)
    assert (event, number, devices) == ("granted", "", "")
    assert re.fullmatch(r"berth: the request can be granted now \(waited \S+\)", message)


def test_wait_for_an_id(sandbox, daemon):
    done = sandbox.run(["berth", "wait", "--notify", "true", "12"], env=daemon.env)
    assert done == (2, "", "berth: wait: --notify: expected a request, got an id\n")


def test_time_that_is_none(sandbox, daemon):
    done = sandbox.run(["berth", "run", "true"], env={**daemon.env, "BERTH_NOTIFY_AFTER": "x"})
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("berth: run: BERTH_NOTIFY_AFTER: expected a duration")


# ---- On a terminal without --notify ----


def on_terminal(sandbox, daemon, *args, env=AT_ONCE):
    program = sandbox.terminal(["berth", *args], env={**daemon.env, **env}, columns=120)
    return program, daemon.accept()


def test_line(sandbox, daemon):
    program, client = on_terminal(sandbox, daemon, "run", "echo", "ran")
    client.grant(client.expect("CLAIM"), devices=[GPU, {"id": "nvidia1"}])
    assert program.wait() == 0
    assert re.fullmatch(rb"berth: granted nvidia0, nvidia1 after \S+ \(lease 7\)\r\nran\r\n", program.screen)


def test_line_of_wait(sandbox, daemon):
    program, client = on_terminal(sandbox, daemon, "wait")
    client.say("DONE", client.expect("TEST"))
    assert program.wait() == 0
    assert re.fullmatch(rb"berth: the request can be granted now \(waited \S+\)\r\n", program.screen)


def test_no_line_for_the_quick(sandbox, daemon):
    program, client = on_terminal(sandbox, daemon, "run", "echo", "ran", env={})
    client.grant(client.expect("CLAIM"))
    assert program.wait() == 0
    assert program.screen == b"ran\r\n"


def test_no_line_with_notify(sandbox, daemon):
    program, client = on_terminal(sandbox, daemon, "run", "--notify", "echo told", "true")
    client.grant(client.expect("CLAIM"))
    program.wait_for("told\r\n")
    assert program.wait() == 0
    assert b"berth:" not in program.screen
