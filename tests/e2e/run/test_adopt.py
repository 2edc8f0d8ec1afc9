# SPDX-License-Identifier: Apache-2.0
"""berth adopt, and the messages between it and a daemon."""
import json
import os
import re
import signal

import pytest
import wire
from scripted_daemon import GPU
from waiting import until_pending


@pytest.fixture
def process(sandbox):
    """Start a separate process that runs until the test ends."""
    with sandbox.start(["sh", "-c", 'echo up; read line; : "$0"', "a b\x1b[31m"]) as program:
        program.wait_for_line("^up$")
        yield program


def started(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[19])


def adopting(sandbox, daemon, *args, env=None):
    """Start berth adopt. Return the program, its connection and its claim."""
    program = sandbox.start(["berth", "adopt", *args], env={**daemon.env, **(env or {})})
    client = daemon.accept()
    return program, client, client.expect("CLAIM")


def test_claim(sandbox, daemon, process):
    program, client, claim = adopting(sandbox, daemon, process.pid, env={"CUDA_VISIBLE_DEVICES": "5"})
    assert (claim["pid"], claim["started"]) == (process.pid, started(process.pid))
    assert claim["hold"] == wire.HOLDS["PROCESS"]
    assert claim["command"].startswith("sh -c echo up; ")
    assert claim["command"].endswith(" a b\N{REPLACEMENT CHARACTER}[31m")
    assert claim["present"]
    assert "masks" not in claim  # the claim of berth adopt has no masks
    client.grant(claim, lease=12)
    assert program.wait() == 0
    assert (program.text(), program.text("stderr")) == ("12\n", "")
    client.expect_end()


@pytest.mark.parametrize(
    "args",
    [
        ["--time", "4h"],
        ["--name", "x", "--wait", "1h"],
        ["--nonblock"],
        ["--sharing", "time-slice", "--share", "0.25"],
        ["--priority", "low"],
    ],
)
def test_how_is_not_which(sandbox, daemon, process, args):
    """The process decides which devices are adopted; these options only say how they are used."""
    program, client, claim = adopting(sandbox, daemon, process.pid, *args)
    assert claim["present"]
    request = claim["request"]
    if "--time" in args:
        assert request["time"] == 4 * 3600 * 10**9
    if "--name" in args:
        assert (request["name"], request["wait"]) == ("x", 3600 * 10**9)
    if "--nonblock" in args:
        assert request["nonblock"]
    if "--share" in args:
        assert request["share"] == 250000
    client.grant(claim)
    assert program.wait() == 0


