# SPDX-License-Identifier: Apache-2.0
"""Measuring side by side: rows, rounds, ratios, the table and its JSON.

A row is measured in rounds, berth's and the peer's in turn, because times change with the machine
while the ratio of neighbouring rounds hardly does. The result is the median of the rounds' ratios.
"""
import contextlib
import dataclasses
import importlib.util
import os
import statistics
import sys
from pathlib import Path
from typing import Callable, Optional

ROUNDS = 7


class Skipped(Exception):
    """Raised by a row that cannot be measured here; the message gives the reason."""


@dataclasses.dataclass(frozen=True)
class Row:
    """`measure(build)` returns two lists of the same length, with berth's value and the peer's
    value for each round. A row without a peer returns None for the second; its goal is then in
    its unit, not a ratio. If `goal_is_ratio` is false, the goal is also in the unit, and the peer
    is only shown. If `near` is true, the goal is the largest difference from the peer, in the
    unit. `better` is "lower" or "higher". `middle` computes the value for all rounds."""

    name: str
    group: str
    unit: str
    goal: float
    better: str
    measure: Callable
    goal_is_ratio: bool = True
    near: bool = False
    middle: Callable = statistics.median


@dataclasses.dataclass
class Outcome:
    """One line of the table. Without a ratio, the goal is in the unit."""

    name: str
    group: str
    ours: Optional[float]
    peer: Optional[float]
    unit: str
    ratio: Optional[float]
    goal: float
    better: str
    met: Optional[bool]
    spread: Optional[float]
    skipped: Optional[str]
    goal_is_ratio: bool = True  # not in the JSON
    near: bool = False  # likewise

    def as_json(self):
        fields = dataclasses.asdict(self)
        del fields["goal_is_ratio"], fields["near"]
        return fields


@contextlib.contextmanager
def one_cpu():
    """Pin this process and its children: moving between CPUs would cost more than the measured
    operation."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def interleave(ours, peer, rounds=ROUNDS):
    """Call both once in each round, in the other order every second round. Return the two lists."""
    values = ([], [])
    for number in range(rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            values[side].append((ours, peer)[side]())
    return values


def spread_of(values):
    """Return the distance of the quartiles divided by the median, or undivided if the median is
    0."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / (middle or 1.0)


def is_met(value, goal, better):
    return value <= goal if better == "lower" else value >= goal


def judge(row, ours, peer):
    """Return the outcome of a row from its rounds."""
    if len(ours) < ROUNDS or (peer is not None and len(peer) != len(ours)):
        raise ValueError(f"{row.name}: expected {ROUNDS} rounds or more of each, got {len(ours)}")
    ratios = ratio = None
    if peer is not None and row.goal_is_ratio and not row.near:
        ratios = [one / other for one, other in zip(ours, peer)]
        ratio = statistics.median(ratios)
    mine = row.middle(ours)
    theirs = None if peer is None else row.middle(peer)
    judged = abs(mine - theirs) if row.near else mine if ratio is None else ratio
    return Outcome(
        name=row.name,
        group=row.group,
        ours=mine,
        peer=theirs,
        unit=row.unit,
        ratio=ratio,
        goal=row.goal,
        better=row.better,
        met=is_met(judged, row.goal, row.better),
        spread=spread_of(ours if ratios is None else ratios),
        skipped=None,
        goal_is_ratio=ratio is not None,
        near=row.near,
    )


def measure(row, build):
    try:
        ours, peer = row.measure(build)
    except Skipped as reason:
        fields = (None, None, row.unit, None, row.goal, row.better, None, None, str(reason))
        return Outcome(row.name, row.group, *fields, row.goal_is_ratio, row.near)
    return judge(row, ours, peer)


def figure(value):
    return "-" if value is None else f"{value:.4g}"


def cells(outcome):
    sign = "within" if outcome.near else "<=" if outcome.better == "lower" else ">="
    unit_of_goal = "x" if outcome.goal_is_ratio and not outcome.near else f" {outcome.unit}"
    if outcome.skipped:
        verdict = f"skipped: {outcome.skipped}"
    else:
        verdict = "met" if outcome.met else "missed"
    return (
        outcome.name,
        f"{figure(outcome.ours)} {outcome.unit}".rstrip(),
        f"{figure(outcome.peer)} {outcome.unit}" if outcome.peer is not None else "-",
        f"{outcome.ratio:.2f}x" if outcome.ratio is not None else "-",
        f"{outcome.spread:.0%}" if outcome.spread is not None else "-",
        f"{sign} {outcome.goal:g}{unit_of_goal}".rstrip(),
        verdict,
    )


def table(outcomes):
    """Return the aligned lines of the table, with figures to the right."""
    rows = [("what", "ours", "peer", "ratio", "spread", "goal", "")] + [cells(o) for o in outcomes]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1])]
        lines.append("  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip())
    return lines


def load_rows(directory):
    """Return the rows of every group_*.py in a directory, in the order of the file names."""
    rows = []
    sys.path.insert(0, str(directory))
    for path in sorted(Path(directory).glob("group_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        rows += module.ROWS
    return rows
