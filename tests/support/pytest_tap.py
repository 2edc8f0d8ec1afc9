# SPDX-License-Identifier: Apache-2.0
"""Runs pytest on some files and prints the results as TAP, for Meson.

    pytest_tap.py FILE...

pytest's own output, with the failures, goes to stderr, which Meson shows when a program fails.
"""
import os
import shutil
import sys
import tempfile
from pathlib import Path

import clean_environment

# Load no installed plugins, and write nothing into the source tree.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
sys.dont_write_bytecode = True

try:
    import pytest
except ImportError:
    print(f"Bail out! {sys.executable} has no pytest", flush=True)
    sys.exit(1)


def plain(text):
    """Returns the text in one line, without characters of TAP directives."""
    return " ".join(text.replace("#", " ").split())


def skip_reason(report):
    if hasattr(report, "wasxfail"):
        return "expected to fail: " + report.wasxfail
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


class Tap:
    """A pytest plugin that prints one line for all phases of a test."""

    def __init__(self, out):
        self.out = out
        self.number = 0
        self.phases = []

    def say(self, line):
        print(line, file=self.out, flush=True)

    def line(self, good, name, directive=""):
        self.number += 1
        self.say(f"{'ok' if good else 'not ok'} {self.number} - {plain(name)}{directive}")

    def pytest_runtest_logreport(self, report):
        self.phases.append(report)

    def pytest_runtest_logfinish(self, nodeid):
        phases, self.phases = self.phases, []
        name = nodeid.split("::", 1)[-1]
        skipped = [phase for phase in phases if phase.skipped]
        if any(phase.failed for phase in phases):
            self.line(False, name)
        elif skipped:
            self.line(True, name, f" # SKIP {plain(skip_reason(skipped[0]))}")
        else:
            self.line(True, name)

    def pytest_collectreport(self, report):
        if report.failed:
            self.line(False, f"reading {report.nodeid}")
        elif report.skipped:
            self.line(True, f"reading {report.nodeid}", f" # SKIP {plain(skip_reason(report))}")

    def pytest_sessionfinish(self):
        if self.number == 0:
            self.line(False, "no test found")
        self.say(f"1..{self.number}")


def main(files):
    clean_environment.clean()
    tests = Path(__file__).resolve().parent.parent
    # The standard output is for the results alone.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    private = tempfile.mkdtemp(prefix="berth-tests-")
    try:
        options = ["-q", "--tb=short", "-p", "no:cacheprovider", "--rootdir", str(tests)]
        options += ["-c", os.devnull, "--confcutdir", str(tests), "--basetemp", f"{private}/t"]
        return int(pytest.main(options + files, plugins=[Tap(out)]))
    finally:
        shutil.rmtree(private, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
