# SPDX-License-Identifier: Apache-2.0
"""One daemon for everybody: who may do what, and what is said to who may not."""
import json

import daemon_log
import pytest
from town import ALICE, BOB, CAROL, STAFF, STUDENTS
from waiting import until, until_pending

DECIDES = "it belongs to another user"
SERVICE = "only root, the pool's owner and its admins take devices out of service"


@pytest.fixture
def town(town_of):
    """Four devices and no rules, unless a test opens it with some."""
    return town_of(4)


def lease_of(done):
    assert (done.code, done.stderr) == (0, "")
    return done.stdout.strip()


# ---- Whose a lease is ----


def test_leases_belong_to_their_user(town):
    town.open()
    mine = lease_of(town.berth(ALICE, "reserve", "--for", "1h"))
    for verb in (["release", mine], ["extend", mine, "1h"]):
        assert town.berth(BOB, *verb) == (125, "", f"berth: {verb[0]}: {mine}: {DECIDES}\n")
    assert town.berth(ALICE, "extend", mine, "1h").code == 0
    assert town.berth(ALICE, "release", mine) == (0, "", "")
    [theirs, more] = [lease_of(town.berth(BOB, "reserve", "--for", "1h")) for _ in range(2)]
    assert town.sandbox.run(["berth", "release", theirs]) == (0, "", "")
    assert town.berth(BOB, "release", more) == (0, "", "")


def test_claims_belong_to_their_user(town):
    town.open()
    holder = town.hold(ALICE, "-n", "4")
    waits = town.start(ALICE, "run", "true")
    until_pending(town, 1)
    [claim] = [str(claim["id"]) for claim in town.look()["claims"]]
    assert town.berth(BOB, "cancel", claim) == (125, "", f"berth: cancel: {claim}: {DECIDES}\n")
    assert town.berth(ALICE, "cancel", claim) == (0, "", "")
    assert waits.wait() == 123
    town.let_go(holder)


@pytest.mark.parametrize(
    "rules, groups",
    [(f"admins: [{BOB}]", ()), (f"admins: {{groups: [{STAFF}]}}", (STAFF,)), (f"admins: {{groups: [{BOB}]}}", ())],
    ids=["user", "group", "first group"],
)
def test_admins_may_do_what_the_owner_may(town, rules, groups):
    town.open(rules)
    mine = lease_of(town.berth(ALICE, "reserve", "--for", "1h"))
    assert town.berth(BOB, "extend", mine, "1h", groups=groups).code == 0
    assert town.berth(BOB, "release", mine, groups=groups) == (0, "", "")
    assert town.berth(BOB, "drain", "nvidia0", groups=groups).code == 0
    assert town.berth(BOB, "undrain", "nvidia0", groups=groups).code == 0
    assert town.berth(BOB, "run", "--priority", "high", "true", groups=groups).code == 0
    assert town.berth(CAROL, "drain", "nvidia0", groups=(STUDENTS,)) == (125, "", f"berth: drain: {SERVICE}\n")


def test_a_lease_of_somebody_else_is_no_place_to_claim_in(town):
    town.open()
    mine = lease_of(town.berth(ALICE, "reserve", "--for", "1h"))
    done = town.berth(BOB, "run", "true", env={"BERTH_LEASE": mine})
    assert done == (125, "", f"berth: run: BERTH_LEASE: lease {mine} belongs to another user\n")
    done = town.berth(BOB, "run", "true", env={"BERTH_LEASE": "77"})
    assert done.code == 125
    assert "BERTH_LEASE: expected a lease of this pool, got 77" in done.stderr
    assert town.berth(ALICE, "release", mine).code == 0


def test_everybody_sees_everything(town):
    town.open()
    holder = town.hold(ALICE, "--name", "training")
    seen = json.loads(town.berth(BOB, "status", "--json").stdout)
    assert [(lease["uid"], lease["name"]) for lease in seen["leases"]] == [(ALICE, "training")]
    town.let_go(holder)


# ---- Limits ----


