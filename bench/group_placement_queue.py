# SPDX-License-Identifier: Apache-2.0
"""How long the jobs of the Philly trace wait, and whether any job starts later than promised.

All rows replay with `berth sim queue`: one pool of nodes of 8 GPUs. The peer lets every job that
fits go first (`--order skip`), which starves gangs. docs/FAIRNESS.md explains the estimates.
"""
import functools
import json
import subprocess
from pathlib import Path

from harness import ROUNDS, Row, Skipped, one_cpu

JOBS = Path(__file__).resolve().parent.parent.parent / "shared/data/queue/philly_jobs.csv"
ESTIMATES = {"exact": "", "over3": ", limits three times too long", "under": ", limits half of what is needed"}


def replay_again(build, nodes, order="easy", estimate="exact"):
    program = build / "berth"
    if not program.exists():
        raise Skipped("berth is not built")
    if not JOBS.exists():
        raise Skipped(f"no {JOBS.name}")
    command = [program, "sim", "queue", "--jobs", JOBS, "--nodes", nodes, "--gpus-per-node", 8]
    command += ["--order", order, "--estimate", estimate, "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


replay = functools.cache(replay_again)


def wait(member, nodes, estimate="exact"):
    """All rounds are equal: a replay always gives the same result."""

    def measure(build):
        ours = replay(build, nodes, "easy", estimate)["wait_s"][member]
        peer = replay(build, nodes, "skip", estimate)["wait_s"][member]
        return [ours] * ROUNDS, [peer] * ROUNDS

    return measure


def broken(estimate):
    def measure(build):
        found = replay(build, 90, "easy", estimate)
        if found["reservations"] == 0:
            raise RuntimeError("expected reservations, got none")
        return [found["broken_reservations"]] * ROUNDS, [replay(build, 90, "skip", estimate)["broken_reservations"]] * ROUNDS

    return measure


def seconds(build):
    with one_cpu():
        return [replay_again(build, 90)["seconds"] for _ in range(ROUNDS)], None


def wait_row(what, member, nodes, goal, estimate="exact"):
    name = f"{what} of the Philly jobs on {nodes} nodes{ESTIMATES[estimate]} (peer: skip)"
    return Row(name, "placement", "s", goal, "lower", wait(member, nodes, estimate), goal_is_ratio=False)


ROWS = [
    *(wait_row("mean wait", "mean", 90, 2_400, estimate) for estimate in ESTIMATES),
    *(wait_row("longest wait", "max", 90, 80_000, estimate) for estimate in ESTIMATES),
    *(
        Row(
            f"broken reservations on 90 nodes{note} (peer: skip)",
            "placement",
            "",
            0,
            "lower",
            broken(estimate),
            goal_is_ratio=False,
        )
        for estimate, note in ESTIMATES.items()
    ),
    wait_row("longest wait", "max", 70, 620_000),
    Row("replay of the Philly jobs on 90 nodes", "placement", "s", 10, "lower", seconds),
]
