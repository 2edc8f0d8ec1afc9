# SPDX-License-Identifier: Apache-2.0
"""berth history: every lease and how it ended, as a table, JSON or CSV."""
import csv
import io
import os
import platform
import re
import signal
import sqlite3
import time

import pytest
import wire
from daemons import start_asked_for
from lease_history import configure, file_of, history, recorders, rows, the_recorder, until_past
from pool import HOLD, until_held
from users import user_name
from waiting import until, until_pending

SECOND = 10**9
# Since Linux 6.15 the kernel reports how a process ended even after its parent has waited for it.
KERNEL_REMEMBERS = [int(part) for part in re.findall(r"\d+", platform.release())[:2]] >= [6, 15]
HOSTILE = ["<b>&\"'", "=HYPERLINK(\"x\")", "'; DROP TABLE lease; --", "a,b;c\td", "\u202eabc", "\x1b[31mred"]


def connect(pool):
    assert pool.berth("status").code == 0
    return wire.connect(str(pool.socket))


def by_name(leases):
    return {lease["name"]: lease for lease in leases}


def test_command_that_ended(pool):
    with pool.start("run", "-n2", "--name", "one", "sh", "-c", "exit 3") as program:
        (lease,) = until_past(pool, 1)
        assert program.wait() == 3
    assert lease["name"] == "one"
    assert (lease["user"], lease["uid"]) == (user_name(), os.geteuid())
    assert lease["command"] == "sh -c exit 3"
    assert lease["devices"] == ["nvidia0", "nvidia1"]
    assert lease["share"] == 1
    assert lease["waited_s"] == 0 and lease["held_s"] < 10
    assert lease["claimed_at"] <= lease["granted_at"] <= lease["ended_at"]
    assert (lease["end"], lease["exit_code"]) == ("died", 3)


@pytest.mark.parametrize("number, code", [(None, 0), (signal.SIGKILL, 137), (signal.SIGTERM, 143)])
def test_command_that_was_waited_for_already(pool, number, code):
    """berth run becomes the command, and the command's parent waits for it. The daemon still
    learns from the kernel how it ended."""
    if not KERNEL_REMEMBERS:
        pytest.skip("Linux before 6.15 reports the exit code only to the parent")
    holder = pool.hold("--name", "one")
    (daemon,) = pool.daemons()
    os.kill(daemon, signal.SIGSTOP)
    if number is None:
        pool.let_go(holder)
    else:
        os.kill(holder.pid, number)
        assert holder.wait() == -number
    os.kill(daemon, signal.SIGCONT)
    (lease,) = until_past(pool, 1)
    assert (lease["end"], lease["exit_code"]) == ("died", code)
    assert pool.berth("wait", holder.lease).code == code


def test_how_leases_end(pool_of):
    """The file has one lease for each kind of end."""
    pool = pool_of(4)
    assert pool.berth("run", "--name", "supervised", "--time", "1h", "sh", "-c", "exit 7").code == 7
    assert pool.berth("run", "--name", "late", "--time", "1s", "sleep", "100").code == 124
    killed = pool.hold("--name", "killed")
    os.kill(killed.pid, signal.SIGKILL)
    reserved = pool.berth("reserve", "--for", "1h", "--name", "reserved").stdout.strip()
    assert pool.berth("release", reserved).code == 0
    with connect(pool) as client:
        client.release(client.claim({"name": "given back"})["id"], exit_code=0)
        client.release(client.claim({"name": "without code"})["id"])
        client.claim({"name": "hung up"})
    helper = pool.start("run", "--name", "helper", "--opportunistic", "-n4", "--", "sh", "-c", "echo up; exec sleep 100")
    helper.wait_for_line("^up$")
    assert pool.berth("run", "--name", "took its place", "true").code == 0
    helper.wait()
    ends = {name: (lease["end"], lease["exit_code"]) for name, lease in by_name(until_past(pool, 9)).items()}
    killed.wait()
    assert ends == {
        "supervised": ("released", 7),
        "late": ("expired", ends["late"][1]),
        "killed": ("died", 137),
        "reserved": ("stopped", None),
        "given back": ("released", 0),
        "without code": ("released", None),
        "hung up": ("died", None),
        "helper": ("revoked", ends["helper"][1]),
        "took its place": ("died", 0 if KERNEL_REMEMBERS else ends["took its place"][1]),
    }


