# SPDX-License-Identifier: Apache-2.0
"""How well and how fast policies fill the cluster of the openb traces, compared with published
figures.

The published figures are the means over ten seeds of hkust-adsl/kubernetes-scheduler-simulator.
All rows replay with `berth sim place`; docs/PLACEMENT.md explains how.
"""
import concurrent.futures
import functools
import json
import statistics
import subprocess
from pathlib import Path

from harness import Row, Skipped, one_cpu

DATA = Path(__file__).resolve().parent.parent.parent / "shared/data/openb"
NODES = "openb_node_list_gpu_node.csv"

# Allocated GPUs in % on the default trace, when 100 % have been requested.
PUBLISHED_DEFAULT = {
    "random": 86.30,
    "dotprod": 90.62,
    "clustering": 91.65,
    "packing": 91.78,
    "bestfit": 92.86,
    "fgd": 95.23,
}
# FGD on each trace, when 130 % have been requested.
PUBLISHED_FGD = {
    "cpu050": 95.21,
    "cpu200": 95.05,
    "default": 95.39,
    "gpushare100": 86.90,
    "gpushare40": 94.15,
    "gpuspec10": 94.95,
    "gpuspec33": 94.55,
    "multigpu20": 95.65,
    "multigpu50": 97.18,
}
FIRST_FIT = 94.0  # about

NEAR = 0.3
LOWER_AT_MOST = 0.2
TIMED_SEEDS = range(100, 109)


def trace_file(name):
    path = DATA / name
    if not path.exists():
        raise Skipped(f"no {name}")
    return path


def replay(build, trace, policy, first, last, *options):
    """Return the runs of these seeds."""
    program = build / "berth"
    if not program.exists():
        raise Skipped("berth is not built")
    command = [program, "sim", "place", "--nodes", trace_file(NODES), "--json", "--policy", policy]
    command += ["--pods", trace_file(f"openb_pod_list_{trace}.csv"), "--seeds", f"{first}-{last}", *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["runs"]


@functools.cache
def qualities(build, trace, policy, first, last, *options):
    """Return the same runs, computed by two processes: their results do not depend on their speed."""
    middle = (first + last) // 2
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        halves = both.map(
            lambda part: replay(build, trace, policy, *part, *options), [(first, middle), (middle + 1, last)]
        )
        return [run for half in halves for run in half]


def allocated(build, trace, policy, first, last, demand, *options):
    return [run["allocated"][demand] for run in qualities(build, trace, policy, first, last, *options)]


def fidelity(policy, published, *options):
    def measure(build):
        ours = allocated(build, "default", policy, 42, 51, "100", *options)
        return ours, [published] * len(ours)

    return measure


def fidelity_row(policy, published, near, note="", *options):
    name = f"{policy} on default at 100 %, seeds 42-51{note}"
    return Row(
        name, "placement", "%", near, "lower", fidelity(policy, published, *options), near=True, middle=statistics.fmean
    )


def quality_row(name, goal, published, measure):
    """`measure` returns a value for each seed."""

    def both(build):
        ours = measure(build)
        return ours, [published] * len(ours)

    return Row(name, "placement", "%", goal, "higher", both, goal_is_ratio=False, middle=statistics.fmean)


def frag_at_130(build, trace):
    return allocated(build, trace, "frag", 100, 109, "130")


def frag_row(trace, published):
    name = f"frag on {trace} at 130 %, seeds 100-109 (peer: FGD)"
    return quality_row(name, round(published - LOWER_AT_MOST, 2), published, lambda build: frag_at_130(build, trace))


def differences(build):
    """Return the differences from published FGD, by trace."""
    return [statistics.fmean(frag_at_130(build, trace)) - PUBLISHED_FGD[trace] for trace in PUBLISHED_FGD]


def share_above(build):
    above = differences(build)
    return [100 * sum(difference >= 0 for difference in above) / len(above)] * len(above), None


def worst_below(build):
    return [max(0.0, -min(differences(build)))] * len(PUBLISHED_FGD), None


def timed(member):
    """Return `member` of each run; the runs are sequential, on one CPU."""

    def measure(build):
        with one_cpu():
            runs = [replay(build, "default", "frag", seed, seed)[0] for seed in TIMED_SEEDS]
        return [member(run) for run in runs], None

    return measure


ROWS = [
    *(fidelity_row(policy, PUBLISHED_DEFAULT[policy], NEAR) for policy in ("random", "dotprod", "bestfit", "fgd")),
    *(
        fidelity_row(policy, PUBLISHED_DEFAULT[policy], NEAR, ", ties drawn", "--ties", "seed")
        for policy in ("clustering", "packing", "fgd")
    ),
    fidelity_row("first", FIRST_FIT, 0.5, " (peer: about)"),
    quality_row(
        "frag on default at 100 %, seeds 100-119 (peer: FGD)",
        95.5,
        PUBLISHED_DEFAULT["fgd"],
        lambda build: allocated(build, "default", "frag", 100, 119, "100"),
    ),
    *(frag_row(trace, published) for trace, published in PUBLISHED_FGD.items()),
    Row("traces on which frag is at or above FGD", "placement", "%", 80, "higher", share_above),
    Row("frag below FGD on the worst trace", "placement", "points", LOWER_AT_MOST, "lower", worst_below),
    Row("replay of the default trace with frag", "placement", "s", 0.15, "lower", timed(lambda run: run["seconds"])),
    Row("p99 of its decisions", "placement", "us", 100, "lower", timed(lambda run: run["decision_us"]["p99"])),
]
