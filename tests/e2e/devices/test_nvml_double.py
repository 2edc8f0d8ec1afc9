# SPDX-License-Identifier: Apache-2.0
"""The NVML double: its calls behave as documented, and real clients accept it.

The structs are defined here again from the documentation: berth and the double share one header,
which could hide a mistake in it.
"""
import ctypes
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest
from nvml_machine import Machine, read
from recorded_machine import data_file

UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 1, 2, 3, 6
INSUFFICIENT_SIZE, DRIVER_NOT_LOADED, GPU_IS_LOST, VERSION_MISMATCH = 7, 9, 15, 25
NO_ATTACH = 2

unsigned, wide = ctypes.c_uint, ctypes.c_ulonglong


class PciInfo(ctypes.Structure):
    _fields_ = [
        ("busIdLegacy", ctypes.c_char * 16),
        ("domain", unsigned),
        ("bus", unsigned),
        ("device", unsigned),
        ("pciDeviceId", unsigned),
        ("pciSubSystemId", unsigned),
        ("busId", ctypes.c_char * 32),
    ]


class Memory2(ctypes.Structure):
    _fields_ = [("version", unsigned), ("total", wide), ("reserved", wide), ("free", wide), ("used", wide)]


class Process(ctypes.Structure):
    _fields_ = [
        ("pid", unsigned),
        ("usedGpuMemory", wide),
        ("gpuInstanceId", unsigned),
        ("computeInstanceId", unsigned),
    ]


class Client:
    """The double, loaded for each test from a separate copy, because it keeps state."""

    def __init__(self, directory, monkeypatch):
        self.file, self.log = directory / "machine", directory / "log"
        self.machine = Machine()
        environment = Machine.environment(self.file, self.log)
        library = shutil.copy(environment["BERTH_NVML"], directory)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        self.library = ctypes.CDLL(str(library))

    def says(self):
        self.machine.write(self.file)

    def __getattr__(self, name):
        function = getattr(self.library, "nvml" + name)
        return lambda *arguments: function(*arguments)

    def handle(self, index=0):
        handle = ctypes.c_void_p()
        assert self.DeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
        return handle

    def lines(self):
        return self.log.read_text().splitlines()


@pytest.fixture
def client(sandbox, monkeypatch):
    made = Client(sandbox.directory, monkeypatch)
    made.machine.gpu(name="NVIDIA T4", uuid="GPU-1", pci=("00010007:3B:00.0", 0x1EB810DE, 0x12A210DE))
    made.machine.gpus[0].say(memory=(1000, 600, 50), temperature=41)
    made.machine.gpu(name="B", pci="0000:AF:00.0")
    made.says()
    return made


def test_nothing_works_before_it_is_started(client):
    count = unsigned()
    assert client.DeviceGetCount_v2(ctypes.byref(count)) == UNINITIALIZED
    assert client.Shutdown() == UNINITIALIZED
    assert client.Init_v2() == 0
    assert client.DeviceGetCount_v2(ctypes.byref(count)) == 0
    assert count.value == 2
    assert client.Shutdown() == 0
    assert client.DeviceGetCount_v2(ctypes.byref(count)) == UNINITIALIZED


def test_arguments_are_checked(client):
    client.Init_v2()
    handle = ctypes.c_void_p()
    assert client.DeviceGetCount_v2(None) == INVALID_ARGUMENT
    assert client.DeviceGetHandleByIndex_v2(2, ctypes.byref(handle)) == INVALID_ARGUMENT
    assert client.DeviceGetName(ctypes.c_void_p(4096), None, 0) == INVALID_ARGUMENT
    assert client.DeviceGetHandleByPciBusId_v2(b"0000:01:00.0", ctypes.byref(handle)) == NOT_FOUND
    assert client.DeviceGetHandleByPciBusId_v2(b"0000:af:00.0", ctypes.byref(handle)) == 0
    index = unsigned()
    assert client.DeviceGetIndex(handle, ctypes.byref(index)) == 0
    assert index.value == 1


def test_structs_are_laid_out_as_documented(client):
    client.Init_v2()
    pci, memory = PciInfo(), Memory2(version=ctypes.sizeof(Memory2) | 2 << 24)
    assert ctypes.sizeof(pci) == 68
    assert client.DeviceGetPciInfo_v3(client.handle(), ctypes.byref(pci)) == 0
    assert (pci.domain, pci.bus, pci.device, pci.pciDeviceId) == (0x10007, 0x3B, 0, 0x1EB810DE)
    assert (pci.busId, pci.busIdLegacy) == (b"00010007:3B:00.0", b"0007:3B:00.0")
    assert client.DeviceGetMemoryInfo_v2(client.handle(), ctypes.byref(memory)) == 0
    assert (memory.total, memory.reserved, memory.free, memory.used) == (1000, 50, 600, 400)
    memory.version = 1
    assert client.DeviceGetMemoryInfo_v2(client.handle(), ctypes.byref(memory)) == VERSION_MISMATCH
    assert client.DeviceGetMemoryInfo_v2(client.handle(1), ctypes.byref(Memory2(0x2000028))) == NOT_SUPPORTED


def test_names_need_room(client):
    client.Init_v2()
    name = ctypes.create_string_buffer(96)
    assert client.DeviceGetName(client.handle(), name, 96) == 0
    assert name.value == b"NVIDIA T4"
    assert client.DeviceGetName(client.handle(), name, 9) == INSUFFICIENT_SIZE


