# SPDX-License-Identifier: Apache-2.0
"""berth run and the messages between it and a daemon."""
import os
import re
import signal
import time

import processes
import pytest
import wire
from scripted_daemon import GPU
from waiting import until


def second(client, claim, **values):
    client.say("WAITING", claim, id=7, position=2, pending=5, text="needs 1, 0 free", **values)


def test_claim(sandbox, daemon):
    env = {**daemon.env, "CUDA_VISIBLE_DEVICES": "0,1", "BERTH_LEASE": "3"}
    with sandbox.start(["berth", "run", "-n", "2", "--name", "x", "echo", "a b", "--json"], env=env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        assert claim["command"] == "echo a b --json"
        assert claim["hold"] == wire.HOLDS["PROCESS"]
        assert claim["masks"] == ["CUDA_VISIBLE_DEVICES=0,1"]
        assert (claim["parent"], claim["request"]["gpus_min"], claim["request"]["name"]) == (3, 2, "x")
        assert claim["token_high"] or claim["token_low"]
        client.grant(claim)
        client.expect_end()  # it has become the command
        assert program.wait() == 0
        assert (program.text(), program.text("stderr")) == ("a b --json\n", "")


def test_long_command_is_cut(sandbox, daemon):
    with sandbox.start(["berth", "run", "true", "ä" * 3000], env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        assert claim["command"] == "true " + "ä" * 2045
        client.grant(claim)
        assert program.wait() == 0


def test_grant_in_parts(sandbox, daemon):
    devices = [{"id": f"nvidia{i}"} for i in range(5)]
    with sandbox.start(["berth", "run", "-n5", "printenv", "BERTH_DEVICES"], env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.grant(claim, devices=devices[:2], more=True)
        client.grant(claim, devices=devices[2:4], more=True)
        client.grant(claim, devices=devices[4:])
        assert program.wait() == 0
        assert program.text() == "nvidia0,nvidia1,nvidia2,nvidia3,nvidia4\n"


@pytest.mark.parametrize(
    "error, code",
    [
        ("IMPOSSIBLE", 120),
        ("NO_DEVICE", 120),
        ("BUSY", 123),
        ("TIMED_OUT", 123),
        ("CANCELLED", 123),
        ("INVALID", 2),
        ("PERMISSION", 125),
        ("NOT_FOUND", 125),
        ("IO", 125),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_refusals(sandbox, daemon, error, code, waits):
    with sandbox.start(["berth", "run", "true"], env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        if waits:
            second(client, claim)
        client.refuse(claim, error, "expected this, got that")
        assert program.wait() == code
        assert program.text("stderr") == "berth: run: expected this, got that\n"


@pytest.mark.parametrize("error", ["IMPOSSIBLE", "NO_DEVICE"])
def test_or_cpu(sandbox, daemon, error):
    script = 'echo "$CUDA_VISIBLE_DEVICES" "$ROCR_VISIBLE_DEVICES" "$ZE_AFFINITY_MASK" "${BERTH_LEASE-none}"'
    args = ["berth", "run", "--or-cpu", "sh", "-c", script]
    with sandbox.start(args, env={**daemon.env, "CUDA_VISIBLE_DEVICES": "5"}) as program:
        client = daemon.accept()
        client.refuse(client.expect("CLAIM"), error, "no")
        assert program.wait() == 0
        assert (program.text(), program.text("stderr")) == ("-1 -1 99999 none\n", "")


def test_or_cpu_is_not_for_the_impatient(sandbox, daemon):
    with sandbox.start(["berth", "run", "--or-cpu", "--nonblock", "true"], env=daemon.env) as program:
        client = daemon.accept()
        client.refuse(client.expect("CLAIM"), "BUSY", "no free device (--nonblock)")
        assert program.wait() == 123


def test_strange_grants(sandbox, daemon):
    with sandbox.start(["berth", "run", "true"], env=daemon.env) as program:
        client = daemon.accept()
        client.grant(client.expect("CLAIM"), devices=[])
        assert program.wait() == 125
        assert "got 0 devices" in program.text("stderr")


def test_nobody_listens(sandbox):
    done = sandbox.run(["berth", "run", "true"], env={"BERTH_SOCKET": sandbox.directory / "none"})
    assert done.code == 125
    assert done.stderr.startswith(f"berth: run: {sandbox.directory}/none: ")


def test_lease_that_is_no_number(sandbox, daemon):
    with sandbox.start(["berth", "run", "true"], env={**daemon.env, "BERTH_LEASE": "x"}) as program:
        assert program.wait() == 125
        assert program.text("stderr") == "berth: run: BERTH_LEASE: expected the id of a lease, got 'x'\n"


def test_waiting_in_words(sandbox, daemon):
    with sandbox.start(["berth", "run", "-v", "true"], env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.say("WAITING", claim, id=7, position=2)
        question = client.expect("EXPLAIN")
        assert question["id"] == 7
        second(client, question, estimate=720 * 10**9)
        assert re.fullmatch(
            r"berth: waiting, 2nd of 5, starts in about 12m( \(\d+s so far\))?: needs 1, 0 free",
            program.wait_for_line("^", "stderr"),
        )
        question = client.expect("EXPLAIN")
        client.say("WAITING", question, id=7, position=1, pending=1, text="nvidia0\x1b[31m is busy")
        assert re.fullmatch(
            r"berth: waiting, 1st of 1 \([1-9]\d*s so far\): nvidia0\N{REPLACEMENT CHARACTER}\[31m is busy",
            program.wait_for_line("^", "stderr"),
        )
        client.grant(claim)
        program.wait_for_line("^berth: lease 7: nvidia0$", "stderr")
        assert program.wait() == 0


def test_waiting_is_silent(sandbox, daemon):
    with sandbox.start(["berth", "run", "true"], env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        second(client, claim)
        client.grant(claim)
        assert program.wait() == 0
        assert (program.text(), program.text("stderr")) == ("", "")


def test_daemon_that_goes_away_while_we_wait(sandbox, daemon):
    with sandbox.start(["berth", "run", "echo", "granted"], env=daemon.env) as program:
        client = daemon.accept()
        first = client.expect("CLAIM")
        second(client, first)
        client.grant(first, more=True)  # an incomplete grant does not count
        daemon.close()
        daemon.listen()
        client = daemon.accept()
        again = client.expect("CLAIM")
        assert (again["token_high"], again["token_low"]) == (first["token_high"], first["token_low"])
        assert not again.get("resume")
        client.grant(again, lease=9)
        assert program.wait() == 0
        assert program.text() == "granted\n"


def test_daemon_that_closes_with_a_reason(sandbox, daemon):
    with sandbox.start(["berth", "run", "true"], env=daemon.env) as program:
        client = daemon.accept()
        client.expect("CLAIM")
        client.say("CLOSING", {"number": 0}, error=wire.ERRORS["SYNTAX"], text="expected a message")
        client.close()
        assert program.wait() == 125
        assert program.text("stderr") == "berth: run: expected a message\n"


# ---- Supervised: berth reads the daemon's messages while the command runs ----


def supervised(sandbox, daemon, script, *options, **values):
    """Start a command with a time limit. Return the program and its connection once the command
    runs."""
    args = ["berth", "run", "--time", "1h", *options, "sh", "-c", script]
    program = sandbox.start(args, env=daemon.env)
    client = daemon.accept()
    claim = client.expect("CLAIM")
    client.grant(claim, expires=time.time_ns() + 3600 * 10**9, **values)
    program.wait_for_line("^started")
    return program, client, claim


def expect_release(client, code):
    release = client.expect("RELEASE")
    assert (release["id"], release["exit_code"]) == (7, code)
    client.say("DONE", release, id=7)


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 9", 9), ("kill -9 $$", 137)])
def test_release(sandbox, daemon, script, code):
    program, client, _ = supervised(sandbox, daemon, f"echo started; {script}")
    expect_release(client, code)
    assert program.wait() == code
    assert program.text("stderr") == ""


@pytest.mark.parametrize(
    "end, code", [("EXPIRED", 124), ("REVOKED", 122), ("STOPPED", 122), ("PARENT", 122)]
)
def test_notice(sandbox, daemon, end, code):
    program, client, claim = supervised(sandbox, daemon, "trap 'echo bye; exit 0' TERM; echo started; while :; do sleep 1; done")
    client.say("NOTICE", claim, id=7, end=wire.ENDS[end], force_at=time.time_ns() + 60 * 10**9, duration=60 * 10**9)
    program.wait_for_line("^bye$")
    expect_release(client, code)
    assert program.wait() == code


def test_force(sandbox, daemon):
    program, client, claim = supervised(sandbox, daemon, "trap '' TERM; echo started; while :; do sleep 1; done")
    client.say("NOTICE", claim, id=7, end=wire.ENDS["EXPIRED"], force_at=time.time_ns() + 3 * 10**8, duration=3 * 10**8)
    expect_release(client, 124)
    assert program.wait() == 124


def test_notice_of_another_lease(sandbox, daemon):
    program, client, claim = supervised(sandbox, daemon, "echo started; read line; exit 4")
    client.say("NOTICE", claim, id=8, end=wire.ENDS["EXPIRED"], force_at=time.time_ns())
    program.send("go\n")
    expect_release(client, 4)
    assert program.wait() == 4


# Warnings: the kind of end, the seconds left, and the line that berth prints.
WARNINGS = [
    ("EXPIRED", 300, "berth: lease 7 reaches its time limit in 5m (to extend it: berth extend 7 1h)"),
    ("IDLE", 5400, "berth: lease 7 does not use its devices and will be taken back in 1h30m"),
    ("IDLE", 0, "berth: lease 7 does not use its devices; other jobs could use them"),
    ("STOPPED", 60, "berth: lease 7 will end in 1m: released by request"),
]


def warn(client, claim, end, seconds, **values):
    left = max(0, seconds * 10**9 - 1)  # the message took a moment to arrive
    client.say("WARNING", claim, **{"id": 7, "end": wire.ENDS[end], "duration": left, **values})


@pytest.mark.parametrize("end, seconds, line", WARNINGS)
def test_warning_in_words(sandbox, daemon, end, seconds, line):
    program, client, claim = supervised(sandbox, daemon, "echo started; read line; exit 4", "-v")
    program.wait_for_line("^berth: lease 7: nvidia0$", "stderr")
    warn(client, claim, end, seconds, id=8)  # of another lease
    warn(client, claim, end, seconds)
    assert program.wait_for_line("^", "stderr") == line
    program.send("go\n")
    expect_release(client, 4)
    assert program.wait() == 4


def test_warning_is_silent(sandbox, daemon):
    program, client, claim = supervised(sandbox, daemon, "echo started; read line; exit 4")
    warn(client, claim, "EXPIRED", 300)
    program.send("go\n")
    expect_release(client, 4)
    assert program.wait() == 4
    assert program.text("stderr") == ""


def test_warning_on_a_terminal(sandbox, daemon):
    """The grant says that messages may follow, so berth stays as the command's parent."""
    with sandbox.terminal(["berth", "run", "sh", "-c", "echo started; read line"], columns=120, env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.grant(claim, stay=True)
        program.wait_for("started")
        warn(client, claim, *WARNINGS[0][:2])
        program.wait_for(re.escape(WARNINGS[0][2]) + "\r\n")
        program.send("go\n")
        expect_release(client, 0)
        assert program.wait() == 0


def test_warning_in_the_log(sandbox, daemon):
    script = "echo started; read line < fifo"
    os.mkfifo(sandbox.directory / "fifo")
    with sandbox.start(["berth", "submit", "sh", "-c", script], env=daemon.env) as program:
        client = daemon.accept()
        client.say("POOL", client.expect("HELLO"), pool="p")
        claim = client.expect("CLAIM")
        client.grant(claim)
        assert program.wait() == 0
        log = next(sandbox.home.glob(".local/state/berth/*/7.log"))
        warn(client, claim, *WARNINGS[1][:2])
        until(lambda: WARNINGS[1][2] + "\n" in log.read_text(), "the warning in the log")
        (sandbox.directory / "fifo").write_text("go\n")
        expect_release(client, 0)
    until(lambda: all(zombie for _, zombie in processes.descendants(os.getpid())), "the end of the job")


def test_daemon_that_goes_away_while_the_command_runs(sandbox, daemon):
    program, _, first = supervised(sandbox, daemon, "echo started; read line; echo $line; exit 3")
    daemon.close()
    daemon.listen()
    client = daemon.accept()
    again = client.expect("CLAIM")
    assert (again["token_high"], again["token_low"]) == (first["token_high"], first["token_low"])
    assert again["resume"]
    client.grant(again)
    program.send("undisturbed\n")
    program.wait_for_line("^undisturbed$")
    expect_release(client, 3)
    assert program.wait() == 3


def test_pool_that_forgot_the_lease(sandbox, daemon):
    program, _, _ = supervised(sandbox, daemon, "echo started; exec sleep 60")
    daemon.close()
    daemon.listen()
    client = daemon.accept()
    client.refuse(client.expect("CLAIM"), "NOT_FOUND", "no such lease")
    expect_release(client, 122)
    assert program.wait() == 122


def test_end_without_a_daemon(sandbox, daemon):
    program, _, _ = supervised(sandbox, daemon, "echo started; read line; exit 5")
    daemon.close()
    program.send("go\n")
    assert program.wait() == 5


def test_replicas(sandbox, daemon):
    script = "echo $BERTH_REPLICA $BERTH_DEVICES $CUDA_VISIBLE_DEVICES"
    with sandbox.start(["berth", "run", "-n2", "--replicas", "2", "sh", "-c", script], env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        assert claim["request"]["replicas"] == 2
        client.grant(claim, devices=[{**GPU, "id": f"nvidia{i}"} for i in range(4)], replicas=2)
        expect_release(client, 0)
        assert program.wait() == 0
        assert sorted(program.text().splitlines()) == ["0 nvidia0,nvidia1 0,1", "1 nvidia2,nvidia3 2,3"]


def test_best_effort_replicas(sandbox, daemon):
    args = ["berth", "run", "--replicas", "2", "--scheduling", "best-effort", "sh", "-c"]
    with sandbox.start([*args, "echo $BERTH_REPLICA $BERTH_LEASE"], env=daemon.env) as program:
        client = daemon.accept()
        question = client.expect("TEST")
        assert question["request"].get("replicas", 1) == 1
        client.refuse(question, "BUSY", "no free device (--nonblock)")
        for lease in (7, 8):
            client = daemon.accept()
            claim = client.expect("CLAIM")
            assert claim["request"].get("replicas", 1) == 1
            client.grant(claim, lease=lease)
        assert program.wait() == 0
        words = [line.split() for line in program.text().splitlines()]
        assert sorted(replica for replica, _ in words) == ["0", "1"]
        assert sorted(lease for _, lease in words) == ["7", "8"]


def test_best_effort_refusal_is_said_once(sandbox, daemon):
    args = ["berth", "run", "--replicas", "9", "--scheduling", "best-effort", "true"]
    with sandbox.start(args, env=daemon.env) as program:
        client = daemon.accept()
        client.refuse(client.expect("TEST"), "IMPOSSIBLE", "never")
        assert program.wait() == 120
        assert program.text("stderr") == "berth: run: never\n"


def test_signals_end_the_wait(sandbox, daemon):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with sandbox.start(["berth", "run", "true"], env=daemon.env) as program:
            client = daemon.accept()
            second(client, client.expect("CLAIM"))
            os.kill(program.pid, number)
            assert program.wait() == -number
            client.expect_end()
