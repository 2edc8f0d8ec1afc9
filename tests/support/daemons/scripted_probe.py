#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A berth-probe that answers as a test says. BERTH_PROBE names it, and the daemon starts it like the real one.

Its answers are in the JSON file that BERTH_PROBE_SCRIPT names, which it reads for each request:

    devices     a list of devices as wire_format.DEVICE has them; `pci` may be a text
    listed      names of vendors whose devices are complete; the default is all vendors
    links       a list of {one, other, kind, lanes}
    problems    a list of {backend, message}
    behaviour   "answer" (the default), "hang", "die", "garbage", "old number" or "late" (after `delay` seconds)

The log's name is that of the script with .log appended. Its lines are "start PID" for each start, "ask NUMBER" for each
request, and "hang" when the probe begins to hang.
The probe exits when the other end of its input is closed, even while it hangs.
"""
import json
import os
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../clients"))

import wire_format  # noqa: E402

REQUEST = {
    "number": (1, wire_format.NUMBER),
    "deadline": (2, wire_format.NUMBER),
    "only": (3, wire_format.IDS),
    "without_processes": (4, wire_format.FLAG),
}
LINK = {
    "one": (1, wire_format.NUMBER),
    "other": (2, wire_format.NUMBER),
    "kind": (3, wire_format.NUMBER),
    "lanes": (4, wire_format.NUMBER),
}
ANSWER = {
    "number": (1, wire_format.NUMBER),
    "listed": (2, wire_format.NUMBER),
    "devices": (3, wire_format.items_of(wire_format.DEVICE)),
    "links": (4, wire_format.items_of(LINK)),
    "problems": (5, wire_format.items_of(wire_format.PROBLEM)),
}


def device_of(given):
    """Converts a device of the script for the codec: figures get the current time."""
    device = dict(given)
    if isinstance(device.get("pci"), str):
        domain, bus, rest = device["pci"].split(":")
        slot, function = rest.split(".")
        device["pci"] = (int(domain, 16), int(bus, 16), int(slot, 16), int(function, 16))
    for name, (_, kind) in wire_format.DEVICE.items():
        if kind is wire_format.FIGURE and isinstance(device.get(name), int):
            device[name] = (device[name], time.time_ns())
    return device


def answer_to(script, number):
    listed = script.get("listed", wire_format.VENDORS)
    return wire_format.encode_fields(
        {
            "number": number,
            "listed": sum(1 << wire_format.VENDORS.index(vendor) for vendor in listed),
            "devices": [device_of(device) for device in script.get("devices", [])],
            "links": script.get("links") or None,
            "problems": script.get("problems") or None,
        },
        ANSWER,
    )


class Hangup(Exception):
    """The other end of the input is closed."""


class Probe:
    def __init__(self):
        self.path = os.environ["BERTH_PROBE_SCRIPT"]
        self.channel = socket.socket(fileno=0)
        self.log(f"start {os.getpid()}")

    def log(self, line):
        with open(self.path + ".log", "a") as file:
            file.write(line + "\n")

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.channel.recv(count - len(data))
            if not more:
                raise Hangup
            data += more
        return data

    def sleep(self, seconds):
        """Waits without reading requests. Raises Hangup when the other end is closed."""
        poll = select.poll()
        poll.register(self.channel, select.POLLRDHUP)
        if poll.poll(None if seconds is None else seconds * 1000):
            raise Hangup

    def send(self, packet):
        self.channel.sendall(struct.pack("<I", len(packet)) + packet)

    def serve(self):
        while True:
            [length] = struct.unpack("<I", self.read(4))
            number = wire_format.decode_fields(self.read(length), REQUEST)["number"]
            self.log(f"ask {number}")
            with open(self.path) as file:
                script = json.load(file)
            behaviour = script.get("behaviour", "answer")
            if behaviour == "hang":
                self.log("hang")
                self.sleep(None)
            elif behaviour == "die":
                return
            elif behaviour == "garbage":
                self.send(b"\xff" * 64)
            elif behaviour == "old number":
                self.send(answer_to(script, number + 1000000))
                self.sleep(None)
            else:
                if behaviour == "late":
                    self.sleep(script["delay"])
                self.send(answer_to(script, number))


if __name__ == "__main__":
    try:
        Probe().serve()
    except (Hangup, BrokenPipeError, ConnectionResetError):
        pass
