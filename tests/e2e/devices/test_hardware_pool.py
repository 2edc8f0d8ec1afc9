# SPDX-License-Identifier: Apache-2.0
"""A pool of the machine's hardware: devices appear, disappear and become unhealthy. The probe may
fail."""
import json
import os
import random
import signal

import processes
import pytest
import wire
from daemon_log import wait_for
from hardware_pool import HEALTHY, SICK, start_seeing
from waiting import until, until_pending


def ids(done):
    """Return the devices of a command that printed BERTH_DEVICES."""
    assert done.code == 0, done
    return done.stdout.strip()


def is_logged(pool, text):
    return text in pool.log.read_text()


def run_somewhere(pool, *options):
    return ids(pool.berth("run", *options, "--", "sh", "-c", "echo $BERTH_DEVICES"))


# ---- Found devices ----


def test_devices_of_the_first_look(hardware_of):
    pool = hardware_of([0, 1])
    assert run_somewhere(pool, "-n", "2") == "nvidia0,nvidia1"
    assert pool.starts() == 1
    assert list(pool.look()) == ["nvidia0", "nvidia1"]


def test_a_machine_without_devices(hardware_of):
    pool = hardware_of()
    done = pool.berth("run", "true")
    assert (done.code, done.stdout) == (120, "")
    assert done.stderr == "berth: run: this pool has no devices\n"
    assert run_somewhere(pool, "--or-cpu") == ""


