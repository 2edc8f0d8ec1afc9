# SPDX-License-Identifier: Apache-2.0
"""Clients that break every rule: the daemon closes their connection with a reason, and other
clients are not affected."""
import collections
import json
import os
import random
import secrets
import select
import socket
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import pytest
import wire
import wire_format
from daemons import start_daemon
from lease_history import configure
from process_size import descriptors, resident
from steps import test_steps
from waiting import look, until, until_served

SYNTAX = wire.ERRORS["SYNTAX"]
INVALID = wire.ERRORS["INVALID"]


@pytest.fixture
def served(pool_of):
    """A pool with a lease and a claim of a good client. At the end both must be unchanged, and the
    daemon must be the same process with the same size."""
    pool = pool_of(4)
    configure(pool, "history: no\n")
    daemon = start_daemon(pool)
    mine = {"wanted": ["nvidia0"]}
    with wire.connect(str(pool.socket)) as good:
        lease = good.claim(mine)
        waiting = good.receive(good.send_claim(mine), kinds=("WAITING",))
        look(pool)
        before = descriptors(daemon.pid), resident(daemon.pid)
        pool.good, pool.pid, pool.lease = good, daemon.pid, lease["id"]
        yield pool
        assert good.hello()["pid"] == daemon.pid
        until(lambda: is_alone(pool), "the end of the other clients' leases and claims")
        seen = good.look()
        assert [entry["id"] for entry in seen["leases"]] == [lease["id"]]
        assert [entry["id"] for entry in seen["claims"]] == [waiting["id"]]
        until(lambda: descriptors(daemon.pid) <= before[0], "the earlier number of descriptors")
        assert resident(daemon.pid) < before[1] + 16 * 1024
        good.release(lease["id"])
        assert good.receive(kinds=("GRANTED",))["id"] == waiting["id"]


def is_alone(pool):
    """Return whether only the good client has a lease and a claim."""
    seen = look(pool)
    return (len(seen["leases"]), len(seen["claims"])) == (1, 1)


def expect_closing(client, error=SYNTAX):
    with pytest.raises(wire.Closed) as closed:
        while True:
            client.receive()
    assert closed.value.error == error, closed.value.text
    assert closed.value.text
    return closed.value.text


def send_bad(pool, data, error=SYNTAX):
    with wire.connect(str(pool.socket)) as client:
        client.send_raw(data)
        return expect_closing(client, error)


GOOD = wire.encode("CLAIM", 1, request={"gpus_min": 1}, token_high=5, token_low=6, command="x")


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        GOOD[:15],
        wire.packet("CLAIM", 1, version=2),
        wire.packet("CLAIM", 1, version=0),
        wire.packet(0, 1),
        wire.packet("HELLO", 1, length=1),
        wire.packet("HELLO", 1, b"x", length=0),
        wire.encode("HELLO", 1, raw=b"\0"),
        wire.encode("HELLO", 1, raw=wire_format.field(0x8001, b"")),
        wire.encode("RELEASE", 1, id=1, raw=wire_format.field(1, b"\1")),
        wire.encode("RELEASE", 1, raw=wire_format.field(1, bytes(9))),
        wire.encode("CLAIM", 1, command=b"a\0b"),
    ],
)
def test_no_message(served, data):
    send_bad(served, data)


def test_oversized(served):
    text = send_bad(served, bytes(wire.MESSAGE_MOST + 1), wire.ERRORS["LIMIT"])
    assert "131072" in text
    send_bad(served, wire.packet("CLAIM", 1, bytes(wire.MESSAGE_MOST - 16 + 1)), wire.ERRORS["LIMIT"])


def test_cut_anywhere(served):
    for length in range(1, len(GOOD)):
        send_bad(served, GOOD[:length])
    for length in range(1, 16):  # the header has the shorter length
        data = GOOD[16:-length]
        with wire.connect(str(served.socket)) as client:
            client.send_raw(wire.packet("CLAIM", 1, data))
            try:  # without its last field it is still a valid claim
                assert client.receive(1)["type"] in ("GRANTED", "REFUSED")
            except wire.Closed as closed:
                assert closed.error == SYNTAX


def test_garbage(served):
    chance = random.Random(5)
    for _ in range(test_steps(300, 20000)):
        data = chance.randbytes(chance.choice([1, 15, 16, 17, 40, 1000, 60000]))
        with wire.connect(str(served.socket)) as client:
            client.send_raw(data)
            expect_closing(client)


