# SPDX-License-Identifier: Apache-2.0
"""Two thousand commands at once."""
import subprocess

import daemon_log
import wire
from lease_history import the_recorder
from process_size import descriptors, resident
from waiting import until, until_pending

COMMANDS = 2000
# Slower builds with sanitizers get as long as Meson gives them.
LONGEST = 100.0


def start_all(sandbox, count, args):
    """Start `count` programs as fast as possible; all of them write to one file."""
    errors = sandbox.directory / "errors"
    with open(errors, "ab") as stream:
        started = [
            subprocess.Popen(
                args, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=sandbox.environment, close_fds=False
            )
            for _ in range(count)
        ]
    return started, errors


def check_order(pool, count):
    """Check that grants follow the order of claims: all requests are the same, and ids are
    numbered in the order of arrival."""
    log = pool.directory / "log"
    granted = daemon_log.wait_for(log, "granted", count)
    order = [entry.id for entry in granted]
    assert len(order) == count
    assert order == sorted(order)
    queued = [entry.id for entry in daemon_log.entries(log) if entry.word == "queued"]
    assert queued == sorted(queued)
    return queued


def test_two_thousand_at_once(pool_of):
    pool = pool_of(8)
    gate = pool.hold("-n8")  # keeps all of them waiting at the same time
    [daemon] = pool.daemons()
    the_recorder(pool)
    before = descriptors(daemon)
    started, errors = start_all(pool.sandbox, COMMANDS, ["berth", "run", "true"])
    until_pending(pool, COMMANDS)
    assert descriptors(daemon) >= COMMANDS or before == 0
    pool.let_go(gate)
    codes = [process.wait(LONGEST) for process in started]
    assert codes == [0] * COMMANDS, errors.read_text()[-2000:]
    assert errors.read_text() == ""
    assert check_order(pool, COMMANDS + 1) == list(range(2, COMMANDS + 2))
    assert pool.daemons() == [daemon]
    until(lambda: descriptors(daemon) <= before, "the earlier number of descriptors")


def test_memory_does_not_grow(pool_of):
    """The same load runs many times: the later rounds use no more memory than the earlier ones, in which the ended
    leases are collected that the daemon keeps for a while."""
    pool = pool_of(8)
    assert pool.berth("run", "true").code == 0
    [daemon] = pool.daemons()
    sizes = []
    for _ in range(20):
        with wire.connect(str(pool.socket), timeout=LONGEST) as client:
            for _ in range(5):
                numbers = [client.send_claim() for _ in range(100)]
                for number in numbers:
                    client.release(client.granted(number)["id"])
            sizes.append(resident(daemon))
    before = descriptors(daemon)
    assert max(sizes[10:]) <= max(sizes[:10]) + 512, f"KiB: {sizes}"
    assert sizes[-1] < 64 * 1024
    assert before < 64
