# SPDX-License-Identifier: Apache-2.0
"""`berth run` compared with other ways to start a command: under a lock, in a queue, or bare."""
import contextlib
import functools
import os
import shutil
import signal
import statistics
import subprocess
import time

import servers
from harness import ROUNDS, Row, Skipped, interleave, one_cpu
from peers import compiled

STARTS = 100
JOBS = 500
KILLS = 200
PAIRS = 1430  # in each of 7 rounds: 10,000 in all


def found(program, package):
    path = shutil.which(program)
    if path is None:
        raise Skipped(f"{program} is not installed: {package}")
    return path


# ---- Starting a command ----


def start_time(command, environment):
    """Return the mean microseconds from the start of a command to its end, over many starts."""
    begin = time.perf_counter_ns()
    for _ in range(STARTS):
        pid = os.posix_spawn(command[0], command, environment)
        if os.waitpid(pid, 0)[1] != 0:
            raise RuntimeError(f"{' '.join(command)} failed")
    return (time.perf_counter_ns() - begin) / STARTS / 1000


def beside(make_peer):
    """Compare `berth run true` with the command that `make_peer` returns for a directory."""

    def measure(build):
        with one_cpu(), servers.pool(build) as pool:
            ours = [str(pool.berth), "run", "true"]
            peer = make_peer(pool.socket.parent)
            for command in (ours, peer):  # the first starts read the files from disk
                start_time(command, pool.environment)
            return interleave(
                lambda: start_time(ours, pool.environment),
                lambda: start_time(peer, pool.environment),
                rounds=15,
            )

    return measure


def flock(directory):
    return [found("flock", "util-linux"), str(directory / "flock"), "true"]


def bare(directory):
    del directory
    return [found("true", "coreutils")]


# ---- Many short jobs ----


def shell_time(script, environment):
    """Return the jobs per second of a shell script that runs all of them."""
    begin = time.perf_counter()
    subprocess.run(["sh", "-ec", script], env=environment, stdout=subprocess.DEVNULL, check=True)
    return JOBS / (time.perf_counter() - begin)


@contextlib.contextmanager
def spooler(slots):
    """Return the environment of a private task-spooler."""
    tsp = found("tsp", "task-spooler")
    with servers.directory() as place:
        environment = {**os.environ, "TMPDIR": str(place), "TS_SOCKET": str(place / "socket")}
        subprocess.run([tsp, "-S", str(slots)], env=environment, check=True)
        try:
            yield environment
        finally:
            subprocess.run([tsp, "-K"], env=environment, check=True)
            servers.wait_until(lambda: not (place / "socket").exists(), "the end of tsp")


COUNT = f"i=0; while [ $i -lt {JOBS} ]; do i=$((i + 1));"


def jobs(script):
    """Compare a script that runs 500 jobs with tsp. BERTH in the script stands for the program."""

    def measure(build):
        with servers.pool(build) as pool, spooler(8) as spooling:
            ours = script.replace("BERTH", f"'{pool.berth}'")
            peer = f"{COUNT} tsp true; done; tsp -w; tsp -C"
            return interleave(
                lambda: shell_time(ours, pool.environment), lambda: shell_time(peer, spooling)
            )

    return measure


one_command = jobs(f"BERTH run --replicas {JOBS} --scheduling best-effort true")
many_commands = jobs(f"{COUNT} BERTH run true & done; wait")


# ---- One command right after another ----


def failed_rounds(build):
    """Count the rounds in which a command that does not wait finds the device of the previous one still held."""
    script = f"i=0; while [ $i -lt {PAIRS} ]; do i=$((i + 1)); BERTH run -n 8 true && BERTH run -n 8 --nonblock true || echo; done"
    with servers.pool(build) as pool:
        command = ["sh", "-c", script.replace("BERTH", f"'{pool.berth}'")]
        values = []
        for _ in range(ROUNDS):
            done = subprocess.run(
                command, env=pool.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
            )
            values.append(len(done.stdout))
    return values, None


# ---- From the end of one holder to the start of the next ----


class Holder:
    """A command that holds every device of the pool, or waits for them."""

    def __init__(self, pool, stamp):
        self.process = subprocess.Popen(
            [pool.berth, "run", "--verbose", "--gpus", "all", stamp],
            env=pool.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.first_word = self.process.stderr.readline()

    def started(self):
        """Wait until its command has started. Return the time of the start, in nanoseconds."""
        return int(self.process.stdout.readline())

    def kill(self):
        """Kill it. Return the time just before, in nanoseconds."""
        time_of_it = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.process.send_signal(signal.SIGKILL)
        return time_of_it

    def close(self):
        self.process.kill()
        self.process.communicate()


def hand_over(pool, stamp):
    """Kill a holder many times while another waits. Return the milliseconds of each handover."""
    times = []
    holder = Holder(pool, stamp)
    try:
        holder.started()
        for _ in range(KILLS):
            following = Holder(pool, stamp)
            if "waiting" not in following.first_word:
                raise RuntimeError(f"expected a claim that waits, got: {following.first_word}")
            before = holder.kill()
            started = following.started()
            holder.close()
            holder = following
            times.append((started - before) / 1e6)
    finally:
        holder.close()
    return times


@functools.lru_cache(maxsize=None)
def hand_overs(build, make_pool):
    with make_pool(build) as pool:
        stamp = compiled(build, "stamp.c")
        return [hand_over(pool, stamp) for _ in range(ROUNDS)]


def hundredth(percent, make_pool=servers.pool):
    """Return this percentile of each round."""

    def measure(build):
        return [statistics.quantiles(times, n=100)[percent - 1] for times in hand_overs(build, make_pool)], None

    return measure


def row(name, unit, goal, better, measure, goal_is_ratio=True):
    return Row(name, "run", unit, goal, better, measure, goal_is_ratio)


ROWS = [
    row("berth run true (peer: flock)", "us", 1.0, "lower", beside(flock)),
    row("berth run true (peer: bare start of true)", "us", 2.5, "lower", beside(bare)),
    row("500 short jobs, 8 devices, one run (peer: tsp)", "jobs/s", 2.0, "higher", one_command),
    row("the same by 500 runs (peer: tsp)", "jobs/s", 2.0, "higher", many_commands),
    row("SIGKILL to the next start, p99", "ms", 5.0, "lower", hundredth(99), False),
    row("SIGKILL to the next start, p50", "ms", 2.0, "lower", hundredth(50), False),
    row("the same on 8 GPUs of a double of NVML, p99", "ms", 5.0, "lower", hundredth(99, servers.hardware_pool), False),
    row("the same on 8 GPUs of a double of NVML, p50", "ms", 2.0, "lower", hundredth(50, servers.hardware_pool), False),
    Row(
        "10,000 rounds of run, then run --nonblock: failed", "run", "rounds", 0, "lower", failed_rounds,
        goal_is_ratio=False, middle=sum,
    ),
]
