# SPDX-License-Identifier: Apache-2.0
"""One daemon for all users: permissions, and the messages to users without them."""
import json

import daemon_log
import pytest
from shared_machine import ALICE, BOB, CAROL, STAFF, STUDENTS
from waiting import until, until_free, until_pending

DECIDES = "belongs to another user"
REFUSALS = {"release": "cannot end lease", "extend": "cannot extend lease"}
SERVICE = "only root, the pool's owner and its admins may drain devices"


@pytest.fixture
def shared_machine(shared_machine_of):
    """A machine with four devices, and without rules unless the test sets some."""
    return shared_machine_of(4)


def lease_of(done):
    assert (done.code, done.stderr) == (0, "")
    return done.stdout.strip()


# ---- Owners of leases ----


def test_leases_belong_to_their_user(shared_machine):
    shared_machine.open()
    mine = lease_of(shared_machine.berth(ALICE, "reserve", "--for", "1h"))
    for verb in (["release", mine], ["extend", mine, "1h"]):
        assert shared_machine.berth(BOB, *verb) == (125, "", f"berth: {verb[0]}: {REFUSALS[verb[0]]} {mine}: it {DECIDES}\n")
    assert shared_machine.berth(ALICE, "extend", mine, "1h").code == 0
    assert shared_machine.berth(ALICE, "release", mine) == (0, "", "")
    [theirs, more] = [lease_of(shared_machine.berth(BOB, "reserve", "--for", "1h")) for _ in range(2)]
    assert shared_machine.sandbox.run(["berth", "release", theirs]) == (0, "", "")
    assert shared_machine.berth(BOB, "release", more) == (0, "", "")


def test_claims_belong_to_their_user(shared_machine):
    shared_machine.open()
    holder = shared_machine.hold(ALICE, "-n", "4")
    waits = shared_machine.start(ALICE, "run", "true")
    until_pending(shared_machine, 1)
    [claim] = [str(claim["id"]) for claim in shared_machine.look()["claims"]]
    assert shared_machine.berth(BOB, "cancel", claim) == (125, "", f"berth: cancel: cannot cancel claim {claim}: it {DECIDES}\n")
    assert shared_machine.berth(ALICE, "cancel", claim) == (0, "", "")
    assert waits.wait() == 123
    shared_machine.let_go(holder)


@pytest.mark.parametrize(
    "rules, groups",
    [(f"admins: [{BOB}]", ()), (f"admins: {{groups: [{STAFF}]}}", (STAFF,)), (f"admins: {{groups: [{BOB}]}}", ())],
    ids=["user", "group", "first group"],
)
def test_admins_may_do_what_the_owner_may(shared_machine, rules, groups):
    shared_machine.open(rules)
    mine = lease_of(shared_machine.berth(ALICE, "reserve", "--for", "1h"))
    assert shared_machine.berth(BOB, "extend", mine, "1h", groups=groups).code == 0
    assert shared_machine.berth(BOB, "release", mine, groups=groups) == (0, "", "")
    assert shared_machine.berth(BOB, "drain", "nvidia0", groups=groups).code == 0
    assert shared_machine.berth(BOB, "undrain", "nvidia0", groups=groups).code == 0
    assert shared_machine.berth(BOB, "run", "--priority", "high", "true", groups=groups).code == 0
    assert shared_machine.berth(CAROL, "drain", "nvidia0", groups=(STUDENTS,)) == (125, "", f"berth: drain: {SERVICE}\n")


def test_a_lease_of_somebody_else_is_no_place_to_claim_in(shared_machine):
    shared_machine.open()
    mine = lease_of(shared_machine.berth(ALICE, "reserve", "--for", "1h"))
    done = shared_machine.berth(BOB, "run", "true", env={"BERTH_LEASE": mine})
    assert done == (125, "", f"berth: run: BERTH_LEASE: lease {mine} belongs to another user\n")
    done = shared_machine.berth(BOB, "run", "true", env={"BERTH_LEASE": "77"})
    assert done.code == 125
    assert "BERTH_LEASE: lease 77 does not exist" in done.stderr
    assert shared_machine.berth(ALICE, "release", mine).code == 0


def test_everybody_sees_everything(shared_machine):
    shared_machine.open()
    holder = shared_machine.hold(ALICE, "--name", "training")
    seen = json.loads(shared_machine.berth(BOB, "status", "--json").stdout)
    assert [(lease["uid"], lease["name"]) for lease in seen["leases"]] == [(ALICE, "training")]
    shared_machine.let_go(holder)


# ---- Limits ----


