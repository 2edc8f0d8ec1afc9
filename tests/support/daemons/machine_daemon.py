# SPDX-License-Identifier: Apache-2.0
"""The machine's daemon, and connections of its users."""
import daemon_log
import wire
from other_users import acting_as
from programs import TIMEOUT
from shared_machine import SharedMachine


class MachineDaemon(SharedMachine):
    """A shared machine with the devices of an inventory, and root's connection to its daemon."""

    def __init__(self, sandbox, inventory):
        super().__init__(sandbox, ["--inventory", inventory])
        self.inventory = inventory

    def start(self, rules="", program="berthd", timeout=TIMEOUT):
        self.open(rules, program=program, timeout=timeout)
        self.root = wire.connect(self.socket)

    def serves(self, timeout=TIMEOUT):
        hello = super().serves(timeout)
        return hello is not None and hello["pid"] == self.daemon.pid

    def connect(self, uid):
        with acting_as(uid):
            return wire.connect(self.socket)

    def end(self):
        self.root.close()
        assert self.close() == 0

    def entries(self, word):
        return [entry for entry in daemon_log.entries(self.log) if entry.word == word]

    def lines(self, word):
        return [line for line in self.log.read_text().splitlines() if f" {word} " in line]
