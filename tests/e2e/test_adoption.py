# SPDX-License-Identifier: Apache-2.0
"""People on one machine with GPUs, not all of whom use berth: told by the double of NVML and a made-up /proc."""
import json
import os
import re

import pytest
import wire
from town import ALICE, BOB, CAROL
from waiting import until, until_pending

CONTAINER = "3f4e" * 16


def squatter(town, index, uid, **facts):
    """A process of this user that is on a GPU without berth."""
    process = town.sleeper(uid)
    town.gpus.use(index, process.pid, uid=uid, command=("python", "train.py"), **facts)
    return process


def until_state(town, device, state):
    until(lambda: town.slots()[device].get("state", 0) == wire.STATES[state], f"{device} {state}")


# ---- Who is shown ----


def test_a_squatter_is_shown_to_everybody(town):
    town.open()
    process = squatter(town, 0, BOB, group=f"/docker/{CONTAINER}")
    until_state(town, "nvidia0", "SQUATTED")
    seen = json.loads(town.berth(ALICE, "status", "--json").stdout)["devices"][0]
    [who] = seen["squatters"]
    assert seen["state"] == "squatted"
    assert (who["pid"], who["uid"], who["command"], who["container"]) == (
        process.pid,
        BOB,
        "python train.py",
        CONTAINER,
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", who["since"])
    shown = town.berth(ALICE, "status").stdout
    line = next(line for line in shown.splitlines() if str(process.pid) in line)
    for word in (str(BOB), "python train.py", CONTAINER[:12], "2h5m"):
        assert word in line
    assert town.berth(ALICE, "run", "printenv", "BERTH_DEVICES").stdout == "nvidia1\n"
    town.gpus.leave(0, process.pid)
    town.end(process)
    until_state(town, "nvidia0", "FREE")


def test_who_waits_is_told_why(town):
    town.open()
    for index in range(3):
        squatter(town, index, BOB)
    until_state(town, "nvidia2", "SQUATTED")
    waits = town.start(ALICE, "run", "true")
    until_pending(town, 1)
    [claim] = town.look()["claims"]
    assert "without a lease" in claim["why"]
    waits.kill()
    waits.wait()
    assert town.berth(ALICE, "run", "--nonblock", "true").code == 123


def test_a_screen_is_no_squatter(town):
    town.open()
    town.gpus.use(0, town.sleeper(BOB).pid, uid=BOB, command=("/usr/lib/xorg/Xorg", ":0"))
    town.gpus.use(1, town.sleeper(BOB).pid, "graphics", uid=BOB, command=("firefox",))
    assert town.berth(ALICE, "run", "-n", "3", "true") == (0, "", "")


def test_who_says_so_and_is_of_the_same_user_is_of_the_lease(town):
    town.open()
    holder = town.hold(ALICE, "--device", "nvidia0")
    environment = ("HOME=/", f"BERTH_LEASE={holder.lease}", f"BERTH_SOCKET={town.socket}")
    mine = town.sleeper(ALICE)
    liar = town.sleeper(BOB)
    for process, uid in ((mine, ALICE), (liar, BOB)):
        town.gpus.use(0, process.pid, uid=uid, environment=environment)
    until(lambda: len(town.slots()["nvidia0"]["device"].get("processes", [])) == 2, "the processes")
    told = {process["pid"]: process for process in town.slots()["nvidia0"]["device"]["processes"]}
    assert told[mine.pid]["lease"] == int(holder.lease)
    assert told[liar.pid]["squats"]
    town.let_go(holder)


# ---- Adopting ----


def test_adopt_turns_a_squatter_into_a_lease(town):
    town.open()
    process = squatter(town, 1, BOB)
    until_state(town, "nvidia1", "SQUATTED")
    done = town.berth(BOB, "adopt", str(process.pid), "--name", "forgot")
    assert (done.code, done.stderr) == (0, "")
    lease = int(done.stdout)
    seen = json.loads(town.berth(ALICE, "status", "--json").stdout)
    [held] = seen["leases"]
    assert (held["id"], held["uid"], held["pid"], held["name"], held["adopted"]) == (
        lease,
        BOB,
        process.pid,
        "forgot",
        True,
    )
    assert [device["id"] for device in held["devices"]] == ["nvidia1"]
    assert (seen["devices"][1]["state"], seen["devices"][1]["squatters"]) == ("leased", [])
    waits = town.start(ALICE, "run", "-n", "3", "true")
    until_pending(town, 1)
    town.gpus.leave(1, process.pid)
    town.end(process)
    assert waits.wait() == 0
    assert not town.look()["leases"]


def test_adopt_takes_all_that_the_process_and_its_children_use(town):
    town.open()
    parent = town.sandbox.start([*town.become(BOB), "sh", "-c", "sleep 1000 & echo $!; wait"])
    child = int(parent.wait_for_line(r"^\d+$"))
    town.gpus.use(0, parent.pid, uid=BOB)
    town.gpus.use(2, child, uid=BOB)
    until_state(town, "nvidia2", "SQUATTED")
    assert town.berth(BOB, "adopt", str(parent.pid), "--time", "1h").code == 0
    [held] = town.look()["leases"]
    assert held["devices"] == ["nvidia0", "nvidia2"]
    again = town.berth(BOB, "adopt", str(child))
    assert again == (2, "", f"berth: adopt: process {child} is under lease {held['id']} already\n")
    assert town.berth(BOB, "release", str(held["id"])) == (0, "", "")
    assert parent.wait() == -15
    assert not os.path.exists(f"/proc/{child}/exe")


def test_adopt_goes_past_the_queue(town):
    """Whoever waits for the device could not have it anyway."""
    town.open()
    process = squatter(town, 0, BOB)
    until_state(town, "nvidia0", "SQUATTED")
    waits = town.start(ALICE, "run", "-n", "3", "printenv", "BERTH_DEVICES")
    until_pending(town, 1)
    assert town.berth(BOB, "adopt", str(process.pid)).code == 0
    until_pending(town, 1)
    town.gpus.leave(0, process.pid)
    town.end(process)
    assert waits.wait_for_line("nvidia") == "nvidia0,nvidia1,nvidia2"
    assert waits.wait() == 0


def test_adopt_waits_for_a_lease_that_is_in_its_way(town):
    town.open()
    holder = town.hold(ALICE, "--device", "nvidia0")
    process = squatter(town, 0, BOB)
    until(lambda: town.slots()["nvidia0"]["device"].get("processes"), "the process")
    done = town.berth(BOB, "adopt", "--nonblock", str(process.pid))
    assert (done.code, done.stdout) == (123, "")
    assert f"lease {holder.lease}" in done.stderr
    done = town.berth(BOB, "adopt", "--wait", "100ms", str(process.pid))
    assert (done.code, done.stdout) == (123, "")
    waits = town.start(BOB, "adopt", str(process.pid))
    town.let_go(holder)
    lease = int(waits.wait_for_line(r"^\d+$"))
    assert waits.wait() == 0
    assert [(held["id"], held["uid"]) for held in town.look()["leases"]] == [(lease, BOB)]


def test_adopt_for_a_process_that_uses_nothing_yet(town):
    town.open()
    process = town.sleeper(BOB)
    done = town.berth(BOB, "adopt", str(process.pid))
    wanted = f"expected a process that uses devices, got that {process.pid} uses none; say how many it is to get"
    assert done == (125, "", f"berth: adopt: {wanted}\n")
    assert town.berth(BOB, "adopt", str(process.pid), "-n", "2").code == 0
    assert town.look()["leases"][0]["devices"] == ["nvidia0", "nvidia1"]
    town.end(process)
    until(lambda: not town.look()["leases"], "the end of the lease")


def test_whose_process_it_is_says_the_kernel(town):
    town.open()
    process = squatter(town, 0, BOB)
    until_state(town, "nvidia0", "SQUATTED")
    done = town.berth(ALICE, "adopt", str(process.pid))
    assert done == (125, "", f"berth: adopt: process {process.pid} belongs to another user\n")
    assert town.sandbox.run(["berth", "adopt", str(process.pid)]).code == 0
    [held] = town.look()["leases"]
    assert (held["uid"], held["pid"]) == (BOB, process.pid)
    assert town.berth(CAROL, "release", str(held["id"])).code == 125
    assert town.berth(BOB, "release", str(held["id"])).code == 0
    assert process.wait() == -15


def test_what_does_not_fit_is_refused(town):
    town.open()
    process = squatter(town, 0, BOB)
    until_state(town, "nvidia0", "SQUATTED")
    pid = str(process.pid)
    done = town.berth(BOB, "adopt", pid, "-n", "2")
    assert done == (2, "", f"berth: adopt: expected 2 devices, got that process {pid} uses 1 already\n")
    done = town.berth(BOB, "adopt", pid, "--device", "nvidia1")
    assert done == (2, "", f"berth: adopt: expected other devices, got that process {pid} uses nvidia0 already\n")
    done = town.berth(BOB, "adopt", "4194304")
    assert done == (125, "", "berth: adopt: no running process has the pid 4194304\n")
    with wire.connect(str(town.socket)) as client, pytest.raises(wire.Refused) as refused:
        client.claim({}, hold=wire.HOLDS["PROCESS"], pid=process.pid, started=1, present=True)
    assert refused.value.text == f"no running process has the pid {pid}"


def test_an_adopted_lease_outlives_the_daemon(town):
    town.open()
    process = squatter(town, 0, BOB)
    until_state(town, "nvidia0", "SQUATTED")
    assert town.berth(BOB, "adopt", str(process.pid)).code == 0
    before = town.look()["leases"]
    town.close(9)
    town.open()
    assert town.look()["leases"][0] == before[0]
    assert town.slots()["nvidia0"]["state"] == wire.STATES["LEASED"]
    town.close(9)
    town.end(process)
    town.gpus.leave(0, process.pid)
    town.open()
    assert not town.look()["leases"]
