# SPDX-License-Identifier: Apache-2.0
"""berth devices on NVIDIA GPUs, with the real probe and the NVML double: cards and a library that
hang, crash, return wrong values, sleep and disappear."""
import json
import time

import pytest
from nvml_machine import Machine

DEADLINE = 3.0  # the probe's default deadline
ROOM = 2.0  # extra time to start programs on a busy machine


class Nvidia:
    """A machine with three GPUs, and berth on it."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.root = sandbox.directory / "sysroot"
        self.file, self.log = sandbox.directory / "machine", sandbox.directory / "machine.log"
        self.machine = Machine()
        for i in range(3):
            self.machine.gpu(name="NVIDIA T4", uuid=f"GPU-{i}", pci=f"0000:0{i + 1}:00.0", minor=i)
            self.machine.gpus[i].say(memory=(16 << 30, 15 << 30, 0), utilization=(10 * i, 0), power=10000 + i)
        self.machine.write_sysfs(self.root)

    def devices(self):
        """Return berth's output, and how long it took."""
        self.machine.write(self.file)
        start = time.monotonic()
        done = self.sandbox.run(
            ["berth", "devices", "--json"], env=self.machine.environment(self.file, self.log)
        )
        self.took = time.monotonic() - start
        assert done.code == 0, done.stderr
        return json.loads(done.stdout)

    def device_file(self, gpu, name):
        return self.root / "sys/bus/pci/devices" / self.machine.addresses()[gpu] / name


@pytest.fixture
def nvidia(sandbox):
    return Nvidia(sandbox)


def column(sight, key):
    return {device["id"]: device[key] for device in sight["devices"]}


def messages(sight):
    return [problem["message"] for problem in sight["problems"] if problem["backend"] == "nvidia"]


def test_all_is_well(nvidia):
    sight = nvidia.devices()
    assert column(sight, "health") == dict.fromkeys(["nvidia0", "nvidia1", "nvidia2"], "ok")
    assert column(sight, "utilization") == {"nvidia0": 0, "nvidia1": 0.1, "nvidia2": 0.2}
    assert sight["problems"] == []


@pytest.mark.parametrize(
    "action, why", [("hang", "does not answer"), ("crash", "crashed (SIGSEGV)"), ("return 15", None)]
)
def test_one_card_costs_itself_only(nvidia, action, why):
    nvidia.machine.gpus[1].call("nvmlDeviceGetPowerUsage", action)
    sight = nvidia.devices()
    assert column(sight, "health") == {"nvidia0": "ok", "nvidia1": "sick", "nvidia2": "ok"}
    assert column(sight, "utilization")["nvidia2"] == 0.2
    assert nvidia.took < DEADLINE + ROOM
    if why is not None:
        assert column(sight, "health_reason")["nvidia1"] == why
        assert messages(sight) == [f"nvidia1 (0000:02:00.0): {why}"]
    else:
        assert "lost" in column(sight, "health_reason")["nvidia1"]


def test_a_card_out_of_reach_is_shown(nvidia):
    nvidia.machine.gpus[1].call("nvmlDeviceGetHandleByIndex_v2", "return 15")
    sight = nvidia.devices()
    assert column(sight, "pci")["nvidia1"] == "0000:02:00.0"
    assert column(sight, "health") == {"nvidia0": "ok", "nvidia1": "sick", "nvidia2": "ok"}
    assert column(sight, "health_reason")["nvidia1"] == "cannot open GPU index 1: GPU is lost (NVML 15)"


@pytest.mark.parametrize("action", ["hang", "crash"])
def test_a_library_that_never_returns_is_a_problem(nvidia, action):
    nvidia.machine.call("nvmlInit_v2", action)
    sight = nvidia.devices()
    assert sight["devices"] == []
    assert len(messages(sight)) == 1
    assert nvidia.took < DEADLINE + ROOM


def test_lies_are_unknown(nvidia):
    for function in ("UtilizationRates", "PowerUsage", "Name", "MemoryInfo_v2"):
        nvidia.machine.call(f"nvmlDeviceGet{function}", "lie")
    sight = nvidia.devices()
    assert column(sight, "health") == dict.fromkeys(["nvidia0", "nvidia1", "nvidia2"], "ok")
    for key in ("utilization", "power_w", "memory_total", "memory_free"):
        assert set(column(sight, key).values()) == {None}, key
    assert set(column(sight, "name").values()) == {"A" * 96}


def test_no_library_and_no_driver(nvidia):
    nvidia.machine.say(init=9)
    assert nvidia.devices()["devices"] == []
    nvidia.machine.say(init=18)
    sight = nvidia.devices()
    assert sight["devices"] == []
    assert "the driver was updated, reboot" in messages(sight)[0]


def test_one_that_sleeps_is_not_woken(nvidia):
    nvidia.device_file(1, "power/runtime_status").write_text("suspended\n")
    nvidia.device_file(1, "power/control").write_text("auto\n")
    sight = nvidia.devices()
    assert column(sight, "asleep") == {"nvidia0": False, "nvidia1": True, "nvidia2": False}
    assert column(sight, "utilization") == {"nvidia0": 0, "nvidia1": None, "nvidia2": 0.2}
    log = nvidia.log.read_text().splitlines()
    assert "attach 0" in log and "attach 2" in log
    assert not [line for line in log if line.endswith(" 1")]


def test_instances_stand_behind_their_gpu(nvidia):
    instance = nvidia.machine.gpus[1].instance(2, name="NVIDIA T4 MIG 1g.4gb", uuid="MIG-1")
    instance.say(memory=(4 << 30, 4 << 30, 0), gpu_instance=3, compute_instance=0)
    sight = nvidia.devices()
    assert list(column(sight, "id")) == ["nvidia0", "nvidia1", "nvidia1.2", "nvidia2"]
    assert column(sight, "parent")["nvidia1.2"] == "nvidia1"
    assert column(sight, "memory_total")["nvidia1.2"] == 4 << 30
    assert column(sight, "pci")["nvidia1.2"] == "0000:02:00.0"
