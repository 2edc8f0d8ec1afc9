# SPDX-License-Identifier: Apache-2.0
"""berth plan for a running pool: held devices, claims that go first, and the daemon's answer."""
import json

import pytest
from scripted_pool import NOW, SECOND, claim, lease, show, slot


@pytest.fixture
def plan(sandbox, daemon):
    """Run berth plan on a pool; `verdict` is the daemon's answer to whether it would grant the
    request."""

    def run(*args, verdict=None, env=None, inventory=None, **pool):
        with sandbox.start(["berth", "plan", *args], env={**daemon.env, **(env or {})}) as program:
            client = daemon.accept()
            show(client, inventory=inventory, **pool)
            run.question = client.expect("TEST")
            if verdict is None:
                client.say("DONE", run.question)
            else:
                client.refuse(run.question, *verdict)
            client.expect_end()
            code = program.wait()
            assert program.text("stderr") == ""
        return code, program.text()

    return run


BUSY = ("BUSY", "no free device (--nonblock)")


def test_free_devices(plan):
    code, answer = plan("-n", "2", slots=[slot(0, "LEASED"), slot(1), slot(2), slot(3, "SICK")])
    assert (code, answer.splitlines()[0]) == (0, "now: nvidia1,nvidia2")
    request = plan.question["request"]
    assert (request["gpus_min"], request["nonblock"]) == (2, True)


def test_who_holds_what_is_wanted(plan):
    pool = {
        "slots": [slot(0, "LEASED"), slot(1, "LEASED"), slot(2, "LEASED"), slot(3)],
        "leases": [
            lease(12, ["nvidia0", "nvidia1"]),
            lease(13, ["nvidia2"], expires=NOW + 3600 * SECOND, uid=2**32 - 2),
        ],
    }
    code, answer = plan("-n", "3", verdict=BUSY, **pool)
    assert (code, answer) == (
        0,
        "not now\nwhy: needs 3, 1 free: 3 are busy; "
        "nvidia0,nvidia1 are held by root (lease 12); "
        "nvidia2 is held by 4294967294 (lease 13, 1h left)\n",
    )
    code, answer = plan("--device", "nvidia2", "--json", verdict=BUSY, **pool)
    document = json.loads(answer)
    assert (document["satisfiable"], document["now"], document["devices"]) == (True, False, [])
    assert document["why"].endswith("; nvidia2 is held by 4294967294 (lease 13, 1h left)")


def test_many_holders_are_counted(plan):
    pool = {
        "slots": [slot(index, "LEASED") for index in range(8)],
        "leases": [lease(10 + index, [f"nvidia{index}"]) for index in range(8)],
    }
    _, answer = plan(verdict=BUSY, **pool)
    assert "nvidia3 is held by root (lease 13); and 4 more leases\n" in answer


def test_claims_that_go_first(plan):
    pool = {
        "slots": [slot(0, "LEASED"), slot(1)],
        "leases": [lease(12, ["nvidia0"])],
        "claims": [claim(13, 1), claim(14, 2, opportunistic=True), claim(15, 3)],
    }
    code, answer = plan(verdict=BUSY, **pool)
    assert (code, answer) == (
        0, "not now\nwhy: needs 1 device, but 2 claims are before it: 13 of root, 15 of root\n")
    document = json.loads(plan("--json", verdict=BUSY, **pool)[1])
    assert (document["satisfiable"], document["now"], document["devices"]) == (True, False, [])
    # The device is free and no other claim is in the way, so berth shows the daemon's own reason.
    code, answer = plan(verdict=("BUSY", "user 0 holds 1 of at most 1 device"), slots=[slot(0)])
    assert (code, answer) == (0, "not now\nwhy: needs 1 device: root holds 1 of at most 1 device\n")


def test_what_the_pool_never_grants(plan):
    code, answer = plan(verdict=("IMPOSSIBLE", "requested 1 device, but user 4000000005 may hold at most 0 devices"),
                        slots=[slot(0)])
    assert (code, answer) == (120, "never\nwhy: requested 1 device, but user 4000000005 may hold at most 0 devices\n")
    code, answer = plan(verdict=("NO_DEVICE", "there is no device here"))
    assert (code, answer) == (120, "never\nwhy: this pool has no devices\n")
    code, answer = plan("-n", "2", verdict=("IMPOSSIBLE", "no"), slots=[slot(0), slot(1, "GONE")])
    assert (code, answer) == (120, "never\nwhy: requested 2 devices, but this pool has only 1\n")


def test_what_is_said_to_be_busy_too(plan):
    _, answer = plan("--busy", "nvidia1", slots=[slot(0, "LEASED"), slot(1), slot(2)])
    assert answer.startswith("now: nvidia2\n")
    _, answer = plan("--must", "nvidia2", slots=[slot(0, "LEASED"), slot(1), slot(2)])
    assert answer.startswith("now: nvidia2\n")


def test_masks_hide_devices(plan):
    _, answer = plan("-n", "all", env={"CUDA_VISIBLE_DEVICES": "1"}, slots=[slot(0), slot(1)])
    assert answer.startswith("now: nvidia1\n")
    assert plan.question["masks"] == ["CUDA_VISIBLE_DEVICES=1"]


def test_within_a_lease(plan):
    pool = {
        "slots": [slot(0), slot(1, "LEASED"), slot(2, "LEASED")],
        "leases": [lease(12, ["nvidia1", "nvidia2"]), lease(13, ["nvidia1"], parent=12)],
    }
    _, answer = plan(env={"BERTH_LEASE": "12"}, **pool)
    assert answer.startswith("now: nvidia2\n")
    assert plan.question["parent"] == 12
    _, answer = plan("-n", "2", env={"BERTH_LEASE": "12"}, verdict=BUSY, **pool)
    assert answer.endswith("nvidia1 is held by root (lease 13)\n")


def test_shared_devices(plan):
    args = ["--sharing", "time-slice", "--share", "0.5"]
    shared = slot(0, "SHARED", sharing=2, tenants=1, share_used=500000)
    assert plan(*args, slots=[shared])[1].startswith("now: nvidia0\n")
    full = slot(0, "SHARED", sharing=2, tenants=2, share_used=1000000)
    assert plan(*args, slots=[full], verdict=BUSY)[1].startswith("not now\n")
    assert plan(slots=[shared], verdict=BUSY)[1].startswith("not now\n")


def test_an_inventory_that_its_pool_has_too(sandbox, plan, source_root):
    inventory = (source_root / "examples/dgx-a100.yaml").resolve()
    slots = [slot(index, "LEASED" if index == 0 else "FREE") for index in range(8)]
    _, answer = plan("--inventory", str(inventory), "--model", "SXM4", slots=slots, inventory=str(inventory))
    assert answer.startswith("now: nvidia1\n")  # the file's names with the pool's states
    assert plan.question["inventory"] == str(inventory)


def test_nobody_listens(sandbox, source_root):
    path = sandbox.directory / "none.sock"
    done = sandbox.run(["berth", "plan"], env={"BERTH_SOCKET": path})
    assert done == (125, "", f"berth: plan: {path}: no daemon is running (no such socket)\n")


def test_what_makes_no_sense(sandbox, daemon):
    with sandbox.start(["berth", "plan"], env=daemon.env) as program:
        client = daemon.accept()
        show(client, slots=[slot(0)])
        client.refuse(client.expect("TEST"), "PERMISSION", "not for you")
        assert program.wait() == 125
        assert program.text("stderr") == "berth: plan: not for you\n"
