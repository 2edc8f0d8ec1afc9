# SPDX-License-Identifier: Apache-2.0
"""Warnings that the daemon sends to a client before a lease ends."""
import contextlib

import wire

SECOND = 10**9
TRIES = 3


class Over(Exception):
    """The lease ended before its warning arrived or could be used, because the machine was stalled."""


def start(pool):
    """Starts the pool's daemon."""
    assert pool.berth("status").code == 0


def warning(client, number):
    """Returns the next warning about this claim. Raises Over if its lease ends first."""
    told = client.receive(number, ("WARNING", "NOTICE"))
    if told["type"] == "NOTICE":
        raise Over
    return told


def extend(client, lease, duration):
    try:
        client.extend(lease, duration)
    except wire.Refused as refused:
        raise Over from refused


def in_time(attempt):
    """Calls `attempt`, which claims its own lease, and returns its value. Repeats it a few times if it is too late."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(Over):
            return attempt()
    return attempt()


def nothing_more(client):
    """Returns whether the daemon sends no warning before its answer to a HELLO."""
    client.hello()
    try:
        client.receive(kinds=("WARNING",), timeout=0)
    except TimeoutError:
        return True
    return False
