# SPDX-License-Identifier: Apache-2.0
"""One user of the machine's daemon beside another user's processes, floods and faults."""
import contextlib
import functools
import signal
import statistics
import subprocess
import time

import crowds
from harness import ROUNDS, Row
from peers import compiled

# Leases that are ended in a round beside each number of processes, and how long they have been held before.
ENDS = {0: 40, 300: 40, 3000: 40, 30000: 10}
HELD_SECONDS = 5
STUCK_ENDS = 10
QUIET = contextlib.nullcontext


def percentile(times, percent):
    return statistics.quantiles(times, n=100, method="inclusive")[percent - 1]


# ---- From the end of one holder to the start of the next ----


class Next:
    """A command that waits for one device."""

    def __init__(self, pool, device, stamp):
        self.process = subprocess.Popen(
            [pool.berth, "run", "--verbose", "--device", device, stamp],
            env=pool.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def until_queued(self):
        line = self.process.stderr.readline()
        if "waiting" not in line:
            raise RuntimeError(f"expected a claim that waits, got: {line}")

    def close(self):
        self.process.kill()
        self.process.communicate()


@functools.lru_cache(maxsize=None)
def hand_overs(build, crowd):
    """End leases one by one that were held for a while. Return the milliseconds until the next start, by rounds."""
    from holders import Holders  # a helper of the tests

    crowds.servers.require_berth(build)
    stamp = compiled(build, "stamp.c")
    ends = ENDS[crowd]
    names = [f"nvidia{index}" for index in range(ends * ROUNDS)]
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(crowds.machine(build, len(names)))
        holders = stack.enter_context(Holders(pool.socket, crowds.ALICE, names))
        stack.enter_context(crowds.idle_processes(build, crowd) if crowd else QUIET())
        following = {}
        for name in names:
            following[name] = Next(pool, name, stamp)
            stack.callback(following[name].close)
        for one in following.values():
            one.until_queued()
        time.sleep(max(0, HELD_SECONDS - holders.age()))
        times = []
        for name in names:
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            holders.kill(name)
            times.append((int(following[name].process.stdout.readline()) - before) / 1e6)
            following[name].close()
    return [times[first : first + ends] for first in range(0, len(times), ends)]


def hand_over(crowd, percent):
    return lambda build: ([percentile(times, percent) for times in hand_overs(build, crowd)], None)


# ---- Ends of leases beside processes that are stuck in the kernel ----


def time_of_grants(holders, client, names):
    """Kill the holder of each device while another user waits for it. Return the milliseconds until the grants."""
    numbers = [(name, client.send_claim({"wanted": [name]})) for name in names]
    for _, number in numbers:
        client.receive(number, kinds=("WAITING",))
    times = []
    for name, number in numbers:
        before = time.perf_counter()
        holders.kill(name)
        try:
            client.granted(number, timeout=crowds.TIMEOUT_MS / 1000)
        except TimeoutError:
            return [*times, crowds.TIMEOUT_MS]
        times.append((time.perf_counter() - before) * 1000)
    return times


def ends_beside_stuck_processes(build):
    """Measure the slowest end of each round. The stuck processes exist only while a round lasts."""
    from holders import Holders

    names = [f"nvidia{index}" for index in range(STUCK_ENDS * ROUNDS)]
    values = []
    with crowds.machine(build, len(names)) as pool, Holders(pool.socket, crowds.ALICE, names) as holders:
        time.sleep(max(0, HELD_SECONDS - holders.age()))
        for first in range(0, len(names), STUCK_ENDS):
            with crowds.wire.connect(pool.socket) as client, crowds.stuck_processes(build):
                values.append(max(time_of_grants(holders, client, names[first : first + STUCK_ENDS])))
            crowds.servers.wait_until(lambda: crowds.serves(pool.socket), "berthd")
    return values, None


# ---- Claims beside floods and faults ----


def beside(trouble, each_round=False, **options):
    """Measure the 99th percentile of claim + release of one user in each round. `trouble(pool, build)` is a context for
    all rounds, or for each."""

    def measure(build):
        with crowds.machine(build, **options) as pool:
            crowds.claims_of_another_user(pool)
            values = []
            with QUIET() if each_round else trouble(pool, build):
                for _ in range(ROUNDS):
                    with trouble(pool, build) if each_round else QUIET():
                        times = crowds.claims_of_another_user(pool)
                    values.append(max(times) if crowds.TIMEOUT_MS in times else percentile(times, 99))
                    crowds.servers.wait_until(lambda: crowds.serves(pool.socket), "berthd")
        return values, None

    return measure


def flood(function, count=1):
    return beside(lambda pool, build: crowds.flood(function, pool, count))


def nothing(pool, build):
    del pool, build
    return QUIET()


def row(name, goal, measure):
    return Row(name, "hostile", "ms", goal, "lower", measure, goal_is_ratio=False)


ROWS = [
    *(
        row(f"SIGKILL to the next start, held 5 s, {crowd or 'no'} others, p{percent}", goal, hand_over(crowd, percent))
        for crowd in ENDS
        for percent, goal in ((50, 2.0), (99, 5.0))
    ),
    row("end of a lease beside 100 processes stuck in execve", 20.0, ends_beside_stuck_processes),
    row("claim + release, p99: no flood", 10.0, beside(nothing)),
    row("the same: connections that come and go", 10.0, flood(crowds.connect_often, 2)),
    row("the same: 900 busy connections", 10.0, flood(crowds.keep_connections)),
    row("the same: slow readers", 10.0, flood(crowds.read_slowly)),
    row("the same: churn of claims", 10.0, flood(crowds.churn, 2)),
    row("the same: a storm of forks", 10.0, flood(crowds.fork_often, 2)),
    row("the same: 100 processes stuck in execve", 10.0, beside(lambda _, build: crowds.stuck_processes(build), True)),
    row("the same: the recorder is stopped", 10.0, beside(lambda pool, _: crowds.stopped(pool, "berth-recorder"), rules="")),
    row("the same: the probe is stopped", 10.0, beside(lambda pool, _: crowds.stopped(pool, "berth-probe"), hardware=True)),
]
