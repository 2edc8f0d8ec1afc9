# SPDX-License-Identifier: Apache-2.0
"""Drivers that hang, cards that disappear and libraries that never return: each fault affects only
its own devices.

The machine is made up below BERTH_SYSROOT. A pipe in place of a sysfs file blocks every process
that opens it.
"""
import contextlib
import json
import os
import time
from pathlib import Path

import pytest
from fake_machine import GIB, mixed
from frozen_processes import Freezer
from processes import command_line, processes, wait_for_end
from waiting import until

# The pid of a made-up process. A real process would be remembered, and described without its files.
NO_PROCESS = 5000001


def look(sandbox):
    """Return the devices of `berth devices --json` by id, and the whole document. The sandbox
    limits the time."""
    done = sandbox.run(["berth", "devices", "--json"])
    assert (done.code, done.stderr) == (0, ""), done
    document = json.loads(done.stdout)
    return {device["id"]: device for device in document["devices"]}, document


def messages(document, backend):
    return [problem["message"] for problem in document["problems"] if problem["backend"] == backend]


def who_opens(machine, name):
    """Return the process that is opening such a file of this machine. It blocks, because the file
    is a pipe without a writer."""
    for pid, _, _ in processes():
        if command_line(pid) == "berth-probe" and is_opening(pid, machine, name):
            return pid
    return None


def is_opening(pid, machine, name):
    """The second argument of its system call points to the path, as with openat."""
    try:
        words = Path(f"/proc/{pid}/syscall").read_text().split()
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(int(words[2], 16))
            path = os.fsdecode(memory.read(os.pathconf("/", "PC_PATH_MAX")).split(b"\0")[0])
            return path.startswith(os.path.realpath(machine.root)) and path.endswith(name)
    except (OSError, ValueError, IndexError):
        return False


def parent_of(pid):
    return next(parent for other, parent, _ in processes() if other == pid)


# ---- Without faults ----


def test_mixed_vendors(machine, sandbox):
    cards = mixed(machine)
    devices, document = look(sandbox)
    assert document["problems"] == []
    assert list(devices) == list(cards), "expected PCI devices by address, then other devices by path"
    for name, card in cards.items():
        device = devices[name]
        assert (device["health"], device["asleep"], device["old"]) == ("ok", False, False), name
        assert device["pci"] == (card.pci.lstrip("0") if card.pci else None)
        assert {card.node_path("render"), card.node_path("card")} <= set(device["nodes"])
    assert ("/dev/kfd" in devices["amd0"]["nodes"]) and ("/dev/kfd" not in devices["intel0"]["nodes"])
    assert [devices[name]["kind"] for name in ("intel0", "intel1", "amd0", "apple0")] == [
        "integrated",
        "discrete",
        "discrete",
        "integrated",
    ]
    amd = devices["amd1"]
    assert (amd["memory_total"], amd["memory_free"]) == (32 * GIB, 30 * GIB)
    assert (amd["utilization"], amd["temperature_c"], amd["power_w"]) == (0.75, 40.005, 90)
    assert (devices["intel1"]["memory_total"], devices["intel0"]["memory_total"]) == (16 * GIB, None)
    assert (devices["intel1"]["frequency_hz"], devices["intel1"]["temperature_c"]) == (2050 * 10**6, 51)
    # Each card is behind its own port, or on the bus itself. Devices without a bus have no links.
    kinds = {tuple(link["between"]): link["kind"] for link in document["links"]}
    assert kinds["amd0", "amd1"] == kinds["intel0", "intel1"] == "phb"
    assert not any("apple0" in pair or "dri1" in pair for pair in kinds)


def test_who_uses_what(machine, sandbox):
    cards = mixed(machine)
    container = "0123456789abcdef" * 4
    group = f"/system.slice/docker-{container}.scope"
    words = ("python3", "train.py", "--fast")
    machine.add_process(4711, cards["amd0"], memory_vram="3 MiB", command=words, group=group, uid=4 * 10**9)
    machine.add_process(4712, cards["intel0"], kind="card", resident_system0="8 KiB")
    machine.add_process(4713, cards["dri1"])
    devices, document = look(sandbox)
    assert document["problems"] == []
    assert devices["amd0"]["processes"] == [
        {
            "pid": 4711,
            "user": "4000000000",
            "command": "python3 train.py --fast",
            "memory": 3 << 20,
            "lease": None,
            "container": container,
            "uid": 4 * 10**9,
            "since": None,
            "squats": None,
        }
    ]
    assert [(user["pid"], user["memory"]) for user in devices["intel0"]["processes"]] == [(4712, 8192)]
    assert [(user["pid"], user["memory"]) for user in devices["dri1"]["processes"]] == [(4713, None)]
    assert devices["amd1"]["processes"] == []


