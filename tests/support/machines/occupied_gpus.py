# SPDX-License-Identifier: Apache-2.0
"""GPUs of a made-up machine, and the processes that use them."""
import time

import nvml_machine
import processes


class OccupiedGpus:
    """Several NVIDIA GPUs."""

    def __init__(self, sandbox, machine, count):
        self.machine = machine
        self.script = sandbox.directory / "nvml"
        self.addresses = [machine.pci(0x40 + index) for index in range(count)]
        self.users = {index: {} for index in range(count)}
        self.tell()
        sandbox.environment.update(nvml_machine.Machine.environment(self.script))
        sandbox.environment["BERTH_PROBE_DEADLINE"] = "9s"

    def tell(self):
        double = nvml_machine.Machine()
        for index, address in enumerate(self.addresses):
            facts = {"name": "NVIDIA T4", "uuid": f"GPU-{index}", "minor": index}
            gpu = double.gpu(pci=(address, "0x1eb810de", "0x12a210de"), **facts)
            gpu.say(memory=(16 << 30, 15 << 30, 0), utilization=(0, 0))
            for pid, kind in self.users[index].items():
                gpu.process(kind, pid, 1 << 28)
        double.write(self.script)

    def use(self, index, pid, kind="compute", **facts):
        """Lets a process use a GPU from now on."""
        values = processes.status_values(pid)
        parent = values[1] if values else 0
        self.machine.describe_process(pid, **{"started": time.time() - 7500, "parent": parent, **facts})
        self.users[index][pid] = kind
        self.tell()

    def leave(self, index, pid):
        del self.users[index][pid]
        self.tell()
