# SPDX-License-Identifier: Apache-2.0
"""berth report: use by user, job name and device."""
import csv
import io
import json
import sqlite3

import pytest
from lease_history import file_of, report, until_past

HOUR = 3600 * 10**9
# 2026-11-01 00:00 UTC.
START = 1793491200 * 10**9


@pytest.fixture
def known(pool):
    """Return a function that runs berth report on a history, which the test writes with times in
    hours after START."""
    assert pool.berth("run", "true").code == 0
    until_past(pool, 1)
    pool.end_daemon()
    file = pool.sandbox.directory / "known.db"
    # The schema is the recorder's.
    with sqlite3.connect(file_of(pool)) as source, sqlite3.connect(file) as database:
        source.backup(database)
        database.execute("DELETE FROM lease")
        for identity, user, name, devices, share, claimed, granted, ended, judged, idle in (
            (1, "ann", "train", "nvidia0,nvidia1", 1.0, 0, 1, 3, 4, 1),
            (2, "bob", None, "nvidia2", 0.5, 1, 1, 5, 0, 0),
            (3, "ann", "eval", "nvidia0", 1.0, 3, 5, 6, 1, 1),
            (4, "=eve", "train", "nvidia3", 0.25, 2, 2, 3, 0, 0),
        ):
            times = [START + hours * HOUR for hours in (claimed, granted, ended)]
            database.execute(
                "INSERT INTO lease (pool, id, user, uid, name, devices, share, claimed, granted, ended, end, judged,"
                " idle) SELECT number, ?, ?, 1, ?, ?, ?, ?, ?, ?, 'died', ?, ? FROM pool",
                (identity, user, name, devices, int(share * 10**6), *times, judged * HOUR, idle * HOUR),
            )

    def ask(*options):
        return report(pool, "--file", file, *options)

    ask.file = file
    ask.pool = pool
    return ask


def figures(document):
    return {
        row["key"]: (row["leases"], row["gpu_hours"], row["waited_s"] / 3600, row["idle_share"])
        for row in document["rows"]
    }


def test_by_user(known):
    document = known()
    assert document["by"] == "user"
    assert figures(document) == {"ann": (2, 5, 3, 0.4), "bob": (1, 2, 0, None), "=eve": (1, 0.25, 0, None)}
    assert document["total"] == {"leases": 4, "gpu_hours": 7.25, "waited_s": 10800, "idle_share": 0.4}
    assert [row["key"] for row in document["rows"]] == ["ann", "bob", "=eve"]


def test_by_name_and_device(known):
    assert figures(known("--by", "name")) == {
        "train": (2, 4.25, 1, 0.25),
        None: (1, 2, 0, None),
        "eval": (1, 1, 2, 1),
    }
    by_device = figures(known("--by", "device"))
    assert by_device == {
        "nvidia0": (2, 3, 3, 0.4),
        "nvidia1": (1, 2, 1, 0.25),
        "nvidia2": (1, 2, 0, None),
        "nvidia3": (1, 0.25, 0, None),
    }


def test_only_what_is_inside(known):
    assert figures(known("--since", "2026-11-01T02:00Z", "--until", "2026-11-01T02:30Z")) == {
        "ann": (1, 1, 0, 0.25),
        "bob": (1, 0.25, 0, None),
        "=eve": (1, 0.125, 0, None),
    }
    assert figures(known("--until", "2026-11-01T00:30Z")) == {}
    whole = known()["total"]["gpu_hours"]
    parts = [
        known("--until", "2026-11-01T02:17Z")["total"]["gpu_hours"],
        known("--since", "2026-11-01T02:17Z")["total"]["gpu_hours"],
    ]
    assert sum(parts) == pytest.approx(whole, abs=1e-5)


def test_conditions(known):
    assert figures(known("--user", "ann", "--name", "eval")) == {"ann": (1, 1, 2, 1)}
    assert figures(known("--device", "nvidia3")) == {"=eve": (1, 0.25, 0, None)}


def test_table(known):
    done = known.pool.berth("report", "--file", known.file)
    assert done.stdout == (
        "USER     LEASES  GPU-HOURS  WAITED  IDLE\n"
        "ann           2       5.00      3h   40%\n"
        "bob           1       2.00      0s     -\n"
        "=eve          1       0.25      0s     -\n"
        "(total)       4       7.25      3h   40%\n"
    )
    one = known.pool.berth("report", "--file", known.file, "--user", "bob").stdout
    assert one == "USER  LEASES  GPU-HOURS  WAITED\nbob        1       2.00      0s\n"


def test_spreadsheet(known):
    text = known.pool.berth("report", "--file", known.file, "--csv").stdout
    assert list(csv.reader(io.StringIO(text))) == [
        ["user", "leases", "gpu_hours", "waited_s", "idle_share"],
        ["ann", "2", "5", "10800", "0.4"],
        ["bob", "1", "2", "0", ""],
        ["'=eve", "1", "0.25", "0", ""],
    ]


def test_real_leases(pool):
    """The report of the pool adds up to the durations of its leases."""
    for number in range(3):
        assert pool.berth("run", "-n2", "--name", f"job {number % 2}", "sleep", "0.1").code == 0
    leases = until_past(pool, 3)
    document = report(pool, "--by", "name")
    assert {row["key"]: row["leases"] for row in document["rows"]} == {"job 0": 2, "job 1": 1}
    held = sum(lease["held_s"] * len(lease["devices"]) for lease in leases)
    assert document["total"]["gpu_hours"] * 3600 == pytest.approx(held, abs=0.05)
    assert report(pool, "--since", "1h")["total"] == document["total"]


def test_wrong_words(pool):
    done = pool.berth("report", "--by", "colour")
    assert done.code == 2
    assert "expected user, name or device" in done.stderr or "user, name, device" in done.stderr
    assert pool.berth("report", "-n", "3").code == 2


def test_documents_are_lines_of_json(pool):
    assert json.loads(pool.berth("report", "--json").stdout)["rows"] == []