def test_limits_of_users_hold_at_the_same_time(town):
    town.open(f"limits: {{each_user: 2, users: {{{BOB}: 3}}, groups: {{{STUDENTS}: 1}}}}")
    for uid, groups, most in [(ALICE, (), 2), (BOB, (), 3), (CAROL, (STUDENTS,), 1)]:
        assert town.berth(uid, "run", "-n", str(most), "true", groups=groups) == (0, "", "")
        done = town.berth(uid, "run", "-n", str(most + 1), "true", groups=groups)
        assert (done.code, done.stdout) == (120, "")
        assert "may hold at most" in done.stderr
    assert town.sandbox.run(["berth", "run", "-n", "4", "true"]) == (0, "", "")


def test_who_is_held_back_by_a_limit_holds_nobody_back(town):
    town.open("limits: {each_user: 2}")
    holder = town.hold(ALICE, "-n", "2")
    waits = town.start(ALICE, "run", "-n", "1", "true")
    until_pending(town, 1)
    assert town.berth(BOB, "run", "-n", "2", "true") == (0, "", "")
    town.let_go(holder)
    assert waits.wait() == 0


def test_a_limit_of_each_user_holds_after_a_restart(town):
    town.open("limits: {each_user: 2}")
    town.berth(ALICE, "reserve", "-n", "2", "--for", "1h")
    town.close(9)
    town.open("limits: {each_user: 2}")
    assert town.berth(ALICE, "run", "--nonblock", "true").code == 123
    assert town.berth(BOB, "run", "--nonblock", "true").code == 0


@pytest.mark.parametrize(
    "uid, groups, longest",
    [(ALICE, (), "1h"), (BOB, (STAFF,), "3h"), (CAROL, (STAFF,), "2d"), (CAROL, (STAFF, STUDENTS), "2d")],
    ids=["each user", "their own", "their group's", "the most generous group's"],
)
def test_longest_times(town, uid, groups, longest):
    town.open(
        "longest_time: 12h\n"
        "limits:\n"
        "  each_user: {longest_time: 1h}\n"
        f"  users: {{{BOB}: {{longest_time: 3h}}}}\n"
        f"  groups: {{{STAFF}: {{longest_time: 2d}}, {STUDENTS}: {{longest_time: 90m}}}}\n"
    )
    done = town.berth(uid, "run", "--time", "3d", "true", groups=groups)
    assert done == (2, "", f"berth: run: --time: expected at most {longest}, got 3d\n")
    mine = lease_of(town.berth(uid, "reserve", "--for", longest, groups=groups))
    done = town.berth(uid, "extend", mine, "1h", groups=groups)
    assert done.code == 125
    assert f"expected to hold it for at most {longest} in all, got " in done.stderr
    assert town.sandbox.run(["berth", "extend", mine, "1h"]).code == 0


def test_a_longest_time_wants_a_time(town):
    town.open("longest_time: 1h\n")
    assert town.berth(ALICE, "run", "true") == (2, "", "berth: run: --time: expected at most 1h, got none\n")
    assert town.berth(ALICE, "run", "--time", "1h", "true") == (0, "", "")
    town.reload("longest_time: 1h\ndefault_time: 30m\n")
    assert town.berth(ALICE, "run", "true") == (0, "", "")


def test_high_is_for_some(town):
    town.open(f"high: {{users: [{ALICE}], groups: [{STAFF}]}}")
    run = ["run", "--priority", "high", "true"]
    assert town.berth(ALICE, *run).code == 0
    assert town.berth(BOB, *run, groups=(STAFF,)).code == 0
    refused = "berth: run: --priority high: only those whom the configuration allows may use it\n"
    assert town.berth(BOB, *run, groups=(STUDENTS,)) == (125, "", refused)


# ---- Devices ----


def test_reserved_devices(town):
    town.open(f"reserved: {{nvidia0: {{users: [{ALICE}], groups: [{STAFF}]}}, nvidia1: {{}}}}")
    where = ["run", "printenv", "BERTH_DEVICES"]
    assert town.berth(ALICE, *where).stdout == "nvidia0\n"
    assert town.berth(BOB, *where, groups=(STAFF,)).stdout == "nvidia0\n"
    assert town.berth(BOB, *where).stdout == "nvidia2\n"
    for uid, device in [(BOB, "nvidia0"), (ALICE, "nvidia1")]:
        done = town.berth(uid, "run", "--device", device, "true")
        assert done.code == 120
        assert "reserved for others" in done.stderr
    assert town.berth(BOB, "run", "-n", "3", "true").code == 120
    assert town.berth(ALICE, "run", "-n", "3", "true").code == 0


