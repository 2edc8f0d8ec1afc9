# SPDX-License-Identifier: Apache-2.0
"""The arithmetic and the output of bench/run, with made-up rows."""
import importlib
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

GROUP = """
from harness import Row, Skipped
def skip(build):
    raise Skipped("no peer here")
def fail(build):
    raise RuntimeError("broken")
ROWS = [
    Row("fast", "alpha", "ns", 0.5, "lower", lambda build: ([2.0] * 7, [8.0] * 7)),
    Row("slow", "alpha", "ns", 0.5, "lower", lambda build: ([8.0] * 7, [8.0] * 7)),
    Row("absent", "beta", "ns", 1.0, "lower", skip),
    %s
]
"""


@pytest.fixture
def harness(source_root, monkeypatch):
    monkeypatch.syspath_prepend(str(source_root / "bench"))
    import harness as module

    return module


@pytest.fixture
def bench(source_root, tmp_path):
    """Run a copy of the harness with its own rows."""

    def run(*arguments, more=""):
        for name in ("run", "harness.py"):
            (tmp_path / name).write_bytes((source_root / "bench" / name).read_bytes())
        (tmp_path / "group_made_up.py").write_text(GROUP % more, encoding="utf-8")
        command = [sys.executable, tmp_path / "run", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def row(harness, goal=1.0, better="lower"):
    return harness.Row("name", "group", "us", goal, better, None)


def test_ratio_is_the_median_of_the_rounds_ratios(harness):
    # The ratio of the medians would be 4 / 4; the median of the rounds' ratios is 2.
    ours, peer = [1, 2, 3, 4, 10, 20, 30], [4, 1, 1.5, 8, 5, 10, 1]
    outcome = harness.judge(row(harness), ours, peer)
    assert (outcome.ours, outcome.peer, outcome.ratio) == (4, 4, 2)
    assert outcome.met is False


def test_goal_is_met_at_the_goal(harness):
    assert harness.judge(row(harness, 2.0), [4] * 7, [2] * 7).met is True
    assert harness.judge(row(harness, 1.9), [4] * 7, [2] * 7).met is False
    assert harness.judge(row(harness, 2.0, "higher"), [4] * 7, [2] * 7).met is True
    assert harness.judge(row(harness, 2.1, "higher"), [4] * 7, [2] * 7).met is False


def test_spread_is_between_the_quartiles(harness):
    outcome = harness.judge(row(harness), [1, 2, 3, 4, 5, 6, 700], [1] * 7)
    assert outcome.spread == pytest.approx((5.5 - 2.5) / 4)


def test_row_without_a_peer(harness):
    outcome = harness.judge(row(harness, 20), [10] * 7, None)
    assert (outcome.peer, outcome.ratio, outcome.met) == (None, None, True)


def test_peer_beside_a_goal_that_is_no_ratio(harness):
    memory = harness.Row("memory", "group", "B", 128.0, "lower", None, goal_is_ratio=False)
    outcome = harness.judge(memory, [100] * 7, [10] * 7)
    assert (outcome.ours, outcome.peer, outcome.ratio, outcome.met) == (100, 10, None, True)
    assert harness.cells(outcome)[1:] == ("100 B", "10 B", "-", "0%", "<= 128 B", "met")
    assert "goal_is_ratio" not in outcome.as_json()


def test_near_the_peer(harness):
    near = harness.Row("fidelity", "group", "%", 0.3, "lower", None, near=True, middle=statistics.fmean)
    outcome = harness.judge(near, [90.0] * 6 + [93.5], [90.3] * 7)
    assert (outcome.ours, outcome.ratio, outcome.met) == (90.5, None, True)
    assert harness.cells(outcome)[1:] == ("90.5 %", "90.3 %", "-", "0%", "within 0.3 %", "met")
    assert harness.judge(near, [90.0] * 7, [90.4] * 7).met is False
    assert harness.judge(near, [90.8] * 7, [90.4] * 7).met is False
    assert "near" not in outcome.as_json()


def test_none_of_something(harness):
    none = harness.Row("allocations", "group", "", 0.0, "lower", None, goal_is_ratio=False)
    outcome = harness.judge(none, [0.0] * 7, None)
    assert harness.cells(outcome)[1:] == ("0", "-", "-", "0%", "<= 0", "met")
    outcome = harness.judge(none, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0], None)
    assert (outcome.met, outcome.spread) == (True, 1.0)


def test_too_few_rounds(harness):
    with pytest.raises(ValueError, match="expected 7 rounds"):
        harness.judge(row(harness), [1] * 6, [1] * 6)


def test_rounds_are_interleaved(harness):
    order = []
    ours, peer = harness.interleave(lambda: order.append("o") or 1, lambda: order.append("p") or 2, 4)
    assert (ours, peer) == ([1] * 4, [2] * 4)
    assert "".join(order) == "oppooppo"


def test_table(bench):
    done = bench()
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[1].split() == "fast 2 ns 8 ns 0.25x 0% <= 0.5x met".split()
    assert lines[2].endswith("missed")
    assert lines[3].endswith("skipped: no peer here")
    assert len({line.index(word) for line, word in zip(lines, ("goal", "0.5x", "0.5x", " 1x"))}) <= 2


def test_json(bench, tmp_path):
    bench("--out", tmp_path / "out.json", "--only", "alpha,beta")
    fast, _, absent = json.loads((tmp_path / "out.json").read_text())
    assert fast == {
        "name": "fast",
        "group": "alpha",
        "ours": 2.0,
        "peer": 8.0,
        "unit": "ns",
        "ratio": 0.25,
        "goal": 0.5,
        "better": "lower",
        "met": True,
        "spread": 0.0,
        "skipped": None,
    }
    assert absent["skipped"] == "no peer here"
    assert absent["met"] is absent["ratio"] is absent["ours"] is None


def test_only(bench):
    assert len(bench("--only", "beta").stdout.splitlines()) == 2


def test_unknown_group(bench):
    done = bench("--only", "gamma")
    assert done.returncode == 2
    assert done.stderr == "bench: no group gamma; there are: alpha, beta\n"


def test_row_that_breaks(bench):
    done = bench(more='Row("bad", "beta", "ns", 1.0, "lower", fail),')
    assert done.returncode == 1
    assert done.stderr == "bench: bad failed: broken\n"
    assert len(done.stdout.splitlines()) == 4


def test_real_rows_are_well_formed(harness, source_root):
    for real in harness.load_rows(source_root / "bench"):
        assert real.better in ("lower", "higher")
        assert real.goal >= 0


@pytest.mark.parametrize(
    ("group", "function"),
    [
        ("group_daemon", "client"),
        ("group_daemon", "ping_pong"),
        ("group_local", "ours"),
        ("group_placement_scan", "program"),
        ("group_placement_topology", "program"),
        ("group_web", "program"),
    ],
)
def test_programs_compile(harness, group, function):
    build = Path(os.environ["BERTH_BUILD_ROOT"])
    module = importlib.import_module(group)
    peers = importlib.import_module("peers")
    if any("-fsanitize" in str(word) for word in peers.compiler_command(build)):
        pytest.skip("benchmarks are built without sanitizers")
    program = getattr(module, function)(build)
    assert os.access(program, os.X_OK)
