# SPDX-License-Identifier: Apache-2.0
"""The date is set back and forth, and the machine is suspended: leases keep their time limits, and times in status and
history stay possible."""
import json
import os
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest
import wire
from daemons import start_daemon
from lease_history import history
from waiting import until

SECOND = 10**9
HOUR = 3600 * SECOND
YEARS = 20 * 365 * 24 * HOUR


class Clocks:
    """The clocks of all programs that start with `env`."""

    def __init__(self, sandbox):
        library = Path(os.environ["BERTH_BUILD_ROOT"], "tests/libclock-double.so")
        berthd = shutil.which("berthd", path=sandbox.environment["PATH"])
        if "libasan" in subprocess.run(["ldd", berthd], capture_output=True, text=True).stdout:
            pytest.skip("no library can be loaded before a sanitizer's")
        self.file = sandbox.directory / "clock"
        self.file.write_bytes(bytes(16))
        self.env = {"LD_PRELOAD": library, "CLOCK_DOUBLE": self.file}

    def set(self, date=0, since_boot=0):
        with open(self.file, "r+b") as file:
            file.write(struct.pack("<qq", date, since_boot))


@pytest.fixture
def clocks(sandbox):
    return Clocks(sandbox)


@pytest.fixture
def pool(pool_of, clocks):
    made = pool_of(4)
    rules = made.sandbox.home / ".config/berth/berth.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("grace: 200ms\n")
    made.sandbox.environment.update({name: str(value) for name, value in clocks.env.items()})
    made.daemon = start_daemon(made)
    return made


def leases(client):
    return {lease["id"]: lease for lease in client.look()["leases"]}


JUMPS = pytest.mark.parametrize("date", [HOUR, -HOUR, YEARS, -YEARS], ids=["hour", "-hour", "years", "-years"])


@JUMPS
def test_date_that_jumps(pool, clocks, date):
    """A time limit is a duration, which a new date does not change."""
    with wire.connect(str(pool.socket)) as client:
        lease = client.claim({"time": HOUR // 2})["id"]
        soon = client.claim({"time": SECOND // 2})["id"]
        clocks.set(date)
        client.release(client.claim()["id"])
        clocks.set(-date)
        client.release(client.claim()["id"])
        assert client.watch(soon)["end"] == wire.ENDS["EXPIRED"]
        assert list(leases(client)) == [lease]
        assert client.hello()["pid"] == pool.daemon.pid
        assert pool.berth("status").code == 0


@JUMPS
def test_history_of_a_date_that_jumps(pool, clocks, date):
    holder = pool.hold("--name", "across")
    clocks.set(date)
    pool.let_go(holder)
    clocks.set(0)
    assert pool.berth("run", "--name", "after", "true").code == 0

    def ended():
        found = {lease["name"]: lease for lease in history(pool)}
        return found if len(found) == 2 and all(lease["end"] for lease in found.values()) else None

    found = until(ended, "two leases")
    for lease in found.values():
        assert 0 <= lease["held_s"] < 60 and 0 <= lease["waited_s"] < 60


def test_suspend(pool, clocks):
    """After a suspend of two hours, the leases whose time has passed end, and the claims give up that wait no longer."""
    with wire.connect(str(pool.socket)) as client:
        short = client.claim({"time": HOUR, "wanted": ["nvidia0"]})["id"]
        long = client.claim({"time": 3 * HOUR, "wanted": ["nvidia1"]})["id"]
        waiting = client.send_claim({"wanted": ["nvidia1"], "wait": HOUR})
        client.receive(waiting, kinds=("WAITING",))
        clocks.set(2 * HOUR, 2 * HOUR)
        until(lambda: list(leases(client)) == [long], "the end of one lease")
        assert client.watch(short)["end"] == wire.ENDS["EXPIRED"]
        with pytest.raises(wire.Refused):
            client.granted(waiting)


@JUMPS
def test_restart_after_a_jump(pool, clocks, date):
    """Another daemon restores the leases with the time that they have left."""
    holder = pool.hold("--time", "1h")
    clocks.set(date)
    pool.daemon.kill(signal.SIGKILL)
    pool.daemon.wait()
    start_daemon(pool)
    with wire.connect(str(pool.socket)) as client:
        assert list(leases(client)) == [int(holder.lease)]
    [lease] = json.loads(pool.berth("status", "--json").stdout)["leases"]
    assert lease["expires_at"] is not None
    pool.let_go(holder)
