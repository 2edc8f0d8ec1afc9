# SPDX-License-Identifier: Apache-2.0
"""Made-up devices, leases and claims for a scripted daemon's pool."""
import wire

SECOND = 10**9
# 2026-11-16T12:00:00Z
NOW = 1794830400 * SECOND


def slot(index, state="FREE", **values):
    """Returns a slot with a device: nvidia0, nvidia1, ... All devices are equal."""
    device = {"id": f"nvidia{index}", "name": "NVIDIA A100", "memory_total": 80 << 30}
    return {"device": {**device, **values.pop("device", {})}, "state": wire.STATES[state], **values}


def lease(number, devices, **values):
    usual = {"uid": 0, "pid": 77, "granted": NOW - 60 * SECOND, "since": NOW - 90 * SECOND}
    return {"id": number, "devices": devices, **usual, **values}


def claim(number, position, **values):
    usual = {"uid": 0, "pid": 78, "since": NOW - 5 * SECOND, "request": "1 device", "why": "1 is busy"}
    return {"id": number, "position": position, **usual, **values}


class Follower:
    """A client that follows the pool, seen from the daemon's side."""

    def __init__(self, client, inventory=None, epoch=1):
        self.client = client
        self.inventory = inventory
        self.epoch = epoch
        self.mark = 0
        self.follow = self.expect("FOLLOW")

    def expect(self, kind):
        """Returns the next message, which must be of this type. Answers any HELLO before it."""
        while True:
            message = self.client.receive()
            if message["type"] == kind:
                return message
            assert message["type"] == "HELLO", message
            self.client.say("POOL", message, pool="p", socket="/nowhere", inventory=self.inventory)

    def tell(self, kinds=("LOAD", "LEASE", "QUEUE"), **values):
        """Notifies the client of news of these kinds."""
        self.mark += 1
        bits = sum(wire.NEWS[kind] for kind in kinds)
        self.client.say("NEWS", self.follow, epoch=self.epoch, after=self.mark, kinds=bits, **values)

    def show(self, slots=(), leases=(), claims=(), **values):
        """Notifies the client of news, and answers its LOOK."""
        self.tell(**values)
        look = self.expect("LOOK")
        self.follow = self.expect("FOLLOW")
        answer_look(self.client, look, slots, leases, claims)
        return look


def show(client, slots=(), leases=(), claims=(), inventory=None):
    """Answers the HELLO and the LOOK of a client."""
    client.say("POOL", client.expect("HELLO"), pool="p", socket="/nowhere", inventory=inventory)
    answer_look(client, client.expect("LOOK"), slots, leases, claims)


def answer_look(client, look, slots, leases, claims):
    client.say(
        "PAGE",
        look,
        capacity=len(slots),
        pending=len(claims),
        time=NOW,
        slots=list(slots),
        leases=list(leases),
        claims=list(claims),
    )
