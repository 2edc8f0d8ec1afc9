# SPDX-License-Identifier: Apache-2.0
"""A machine that several users share: the machine's daemon, and users who are not root.

The users are uids without an account on this machine. Each is in the group of the same number, and in the groups that
a test names.
"""
import os
import shutil
import signal
from pathlib import Path

import processes
import pytest
import wire
from pool import HOLD, let_go, until_held
from programs import TIMEOUT
from waiting import until

ALICE, BOB, CAROL = 71001, 71002, 71003
STAFF, STUDENTS = 71100, 71101


def needs_root():
    if os.getuid() != 0:
        pytest.skip("needs root, to act as other users")
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv")


class SharedMachine:
    """The daemon and its users; `devices` are the arguments that name the daemon's devices."""

    def __init__(self, sandbox, devices):
        self.sandbox = sandbox
        self.devices = devices
        self.directory = sandbox.directory / "everybody"
        self.socket = self.directory / "berth.sock"
        self.rules = sandbox.directory / "berth.yaml"
        self.log = sandbox.directory / "log"
        self.daemon = None
        self.sleepers = []
        sandbox.directory.chmod(0o711)
        sandbox.environment["BERTH_SOCKET"] = str(self.socket)
        sandbox.environment.pop("BERTH_INVENTORY", None)

    def open(self, rules="", *options, program="berthd", timeout=TIMEOUT):
        self.rules.write_text(rules)
        args = [program, "--socket", self.socket, *self.devices, "--config", self.rules, "--log", self.log]
        self.daemon = self.sandbox.start([*args, *options])
        until(lambda: self.serves(timeout), "a daemon that serves", timeout)

    def serves(self, timeout=TIMEOUT):
        try:
            with wire.connect(str(self.socket), timeout) as client:
                return client.hello()
        except (OSError, wire.Closed):
            return None

    def close(self, number=signal.SIGTERM):
        self.daemon.kill(number)
        code = self.daemon.wait()
        self.daemon = None
        return code

    def reload(self, rules):
        """Makes the daemon read another configuration."""
        before = self._reloads()
        self.rules.write_text(rules)
        self.daemon.kill(signal.SIGHUP)
        until(lambda: self._reloads() > before, "the new rules")

    def _reloads(self):
        text = self.log.read_text()
        return text.count(" reloaded") + text.count("what=reload")

    def become(self, uid, groups=()):
        """Returns the arguments that, before a command, run it as another user."""
        some = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
        return ["setpriv", f"--reuid={uid}", f"--regid={uid}", *some]

    def berth(self, uid, *args, groups=(), **options):
        done = self.sandbox.run([*self.become(uid, groups), "berth", *args], **options)
        if done.stderr.startswith("setpriv:"):
            pytest.skip(f"another user cannot run berth here: {done.stderr.strip()}")
        return done

    def start(self, uid, *args, groups=(), **options):
        return self.sandbox.start([*self.become(uid, groups), "berth", *args], **options)

    def hold(self, uid, *args, groups=()):
        """Starts a `berth run` that holds its devices until its input ends."""
        return until_held(self.start(uid, "run", *args, *HOLD, groups=groups))

    def let_go(self, holder):
        let_go(holder)

    def sleeper(self, uid, groups=(), **options):
        """Starts a process of this user that does not use berth. It ends with the test at the latest."""
        started = self.sandbox.start([*self.become(uid, groups), "sleep", "1000"], **options)
        self.sleepers.append(started)
        name = Path(f"/proc/{started.pid}/comm")
        until(lambda: name.read_text() == "sleep\n", "a process of this user")
        return started

    def end(self, sleeper):
        if sleeper.process.poll() is None:
            sleeper.kill(signal.SIGKILL)
        sleeper.wait()

    def look(self):
        with wire.connect(str(self.socket)) as client:
            return client.look()

    def slots(self):
        return {slot["device"]["id"]: slot for slot in self.look()["slots"]}

    def finish(self):
        for sleeper in self.sleepers:
            self.end(sleeper)
        if self.daemon is not None:
            assert self.close() == 0
        processes.await_probes()

