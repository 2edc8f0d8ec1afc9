# SPDX-License-Identifier: Apache-2.0
"""Idle leases: they are marked, reported and reclaimed, but never while their use is unknown."""
import os
import signal
import subprocess
import sys

import pytest
import wire
from daemon_log import wait_for
from hardware_pool import SICK, start_seeing
from lease_warnings import SECOND, nothing_more, start, warning
from waiting import look, until


def lease_of(pool, id):
    return next((lease for lease in look(pool)["leases"] if lease["id"] == id), None)


def until_lease(pool, id, condition, what):
    return until(lambda: (lease := lease_of(pool, id)) and condition(lease) and lease, what)


def test_a_lease_that_is_not_used_is_marked_and_taken_back(hardware_of, site):
    pool = hardware_of([0])
    site.configure("notify", idle_warning="1s", idle_reclaim="1h", grace="1s")
    start(pool)
    with wire.connect(pool.socket) as client:
        number = client.send_claim({"name": "lazy"})
        grant = client.granted(number)
        assert grant["stay"]
        until_lease(pool, grant["id"], lambda lease: lease.get("idle"), "an idle lease")
        until_lease(pool, grant["id"], lambda lease: lease.get("idle_warned"), "a mark")
        told = warning(client, number)
        assert (told["id"], told["end"]) == (grant["id"], wire.ENDS["IDLE"])
        assert 3500 * SECOND < told["duration"] <= 3599 * SECOND
        site.until("end", "idle", "nvidia0", str(grant["id"]))
        message = site.environment("idle")["BERTH_MESSAGE"]
        assert f"lease {grant['id']} (lazy) of uid {os.getuid()} on nvidia0 has not been used for " in message
        assert "; it is reclaimed in " in message
        site.configure("notify", idle_warning="1s", idle_reclaim="2s", grace="1s")
        os.kill(pool.daemons()[0], signal.SIGHUP)
        until(lambda: look(pool) and site.lines("end", "reclaimed"), "its end")
        assert client.receive(number, ("NOTICE",))["end"] == wire.ENDS["IDLE"]
        assert client.watch(grant["id"])["end"] == wire.ENDS["IDLE"]
    assert len(site.lines("begin", "idle")) == 1
    wait_for(pool.log, "ending", id=str(grant["id"]), reason="it was held but not used")


def test_use_takes_the_mark_away(hardware_of, site):
    pool = hardware_of([0, 1])
    site.configure("notify", idle_warning="1s")
    start(pool)
    with wire.connect(pool.socket) as client:
        number = client.send_claim({"gpus_min": 2, "gpus_max": 2})
        grant = client.granted(number)
        until_lease(pool, grant["id"], lambda lease: lease.get("idle_warned"), "a mark")
        assert warning(client, number).get("duration", 0) == 0
        pool.says([0, pool.device(1, utilization=10)])
        used = until_lease(pool, grant["id"], lambda lease: "idle" not in lease, "use")
        assert not used.get("idle_warned")
        pool.says([0, 1])
        until_lease(pool, grant["id"], lambda lease: lease.get("idle"), "idleness")
        lease = until_lease(pool, grant["id"], lambda lease: lease.get("idle_warned"), "another mark")
        assert lease["idle"] < 10 * SECOND
        warning(client, number)
    site.until("end", "idle", count=2)


def test_without_rules_it_is_only_shown(hardware_of, site):
    pool = hardware_of([0])
    site.configure("notify")
    start(pool)
    with wire.connect(pool.socket) as client:
        number = client.send_claim()
        grant = client.granted(number)
        assert not grant.get("stay")
        until_lease(pool, grant["id"], lambda lease: lease.get("idle", 0) > SECOND, "an idle lease")
        assert nothing_more(client)
    assert not site.lines()


