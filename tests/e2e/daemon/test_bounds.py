# SPDX-License-Identifier: Apache-2.0
"""Limits per user: one user cannot take all of the daemon's resources."""
import contextlib
import os
import select
import signal
import socket
import statistics
import subprocess
import time

import daemon_log
import pytest
import wire
from machine_daemon import MachineDaemon
from other_users import OtherUser
from process_size import descriptors, resident
from wait_times import STALLED, check_longest
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

MALLORY, TRUDY, OSCAR, ALICE = 61001, 61002, 61003, 61004
LIMIT = wire.ERRORS["LIMIT"]
WAITING_WORDS = "too many queued claims, pending requests and inner leases of one user: the maximum is {}"

# A message of a user takes a few milliseconds while other users flood the daemon, and several
# times as long with sanitizers.
USUAL = 0.05


@pytest.fixture
def machine(sandbox, pool_of):
    made = MachineDaemon(sandbox, pool_of(4).inventory)
    yield made
    made.end()


def expect_limit(client, words=""):
    """Expect the daemon to close the connection because of a limit, with these words."""
    with pytest.raises(wire.Closed) as closed:
        client.receive()
    assert closed.value.error == LIMIT
    assert closed.value.text == words
    client.close()


def expect_refusal(words, ask, *args, **values):
    with pytest.raises(wire.Refused) as refused:
        ask(*args, **values)
    assert refused.value.error == LIMIT
    assert refused.value.text == words


def close_all(clients):
    for client in clients:
        client.close()


def queue_claim(client, request):
    return client.receive(client.send_claim(request), kinds=("WAITING", "REFUSED"))


# ---- Connections ----


def test_connections(machine):
    machine.start()
    words = "too many connections of one user: the maximum is 1000"
    clients = [machine.connect(MALLORY) for _ in range(1000)]
    clients[0].hello()
    clients[-1].hello()
    for _ in range(3):
        expect_limit(machine.connect(MALLORY), words)
    with machine.connect(ALICE) as other, wire.connect(machine.socket) as root:
        other.hello()
        root.hello()
    clients.pop().close()
    until(lambda: machine.root.hello(), "an answer")
    with machine.connect(MALLORY) as again:
        again.hello()
    close_all(clients)
    reasons = daemon_log.wait_for(machine.log, "closing", 3)
    assert [reason.values["reason"] for reason in reasons] == [words] * 3
    assert reasons[0].values["uid"] == str(MALLORY)


def test_command_of_one_too_many(machine):
    """berth prints the daemon's message to the user."""
    machine.start("bounds: {connections: 1}\n")
    with machine.connect(MALLORY) as first:
        first.hello()
        done = machine.berth(MALLORY, "run", "true")
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr == "berth: run: too many connections of one user: the maximum is 1\n"
    # The daemon drops the first connection when it notices the close.
    until(lambda: machine.berth(MALLORY, "run", "true").code == 0, "a free connection")


def test_connections_of_all(sandbox, pool_of):
    """The connections of all users leave descriptors for the daemon, root and the owner."""
    made = MachineDaemon(sandbox, pool_of(1).inventory)
    berthd = subprocess.run(["sh", "-c", "command -v berthd"], env=sandbox.environment, capture_output=True, text=True)
    limited = sandbox.directory / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -n 600\nexec {berthd.stdout.strip()} "$@"\n')
    limited.chmod(0o755)
    made.start(program=limited)
    clients = [made.connect(MALLORY + i % 3) for i in range(344)]
    expect_limit(made.connect(MALLORY), "too many connections: the maximum is 344")
    more = [wire.connect(made.socket) for _ in range(150)]
    assert all(client.hello() for client in more)
    close_all(more)
    close_all(clients)
    made.end()


# ---- Waiting claims ----


