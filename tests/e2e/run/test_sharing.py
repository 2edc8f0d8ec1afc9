# SPDX-License-Identifier: Apache-2.0
"""Devices that several leases share with time slices: limits by share, by memory and by number,
and the messages about them."""
import contextlib
import json

import nvml_machine
import pytest
from mps import Mps
from waiting import look, until, until_pending

GIB = 1 << 30
SLICE = ["--sharing", "time-slice"]


@contextlib.contextmanager
def tenants(pool, *each):
    """Hold one lease for each of these options, all granted at once."""
    holders = []
    try:
        for options in each:
            holders.append(pool.hold(*SLICE, *options.split()))
        yield holders
    finally:
        for holder in holders:
            if holder.process.stdin:
                pool.let_go(holder)


def is_refused_now(pool, *options):
    done = pool.berth("run", *options, "--nonblock", "true")
    assert done.code in (0, 123), done
    return done.code == 123


def check_waits(pool, holders, *options):
    """Check that a run waits while the holders keep their leases, and starts when one of them
    ends."""
    waiter = pool.start("run", *SLICE, *options, "echo", "granted")
    until_pending(pool, 1)
    pool.let_go(holders[0])
    assert waiter.wait() == 0
    assert waiter.text() == "granted\n"


def whys(pool):
    return [claim["why"] for claim in json.loads(pool.berth("status", "--json").stdout)["queue"]]


# ---- By share ----


def test_four_quarters_fit_and_a_fifth_waits(pool_of):
    pool = pool_of(1)
    with tenants(pool, *["--share 0.25"] * 4) as holders:
        assert is_refused_now(pool, *SLICE, "--share", "0.01")
        check_waits(pool, holders, "--share", "0.25")


def test_shares_never_exceed_the_whole(pool_of):
    pool = pool_of(1)
    with tenants(pool, "--share 0.5") as holders:
        assert is_refused_now(pool, *SLICE, "--share", "0.6")
        assert not is_refused_now(pool, *SLICE, "--share", "0.5")
        check_waits(pool, holders, "--share", "0.6")


def test_tenants_without_a_share_have_an_even_one(pool_of):
    pool = pool_of(1)
    with tenants(pool, "", "", "", "") as holders:
        leases = json.loads(pool.berth("status", "--json").stdout)["leases"]
        assert [lease["devices"][0]["share"] for lease in leases] == [0.25] * 4
        check_waits(pool, holders)


# ---- By memory ----


def test_memory_that_is_reserved(pool_of):
    pool = pool_of(1)
    with tenants(pool, "--memory 40GiB", "--memory 40GiB") as holders:
        assert is_refused_now(pool, *SLICE, "--memory", "1")
        check_waits(pool, holders, "--memory", "40GiB")


def test_more_memory_than_there_is_can_never_be(pool_of):
    pool = pool_of(1)
    done = pool.berth("run", *SLICE, "--memory", "81GiB", "true")
    assert (done.code, done.stdout) == (120, "")
    assert "has less memory than requested, or an unknown amount" in done.stderr
    # Replicas that start together cannot have more memory than the device either.
    assert pool.berth("run", *SLICE, "--memory", "50GiB", "--replicas", "2", "true").code == 120
    assert not is_refused_now(pool, *SLICE, "--memory", "80GiB")


def test_both_have_to_fit(pool_of):
    pool = pool_of(1)
    with tenants(pool, "--share 0.5 --memory 20GiB"):
        assert is_refused_now(pool, *SLICE, "--share", "0.5", "--memory", "61GiB")
        assert is_refused_now(pool, *SLICE, "--share", "0.6", "--memory", "60GiB")
        assert not is_refused_now(pool, *SLICE, "--share", "0.5", "--memory", "60GiB")


# ---- By number ----


def test_the_configuration_says_how_many_there_may_be(pool_of, sandbox):
    rules = sandbox.home / ".config/berth/berth.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("time_slice_tenants: 2\n")
    pool = pool_of(1)
    with tenants(pool, "--share 0.1", "--share 0.1") as holders:
        with pool.start("run", *SLICE, "--share", "0.1", "true") as waiter:
            until_pending(pool, 1)
            assert whys(pool) == [
                "needs 1: 1 is at its tenant limit"
            ]
            pool.let_go(holders[1])
            assert waiter.wait() == 0


