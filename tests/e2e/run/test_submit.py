# SPDX-License-Identifier: Apache-2.0
"""berth submit, logs and wait ID: jobs that run in the background."""
import contextlib
import json
import os
import signal
from pathlib import Path

import pytest
from processes import wait_for_end
from waiting import until


def submit(pool, *args, **options):
    """Submit a job and return its id."""
    done = pool.berth("submit", *args, **options)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.endswith("\n") and done.stdout[:-1].isdigit()
    return done.stdout[:-1]


def files(pool, job):
    """Return the log and the file with the exit code."""
    [directory] = pool.state.iterdir()
    return directory / f"{job}.log", directory / f"{job}.exit"


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 9", 9), ("kill -KILL $$", 137)])
def test_job(pool, script, code):
    job = submit(pool, "sh", "-c", f"echo out; echo err >&2; {script}")
    assert pool.berth("wait", job) == (code, "", "")
    assert pool.berth("logs", job) == (0, "out\nerr\n", "")
    log, left = files(pool, job)
    assert left.read_text() == f"{code}\n"
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert sorted(path.name for path in log.parent.iterdir()) == [f"{job}.exit", f"{job}.log"]
    assert pool.berth("wait", job).code == code  # also the second time


def test_surroundings(pool):
    """The job has the submitter's directory and environment, but its own session, input and
    descriptors."""
    script = "pwd; echo $X $BERTH_DEVICES; cat; ls /proc/self/fd; cut -d' ' -f6 /proc/$$/stat"
    args = ["sh", "-c", 'exec 7</dev/null; exec berth submit sh -c "$0"', script]
    done = pool.sandbox.run(args, env={"X": "yes"}, input="not for the job\n")
    job = done.stdout.strip()
    assert pool.berth("wait", job).code == 0
    lines = pool.berth("logs", job).stdout.splitlines()
    assert lines[:2] == [str(pool.sandbox.directory), "yes nvidia0"]
    assert lines[2:6] == ["0", "1", "2", "3"]  # the last is ls's own
    assert int(lines[6]) != os.getsid(0)


def test_output_of_the_submitter_ends(pool):
    """$(berth submit ...) does not wait for the job."""
    job = submit(pool, "sleep", "60")
    assert pool.berth("release", job).code == 0
    assert pool.berth("wait", job).code == 122


def test_survives_hang_up_and_its_starter(pool):
    fifo = pool.sandbox.directory / "fifo"
    os.mkfifo(fifo)
    script = f"echo $PPID; read line < {fifo}; echo $line"
    with pool.terminal("submit", "sh", "-c", script) as program:
        assert program.wait() == 0
        job = program.screen.decode().strip()
    # The terminal and the submitting process are gone now.
    with pool.start("logs", "-f", job) as follower:
        supervisor = int(follower.wait_for_line("^[0-9]"))
        os.kill(supervisor, signal.SIGHUP)
        with open(fifo, "w") as gate:
            gate.write("survived\n")
        follower.wait_for_line("^survived$")
        assert follower.wait() == 0
    assert pool.berth("wait", job).code == 0


