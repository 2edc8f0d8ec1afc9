# SPDX-License-Identifier: Apache-2.0
"""The client in Python works as documented, before tests of the daemon rely on it."""
import socket
import threading

import pytest
import wire

DEVICES = [{"id": f"nvidia{index}"} for index in range(3)]


class Daemon:
    """Answer each packet with the next list of packets; then close the connection."""

    def __init__(self, path, answers):
        self.received = []
        self._answers = answers
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        self._listener.settimeout(wire.TIMEOUT)
        connection, _ = self._listener.accept()
        connection.settimeout(wire.TIMEOUT)
        with connection:
            for answers in self._answers:
                self.received.append(wire.decode(connection.recv(wire.MESSAGE_MOST)))
                for answer in answers:
                    connection.send(answer)

    def close(self):
        self._thread.join(wire.TIMEOUT)
        self._listener.close()
        assert not self._thread.is_alive()


@pytest.fixture
def converse(tmp_path):
    """converse([answers to the first packet], ...): return a client, and the daemon that it talks
    to."""
    made = []

    def start(*answers):
        daemon = Daemon(tmp_path / "s", answers)
        client = wire.connect(tmp_path / "s")
        made.extend((client, daemon))
        return client, daemon

    yield start
    for one in made:
        one.close()


def test_claim_and_release(converse):
    client, daemon = converse(
        [
            wire.encode("WAITING", 1, id=5, position=1),
            wire.encode("GRANTED", 1, id=5, devices=DEVICES[:2], more=True),
            wire.encode("GRANTED", 1, id=5, devices=DEVICES[2:]),
        ],
        [wire.encode("DONE", 2, id=5)],
    )
    grant = client.claim({"gpus_min": 3, "gpus_max": 3}, token=7 << 64 | 9, hold=wire.HOLDS["PROCESS"])
    assert grant["devices"] == DEVICES
    assert client.receive(1)["type"] == "WAITING"
    assert client.release(5, exit_code=0)["id"] == 5
    claim, release = daemon.received
    assert (claim["type"], claim["token_high"], claim["token_low"], claim["hold"]) == ("CLAIM", 7, 9, 1)
    assert claim["request"] == {"gpus_min": 3, "gpus_max": 3}
    assert (release["type"], release["id"], release["exit_code"]) == ("RELEASE", 5, 0)


def test_answers_in_another_order(converse):
    client, _ = converse(
        [],
        [
            wire.encode("GRANTED", 2, id=6),
            wire.encode("NOTICE", 2, id=6, end=3),
            wire.encode("GRANTED", 1, id=5),
        ],
    )
    first, second = client.send_claim(), client.send_claim()
    assert client.granted(first)["id"] == 5
    assert client.granted(second)["id"] == 6
    assert client.receive(kinds=("NOTICE",))["end"] == wire.ENDS["EXPIRED"]


def test_refused(converse):
    client, _ = converse([wire.encode("REFUSED", 1, error=8, text="no device here could do")])
    with pytest.raises(wire.Refused, match="no device here could do") as refused:
        client.claim()
    assert refused.value.error == wire.ERRORS["IMPOSSIBLE"]


def test_closed_with_a_reason(converse):
    client, _ = converse([wire.encode("CLOSING", error=5, text="message: expected version 1, got 2")])
    with pytest.raises(wire.Closed, match="expected version 1") as closed:
        client.hello()
    assert closed.value.error == wire.ERRORS["SYNTAX"]


def test_closed_without_a_word(converse):
    client, _ = converse([])
    client.send("HELLO")
    with pytest.raises(wire.Closed) as closed:
        client.receive()
    assert closed.value.error is None


def test_look(converse):
    client, daemon = converse(
        [wire.encode("PAGE", 1, capacity=2, slots=[{"device": DEVICES[0]}], section=1, after=1)],
        [wire.encode("PAGE", 2, capacity=2, slots=[{"device": DEVICES[1]}], section=3, after=0)],
        [wire.encode("PAGE", 3, capacity=2, claims=[{"id": 9}])],
    )
    pool = client.look()
    assert [slot["device"]["id"] for slot in pool["slots"]] == ["nvidia0", "nvidia1"]
    assert pool["capacity"] == 2 and pool["claims"] == [{"id": 9}] and pool["leases"] == []
    assert [(page["section"], page["after"]) for page in daemon.received] == [(1, 0), (1, 1), (3, 0)]


def test_nobody_listens(tmp_path):
    with pytest.raises(FileNotFoundError):
        wire.connect(tmp_path / "absent")


def test_no_answer_in_time(converse):
    client, _ = converse([], [])
    client.send("HELLO")
    with pytest.raises(TimeoutError):
        client.receive(timeout=0)
    client.send("HELLO")
