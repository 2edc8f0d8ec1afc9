# SPDX-License-Identifier: Apache-2.0
"""berth sim queue: waits on a small trace, compared with an oracle's, and their output."""
import calendar
import csv
import json
import math
import re
import time

import pytest
import queue_oracle

HEADER = "timestamp,duration,num_gpus\n"


def sim(sandbox, *args, **options):
    return sandbox.run(["berth", "sim", "queue", *args], **options)


def document(sandbox, *args):
    done = sim(sandbox, *args, "--json", timeout=60)
    assert (done.code, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def small(source_root):
    return source_root / "tests/data/philly-small/jobs.csv"


def read_jobs(path):
    with open(path, encoding="utf-8") as file:
        return [
            (
                calendar.timegm(time.strptime(row["timestamp"], "%Y-%m-%d %H:%M:%S")),
                int(float(row["duration"])),
                int(row["num_gpus"]),
            )
            for row in csv.DictReader(file)
        ]


def percentile(waits, percent):
    return sorted(waits)[math.ceil(len(waits) * percent / 100) - 1]


@pytest.mark.parametrize("order", ["fifo", "easy", "skip", "sjf"])
@pytest.mark.parametrize("estimate, factor", [("exact", 1), ("over3", 3)])
def test_waits_are_the_oracles(sandbox, small, order, estimate, factor):
    waits = queue_oracle.Replay(read_jobs(small), 6, 8, order, factor).run()
    args = ["--jobs", small, "--nodes", 6, "--gpus-per-node", 8, "--policy", "first"]
    found = document(sandbox, *map(str, args), "--order", order, "--estimate", estimate)
    assert max(waits) > 0
    assert found["wait_s"] == {
        "mean": pytest.approx(sum(waits) / len(waits), abs=0.001),
        "p50": percentile(waits, 50),
        "p99": percentile(waits, 99),
        "max": max(waits),
    }
    assert (found["jobs"], found["nodes"], found["order"]) == (400, 6, order)
    if order in ("fifo", "easy"):
        assert found["broken_reservations"] == 0
    assert (found["reservations"] > 0) == (order != "fifo")


@pytest.mark.parametrize("policy", ["first", "pack", "spread", "random"])
def test_reservations_are_kept_when_limits_are_too_short(sandbox, small, policy):
    """Every job is ended at half of its time, and is queued again."""
    args = ["--jobs", str(small), "--nodes", "6", "--gpus-per-node", "8", "--policy", policy]
    found = document(sandbox, *args, "--estimate", "under")
    assert found["reservations"] > 50
    assert found["broken_reservations"] == 0


def test_broken_reservations_are_counted(sandbox, small):
    """An order that skips the queue without a check breaks the reservations that the engine would
    have made."""
    found = document(sandbox, "--jobs", str(small), "--nodes", "6", "--gpus-per-node", "8", "--order", "skip")
    assert found["broken_reservations"] > 0


def test_the_same_bytes_each_time(sandbox, small):
    args = ["--jobs", str(small), "--nodes", "6", "--gpus-per-node", "8", "--json"]
    first, second = (sim(sandbox, *args, timeout=60).stdout for _ in range(2))
    assert re.sub(r'"seconds": [\d.]+', "", first) == re.sub(r'"seconds": [\d.]+', "", second)
    assert list(json.loads(first)) == [
        "schema",
        "jobs",
        "nodes",
        "gpus_per_node",
        "order",
        "estimate",
        "policy",
        "wait_s",
        "reservations",
        "broken_reservations",
        "utilization",
        "seconds",
    ]
    assert json.loads(first)["schema"] == "berth.sim-queue/1"
    assert json.loads(first)["policy"] == "pack"


def test_rows_in_any_order_and_seconds_as_times(sandbox):
    """The second row arrives first, and the other job waits for it."""
    (sandbox.directory / "jobs.csv").write_text("num_gpus,note,timestamp,duration\n1,late,12.5,3\n1,early,10,4\n")
    found = document(sandbox, "--jobs", "jobs.csv", "--nodes", "1", "--gpus-per-node", "1")
    assert found["wait_s"] == {"mean": 0.75, "p50": 0, "p99": 1.5, "max": 1.5}
    assert found["utilization"] == 1


def test_a_table_for_people(sandbox):
    (sandbox.directory / "jobs.csv").write_text(HEADER + "2017-10-09 07:01:55,3600,1\n2017-10-09 07:01:55,60.0,1\n")
    done = sim(sandbox, "--jobs", "jobs.csv", "--nodes", "1", "--gpus-per-node", "1")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == (
        "ORDER  ESTIMATE  JOBS  GPUS  MEAN WAIT  MEDIAN  99 %  LONGEST  BROKEN   IN USE\n"
        "easy   exact        2   1x1        30m      0s    1h       1h       0  100.0 %\n"
    )


@pytest.mark.parametrize(
    "rows, message",
    [
        ("", "jobs.csv:2: expected at least one job, got none"),
        ("2017-10-09 07:01:55,66.0\n", "jobs.csv:2: "),
        ("2017-10-09 07:01:55,66.0,1\n2017-02-30 07:01:55,66.0,1\n", "jobs.csv:3: timestamp: expected a time"),
        ("2017-10-09,66.0,1\n", "jobs.csv:2: timestamp: expected a time (2017-10-09 07:01:55), got '2017-10-09'"),
        ("7:00,66.0,1\n", "jobs.csv:2: timestamp"),
        ("0,0.0,1\n", "jobs.csv:2: duration: expected more than 0, got '0.0'"),
        ("0,-5,1\n", "jobs.csv:2: duration"),
        ("0,nan,1\n", "jobs.csv:2: duration"),
        ("0,1e9,1\n", "jobs.csv:2: duration"),
        ("0,1,0\n", "jobs.csv:2: num_gpus"),
        ("0,1,1.5\n", "jobs.csv:2: num_gpus"),
        ("0,1,5\n", "jobs.csv:2: expected a job that fits on 1 nodes of 4 GPUs, got one with 5 GPUs"),
    ],
)
def test_bad_rows_are_refused(sandbox, rows, message):
    (sandbox.directory / "jobs.csv").write_text(HEADER + rows)
    done = sim(sandbox, "--jobs", "jobs.csv", "--nodes", "1", "--gpus-per-node", "4")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: sim queue: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args, message",
    [
        ([], "expected --jobs FILE, got none"),
        (["--jobs", "none.csv"], "expected --nodes N, got none"),
        (["--jobs", "none.csv", "--nodes", "0"], "--nodes: expected a whole number from 1 to 100000, got 0"),
        (["--jobs", "none.csv", "--nodes", "2"], "expected --gpus-per-node N, got none"),
        (["--jobs", "none.csv", "--nodes", "2", "--gpus-per-node", "2"], "cannot read none.csv: "),
        (["--jobs", "none.csv", "--nodes", "2", "--gpus-per-node", "2", "--policy", "best"], "--policy: "),
        (["--order", "lifo"], "--order: "),
        (["--estimate", "over"], "--estimate: "),
    ],
)
def test_wrong_usage(sandbox, args, message):
    done = sim(sandbox, *args)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: sim queue: {message}"), done.stderr