def test_a_card_that_goes_and_comes_back(machine, sandbox):
    cards = mixed(machine)
    cards["intel1"].remove()
    cards["amd1"].remove()
    devices, document = look(sandbox)
    assert document["problems"] == []
    assert list(devices) == ["intel0", "amd0", "dri0", "apple0", "dri1"]
    cards["amd1"].restore()
    cards["intel1"].restore()
    devices, document = look(sandbox)
    assert list(devices) == list(cards)
    assert devices["amd1"]["pci"] == cards["amd1"].pci


# ---- Hanging drivers ----


@pytest.mark.parametrize(
    "name, file",
    [
        ("amd0", "gpu_busy_percent"),
        ("amd0", "mem_info_vram_used"),
        ("amd1", "hwmon/hwmon3/temp1_input"),
        ("amd1", "vendor"),
        ("intel0", "vendor"),
        ("intel0", "local_cpulist"),
        ("intel1", "tile0/gt0/freq0/act_freq"),
        ("intel1", "power/runtime_status"),
        ("apple0", "of_node/compatible"),
    ],
)
def test_a_file_that_hangs_costs_its_device(machine, sandbox, impatient, name, file):
    cards = mixed(machine)
    cards[name].hang(file)
    devices, document = look(sandbox)
    assert list(devices) == list(cards), "the device must still be listed"
    sick = devices.pop(name)
    assert (sick["health"], sick["health_reason"]) == ("sick", "does not answer")
    assert sick["utilization"] is None and sick["memory_free"] is None
    assert {device["health"] for device in devices.values()} == {"ok"}
    [message] = messages(document, sick["vendor"])
    assert message.startswith(name) and "does not answer" in message
    assert len(document["problems"]) == 1


def test_the_table_names_what_hangs(machine, sandbox, impatient):
    mixed(machine)["amd0"].hang("gpu_busy_percent")
    done = sandbox.run(["berth", "devices"])
    assert done.code == 0
    line = next(line for line in done.stdout.splitlines() if line.startswith("amd0 "))
    assert "sick" in line and "does not answer" in line
    assert done.stderr.startswith("berth: amd: amd0 (") and done.stderr.count("\n") == 1


def time_of_look(sandbox, milliseconds):
    """Return how long `berth devices` takes with this deadline when a driver hangs. berth gives up
    on the probe half a second after the deadline."""
    began = time.monotonic()
    done = sandbox.run(["berth", "devices", "--deadline", f"{milliseconds}ms"])
    took = time.monotonic() - began
    assert (done.code == 0 and "does not answer" in done.stderr) or took >= milliseconds / 1000 + 0.5, done
    return took


def test_the_deadline_is_kept(machine, sandbox, impatient):
    """One run may be late on a machine that is busy with other tests, but not every run."""
    mixed(machine)["amd0"].hang("gpu_busy_percent")
    took = []
    for _ in range(5):
        took.append(time_of_look(sandbox, 500))
        if took[-1] < 0.6:
            return
    raise AssertionError(f"expected an answer within 500 ms, got {took}")


def test_a_file_that_nobody_needs_hangs_nobody(machine, sandbox, impatient):
    cards = mixed(machine)
    for name in ("amd0", "intel1"):
        cards[name].hang("uevent")
    devices, document = look(sandbox)
    assert {device["health"] for device in devices.values()} == {"ok"}
    assert document["problems"] == []


def test_many_that_hang_are_waited_for_together(machine, sandbox, impatient):
    cards = {f"amd{number}": machine.add_amd(4 + number) for number in range(8)}
    for number in range(0, 8, 2):
        cards[f"amd{number}"].hang("gpu_busy_percent")
    machine.add_intel_integrated().hang("vendor")
    devices, document = look(sandbox)
    health = {name: device["health"] for name, device in devices.items()}
    assert health == {"intel0": "sick", **{f"amd{n}": "ok" if n % 2 else "sick" for n in range(8)}}
    assert len(messages(document, "amd")) == 4 and len(messages(document, "intel")) == 1


def test_a_node_of_kfd_that_hangs_costs_its_device(machine, sandbox, impatient):
    """The probe cannot read which card the KFD node belongs to. The card must not be listed twice."""
    cards = mixed(machine)
    cards["amd0"].hang(f"/sys/class/kfd/kfd/topology/nodes/{cards['amd0'].node}/properties")
    devices, document = look(sandbox)
    assert sorted(devices) == sorted(cards)
    assert [name for name, device in devices.items() if device["health"] != "ok"] == ["amd0"]
    assert devices["amd1"]["pci"] == cards["amd1"].pci
    [message] = messages(document, "amd")
    assert "amd0" in message


