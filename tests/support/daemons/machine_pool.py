# SPDX-License-Identifier: Apache-2.0
"""A pool of a made-up machine's hardware in a sandbox, with the real daemon and the real berth-probe."""
import processes
from hardware_pool import HardwarePool
from pool import Pool


class MachinePool(HardwarePool):
    """All berth commands of the sandbox use this pool. `inside` is put before each command."""

    def __init__(self, sandbox, inside=()):
        self.sandbox = sandbox
        self.inside = list(inside)
        self.runtime = self.directory = sandbox.directory / "run"
        self.socket = self.directory / "berth.sock"
        self.log = self.directory / "log"
        self.state = sandbox.home / ".local/state/berth"
        sandbox.environment["BERTH_RUNTIME_DIR"] = str(self.runtime)

    def berth(self, *args, **options):
        return self.sandbox.run([*self.inside, "berth", *args], **options)

    def start(self, *args, **options):
        return self.sandbox.start([*self.inside, "berth", *args], **options)

    def close(self):
        Pool.close(self)
        processes.await_probes()