def test_nothing(served):
    """An empty packet means the end of the connection."""
    with wire.connect(str(served.socket)) as client:
        client.send_raw(b"")
        with pytest.raises(wire.Closed):
            client.receive()


def test_unknown_types(served):
    """A newer client may send messages that this daemon does not know."""
    with wire.connect(str(served.socket)) as client:
        for kind in (*range(11, 64), *range(64, 256)):
            client.send_raw(wire.packet(kind, kind))
            with pytest.raises(wire.Refused) as refused:
                client.answer(kind, ())
            assert refused.value.error == INVALID
        client.hello()


def test_unknown_fields(served):
    with wire.connect(str(served.socket)) as client:
        number = client.send("HELLO", raw=wire_format.field(0x7000, b"later"))
        client.answer(number, ("POOL",))


# ---- Tokens ----


def test_replayed_claim(served):
    """The same token is the same claim, regardless of the connection: there is never a second
    lease."""
    token = secrets.randbits(128) | 1 << 64
    with wire.connect(str(served.socket)) as first, wire.connect(str(served.socket)) as second:
        request = {"gpus_min": 4, "gpus_max": 4}
        queued = first.receive(first.send_claim(request, token), kinds=("WAITING",))["id"]
        for _ in range(50):
            assert second.receive(second.send_claim(request, token), kinds=("WAITING",))["id"] == queued
        assert len(look(served)["claims"]) == 2
        with pytest.raises(wire.Refused) as refused:  # it would wait forever
            first.granted(1)
        assert refused.value.error == wire.ERRORS["CANCELLED"]


def test_replayed_claim_of_another_process(served):
    """Another process cannot continue a claim or a lease that a process holds."""
    token = secrets.randbits(128) | 1 << 64
    with wire.connect(str(served.socket)) as first:
        lease = first.claim({}, token, hold=wire.HOLDS["PROCESS"])["id"]
        support = str(Path(wire.__file__).parent)
        words = [sys.executable, "-c", REPLAY, support, served.socket, 999, token]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=10)
        assert done.stdout.splitlines()[0] == f"refused {INVALID}", done.stderr
        first.release(lease)


REPLAY = """
import sys
sys.path.insert(0, sys.argv[1])
import wire
with wire.connect(sys.argv[2]) as client:
    for token in (int(word) for word in sys.argv[4:]):
        try:
            print(client.answer(client.send_claim(token=token, resume=True), ("GRANTED", "WAITING")))
        except wire.Refused as refused:
            print("refused", refused.error)
    for kind in ("RELEASE", "STOP", "CANCEL", "EXTEND"):
        try:
            print(client.ask(kind, "DONE", id=int(sys.argv[3]), duration=1))
        except wire.Refused as refused:
            print("refused", refused.error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
def test_token_of_somebody_else(sandbox, pool_of):
    """The token or the id of another user's lease gives no access to it."""
    pool = pool_of(2)
    sandbox.directory.chmod(0o755)
    path = sandbox.directory / "all.sock"
    tokens = [secrets.randbits(128) | 1 << 64 for _ in range(2)]
    with sandbox.start(["berthd", "--socket", path, "--inventory", pool.inventory]) as daemon:
        until_served(path)
        with wire.connect(str(path)) as client:
            lease = client.claim({"gpus_min": 2, "gpus_max": 2}, token=tokens[0])
            client.receive(client.send_claim(token=tokens[1]), kinds=("WAITING",))
            support = str(Path(wire.__file__).parent)
            words = [sys.executable, "-c", REPLAY, support, path, lease["id"], *tokens]
            done = subprocess.run(
                [str(word) for word in words], user=65534, group=65534, capture_output=True, text=True, timeout=10
            )
            permission = f"refused {wire.ERRORS['PERMISSION']}\n"
            assert done.stdout == f"refused {INVALID}\n" * 2 + permission * 4, done.stderr
            seen = client.look()
            assert (len(seen["leases"]), len(seen["claims"])) == (1, 1)
            client.release(lease["id"])
            client.receive(kinds=("GRANTED",))
        daemon.stop()


# ---- Connections ----


def test_half_open(served):
    """Connections that are silent, closed at once or half closed use one descriptor while they
    exist."""
    silent = [wire.connect(str(served.socket)) for _ in range(200)]
    for i in range(500):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(str(served.socket))
            if i % 2:
                client.shutdown(socket.SHUT_WR)
            if i % 3 == 0:
                client.send(GOOD) if not i % 2 else None
    served.good.hello()
    for client in silent:
        client.close()


