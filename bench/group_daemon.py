# SPDX-License-Identifier: Apache-2.0
"""The daemon as its clients see it, compared with bare sockets and a lock in Redis; and the
resources it uses."""
import contextlib
import functools
import subprocess
import time
from pathlib import Path

import servers
from harness import ROUNDS, Row, Skipped, interleave, one_cpu
from peers import compiled, compiled_with_components, number

HIREDIS = Path("/usr/include/hiredis/hiredis.h")
REST_SECONDS = 10
# The daemon writes its log and releases names within this time after the last claim.
SETTLE_SECONDS = 2
WAITING = 10_000
FEW_WAITING = 64


@functools.lru_cache(maxsize=None)
def client(build):
    return compiled_with_components(build, ("wire", "codec", "model", "base"), "daemon.c")


@functools.lru_cache(maxsize=None)
def ping_pong(build):
    return compiled(build, "peers/ping_pong.c")


@functools.lru_cache(maxsize=None)
def redis_lock(build):
    servers.redis_server()
    if not HIREDIS.exists():
        raise Skipped("hiredis is not installed: libhiredis-dev")
    return compiled(build, "peers/redis_lock.c", options=["-lhiredis"])


def beside_ping_pong(mode, trips):
    """The peer makes this many round trips."""

    def measure(build):
        program, peer = client(build), ping_pong(build)
        with one_cpu(), servers.pool(build) as pool:
            return interleave(lambda: number(program, pool.socket, mode), lambda: trips * number(peer))

    return measure


def beside_redis(mode):
    def measure(build):
        program, peer = client(build), redis_lock(build)
        with one_cpu(), servers.pool(build) as pool, servers.redis() as redis:
            return interleave(lambda: number(program, pool.socket, mode), lambda: number(peer, redis))

    return measure


def in_a_pool(build, *mode):
    """Return the result of a mode with a separate daemon; "PID" stands for the daemon's pid."""
    with servers.pool(build) as pool:
        words = [pool.pid if word == "PID" else word for word in mode]
        return number(client(build), pool.socket, *words)


def memory(build):
    with one_cpu():
        return [in_a_pool(build, "memory", WAITING, "PID") for _ in range(ROUNDS)], None


def flatness(build):
    with one_cpu():
        many, few = interleave(
            lambda: in_a_pool(build, "handoff", WAITING), lambda: in_a_pool(build, "handoff", FEW_WAITING)
        )
    return [one / other for one, other in zip(many, few)], None


def status(pid, name):
    """Return a number of /proc/PID/status."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + ":"))


@functools.lru_cache(maxsize=None)
def at_rest(build):
    """Return the memory in MiB and the wakeups of several daemons that were used and then left
    idle."""
    with contextlib.ExitStack() as stack:
        pools = [stack.enter_context(servers.pool(build)) for _ in range(ROUNDS)]
        for pool in pools:
            command = [pool.berth, "run", "true"]
            subprocess.run(command, env=pool.environment, check=True)
        time.sleep(SETTLE_SECONDS)
        before = [status(pool.pid, "voluntary_ctxt_switches") for pool in pools]
        time.sleep(REST_SECONDS)
        after = [status(pool.pid, "voluntary_ctxt_switches") for pool in pools]
        memory_taken = [status(pool.pid, "VmRSS") / 1024 for pool in pools]
    return memory_taken, [float(late - early) for late, early in zip(after, before)]


def row(name, unit, goal, measure, goal_is_ratio=True):
    return Row(name, "daemon", unit, goal, "lower", measure, goal_is_ratio)


ROWS = [
    row("claim + release (peer: 2 round trips)", "ns", 1.25, beside_ping_pong("claim", 2)),
    row("the same, release not waited for (peer: 1)", "ns", 1.5, beside_ping_pong("ahead", 1)),
    row("claim + release (peer: lock in Redis)", "ns", 0.5, beside_redis("claim")),
    row("the same, release not waited for (Redis)", "ns", 0.5, beside_redis("ahead")),
    row("memory of a waiting claim, of 10,000", "B", 256.0, memory, goal_is_ratio=False),
    row("hand-off, 10,000 claims waiting over 64", "x", 1.3, flatness, goal_is_ratio=False),
    row("memory at rest, 8 devices", "MiB", 8.0, lambda build: (at_rest(build)[0], None), False),
    row("wake-ups in 10 s at rest", "", 0.0, lambda build: (at_rest(build)[1], None), False),
]
