# SPDX-License-Identifier: Apache-2.0
"""tools/test-summary counts the results of a real `meson test`."""
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("meson"), reason="meson is not installed")

TAP = {
    "good": "1..2\nok 1 - one\nok 2 - two\n",
    "bad": "1..2\nok 1 - fine\nnot ok 2 - broken\n",
    "absent": "1..2\nok 1 - near\nok 2 - far # SKIP no such machine\n",
    "no_plan_left": "1..0 # SKIP nothing to do here\n",
    "silent": "",
}


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
SCRIPTS_MAX = 3


def set_up(directory, suites):
    """Configure a small project whose tests are the scripts t0.sh, t1.sh, ...; all of them are in
    one suite, or each is in its own."""
    lines = ["project('p')"]
    for number in range(SCRIPTS_MAX):
        script = directory / f"t{number}.sh"
        script.touch(mode=0o755)
        suite = f"s{number}" if suites else "s"
        options = f"protocol: 'tap', suite: '{suite}', timeout: 1"
        lines.append(f"test('t{number}', files('{script.name}'), {options})")
    (directory / "meson.build").write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run(["meson", "setup", directory / "build", directory], **QUIET)
    return directory


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """Two such projects: projects[True] has suites. Configuring one takes longer than all tests in
    it."""
    return {suites: set_up(tmp_path_factory.mktemp("project"), suites) for suites in (False, True)}


@pytest.fixture
def summary(projects, source_root):
    """Run scripts as the tests of a small project; return the exit status and the lines."""

    def run(*scripts, suites=False):
        names = [f"t{number}" for number in range(len(scripts))]
        for name, script in zip(names, scripts):
            (projects[suites] / f"{name}.sh").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        build = projects[suites] / "build"
        for log in (build / "meson-logs").glob("testlog.*"):
            log.unlink()
        subprocess.run(["meson", "test", "-C", build, "--no-rebuild", *names], **QUIET)
        return count(source_root, build)

    return run


def count(source_root, build):
    tool = [sys.executable, source_root / "tools/test-summary", build]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def tap(name):
    return f"cat <<'END'\n{TAP[name]}END"


def test_all_good(summary):
    assert summary(tap("good"), tap("good")) == (0, ["4 passed, 0 failed, 0 skipped"])


def test_failures_and_reasons(summary):
    assert summary(tap("bad"), tap("absent")) == (
        1,
        ["failed: t0: broken", "skipped: t1: far: no such machine", "2 passed, 1 failed, 1 skipped"],
    )


def test_suites_are_named(summary):
    code, lines = summary(tap("bad"), tap("absent"), tap("silent"), suites=True)
    assert code == 1
    # The tests run side by side, and may end in any order.
    assert sorted(lines[:2]) == ["failed: s0 / t0: broken", "failed: s2 / t2: ran no test"]
    assert lines[2:] == ["skipped: s1 / t1: far: no such machine", "2 passed, 2 failed, 1 skipped"]


def test_failure_with_exit_status_counts_once(summary):
    code, lines = summary(tap("bad") + "\nexit 1")
    assert (code, lines[-1]) == (1, "1 passed, 1 failed, 0 skipped")


def test_crash(summary):
    code, lines = summary("echo 1..2; echo 'ok 1 - one'; echo '# near the edge'; kill -SEGV $$")
    assert code == 1
    assert lines == [
        "failed: t0: killed by signal 11, after: # near the edge",
        "1 passed, 1 failed, 0 skipped",
    ]


def test_timeout(summary):
    code, lines = summary("echo 1..2; echo 'ok 1 - one'; exec sleep 60")
    assert code == 1
    assert lines[0].startswith("failed: t0: ran out of time")
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"


def test_bail_out(summary):
    code, lines = summary("echo 'Bail out! no compiler'; exit 1")
    assert (code, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")
    assert "Bail out! no compiler" in lines[0]


def test_missing_results(summary):
    code, lines = summary("echo 1..3; echo 'ok 1 - one'")
    assert (code, lines[-1]) == (1, "1 passed, 1 failed, 0 skipped")


def test_program_skipped_as_a_whole(summary):
    code, lines = summary(tap("good"), tap("no_plan_left"))
    assert code == 0
    assert lines == ["skipped: t1: nothing to do here", "2 passed, 0 failed, 1 skipped"]


def test_program_that_tests_nothing(summary):
    code, lines = summary(tap("good"), tap("silent"))
    assert code == 1
    assert lines == ["failed: t1: ran no test", "2 passed, 1 failed, 0 skipped"]


def test_only_skipped_is_nothing_ran(summary):
    code, lines = summary(tap("no_plan_left"))
    assert (code, lines[-1]) == (1, "0 passed, 0 failed, 1 skipped")


def test_no_log(tmp_path, source_root):
    assert count(source_root, tmp_path) == (1, ["no test ran", "0 passed, 0 failed, 0 skipped"])