@pytest.mark.parametrize(
    "args",
    [
        ["-n", "1"],
        ["-n2"],
        ["-n", "all"],
        ["-n", "A100:1"],
        ["--device", "nvidia1"],
        ["--model", "A100"],
        ["--vendor", "nvidia"],
        ["--min-free", "1GiB"],
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_request(sandbox, daemon, process, args, before):
    words = [*args, process.pid] if before else [process.pid, *args]
    program, client, claim = adopting(sandbox, daemon, *words)
    assert not claim.get("present")
    assert claim["request"].get("all", claim["request"].get("gpus_min", 1)) == {"-n2": 2}.get(args[0], 1)
    client.grant(claim)
    assert program.wait() == 0


def test_waits_in_words(sandbox, daemon, process):
    program, client, claim = adopting(sandbox, daemon, "-v", process.pid)
    client.say("WAITING", claim, id=12, position=1)
    client.say("WAITING", client.expect("EXPLAIN"), id=12, position=1, pending=1, text="nvidia0 is busy")
    assert program.wait_for_line("^", "stderr") == "berth: waiting, 1st of 1: nvidia0 is busy"
    client.grant(claim, lease=12, devices=[GPU, {"id": "nvidia1"}])
    assert program.wait() == 0
    assert program.wait_for_line("^", "stderr") == "berth: lease 12: nvidia0 nvidia1"
    assert program.text() == "12\n"


@pytest.mark.parametrize(
    "error, code",
    [
        ("IMPOSSIBLE", 120),
        ("NO_DEVICE", 120),
        ("BUSY", 123),
        ("TIMED_OUT", 123),
        ("CANCELLED", 123),
        ("NOT_FOUND", 125),
        ("PERMISSION", 125),
        ("IO", 125),
    ],
)
def test_refusals(sandbox, daemon, process, error, code):
    program, client, claim = adopting(sandbox, daemon, process.pid)
    client.refuse(claim, error, "expected this, got that")
    assert program.wait() == code
    assert (program.text(), program.text("stderr")) == ("", "berth: adopt: expected this, got that\n")


@pytest.mark.parametrize(
    "args, wanted",
    [
        ([], "expected one pid, got 0"),
        (["1", "2"], "expected one pid, got 2"),
        (["python"], "expected a pid such as 4711, got 'python'"),
        (["0"], "expected a pid such as 4711, got '0'"),
        (["4294967297"], "expected a pid such as 4711, got '4294967297'"),
        (["--", "-5"], "expected a pid such as 4711, got '-5'"),
        (["1", "--replicas", "2"], "--replicas: an option of berth run, submit, reserve, wait and plan only"),
        (["1", "--scheduling", "best-effort"], "--scheduling: an option of berth run, submit, reserve, wait and plan only"),
        (["1", "--sharing", "mps"], "--sharing: mps must be set up before a process starts; use 'berth run'"),
        (["1", "--ranks"], "--ranks: an option of berth run and submit only"),
        (["1", "--or-cpu"], "--or-cpu: an option of berth run only"),
        (["1", "-n", "4x"], "--gpus: expected a number of devices"),
        (["1", "--notfy", "x"], "no option '--notfy' here, did you mean --notify?"),
    ],
)
def test_wrong_usage(sandbox, daemon, args, wanted):
    done = sandbox.run(["berth", "adopt", *args], env=daemon.env)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: adopt: {wanted}")


def test_no_such_process(sandbox, daemon):
    with sandbox.start(["true"]) as program:
        assert program.wait() == 0
    done = sandbox.run(["berth", "adopt", program.pid], env=daemon.env)
    wanted = f"berth: adopt: cannot adopt process {program.pid}: no such process\n"
    assert done == (125, "", wanted)


def test_process_that_has_ended(sandbox, daemon):
    """A zombie counts as a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    done = sandbox.run(["berth", "adopt", pid], env=daemon.env)
    os.waitpid(pid, 0)
    assert done == (125, "", f"berth: adopt: cannot adopt process {pid}: no such process\n")


def test_nobody_listens(sandbox, process):
    done = sandbox.run(["berth", "adopt", process.pid], env={"BERTH_SOCKET": sandbox.directory / "none"})
    assert done.code == 125
    assert done.stderr.startswith(f"berth: adopt: {sandbox.directory}/none: ")


# ---- With a pool ----


def test_lease_of_a_process(pool_of, process):
    pool = pool_of(2)
    done = pool.berth("adopt", process.pid, "-v", "-n1", "--name", "old")
    assert done == (0, "1\n", "berth: lease 1: nvidia0\n")
    [shown] = json.loads(pool.berth("status", "--json").stdout)["leases"]
    assert (shown["id"], shown["name"], shown["pid"], shown["adopted"]) == (1, "old", process.pid, True)
    assert re.search(r"^nvidia0 .* adopted  old$", pool.berth("status").stdout, re.MULTILINE)
    assert pool.berth("run", "--nonblock", "-n2", "true").code == 123
    process.send("end\n")
    assert process.wait() == 0
    assert pool.berth("run", "--wait", "10s", "-n2", "true").code == 0


def test_waits_its_turn(pool_of, process):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("adopt", "-v", process.pid, "-n", "1") as program:
        program.wait_for_line("^berth: waiting, 1st of 1", "stderr")
        pool.let_go(holder)
        assert program.wait() == 0
        assert program.text() == "2\n"
    assert pool.berth("adopt", process.pid, "-n1").stderr == (
        f"berth: adopt: cannot adopt process {process.pid}: it already has lease 2\n"
    )


def test_interrupted_while_it_waits(pool_of, process):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("adopt", "-v", process.pid, "-n", "1") as program:
        program.wait_for_line("^berth: waiting, 1st of 1", "stderr")
        program.kill(signal.SIGINT)
        assert program.wait() == -signal.SIGINT
    until_pending(pool, 0)
    pool.let_go(holder)
    assert pool.berth("run", "--wait", "10s", "true").code == 0


def test_process_without_devices(pool_of, process):
    found = f"process {process.pid} uses no device; request some, for example with -n 1"
    assert pool_of(1).berth("adopt", process.pid) == (125, "", f"berth: adopt: {found}\n")


def test_not_in_time(pool_of, process):
    pool = pool_of(1)
    holder = pool.hold()
    assert pool.berth("adopt", process.pid, "-n1", "--nonblock").code == 123
    assert pool.berth("adopt", process.pid, "-n1", "--wait", "50ms").code == 123
    assert pool.berth("adopt", process.pid, "-n2").code == 120
    pool.let_go(holder)


def test_time_limit_ends_the_process(pool_of, process):
    pool = pool_of(1)
    assert pool.berth("adopt", process.pid, "-n1", "--time", "100ms").code == 0
    assert process.wait() == -signal.SIGTERM
    assert pool.berth("run", "--wait", "10s", "true").code == 0


def test_not_within_a_lease(pool_of, process):
    done = pool_of(1).berth("run", "berth", "adopt", str(process.pid), "-n1")
    assert done.code == 2
    assert done.stderr == "berth: adopt: cannot adopt with several replicas or inside another lease\n"