# ---- Modes ----


def test_exclusive_and_shared_never_meet(pool_of):
    pool = pool_of(1)
    with tenants(pool, "--share 0.1"):
        assert is_refused_now(pool)
    holder = pool.hold()
    assert is_refused_now(pool, *SLICE, "--share", "0.1")
    pool.let_go(holder)


def test_who_wants_a_device_alone_is_not_starved(pool_of):
    pool = pool_of(1)
    with tenants(pool, "--share 0.25") as holders:
        with pool.start("run", "echo", "alone") as waiter:
            until_pending(pool, 1)
            assert is_refused_now(pool, *SLICE, "--share", "0.25")
            pool.let_go(holders[0])
            assert waiter.wait() == 0


def test_users_of_time_slices_may_differ(shared_machine_of):
    shared_machine = shared_machine_of(1)
    shared_machine.open()
    holders = [shared_machine.hold(uid, *SLICE, "--share", "0.5") for uid in (1001, 1002)]
    assert [lease["uid"] for lease in shared_machine.look()["leases"]] == [1001, 1002]
    for holder in holders:
        shared_machine.let_go(holder)


@pytest.fixture
def mps(sandbox):
    return Mps(sandbox)


def check_waits_for(pool, words, *options):
    """Check that a run waits, and why."""
    with pool.start("run", *options, "true") as waiter:
        until_pending(pool, 1)
        (why,) = whys(pool)
        assert why.startswith("needs 1") and why.endswith(f": {words}")
        waiter.kill()
        waiter.wait()
    until_pending(pool, 0)


def test_modes_never_mix(pool_of, mps):
    pool = pool_of(1)
    holder = pool.hold("--sharing", "mps", "--share", "0.25")
    check_waits_for(pool, "1 is busy", *SLICE, "--share", "0.25")
    assert not is_refused_now(pool, "--sharing", "mps", "--share", "0.75")
    pool.let_go(holder)
    mps.until_gone()
    with tenants(pool, "--share 0.25"):
        check_waits_for(pool, "1 is busy", "--sharing", "mps", "--share", "0.25")
    assert not mps.controls()


def test_mps_in_two_places_is_not_shared(pool_of, mps, sandbox):
    pool = pool_of(1)
    place = sandbox.directory / "pipes"
    place.mkdir(mode=0o700)
    named = ["--sharing", "mps", "--share", "0.25", "--mps-pipe-dir", str(place)]
    holder = pool.hold(*named)
    check_waits_for(pool, "1 runs MPS in another directory", "--sharing", "mps", "--share", "0.25")
    check_waits_for(pool, "1 runs MPS in another directory", *named, "--replicas", "2")
    assert not is_refused_now(pool, *named)
    pool.let_go(holder)
    mps.until_gone()


def test_a_place_that_is_named_serves_one_device(pool_of, mps, sandbox):
    pool = pool_of(2)
    place = sandbox.directory / "pipes"
    place.mkdir(mode=0o700)
    named = ["--sharing", "mps", "--share", "0.25", "--mps-pipe-dir", str(place)]
    holder = pool.hold(*named, "--device", "nvidia0")
    done = pool.berth("run", *named, "--device", "nvidia1", "true")
    assert (done.code, done.stdout) == (125, "")
    assert str(place) in done.stderr and done.stderr.count("\n") == 1
    assert not is_refused_now(pool, *named, "--device", "nvidia0")
    pool.let_go(holder)
    mps.until_gone()


def test_memory_that_is_reserved_under_mps(pool_of, mps):
    pool = pool_of(1)
    holder = pool.hold("--sharing", "mps", "--memory", "60GiB")
    check_waits_for(
        pool, "1 has too little unreserved memory", "--sharing", "mps", "--memory", "21GiB"
    )
    assert not is_refused_now(pool, "--sharing", "mps", "--memory", "20GiB")
    pool.let_go(holder)
    mps.until_gone()


