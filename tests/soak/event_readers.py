# SPDX-License-Identifier: Apache-2.0
"""Many readers of the event stream of berth web, in one process.

    event_readers.py HOST:PORT COUNT

After a line "until NAME" on standard input, reads on until every reader has seen the end of the lease of this name.
Then prints a summary of each reader as JSON.
"""
import json
import selectors
import socket
import sys
import time

# Seconds that the slowest reader may take after the line.
PATIENCE = 60.0


class Reader:
    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.sendall(f"GET /api/events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n".encode())
        self.socket.setblocking(False)
        self.rest = b""
        self.bytes = 0
        self.events = {}
        self.over = set()  # names of leases that are over
        self.queue = self.time = None  # of the last event
        self.heard_at = time.monotonic()
        self.longest_silence = 0.0

    def read(self):
        """Reads the available data. Returns False at the end."""
        data = self.socket.recv(1 << 18)
        now = time.monotonic()
        self.longest_silence = max(self.longest_silence, now - self.heard_at)
        self.heard_at = now
        self.bytes += len(data)
        *frames, self.rest = (self.rest + data).split(b"\n\n")
        for frame in frames:
            self.take(frame)
        return bool(data)

    def take(self, frame):
        """Counts an event. Ignores the HTTP lines before the stream."""
        start = frame.rfind(b"event: ")
        if start < 0:
            return
        kind, _, data = frame[start + 7 :].partition(b"\n")
        kind = kind.decode()
        self.events[kind] = self.events.get(kind, 0) + 1
        if kind == "queue":
            self.queue = json.loads(data.removeprefix(b"data: "))
        elif kind == "lease" and b'"what":"released"' in data:
            self.over.add(json.loads(data.removeprefix(b"data: "))["lease"]["name"])

    def summary(self):
        return {
            "bytes": self.bytes,
            "events": self.events,
            "released": len(self.over),
            "pending": None if self.queue is None else self.queue["pending"],
            "longest_silence": self.longest_silence,
        }


def main():
    address, count = sys.argv[1], int(sys.argv[2])
    selector = selectors.EpollSelector()
    readers = [Reader(address) for _ in range(count)]
    for reader in readers:
        selector.register(reader.socket, selectors.EVENT_READ, reader)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print("reading", flush=True)
    last, deadline = None, None
    while True:
        for key, _ in selector.select(0.2):
            if key.data is not None:
                if not key.data.read():
                    sys.exit("the server closed the connection of a reader")
            else:
                words = sys.stdin.readline().split()
                selector.unregister(sys.stdin)
                if not words:
                    sys.exit("standard input ended")
                last, deadline = words[1], time.monotonic() + PATIENCE
        if last is None:
            continue
        now = time.monotonic()
        if all(last in reader.over for reader in readers) or now > deadline:
            break
    summaries = [{**reader.summary(), "heard_all": last in reader.over} for reader in readers]
    print(json.dumps(summaries), flush=True)


main()
