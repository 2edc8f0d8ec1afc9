# SPDX-License-Identifier: Apache-2.0
"""What a scripted daemon's pool looks like: devices, leases and claims made up by a test."""
import wire

SECOND = 10**9
# 2026-11-16T12:00:00Z
NOW = 1794830400 * SECOND


def slot(index, state="FREE", **values):
    """A slot with an equal device: nvidia0, nvidia1, ..."""
    device = {"id": f"nvidia{index}", "name": "NVIDIA A100", "memory_total": 80 << 30}
    return {"device": {**device, **values.pop("device", {})}, "state": wire.STATES[state], **values}


def lease(number, devices, **values):
    usual = {"uid": 0, "pid": 77, "granted": NOW - 60 * SECOND, "since": NOW - 90 * SECOND}
    return {"id": number, "devices": devices, **usual, **values}


def claim(number, position, **values):
    usual = {"uid": 0, "pid": 78, "since": NOW - 5 * SECOND, "request": "1 device", "why": "1 is busy"}
    return {"id": number, "position": position, **usual, **values}


def show(client, slots=(), leases=(), claims=(), inventory=None):
    """Answers one look at the pool."""
    client.say("POOL", client.expect("HELLO"), pool="p", socket="/nowhere", inventory=inventory)
    client.say(
        "PAGE",
        client.expect("LOOK"),
        capacity=len(slots),
        pending=len(claims),
        time=NOW,
        slots=list(slots),
        leases=list(leases),
        claims=list(claims),
    )
