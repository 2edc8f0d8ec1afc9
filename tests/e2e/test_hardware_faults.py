# SPDX-License-Identifier: Apache-2.0
"""Drivers that hang, cards that go and libraries that never return: each costs its own devices only.

The machine is made up below BERTH_SYSROOT; a pipe in place of a file of sysfs hangs whoever opens it.
"""
import json
import os
import time

import pytest
import wire
from fake_machine import GIB
from waiting import until_pending


def look(sandbox):
    """What `berth devices --json` says: the devices by id, and all of it. The sandbox does not wait for ever."""
    done = sandbox.run(["berth", "devices", "--json"])
    assert (done.code, done.stderr) == (0, ""), done
    document = json.loads(done.stdout)
    return {device["id"]: device for device in document["devices"]}, document


def messages(document, backend):
    return [problem["message"] for problem in document["problems"] if problem["backend"] == backend]


def mixed(machine):
    """One of everything; the cards by their ids."""
    cards = {
        "intel0": machine.add_intel_integrated(),
        "intel1": machine.add_intel(3),
        "amd0": machine.add_amd(4),
        "amd1": machine.add_amd(5, busy=75),
        "dri0": machine.add_virtio(6),
        "apple0": machine.add_asahi(),
        "dri1": machine.add_vgem(),
    }
    machine.add_display_only(7)
    return cards


# ---- All is well ----


def test_mixed_vendors(machine, sandbox):
    cards = mixed(machine)
    devices, document = look(sandbox)
    assert document["problems"] == []
    assert list(devices) == list(cards), "by PCI address, the others behind them by path"
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
    # Each is behind a port of its own, or on the bus itself; what has no bus has no way to others.
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


# ---- What hangs ----


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
def test_a_file_that_hangs_costs_its_device(machine, sandbox, name, file):
    cards = mixed(machine)
    cards[name].hang(file)
    devices, document = look(sandbox)
    assert list(devices) == list(cards), "it is listed all the same"
    sick = devices.pop(name)
    assert (sick["health"], sick["health_reason"]) == ("sick", "does not answer")
    assert sick["utilization"] is None and sick["memory_free"] is None
    assert {device["health"] for device in devices.values()} == {"ok"}
    [message] = messages(document, sick["vendor"])
    assert message.startswith(name) and "does not answer" in message
    assert len(document["problems"]) == 1


def test_the_table_names_what_hangs(machine, sandbox):
    mixed(machine)["amd0"].hang("gpu_busy_percent")
    done = sandbox.run(["berth", "devices"])
    assert done.code == 0
    line = next(line for line in done.stdout.splitlines() if line.startswith("amd0 "))
    assert "sick" in line and "does not answer" in line
    assert done.stderr.startswith("berth: amd: amd0 (") and done.stderr.count("\n") == 1


def test_the_deadline_is_kept(machine, sandbox):
    """On a machine that is busy with other tests one run may be late, but not every one."""
    mixed(machine)["amd0"].hang("gpu_busy_percent")
    took = []
    for _ in range(5):
        began = time.monotonic()
        done = sandbox.run(["berth", "devices", "--deadline", "500ms"])
        took.append(time.monotonic() - began)
        assert done.code == 0 and "does not answer" in done.stderr
        if took[-1] < 0.6:
            return
    raise AssertionError(f"wanted an answer within 500 ms, found {took}")


def test_a_file_that_nobody_needs_hangs_nobody(machine, sandbox):
    cards = mixed(machine)
    for name in ("amd0", "intel1"):
        cards[name].hang("uevent")
    devices, document = look(sandbox)
    assert {device["health"] for device in devices.values()} == {"ok"}
    assert document["problems"] == []


def test_many_that_hang_are_waited_for_together(machine, sandbox):
    cards = {f"amd{number}": machine.add_amd(4 + number) for number in range(8)}
    for number in range(0, 8, 2):
        cards[f"amd{number}"].hang("gpu_busy_percent")
    machine.add_intel_integrated().hang("vendor")
    devices, document = look(sandbox)
    health = {name: device["health"] for name, device in devices.items()}
    assert health == {"intel0": "sick", **{f"amd{n}": "ok" if n % 2 else "sick" for n in range(8)}}
    assert len(messages(document, "amd")) == 4 and len(messages(document, "intel")) == 1


def test_a_list_that_hangs_costs_its_vendor(machine, sandbox):
    cards = mixed(machine)
    cards["amd0"].hang(f"/sys/class/kfd/kfd/topology/nodes/{cards['amd0'].node}/properties")
    devices, document = look(sandbox)
    assert [name for name in devices if name.startswith("amd")] == []
    assert {device["health"] for device in devices.values()} == {"ok"}
    [message] = messages(document, "amd")
    assert "does not answer" in message


def test_what_sleeps_is_not_woken(machine, sandbox):
    """Its driver's files would hang, so that who reads one is found out."""
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
    assert devices["amd0"]["memory_total"] == 32 * GIB, "KFD knows that much by itself"


