# SPDX-License-Identifier: Apache-2.0
"""Several users on one machine with GPUs, some without berth. The NVML double and a made-up /proc
describe the machine."""
import json
import os
import re

import pytest
import wire
from shared_machine import ALICE, BOB, CAROL
from waiting import until, until_pending

CONTAINER = "3f4e" * 16


def squatter(shared_machine, index, uid, **facts):
    """Start a process of this user that uses a GPU without berth."""
    process = shared_machine.sleeper(uid)
    shared_machine.gpus.use(index, process.pid, uid=uid, command=("python", "train.py"), **facts)
    return process


def until_state(shared_machine, device, state):
    until(lambda: shared_machine.slots()[device].get("state", 0) == wire.STATES[state], f"{device} {state}")


# ---- Displayed processes ----


def squatter_line(shared_machine, uid, process):
    """Return the line of `berth status` that names the squatter, as the user sees it."""
    shown = shared_machine.berth(uid, "status").stdout
    return next(line for line in shown.splitlines() if str(process.pid) in line)


def test_a_squatter_is_shown_to_everybody(shared_machine):
    """Other users see the name of its program only."""
    shared_machine.open()
    process = squatter(shared_machine, 0, BOB, group=f"/docker/{CONTAINER}")
    until_state(shared_machine, "nvidia0", "SQUATTED")
    seen = json.loads(shared_machine.berth(ALICE, "status", "--json").stdout)["devices"][0]
    [who] = seen["squatters"]
    assert seen["state"] == "squatted"
    assert (who["pid"], who["uid"], who["command"], who["container"]) == (
        process.pid,
        BOB,
        "python",
        CONTAINER,
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", who["since"])
    line = squatter_line(shared_machine, ALICE, process)
    for word in (str(BOB), "python", CONTAINER[:12], "2h5m"):
        assert word in line
    assert "train.py" not in line
    for uid in (BOB, 0):
        assert "python train.py" in squatter_line(shared_machine, uid, process)
    assert shared_machine.berth(ALICE, "run", "printenv", "BERTH_DEVICES").stdout == "nvidia1\n"
    shared_machine.gpus.leave(0, process.pid)
    shared_machine.end(process)
    until_state(shared_machine, "nvidia0", "FREE")


def test_who_waits_is_told_why(shared_machine):
    shared_machine.open()
    for index in range(3):
        squatter(shared_machine, index, BOB)
    until_state(shared_machine, "nvidia2", "SQUATTED")
    waits = shared_machine.start(ALICE, "run", "true")
    until_pending(shared_machine, 1)
    [claim] = shared_machine.look()["claims"]
    assert "without a lease" in claim["why"]
    waits.kill()
    waits.wait()
    assert shared_machine.berth(ALICE, "run", "--nonblock", "true").code == 123


def test_a_screen_is_no_squatter(shared_machine):
    shared_machine.open()
    shared_machine.gpus.use(0, shared_machine.sleeper(BOB).pid, uid=BOB, command=("/usr/lib/xorg/Xorg", ":0"))
    shared_machine.gpus.use(1, shared_machine.sleeper(BOB).pid, "graphics", uid=BOB, command=("firefox",))
    assert shared_machine.berth(ALICE, "run", "-n", "3", "true") == (0, "", "")


def test_who_says_so_and_is_of_the_same_user_is_of_the_lease(shared_machine):
    shared_machine.open()
    holder = shared_machine.hold(ALICE, "--device", "nvidia0")
    environment = ("HOME=/", f"BERTH_LEASE={holder.lease}", f"BERTH_SOCKET={shared_machine.socket}")
    mine = shared_machine.sleeper(ALICE)
    liar = shared_machine.sleeper(BOB)
    for process, uid in ((mine, ALICE), (liar, BOB)):
        shared_machine.gpus.use(0, process.pid, uid=uid, environment=environment)
    until(lambda: len(shared_machine.slots()["nvidia0"]["device"].get("processes", [])) == 2, "the processes")
    told = {process["pid"]: process for process in shared_machine.slots()["nvidia0"]["device"]["processes"]}
    assert told[mine.pid]["lease"] == int(holder.lease)
    assert told[liar.pid]["squats"]
    shared_machine.let_go(holder)


# ---- Adopting ----


def test_adopt_turns_a_squatter_into_a_lease(shared_machine):
    shared_machine.open()
    process = squatter(shared_machine, 1, BOB)
    until_state(shared_machine, "nvidia1", "SQUATTED")
    done = shared_machine.berth(BOB, "adopt", str(process.pid), "--name", "forgot")
    assert (done.code, done.stderr) == (0, "")
    lease = int(done.stdout)
    seen = json.loads(shared_machine.berth(ALICE, "status", "--json").stdout)
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
    waits = shared_machine.start(ALICE, "run", "-n", "3", "true")
    until_pending(shared_machine, 1)
    shared_machine.gpus.leave(1, process.pid)
    shared_machine.end(process)
    assert waits.wait() == 0
    until(lambda: not shared_machine.look()["leases"], "the end of all leases")


def test_adopt_takes_all_that_the_process_and_its_children_use(shared_machine):
    shared_machine.open()
    parent = shared_machine.sandbox.start([*shared_machine.become(BOB), "sh", "-c", "sleep 1000 & echo $!; wait"])
    child = int(parent.wait_for_line(r"^\d+$"))
    shared_machine.gpus.use(0, parent.pid, uid=BOB)
    shared_machine.gpus.use(2, child, uid=BOB)
    until_state(shared_machine, "nvidia2", "SQUATTED")
    assert shared_machine.berth(BOB, "adopt", str(parent.pid), "--time", "1h").code == 0
    [held] = shared_machine.look()["leases"]
    assert held["devices"] == ["nvidia0", "nvidia2"]
    again = shared_machine.berth(BOB, "adopt", str(child))
    assert again == (2, "", f"berth: adopt: cannot adopt process {child}: it already has lease {held['id']}\n")
    assert shared_machine.berth(BOB, "release", str(held["id"])) == (0, "", "")
    assert parent.wait() == -15
    assert not os.path.exists(f"/proc/{child}/exe")


def test_adopt_goes_past_the_queue(shared_machine):
    """Adopting does not wait in the queue: the claims there cannot get the device while it is
    squatted."""
    shared_machine.open()
    process = squatter(shared_machine, 0, BOB)
    until_state(shared_machine, "nvidia0", "SQUATTED")
    waits = shared_machine.start(ALICE, "run", "-n", "3", "printenv", "BERTH_DEVICES")
    until_pending(shared_machine, 1)
    assert shared_machine.berth(BOB, "adopt", str(process.pid)).code == 0
    until_pending(shared_machine, 1)
    shared_machine.gpus.leave(0, process.pid)
    shared_machine.end(process)
    assert waits.wait_for_line("nvidia") == "nvidia0,nvidia1,nvidia2"
    assert waits.wait() == 0


def test_adopt_waits_for_a_lease_that_is_in_its_way(shared_machine):
    shared_machine.open()
    holder = shared_machine.hold(ALICE, "--device", "nvidia0")
    process = squatter(shared_machine, 0, BOB)
    until(lambda: shared_machine.slots()["nvidia0"]["device"].get("processes"), "the process")
    done = shared_machine.berth(BOB, "adopt", "--nonblock", str(process.pid))
    assert (done.code, done.stdout) == (123, "")
    assert f"lease {holder.lease}" in done.stderr
    done = shared_machine.berth(BOB, "adopt", "--wait", "100ms", str(process.pid))
    assert (done.code, done.stdout) == (123, "")
    waits = shared_machine.start(BOB, "adopt", str(process.pid))
    shared_machine.let_go(holder)
    lease = int(waits.wait_for_line(r"^\d+$"))
    assert waits.wait() == 0
    assert [(held["id"], held["uid"]) for held in shared_machine.look()["leases"]] == [(lease, BOB)]


def test_adopt_for_a_process_that_uses_nothing_yet(shared_machine):
    shared_machine.open()
    process = shared_machine.sleeper(BOB)
    done = shared_machine.berth(BOB, "adopt", str(process.pid))
    wanted = f"process {process.pid} uses no device; request some, for example with -n 1"
    assert done == (125, "", f"berth: adopt: {wanted}\n")
    assert shared_machine.berth(BOB, "adopt", str(process.pid), "-n", "2").code == 0
    assert shared_machine.look()["leases"][0]["devices"] == ["nvidia0", "nvidia1"]
    shared_machine.end(process)
    until(lambda: not shared_machine.look()["leases"], "the end of the lease")


def test_whose_process_it_is_says_the_kernel(shared_machine):
    shared_machine.open()
    process = squatter(shared_machine, 0, BOB)
    until_state(shared_machine, "nvidia0", "SQUATTED")
    done = shared_machine.berth(ALICE, "adopt", str(process.pid))
    assert done == (125, "", f"berth: adopt: cannot adopt process {process.pid}: it belongs to another user\n")
    assert shared_machine.sandbox.run(["berth", "adopt", str(process.pid)]).code == 0
    [held] = shared_machine.look()["leases"]
    assert (held["uid"], held["pid"]) == (BOB, process.pid)
    assert shared_machine.berth(CAROL, "release", str(held["id"])).code == 125
    assert shared_machine.berth(BOB, "release", str(held["id"])).code == 0
    assert process.wait() == -15


def test_what_does_not_fit_is_refused(shared_machine):
    shared_machine.open()
    process = squatter(shared_machine, 0, BOB)
    until_state(shared_machine, "nvidia0", "SQUATTED")
    pid = str(process.pid)
    done = shared_machine.berth(BOB, "adopt", pid, "-n", "2")
    assert done == (2, "", f"berth: adopt: requested 2 devices, but process {pid} already uses 1\n")
    done = shared_machine.berth(BOB, "adopt", pid, "--device", "nvidia1")
    assert done == (2, "", f"berth: adopt: process {pid} already uses nvidia0, which was not requested\n")
    done = shared_machine.berth(BOB, "adopt", "4194304")
    assert done == (125, "", "berth: adopt: cannot adopt process 4194304: no such process\n")
    with wire.connect(str(shared_machine.socket)) as client, pytest.raises(wire.Refused) as refused:
        client.claim({}, hold=wire.HOLDS["PROCESS"], pid=process.pid, started=1, present=True)
    assert refused.value.text == f"cannot adopt process {pid}: no such process"


def test_an_adopted_lease_outlives_the_daemon(shared_machine):
    shared_machine.open()
    process = squatter(shared_machine, 0, BOB)
    until_state(shared_machine, "nvidia0", "SQUATTED")
    assert shared_machine.berth(BOB, "adopt", str(process.pid)).code == 0
    before = shared_machine.look()["leases"]
    shared_machine.close(9)
    shared_machine.open()
    assert shared_machine.look()["leases"][0] == before[0]
    assert shared_machine.slots()["nvidia0"]["state"] == wire.STATES["LEASED"]
    shared_machine.close(9)
    shared_machine.end(process)
    shared_machine.gpus.leave(0, process.pid)
    shared_machine.open()
    # The daemon serves while it looks for what is left of the lease.
    until(lambda: not shared_machine.look()["leases"], "the end of the lease")