def test_limits_of_users_hold_at_the_same_time(shared_machine):
    shared_machine.open(f"limits: {{each_user: 2, users: {{{BOB}: 3}}, groups: {{{STUDENTS}: 1}}}}")
    for uid, groups, most in [(ALICE, (), 2), (BOB, (), 3), (CAROL, (STUDENTS,), 1)]:
        assert shared_machine.berth(uid, "run", "-n", str(most), "true", groups=groups) == (0, "", "")
        done = shared_machine.berth(uid, "run", "-n", str(most + 1), "true", groups=groups)
        assert (done.code, done.stdout) == (120, "")
        assert "may hold at most" in done.stderr
    assert shared_machine.sandbox.run(["berth", "run", "-n", "4", "true"]) == (0, "", "")


def test_who_is_held_back_by_a_limit_holds_nobody_back(shared_machine):
    shared_machine.open("limits: {each_user: 2}")
    holder = shared_machine.hold(ALICE, "-n", "2")
    waits = shared_machine.start(ALICE, "run", "-n", "1", "true")
    until_pending(shared_machine, 1)
    assert shared_machine.berth(BOB, "run", "-n", "2", "true") == (0, "", "")
    shared_machine.let_go(holder)
    assert waits.wait() == 0


def test_a_limit_of_each_user_holds_after_a_restart(shared_machine):
    shared_machine.open("limits: {each_user: 2}")
    shared_machine.berth(ALICE, "reserve", "-n", "2", "--for", "1h")
    shared_machine.close(9)
    shared_machine.open("limits: {each_user: 2}")
    assert shared_machine.berth(ALICE, "run", "--nonblock", "true").code == 123
    assert shared_machine.berth(BOB, "run", "--nonblock", "true").code == 0


@pytest.mark.parametrize(
    "uid, groups, longest",
    [(ALICE, (), "1h"), (BOB, (STAFF,), "3h"), (CAROL, (STAFF,), "2d"), (CAROL, (STAFF, STUDENTS), "2d")],
    ids=["each user", "their own", "their group's", "the most generous group's"],
)
def test_longest_times(shared_machine, uid, groups, longest):
    shared_machine.open(
        "longest_time: 12h\n"
        "limits:\n"
        "  each_user: {longest_time: 1h}\n"
        f"  users: {{{BOB}: {{longest_time: 3h}}}}\n"
        f"  groups: {{{STAFF}: {{longest_time: 2d}}, {STUDENTS}: {{longest_time: 90m}}}}\n"
    )
    done = shared_machine.berth(uid, "run", "--time", "3d", "true", groups=groups)
    assert done == (2, "", f"berth: run: --time: expected at most {longest}, got 3d\n")
    mine = lease_of(shared_machine.berth(uid, "reserve", "--for", longest, groups=groups))
    done = shared_machine.berth(uid, "extend", mine, "1h", groups=groups)
    assert done.code == 125
    assert f"expected at most {longest} in total, got " in done.stderr
    assert shared_machine.sandbox.run(["berth", "extend", mine, "1h"]).code == 0


def test_a_longest_time_wants_a_time(shared_machine):
    shared_machine.open("longest_time: 1h\n")
    assert shared_machine.berth(ALICE, "run", "true") == (2, "", "berth: run: --time: expected at most 1h, got none\n")
    assert shared_machine.berth(ALICE, "run", "--time", "1h", "true") == (0, "", "")
    shared_machine.reload("longest_time: 1h\ndefault_time: 30m\n")
    assert shared_machine.berth(ALICE, "run", "true") == (0, "", "")


def test_high_is_for_some(shared_machine):
    shared_machine.open(f"high: {{users: [{ALICE}], groups: [{STAFF}]}}")
    run = ["run", "--priority", "high", "true"]
    assert shared_machine.berth(ALICE, *run).code == 0
    assert shared_machine.berth(BOB, *run, groups=(STAFF,)).code == 0
    refused = "berth: run: --priority high: the configuration does not allow this for you\n"
    assert shared_machine.berth(BOB, *run, groups=(STUDENTS,)) == (125, "", refused)


# ---- Devices ----


def test_reserved_devices(shared_machine):
    shared_machine.open(f"reserved: {{nvidia0: {{users: [{ALICE}], groups: [{STAFF}]}}, nvidia1: {{}}}}")
    where = ["run", "printenv", "BERTH_DEVICES"]
    for uid, groups, device in [(ALICE, (), "nvidia0"), (BOB, (STAFF,), "nvidia0"), (BOB, (), "nvidia2")]:
        assert shared_machine.berth(uid, *where, groups=groups).stdout == f"{device}\n"
        until_free(shared_machine)
    for uid, device in [(BOB, "nvidia0"), (ALICE, "nvidia1")]:
        done = shared_machine.berth(uid, "run", "--device", device, "true")
        assert done.code == 120
        assert "reserved for others" in done.stderr
    assert shared_machine.berth(BOB, "run", "-n", "3", "true").code == 120
    assert shared_machine.berth(ALICE, "run", "-n", "3", "true").code == 0


