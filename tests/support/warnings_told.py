# SPDX-License-Identifier: Apache-2.0
"""Warnings that a client of the pool is told."""

SECOND = 10**9


def start(pool):
    """Has the pool's daemon started."""
    assert pool.berth("status").code == 0


def warning(client, number):
    """The next one about a claim."""
    return client.receive(number, ("WARNING",))


def nothing_more(client):
    """Whether no other one has come by the time that another question is answered."""
    client.hello()
    try:
        client.receive(kinds=("WARNING",), timeout=0)
    except TimeoutError:
        return True
    return False
