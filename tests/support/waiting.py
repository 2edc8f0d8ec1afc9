# SPDX-License-Identifier: Apache-2.0
"""Waits for conditions that can only be polled."""
import os
import socket
import time

import wire
from programs import TIMEOUT, Deadline


# Seconds between two polls. A condition that takes long is polled less often: polling takes the time of a core that
# other tests need.
PAUSE_MIN = 0.002
PAUSE_MAX = 0.03


def until(condition, what, timeout=TIMEOUT):
    """Polls until the condition returns a true value, and returns that value. `what` names the expected event in the
    message of a timeout; it is a text, or a function that returns one."""
    deadline = time.monotonic() + timeout
    pause = PAUSE_MIN
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise Deadline(f"{what() if callable(what) else what} did not come within {timeout} s")
        time.sleep(pause)
        pause = min(pause * 1.25, PAUSE_MAX)
    return answer


def until_served(path, kind=socket.SOCK_SEQPACKET):
    """Waits until a process accepts connections at a socket. Its file may exist a little earlier."""
    until(lambda: takes_connections(path, kind), f"a server at {path}")


def takes_connections(path, kind):
    with socket.socket(socket.AF_UNIX, kind) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def look(pool):
    with wire.connect(str(pool.socket)) as client:
        return client.look()


def pending(pool):
    """Returns how many claims are in the queue, or None while no daemon answers."""
    try:
        return look(pool).get("pending", 0)
    except (OSError, wire.Closed):
        return None


def until_pending(pool, count):
    """Waits until this many claims are in the queue."""
    until(lambda: pending(pool) == count, f"a queue of {count}")


def until_free(pool):
    """Waits until there is no lease. The devices of a lease are free a moment after the end of its command, so a test of
    which device the next command gets must wait for that."""
    until(lambda: not look(pool).get("leases"), "a pool without leases")


def until_removed(directory):
    """Removes a control group. The kernel refuses that until a moment after the last process's end."""

    def is_removed():
        try:
            os.rmdir(directory)
        except OSError:
            return False
        return True

    until(is_removed, f"an empty {directory}")