def test_waiting(machine):
    machine.start()
    machine.root.claim({"wanted": ["nvidia0"]})
    words = WAITING_WORDS.format(1000)
    with machine.connect(MALLORY) as mallory, machine.connect(ALICE) as alice:
        mine = [queue_claim(mallory, {"wanted": ["nvidia0"], "name": f"n{i}"})["id"] for i in range(998)]
        mallory.send("WATCH", id=mine[0])
        mallory.send("TEST", request={"wanted": ["nvidia0"]})
        expect_refusal(words, mallory.claim, {"wanted": ["nvidia0"]})
        expect_refusal(words, mallory.test, {"wanted": ["nvidia0"]})
        expect_refusal(words, mallory.watch, mine[1])
        with machine.connect(MALLORY) as another:
            expect_refusal(words, another.claim, {"wanted": ["nvidia0"]})
        # A claim that is granted at once does not count as waiting.
        mallory.release(mallory.claim({"wanted": ["nvidia1"]})["id"])
        queue_claim(alice, {"wanted": ["nvidia0"]})
        mallory.cancel(mine[5])
        assert queue_claim(mallory, {"wanted": ["nvidia0"]})["type"] == "WAITING"
        expect_refusal(words, mallory.claim, {"wanted": ["nvidia0"]})
    until(lambda: machine.root.hello().get("pending", 0) == 0, "an empty queue")
    with machine.connect(MALLORY) as mallory:
        assert queue_claim(mallory, {"wanted": ["nvidia0"]})["type"] == "WAITING"


def test_waiting_beyond_a_restart(machine):
    machine.start("bounds: {waiting: 3}\n")
    machine.root.claim({"gpus_min": 4, "gpus_max": 4}, hold=wire.HOLDS["PROCESS"])
    with machine.connect(MALLORY) as mallory:
        for _ in range(3):
            queue_claim(mallory, {})
        os.kill(machine.daemon.pid, signal.SIGKILL)
        machine.daemon.wait()
        machine.root.close()
        machine.start("bounds: {waiting: 3}\n")
        with machine.connect(MALLORY) as again:
            assert again.hello()["pending"] == 3
            expect_refusal(WAITING_WORDS.format(3), again.claim)


def test_large_requests(machine):
    """A thousand lists of four thousand ids each would use much memory."""
    machine.start()
    machine.root.claim({"wanted": ["nvidia0"]})
    before = resident(machine.daemon.pid)
    ids = [f"nvidia{i}" for i in range(4, 4090)]
    words = "too many bytes of pending requests of one user: the maximum is 8 MiB"
    with machine.connect(MALLORY) as mallory:
        types = []
        for i in range(300):
            types.append(queue_claim(mallory, {"wanted": ["nvidia0"], "avoided": ids, "name": f"n{i}"})["type"])
            if types[-1] == "REFUSED":
                break
        assert 200 < len(types) < 300
        expect_refusal(words, mallory.claim, {"wanted": ["nvidia0"], "avoided": ids})
        assert queue_claim(mallory, {"wanted": ["nvidia0"]})["type"] == "WAITING"
        assert resident(machine.daemon.pid) < before + 64 * 1024


def test_leases_within_leases(machine):
    machine.start("bounds: {waiting: 20}\n")
    with machine.connect(MALLORY) as mallory:
        leases = [mallory.claim({})["id"]]
        for _ in range(20):
            leases.append(mallory.claim({}, parent=leases[-1])["id"])
        expect_refusal(WAITING_WORDS.format(20), mallory.claim, {}, parent=leases[-1])
        expect_refusal(WAITING_WORDS.format(20), mallory.claim, {}, parent=leases[0])
        mallory.release(leases[-1])
        mallory.claim({}, parent=leases[-2])
        mallory.release(leases[0])
        lease = mallory.claim({})["id"]
        mallory.claim({}, parent=lease)


def test_rules_of_later(machine):
    """Lower limits drop nothing; higher limits apply at once."""
    machine.start()
    machine.root.claim({"gpus_min": 4, "gpus_max": 4})
    clients = [machine.connect(MALLORY) for _ in range(10)]
    for client in clients:
        queue_claim(client, {})
    machine.reload("bounds: {connections: 5, waiting: 5, messages: 1}\n")
    expect_limit(machine.connect(MALLORY), "too many connections of one user: the maximum is 5")
    assert machine.root.hello()["pending"] == 10
    numbers = [clients[0].send_claim() for _ in range(30)]  # at one message per second
    machine.reload("bounds: {connections: 11, waiting: 11, messages: 100000}\n")
    began = time.monotonic()
    answers = [clients[0].receive(number) for number in numbers]
    assert time.monotonic() - began < STALLED
    assert [answer["type"] for answer in answers].count("WAITING") == 1
    with machine.connect(MALLORY) as one_more:
        one_more.hello()
    close_all(clients)


