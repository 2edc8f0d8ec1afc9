# SPDX-License-Identifier: Apache-2.0
"""A device with much memory in use but without a listed process, as with vGPU, WSL and LXC: it is not granted."""
import json
import os
import signal

import pytest
from daemon_log import entries, wait_for
from waiting import until_pending

GIB = 1 << 30
TOTAL = 80 * GIB


def used(pool, index, memory, **facts):
    """Returns a device with this much memory in use."""
    return pool.device(index, memory_free=TOTAL - memory, **facts)


def where(pool, *options, code=0):
    run = pool.berth("run", "--nonblock", *options, "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert run.code == code, run.stderr
    return run.stdout.strip()


def test_a_device_that_an_unknown_process_uses(pool_with):
    pool = pool_with([0, 1])
    pool.says([used(pool, 0, 40 * GIB), used(pool, 1, GIB)])
    pool.until_state("nvidia0", "SQUATTED")
    [entry] = wait_for(pool.log, "squatted", device="nvidia0")
    assert entry.values["memory"] == str(40 * GIB) and "pid" not in entry.values
    assert where(pool) == "nvidia1"
    assert where(pool, "--device", "nvidia0", code=123) == ""
    status = pool.berth("status").stdout
    assert "40 GiB of nvidia0's memory are in use, but its driver lists no process" in status
    [line] = [line for line in pool.berth("doctor").stdout.splitlines() if " squatters " in line]
    assert line.startswith("warning") and "40 GiB of nvidia0's memory are in use" in line


def test_a_driver_that_cannot_list_processes(pool_with):
    """As with a vGPU: the doctor says that only memory shows squatters."""
    pool = pool_with([0])
    pool.says([used(pool, 0, GIB, hides_processes=True)])
    pool.until(lambda slots: slots["nvidia0"]["device"].get("hides_processes"), "the driver's answer")
    [line] = [line for line in pool.berth("doctor").stdout.splitlines() if " squatters " in line]
    assert line.startswith("unknown") and "the driver of nvidia0 cannot list processes" in line


def test_idle_memory_that_becomes_less(pool_with):
    """The driver kept more memory when berth first saw the device."""
    pool = pool_with([])
    pool.says([used(pool, 0, 3 * GIB // 2, memory_idle=GIB)])
    pool.until_state("nvidia0", "FREE")
    pool.says([used(pool, 0, 3 * GIB // 2, memory_idle=GIB // 4)])
    pool.until_state("nvidia0", "SQUATTED")


def test_a_claim_waits_until_the_memory_is_free(pool_with):
    """No process can be watched for its end. The daemon probes each second while a claim waits."""
    pool = pool_with([0])
    pool.says([used(pool, 0, 40 * GIB)])
    pool.until_state("nvidia0", "SQUATTED")
    waits = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    pool.says([used(pool, 0, GIB)])
    waits.wait_for_line("nvidia0")
    assert waits.wait() == 0


def test_the_memory_of_a_lease(pool_with):
    """A lease may use memory without a process that the driver lists. Memory that it leaves keeps the device."""
    pool = pool_with([0])
    holder = pool.hold()
    pool.says([used(pool, 0, 40 * GIB)])
    pool.until(lambda slots: slots["nvidia0"]["device"].get("memory_free", [0])[0] == 40 * GIB, "the memory")
    pool.end_daemon(signal.SIGKILL)
    assert pool.berth("status").code == 0
    pool.until_state("nvidia0", "LEASED")
    pool.says([used(pool, 0, GIB)])
    pool.let_go(holder)
    pool.until_state("nvidia0", "FREE")
    assert where(pool) == "nvidia0"
    assert [entry for entry in entries(pool.log) if entry.word == "squatted"] == []
    holder = pool.hold()
    pool.says([used(pool, 0, 40 * GIB)])
    pool.let_go(holder)
    assert where(pool, code=123) == ""
    pool.until_state("nvidia0", "SQUATTED")


def test_the_memory_of_a_tenant(pool_with):
    """A device that leases share has room for more, although no process is listed."""
    pool = pool_with([0])
    holder = pool.hold("--sharing", "time-slice")
    pool.says([used(pool, 0, 40 * GIB)])
    pool.until(lambda slots: slots["nvidia0"]["device"].get("memory_free", [0])[0] == 40 * GIB, "the memory")
    assert where(pool, "--sharing", "time-slice") == "nvidia0"
    pool.let_go(holder)


@pytest.mark.parametrize("rules", ["squatter_memory: 0\n", "squatter_memory: 50GiB\n", "squatters: ignore\n"])
def test_the_configuration_decides(pool_with, rules):
    pool = pool_with([0], rules)
    pool.says([used(pool, 0, 40 * GIB)])
    pool.until(lambda slots: "memory_free" in slots["nvidia0"]["device"], "the memory")
    assert where(pool) == "nvidia0"


def test_a_listed_process_counts_by_itself(pool_with, sleeper):
    pool = pool_with([0])
    draws = {"pid": sleeper().pid, "uid": 0, "command": "Xorg", "memory": GIB}
    pool.says([used(pool, 0, 3 * GIB, processes=[draws])])
    pool.until(lambda slots: "processes" in slots["nvidia0"]["device"], "the process")
    assert where(pool) == "nvidia0"


def test_memory_that_the_listed_process_does_not_have(pool_with, sleeper):
    """A process that never squats does not hide an unknown one."""
    pool = pool_with([0])
    draws = {"pid": sleeper().pid, "uid": 0, "command": "Xorg", "memory": GIB}
    pool.says([used(pool, 0, 40 * GIB, processes=[draws])])
    pool.until_state("nvidia0", "SQUATTED")
    assert where(pool, code=123) == ""
    status = pool.berth("status").stdout
    assert "40 GiB of nvidia0's memory are in use, but its driver lists no process that has it" in status


def test_the_site_is_told(hardware_of, site):
    site.configure("notify")
    pool = hardware_of([0])
    assert pool.berth("status").code == 0
    pool.says([used(pool, 0, 40 * GIB)])
    pool.until_state("nvidia0", "SQUATTED")
    site.until("end", "squatter", "nvidia0")
    told = site.environment("squatter")
    assert told["BERTH_MESSAGE"] == (
        "nvidia0 is used without a lease: 40 GiB of its memory are in use, but its driver lists no process"
    )
    assert "BERTH_PID" not in told and "BERTH_UID" not in told


def test_an_inventory_declares_its_memory(pool_of):
    """The free memory of an inventory was not measured."""
    pool = pool_of("devices: [{vendor: nvidia, index: 0, memory: 80GiB, free: 40GiB}]\n")
    assert where(pool) == "nvidia0"
    [daemon] = pool.daemons()
    os.kill(daemon, signal.SIGHUP)
    wait_for(pool.directory / "log", "reloaded")
    assert where(pool) == "nvidia0"
    assert [device["state"] for device in json.loads(pool.berth("status", "--json").stdout)["devices"]] == ["free"]
