# SPDX-License-Identifier: Apache-2.0
"""One user floods the history with short leases: the file stays small, and other users lose nothing."""
import json
import sqlite3

import wire
from lease_history import check_sound, rows
from other_users import acting_as
from steps import test_steps
from waiting import until

QUIET, FLOOD = 61001, 61002
MIB = 1 << 20
LIMIT = 16 * MIB
CLAIMS = 3000
QUIET_LEASES = 20
# Records of earlier days that fill the file.
OLD = 30000
# The records of a user within two minutes: 60 single leases, 60 sums and a rest for each.
RECORDS = 2 * (60 + 60 + 1)
# They and the log, which is written back at 4 MiB.
GROWTH = 6 * MIB


def file_of(machine):
    return machine.socket.with_suffix(".history")


def size_of(machine):
    """Return the size of the file and its log."""
    file = file_of(machine)
    return sum(path.stat().st_size for path in (file, file.with_name(file.name + "-wal")) if path.exists())


def churn(machine, uid, count, name, command):
    """Claim and release a device `count` times over one connection."""
    largest = 0
    with acting_as(uid):
        client = wire.connect(str(machine.socket))
    with client:
        for number in range(count):
            client.release(client.claim({"name": f"{name}{number}"}, command=command)["id"])
            if number % 100 == 0:
                largest = max(largest, size_of(machine))
    return largest


def leases_of(machine, uid):
    """Return how many leases of this user `report` counts."""
    done = machine.berth(0, "report", "--json")
    assert done.code == 0, done
    return {row["key"]: row["leases"] for row in json.loads(done.stdout)["rows"]}.get(str(uid), 0)


def fill(file):
    """Add ended leases of the flooding user, which are newer than those of the quiet one."""
    with sqlite3.connect(file) as database:
        newest = database.execute("SELECT max(ended) FROM lease").fetchone()[0]
        values = ((10**9 + n, f"old {n:0200}", str(FLOOD), FLOOD, "x" * 256, newest + n) for n in range(OLD))
        database.executemany(
            "INSERT INTO lease (pool, id, name, user, uid, command, devices, share, claimed, granted, ended, end)"
            " VALUES (1, ?, ?, ?, ?, ?, 'nvidia0', 1000000, ?6, ?6, ?6, 'released')",
            values,
        )
    database.close()


def test_churn_is_summed(shared_machine_of):
    machine = shared_machine_of(2)
    machine.open()
    wanted = test_steps(CLAIMS, 5 * CLAIMS)
    churn(machine, QUIET, QUIET_LEASES, "quiet ", "python train.py")
    until(lambda: leases_of(machine, QUIET) == QUIET_LEASES, "the quiet user's leases")
    before = size_of(machine)
    churn(machine, FLOOD, wanted, "n" * 200, "x" * 4000)
    until(lambda: leases_of(machine, FLOOD) == wanted, lambda: f"{leases_of(machine, FLOOD)} of {wanted} leases")
    grown = size_of(machine) - before
    print(f"{wanted} claims: the history grew by {grown} bytes")
    assert grown < GROWTH
    file = file_of(machine)
    check_sound(file)
    records = rows(file, f"SELECT * FROM lease WHERE uid = {FLOOD}")
    assert len(records) <= RECORDS
    assert max(len(record["command"] or "") for record in records) <= 256
    # One sum has the many names.
    assert any(record["name"] is None and record["leases"] > 100 for record in records)
    listed = machine.berth(0, "history").stdout
    assert " leases" in listed


def test_oldest_leases_of_the_flood_go_first(shared_machine_of):
    machine = shared_machine_of(2)
    machine.open(f"history_size: {LIMIT // MIB}MiB\n")
    churn(machine, QUIET, QUIET_LEASES, "quiet ", "python train.py")
    until(lambda: leases_of(machine, QUIET) == QUIET_LEASES, "the quiet user's leases")
    machine.close()
    file = file_of(machine)
    fill(file)
    assert size_of(machine) > LIMIT
    machine.open(f"history_size: {LIMIT // MIB}MiB\n")
    churn(machine, FLOOD, 10, "first ", "x")
    until(lambda: size_of(machine) <= LIMIT, lambda: f"at most {LIMIT} bytes, not {size_of(machine)}", timeout=30)
    assert churn(machine, FLOOD, test_steps(CLAIMS // 3, CLAIMS), "n" * 200, "x" * 4000) <= LIMIT
    until(lambda: rows(file, "SELECT count(*) AS n FROM lease WHERE name IS NULL")[0]["n"] > 0, "the flood's last leases")
    assert size_of(machine) <= LIMIT
    assert len(rows(file, f"SELECT * FROM lease WHERE uid = {QUIET}")) == QUIET_LEASES
    kept = [row["name"] for row in rows(file, "SELECT name FROM lease WHERE name LIKE 'old %' ORDER BY id")]
    # The flood's newest old leases are there, its oldest are not.
    assert 1000 < len(kept) < OLD
    assert kept[0] != f"old {0:0200}" and kept[-1] == f"old {OLD - 1:0200}"
    check_sound(file)
