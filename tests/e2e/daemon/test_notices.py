# SPDX-License-Identifier: Apache-2.0
"""Warnings to users: time limits that are near, idle leases, devices out of service."""
import os
import re
import signal

import pytest
import wire
from daemon_log import entries, wait_for
from lease_warnings import SECOND, Over, extend, in_time, nothing_more, start, warning
from waiting import until

# ---- Time limits ----


def test_a_warning_before_the_time_limit(pool_of, site):
    pool = pool_of(1)
    site.configure("notify", time_warning="1s")
    start(pool)

    def attempt():
        with wire.connect(pool.socket) as client:
            number = client.send_claim({"time": 5 * SECOND, "name": "long"})
            grant = client.granted(number)
            assert nothing_more(client)
            told = warning(client, number)
            assert (told["id"], told["end"]) == (grant["id"], wire.ENDS["EXPIRED"])
            assert 0 < told["duration"] <= SECOND
            site.until("end", "ending")
            return grant

    grant = in_time(attempt)
    assert site.lines("begin")[0][1:4] == ["ending", "nvidia0", str(grant["id"])]
    told = site.environment("ending")
    message = rf"lease {grant['id']} \(long\) of uid {os.getuid()} on nvidia0 ends in [01]s by its time limit"
    assert re.fullmatch(message, told["BERTH_MESSAGE"])
    assert told["BERTH_UID"] == str(os.getuid()) and told["BERTH_NAME"] == "long"


def test_short_leases_are_warned_later(pool_of, site):
    pool = pool_of(1)
    site.configure(time_warning="1h")
    start(pool)

    def left_of(time, more_than):
        with wire.connect(pool.socket) as client:
            number = client.send_claim({"time": time * SECOND})
            client.granted(number)
            left = warning(client, number)["duration"] / SECOND
        if left <= more_than:
            raise Over
        return left

    # A quarter would be half a second.
    assert in_time(lambda: left_of(2, more_than=0.5)) <= 1
    assert in_time(lambda: left_of(5, more_than=1)) <= 1.25


@pytest.mark.parametrize("rules", [{"time_warning": "0s"}, {}])
def test_leases_that_are_not_warned(pool_of, site, rules):
    pool = pool_of(2)
    site.configure(grace="1s", **rules)
    start(pool)
    with wire.connect(pool.socket) as client:
        forever = client.send_claim()
        client.granted(forever)
        number = client.send_claim({"time": SECOND if rules == {} else 2 * SECOND})
        client.granted(number)
        client.receive(number, ("NOTICE",))
        assert nothing_more(client)


def test_an_extension_is_warned_of_anew(pool_of, site):
    pool = pool_of(1)
    site.configure("notify", time_warning="1h")
    start(pool)

    def attempt():
        with wire.connect(pool.socket) as client:
            number = client.send_claim({"time": 2 * SECOND})
            grant = client.granted(number)
            warning(client, number)
            extend(client, grant["id"], 2 * SECOND)
            told = warning(client, number)
            assert told["duration"] <= SECOND
            extend(client, grant["id"], 3600 * SECOND)
            assert nothing_more(client)
            client.release(grant["id"])
            return grant

    about = ("ending", "nvidia0", str(in_time(attempt)["id"]))
    site.until("end", *about, count=2)
    assert len(site.lines("begin", *about)) == 2


def test_a_restored_lease_is_warned_of(pool_of, site):
    pool = pool_of(2)
    site.configure("notify", time_warning="1h")
    start(pool)
    token = 5 << 64 | 5
    with wire.connect(pool.socket) as client:
        client.claim({"time": 8 * SECOND}, token=token)
        reserved = client.claim({"time": 8 * SECOND}, hold=wire.HOLDS["NOTHING"])
        pool.end_daemon(signal.SIGKILL)
    start(pool)
    with wire.connect(pool.socket) as client:
        number = client.send_claim({"time": 8 * SECOND}, token=token)
        client.granted(number)
        assert warning(client, number)["duration"] <= 2 * SECOND
    assert site.until("begin", "ending", None, str(reserved["id"]))
    until(lambda: len(site.lines("end")) == len(site.lines("begin")), "the end of the programs")


# ---- The program ----


def test_devices_out_of_service(pool_of, site):
    pool = pool_of(1)
    site.configure("epilog", "notify")
    site.does("epilog", "echo broken; exit 1\n")
    assert pool.berth("run", "true").code == 0
    site.until("end", "drained", "nvidia0", "none")
    told = {name: value for name, value in site.environment("drained").items() if name.startswith("BERTH_")}
    assert told == {
        "BERTH_EVENT": "drained",
        "BERTH_DEVICES": "nvidia0",
        "BERTH_MESSAGE": "nvidia0 was taken out of service: epilog: exit code 1: broken",
    }
    # Users get no notice of their own actions.
    with wire.connect(pool.socket) as client:
        client.ask("UNDRAIN", "DONE", device_ids=["nvidia0"])
        client.ask("DRAIN", "DONE", device_ids=["nvidia0"], text="by hand")
    assert len(site.lines("begin", "drained")) == 1


def test_a_program_that_fails_is_logged(pool_of, site):
    pool = pool_of(1)
    site.configure("epilog", "notify")
    site.does("epilog", "exit 1\n")
    site.does("drained", "echo no mail today; exit 4\n")
    assert pool.berth("run", "true").code == 0
    [entry] = wait_for(pool.directory / "log", "notify")
    assert entry.values == {"event": "drained", "result": "exit code 4: no mail today"}


def test_a_storm_is_bounded(pool_of, site):
    """Notices beyond the limit are dropped, with one message about it. Prologs and epilogs do not
    wait behind notices."""
    pool = pool_of(120)
    site.configure("epilog", "notify")
    site.does("epilog", "exit 1\n")
    site.hold("drained")
    assert pool.berth("run", "-n", "110", "true").code == 0
    wait_for(pool.directory / "log", "notify", result="dropped: 100 programs already run or wait")
    until(lambda: len(site.lines("end", "epilog")) == 0 and len(site.lines("begin", "epilog")) == 110, "all epilogs")
    assert len(site.lines("begin", "drained")) <= 4
    site.does("epilog", None)
    assert pool.berth("run", "--device", "nvidia115", "true").code == 0
    site.until("end", "epilog", "nvidia115")
    site.let_go("drained")
    site.until("end", "drained", count=100)
    dropped = [e for e in entries(pool.directory / "log") if e.word == "notify" and "dropped" in e.values["result"]]
    assert len(dropped) == 1
