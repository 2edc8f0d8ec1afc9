# SPDX-License-Identifier: Apache-2.0
"""libberth inside a program, compared with a similar pool on tokio and with bare futexes."""
import functools

from harness import ROUNDS, Row, Skipped, interleave, one_cpu
from peers import built_by_cargo, compiled_with_libberth, number

WAITERS = 100_000


@functools.lru_cache(maxsize=None)
def ours(build):
    return compiled_with_libberth(build, "local.c", "local_wake.c")


@functools.lru_cache(maxsize=None)
def tokio_pool(build):
    return built_by_cargo(build, "tokio-pool", "tokio")


def side_by_side(first, second):
    """Return the rounds of two command lines, each a program with its arguments."""
    with one_cpu():
        return interleave(lambda: number(*first), lambda: number(*second))


def beside_tokio(*mode):
    return lambda build: side_by_side((ours(build), *mode), (tokio_pool(build), *mode))


def shared_beside_tokio(*mode):
    """The same with a berth pool that two threads have used."""
    return lambda build: side_by_side((ours(build), "shared", *mode), (tokio_pool(build), *mode))


def flatness(build):
    """Return how many times longer a hand-off of berth takes among many tasks than among few."""
    many, few = side_by_side((ours(build), "handoff", 10_000), (ours(build), "handoff", 64))
    return [one / other for one, other in zip(many, few)], None


def allocations(build):
    return [number(ours(build), "allocations") for _ in range(ROUNDS)], None


def memory(build):
    """The goal is in bytes, so the peer may be missing."""
    program, mode = ours(build), ("memory", WAITERS)
    try:
        return side_by_side((program, *mode), (tokio_pool(build), *mode))
    except Skipped:
        return [number(program, *mode) for _ in range(ROUNDS)], None


def wake(build):
    return side_by_side((ours(build), "wake"), (ours(build), "futex"))


def row(name, unit, goal, measure, goal_is_ratio=True):
    return Row(name, "local", unit, goal, "lower", measure, goal_is_ratio)


ROWS = [
    row("claim + release, devices free", "ns", 0.25, beside_tokio("claim")),
    row("try to claim + release, devices free", "ns", 0.4, beside_tokio("try")),
    row("try to claim, no device free", "ns", 1.0, beside_tokio("try-full")),
    row("hand-off among 64 tasks", "ns", 0.33, beside_tokio("handoff", 64)),
    row("hand-off among 1,000 tasks", "ns", 0.33, beside_tokio("handoff", 1_000)),
    row("hand-off among 10,000 tasks", "ns", 0.33, beside_tokio("handoff", 10_000)),
    row("hand-off among 10,000 tasks over 64", "x", 1.3, flatness, goal_is_ratio=False),
    row("claim + release, threads share the pool", "ns", 0.25, shared_beside_tokio("claim")),
    row("try to claim + release, likewise", "ns", 0.4, shared_beside_tokio("try")),
    row("hand-off among 64 tasks, likewise", "ns", 0.33, shared_beside_tokio("handoff", 64)),
    row("snapshot of 8 devices", "ns", 0.33, beside_tokio("snapshot")),
    row("allocations in a snapshot", "", 0.0, allocations, goal_is_ratio=False),
    row("memory of a waiter, of 100,000", "B", 128.0, memory, goal_is_ratio=False),
    row("wake of a parked thread (peer: futex)", "ns", 1.1, wake),
]