def test_preferred_devices(town):
    town.open("preferred: [nvidia3, nvidia1]")
    done = town.berth(ALICE, "run", "-n", "3", "printenv", "BERTH_DEVICES")
    assert set(done.stdout.strip().split(",")) == {"nvidia0", "nvidia1", "nvidia3"}
    first = town.hold(BOB)
    second = town.hold(CAROL)
    held = {lease["uid"]: lease["devices"] for lease in town.look()["leases"]}
    assert held == {BOB: ["nvidia3"], CAROL: ["nvidia1"]}
    town.let_go(first)
    town.let_go(second)


def test_rules_change_while_people_wait(town):
    """Leases stay, who waits keeps the place, and what the new rules allow is granted."""
    town.open("limits: {each_user: 1}")
    holder = town.hold(ALICE)
    waits = town.start(ALICE, "run", "printenv", "BERTH_DEVICES")
    until_pending(town, 1)
    town.reload("limits: {each_user: 1\n")
    [entry] = daemon_log.wait_for(town.log, "error", what="reload")
    assert "berth.yaml:" in entry.values["reason"]
    until_pending(town, 1)
    town.reload("limits: {each_user: 2}\nreserved: {nvidia1: {}}\npreferred: [nvidia2]\n")
    assert waits.wait_for_line("nvidia") == "nvidia2"
    assert waits.wait() == 0
    town.reload("")
    assert town.berth(ALICE, "run", "-n", "3", "true") == (0, "", "")
    town.let_go(holder)


# ---- Out of service ----


def test_drain_and_undrain(town):
    town.open()
    holder = town.hold(ALICE, "--device", "nvidia0")
    assert town.berth(BOB, "drain", "nvidia0") == (125, "", f"berth: drain: {SERVICE}\n")
    assert town.berth(BOB, "undrain", "nvidia0") == (125, "", f"berth: undrain: {SERVICE}\n")
    done = town.sandbox.run(["berth", "drain", "nvidia0,nvidia1", "--reason", "its fan"])
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"nvidia0: out of service once lease {holder.lease} ({ALICE}) ends",
        "nvidia1: out of service",
    ]
    done = town.sandbox.run(["berth", "drain", "nvidia9"])
    assert done.code == 125
    assert "nvidia9" in done.stderr
    assert town.berth(BOB, "run", "printenv", "BERTH_DEVICES").stdout == "nvidia2\n"
    town.let_go(holder)
    waits = town.start(BOB, "run", "--device", "nvidia0", "printenv", "BERTH_DEVICES")
    until_pending(town, 1)
    seen = json.loads(town.berth(BOB, "status", "--json").stdout)["devices"][0]
    assert (seen["state"], seen["drain"]["reason"], seen["drain"]["user"]) == ("drained", "its fan", "root")
    assert "its fan" in town.berth(BOB, "status").stdout
    town.close(9)
    town.open()
    until_pending(town, 1)
    assert town.sandbox.run(["berth", "undrain", "nvidia0"]).stdout == "nvidia0: in service\n"
    assert waits.wait_for_line("nvidia") == "nvidia0"
    assert waits.wait() == 0
    assert town.slots()["nvidia1"]["reason"] == "its fan"


def test_impossible_is_said_at_once_and_drained_is_not_impossible(town):
    town.open()
    assert town.sandbox.run(["berth", "drain", "nvidia0", "nvidia1", "nvidia2", "nvidia3"]).code == 0
    assert town.berth(ALICE, "run", "--nonblock", "true").code == 123
    assert town.berth(ALICE, "run", "-n", "5", "true").code == 120


# ---- Names that would harm a terminal ----


def test_names_are_harmless_in_what_others_see(town):
    town.open()
    name = "\x1b]0;owned\x07\x1b[2J\r\nx\u202e"
    holder = town.hold(ALICE, "--name", name)
    shown = town.berth(BOB, "status").stdout
    assert "owned" in shown
    assert not any(character in shown for character in "\x1b\x07\r\u202e")
    seen = json.loads(town.berth(BOB, "status", "--json").stdout)
    assert seen["leases"][0]["name"] == name
    town.let_go(holder)
    until(lambda: not town.look()["leases"], "the end of the lease")
