# SPDX-License-Identifier: Apache-2.0
"""Claims of tenants that share with MPS, and the log's lines about control daemons."""
import pytest
import wire
from daemon_log import entries, wait_for
from mps import SHARING_MPS
from waiting import until

TENANT = {"sharing": SHARING_MPS, "share": 250000}


def claim(client, **request):
    return client.claim({**TENANT, **request})


def states(pool):
    return [entry.values["state"] for entry in entries(pool.directory / "log") if entry.word == "mps"]


def until_states(pool, *wanted):
    """Waits until the log has exactly these states of control daemons."""
    until(lambda: states(pool) == list(wanted), lambda: f"the states {wanted}, instead of {states(pool)},")


def until_state(pool, state, count=1):
    return wait_for(pool.directory / "log", "mps", count, state=state)


def restart(pool):
    assert pool.berth("status").code == 0


def refusal(client, **request):
    with pytest.raises(wire.Refused) as caught:
        claim(client, **request)
    return caught.value