def test_waiting_is_told(pool_of):
    pool = pool_of(1)
    holder = pool.hold("--name", "first")
    with pool.start("run", "--name", "second", "true") as waiting:
        until_pending(pool, 1)
        seen = time.monotonic()
        until(lambda: time.monotonic() > seen + 0.05, "a measurable wait")
        pool.let_go(holder)
        assert waiting.wait() == 0
    leases = by_name(until_past(pool, 2))
    assert leases["first"]["waited_s"] == 0
    assert leases["second"]["waited_s"] >= 0.05


def test_what_is_held_is_there_too(pool):
    holder = pool.hold("--name", "now", "--sharing", "time-slice", "--share", "0.25")
    (lease,) = until(lambda: history(pool), "the lease")
    assert (lease["name"], lease["ended_at"], lease["end"], lease["share"]) == ("now", None, None, 0.25)
    assert "held" in pool.berth("history").stdout
    pool.let_go(holder)
    assert until_past(pool, 1)[0]["id"] == lease["id"]


def test_leases_within_leases(pool):
    inner = 'berth run --name inner true; berth run --name "inner too" sleep 100 & while ! test -e go; do sleep 0.01; done'
    (pool.sandbox.directory / "go").touch()
    assert pool.berth("run", "-n2", "--name", "outer", "sh", "-c", inner).code == 0
    leases = by_name(until_past(pool, 2))
    assert leases["inner"]["parent"] == leases["outer"]["id"]
    assert leases["outer"]["parent"] is None


def test_conditions(pool):
    jobs = (("train-1", ["-n2"]), ("Train-2", ["--device", "nvidia5"]), ("eval", ["--device", "nvidia5"]))
    for count, (name, options) in enumerate(jobs, 1):
        assert pool.berth("run", "--name", name, *options, "true").code == 0
        until_past(pool, count)  # no two of them share a millisecond

    def names(*options):
        return [lease["name"] for lease in history(pool, *options)]

    assert names() == ["eval", "Train-2", "train-1"]
    assert names("-n", "1") == ["eval"]
    assert names("--name", "train") == ["Train-2", "train-1"]
    assert names("--device", "nvidia5") == ["eval", "Train-2"]
    assert names("--device", "nvidia1", "--name", "rain") == ["train-1"]
    assert names("--user", user_name()) == names("--user", str(os.geteuid())) == names()
    assert names("--user", "nobody-of-this-name") == []
    assert names("--since", "1h") == names()
    assert names("--until", "1h") == []
    assert names("--since", "2000-01-01", "--until", "2001-01-01") == []
    middle = [lease for lease in history(pool) if lease["name"] == "Train-2"][0]
    assert names("--since", middle["granted_at"])[0] == "eval"
    assert "train-1" not in names("--since", middle["granted_at"])


def test_hostile_names_stay_text(pool):
    with connect(pool) as client:
        for name in HOSTILE:
            client.release(client.claim({"name": name}, command=name)["id"])
    leases = until_past(pool, len(HOSTILE))
    assert [lease["name"] for lease in reversed(leases)] == HOSTILE
    table = pool.berth("history").stdout
    assert "\x1b" not in table and "\u202e" not in table
    assert len(table.splitlines()) == len(HOSTILE) + 1
    cells = [row["name"] for row in csv.DictReader(io.StringIO(pool.berth("history", "--csv").stdout))]
    assert len(cells) == len(HOSTILE)
    # No spreadsheet takes a cell as a formula.
    assert not any(cell[0] in "=+-@\t\r" for cell in cells)
    assert "'=HYPERLINK(\"x\")" in cells


def test_spreadsheets_get_the_same(pool):
    for name in ("a", "b"):
        assert pool.berth("run", "-n2", "--name", name, "true").code == 0
    leases = until_past(pool, 2)
    text = pool.sandbox.run(["berth", "history", "--csv"]).stdout
    cells = list(csv.DictReader(io.StringIO(text)))
    for row, lease in zip(cells, leases, strict=True):
        assert int(row["id"]) == lease["id"]
        assert row["devices"].split(" ") == lease["devices"]
        assert float(row["held_s"]) == lease["held_s"]
        for key in ("name", "user", "command", "granted_at", "ended_at", "end", "pool"):
            assert row[key] == lease[key], key
        assert row["exit_code"] == ("" if lease["exit_code"] is None else str(lease["exit_code"]))
        assert (row["idle_share"], row["parent"]) == ("", "")


