# SPDX-License-Identifier: Apache-2.0
"""Two hostile users send valid and broken messages to a live daemon, while an honest user is served.

SOAK_SECONDS sets the duration, BERTH_FUZZ_SEED the seed, which is printed. `make soak` runs it for 10 minutes against a
daemon with sanitizers.
"""
import contextlib
import json
import os
import random
import select
import sys
import time

import pytest
import wire
import wire_fuzzer
from other_users import OtherUser
from process_size import descriptors, resident
from waiting import until

SECONDS = float(os.environ.get("SOAK_SECONDS", "10"))
SANITIZED = os.environ.get("BERTH_SANITIZERS", "none") != "none"
SEED = int(os.environ.get("BERTH_FUZZ_SEED") or random.randrange(1 << 32))
MALLORY, TRUDY, ALICE = 61201, 61202, 61203
# The two can never hold all devices, so that only the daemon could delay the honest user.
DEVICES, EACH = 6, 2
# The usual bound on messages would keep the daemon from reading most of them.
RULES = f"limits: {{each_user: {EACH}}}\nhistory: no\ngrace: 1s\nbounds: {{messages: 100000}}\n"
# Seconds that a claim and its release take at most: 99 of 100, and all. Three tests run on each core.
MOST, LONGEST = 2.0, 10.0
GROWTH_MOST = 64 << 10  # KiB

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")


def work(path, end):
    """Claims and releases a device until the end. Returns how long each took."""
    times = []
    with wire.connect(path, LONGEST) as pool:
        while not select.select([end], [], [], 0)[0]:
            begun = time.monotonic()
            pool.release(pool.claim({"gpus_min": 1, "gpus_max": 1})["id"])
            times.append(time.monotonic() - begun)
            time.sleep(0.01)
    return times


def describe(machine):
    """Returns what the pool does instead of serving the honest user."""
    with wire.connect(machine.socket) as root:
        seen = root.look()
    slots = {slot["device"]["id"]: slot.get("blocks", 0) for slot in seen["slots"]}
    log = machine.log.read_text().splitlines()[-20:]
    return "\n".join(map(str, ("the honest user has stopped", slots, *seen["leases"], *seen["claims"][:20], *log)))


def fuzz(machine, seconds):
    """Lets the users work for this time. Returns the fuzzers' counts, and the honest user's times."""
    read, write = os.pipe()
    users = [OtherUser(uid, wire_fuzzer.run, machine.socket, f"{SEED}-{uid}", read) for uid in (MALLORY, TRUDY)]
    users.append(OtherUser(ALICE, work, machine.socket, read))
    try:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            assert users[-1].runs(min(left, 1)), describe(machine)
            assert machine.daemon.process.poll() is None, "the daemon has ended"
        os.write(write, b"x")  # nobody reads it, so that all see it
        results = [users.pop(0).result() for _ in range(3)]
    finally:
        for user in users:
            with contextlib.suppress(OSError):
                user.kill()
        os.close(read)
        os.close(write)
    *counts, times = results
    return counts, sorted(times)


def stop_leases(machine):
    """Stops what the hostile users' processes and connections no longer hold."""
    with wire.connect(machine.socket) as root:
        for lease in root.look()["leases"]:
            with contextlib.suppress(wire.Refused):
                root.stop(lease["id"])


def is_idle(machine):
    seen = machine.look()
    return not seen["leases"] and not seen["claims"]


def tell(capsys, numbers):
    with capsys.disabled():
        print("\n" + json.dumps(numbers), file=sys.stderr, flush=True)


def test_the_wire(shared_machine_of, capsys):
    tell(capsys, {"seed": SEED, "seconds": SECONDS})
    machine = shared_machine_of(DEVICES)
    machine.open(RULES)
    pid = machine.daemon.pid
    fuzz(machine, min(1, SECONDS / 10))
    before = descriptors(pid), resident(pid)
    counts, times = fuzz(machine, SECONDS)
    p99 = times[len(times) * 99 // 100]
    numbers = {"fuzzers": counts, "honest": len(times), "p50": times[len(times) // 2], "p99": p99, "max": times[-1]}
    numbers["KiB"] = [before[1], resident(pid)]
    tell(capsys, numbers)

    # The daemon has read valid messages of all kinds, and the honest user was served all the while.
    answers = set(counts[0]["answers"]) & set(counts[1]["answers"])
    assert {"POOL", "GRANTED", "WAITING", "REFUSED", "DONE", "PAGE", "ENDED", "CLOSING", "NEWS"} <= answers
    assert (p99 < MOST, times[-1] < LONGEST) == (True, True)
    assert machine.serves()["pid"] == pid
    stop_leases(machine)
    until(lambda: is_idle(machine), "the end of all leases and claims")
    assert not any(slot.get("state") or slot.get("blocks") for slot in machine.slots().values())
    until(lambda: descriptors(pid) <= before[0], "the earlier number of descriptors")
    if not SANITIZED:
        assert resident(pid) < before[1] + GROWTH_MOST
    # The journal can be read.
    assert machine.close() == 0
    machine.open(RULES)
    assert is_idle(machine)
    assert " end=" not in "".join(line for line in machine.log.read_text().splitlines() if " journal " in line)