def test_preferred_devices(shared_machine):
    shared_machine.open("preferred: [nvidia3, nvidia1]")
    done = shared_machine.berth(ALICE, "run", "-n", "3", "printenv", "BERTH_DEVICES")
    assert set(done.stdout.strip().split(",")) == {"nvidia0", "nvidia1", "nvidia3"}
    until_free(shared_machine)
    first = shared_machine.hold(BOB)
    second = shared_machine.hold(CAROL)
    held = {lease["uid"]: lease["devices"] for lease in shared_machine.look()["leases"]}
    assert held == {BOB: ["nvidia3"], CAROL: ["nvidia1"]}
    shared_machine.let_go(first)
    shared_machine.let_go(second)


def test_rules_change_while_people_wait(shared_machine):
    """Leases stay, waiting claims keep their place, and claims that the new rules allow are
    granted."""
    shared_machine.open("limits: {each_user: 1}")
    holder = shared_machine.hold(ALICE)
    waits = shared_machine.start(ALICE, "run", "printenv", "BERTH_DEVICES")
    until_pending(shared_machine, 1)
    shared_machine.reload("limits: {each_user: 1\n")
    [entry] = daemon_log.wait_for(shared_machine.log, "error", what="reload")
    assert "berth.yaml:" in entry.values["reason"]
    until_pending(shared_machine, 1)
    shared_machine.reload("limits: {each_user: 2}\nreserved: {nvidia1: {}}\npreferred: [nvidia2]\n")
    assert waits.wait_for_line("nvidia") == "nvidia2"
    assert waits.wait() == 0
    shared_machine.reload("")
    assert shared_machine.berth(ALICE, "run", "-n", "3", "true") == (0, "", "")
    shared_machine.let_go(holder)


# ---- Out of service ----


def test_drain_and_undrain(shared_machine):
    shared_machine.open()
    holder = shared_machine.hold(ALICE, "--device", "nvidia0")
    assert shared_machine.berth(BOB, "drain", "nvidia0") == (125, "", f"berth: drain: {SERVICE}\n")
    assert shared_machine.berth(BOB, "undrain", "nvidia0") == (125, "", f"berth: undrain: {SERVICE}\n")
    done = shared_machine.sandbox.run(["berth", "drain", "nvidia0,nvidia1", "--reason", "its fan"])
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"nvidia0: out of service once lease {holder.lease} ({ALICE}) ends",
        "nvidia1: out of service",
    ]
    done = shared_machine.sandbox.run(["berth", "drain", "nvidia9"])
    assert done.code == 125
    assert "nvidia9" in done.stderr
    assert shared_machine.berth(BOB, "run", "printenv", "BERTH_DEVICES").stdout == "nvidia2\n"
    shared_machine.let_go(holder)
    waits = shared_machine.start(BOB, "run", "--device", "nvidia0", "printenv", "BERTH_DEVICES")
    until_pending(shared_machine, 1)
    seen = json.loads(shared_machine.berth(BOB, "status", "--json").stdout)["devices"][0]
    assert (seen["state"], seen["drain"]["reason"], seen["drain"]["user"]) == ("drained", "its fan", "root")
    assert "its fan" in shared_machine.berth(BOB, "status").stdout
    shared_machine.close(9)
    shared_machine.open()
    until_pending(shared_machine, 1)
    assert shared_machine.sandbox.run(["berth", "undrain", "nvidia0"]).stdout == "nvidia0: in service\n"
    assert waits.wait_for_line("nvidia") == "nvidia0"
    assert waits.wait() == 0
    assert shared_machine.slots()["nvidia1"]["reason"] == "its fan"


def test_impossible_is_said_at_once_and_drained_is_not_impossible(shared_machine):
    shared_machine.open()
    assert shared_machine.sandbox.run(["berth", "drain", "nvidia0", "nvidia1", "nvidia2", "nvidia3"]).code == 0
    assert shared_machine.berth(ALICE, "run", "--nonblock", "true").code == 123
    assert shared_machine.berth(ALICE, "run", "-n", "5", "true").code == 120


# ---- Names that would harm a terminal ----


def test_names_are_harmless_in_what_others_see(shared_machine):
    shared_machine.open()
    name = "\x1b]0;owned\x07\x1b[2J\r\nx\u202e"
    holder = shared_machine.hold(ALICE, "--name", name)
    shown = shared_machine.berth(BOB, "status").stdout
    assert "owned" in shown
    assert not any(character in shown for character in "\x1b\x07\r\u202e")
    seen = json.loads(shared_machine.berth(BOB, "status", "--json").stdout)
    assert seen["leases"][0]["name"] == name
    shared_machine.let_go(holder)
    until(lambda: not shared_machine.look()["leases"], "the end of the lease")
