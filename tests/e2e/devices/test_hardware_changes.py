# SPDX-License-Identifier: Apache-2.0
"""Machines that change while berth reads them, and while the daemon allocates their devices.

The machine is made up below BERTH_SYSROOT. A pipe in place of a sysfs file blocks every process
that opens it.
"""
import json

import wire
from fake_machine import mixed
from waiting import until_pending


# ---- Watching ----


class Watch:
    """Run `berth devices --watch --json` and read it line by line."""

    def __init__(self, sandbox):
        self.program = sandbox.start(["berth", "devices", "--watch", "--json"])

    def until(self, condition):
        """Return the devices by id, from the first line that satisfies the condition."""
        while True:
            document = json.loads(self.program.wait_for_line("^{"))
            devices = {device["id"]: device for device in document["devices"]}
            if condition(devices):
                return devices, document


def test_watching(machine, sandbox, impatient):
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
        assert devices["amd1"]["utilization"] == 0.99, "the last value before the fault"
        assert [problem["backend"] for problem in document["problems"]] == ["amd"]
        cards["amd1"].mend("gpu_busy_percent")
        devices, document = watch.until(lambda devices: devices["amd1"]["health"] == "ok")
        assert devices["amd1"]["old"] is False
        assert document["problems"] == []

        cards["amd0"].sleep()
        devices, _ = watch.until(lambda devices: devices["amd0"]["asleep"])
        assert devices["amd0"]["utilization"] is None, "the probe must not read a sleeping device"
        cards["amd0"].wake()
        watch.until(lambda devices: not devices["amd0"]["asleep"])


def test_utilization_by_engines(machine, sandbox):
    """Intel's drivers do not report how busy a GPU is. The probe computes it from the clients'
    engines, from the second probe on."""
    card = machine.add_intel(3)
    watch = Watch(sandbox)
    with watch.program:
        watch.until(lambda devices: devices["intel0"]["utilization"] == 0)
        machine.add_process(4711, card, cycles_ccs=0, total_cycles_ccs=1000)
        watch.until(lambda devices: devices["intel0"]["processes"])
        card.write("/proc/4711/fdinfo/3", fdinfo(card, 500, 2000))
        watch.until(lambda devices: devices["intel0"]["utilization"] == 0.5)


def test_how_busy_one_is_that_does_not_answer(machine, sandbox, impatient):
    """A sick device without open files is not reported as idle: its utilization is unknown."""
    machine.add_intel(3)
    machine.add_amd(4).hang("gpu_busy_percent")
    watch = Watch(sandbox)
    with watch.program:
        devices, _ = watch.until(lambda devices: devices["intel0"]["utilization"] == 0)
        assert devices["amd0"]["health"] == "sick"
        assert devices["amd0"]["utilization"] is None


def fdinfo(card, cycles, total):
    lines = {"driver": "xe", "pdev": card.pci, "client-id": 1, "cycles-ccs": cycles, "total-cycles-ccs": total}
    return "".join(f"drm-{name}:\t{value}\n" for name, value in lines.items())


# ---- The daemon ----


def ids(done):
    """Return the devices of a command that printed BERTH_DEVICES."""
    assert done.code == 0, done
    return done.stdout.strip()


def run_somewhere(pool, *options):
    return ids(pool.berth("run", *options, "--", "sh", "-c", "echo $BERTH_DEVICES"))


def states(pool):
    done = pool.berth("status", "--json")
    assert done.code == 0, done
    document = json.loads(done.stdout)
    return {device["id"]: device["state"] for device in document["devices"]}, document


def test_the_daemon_goes_on_while_one_hangs(machine, impatient, machine_pool):
    cards = [machine.add_amd(4), machine.add_amd(5), machine.add_amd(6)]
    assert run_somewhere(machine_pool) == "amd0"
    cards[0].hang("gpu_busy_percent")
    slots = machine_pool.until_state("amd0", "SICK")
    assert slots["amd0"]["device"]["old"]
    assert run_somewhere(machine_pool, "-n", "2") == "amd1,amd2"
    for device in ("amd1", "amd2"):  # the daemon probes them before they are free
        machine_pool.until_state(device, "FREE")
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


def test_a_daemon_that_starts_while_one_hangs(machine, impatient, machine_pool):
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
    assert states(machine_pool)[0]["intel1"] == "leased", "the holder keeps the device"
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
    assert machine_pool.berth("plan").stdout.startswith("now: intel0\n")


def test_the_daemon_goes_on_without_a_library(machine, impatient, machine_pool, nvml):
    nvml(1, (None, "nvmlInit_v2", "hang"))
    machine.add_amd(4)
    assert run_somewhere(machine_pool) == "amd0"
    _, document = states(machine_pool)
    assert [problem["backend"] for problem in document["problems"]] == ["nvidia"]
