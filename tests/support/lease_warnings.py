# SPDX-License-Identifier: Apache-2.0
"""Warnings that a client of the pool is told."""
import contextlib

import wire

SECOND = 10**9
TRIES = 3


class Over(Exception):
    """A lease has ended before it was warned of, or before that was of use: the machine was stalled then."""


def start(pool):
    """Has the pool's daemon started."""
    assert pool.berth("status").code == 0


def warning(client, number):
    """The next one about a claim that is not over."""
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
    """What an attempt with a lease of its own gives; one that came too late is made again, a few times."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(Over):
            return attempt()
    return attempt()


def nothing_more(client):
    """Whether no other one has come by the time that another question is answered."""
    client.hello()
    try:
        client.receive(kinds=("WARNING",), timeout=0)
    except TimeoutError:
        return True
    return False