def test_lists_of_processes_say_how_much_room_they_need(client):
    client.machine.gpus[0].process("compute", 7, 70).process("compute", 8, None).process("graphics", 9, 1)
    client.says()
    client.Init_v2()
    count, room = unsigned(0), (Process * 4)()
    ask = client.DeviceGetComputeRunningProcesses_v3
    assert ask(client.handle(), ctypes.byref(count), None) == INSUFFICIENT_SIZE
    assert count.value == 2
    assert ask(client.handle(), ctypes.byref(count), room) == 0
    assert [(one.pid, one.usedGpuMemory) for one in room[:2]] == [(7, 70), (8, 2**64 - 1)]
    assert room[0].gpuInstanceId == 2**32 - 1
    count.value = 0
    assert ask(client.handle(1), ctypes.byref(count), None) == 0
    assert count.value == 0


def test_attaching_to_gpus_is_seen(client):
    assert client.InitWithFlags(NO_ATTACH) == 0
    assert "attach 0" not in client.lines()
    client.handle(1)
    assert [line for line in client.lines() if line.startswith("attach")] == ["attach 1"]
    client.Shutdown()
    client.Init_v2()
    assert [line for line in client.lines() if line.startswith("attach")][1:] == ["attach 0", "attach 1"]


def test_faults_are_put_in_while_it_runs(client):
    client.Init_v2()
    handle, degrees = client.handle(), unsigned()
    assert client.DeviceGetTemperature(handle, 0, ctypes.byref(degrees)) == 0
    assert degrees.value == 41
    client.machine.gpus[0].call("nvmlDeviceGetTemperature", "return 15")
    client.says()
    assert client.DeviceGetTemperature(handle, 0, ctypes.byref(degrees)) == GPU_IS_LOST
    client.machine.say(init=DRIVER_NOT_LOADED)
    client.says()
    assert client.Init_v2() == DRIVER_NOT_LOADED
    client.library.nvmlErrorString.restype = ctypes.c_char_p
    assert client.library.nvmlErrorString(DRIVER_NOT_LOADED) == b"Driver Not Loaded"


def test_a_statement_that_is_none_is_refused(sandbox):
    file = sandbox.directory / "machine"
    file.write_text("gpu\n nmae T4\n")
    done = sandbox.run([os.environ["DUMP_SIGHT"], "nvidia"], env=Machine.environment(file))
    assert done.code == 70
    assert f"{file}:2: expected a statement of the NVML double, got nmae" in done.stderr


@pytest.fixture
def dgx(sandbox, source_root):
    """Return an environment in which NVML is the double of a DGX A100, with the file name that
    clients load."""
    file = sandbox.directory / "machine"
    read(data_file(source_root, "machines/nvidia-profiles/a100.yaml")).write(file)
    environment = Machine.environment(file)
    return environment | {"LD_LIBRARY_PATH": os.path.dirname(environment["BERTH_NVML"])}


PYNVML = """
import pynvml as n
n.nvmlInit()
print(n.nvmlSystemGetDriverVersion(), n.nvmlDeviceGetCount())
for i in range(n.nvmlDeviceGetCount()):
    h = n.nvmlDeviceGetHandleByIndex(i)
    m = n.nvmlDeviceGetMemoryInfo(h)
    text = lambda t: t if isinstance(t, str) else t.decode()
    print(text(n.nvmlDeviceGetName(h)), text(n.nvmlDeviceGetUUID(h)), text(n.nvmlDeviceGetPciInfo(h).busId),
          m.total, n.nvmlDeviceGetTemperature(h, 0), n.nvmlDeviceGetPowerUsage(h),
          n.nvmlDeviceGetCudaComputeCapability(h), n.nvmlDeviceGetComputeRunningProcesses(h),
          n.nvmlDeviceGetNvLinkState(h, 11))
n.nvmlShutdown()
"""


def test_pynvml_reads_the_double(sandbox, dgx):
    module = importlib.util.find_spec("pynvml")
    if module is None:
        pytest.skip("pynvml is not installed")
    env = dgx | {"PYTHONPATH": os.path.dirname(module.origin)}
    done = sandbox.run([sys.executable, "-c", PYNVML], env=env)
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "550.163.01 8"
    assert lines[1] == (
        "NVIDIA A100-SXM4-40GB GPU-12345678-1234-1234-1234-123456780000 00000000:07:00.0"
        " 42949672960 33 72000 (8, 0) [] 1"
    )
    assert len(lines) == 9


def test_hwloc_reads_the_double(sandbox, dgx):
    named = os.environ.get("HWLOC_PLUGINS_PATH")
    places = [Path(named)] if named else Path("/usr/lib").glob("**/hwloc")
    if shutil.which("lstopo-no-graphics") is None or not any((p / "hwloc_nvml.so").exists() for p in places):
        pytest.skip("hwloc's plugin for NVML is not installed")
    done = sandbox.run(
        ["lstopo-no-graphics", "--of", "console", "-v"], env=dgx | {"HWLOC_PLUGINS_PATH": named}
    )
    assert done.code == 0
    assert all(f'"nvml{i}"' in done.stdout for i in range(8))
    assert done.stdout.count("NVIDIA A100-SXM4-40GB") == 8


def test_nvtop_reads_the_double(sandbox, dgx):
    if shutil.which("nvtop") is None:
        pytest.skip("nvtop is not installed")
    screen = sandbox.terminal(["nvtop"], columns=200, rows=60, env=dgx)
    for i in range(8):
        screen.wait_for(rf"Device {i} .*?NVIDIA A100-SXM4-40GB")
    screen.send("q")
    assert screen.wait() == 0