def test_log_is_there_from_the_first_byte(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    job = submit(pool, "echo", "at last")
    assert pool.berth("logs", job) == (0, "", "")  # the job still waits
    with pool.start("logs", "--follow", job) as follower, pool.start("wait", job) as waiter:
        pool.let_go(holder)
        follower.wait_for_line("^at last$")
        assert (follower.wait(), waiter.wait()) == (0, 0)


def test_followers_of_what_has_ended(pool):
    job = submit(pool, "echo", "over")
    assert pool.berth("wait", job).code == 0
    assert pool.berth("logs", "-f", job) == (0, "over\n", "")


@pytest.mark.parametrize(
    "args, code", [(["-n9", "true"], 120), (["--or-cpu", "true"], 2), ([], 2), (["--label", "true"], 2), (["-v", "true"], 2)]
)
def test_refusals_in_the_foreground(pool, args, code):
    done = pool.berth("submit", *args)
    assert (done.code, done.stdout) == (code, "")
    assert done.stderr.startswith("berth: submit: ") and done.stderr.count("\n") == 1
    assert not pool.state.exists()


def test_nonblock(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    done = pool.berth("submit", "--nonblock", "true")
    assert (done.code, done.stdout, done.stderr.count("\n")) == (123, "", 1)
    pool.let_go(holder)
    assert pool.berth("wait", submit(pool, "--nonblock", "true")).code == 0


def test_not_granted_in_time(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    job = submit(pool, "--wait", "50ms", "true")
    assert pool.berth("wait", job).code == 123
    pool.let_go(holder)
    assert pool.berth("logs", "-f", job).stdout == "berth: submit: not granted in time\n"


def test_last_words_are_waited_for(pool_of):
    """The daemon may report the end before the job's process has written the reason."""
    pool = pool_of(1)
    holder = pool.hold()
    job = submit(pool, "true")
    process = json.loads(pool.berth("status", "--json").stdout)["queue"][0]["pid"]
    os.kill(process, signal.SIGSTOP)
    try:
        assert pool.berth("cancel", job) == (0, "", "")
        assert pool.berth("wait", job).code == 123
        pool.let_go(holder)
        reader = pool.start("logs", "-f", job)
        until_followed(reader)
    finally:
        os.kill(process, signal.SIGCONT)
    assert reader.wait() == 0
    assert reader.text() == "berth: submit: cancelled\n"


def descriptors(pid):
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor has just been closed
            found.append(os.readlink(entry))
    return found


def until_followed(reader):
    until(lambda: "anon_inode:inotify" in descriptors(reader.pid), "a reader that watches the log")


def test_cancel(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    job = submit(pool, "true")
    assert pool.berth("cancel", job) == (0, "", "")
    assert pool.berth("wait", job).code == 123
    pool.let_go(holder)


def test_command_that_is_not_found(pool):
    job = submit(pool, "no-such-command")
    assert pool.berth("wait", job).code == 127
    assert "no-such-command" in pool.berth("logs", job).stdout


def test_time_limit(pool):
    job = submit(pool, "--time", "100ms", "sleep", "60")
    assert pool.berth("wait", job).code == 124


def test_killed_job(pool_of):
    """The supervisor was killed, too: no process is left, and berth does not report success."""
    pool = pool_of(1)
    job = submit(pool, "sh", "-c", "echo $PPID $$; exec sleep 60")
    with pool.start("logs", "-f", job) as follower:
        supervisor, command = map(int, follower.wait_for_line("^[0-9]").split())
        os.kill(supervisor, signal.SIGKILL)
        assert follower.wait() == 0
    wait_for_end(command)
    assert pool.berth("wait", job).code == 137
    assert pool.berth("run", "true").code == 0


def test_replicas(pool):
    job = submit(pool, "--replicas", "2", "sh", "-c", "echo $BERTH_REPLICA $BERTH_DEVICES")
    assert pool.berth("wait", job).code == 0
    assert sorted(pool.berth("logs", job).stdout.splitlines()) == ["0 nvidia0", "1 nvidia1"]


def test_best_effort_replicas_are_jobs(pool):
    done = pool.berth("submit", "--replicas", "3", "--scheduling", "best-effort", "printenv", "BERTH_REPLICA")
    jobs = done.stdout.split()
    assert (done.code, len(set(jobs))) == (0, 3)
    for number, job in enumerate(jobs):
        assert pool.berth("wait", job).code == 0
        assert pool.berth("logs", job).stdout == f"{number}\n"


def test_daemon_killed(pool):
    """The job continues, and the next daemon knows its result."""
    fifo = pool.sandbox.directory / "fifo"
    os.mkfifo(fifo)
    job = submit(pool, "sh", "-c", f"read line <{fifo}; exit 6")
    with pool.start("wait", job) as waiter:
        pool.end_daemon(signal.SIGKILL)
        with open(fifo, "w") as gate:
            gate.write("go\n")
        assert waiter.wait() == 6
    assert pool.berth("wait", job).code == 6


def test_exit_code_outlives_the_daemon(pool):
    job = submit(pool, "sh", "-c", "exit 8")
    assert pool.berth("wait", job).code == 8
    pool.end_daemon()
    assert pool.berth("wait", job).code == 8
    assert pool.berth("logs", job) == (0, "", "")


def test_state_directory(pool):
    elsewhere = pool.sandbox.directory / "state"
    job = submit(pool, "echo", "here", env={"XDG_STATE_HOME": elsewhere})
    assert pool.berth("wait", job).code == 0
    [log] = elsewhere.glob(f"berth/*/{job}.log")
    assert log.read_text() == "here\n"
    assert pool.berth("logs", job, env={"XDG_STATE_HOME": elsewhere}).stdout == "here\n"


def test_no_place_for_the_log(pool):
    done = pool.berth("submit", "true", env={"XDG_STATE_HOME": "/dev/null/x"})
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr.startswith("berth: submit: cannot create /dev/null")
    assert pool.berth("submit", "true", env={"HOME": None}).code == 125
    assert pool.berth("wait", "-n8", "--wait", "10s").code == 0


@pytest.mark.parametrize(
    "args, code, wanted",
    [
        (["logs"], 2, "logs: expected one id, got 0"),
        (["logs", "1", "2"], 2, "logs: expected one id, got 2"),
        (["logs", "x"], 2, "logs: expected an id such as 12, got 'x'"),
        (["logs", "99"], 125, "logs: job 99 has no log (only jobs of 'berth submit' have one)"),
        (["wait", "99"], 125, "wait: no job has the id 99"),
        (["wait", "0"], 2, "wait: expected an id such as 12, got '0'"),
    ],
)
def test_wrong_ids(pool, args, code, wanted):
    assert pool.berth(*args) == (code, "", f"berth: {wanted}\n")


def test_full_disk(pool):
    job = submit(pool, "echo", "much")
    assert pool.berth("wait", job).code == 0
    done = pool.sandbox.run(["sh", "-c", 'exec berth logs "$1" >/dev/full', "sh", job])
    assert done == (125, "", "berth: logs: cannot write standard output: No space left on device\n")


def voluntary_switches(pid):
    return int(Path(f"/proc/{pid}/status").read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_nobody_polls(pool):
    """A follower of a silent job sleeps and does not poll."""
    job = submit(pool, "sleep", "60")
    with pool.start("logs", "-f", job) as follower:
        until_followed(follower)
        before = voluntary_switches(follower.pid)
        assert pool.berth("wait", "-n8", "--wait", "300ms").code == 123
        assert voluntary_switches(follower.pid) - before < 10
        assert pool.berth("release", job).code == 0
        assert follower.wait() == 0
