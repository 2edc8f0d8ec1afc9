# SPDX-License-Identifier: Apache-2.0
"""The command lines of past leases: other users see only the program's name."""
import json
import os

import pytest
from lease_history import history
from waiting import until

ALICE, BOB = 61001, 61002
SECRET = "api-key-51f3"
WORDS = ["sh", "-c", "true", f"--key={SECRET}"]
COMMAND = " ".join(WORDS)


@pytest.fixture
def machine_of(shared_machine_of, sandbox):
    """A function that opens a machine whose users have a directory of their own for state."""

    def make(rules=""):
        machine = shared_machine_of(2)
        machine.open(rules)
        machine.states = {}
        for uid in (ALICE, BOB):
            state = sandbox.directory / f"state-{uid}"
            state.mkdir(mode=0o700)
            state.chmod(0o700)
            machine.states[uid] = state
            os.chown(state, uid, uid)
        return machine

    return make


def berth(machine, uid, *words):
    done = machine.berth(uid, *words, env={"XDG_STATE_HOME": machine.states[uid]})
    assert done.code == 0, done
    return done.stdout


def commands(machine, uid):
    """Return the commands of all ended leases by the leases' names, as this user sees them."""
    leases = json.loads(berth(machine, uid, "history", "--json"))["leases"]
    return {lease["name"]: lease["command"] for lease in leases if lease["end"] is not None}


def contents(directory, pattern):
    return b"".join(path.read_bytes() for path in sorted(directory.glob(pattern)))


def test_only_the_owner_sees_the_command_line(machine_of):
    machine = machine_of()
    berth(machine, ALICE, "run", "--name", "hers", *WORDS)
    job = berth(machine, ALICE, "submit", "--name", "later", *WORDS).strip()
    berth(machine, ALICE, "wait", job)
    berth(machine, BOB, "run", "--name", "his", "true", SECRET)
    until(lambda: len(commands(machine, BOB)) == 3, "three leases")
    assert commands(machine, ALICE) == {"hers": COMMAND, "later": COMMAND, "his": "true"}
    assert commands(machine, BOB) == {"hers": "sh", "later": "sh", "his": f"true {SECRET}"}
    assert SECRET in berth(machine, ALICE, "history", "--csv")
    assert SECRET.encode() not in contents(machine.directory, "berth.history*")
    kept = machine.states[ALICE] / "berth/commands"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert SECRET.encode() in kept.read_bytes()


def test_all_see_it_if_the_machine_says_so(machine_of):
    machine = machine_of("show_commands: all\n")
    berth(machine, ALICE, "run", "--name", "hers", *WORDS)
    until(lambda: commands(machine, BOB) == {"hers": COMMAND}, "the command line")


def test_own_pool_keeps_it_in_its_history(pool):
    assert pool.berth("run", *WORDS).code == 0
    until(lambda: [lease["command"] for lease in history(pool)] == [COMMAND], "the command line")
    assert not (pool.sandbox.home / ".local/state/berth/commands").exists()
