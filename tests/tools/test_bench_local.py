# SPDX-License-Identifier: Apache-2.0
"""The group `local` of bench/run and the building of its programs. These tests measure nothing."""
import os
import shutil
import subprocess

import pytest

GOALS = {
    "claim + release, devices free": 0.25,
    "try to claim + release, devices free": 0.4,
    "try to claim, no device free": 1.0,
    "hand-off among 64 tasks": 0.33,
    "hand-off among 1,000 tasks": 0.33,
    "hand-off among 10,000 tasks": 0.33,
    "hand-off among 10,000 tasks over 64": 1.3,
    "claim + release, threads share the pool": 0.25,
    "try to claim + release, likewise": 0.4,
    "hand-off among 64 tasks, likewise": 0.33,
    "snapshot of 8 devices": 0.33,
    "allocations in a snapshot": 0.0,
    "memory of a waiter, of 100,000": 128.0,
    "wake of a parked thread (peer: futex)": 1.1,
}
CARGO = """
test "$CARGO_HOME" = "{build}/bench/cargo" || exit 9
case " $* " in *" --offline "*) ;; *) exit 9 ;; esac
echo "$*" >Cargo.lock
{then}
"""


@pytest.fixture
def local(source_root, monkeypatch):
    monkeypatch.syspath_prepend(str(source_root / "bench"))
    import group_local

    # The made-up build directory of one test must not affect another test.
    group_local.ours.cache_clear()
    group_local.tokio_pool.cache_clear()
    return group_local


@pytest.fixture
def peers(local, monkeypatch, tmp_path):
    """The module, with a directory of crates that has tokio."""
    import peers as module

    (tmp_path / "crates/tokio-1.2.3").mkdir(parents=True)
    monkeypatch.setattr(module, "CRATES", tmp_path / "crates")
    return module


@pytest.fixture
def build(tmp_path):
    (tmp_path / "build").mkdir()
    return tmp_path / "build"


@pytest.fixture
def cargo(build, monkeypatch, tmp_path):
    """Put a made-up cargo, or none, in place of the real one."""

    def put(then):
        commands = tmp_path / "bin"
        commands.mkdir()
        if then is not None:
            text = f"#!{shutil.which('sh')}\n{CARGO.format(build=build, then=then)}"
            (commands / "cargo").write_text(text, encoding="utf-8")
            (commands / "cargo").chmod(0o755)
        monkeypatch.setenv("PATH", str(commands))

    return put


def measured(local, build):
    import harness

    return [harness.measure(row, build) for row in local.ROWS]


def pretend(local, monkeypatch, numbers):
    """Make programs print the values of `numbers` for (program, mode, ...)."""
    monkeypatch.setattr(local, "ours", lambda build: "ours")
    monkeypatch.setattr(local, "number", lambda *words: numbers[words])


def test_rows_and_goals(local):
    assert {row.name: row.goal for row in local.ROWS} == GOALS
    assert all((row.group, row.better) == ("local", "lower") for row in local.ROWS)


def test_without_the_library(local, build):
    assert {outcome.skipped for outcome in measured(local, build)} == {"libberth is not built"}


def test_without_cargo_what_needs_no_peer_is_measured(local, monkeypatch, build, cargo):
    cargo(None)
    alone = {
        ("ours", "handoff", 10_000): 30.0,
        ("ours", "handoff", 64): 24.0,
        ("ours", "allocations"): 0.0,
        ("ours", "memory", 100_000): 64.0,
        ("ours", "wake"): 3.0,
        ("ours", "futex"): 4.0,
    }
    pretend(local, monkeypatch, alone)
    outcomes = {outcome.name: outcome for outcome in measured(local, build)}
    skipped = [name for name, outcome in outcomes.items() if outcome.skipped]
    assert len(skipped) == 10
    assert {outcomes[name].skipped for name in skipped} == {"cargo is not installed"}
    assert outcomes["hand-off among 10,000 tasks over 64"].ours == 1.25
    assert outcomes["memory of a waiter, of 100,000"].ours == 64
    assert outcomes["wake of a parked thread (peer: futex)"].ratio == 0.75


def test_beside_tokio(local, monkeypatch, build):
    monkeypatch.setattr(local, "tokio_pool", lambda build: "tokio")
    numbers = {("ours", "memory", 100_000): 64.0, ("tokio", "memory", 100_000): 240.0}
    numbers.update({("ours", "handoff", count): 40.0 for count in (64, 1_000, 10_000)})
    numbers[("ours", "shared", "handoff", 64)] = 80.0
    numbers.update({("tokio", "handoff", count): 160.0 for count in (64, 1_000, 10_000)})
    pretend(local, monkeypatch, numbers)
    import harness

    rows = [row for row in local.ROWS if row.name.startswith(("hand-off", "memory"))]
    outcomes = [harness.measure(row, build) for row in rows]
    assert [outcome.ratio for outcome in outcomes] == [0.25, 0.25, 0.25, None, 0.5, None]
    assert (outcomes[5].ours, outcomes[5].peer) == (64, 240)


def test_program_that_fails(local, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!{shutil.which('sh')}\necho no pool >&2; exit 1\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="^program handoff 64: no pool$"):
        local.number(program, "handoff", 64)


def test_without_the_crate(peers, build, cargo):
    cargo("exit 9")
    reason = "the crate absent is not installed: librust-absent-dev"
    with pytest.raises(peers.Skipped, match=reason):
        peers.built_by_cargo(build, "tokio-pool", "absent")


def test_cargo_that_fails(peers, build, cargo):
    cargo('echo "warning: odd" >&2; echo "error: no luck" >&2; exit 101')
    with pytest.raises(peers.Skipped, match="^cargo could not build tokio-pool: error: no luck$"):
        peers.built_by_cargo(build, "tokio-pool", "tokio")


def test_cargo_writes_only_in_the_build_directory(peers, build, cargo, source_root):
    cargo("exit 0")
    program = peers.built_by_cargo(build, "tokio-pool", "tokio")
    assert program == build / "bench/tokio-pool/target/release/tokio-pool"
    asked = (build / "bench/tokio-pool/Cargo.lock").read_text(encoding="utf-8")
    assert f'source.packaged.directory="{peers.CRATES}"' in asked
    assert not (source_root / "bench/peers/tokio-pool/Cargo.lock").exists()


def test_older_programs_are_made_anew(peers, tmp_path):
    program, source, header = (tmp_path / name for name in ("program", "source.c", "header.h"))
    source.touch()
    header.touch()
    assert peers.is_older(program, [source])
    program.touch()
    for path, time in ((source, 100), (program, 200), (header, 300)):
        os.utime(path, (time, time))
    assert not peers.is_older(program, [source])
    assert peers.is_older(program, [source, header])


@pytest.mark.parametrize("name", ["local.c", "local_wake.c"])
def test_program_keeps_up_with_the_header(source_root, name):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no compiler")
    options = ["-fsyntax-only", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    source = source_root / "bench" / name
    subprocess.run([compiler, *options, f"-I{source_root / 'include'}", source], check=True)