# ---- Slow starters ----


@pytest.fixture
def card(machine, sandbox):
    """A GPU of 80 GiB; card(20) sets its free memory to 20 GiB."""
    double = nvml_machine.Machine()
    address = machine.pci(0x40)
    double.gpu(name="NVIDIA A100", uuid="GPU-0", pci=(address, "0x1eb810de", "0x12a210de"), minor=0)
    script = sandbox.directory / "nvml"

    def say(free):
        double.gpus[0].say(memory=(80 * GIB, free * GIB, 0), utilization=(0, 0))
        double.write(script)

    say(80)
    sandbox.environment.update(double.environment(script))
    return say


def until_free(pool, gib):
    """Wait until the pool has seen this much free memory."""

    def seen():
        (device,) = json.loads(pool.berth("status", "--json").stdout)["devices"]
        return device["memory_free"] == gib * GIB

    until(seen, f"{gib} GiB free")


def test_a_slow_starter_keeps_what_it_reserved(card, machine_pool):
    """The device reports all memory as free, because nothing runs on it yet."""
    with tenants(machine_pool, "--memory 60GiB --share 0.1") as holders:
        until_free(machine_pool, 80)
        assert is_refused_now(machine_pool, *SLICE, "--share", "0.1", "--memory", "21GiB")
        assert is_refused_now(machine_pool, *SLICE, "--share", "0.1", "--min-free", "21GiB")
        with machine_pool.start("run", *SLICE, "--share", "0.1", "--min-free", "21GiB", "true") as waiter:
            until_pending(machine_pool, 1)
            assert whys(machine_pool) == [
                "needs 1: 1 has too little unreserved memory"
            ]
            machine_pool.let_go(holders[0])
            assert waiter.wait() == 0


def test_two_who_want_the_same_memory_free(card, machine_pool):
    """Neither claim reserves memory, but the second must not use memory that the first has not
    taken yet."""
    with tenants(machine_pool, "--min-free 60GiB"):
        assert is_refused_now(machine_pool, *SLICE, "--min-free", "60GiB")
        assert not is_refused_now(machine_pool, *SLICE, "--min-free", "20GiB")


def test_who_has_started_is_not_counted_twice(card, machine_pool):
    with tenants(machine_pool, "--memory 40GiB"):
        card(39)
        until_free(machine_pool, 39)
        assert not is_refused_now(machine_pool, *SLICE, "--memory", "40GiB")
        assert is_refused_now(machine_pool, *SLICE, "--min-free", "40GiB")


def test_memory_that_is_not_there_is_waited_for(card, machine_pool):
    """A process without a reservation uses most of the device's memory."""
    with tenants(machine_pool, "--share 0.1"):
        card(20)
        until_free(machine_pool, 20)
        with machine_pool.start("run", *SLICE, "--memory", "40GiB", "true") as waiter:
            until_pending(machine_pool, 1)
            card(40)
            until_free(machine_pool, 40)
            assert waiter.wait() == 0


# ---- Replicas, and within a lease ----


def test_replicas_share_a_device(pool_of):
    pool = pool_of(1)
    script = 'echo "$BERTH_REPLICA on $BERTH_DEVICES"'
    done = pool.berth("run", *SLICE, "--share", "0.5", "--memory", "40GiB", "--replicas", "2", "sh", "-c", script)
    assert (done.code, sorted(done.stdout.splitlines())) == (0, ["0 on nvidia0", "1 on nvidia0"])
    assert pool.berth("run", *SLICE, "--share", "0.5", "--replicas", "3", "true").code == 120


