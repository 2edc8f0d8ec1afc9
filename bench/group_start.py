# SPDX-License-Identifier: Apache-2.0
"""The cost of starting a berth command."""
import os
import time

from harness import Row, Skipped, interleave, one_cpu
from peers import compiled

SPAWNS = 100


def spawn_time(command, output):
    """Return the mean microseconds from the start of a command to its end, over many starts."""
    redirect = [(os.POSIX_SPAWN_DUP2, output, 1)]
    begin = time.perf_counter_ns()
    for _ in range(SPAWNS):
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=redirect)
        if os.waitpid(pid, 0)[1] != 0:
            raise RuntimeError(f"{' '.join(command)} failed")
    return (time.perf_counter_ns() - begin) / SPAWNS / 1000


def start(build):
    berth = build / "berth"
    if not berth.exists():
        raise Skipped("berth is not built")
    ours = [str(berth), "--version"]
    peer = [str(compiled(build, "peers/nothing.c"))]
    with one_cpu(), open(os.devnull, "wb") as null:
        for command in (ours, peer):  # the first starts read the files from disk
            spawn_time(command, null.fileno())
        return interleave(
            lambda: spawn_time(ours, null.fileno()), lambda: spawn_time(peer, null.fileno()), rounds=15
        )


ROWS = [Row("start of a berth command", "start", "us", 1.5, "lower", start)]
