# SPDX-License-Identifier: Apache-2.0
"""Past leases, from berth's commands and from the history file."""
import json
import os
import sqlite3

import processes
from programs import TIMEOUT
from waiting import until


def configure(pool, text):
    """Writes the configuration that the sandbox's own daemon reads when it starts."""
    directory = pool.sandbox.home / ".config/berth"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "berth.yaml").write_text(text)


def history(pool, *options):
    """Returns the leases of `berth history --json`, the newest first."""
    done = pool.berth("history", "--json", *options)
    assert (done.code, done.stderr) == (0, ""), done
    document = json.loads(done.stdout)
    assert document["schema"] == "berth.history/1"
    return document["leases"]


def report(pool, *options):
    done = pool.berth("report", "--json", *options)
    assert (done.code, done.stderr) == (0, ""), done
    document = json.loads(done.stdout)
    assert document["schema"] == "berth.report/1"
    return document


def count_ended(leases):
    """Returns how many ended leases these records stand for."""
    return sum(lease["leases"] for lease in leases if lease["ended_at"] is not None)


def until_past(pool, count, *options, timeout=TIMEOUT):
    """Waits until this many leases have ended, and returns all leases."""

    def found():
        leases = history(pool, *options)
        return leases if count_ended(leases) >= count else None

    return until(found, lambda: f"{count} ended leases in {history(pool, *options)}", timeout)


def recorders(pool):
    """Returns the process ids of this pool's recorders."""
    found = []
    for pid, zombie in processes.descendants(os.getpid()):
        words = processes.command_line(pid).split(" ")
        if not zombie and words[0].endswith("berth-recorder") and str(pool.sandbox.directory) in " ".join(words):
            found.append(pid)
    return found


def the_recorder(pool):
    """Waits for the recorder, and returns its process id."""
    return until(lambda: recorders(pool), "a recorder")[0]


def file_of(pool):
    return pool.directory / "berth.history"


def rows(path, question="SELECT * FROM lease ORDER BY id"):
    """Returns the rows of a query as dictionaries. Opens the file as any other program can."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    database.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in database.execute(question)]
    finally:
        database.close()


def check_sound(path):
    """Checks that the file is valid and has no lease twice."""
    assert rows(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    assert rows(path, "SELECT pool, id, count(*) AS times FROM lease GROUP BY pool, id HAVING times > 1") == []


def problems(pool):
    """Returns the problems with the history that `berth status` shows."""
    done = pool.berth("status", "--json")
    assert done.code == 0, done
    return [entry["message"] for entry in json.loads(done.stdout)["problems"] if entry["backend"] == "history"]
