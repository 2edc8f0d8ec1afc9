# SPDX-License-Identifier: Apache-2.0
"""A daemon for everybody on the machine; only root can be several users of it."""
import os
import signal
import subprocess

import daemon_log
import pytest
import wire
from others import acting_as
from waiting import until


class Everybody:
    """A daemon for everybody, its rules and its clients."""

    def __init__(self, sandbox, inventory):
        self.sandbox = sandbox
        self.inventory = inventory
        self.rules = sandbox.directory / "berth.yaml"
        self.socket = sandbox.directory / "everybody" / "berth.sock"
        self.log = sandbox.directory / "log"
        sandbox.directory.chmod(0o711)
        sandbox.environment["BERTH_SOCKET"] = str(self.socket)

    def start(self, rules="", program="berthd"):
        self.rules.write_text(rules)
        args = ["--socket", self.socket, "--inventory", self.inventory, "--config", self.rules, "--log", self.log]
        self.daemon = self.sandbox.start([program, *args])
        until(self.answers, "the daemon")
        self.root = wire.connect(self.socket)

    def answers(self):
        try:
            with wire.connect(self.socket) as client:
                return client.hello()["pid"] == self.daemon.pid
        except OSError:
            return False

    def connect(self, uid):
        with acting_as(uid):
            return wire.connect(self.socket)

    def reload(self, rules):
        count = len(self.entries("reloaded"))
        self.rules.write_text(rules)
        os.kill(self.daemon.pid, signal.SIGHUP)
        daemon_log.wait_for(self.log, "reloaded", count + 1)

    def end(self):
        self.root.close()
        self.daemon.kill()
        assert self.daemon.wait() == 0

    def entries(self, word):
        return [entry for entry in daemon_log.entries(self.log) if entry.word == word]

    def lines(self, word):
        return [line for line in self.log.read_text().splitlines() if f" {word} " in line]

    def run_as(self, uid, *args):
        """Runs berth as another user, where that one can."""
        environment = {name: value for name, value in self.sandbox.environment.items() if name != "BERTH_INVENTORY"}
        try:
            return subprocess.run(
                ["berth", *args],
                user=uid,
                group=uid,
                extra_groups=[],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=20,
            )
        except PermissionError as error:
            pytest.skip(f"another user cannot run berth here: {error}")
