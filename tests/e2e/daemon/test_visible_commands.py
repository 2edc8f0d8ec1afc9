# SPDX-License-Identifier: Apache-2.0
"""Other users' command lines: `show_commands: owner` shows only the program's name."""
import json
import sys
from pathlib import Path

import daemon_log
import pytest
import wire
from shared_machine import ALICE, BOB, CAROL
from waiting import until, until_pending

SECRET = "--api-key=very-secret"
FOLLOW = """
import json, sys
sys.path[:0] = json.loads(sys.argv[2])
import wire
with wire.connect(sys.argv[1]) as client:
    news = client.answer(client.send("FOLLOW", kinds=15), ("NEWS",))
    print(json.dumps([ended["lease"].get("command") for ended in news.get("ended", [])]))
"""


@pytest.fixture
def machine(shared_machine_of):
    return shared_machine_of(1)


def commands(machine, uid):
    status = machine.berth(uid, "status", "--json")
    assert status.code == 0
    document = json.loads(status.stdout)
    return [entry["command"] for entry in (*document["leases"], *document["queue"])]


def ended_commands(machine, uid):
    """The commands of ended leases that a follower of this user is told."""
    folders = [str(Path(wire.__file__).parent), *sys.path]
    args = [*machine.become(uid), sys.executable, "-c", FOLLOW, machine.socket, json.dumps(folders)]
    done = machine.sandbox.run(args)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def hold(machine, uid):
    """A lease whose command line has a secret."""
    script = "echo holding $BERTH_LEASE; exec cat"
    holder = machine.start(uid, "run", "--", "sh", "-c", script, SECRET)
    holder.wait_for_line("^holding ")
    return holder


def test_others_see_the_program_only(machine):
    machine.open()
    holder = hold(machine, ALICE)
    waits = machine.start(BOB, "run", "--", "/usr/bin/env", SECRET, "true")
    until_pending(machine, 1)
    [held, waiting] = commands(machine, ALICE)
    assert SECRET in held and waiting == "env"
    [held, waiting] = commands(machine, BOB)
    assert held == "sh" and SECRET in waiting
    assert commands(machine, CAROL) == ["sh", "env"]
    assert all(SECRET in command for command in commands(machine, 0))
    machine.let_go(holder)
    waits.wait()


def test_ended_leases_too(machine):
    machine.open("history: no")
    machine.let_go(hold(machine, ALICE))
    [own], [others], [roots] = (ended_commands(machine, uid) for uid in (ALICE, BOB, 0))
    assert SECRET in own and others == "sh" and SECRET in roots


def test_admins_see_all(machine):
    machine.open(f"admins: [{CAROL}]")
    holder = hold(machine, ALICE)
    assert SECRET in commands(machine, CAROL)[0]
    assert commands(machine, BOB) == ["sh"]
    machine.let_go(holder)


def test_all_shows_everything(machine):
    machine.open("show_commands: all")
    holder = hold(machine, ALICE)
    assert SECRET in commands(machine, BOB)[0]
    machine.reload("show_commands: owner")
    assert commands(machine, BOB) == ["sh"]
    machine.let_go(holder)


# ---- Processes without a lease ----

# A uid of ALICE's containers.
INNER = 7600000


@pytest.fixture
def squatted(hardware_of, shared_machine_of, sandbox, site):
    """A machine of hardware on whose device a process of ALICE and one of her container run without a lease."""
    site.configure("notify")
    site.directory.chmod(0o755)
    hardware = hardware_of([0])
    subordinates = sandbox.directory / "subuid"
    subordinates.write_text(f"{ALICE}:{INNER}:65536\n")
    sandbox.environment["BERTH_SUBUID"] = str(subordinates)
    machine = shared_machine_of()
    outside, inside = machine.sleeper(ALICE), machine.sleeper(INNER)
    hardware.says(
        [
            hardware.device(
                0,
                processes=[
                    {"pid": outside.pid, "uid": ALICE, "command": f"/usr/bin/python3 train.py {SECRET}"},
                    {"pid": inside.pid, "uid": INNER, "command": f"sh train.sh {SECRET}"},
                ],
            )
        ]
    )
    machine.site = site

    def start(rules=""):
        machine.open(site.rules.read_text() + rules)
        until(lambda: machine.slots().get("nvidia0", {}).get("state") == wire.STATES["SQUATTED"], "a squatted device")
        return machine

    return start


def blocking(machine, uid):
    """The commands of the processes that `status --json` names to this user, and all that it and doctor print."""
    status = machine.berth(uid, "status", "--json").stdout
    [device] = json.loads(status)["devices"]
    printed = status + machine.berth(uid, "status").stdout + machine.berth(uid, "doctor").stdout
    return [process["command"] for process in device["squatters"]], printed


def test_processes_on_devices(squatted):
    machine = squatted()
    commands, printed = blocking(machine, BOB)
    assert commands == ["python3", "sh"] and SECRET not in printed
    for uid in (ALICE, 0):
        commands, _ = blocking(machine, uid)
        assert all(SECRET in command for command in commands)
    # The user of a container sees the commands of that container only.
    commands, _ = blocking(machine, INNER)
    assert commands == ["python3", f"sh train.sh {SECRET}"]


def test_log_and_notifications(squatted):
    """Messages of the site's program may go to all users."""
    machine = squatted()
    machine.site.until("end", "squatter", "nvidia0")
    assert machine.site.environment("squatter")["BERTH_MESSAGE"].endswith(f" of uid {ALICE}: python3")
    [entry] = daemon_log.wait_for(machine.log, "squatted")
    assert entry.values["command"] == "python3"
    assert SECRET not in machine.log.read_text()


def test_log_and_notifications_with_all(squatted):
    machine = squatted("show_commands: all\n")
    machine.site.until("end", "squatter", "nvidia0")
    assert SECRET in machine.site.environment("squatter")["BERTH_MESSAGE"]
    [entry] = daemon_log.wait_for(machine.log, "squatted")
    assert SECRET in entry.values["command"]
