# SPDX-License-Identifier: Apache-2.0
"""Many commands under leases, each of which logs its start and its end.

All commands append to one file, so its lines are in the order of the events. A command writes its first line once it
has its devices, and its last line while it still has them.
"""
import os
import select
import subprocess
import time
from collections import Counter
from typing import NamedTuple

SCRIPT = """#!/bin/sh
echo "start $1 $BERTH_LEASE $BERTH_DEVICES" >>"$COMMANDS_LOG"
test "$2" = 0 || sleep "$2"
echo "end $1 $BERTH_LEASE $BERTH_DEVICES" >>"$COMMANDS_LOG"
exit "$3"
"""


class Line(NamedTuple):
    word: str
    name: str
    lease: int
    devices: tuple


class Member(NamedTuple):
    name: str
    kind: tuple
    code: int
    process: subprocess.Popen


class ManyCommands:
    def __init__(self, pool):
        self.pool = pool
        self.log = pool.sandbox.directory / "commands.log"
        self.errors = pool.sandbox.directory / "commands.errors"
        self.script = pool.sandbox.directory / "commands.sh"
        self.log.touch()
        self.script.write_text(SCRIPT)
        self.script.chmod(0o700)
        self.members = []

    def start(self, *options, seconds=0, code=0, env=None):
        """Starts a `berth run` with these options, whose command takes `seconds` and exits with `code`."""
        name = f"c{len(self.members)}"
        with open(self.errors, "ab") as errors:
            process = subprocess.Popen(
                ["berth", "run", *options, "--", str(self.script), name, f"{seconds:g}", str(code)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                cwd=self.pool.sandbox.directory,
                env={**self.pool.sandbox.environment, **(env or {}), "COMMANDS_LOG": str(self.log)},
            )
        self.members.append(Member(name, options, code, process))
        return self.members[-1]

    def lines(self):
        found = []
        for line in self.log.read_text().splitlines():
            word, name, lease, devices = line.split(" ")
            found.append(Line(word, name, int(lease), tuple(devices.split(","))))
        return found

    def running(self):
        return sum(member.process.poll() is None for member in self.members)

    def wait(self, timeout=60.0):
        """Waits until all commands have ended."""
        deadline = time.monotonic() + timeout
        for member in self.members:
            if member.process.poll() is not None:
                continue
            pidfd = os.pidfd_open(member.process.pid)
            try:
                left = max(0, deadline - time.monotonic())
                assert select.select([pidfd], [], [], left)[0], self._late(member, timeout)
            finally:
                os.close(pidfd)
            member.process.wait()

    def _late(self, member, timeout):
        log = self.pool.directory / "log"
        tail = log.read_text(errors="replace")[-3000:] if log.exists() else "none"
        return f"{member.name} {member.kind} did not end within {timeout} s; {self.running()} left; log:\n{tail}"

    def check(self, pools=1):
        """Checks that every command ran once and to its end, and that no device ever had two holders."""
        said = self.errors.read_text(errors="replace")
        wrong = [(m.name, m.kind, m.process.returncode) for m in self.members if m.process.returncode != m.code]
        assert not wrong, f"unexpected exit codes: {wrong}; output: {said[-4000:]}"
        assert said == ""
        lines = self.lines()
        for word in ("start", "end"):
            counts = Counter(line.name for line in lines if line.word == word)
            assert counts == {member.name: 1 for member in self.members}, f"expected one line '{word}' of each command"
        self.check_holders(lines)
        if pools == 1:
            leases = Counter(line.lease for line in lines if line.word == "start")
            assert not [lease for lease, count in leases.items() if count > 1], "two commands have the same lease"

    def check_holders(self, lines):
        holders = {}
        for line in lines:
            for device in line.devices:
                if line.word == "start":
                    assert device not in holders, f"{device} is held by {holders[device]} and {line.name}"
                    holders[device] = line.name
                else:
                    assert holders.pop(device) == line.name
        assert not holders

    def check_order(self, granted):
        """Checks that commands with the same request got their devices in the order of their ids, which is the order
        of their claims."""
        kinds = {member.name: member.kind for member in self.members}
        kind_of = {line.lease: kinds[line.name] for line in self.lines()}
        assert len(granted) == len(set(granted)), "an id was granted twice"
        for kind in set(kind_of.values()):
            order = [lease for lease in granted if kind_of.get(lease) == kind]
            assert order == sorted(order), f"grants of {kind} are not in the order of the claims: {order}"
