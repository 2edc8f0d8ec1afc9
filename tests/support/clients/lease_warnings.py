# SPDX-License-Identifier: Apache-2.0
"""Warnings that a client of the pool gets."""
import contextlib

import wire

SECOND = 10**9
TRIES = 3


class Over(Exception):
    """The lease ended before its warning came or could be used, because the machine was stalled."""


def start(pool):
    """Starts the pool's daemon."""
    assert pool.berth("status").code == 0


def warning(client, number):
    """Returns the next warning about a claim whose lease has not ended."""
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
    """Returns the value of an attempt that has its own lease. One that was too late is repeated a few times."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(Over):
            return attempt()
    return attempt()


def nothing_more(client):
    """Returns whether no other warning comes before the answer to another request."""
    client.hello()
    try:
        client.receive(kinds=("WARNING",), timeout=0)
    except TimeoutError:
        return True
    return False
