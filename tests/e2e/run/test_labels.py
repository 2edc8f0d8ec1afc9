# SPDX-License-Identifier: Apache-2.0
"""berth run --label: every line of output names its rank, and nothing else changes."""
import os
import re
import select
import signal
import subprocess

import pytest
from pool import inventory_of
from processes import wait_for_end
from waiting import until

RANKS = ["run", "--ranks", "--label"]


def lines_of(text, rank):
    """Return the lines of one rank, in order and without their labels."""
    return [line.partition(": ")[2] for line in text.splitlines() if line.split(":")[0].strip() == str(rank)]


def test_each_stream_has_its_own(pool):
    script = "echo out $RANK; echo err $RANK >&2"
    done = pool.berth(*RANKS, "-n3", "sh", "-c", script)
    assert done.code == 0
    assert sorted(done.stdout.splitlines()) == [f"{rank}: out {rank}" for rank in range(3)]
    assert sorted(done.stderr.splitlines()) == [f"{rank}: err {rank}" for rank in range(3)]


def test_twelve_ranks_are_aligned(pool_of):
    pool = pool_of(inventory_of(12))
    done = pool.berth(*RANKS, "-n", "all", "sh", "-c", "for i in 1 2 3; do echo line $i; done", timeout=20)
    assert (done.code, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(f"{rank:2}: line {i}" for rank in range(12) for i in (1, 2, 3))
    for rank in range(12):
        assert lines_of(done.stdout, rank) == ["line 1", "line 2", "line 3"]


@pytest.mark.parametrize("scheduling", ["gang", "best-effort"])
def test_replicas(pool, scheduling):
    command = ["run", "--label", "-n2", "--replicas", "3", "--scheduling", scheduling]
    done = pool.berth(*command, "sh", "-c", "echo $BERTH_REPLICA; echo no end >&2; printf end")
    assert done.code == 0
    assert sorted(done.stdout.splitlines()) == sorted(f"{i}: {text}" for i in range(3) for text in (i, "end"))
    assert sorted(done.stderr.splitlines()) == [f"{i}: no end" for i in range(3)]


def test_best_effort_with_a_time_limit(pool):
    """berth stays as the parent of these ranks."""
    command = ["run", "--label", "--replicas", "2", "--scheduling", "best-effort", "--time", "1h"]
    done = pool.berth(*command, "sh", "-c", "echo $BERTH_REPLICA")
    assert (done.code, sorted(done.stdout.splitlines())) == (0, ["0: 0", "1: 1"])


def test_empty_and_unended_lines(pool):
    done = pool.berth(*RANKS, "sh", "-c", r"printf '\n\na\0b\nend'")
    assert (done.code, done.stdout) == (0, "0: \n0: \n0: a\0b\n0: end\n")
    assert pool.berth(*RANKS, "true") == (0, "", "")


def test_long_lines_are_broken(pool):
    done = pool.berth(*RANKS, "sh", "-c", "head -c 150000 /dev/zero | tr '\\0' x; echo; echo next")
    lines = ["x" * 65536, "x" * 65536, "x" * (150000 - 131072), "next"]
    assert (done.code, done.stdout) == (0, "".join(f"0: {line}\n" for line in lines))


def test_much_from_many(pool):
    """No line is lost or mixed with another, and every rank's lines are in order."""
    done = pool.berth(*RANKS, "-n8", "sh", "-c", "seq 1 20000; seq 20001 20100 >&2", timeout=60)
    assert done.code == 0
    for rank in range(8):
        assert lines_of(done.stdout, rank) == [str(i) for i in range(1, 20001)]
        assert lines_of(done.stderr, rank) == [str(i) for i in range(20001, 20101)]


def test_output_and_error_in_one_pipe(pool):
    command = "berth run --ranks --label -n4 sh -c 'seq 1 5000; seq 1 5000 >&2' 2>&1"
    done = pool.sandbox.run(["sh", "-c", command], timeout=60)
    assert done.code == 0
    assert len(done.stdout.splitlines()) == 40000
    for rank in range(4):
        assert sorted(map(int, lines_of(done.stdout, rank))) == sorted(list(range(1, 5001)) * 2)


def test_output_in_a_file(pool):
    """The output is appended and overwrites nothing, as other programs may write to the file."""
    command = "exec >log 2>&1; echo before; berth run --ranks --label -n2 sh -c 'echo $RANK'; echo after"
    assert pool.sandbox.run(["sh", "-c", command]).code == 0
    lines = (pool.sandbox.directory / "log").read_text().splitlines()
    assert (lines[0], sorted(lines[1:3]), lines[3:]) == ("before", ["0: 0", "1: 1"], ["after"])


def test_closed_output(pool):
    script = "echo lost; test -e /proc/self/fd/2 || exit 5"
    done = pool.sandbox.run(["sh", "-c", f"berth run --ranks --label sh -c '{script}' >&- 2>&-"])
    assert done.stdout == ""
    assert done.code == 5


def test_full_disk(pool):
    """A rank that continues to write gets an error. A rank that has ended does not, so berth
    reports the lost output."""
    for command, code in [("yes", 141), ("true", 125), ("exit 3", 3)]:
        done = pool.sandbox.run(["sh", "-c", f"berth run --ranks --label sh -c 'echo; {command}' >/dev/full"])
        assert (done.code, done.stderr) == (
            code,
            "berth: run: cannot write labelled output: No space left on device\n",
        )


def test_nobody_reads_any_more(pool):
    command = "berth run --ranks --label -n4 yes | head -2; echo ${PIPESTATUS[0]}"
    done = pool.sandbox.run(["bash", "-c", command], timeout=20)
    lines = done.stdout.splitlines()
    assert [re.sub(r"^\d", "N", line) for line in lines] == ["N: y", "N: y", "N41"]
    assert done.stderr == ""
    assert pool.berth("wait", "-n8", "--wait", "5s").code == 0


def test_output_of_a_rank_that_is_killed(pool):
    script = "echo first; printf 'not ended'; if test $RANK = 1; then kill -KILL $$; fi; exec sleep 60"
    done = pool.berth(*RANKS, "-n2", "sh", "-c", script)
    assert done.code == 137
    assert lines_of(done.stdout, 1) == ["first", "not ended"]


def test_what_is_left_behind_does_not_hang_the_end(pool):
    """berth does not wait for a process that is left behind, although it has the pipe open."""
    script = "setsid sleep 1000 & echo $!; echo done"
    with pool.start(*RANKS, "-n2", "sh", "-c", script) as program:
        assert program.wait() == 0
        for rank in range(2):
            pid, done = lines_of(program.text(), rank)
            wait_for_end(int(pid), 0)
            assert done == "done"


def test_lines_appear_as_they_are_written(pool):
    with pool.start(*RANKS, "sh", "-c", "echo ready; read line; echo $line; read line") as program:
        assert program.wait_for_line("ready") == "0: ready"
        program.send("heard\n")
        assert program.wait_for_line("heard") == "0: heard"
        program.send("go\n")
        assert program.wait() == 0


def test_on_a_terminal(pool):
    with pool.terminal(*RANKS, "-n2", "sh", "-c", "echo out; echo err >&2; test -t 1 || echo piped") as program:
        assert program.wait() == 0
    lines = program.screen.replace(b"\r", b"").decode().splitlines()
    assert sorted(lines) == sorted(f"{rank}: {word}" for rank in range(2) for word in ("out", "err", "piped"))


def test_interrupt_on_a_terminal(pool):
    script = "trap 'echo interrupted' INT; echo ready; while :; do sleep 0.02; done"
    with pool.terminal(*RANKS, "-n2", "sh", "-c", script) as program:
        for _ in range(2):
            program.wait_for(r"\d: ready")
        program.send("\x03")
        for _ in range(2):
            program.wait_for(r"\d: interrupted")
        program.kill(signal.SIGTERM)
        assert program.wait() == 143
    assert program.screen.count(b": interrupted") == 2


def test_submitted(pool):
    done = pool.berth("submit", "--label", "--replicas", "11", "--sharing", "time-slice", "sh", "-c", "echo $BERTH_REPLICA")
    assert done.code == 0, done
    identity = done.stdout.strip()
    assert pool.berth("wait", identity).code == 0
    assert sorted(pool.berth("logs", identity).stdout.splitlines()) == [f"{i:2}: {i}" for i in range(11)]


def test_submitted_one_by_one(pool):
    command = ["submit", "--label", "--replicas", "2", "--scheduling", "best-effort", "sh", "-c", "echo it"]
    identities = pool.berth(*command).stdout.split()
    for i, identity in enumerate(identities):
        assert pool.berth("wait", identity).code == 0
        assert pool.berth("logs", identity).stdout == f"{i}: it\n"


# ---- Slow readers ----


class SlowReader:
    """A berth run whose output the test reads at its own pace."""

    def __init__(self, pool, *command):
        self.reading, self.writing = os.pipe()
        self.program = subprocess.Popen(
            [os.environ["BERTH"], *command],
            stdin=subprocess.DEVNULL,
            stdout=self.writing,
            stderr=subprocess.DEVNULL,
            env=pool.sandbox.environment,
            cwd=pool.sandbox.directory,
        )

    def until_full(self):
        """Wait until the pipe is full."""
        until(lambda: not select.select([], [self.writing], [], 0)[1], "a full pipe")

    def read_all(self):
        """Read everything up to the end of file. From then on no process can write."""
        os.close(self.writing)
        self.writing = None
        data = bytearray()
        while part := os.read(self.reading, 30000):
            data += part
        return data.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.reading)
        if self.writing is not None:
            os.close(self.writing)
        self.program.kill()
        self.program.wait()