def test_a_lease_has_the_devices_of_the_hardware(hardware_of):
    pool = hardware_of()
    pool.says([pool.device(3, numa=1, cpus="0-7", nodes=["/dev/nvidia3", "/dev/nvidiactl"])])
    done = pool.berth("run", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $BERTH_DEVICE_NODES $BERTH_CPUS")
    assert ids(done) == "3 /dev/nvidia3:/dev/nvidiactl 0-7"


# ---- Devices that appear and disappear ----


def test_a_device_that_appears_is_granted_to_who_waits(hardware_of):
    pool = hardware_of([0])
    holder = pool.hold()
    waiter = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    pool.says([0, 1])
    pool.until(lambda slots: "nvidia1" in slots, "nvidia1")
    waiter.wait_for_line("^nvidia1$")
    assert waiter.wait() == 0
    wait_for(pool.log, "device", what="added", id="nvidia1")
    pool.let_go(holder)


def test_a_device_that_goes_keeps_its_lease_and_comes_back_into_its_slot(hardware_of):
    pool = hardware_of([0, 1])
    holder = pool.hold("--device", "nvidia0")
    pool.says([1])
    until(lambda: pool.look() and is_logged(pool, "what=gone id=nvidia0"), "the loss of nvidia0 in the log")
    assert pool.look()["nvidia0"]["state"] == wire.STATES["LEASED"]
    pool.let_go(holder)
    pool.until_state("nvidia0", "GONE")
    assert run_somewhere(pool) == "nvidia1"
    assert pool.berth("run", "--device", "nvidia0", "true").code == 120
    pool.says([1, 0])
    slots = pool.until_state("nvidia0", "FREE")
    assert list(slots) == ["nvidia0", "nvidia1"]
    assert run_somewhere(pool) == "nvidia0"


def test_a_device_whose_vendor_was_not_listed_stays(hardware_of):
    pool = hardware_of([0])
    assert run_somewhere(pool) == "nvidia0"
    pool.says([], listed=["amd"], problems=[{"backend": "nvidia", "message": "the driver hangs"}])
    pool.until(
        lambda slots: slots["nvidia0"]["device"].get("old") and not slots["nvidia0"].get("state"),
        "an old report of a free nvidia0",
    )
    assert run_somewhere(pool) == "nvidia0"
    done = pool.berth("status")
    assert "nvidia: the driver hangs" in done.stdout
    assert json.loads(pool.berth("status", "--json").stdout)["problems"] == [
        {"backend": "nvidia", "message": "the driver hangs"}
    ]


def test_partitions_take_the_place_of_their_gpu(hardware_of):
    pool = hardware_of()
    index = pool.domain % 1000000
    gpu = pool.device(0, id=f"nvidia{index}", uuid="GPU-m")
    pool.says([gpu])
    assert run_somewhere(pool) == f"nvidia{index}"
    part = {**gpu, "id": f"nvidia{index}.1", "uuid": "MIG-1", "parent": f"nvidia{index}"}
    pool.says([{**gpu, "partitioned": True}, part])
    pool.until(lambda slots: part["id"] in slots, "the partition")
    assert run_somewhere(pool) == part["id"]
    pool.says([gpu])
    pool.until_state(part["id"], "GONE")
    assert run_somewhere(pool) == f"nvidia{index}"


def test_new_facts_are_taken_in(hardware_of):
    pool = hardware_of([0])
    assert pool.berth("run", "--min-memory", "100GiB", "true").code == 120
    pool.says([pool.device(0, memory_total=120 << 30)])
    pool.until(lambda slots: slots["nvidia0"]["device"]["memory_total"] == 120 << 30, "more memory")
    assert run_somewhere(pool, "--min-memory", "100GiB") == "nvidia0"
    wait_for(pool.log, "device", what="changed", id="nvidia0")


# ---- Health ----


def test_a_claim_waits_for_a_sick_device_to_recover(hardware_of):
    pool = hardware_of()
    pool.says([pool.device(0, health=SICK, health_reason="it fell off the bus")])
    waiter = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    slots = pool.until_state("nvidia0", "SICK")
    assert slots["nvidia0"]["device"]["health_reason"] == "it fell off the bus"
    assert "it fell off the bus" in pool.berth("status").stdout
    assert pool.berth("run", "--nonblock", "true").code == 123
    pool.says([0])
    pool.until(lambda slots: slots["nvidia0"].get("state", 0) != wire.STATES["SICK"], "a healthy nvidia0")
    waiter.wait_for_line("^nvidia0$")
    assert waiter.wait() == 0
    assert len(wait_for(pool.log, "device", what="sick", id="nvidia0")) == 1
    wait_for(pool.log, "device", what="well", id="nvidia0")


def test_a_sick_device_keeps_its_lease(hardware_of):
    pool = hardware_of([0, 1])
    holder = pool.hold("--device", "nvidia0")
    pool.says([pool.device(0, health=SICK), 1])
    pool.until(lambda slots: slots["nvidia0"]["device"]["health"] == SICK, "a sick nvidia0")
    assert run_somewhere(pool) == "nvidia1"
    assert pool.look()["nvidia0"]["state"] == wire.STATES["LEASED"]
    pool.let_go(holder)
    pool.until_state("nvidia0", "SICK")


def test_a_device_that_sleeps_is_shown_and_leased(hardware_of):
    pool = hardware_of()
    pool.says([pool.device(0, asleep=True)])
    assert run_somewhere(pool) == "nvidia0"
    pool.until_state("nvidia0", "ASLEEP")
    assert "asleep" in pool.berth("status").stdout
    holder = pool.hold()
    assert pool.look()["nvidia0"]["state"] == wire.STATES["LEASED"]
    pool.let_go(holder)


# ---- Loads and processes ----


def test_loads_follow_the_reports(hardware_of):
    pool = hardware_of()
    pool.says([pool.device(0, utilization=100), pool.device(1, utilization=900)])
    assert run_somewhere(pool, "--policy", "least-loaded") == "nvidia0"
    pool.says([pool.device(0, utilization=900), pool.device(1, utilization=100)])
    pool.until(lambda slots: slots["nvidia1"]["device"]["utilization"][0] == 100, "the new load")
    assert run_somewhere(pool, "--policy", "least-loaded") == "nvidia1"


def test_processes_name_the_lease_that_they_belong_to(hardware_of):
    pool = hardware_of([0, 1])
    holder = pool.hold("--device", "nvidia0")
    child = pool.start("run", "--device", "nvidia1", "--", "sh", "-c", "sleep 60 & echo $!; cat; kill $!")
    below = int(child.wait_for_line(r"^\d+$"))
    found = [{"pid": holder.pid, "memory": 1 << 20}, {"pid": os.getpid()}, {"pid": below}]
    found = [{**process, "ancestors": processes.ancestors(process["pid"])} for process in found]
    pool.says([pool.device(0, processes=found), pool.device(1, processes=found)])
    slots = pool.until(lambda slots: "processes" in slots["nvidia1"]["device"], "the processes")
    leases = {id: [p.get("lease", 0) for p in slots[id]["device"]["processes"]] for id in slots}
    second = [lease["id"] for lease in json.loads(pool.berth("status", "--json").stdout)["leases"]][1]
    assert leases == {"nvidia0": [int(holder.lease), 0, 0], "nvidia1": [0, 0, second]}
    assert slots["nvidia0"]["device"]["processes"][0]["memory"] == 1 << 20
    pool.let_go(child)
    pool.let_go(holder)


def test_very_many_processes_fit_into_a_page(hardware_of):
    pool = hardware_of()
    pool.says([pool.device(0, processes=[{"pid": pid, "command": "x" * 1000} for pid in range(2, 4000)])])
    assert pool.berth("status").code == 0
    slots = pool.until(lambda slots: "processes" in slots["nvidia0"]["device"], "the processes")
    assert 10 <= len(slots["nvidia0"]["device"]["processes"]) <= 20


# ---- A probe that fails ----


@pytest.mark.parametrize("behaviour", ["hang", "die", "garbage", "old number"])
def test_the_daemon_goes_on_without_its_probe(hardware_of, behaviour):
    """The daemon marks its last report as old, continues to grant, and starts another probe."""
    pool = hardware_of([0, 1])
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "100ms"
    start_seeing(pool, "nvidia0")
    holder = pool.hold("--device", "nvidia0")
    pool.says([0], behaviour=behaviour)
    slots = pool.until(lambda slots: slots["nvidia1"]["device"].get("old"), "devices with old reports")
    assert slots["nvidia0"]["device"]["old"]
    assert run_somewhere(pool) == "nvidia1"
    assert [problem["backend"] for problem in pool.problems] == ["probe"]
    wait_for(pool.log, "probe", what="lost")
    pool.says([0, 1])
    slots = pool.until(lambda slots: not slots["nvidia1"]["device"].get("old"), "devices that answer")
    assert pool.problems == []
    assert pool.starts() >= 2
    assert slots["nvidia0"]["state"] == wire.STATES["LEASED"]
    wait_for(pool.log, "probe", what="back")
    pool.let_go(holder)


def test_a_probe_that_cannot_be_started(hardware_of):
    pool = hardware_of([0])
    nowhere = pool.sandbox.directory / "nowhere"
    pool.sandbox.environment["BERTH_PROBE"] = str(nowhere)
    why = f"probe: cannot start {nowhere}: No such file or directory"
    assert pool.berth("run", "true") == (120, "", f"berth: run: this pool has no devices; {why}\n")
    assert why in pool.berth("status").stdout


def looked_at(pool):
    """Return the pool's slots in a tuple, or nothing while the daemon does not listen."""
    try:
        return (pool.look(),)
    except OSError:
        return None


def test_a_first_look_that_is_late(hardware_of):
    """The daemon serves before the first report, which has the devices. Claims wait for this report."""
    pool = hardware_of([0], behaviour="late", delay=9)
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "30s"
    run = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert until(lambda: looked_at(pool), "a daemon that serves", timeout=20) == ({},)
    run.wait_for_line("nvidia0")
    assert run.wait() == 0
    assert pool.starts() == 1


def test_nothing_found_yet_is_not_nothing(hardware_of):
    """A library may need longer to start than the probe's deadline. The daemon does not refuse
    claims meanwhile."""
    others = ["amd", "intel", "apple", "dri"]
    pool = hardware_of([], listed=others, behaviour="late", delay=2.2)
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "4s"
    run = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until(lambda: pool.requests() > 0, "the first request")
    pool.says([0])
    run.wait_for_line("nvidia0")
    assert run.wait() == 0


def test_the_probe_ends_with_the_daemon(hardware_of):
    pool = hardware_of([0], behaviour="hang")
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "100ms"
    assert pool.berth("run", "true").code == 120
    until(pool.starts, "a probe")
    first = next(line for line in pool.probe_log.read_text().splitlines() if "start" in line)
    processes.wait_for_end(int(first.split()[1]))
    pool.end_daemon()


# ---- Restarts ----


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_leases_outlive_the_daemon_and_their_device(hardware_of, number):
    """Devices appeared and disappeared while no daemon ran. Leases keep their devices, and slots
    keep their numbers."""
    pool = hardware_of([0, 1, 2])
    holders = [pool.hold("--device", f"nvidia{index}") for index in range(2)]
    waiter = pool.start("run", "--device", "nvidia0", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    pool.end_daemon(number)
    pool.says([3, 2, 1])
    slots = until(lambda: looked(pool), "the next daemon")
    assert list(slots) == ["nvidia0", "nvidia1", "nvidia2", "nvidia3"]
    states = [slot.get("state", 0) for slot in slots.values()]
    assert states == [wire.STATES[name] for name in ("LEASED", "LEASED", "FREE", "FREE")]
    # A claim that only nvidia0 could satisfy is impossible now.
    assert waiter.wait() == 120
    for holder in holders:
        pool.let_go(holder)
    pool.until_state("nvidia0", "GONE")
    pool.says([0, 1, 2, 3])
    pool.until_state("nvidia0", "FREE")


def looked(pool):
    """Return the state of the pool, and start its daemon if there is none."""
    pool.berth("status")
    if pool.berth("run", "--nonblock", "--device", "nvidia1", "true").code not in (0, 123):
        return None
    return pool.look()


def test_leases_outlive_the_daemon_where_the_next_look_is_late(hardware_of):
    pool = hardware_of([1, 0])
    holder = pool.hold("--device", "nvidia0")
    pool.end_daemon(signal.SIGKILL)
    pool.says([], behaviour="hang")
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "100ms"
    assert run_somewhere(pool) == "nvidia1"
    slots = pool.look()
    assert list(slots) == ["nvidia1", "nvidia0"]
    assert all(slot["device"].get("old") for slot in slots.values())
    assert slots["nvidia0"]["state"] == wire.STATES["LEASED"]
    assert slots["nvidia0"]["device"]["uuid"] == "GPU-0"
    pool.let_go(holder)


def expected_state(index, held, there, sick):
    if index in held:
        return "LEASED"
    if index not in there:
        return "GONE"
    return "SICK" if index in sick else "FREE"


def test_slots_and_leases_whatever_happens(hardware_of):
    """Devices appear, disappear and become unhealthy at random while daemons are killed. Every
    lease stays on its devices."""
    choose = random.Random(11)
    everything = list(range(5))
    pool = hardware_of(everything)
    held = {index: pool.hold("--device", f"nvidia{index}") for index in (1, 3)}
    for _ in range(8):
        if choose.random() < 0.5:
            pool.end_daemon(choose.choice([signal.SIGKILL, signal.SIGTERM]))
        there = choose.sample(everything, choose.randrange(6))
        sick = [index for index in there if choose.random() < 0.3]
        pool.says([pool.device(index, health=SICK if index in sick else HEALTHY) for index in there])
        if not pool.daemons():
            pool.berth("run", "--nonblock", "--device", "nvidia1", "true")  # starts the next
        wanted = {f"nvidia{index}": expected_state(index, held, there, sick) for index in everything}
        names = {number: name for name, number in wire.STATES.items()}
        slots = pool.until(
            lambda slots: {id: names[slot.get("state", 0)] for id, slot in slots.items()} == wanted, f"{wanted}"
        )
        assert list(slots) == [f"nvidia{index}" for index in everything]
        free = [index for index in everything if wanted[f"nvidia{index}"] == "FREE"]
        done = pool.berth("run", "--nonblock", "--", "sh", "-c", "echo $BERTH_DEVICES")
        assert done.code in (120, 123) if not free else done.stdout == f"nvidia{free[0]}\n", done
    for holder in held.values():
        pool.let_go(holder)


# ---- How often the daemon probes ----


def test_watching_makes_it_look_more_often(hardware_of):
    pool = hardware_of([0])
    assert pool.berth("wait").code == 0
    assert pool.requests() == 1
    pool.look()  # another probe right now would be too soon after the first
    until(lambda: pool.requests() >= 2, "a second probe")
    until(lambda: pool.look() and pool.requests() >= 4, "more probes while a client watches")


def test_nobody_looks_where_an_inventory_says_it_all(pool_of, sandbox):
    pool = pool_of(1)
    log = sandbox.directory / "probe.json.log"
    sandbox.environment["BERTH_PROBE"] = str(sandbox.directory / "nowhere")
    assert pool.berth("run", "true").code == 0
    assert pool.berth("status").code == 0
    assert not log.exists()
    assert "probe" not in (pool.directory / "log").read_text()
