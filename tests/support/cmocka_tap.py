# SPDX-License-Identifier: Apache-2.0
"""Runs one cmocka program and prints its results as TAP that Meson understands.

    cmocka_tap.py PROGRAM [ARGUMENT]...

cmocka's own TAP has a plan for each group of tests, calls a skipped test "not ok", and is mixed with
the tests' output; Meson reports each of these as an error. A test can give the reason for a skip by
printing a line `skip: REASON` before it.
"""
import os
import re
import subprocess
import sys

import clean_environment

RESULT = re.compile(r"^(not ok|ok)\b\s*(\d+)?\s*(?:-\s*)?(.*)$")
SKIP = re.compile(r"^#\s*SKIP\s*(.*)$", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.\d+$")


class Results:
    """Numbers the results of all groups consecutively."""

    def __init__(self, out, err):
        self.out, self.err = out, err
        self.number = 0
        self.failed = 0
        self.in_failure = False
        self.reason = None

    def say(self, line):
        print(line, file=self.out, flush=True)

    def result(self, good, name):
        self.number += 1
        skipped = SKIP.match(name)
        self.in_failure = False
        if skipped:
            self.say(f"ok {self.number} - {skipped.group(1)} # SKIP {self.reason or 'no reason given'}")
        elif good:
            self.say(f"ok {self.number} - {name}")
        else:
            self.failed += 1
            self.in_failure = True
            self.say(f"not ok {self.number} - {name}")
            # Meson shows the stderr of a failed program, not its TAP.
            print(f"not ok - {name}", file=self.err, flush=True)
        self.reason = None

    def other(self, line):
        if line.startswith("skip: "):
            self.reason = line[len("skip: ") :].replace("#", " ")
        if self.in_failure and line.startswith("#"):
            print(line, file=self.err, flush=True)
        self.say(line if line.startswith("#") else f"# {line}")

    def take(self, line):
        match = RESULT.match(line)
        if match and match.group(2):
            self.result(match.group(1) == "ok", match.group(3))
        elif not PLAN.match(line):
            self.other(line)


def main(command):
    clean_environment.clean()
    environment = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    results = Results(sys.stdout, sys.stderr)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment, text=True, errors="replace"
    ) as program:
        for line in program.stdout:
            results.take(line.rstrip("\n"))
    code = program.returncode
    if code < 0:
        print(f"{command[0]} was killed by signal {-code}", file=sys.stderr)
        return 128 - code
    print(f"1..{results.number}")
    return code or int(results.failed > 0 or results.number == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