def test_a_driver_that_holds_who_looks_in_the_kernel(machine, sandbox, impatient):
    """Not even SIGKILL ends the probe's worker. It is left behind, and no process waits for it."""
    with contextlib.closing(Freezer()) as freezer:
        cards = mixed(machine)
        cards["amd0"].hang("gpu_busy_percent")
        looking = sandbox.start(["berth", "devices", "--json"])
        worker = until(lambda: who_opens(machine, "gpu_busy_percent"), "a process that opens the file")
        freezer.freeze(worker)
        assert Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0] == "D"
        supervisor = parent_of(worker)
        assert looking.wait() == 0
        devices = {device["id"]: device for device in json.loads(looking.text())["devices"]}
        assert [name for name, device in devices.items() if device["health"] != "ok"] == ["amd0"]
        wait_for_end(supervisor)
        assert Path(f"/proc/{worker}").exists(), "the worker was not frozen"


def test_what_sleeps_is_not_woken(machine, sandbox, impatient):
    """The files of sleeping devices hang, so the test detects every read."""
    cards = mixed(machine)
    for name, files in {
        "amd0": ["gpu_busy_percent", "mem_info_vram_used", "hwmon/hwmon3/temp1_input", "unique_id"],
        "intel1": ["tile0/gt0/freq0/act_freq", "tile0/physical_vram_size_bytes", "hwmon/hwmon7/temp2_input"],
    }.items():
        cards[name].sleep()
        for file in files:
            cards[name].hang(file)
    devices, document = look(sandbox)
    assert document["problems"] == []
    for name in ("amd0", "intel1"):
        assert devices[name]["asleep"] is True
        assert devices[name]["name"] and devices[name]["nodes"]
        assert [devices[name][figure] for figure in ("utilization", "temperature_c", "frequency_hz")] == [None] * 3
    assert [device["asleep"] for device in devices.values()].count(True) == 2
    assert devices["amd0"]["memory_total"] == 32 * GIB, "KFD reports the total memory even of a sleeping device"


def test_a_process_that_hangs_who_looks_costs_the_processes(machine, sandbox, impatient):
    cards = mixed(machine)
    machine.add_process(NO_PROCESS, cards["amd0"], memory_vram="3 MiB")
    cards["amd0"].hang(f"/proc/{NO_PROCESS}/fdinfo/3")
    devices, document = look(sandbox)
    assert {device["health"] for device in devices.values()} == {"ok"}
    [message] = messages(document, "processes")
    assert "does not answer" in message


def test_a_process_that_cannot_be_described_is_shown(machine, sandbox, impatient):
    cards = mixed(machine)
    machine.add_process(NO_PROCESS, cards["amd0"], memory_vram="3 MiB")
    cards["amd0"].hang(f"/proc/{NO_PROCESS}/cmdline")
    devices, _ = look(sandbox)
    assert {device["health"] for device in devices.values()} == {"ok"}
    [user] = devices["amd0"]["processes"]
    assert (user["pid"], user["memory"], user["command"]) == (NO_PROCESS, 3 << 20, None)


def test_nothing_is_left_behind(machine, sandbox, impatient):
    """The sandbox fails the test if a process still runs: hanging workers must end with the probe."""
    mixed(machine)["amd0"].hang("gpu_busy_percent")
    time_of_look(sandbox, 100)


# ---- A library ----


@pytest.mark.parametrize("function", ["nvmlInit_v2", "nvmlDeviceGetCount_v2"])
@pytest.mark.parametrize("fault", ["hang", "crash"])
def test_a_library_that_never_returns(machine, sandbox, impatient, nvml, function, fault):
    nvml(2, (None, function, fault))
    machine.add_amd(4)
    machine.add_intel(5)
    devices, document = look(sandbox)
    assert {name: device["health"] for name, device in devices.items()} == {"amd0": "ok", "intel0": "ok"}
    assert len(messages(document, "nvidia")) == 1
    assert len(document["problems"]) == 1


@pytest.mark.parametrize("fault", ["hang", "crash"])
def test_a_library_that_fails_at_one_gpu(machine, sandbox, impatient, nvml, fault):
    nvml(3, (1, "nvmlDeviceGetUtilizationRates", fault))
    machine.add_amd(4)
    devices, document = look(sandbox)
    health = {name: device["health"] for name, device in devices.items()}
    assert health.pop("nvidia1") == "sick"
    assert list(health) == ["amd0", "nvidia0", "nvidia2"] and "sick" not in health.values()
    assert devices["nvidia0"]["utilization"] == 0.5
    [message] = messages(document, "nvidia")
    assert message.startswith("nvidia1 (")
