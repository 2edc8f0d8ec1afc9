# SPDX-License-Identifier: Apache-2.0
"""Users of the same machine: one who takes all connections of berth web, and others who are served."""
import contextlib
import http.client
import os
import selectors
import socket
import time

import pytest
from other_users import OtherUser
from web_server import Web
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

MALLORY, TRUDY, ALICE = 61101, 61102, 61103
# With 256 descriptors berth web accepts 192 connections.
DESCRIPTORS, CONNECTIONS = 256, 192
REQUESTS = 40

HALF = b"GET / HTTP/1.1\r\nHost: loc"
STREAM = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


# The uids that /etc/subuid gives to MALLORY.
CONTAINERS = 7100000


@pytest.fixture
def web(pool_of, sandbox):
    pool_of(1)
    subordinates = sandbox.directory / "subuid"
    subordinates.write_text(f"{MALLORY}:{CONTAINERS}:65536\n")
    sandbox.environment["BERTH_SUBUID"] = str(subordinates)
    words = ["sh", "-c", f"ulimit -n {DESCRIPTORS}; exec berth web --listen 127.0.0.1:0"]
    with sandbox.start(words) as program:
        yield Web(program)
        program.kill(15)
        assert (program.wait(), program.text("stderr")) == (0, "")


def connect(port, number):
    """Connects from one of many loopback addresses, and sends a half request or starts an event stream."""
    client = socket.socket()
    try:
        client.bind((f"127.0.{number % 7}.{1 + number % 200}", 0))
        client.settimeout(10)
        client.connect(("127.0.0.1", port))
        client.sendall((HALF, STREAM)[number % 2])
        client.setblocking(False)
    except OSError:
        client.close()
        return None
    return client


def flood(port, full):
    """Keeps more connections than there are, until it is killed. Renews those that berth web closes."""
    selector = selectors.DefaultSelector()
    opened = refused = 0
    while True:
        while len(selector.get_map()) < 2 * CONNECTIONS:
            client = connect(port, opened)
            opened += 1
            if client is not None:
                selector.register(client, selectors.EVENT_READ)
            if opened > 4 * CONNECTIONS and refused > CONNECTIONS:
                os.write(full, b"x")
                refused = -(1 << 60)
        for key, _ in selector.select():
            with contextlib.suppress(BlockingIOError, ConnectionError):
                data = key.fileobj.recv(65536)
                if data and not data.startswith(b"HTTP/1.1 503 "):
                    continue
            refused += 1
            selector.unregister(key.fileobj)
            key.fileobj.close()


@contextlib.contextmanager
def flooding(web, *users):
    ends = []
    try:
        for uid in users:
            read, write = os.pipe()
            ends.append((OtherUser(uid, flood, web.port, write), read))
            os.close(write)
        for _, read in ends:
            assert os.read(read, 1) == b"x"
        yield [user for user, _ in ends]
    finally:
        for user, read in ends:
            user.kill()
            os.close(read)


def ask(port, count):
    """Returns the statuses of new connections, and the longest time that one took."""
    statuses, longest = set(), 0.0
    for _ in range(count):
        begun = time.monotonic()
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        client.request("GET", "/api/status")
        statuses.add(client.getresponse().status)
        client.close()
        longest = max(longest, time.monotonic() - begun)
    return statuses, longest


def read_and_ask(port, count):
    """Keeps an event stream open during the requests. Returns whether it is still open, and the rest as ask()."""
    with socket.create_connection(("127.0.0.1", port), 10) as stream:
        stream.sendall(STREAM)
        assert stream.recv(65536).startswith(b"HTTP/1.1 200 ")
        result = ask(port, count)
        stream.setblocking(False)
        try:
            while stream.recv(65536):
                pass
            is_open = False
        except BlockingIOError:
            is_open = True
    return is_open, *result


@pytest.mark.parametrize("users", [(MALLORY,), (MALLORY, TRUDY)])
def test_a_flood_does_not_keep_others_out(web, users):
    """One or two users take all connections from many loopback addresses. Each request of another user is answered, and
    the user's event stream stays open."""
    with flooding(web, *users) as floods:
        is_open, statuses, longest = OtherUser(ALICE, read_and_ask, web.port, REQUESTS).result()
        assert all(user.runs() for user in floods)
        assert (is_open, statuses) == (True, {200})
        assert longest < 5


def test_the_flood_leaves_nothing(web):
    with flooding(web, MALLORY):
        pass
    until(lambda: ask(web.port, 1)[0] == {200}, "the end of the flood")


def crowd(port, count):
    """Returns how many of the connections are answered."""
    clients = [connect(port, 1) for _ in range(count)]
    answered = 0
    for client in clients:
        client.settimeout(10)
        with contextlib.suppress(ConnectionError):
            answered += client.recv(12) == b"HTTP/1.1 200"
        client.close()
    return answered


@pytest.mark.parametrize("users", [(MALLORY,), (MALLORY, CONTAINERS + 1, CONTAINERS + 2)])
def test_two_users_share(web, users):
    """A user gets half of all connections beside a user with all the others, who may also use the uids of containers."""
    with flooding(web, *users):
        answered = OtherUser(ALICE, crowd, web.port, CONNECTIONS // 2 - 2).result()
        assert answered == CONNECTIONS // 2 - 2