def test_gone_in_the_midst(served):
    """Clients request much data and close without reading it."""
    for _ in range(60):
        client = wire.connect(str(served.socket))
        for i in range(20):
            client.send_claim({"gpus_min": 1 + i % 3, "gpus_max": 3})
            client.send("LOOK", section=1)
            client.send("WATCH", id=served.lease)
            client.send("TEST", request={})
        client.close()


def test_slow_reader(served):
    """The daemon closes the connection of a client that sends requests and never reads. Other
    clients get their answers meanwhile."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as slow:
        slow.settimeout(10)
        slow.connect(str(served.socket))
        question = wire.encode("LOOK", 1, section=1)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for i in range(200000):
                slow.send(question)
                if i % 100 == 0:
                    served.good.hello()
    log = served.directory / "log"
    until(lambda: "the client does not read its answers" in log.read_text(), "the reason in the log")


def test_reader_that_is_always_behind(sandbox, pool_of):
    """A client reads as fast as it sends requests, but never reads everything. The daemon keeps only
    the unread data."""
    names = "".join(f"- {{vendor: nvidia, index: {i}, name: {'x' * 200}, uuid: GPU-{i}}}\n" for i in range(200))
    pool = pool_of(f"devices:\n{names}")
    daemon = start_daemon(pool)
    with wire.connect(str(pool.socket)) as client:
        question = wire.encode("LOOK", 1, section=1)
        for _ in range(120):  # more than the socket buffer holds
            client.send_raw(question)
        before = resident(daemon.pid)
        received = 0
        for _ in range(test_steps(1500, 20000)):
            received += len(client.socket.recv(wire.MESSAGE_MOST))
            client.send_raw(question)
        assert received > 32 * 1024 * 1024
        assert resident(daemon.pid) < before + 8 * 1024


def test_descriptors_sent_along(served):
    """The daemon closes descriptors that are sent along as soon as it has read the message."""
    before = descriptors(served.pid)
    read, write = os.pipe()
    with wire.connect(str(served.socket)) as client:
        for i in range(1, 31):
            socket.send_fds(client.socket, [wire.encode("HELLO", i)], [write] * 50)
            client.receive(i)
        os.close(write)
        assert descriptors(served.pid) <= before + 1
        # The end of file on the pipe shows that no copy is left.
        assert select.select([read], [], [], 5)[0]
        assert os.read(read, 1) == b""
    os.close(read)


def is_harmless(shown):
    """Return whether the text has no control characters and no invisible formatting characters."""
    return not [char for char in shown if unicodedata.category(char) in ("Cc", "Cf")]


BAD_TEXTS = [b"\x1b[31mred\x07\x9b2J", b"a\nb\rc\td", b"\xff\xfe\x80bytes", "\u202e\u2066right".encode(), b"'\"\\$(x)"]


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_names_that_are_no_text(served, text):
    """Any name of a claim is harmless where other users see it."""
    with wire.connect(str(served.socket)) as client:
        name = text
        try:
            client.claim({"wanted": ["nvidia1"], "name": name}, command=text)
        except wire.Refused as refused:
            assert refused.error == INVALID
            assert is_harmless(refused.text)
            name = "x"
            client.claim({"wanted": ["nvidia1"], "name": name}, command=text)
        client.receive(client.send_claim({"wanted": ["nvidia1"], "name": name}, command=text), kinds=("WAITING",))
        for args in (("status",), ("status", "--json"), ("devices",), ("plan",), ("plan", "--device", "nvidia1")):
            done = served.berth(*args)
            shown = (done.stdout + done.stderr).replace("\n", "")
            assert done.code in (0, 120), done.stderr
            assert is_harmless(shown), (args, shown)
            if "--json" in args:
                json.loads(done.stdout)
        client.send_raw(wire.encode("CLAIM", 9, inventory=text, request={}, token_high=1, token_low=1))
        client.receive(9)
    with wire.connect(str(served.socket)) as client:
        client.send_raw(b"\1" + text)
        expect_closing(client)
    until(lambda: "closing" in (served.directory / "log").read_text(), "a line of the log")
    log = (served.directory / "log").read_bytes().replace(b"\n", b"").decode()  # all of it is UTF-8
    assert is_harmless(log)


def test_many_slow_readers(served):
    """Slow readers disturb neither each other nor other clients."""
    connections = []
    question = wire.encode("LOOK", 1, section=1)
    for _ in range(20):
        slow = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        slow.setblocking(False)
        slow.connect(str(served.socket))
        connections.append(slow)
        try:
            for _ in range(500):
                slow.send(question)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
    served.good.hello()
    for slow in connections:
        slow.close()


def test_busy_talker(served):
    """A client that never stops sending requests does not block other clients."""
    stop = threading.Event()

    def talk():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as talker:
            talker.settimeout(10)
            talker.connect(str(served.socket))
            while not stop.is_set():
                talker.send(wire.encode("HELLO", 1))
                talker.recv(4096)

    threads = [threading.Thread(target=talk) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            served.good.hello()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_leases_and_claims_of_one_connection(served):
    """When the connection ends, devices of its leases do not go to its own claims."""
    for _ in range(20):
        with wire.connect(str(served.socket)) as client:
            for number in [client.send_claim() for _ in range(12)]:
                client.receive(number)
        until(lambda: is_alone(served), "the end of its leases and claims")


# ---- Well-formed messages without meaning ----


def random_value(chance, kind):
    if kind in (wire_format.NUMBER, wire_format.FLAG, wire_format.TIME):
        if chance.random() < 0.97:
            return chance.choice([0, 1, 1, 2])
        return chance.choice([3, 7, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1, chance.getrandbits(64)])
    if kind is wire_format.TEXT:
        return chance.choice(["", "x", "\x1b[31m", "ä" * 50] * 20 + ["y" * 5000])
    if kind is wire_format.IDS:
        return [f"nvidia{chance.randrange(5)}" for _ in range(chance.randrange(4))]
    if kind is wire_format.STRINGS:
        return [f"CUDA_VISIBLE_DEVICES={chance.choice(['0', '1,0', '-1', 'GPU-0', '9', 'x', ''])}"]
    return None


def random_request(chance):
    names = chance.sample(sorted(wire_format.REQUEST), chance.randrange(4))
    values = {name: random_value(chance, wire_format.REQUEST[name][1]) for name in names}
    if chance.random() < 0.7:
        values["nonblock"] = 1
    return {name: value for name, value in values.items() if value is not None}


def random_message(chance, number):
    rest = ["HELLO", "RELEASE", "CANCEL", "STOP", "EXTEND", "EXPLAIN", "WATCH", "TEST", "LOOK"]
    kind = chance.choice(["CLAIM"] * 4 + rest)
    values = {"token_high": chance.getrandbits(64), "token_low": 1} if chance.random() < 0.9 else {}
    for name in chance.sample(sorted(wire_format.MESSAGE), chance.randrange(3)):
        value = random_value(chance, wire_format.MESSAGE[name][1])
        if value is not None:
            values[name] = value
    # The test must not signal this process or keep it waiting.
    values.pop("id" if kind in ("STOP", "CANCEL", "RELEASE") else "hold", None)
    values["request"] = random_request(chance)
    return wire.encode(kind, number, **values)


def test_random_messages(served):
    chance = random.Random(6)
    client = wire.connect(str(served.socket))
    answers = collections.Counter()
    for number in range(1, test_steps(3000, 200000)):
        try:
            client.send_raw(random_message(chance, number))
            answers[client.receive(timeout=0.02)["type"]] += 1
        except TimeoutError:
            answers["none"] += 1
        except (BrokenPipeError, ConnectionResetError, wire.Closed):
            answers["closed"] += 1
            client.close()
            client = wire.connect(str(served.socket))
        if number % 100 == 0:
            served.good.hello()
    client.close()
    assert {"closed", "REFUSED", "GRANTED", "WAITING", "PAGE", "POOL"} <= set(answers), answers


def test_what_has_no_number_is_not_answered(served):
    """A RELEASE without a number gets no answer, whether it succeeds or fails. This is allowed."""
    with wire.connect(str(served.socket)) as terse:
        for _ in range(100):
            lease = terse.claim({"wanted": ["nvidia1"]})
            terse.send("RELEASE", number=0, id=lease["id"])
            terse.send("RELEASE", number=0, id=lease["id"])  # it has ended already
            terse.send("CANCEL", number=0, id=served.lease)
        # The next message is the answer to the next question.
        asked = terse.send("HELLO")
        assert terse.receive()["number"] == asked
