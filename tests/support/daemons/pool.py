# SPDX-License-Identifier: Apache-2.0
"""A pool of made-up devices in a sandbox. berth starts the pool's daemon on demand."""
import contextlib
import os
import signal

import processes

DEVICE = "- {{vendor: nvidia, index: {0}, name: NVIDIA A100, memory: 80GiB, uuid: GPU-{0}, health: ok}}\n"


def inventory_of(count):
    """Returns the text of an inventory with this many equal devices: nvidia0, nvidia1, ..."""
    return "devices:\n" + "".join(DEVICE.format(index) for index in range(count))


# A command that prints its lease's id, and holds the lease until its input ends.
HOLD = ["--", "sh", "-c", "echo holding $BERTH_LEASE; exec cat"]


def until_held(holder):
    holder.lease = holder.wait_for_line("^holding ").split()[1]
    return holder


def let_go(holder):
    holder.process.stdin.close()
    holder.process.stdin = None
    assert holder.wait() == 0


def fnv1a(data):
    number = 0xCBF29CE484222325
    for byte in data:
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return number


class Pool:
    """The sandbox's environment names an inventory and a private directory for the daemon, so all berth commands of
    the sandbox use this pool. All processes but the daemon must have ended before close()."""

    def __init__(self, sandbox, inventory):
        self.sandbox = sandbox
        self.inventory = sandbox.directory / "inventory.yaml"
        self.inventory.write_text(inventory)
        self.runtime = sandbox.directory / "run"
        self.state = sandbox.home / ".local/state/berth"
        name = f"{fnv1a(os.path.realpath(self.inventory).encode()):016x}"
        self.directory = self.runtime / name
        self.socket = self.directory / "berth.sock"
        sandbox.environment["BERTH_RUNTIME_DIR"] = str(self.runtime)
        sandbox.environment["BERTH_INVENTORY"] = str(self.inventory)

    def berth(self, *args, **options):
        """Runs a verb to its end."""
        return self.sandbox.run(["berth", *args], **options)

    def start(self, *args, **options):
        """Starts a verb. The test must end it."""
        return self.sandbox.start(["berth", *args], **options)

    def terminal(self, *args, **options):
        """Starts a verb on a new terminal."""
        return self.sandbox.terminal(["berth", *args], **options)

    def hold(self, *args, **options):
        """Starts a `berth run` that prints "holding" when it has its devices, and holds them until its input ends."""
        return until_held(self.start("run", *args, *HOLD, **options))

    def let_go(self, holder):
        """Ends a command that hold() started."""
        let_go(holder)

    def daemons(self):
        """Returns the process ids of this pool's running daemons. There are two only for a moment."""
        found = []
        for pid, zombie in processes.descendants(os.getpid()):
            line = "" if zombie else processes.command_line(pid)
            if "berthd" not in line.split(" ")[0] or str(self.sandbox.directory) not in line:
                continue
            # A forked child has the daemon's command line until it calls exec.
            if processes.is_another_program(pid):
                found.append(pid)
        return found

    def end_daemon(self, number=signal.SIGTERM):
        """Signals the daemon, if one runs, and waits for its end."""
        for pid in self.daemons():
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(pid, number)
            processes.wait_for_end(pid)
        processes.await_newborns()

    def close(self):
        # A submitted job reports its end just before it ends.
        self._await_others(self.daemons())
        self.end_daemon()
        # The daemon kills processes at its end, some of them before they call exec.
        self._await_others(())

    def _await_others(self, daemons):
        for pid, zombie in processes.descendants(os.getpid()):
            if not zombie and pid not in daemons and not processes.is_probe(pid):
                processes.is_ended(pid, 2)
