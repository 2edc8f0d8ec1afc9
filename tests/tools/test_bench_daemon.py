# SPDX-License-Identifier: Apache-2.0
"""The groups `daemon` and `run` of bench/run and the programs beside them. These tests measure
nothing."""
import contextlib
import os
import shutil
import subprocess
import types
from pathlib import Path

import pytest

DAEMON_GOALS = {
    "claim + release (peer: 2 round trips)": 1.25,
    "the same, release not waited for (peer: 1)": 1.5,
    "claim + release (peer: lock in Redis)": 0.5,
    "the same, release not waited for (Redis)": 0.5,
    "memory of a waiting claim, of 10,000": 256.0,
    "hand-off, 10,000 claims waiting over 64": 1.3,
    "memory at rest, 8 devices": 8.0,
    "wake-ups in 10 s at rest": 0.0,
}
RUN_GOALS = {
    "berth run true (peer: flock)": 1.0,
    "berth run true (peer: bare start of true)": 2.5,
    "500 short jobs, 8 devices, one run (peer: tsp)": 2.0,
    "the same by 500 runs (peer: tsp)": 2.0,
    "SIGKILL to the next start, p99": 5.0,
    "SIGKILL to the next start, p50": 2.0,
    "the same on 8 GPUs of a double of NVML, p99": 5.0,
    "the same on 8 GPUs of a double of NVML, p50": 2.0,
    "10,000 rounds of run, then run --nonblock: failed": 0,
}


CROWDS = ("no", "300", "3000", "30000")
HOSTILE_GOALS = {
    **{f"SIGKILL to the next start, held 5 s, {crowd} others, p50": 2.0 for crowd in CROWDS},
    **{f"SIGKILL to the next start, held 5 s, {crowd} others, p99": 5.0 for crowd in CROWDS},
    "end of a lease beside 100 processes stuck in execve": 20.0,
    "claim + release, p99: no flood": 10.0,
    "the same: connections that come and go": 10.0,
    "the same: 900 busy connections": 10.0,
    "the same: slow readers": 10.0,
    "the same: churn of claims": 10.0,
    "the same: a storm of forks": 10.0,
    "the same: 100 processes stuck in execve": 10.0,
    "the same: the recorder is stopped": 10.0,
    "the same: the probe is stopped": 10.0,
}


@pytest.fixture
def bench(source_root, monkeypatch):
    """Return a function that imports a module of bench/."""
    monkeypatch.syspath_prepend(str(source_root / "bench"))
    return lambda name: __import__(name)


@pytest.fixture
def daemon(bench):
    group = bench("group_daemon")
    for cached in (group.client, group.ping_pong, group.redis_lock, group.at_rest):
        cached.cache_clear()
    return group


@pytest.fixture
def run(bench):
    group = bench("group_run")
    group.hand_overs.cache_clear()
    return group


@pytest.fixture
def hostile(bench):
    group = bench("group_hostile")
    group.hand_overs.cache_clear()
    return group