def test_a_process_that_hangs_who_looks_costs_the_processes(machine, sandbox):
    cards = mixed(machine)
    machine.add_process(4711, cards["amd0"], memory_vram="3 MiB")
    cards["amd0"].hang("/proc/4711/fdinfo/3")
    devices, document = look(sandbox)
    assert {device["health"] for device in devices.values()} == {"ok"}
    [message] = messages(document, "processes")
    assert "does not answer" in message


def test_a_process_that_cannot_be_described_is_shown(machine, sandbox):
    cards = mixed(machine)
    machine.add_process(4711, cards["amd0"], memory_vram="3 MiB")
    cards["amd0"].hang("/proc/4711/cmdline")
    devices, _ = look(sandbox)
    assert {device["health"] for device in devices.values()} == {"ok"}
    [user] = devices["amd0"]["processes"]
    assert (user["pid"], user["memory"], user["command"]) == (4711, 3 << 20, None)


def test_nothing_is_left_behind(machine, sandbox):
    """The sandbox fails the test for anything that still runs: workers that hang are to go with the probe."""
    mixed(machine)["amd0"].hang("gpu_busy_percent")
    done = sandbox.run(["berth", "devices", "--deadline", "100ms"])
    assert done.code == 0
    assert "does not answer" in done.stderr


# ---- Watching ----


class Watch:
    """A `berth devices --watch --json`, line by line."""

    def __init__(self, sandbox):
        self.program = sandbox.start(["berth", "devices", "--watch", "--json"])

    def until(self, condition):
        """The devices by id, of the first line that is as wanted."""
        while True:
            document = json.loads(self.program.wait_for_line("^{"))
            devices = {device["id"]: device for device in document["devices"]}
            if condition(devices):
                return devices, document


def test_watching(machine, sandbox):
    cards = mixed(machine)
    watch = Watch(sandbox)
    with watch.program:
        watch.until(lambda devices: len(devices) == 7)
        cards["amd1"].write("gpu_busy_percent", "99\n")
        watch.until(lambda devices: devices["amd1"]["utilization"] == 0.99)

        cards["intel1"].remove()
        watch.until(lambda devices: "intel1" not in devices)
        cards["intel1"].restore()
        watch.until(lambda devices: "intel1" in devices)

        cards["amd1"].hang("gpu_busy_percent")
        devices, document = watch.until(lambda devices: devices["amd1"]["health"] == "sick")
        assert devices["amd1"]["old"] is True
        assert devices["amd1"]["utilization"] == 0.99, "as it was"
        assert messages(document, "amd") != []
        cards["amd1"].mend("gpu_busy_percent")
        devices, document = watch.until(lambda devices: devices["amd1"]["health"] == "ok")
        assert devices["amd1"]["old"] is False
        assert document["problems"] == []

        cards["amd0"].sleep()
        watch.until(lambda devices: devices["amd0"]["asleep"])
        cards["amd0"].wake()
        watch.until(lambda devices: not devices["amd0"]["asleep"])


def test_utilization_by_engines(machine, sandbox):
    """Intel's drivers do not tell how busy a GPU is; its clients' engines do, from the second look on."""
    card = machine.add_intel(3)
    watch = Watch(sandbox)
    with watch.program:
        watch.until(lambda devices: devices["intel0"]["utilization"] == 0)
        machine.add_process(4711, card, cycles_ccs=0, total_cycles_ccs=1000)
        watch.until(lambda devices: devices["intel0"]["processes"])
        card.write("/proc/4711/fdinfo/3", fdinfo(card, 500, 2000))
        watch.until(lambda devices: devices["intel0"]["utilization"] == 0.5)


def fdinfo(card, cycles, total):
    lines = {"driver": "xe", "pdev": card.pci, "client-id": 1, "cycles-ccs": cycles, "total-cycles-ccs": total}
    return "".join(f"drm-{name}:\t{value}\n" for name, value in lines.items())


# ---- The daemon ----


def ids(done):
    """The devices of a command that printed BERTH_DEVICES."""
    assert done.code == 0, done
    return done.stdout.strip()


def run_somewhere(pool, *options):
    return ids(pool.berth("run", *options, "--", "sh", "-c", "echo $BERTH_DEVICES"))


def states(pool):
    done = pool.berth("status", "--json")
    assert done.code == 0, done
    document = json.loads(done.stdout)
    return {device["id"]: device["state"] for device in document["devices"]}, document


