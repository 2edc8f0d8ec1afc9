# SPDX-License-Identifier: Apache-2.0
"""A pool of a machine's hardware in a sandbox. A script describes the hardware.

The daemon is the real one; berth-probe is support/daemons/scripted_probe.py, whose answers the test rewrites.
"""
import json
import os
import secrets
from pathlib import Path

import processes
import wire
from pool import Pool
from waiting import until

PROBE = Path(__file__).resolve().parent / "scripted_probe.py"
HEALTHY, SICK = 1, 2


def start_seeing(pool, device):
    """Starts the daemon and waits until it has seen a device. With a short deadline the first probe may fail."""
    assert pool.berth("status").code == 0
    pool.until(lambda slots: device in slots, device)


class HardwarePool(Pool):
    """All berth commands of the sandbox use this pool; `devices` are those of the first report."""

    def __init__(self, sandbox, devices=(), **script):
        self.sandbox = sandbox
        self.runtime = self.directory = sandbox.directory / "run"
        self.socket = self.directory / "berth.sock"
        self.log = self.directory / "log"
        self.state = sandbox.home / ".local/state/berth"
        self.script = sandbox.directory / "probe.json"
        # Devices are locked by names that all processes of the machine share, so each test needs its own addresses.
        self.domain = secrets.randbits(32) | 0x10000
        self.probe_log = Path(f"{self.script}.log")
        sandbox.environment.update({"BERTH_PROBE": str(PROBE), "BERTH_PROBE_SCRIPT": str(self.script)})
        sandbox.environment["BERTH_RUNTIME_DIR"] = str(self.runtime)
        self.says(devices, **script)

    def device(self, index, **facts):
        """Returns a device as the probe reports it."""
        return {
            "id": f"nvidia{index}",
            "name": "NVIDIA A100",
            "uuid": f"GPU-{index}",
            "memory_total": 80 << 30,
            "pci": f"{self.domain:08x}:{index:02x}:00.0",
            "health": HEALTHY,
            "nodes": [f"/dev/nvidia{index}"],
            "utilization": 0,
            **facts,
        }

    def says(self, devices=(), **script):
        """Sets the probe's answer from the next request on. A number stands for the device with that index."""
        made = [self.device(device) if isinstance(device, int) else device for device in devices]
        new = self.script.with_suffix(".new")
        new.write_text(json.dumps({"devices": made, **script}))
        os.replace(new, self.script)

    def requests(self):
        """Returns how many requests the probes have received."""
        return self._count("ask ")

    def starts(self):
        """Returns how many probes were started."""
        return self._count("start ")

    def _count(self, word):
        text = self.probe_log.read_text() if self.probe_log.exists() else ""
        return sum(line.startswith(word) for line in text.splitlines())

    def look(self):
        """Returns the pool's slots by device id. The request also makes the daemon query its probe more often."""
        with wire.connect(str(self.socket)) as client:
            page = client.look()
        self.problems = page.get("problems", [])
        return {slot["device"]["id"]: slot for slot in page.get("slots", [])}

    def until(self, condition, what):
        """Polls until the slots satisfy a condition, and returns them."""

        def look():
            slots = self.look()
            return (slots,) if condition(slots) else None

        return until(look, what)[0]

    def until_state(self, device, state):
        return self.until(
            lambda slots: device in slots and slots[device].get("state", 0) == wire.STATES[state],
            f"state {state} of {device}",
        )

    def close(self):
        super().close()
        processes.await_probes()