@pytest.fixture
def no_commands(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def built():
    build = Path(os.environ["BERTH_BUILD_ROOT"])
    if not (build / "berthd").exists():
        pytest.skip("berthd is not built")
    return build


def skipped(bench, rows, build):
    harness = bench("harness")
    return {harness.measure(row, build).skipped for row in rows}


def test_rows_and_goals(daemon, run):
    assert {row.name: row.goal for row in daemon.ROWS} == DAEMON_GOALS
    assert {row.name: row.goal for row in run.ROWS} == RUN_GOALS
    higher = [row.name for row in run.ROWS if row.better == "higher"]
    assert higher == ["500 short jobs, 8 devices, one run (peer: tsp)", "the same by 500 runs (peer: tsp)"]


def test_without_berth(bench, daemon, run, tmp_path):
    assert skipped(bench, daemon.ROWS[:2] + daemon.ROWS[4:], tmp_path) == {"berth is not built"}
    assert skipped(bench, run.ROWS, tmp_path) == {"berth is not built"}


def test_rows_beside_other_users(hostile):
    assert {row.name: row.goal for row in hostile.ROWS} == HOSTILE_GOALS
    assert all(row.better == "lower" and not row.goal_is_ratio for row in hostile.ROWS)


def test_other_users_without_berth(bench, hostile, tmp_path):
    assert skipped(bench, hostile.ROWS, tmp_path) == {"berth is not built"}


def test_other_users_need_root(bench, hostile, monkeypatch, built):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert skipped(bench, hostile.ROWS, built) == {"needs root, to act as several users"}


def test_claims_beside_a_flood(hostile, built):
    """One round with a flood measures times and ends the flood."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as several users")
    crowds = hostile.crowds
    with crowds.machine(built, 2) as pool:
        with crowds.flood(crowds.churn, pool):
            times = crowds.claims_of_another_user(pool, 5)
        assert len(times) == 5 and 0 < max(times) <= crowds.TIMEOUT_MS
        with crowds.idle_processes(built, 10):
            assert crowds.serves(pool.socket)


def test_without_redis(bench, daemon, monkeypatch, no_commands, tmp_path):
    monkeypatch.setattr(daemon, "client", lambda build: "ours")
    assert skipped(bench, daemon.ROWS[2:4], tmp_path) == {"redis is not installed: redis-tools"}


def test_without_hiredis(bench, daemon, monkeypatch, tmp_path):
    monkeypatch.setattr(daemon, "client", lambda build: "ours")
    monkeypatch.setattr(daemon, "HIREDIS", tmp_path / "hiredis.h")
    monkeypatch.setattr(daemon.servers, "redis_server", lambda: "server")
    assert skipped(bench, daemon.ROWS[2:4], tmp_path) == {"hiredis is not installed: libhiredis-dev"}


def test_without_the_spooler(bench, run, no_commands, built):
    assert skipped(bench, run.ROWS[2:4], built) == {"tsp is not installed: task-spooler"}
    assert skipped(bench, run.ROWS[:1], built) == {"flock is not installed: util-linux"}


def test_pool_is_private_and_ends(bench, built):
    servers = bench("servers")
    with servers.pool(built) as pool:
        place = pool.socket.parent.parent
        assert pool.environment["BERTH_RUNTIME_DIR"] == str(place)
        done = subprocess.run([pool.berth, "run", "sh", "-c", "echo $BERTH_SOCKET"],
                              env=pool.environment, capture_output=True, text=True, check=True)
        assert done.stdout == f"{pool.socket}\n"
        assert Path(f"/proc/{pool.pid}").exists()
    assert not Path(f"/proc/{pool.pid}").exists()
    assert not place.exists()


def test_pool_that_does_not_start(bench, tmp_path):
    for name in ("berth", "berthd"):
        (tmp_path / name).write_text(f"#!{shutil.which('sh')}\necho no luck\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(RuntimeError, match="^cannot start berthd: no luck$"):
        with bench("servers").pool(tmp_path):
            pass


def test_numbers_of_the_kernel(daemon):
    assert daemon.status("self", "Threads") >= 1
    assert daemon.status("self", "VmRSS") > 1000


def test_percentiles_of_rounds(run, monkeypatch):
    rounds = [[float(number) for number in range(1, 201)]] * 7
    monkeypatch.setattr(run, "hand_overs", lambda build, make_pool: rounds)
    assert run.hundredth(50)(None) == ([100.5] * 7, None)
    assert run.hundredth(99)(None)[0][0] == pytest.approx(199, abs=0.1)


@pytest.mark.parametrize("program, failed", [("true", 0), ("false", 3)])
def test_failed_rounds_are_counted(run, monkeypatch, program, failed):
    pool = types.SimpleNamespace(berth=shutil.which(program), environment=dict(os.environ))
    monkeypatch.setattr(run.servers, "pool", lambda build: contextlib.nullcontext(pool))
    monkeypatch.setattr(run, "PAIRS", 3)
    assert run.failed_rounds(None) == ([failed] * run.ROUNDS, None)


def test_flatness_is_of_ours_alone(daemon, monkeypatch, tmp_path):
    monkeypatch.setattr(daemon, "in_a_pool", lambda build, mode, waiting: waiting / 1000.0)
    assert daemon.flatness(tmp_path)[0] == [156.25] * 7


@pytest.mark.parametrize("name", ["daemon.c", "stamp.c", "peers/ping_pong.c"])
def test_program_keeps_up_with_the_headers(source_root, name):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no compiler")
    options = ["-fsyntax-only", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    includes = [f"-I{source_root / 'include'}", f"-I{source_root / 'src'}"]
    subprocess.run([compiler, *options, *includes, source_root / "bench" / name], check=True)