def test_table_lines_up(pool):
    assert pool.berth("run", "--name", "short", "true").code == 0
    assert pool.berth("run", "-n4", "--time", "1h", "--name", "a much longer name", "sh", "-c", "exit 5").code == 5
    until_past(pool, 2)
    lines = pool.berth("history").stdout.splitlines()
    for heading in ("USER", "DEVICES", "GRANTED", "END", "JOB"):
        column = lines[0].index(heading)
        assert all(line[column - 1] == " " and line[column] != " " for line in lines[1:]), "\n".join(lines)
    # The newest lease comes first.
    assert lines[1].endswith("a much longer name") and lines[2].endswith("short")
    narrow = pool.sandbox.run(["berth", "history"], env={"COLUMNS": "50"}).stdout
    assert all(len(line) <= 50 for line in narrow.splitlines())


def test_nothing_yet(pool):
    done = pool.berth("history")
    assert (done.code, done.stdout, done.stderr) == (0, "no leases\n", "")
    assert history(pool) == []
    assert pool.berth("report").stdout == "no leases\n"
    assert pool.berth("history", "--csv").stdout.startswith("id,name,user,")
    assert recorders(pool) == []


def test_none_is_kept(pool):
    configure(pool, "history: no\n")
    assert pool.berth("run", "true").code == 0
    for verb in ("history", "report"):
        done = pool.berth(verb)
        assert (done.code, done.stdout) == (125, "")
        assert done.stderr == f"berth: {verb}: this pool keeps no history (its configuration says history: no)\n"
    assert recorders(pool) == []
    assert not file_of(pool).exists()


def test_another_file(pool):
    file = pool.sandbox.directory / "deep" / "er" / "past.db"
    configure(pool, f"history: {file}\n")
    assert pool.berth("run", "--name", "there", "true").code == 0
    assert until_past(pool, 1)[0]["name"] == "there"
    assert file.exists() and not file_of(pool).exists()
    assert file.stat().st_mode & 0o777 == 0o600
    pool.end_daemon()
    # --file reads only the file and needs no daemon.
    done = pool.berth("history", "--file", file, env={"BERTH_SOCKET": "/nowhere"})
    assert "there" in done.stdout


def test_own_hardware_is_kept_at_home(hardware_of):
    pool = hardware_of([0, 1])
    assert pool.berth("run", "--name", "here", "true").code == 0
    assert until_past(pool, 1)[0]["name"] == "here"
    file = pool.sandbox.home / ".local/state/berth/history.db"
    assert file.stat().st_mode & 0o777 == 0o600
    pool.end_daemon()


@pytest.mark.parametrize(
    "words, said",
    [
        (["--since", "soon"], "expected a duration"),
        (["--since", "1h", "--until", "2h"], "--until: expected a time after --since, got 2h"),
        (["--device", "toaster"], "--device"),
        (["-n", "0"], "--most: expected a whole number"),
        (["--json", "--csv"], "expected --json or --csv, got both"),
        (["x"], "expected only options, got 'x'"),
        (["--file", "/nowhere/history.db"], "cannot open /nowhere/history.db: No such file or directory"),
        (["--file", "/"], "/: expected a file, got something else"),
    ],
)
def test_wrong_words(pool, words, said):
    done = pool.berth("history", *words)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("berth: history: ") and said in done.stderr and done.stderr.count("\n") == 1


def test_files_that_are_none(pool):
    file = pool.sandbox.directory / "some.db"
    file.write_bytes(os.urandom(5000))
    done = pool.berth("history", "--file", file)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == f"berth: history: {file}: expected a history, got something else\n"
    file.unlink()
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE lease (id)")
    done = pool.berth("report", "--file", file)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == f"berth: report: {file}: expected a history of berth, got another database\n"


def test_own_daemon_ends_all_the_same(pool):
    """The recorder does not keep a daemon from exiting. It writes the remaining records after the
    daemon's end."""
    command, daemon = start_asked_for(pool, ["run", "--name", "last", *HOLD], "--idle", "300ms")
    holder = until_held(command)
    recorder = the_recorder(pool)
    pool.let_go(holder)
    assert daemon.wait() == 0
    until(lambda: recorder not in recorders(pool), "the recorder's end")
    assert [row["end"] for row in rows(file_of(pool))] == ["died"]


def test_restart_goes_on_where_it_was(pool):
    """A lease that outlives the daemon is in the history only once."""
    holder = pool.hold("--name", "long")
    until(lambda: history(pool), "the lease")
    pool.end_daemon(signal.SIGTERM)
    assert [lease["end"] for lease in history(pool)] == [None]
    pool.let_go(holder)
    leases = until_past(pool, 1)
    assert [(lease["name"], lease["end"]) for lease in leases] == [("long", "died")]
