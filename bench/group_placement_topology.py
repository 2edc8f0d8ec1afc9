# SPDX-License-Identifier: Apache-2.0
"""Which connected devices are chosen, compared with the vendors' own allocators, and how long that
takes."""
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import ROUNDS, Row, Skipped, one_cpu
from peers import compiled_with_components, number

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parents[1] / "shared/data/topology"
sys.path.insert(0, str(HERE.parent / "tests/support/oracles"))

import vendor_cases  # noqa: E402


@functools.lru_cache(maxsize=None)
def all_cases():
    """Return the cases with their inventories, or none if one of the files is missing."""
    found = []
    for vendor, read in vendor_cases.READERS.items():
        file = RECORDED / f"{vendor}.json"
        if not file.exists():
            return []
        machines, cases = read(file)
        found += [(case, machines[case.machine]) for case in cases]
    return found


def is_matched(build, directory, case, inventory):
    path = Path(directory) / f"{case.machine}.yaml"
    path.write_text(inventory, encoding="utf-8")
    arguments = vendor_cases.plan_arguments(case, inventory)
    done = subprocess.run(
        [build / "berth", "plan", "--inventory", path, *arguments],
        stdout=subprocess.PIPE,
        check=False,
    )
    return vendor_cases.is_matched(case, json.loads(done.stdout))


def matched(build):
    if not all_cases():
        raise Skipped("no topology/nvidia.json or topology/amd.json")
    if not (build / "berth").exists():
        raise Skipped("berth is not built")
    with tempfile.TemporaryDirectory() as directory:
        count = sum(is_matched(build, directory, *case) for case in all_cases())
    return [count] * ROUNDS, None  # a count has no spread


def program(build):
    return compiled_with_components(build, ("engine", "codec", "model", "base"), "topology.c")


def worst(build):
    topology = program(build)
    with one_cpu():
        return [number(topology) for _ in range(ROUNDS)], None


def row(name, unit, goal, better, measure):
    return Row(name, "placement", unit, goal, better, measure, goal_is_ratio=False)


ROWS = [
    row("vendor allocator cases matched", "cases", float(len(all_cases()) or 1), "higher", matched),
    row("worst request over 64 devices", "ms", 50.0, "lower", worst),
]