# ---- Messages ----


def say_often(path, count, connections):
    """Send HELLO `count` times on `connections` connections and read every answer. Return how long
    it took."""
    clients = [wire.connect(path, timeout=60) for _ in range(connections)]
    began = time.monotonic()
    for _ in range(count // connections // 10):
        for client in clients:
            for _ in range(10):
                client.send("HELLO")
        for client in clients:
            for _ in range(10):
                client.receive(kinds=("POOL",))
    return time.monotonic() - began


def test_messages(machine):
    """The daemon refuses no message because of its rate. It only slows down users that send too
    fast."""
    machine.start("bounds: {messages: 1000}\n")
    with machine.connect(ALICE) as alice:
        flood = OtherUser(MALLORY, say_often, machine.socket, 2500, 5)
        times = []
        while flood.runs(0.003):
            times.append(timed(alice.hello))
        took = flood.result()
    # The daemon handles a burst of one second's messages at once.
    assert 1.2 < took < 30
    assert statistics.median(times) < USUAL
    check_longest(times)


def test_last_words_of_a_fast_one(machine):
    """The daemon handles every message that was sent before the connection closed, even if much
    later."""
    machine.start("bounds: {messages: 1}\n")
    section = wire.SECTIONS["LEASES"]
    with machine.connect(MALLORY) as fast:
        with machine.connect(MALLORY) as brief:
            lease = brief.claim({})["id"]
            machine.root.hello()  # otherwise `brief`, as the last sender, would be first
            os.kill(machine.daemon.pid, signal.SIGSTOP)
            os.waitpid(machine.daemon.pid, os.WUNTRACED)
            for _ in range(20):
                fast.send("HELLO")
            brief.send("RELEASE", number=0, id=lease, exit_code=7)
        number = machine.root.send("LOOK", section=section, sections=1 << section)
        os.kill(machine.daemon.pid, signal.SIGCONT)
        # The RELEASE waits for its turn behind the first HELLO. The daemon has not yet noticed that
        # its connection is closed.
        assert [entry["id"] for entry in machine.root.answer(number, ("PAGE",))["leases"]] == [lease]
        ended = machine.root.watch(lease)
        assert (ended["end"], ended["exit_code"]) == (wire.ENDS["RELEASED"], 7)


def timed(function, *args):
    began = time.monotonic()
    function(*args)
    return time.monotonic() - began


def test_dear_questions(machine):
    """A thousand different claims wait and their reasons are requested repeatedly; a thousand
    claims only test."""
    machine.start()
    machine.root.claim({"wanted": ["nvidia0"]})
    with machine.connect(MALLORY) as mallory, machine.connect(TRUDY) as trudy:
        with machine.connect(OSCAR) as oscar, machine.connect(ALICE) as alice:
            for i in range(900):
                queue_claim(mallory, {"gpus_min": 2, "gpus_max": 2, "wanted": ["nvidia0", "nvidia1"], "name": f"n{i}"})
                trudy.send("TEST", request={"gpus_min": 4, "gpus_max": 4, "name": f"n{i}"})
            mine = {"wanted": ["nvidia3"]}
            times = []
            for _ in range(60):
                oscar.send("LOOK", section=wire.SECTIONS["QUEUE"], after=200)
                times.append(timed(lambda: alice.release(alice.claim(mine)["id"])))
            assert statistics.median(times) < USUAL
            check_longest(times)
            queue = machine.root.look()["claims"]
            assert [claim["position"] for claim in queue] == list(range(1, 901))
            assert all(claim["why"] and claim["request"] for claim in queue)
            assert "before it" in queue[100]["why"]
            assert queue[800]["why"] == "it is far back in the queue"


# ---- Unread answers ----


def test_unread_answers(sandbox, pool_of):
    names = "".join(f"- {{vendor: nvidia, index: {i}, name: {'x' * 200}, uuid: GPU-{i}}}\n" for i in range(200))
    made = MachineDaemon(sandbox, pool_of(f"devices:\n{names}").inventory)
    made.start()
    before = resident(made.daemon.pid)
    clients = [made.connect(MALLORY) for _ in range(6)]
    clients[0].send("LOOK", section=wire.SECTIONS["DEVICES"])
    size = len(clients[0].socket.recv(wire.MESSAGE_MOST))
    pages = (7 * 1024 * 1024 // 2) // size  # below 4 MiB for each connection, above 16 MiB for all
    for _ in range(pages):
        for client in clients:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.send("LOOK", section=wire.SECTIONS["DEVICES"])
    line = until(lambda: made.lines("closing"), "the end of one connection")[0]
    assert f"uid={MALLORY}" in line
    assert 'reason="the client does not read its answers"' in line
    assert resident(made.daemon.pid) < before + 32 * 1024
    made.root.hello()
    # The other connections stay open and can still be read.
    alive = [client for client in clients if is_open(client)]
    until(lambda: len(alive) == len(clients) - len(made.lines("closing")), "the other closed connections in the log")
    assert len(alive) >= 3
    close_all(clients)
    made.end()


def is_open(client):
    try:
        return client.hello()
    except (OSError, wire.Closed):
        return False


# ---- Remembered ends of leases ----


def test_ends_of_others(machine):
    """A user who ends a thousand leases does not make the daemon forget how other users' leases
    ended."""
    machine.start()
    with machine.connect(ALICE) as alice, machine.connect(MALLORY) as mallory:
        lease = alice.claim({})["id"]
        alice.release(lease, exit_code=7)
        for _ in range(1100):
            mallory.send("RELEASE", number=0, id=mallory.claim({})["id"])
        assert alice.watch(lease)["exit_code"] == 7


# ---- The log ----


def test_lines_of_the_log(machine):
    """The number of log lines that a user can cause without a grant is limited."""
    machine.start("bounds: {connections: 1}\n")
    with machine.connect(MALLORY):
        for _ in range(200):
            expect_limit(machine.connect(MALLORY), "too many connections of one user: the maximum is 1")
    until(
        lambda: written_and_left_out(machine) == 200,
        lambda: f"200 lines, written or left out: {written_and_left_out(machine)} {machine.log.read_text()[-600:]}",
    )
    assert f"uid={MALLORY} " in machine.lines("left_out")[0]
    assert 50 <= len(machine.lines("closing")) < 150


def test_lines_about_leases(machine):
    """Very many leases of one user do not wash the lines of other users out of the log."""
    machine.start("history: no\n")
    with machine.connect(MALLORY) as mallory, machine.connect(ALICE) as alice:
        for _ in range(600):
            mallory.release(mallory.claim()["id"])
        alice.release(alice.claim()["id"])
    until(lambda: machine.entries("left_out"), "a line about lines that were left out")
    until(lambda: [e for e in machine.entries("ended") if e.values["uid"] == str(ALICE)], "the end of a lease")
    lines = machine.entries("granted") + machine.entries("ended")
    assert 500 <= len([line for line in lines if line.values["uid"] == str(MALLORY)]) < 600
    assert len([line for line in lines if line.values["uid"] == str(ALICE)]) == 2


def written_and_left_out(machine):
    left_out = sum(int(entry.values["lines"]) for entry in machine.entries("left_out"))
    return len(machine.lines("closing")) + left_out


# ---- Twenty thousand attempts ----

TRIES = 20000


def connect_often(path):
    """Open many connections: some stay silent, some close, some send half a message."""
    kept, refused = [], 0
    for i in range(TRIES):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.setblocking(False)
        try:
            client.connect(str(path))
        except BlockingIOError:
            refused += 1
            client.close()
            continue
        if i % 3 == 0 and len(kept) < 2000:
            kept.append(client)
            continue
        if i % 3 == 1:
            try:
                client.send(b"\1\2\0")
            except OSError:
                pass
        client.close()
    return len(kept), refused


def claim_often(path):
    """Claim devices that others hold, cancel some of these claims, and wait for no answer."""
    client = wire.connect(path, timeout=60)
    claim = {"gpus_min": 3, "gpus_max": 3, "wanted": ["nvidia0", "nvidia1", "nvidia2"]}
    refused = granted = 0
    for i in range(TRIES // 10):
        for j in range(10):
            client.send_claim({**claim, "name": f"n{i}-{j}"})
        for _ in range(10):
            answer = client.receive(kinds=("WAITING", "REFUSED", "GRANTED"))
            refused += answer.get("error") == LIMIT
            granted += answer["type"] == "GRANTED"
            if answer["type"] == "WAITING" and i % 5:
                client.send("CANCEL", number=0, id=answer["id"])
    return refused, granted


def talk_often(path):
    """Send every kind of question on many connections, and read the answers only from time to
    time."""
    clients = [wire.connect(path, timeout=60) for _ in range(200)]
    kinds = [("HELLO", {}), ("LOOK", {"section": 1}), ("LOOK", {"section": 3}), ("EXPLAIN", {"id": 3})]
    kinds += [("WATCH", {"id": 1}), ("TEST", {"request": {"nonblock": 1}}), ("STOP", {"id": 1}), ("CANCEL", {"id": 2})]
    packets = [wire.encode(kind, 1, **values) for kind, values in kinds]
    for i in range(TRIES):
        client = clients[i % len(clients)]
        client.send_raw(packets[i % len(packets)])
        if i % 10 == 9:
            while select.select([client], [], [], 0)[0]:
                client.socket.recv(wire.MESSAGE_MOST)
    return True


def served_times(machine, alice, goes_on):
    """Measure how long an ordinary user's claims and commands take while `goes_on` returns true."""
    claims, commands = [], []
    while goes_on(len(claims)):
        claims.append(timed(lambda: alice.release(alice.claim({"wanted": ["nvidia3"]})["id"])))
        if len(claims) % 10 == 1:
            began = time.monotonic()
            done = machine.berth(ALICE, "run", "--device", "nvidia3", "true")
            commands.append(time.monotonic() - began)
            assert (done.code, done.stderr) == (0, "")
    return claims, commands


def test_twenty_thousand_tries(machine):
    machine.start()
    machine.root.claim({"gpus_min": 3, "gpus_max": 3})
    with machine.connect(ALICE) as alice:
        served_times(machine, alice, lambda count: count < 20)
        daemon_log.wait_for(machine.log, "recorder", what="started")
        before = descriptors(machine.daemon.pid), resident(machine.daemon.pid)
        floods = [
            OtherUser(MALLORY, connect_often, machine.socket),
            OtherUser(TRUDY, claim_often, machine.socket),
            OtherUser(OSCAR, talk_often, machine.socket),
        ]
        claims, commands = served_times(machine, alice, lambda _: any(flood.runs(0.005) for flood in floods))
        (kept, _), (refused, granted), _ = (flood.result() for flood in floods)
        assert kept >= 1000
        assert refused > 1000
        assert granted == 0
        assert len(claims) > 20
        assert statistics.median(claims) < USUAL
        assert statistics.median(commands) < 10 * USUAL
        check_longest(claims)
        check_longest(commands)
        # The daemon keeps nothing of the attack.
        seen = until(lambda: nothing_waits(machine), "an empty queue")
        assert [lease.get("uid", 0) for lease in seen["leases"]] == [0]
        until(lambda: descriptors(machine.daemon.pid) <= before[0], "the earlier number of descriptors")
        assert resident(machine.daemon.pid) < before[1] + 24 * 1024
        assert machine.socket.with_suffix(".journal").stat().st_size < 16 * 1024 * 1024
        assert machine.log.stat().st_size < 4 * 1024 * 1024


def nothing_waits(machine):
    seen = machine.root.look()
    return seen if not seen["claims"] else None
