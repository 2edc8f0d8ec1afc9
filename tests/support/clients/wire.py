# SPDX-License-Identifier: Apache-2.0
"""A client of the protocol in Python (docs/PROTOCOL.md).

    with wire.connect(path) as pool:
        grant = pool.claim({"gpus_min": 2, "gpus_max": 2})
        ...
        pool.release(grant["id"], exit_code=0)

Messages are sent without a check: send() appends the bytes `raw` to a message, and send_raw() sends
any packet.
"""
import secrets
import select
import socket
import time

from wire_format import BLOCKS, ENDS, ERRORS, HOLDS, MESSAGE_MOST, NEWS, SECTIONS, STATES, WireError, decode, encode, packet

__all__ = [
    "BLOCKS",
    "ENDS",
    "ERRORS",
    "HOLDS",
    "MESSAGE_MOST",
    "NEWS",
    "SECTIONS",
    "STATES",
    "Closed",
    "Pool",
    "Refused",
    "WireError",
    "connect",
    "decode",
    "encode",
    "packet",
]

TIMEOUT = 10.0


class Closed(Exception):
    """The daemon closed the connection; `error` and `text` are those of its CLOSING, if it sent one."""

    def __init__(self, message=None):
        self.error = message.get("error") if message else None
        self.text = message.get("text", "") if message else ""
        super().__init__(self.text or "the connection is closed")


class Refused(Exception):
    """The daemon answered a request with REFUSED."""

    def __init__(self, message):
        self.error = message.get("error", 0)
        self.text = message.get("text", "")
        super().__init__(f"{self.error}: {self.text}")


class Pool:
    """A connection to a daemon. Messages that a call does not expect are kept for later calls."""

    def __init__(self, path, timeout=TIMEOUT):
        self.timeout = timeout
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self.socket.settimeout(timeout)
        self._last_number = 0
        self._kept = []
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def fileno(self):
        return self.socket.fileno()

    def send_raw(self, data):
        self.socket.send(data)

    def send(self, kind, number=None, raw=b"", **values):
        """Sends a message and returns its number, which is a new one by default."""
        if number is None:
            self._last_number += 1
            number = self._last_number
        self.send_raw(encode(kind, number, raw, **values))
        return number

    def _receive(self, deadline):
        # A message that has arrived is read even after the deadline.
        if not select.select([self.socket], [], [], max(0, deadline - time.monotonic()))[0]:
            raise TimeoutError("no message in time")
        try:
            data = self.socket.recv(MESSAGE_MOST + 1)
        except ConnectionResetError:  # the daemon closed without reading everything; its last messages are still there
            data = self.socket.recv(MESSAGE_MOST + 1)
        if not data:
            raise Closed()
        message = decode(data)
        if message["type"] == "CLOSING":
            raise Closed(message)
        return message

    def receive(self, number=None, kinds=None, timeout=None):
        """Returns the next message, or the next one of this number and these types. Keeps other messages."""

        def fits(message):
            return (number is None or message["number"] == number) and (kinds is None or message["type"] in kinds)

        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        for message in self._kept:
            if fits(message):
                self._kept.remove(message)
                return message
        while True:
            message = self._receive(deadline)
            if fits(message):
                return message
            self._kept.append(message)

    def answer(self, number, kinds, timeout=None):
        """Returns the answer to a request. Raises Refused for REFUSED."""
        message = self.receive(number, (*kinds, "REFUSED"), timeout)
        if message["type"] == "REFUSED":
            raise Refused(message)
        return message

    def ask(self, kind, answer, timeout=None, **values):
        return self.answer(self.send(kind, **values), (answer,), timeout)

    # The requests of the protocol.

    def hello(self):
        return self.ask("HELLO", "POOL")

    def send_claim(self, request=None, token=None, **values):
        """Sends a CLAIM and returns its number. The caller waits for the answers."""
        token = secrets.randbits(128) | 1 << 64 if token is None else token
        return self.send(
            "CLAIM", request=request or {}, token_high=token >> 64, token_low=token & (2**64 - 1), **values
        )

    def granted(self, number, timeout=None):
        """Waits for the grant of a claim, and returns its messages joined into one."""
        whole = self.answer(number, ("GRANTED",), timeout)
        last = whole
        while last.get("more"):
            last = self.answer(number, ("GRANTED",), timeout)
            whole["devices"] = whole.get("devices", []) + last.get("devices", [])
        whole.pop("more", None)
        return whole

    def claim(self, request=None, token=None, timeout=None, **values):
        return self.granted(self.send_claim(request, token, **values), timeout)

    def release(self, lease, exit_code=None):
        return self.ask("RELEASE", "DONE", id=lease, exit_code=exit_code)

    def cancel(self, claim):
        return self.ask("CANCEL", "DONE", id=claim)

    def stop(self, lease):
        return self.ask("STOP", "DONE", id=lease)

    def extend(self, lease, duration):
        return self.ask("EXTEND", "DONE", id=lease, duration=duration)

    def explain(self, claim):
        return self.ask("EXPLAIN", "WAITING", id=claim)

    def watch(self, number, timeout=None):
        """Waits for the end of a claim or lease."""
        return self.ask("WATCH", "ENDED", timeout, id=number)

    def test(self, request=None, timeout=None, **values):
        return self.ask("TEST", "DONE", timeout, request=request or {}, **values)

    def look(self):
        """Returns the whole pool, with all pages joined."""
        whole = {"slots": [], "leases": [], "claims": [], "problems": []}
        section, after = SECTIONS["DEVICES"], 0
        while section != SECTIONS["END"]:
            page = self.ask("LOOK", "PAGE", section=section, after=after)
            for name, value in page.items():
                if isinstance(value, list):
                    whole[name] += value
                else:
                    whole[name] = value
            section, after = page.get("section", 0), page.get("after", 0)
        return whole


def connect(path, timeout=TIMEOUT):
    return Pool(path, timeout)