def test_a_share_of_a_share(pool_of):
    """Claims within a lease are limited by the lease, not by the device."""
    pool = pool_of(1)
    inner = "berth run --nonblock --sharing time-slice"
    codes = pool.berth(
        "run", *SLICE, "--share", "0.5", "--memory", "40GiB", "sh", "-c",
        f"{inner} --share 0.5 true; echo $?; {inner} --share 0.6 true; echo $?; "
        f"{inner} --share 0.1 --memory 41GiB true; echo $?; "
        f"{inner} --share 0.3 --memory 30GiB {inner} --share 0.3 --memory 30GiB true; echo $?; "
        f"{inner} --share 0.3 {inner} --memory 1GiB true; echo $?",
    ).stdout.split()
    assert codes == ["0", "120", "120", "0", "120"]


# ---- Texts ----


def test_status_says_who_has_how_much(pool_of):
    pool = pool_of(2)
    with tenants(pool, "--share 0.25 --memory 20GiB --name notebook", "--share 0.5 --name other"):
        lines = pool.berth("status").stdout.splitlines()
        assert lines[0] == "2 devices, 1 free, 1 with a share left, nobody waits"
        table = lines[3:]
        heading, first, second, third = table
        assert [line[: heading.index("MEMORY")].strip() for line in (first, second, third)] == [
            "nvidia0", "nvidia0", "nvidia1",
        ]
        share = slice(heading.index("SHARE"), heading.index("JOB"))
        assert [line[share].strip() for line in (first, second, third)] == ["0.25, 20 GiB", "0.5", ""]
        assert [line[heading.index("JOB") :] for line in (first, second)] == ["notebook", "other"]
        document = json.loads(pool.berth("status", "--json").stdout)
        assert [lease["devices"] for lease in document["leases"]] == [
            [{"id": "nvidia0", "share": 0.25, "memory": 20 * GIB}],
            [{"id": "nvidia0", "share": 0.5, "memory": None}],
        ]
        device = document["devices"][0]
        assert (device["state"], device["sharing"], device["leased"]) == ("shared", "time-slice", True)
        assert device["leases"] == [lease["id"] for lease in document["leases"]]


# The text of a plan about the policy for shares.
BY_FRAG = "frag takes the devices that leave the most for expected requests"


@pytest.mark.parametrize(
    "options, answer",
    [
        (
            "--share 0.25",
            f"now: nvidia0\nwhy: 1 of 1 device fits and has room; {BY_FRAG}: beside other leases; costs "
            "expected requests 0.238 devices\n",
        ),
        (
            "--share 0.5",
            "not now\nwhy: needs 1: 1 has too small a share left; nvidia0 is shared by {user} (lease {lease})\n",
        ),
        (
            "--share 0.1 --memory 61GiB",
            "not now\nwhy: needs 1: 1 has too little unreserved memory; nvidia0 is shared by {user} "
            "(lease {lease})\n",
        ),
        (
            "--share 0.1 --memory 81GiB",
            "never\nwhy: requested 1 device, shared by time-slice, share 0.1, 81 GiB reserved, but the only device "
            "here has less memory than requested, or an unknown amount\n",
        ),
    ],
)
def test_plan_says_what_is_left(pool_of, options, answer):
    pool = pool_of(1)
    with tenants(pool, "--share 0.7 --memory 20GiB") as holders:
        done = pool.berth("plan", *SLICE, *options.split())
        user = json.loads(pool.berth("status", "--json").stdout)["leases"][0]["user"]
        assert done.stdout == answer.format(user=user, lease=holders[0].lease)
        assert done.code == (120 if answer.startswith("never") else 0)


def test_plan_without_a_pool(pool_of):
    pool = pool_of(2)
    done = pool.berth("plan", *SLICE, "--share", "0.5")
    why = f"2 of 2 devices fit and have room; {BY_FRAG}: on a free device; costs expected requests 0.554 devices"
    assert done == (0, f"now: nvidia0\nwhy: {why}\n", "")
    assert not pool.daemons()


def test_many_at_once(pool_of):
    """Many runs start together. At any time, those that run fit on the device, and all of them get
    their turn."""
    pool = pool_of(2)
    runs = [pool.start("run", *SLICE, "--share", "0.3", "--memory", "30GiB", "true") for _ in range(12)]
    for run in runs:
        assert run.wait() == 0
    until(lambda: not look(pool)["leases"], "the end of all leases")