def stuck(pool):
    """Start two ranks that print more than the test has read. A file for each rank has its pid."""
    script = "echo $$ >rank-$RANK; yes 0123456789 | head -c 10000000; touch done-$RANK; exec sleep 60"
    reader = SlowReader(pool, *RANKS, "-n2", "sh", "-c", script)
    until(lambda: all(says_who(pool, rank) for rank in range(2)), "both ranks")
    reader.until_full()
    return reader


def says_who(pool, rank):
    path = pool.sandbox.directory / f"rank-{rank}"
    return path.exists() and path.read_text().endswith("\n")


def test_all_comes_to_who_reads_slowly(pool):
    size = 10_000_001 + len("0123")
    command = ["run", "--ranks", "--label", "-n2", "sh", "-c", f"yes 0123456789 | head -c {size}"]
    with SlowReader(pool, *command) as reader:
        reader.until_full()
        text = reader.read_all()
        assert reader.program.wait(10) == 0
    for rank in range(2):
        found = lines_of(text, rank)
        assert found[-1] == "0123"
        assert set(found[:-1]) == {"0123456789"} and len(found) == size // 11 + 1


def test_signals_pass_who_does_not_read(pool):
    with stuck(pool) as reader:
        reader.program.send_signal(signal.SIGTERM)
        for rank in range(2):
            wait_for_end(int((pool.sandbox.directory / f"rank-{rank}").read_text()))
            assert not (pool.sandbox.directory / f"done-{rank}").exists()
        # The devices are free although output is unread. All of it can still be read.
        assert pool.berth("wait", "-n8", "--wait", "5s").code == 0
        text = reader.read_all()
        assert reader.program.wait(10) == 143
    # One rank may have filled the pipe before the other wrote its first line.
    found = [line for rank in range(2) for line in lines_of(text, rank)[:-1]]
    assert set(found) == {"0123456789"}


def test_who_never_reads_is_not_waited_for_after_a_signal(pool):
    with stuck(pool) as reader:
        reader.program.send_signal(signal.SIGTERM)
        assert reader.program.wait(30) == 143


def test_a_second_signal_ends_the_waiting(pool):
    """After the ranks have ended, only berth itself receives the signal."""
    command = ["run", "--ranks", "--label", "sh", "-c", "yes | head -c 60000"]
    with SlowReader(pool, *command) as reader:
        reader.until_full()
        until(lambda: pool.berth("wait", "-n8", "--nonblock").code == 0, "the end of the lease")
        reader.program.send_signal(signal.SIGTERM)
        assert reader.program.wait(10) == -signal.SIGTERM