@pytest.mark.parametrize(
    "facts, idle",
    [
        ({"utilization": None, "processes": []}, True),
        ({"utilization": None, "asleep": True}, True),
        ({"utilization": 0, "processes": "its own"}, True),
        ({"utilization": None, "processes": "its own"}, False),
        ({"utilization": None, "processes": "another"}, False),
        ({"utilization": 1}, False),
        ({"utilization": 0, "health": SICK}, False),
    ],
)
def test_what_counts_as_use(hardware_of, site, facts, idle):
    pool = hardware_of([0])
    site.configure(idle_warning="1s")
    start(pool)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        pids = {"its own": os.getpid(), "another": other.pid}
        facts = {name: value for name, value in facts.items() if value is not None}
        if isinstance(facts.get("processes"), str):
            facts["processes"] = [{"pid": pids[facts["processes"]]}]
        device = pool.device(0)
        del device["utilization"]
        with wire.connect(pool.socket) as client:
            grant = client.claim()
            pool.says([{**device, **facts}, 1])
            pool.until(lambda slots: "nvidia1" in slots, "the new report")
            if idle:
                lease = until_lease(pool, grant["id"], lambda lease: lease.get("idle_warned"), "a mark")
            else:
                asked = pool.requests()
                until(lambda: pool.look() and pool.requests() >= asked + 2, "two more looks")
                lease = lease_of(pool, grant["id"])
            assert ("idle" in lease, "idle_warned" in lease) == (idle, idle)
        other.stdin.close()


def test_what_cannot_be_known_is_not_held_against_anybody(hardware_of, site):
    """The time during which the probe does not answer does not count as idle."""
    pool = hardware_of([0])
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "300ms"
    site.configure(idle_warning="1s", idle_reclaim="1h")
    start_seeing(pool, "nvidia0")
    with wire.connect(pool.socket) as client:
        grant = client.claim()
        until_lease(pool, grant["id"], lambda lease: lease.get("idle_warned"), "a mark")
        pool.says([0], behaviour="hang")
        until_lease(pool, grant["id"], lambda lease: "idle" not in lease, "an unknown use")
        pool.says([0])
        until_lease(pool, grant["id"], lambda lease: lease.get("idle_warned"), "a mark")


def test_a_restart_forgives(hardware_of, site):
    """The daemon does not know the use before its start, so that time does not count as idle."""
    pool = hardware_of([0])
    site.configure(idle_reclaim="1h")
    start(pool)
    token = 3 << 64 | 3
    with wire.connect(pool.socket) as client:
        grant = client.claim(token=token)
        until_lease(pool, grant["id"], lambda lease: lease.get("idle", 0) > 3 * SECOND, "an idle lease")
        pool.end_daemon(signal.SIGKILL)
    start(pool)
    with wire.connect(pool.socket) as client:
        client.claim(token=token)
        lease = until_lease(pool, grant["id"], lambda lease: lease.get("idle"), "an idle lease")
        assert lease["idle"] < 3 * SECOND


def test_inner_leases_are_not_judged(hardware_of, site):
    pool = hardware_of([0])
    site.configure(idle_reclaim="1s", grace="1s")
    start(pool)
    with wire.connect(pool.socket) as client:
        number = client.send_claim()
        outer = client.granted(number)
        inner = client.claim(parent=outer["id"])
        assert not inner.get("stay")
        until(lambda: look(pool) and not lease_of(pool, outer["id"]), "the end of the outer lease")
        assert [entry.id for entry in wait_for(pool.log, "ending")] == [outer["id"]]


def test_a_reservation_is_taken_back(hardware_of, site):
    pool = hardware_of([0])
    site.configure("notify", idle_reclaim="1s")
    done = pool.berth("reserve", "--for", "1h")
    assert done.code == 0
    until(lambda: look(pool) and site.lines("end", "reclaimed"), "its end")
    until(lambda: not look(pool)["leases"], "its devices")


def test_a_command_is_ended(hardware_of, site):
    pool = hardware_of([0])
    site.configure(idle_reclaim="1s", grace="1s")
    with pool.start("run", "--", "sh", "-c", "echo started; exec sleep 1000") as holder:
        holder.wait_for_line("started")
        until(lambda: look(pool) and not look(pool)["leases"], "its end")
        assert holder.wait() != 0