def test_the_daemon_goes_on_while_one_hangs(machine, machine_pool):
    cards = [machine.add_amd(4), machine.add_amd(5), machine.add_amd(6)]
    assert run_somewhere(machine_pool) == "amd0"
    cards[0].hang("gpu_busy_percent")
    slots = machine_pool.until_state("amd0", "SICK")
    assert slots["amd0"]["device"]["old"]
    assert run_somewhere(machine_pool, "-n", "2") == "amd1,amd2"
    found, document = states(machine_pool)
    assert found == {"amd0": "sick", "amd1": "free", "amd2": "free"}
    assert any(problem["message"].startswith("amd0 ") for problem in document["problems"])
    assert machine_pool.berth("run", "--device", "amd0", "--nonblock", "true").code == 123

    waiter = machine_pool.start("run", "-n", "3", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(machine_pool, 1)
    cards[0].mend("gpu_busy_percent")
    machine_pool.until(lambda slots: slots["amd0"].get("state", 0) != wire.STATES["SICK"], "a healthy amd0")
    waiter.wait_for_line("^amd0,amd1,amd2$")
    assert waiter.wait() == 0
    _, document = states(machine_pool)
    assert document["problems"] == []


def test_a_daemon_that_starts_while_one_hangs(machine, machine_pool):
    cards = [machine.add_amd(4), machine.add_intel(5)]
    cards[0].hang("gpu_busy_percent")
    assert run_somewhere(machine_pool) == "intel0"
    machine_pool.until_state("amd0", "SICK")
    cards[0].mend("gpu_busy_percent")
    machine_pool.until_state("amd0", "FREE")
    assert run_somewhere(machine_pool, "--vendor", "amd") == "amd0"


def test_a_card_that_goes_while_it_is_leased(machine, machine_pool):
    cards = [machine.add_intel(3), machine.add_intel(4)]
    holder = machine_pool.hold("--device", "intel1")
    cards[1].remove()
    machine_pool.until(lambda slots: "what=gone id=intel1" in machine_pool.log.read_text(), "the loss of intel1")
    assert states(machine_pool)[0]["intel1"] == "leased", "the holder keeps it"
    assert run_somewhere(machine_pool) == "intel0"
    machine_pool.let_go(holder)
    machine_pool.until_state("intel1", "GONE")
    assert machine_pool.berth("run", "-n", "2", "true").code == 120
    cards[1].restore()
    machine_pool.until_state("intel1", "FREE")
    assert run_somewhere(machine_pool, "-n", "2") == "intel0,intel1"


def test_a_card_that_comes(machine, machine_pool):
    machine.add_intel(3)
    holder = machine_pool.hold()
    waiter = machine_pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(machine_pool, 1)
    machine.add_intel(4)
    machine_pool.until(lambda slots: "intel1" in slots, "intel1")
    waiter.wait_for_line("^intel1$")
    assert waiter.wait() == 0
    machine_pool.let_go(holder)


def test_one_that_sleeps_can_be_leased(machine, machine_pool):
    machine.add_intel(3).sleep()
    assert run_somewhere(machine_pool) == "intel0"
    machine_pool.until_state("intel0", "ASLEEP")


# ---- A library ----


@pytest.fixture
def nvml(machine, sandbox):
    """Says what the double of NVIDIA's library tells of."""
    library = os.environ.get("TEST_LIB_NVIDIA_ML", "")
    if not os.path.exists(library):
        pytest.skip("the double of NVML is not built")
    script = sandbox.directory / "nvml"
    sandbox.environment.update({"BERTH_NVML": library, "NVML_DOUBLE": str(script)})

    def says(*gpus, first=""):
        text = f"driver 550.163.01\n{first}\n"
        for number, more in enumerate(gpus):
            text += f"gpu\nname NVIDIA T4\nuuid GPU-{number}\npci {machine.domain:08x}:{0x40 + number:02x}:00.0"
            text += f" 0x1eb810de 0x12a210de\nminor {number}\nmemory 1000 600 0\nutilization 50 20\n{more}\n"
        machine.write(script, text)

    return says


@pytest.mark.parametrize("function", ["nvmlInit_v2", "nvmlDeviceGetCount_v2"])
@pytest.mark.parametrize("fault", ["hang", "crash"])
def test_a_library_that_never_returns(machine, sandbox, nvml, function, fault):
    nvml("", "", first=f"call {function} {fault}")
    machine.add_amd(4)
    machine.add_intel(5)
    devices, document = look(sandbox)
    assert {name: device["health"] for name, device in devices.items()} == {"amd0": "ok", "intel0": "ok"}
    assert len(messages(document, "nvidia")) == 1
    assert len(document["problems"]) == 1


@pytest.mark.parametrize("fault", ["hang", "crash"])
def test_a_library_that_fails_at_one_gpu(machine, sandbox, nvml, fault):
    nvml("", f"call nvmlDeviceGetUtilizationRates {fault}", "")
    machine.add_amd(4)
    devices, document = look(sandbox)
    health = {name: device["health"] for name, device in devices.items()}
    assert health.pop("nvidia1") == "sick"
    assert list(health) == ["amd0", "nvidia0", "nvidia2"] and "sick" not in health.values()
    assert devices["nvidia0"]["utilization"] == 0.5
    [message] = messages(document, "nvidia")
    assert message.startswith("nvidia1 (")


def test_the_daemon_goes_on_without_a_library(machine, machine_pool, nvml):
    nvml("", first="call nvmlInit_v2 hang")
    machine.add_amd(4)
    assert run_somewhere(machine_pool) == "amd0"
    _, document = states(machine_pool)
    assert [problem["backend"] for problem in document["problems"]] == ["nvidia"]
