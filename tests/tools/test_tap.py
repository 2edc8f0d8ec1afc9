# SPDX-License-Identifier: Apache-2.0
"""The two runners that convert the results of test programs into TAP."""
import subprocess
import sys

import pytest


@pytest.fixture
def run_pytest(tmp_path, source_root):
    """Run a test file under pytest_tap.py; return exit status, stdout lines and stderr."""

    def run(text):
        (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
        runner = [sys.executable, source_root / "tests/support/pytest_tap.py", tmp_path / "test_it.py"]
        done = subprocess.run(runner, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    return run


@pytest.fixture
def run_cmocka(tmp_path, source_root):
    """Run a script that prints as a cmocka program does under cmocka_tap.py."""

    def run(script):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        runner = [sys.executable, source_root / "tests/support/cmocka_tap.py", program]
        done = subprocess.run(runner, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    return run


def test_pytest_results(run_pytest):
    text = (
        "import pytest\n"
        "def test_a(): print('not ok 7 - from the test')\n"
        "def test_b(): assert 1 == 2\n"
        "def test_c(): pytest.skip('no # here')\n"
        "@pytest.mark.parametrize('x', ['#1'])\n"
        "def test_d(x): pass\n"
        "@pytest.fixture\n"
        "def late():\n"
        "    yield\n"
        "    assert False, 'left over'\n"
        "def test_e(late): pass\n"
    )
    code, lines, errors = run_pytest(text)
    assert code == 1
    assert lines == [
        "ok 1 - test_a",
        "not ok 2 - test_b",
        "ok 3 - test_c # SKIP no here",
        "ok 4 - test_d[ 1]",
        "not ok 5 - test_e",
        "1..5",
    ]
    assert "assert 1 == 2" in errors and "left over" in errors


def test_pytest_file_that_cannot_be_read(run_pytest):
    code, lines, errors = run_pytest("import no_such_module\n")
    assert code != 0
    assert lines == ["not ok 1 - reading test_it.py", "1..1"] or lines[0].startswith("not ok 1 - reading")
    assert "no_such_module" in errors


def test_pytest_file_without_tests(run_pytest):
    code, lines, _ = run_pytest("x = 1\n")
    assert code != 0
    assert lines == ["not ok 1 - no test found", "1..1"]


def test_cmocka_groups_become_one(run_cmocka):
    code, lines, _ = run_cmocka("echo 1..1; echo chatter; echo 'ok 1 - a'; echo 1..1; echo 'ok 1 - b'")
    assert code == 0
    assert lines == ["# chatter", "ok 1 - a", "ok 2 - b", "1..2"]


def test_cmocka_skip(run_cmocka):
    code, lines, _ = run_cmocka("echo 1..1; echo 'skip: no terminal'; echo 'not ok 1 # SKIP a'")
    assert code == 0
    assert lines == ["# skip: no terminal", "ok 1 - a # SKIP no terminal", "1..1"]


def test_cmocka_failure_is_told_on_stderr(run_cmocka):
    code, lines, errors = run_cmocka("echo 1..1; echo 'not ok 1 - a'; echo '# 0x1 != 0x2'; exit 1")
    assert code == 1
    assert lines[0] == "not ok 1 - a"
    assert "0x1 != 0x2" in errors


def test_cmocka_crash(run_cmocka):
    code, lines, errors = run_cmocka("echo 1..2; echo 'ok 1 - a'; kill -SEGV $$")
    assert code == 128 + 11
    assert "1..1" not in lines
    assert "killed by signal 11" in errors


def test_cmocka_without_tests(run_cmocka):
    assert run_cmocka("echo 1..0")[0] == 1
