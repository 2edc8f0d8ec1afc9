# SPDX-License-Identifier: Apache-2.0
"""Waiting for what nobody tells us of."""
import os
import socket
import time

import wire
from programs import TIMEOUT, Deadline


def until(condition, what, timeout=TIMEOUT):
    """Waits for a true answer, and returns it. `what` is a text, or gives one when it is needed."""
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise Deadline(f"{what() if callable(what) else what} did not come within {timeout} s")
        time.sleep(0.002)
    return answer


def until_served(path, kind=socket.SOCK_SEQPACKET):
    """Waits until somebody takes connections at a socket, which may be there a little earlier."""
    until(lambda: takes_connections(path, kind), f"somebody at {path}")


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
    """How many claims wait; None while no daemon answers."""
    try:
        return look(pool).get("pending", 0)
    except (OSError, wire.Closed):
        return None


def until_pending(pool, count):
    """Waits until so many claims wait."""
    until(lambda: pending(pool) == count, f"a queue of {count}")


def until_removed(directory):
    """Removes a control group, which the last of its processes leaves a moment after its end."""

    def is_removed():
        try:
            os.rmdir(directory)
        except OSError:
            return False
        return True

    until(is_removed, f"an empty {directory}")
