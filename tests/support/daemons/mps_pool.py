# SPDX-License-Identifier: Apache-2.0
"""Claims of tenants that share by MPS, and the log's lines about control daemons."""
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
    """Waits for these, and nothing else, in the log."""
    until(lambda: states(pool) == list(wanted), lambda: f"{wanted}, where the log has {states(pool)},")


def until_state(pool, state, count=1):
    return wait_for(pool.directory / "log", "mps", count, state=state)


def restart(pool):
    assert pool.berth("status").code == 0


def refusal(client, **request):
    with pytest.raises(wire.Refused) as caught:
        claim(client, **request)
    return caught.value
