# SPDX-License-Identifier: Apache-2.0
"""A running berth web, requests to it, and its event stream."""
import http.client
import json
import re
import select
import signal
import socket
import time
from contextlib import contextmanager

from programs import TIMEOUT, Deadline

TOKEN = "a-token-of-some-length"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Web:
    """A berth web that serves; `port` is the port that it chose."""

    def __init__(self, program):
        self.program = program
        line = program.wait_for_line("^berth web: http://")
        self.url = line.split(" ")[-1]
        self.host, self.port = re.fullmatch(r"http://\[?(.*?)\]?:(\d+)/", self.url).groups()
        self.port = int(self.port)

    def ask(self, path, method="GET", headers=None, body=None):
        client = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT)
        try:
            client.request(method, path, body, headers or {})
            answer = client.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            client.close()

    def connect(self, receive_buffer=None):
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        client = socket.socket(family)
        client.settimeout(TIMEOUT)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.connect((self.host, self.port))
        return client

    def say(self, text):
        """Sends these bytes, and returns everything that berth web sends until it closes the connection."""
        with self.connect() as client:
            client.sendall(text if isinstance(text, bytes) else text.encode())
            return read_all(client)

    def status_of(self, text):
        """Sends these bytes, and returns the status of the answer."""
        return int(self.say(text).split(b" ")[1])

    def events(self, headers=""):
        return Events(self, headers)

    def end(self, number=signal.SIGTERM):
        self.program.kill(number)
        return self.program.wait()


def read_all(client):
    found = b""
    while data := client.recv(65536):
        found += data
    return found


class Events:
    """A reader of the event stream."""

    def __init__(self, web, headers=""):
        self.client = web.connect()
        self.client.sendall(f"GET /api/events HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        self.unread = b""
        self.seen = []
        head = self._until(b"\r\n\r\n", time.monotonic() + TIMEOUT)
        assert head.startswith(b"HTTP/1.1 200 "), head
        self.head = head.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def _until(self, end, deadline):
        while end not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.client], [], [], left)[0]:
                raise Deadline(f"no event in time; seen so far: {[name for name, _ in self.seen]}")
            data = self.client.recv(65536)
            if not data:
                raise EOFError("the stream has ended")
            self.unread += data
        found, self.unread = self.unread.split(end, 1)
        return found

    def next(self, timeout=TIMEOUT):
        """Returns the next event: (name, data)."""
        block = self._until(b"\n\n", time.monotonic() + timeout).decode()
        fields = [line.split(": ", 1) for line in block.split("\n")]
        name, data = [value for field, value in fields if field != "retry"]
        assert [field for field, _ in fields if field != "retry"] == ["event", "data"], block
        self.seen.append((name, json.loads(data)))
        return self.seen[-1]

    def wait(self, name, condition=lambda data: True, timeout=TIMEOUT):
        """Waits for an event of this name whose data satisfies the condition, and returns the data."""
        deadline = time.monotonic() + timeout
        while True:
            found, data = self.next(deadline - time.monotonic())
            if found == name and condition(data):
                return data


@contextmanager
def serving(sandbox, *options, env=None):
    """Runs a berth web on a free port. It must end with exit code 0 and print no error."""
    listen = () if "--listen" in options else ("--listen", "127.0.0.1:0")
    with sandbox.start(["berth", "web", *listen, *options], env=env) as program:
        web = Web(program)
        yield web
        assert web.end() == 0
        assert program.text("stderr") == ""


def token_file(sandbox, content=TOKEN + "\n", mode=0o600):
    path = sandbox.directory / "token"
    path.write_text(content)
    path.chmod(mode)
    return path
