# SPDX-License-Identifier: Apache-2.0
"""Limits hold for the person: the uids that /etc/subuid gives a user count as this user, and no user can take the
connections of all others."""
import json
import os
import signal
import subprocess

import pytest
import wire
from hostile_processes import SubordinateUsers
from machine_daemon import MachineDaemon
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

MALLORY, TRUDY, OSCAR, ALICE = 61001, 61002, 61003, 61004
FIRST = 165536
LIMIT = wire.ERRORS["LIMIT"]
# The daemon of these tests has room for this number of connections of ordinary users.
ALL = 344
EACH = 8


@pytest.fixture
def containers(sandbox):
    return SubordinateUsers(sandbox, MALLORY, FIRST)


@pytest.fixture
def machine_of(sandbox, pool_of):
    made = []

    def make(count, rules, **options):
        made.append(MachineDaemon(sandbox, pool_of(count).inventory))
        made[0].start(rules, **options)
        return made[0]

    yield make
    for machine in made:
        machine.end()


def limited(sandbox):
    """Return a berthd that may open few files."""
    berthd = subprocess.run(["sh", "-c", "command -v berthd"], env=sandbox.environment, capture_output=True, text=True)
    path = sandbox.directory / "limited"
    path.write_text(f'#!/bin/sh\nulimit -n 600\nexec {berthd.stdout.strip()} "$@"\n')
    path.chmod(0o755)
    return path


def claim(out, path, count, stays):
    """Claim within a container, write the type of the answer, and stay."""
    client = wire.connect(path)
    number = client.send_claim({"gpus_min": count, "gpus_max": count})
    print(client.receive(number, ("GRANTED", "WAITING", "REFUSED"))["type"], os.getuid(), file=out, flush=True)
    if stays:
        signal.pause()


def connect(out, path, count):
    """Open connections within a container, write how many are open and served, and stay."""
    served = 0
    clients = []
    for _ in range(count):
        try:
            clients.append(wire.connect(path))
            clients[-1].hello()
            served += 1
        except (OSError, wire.Closed):
            break
    print(served, file=out, flush=True)
    signal.pause()


def ask_for(containers, machine, uid, count, stays=True):
    """Claim as this uid of a container. Return the process and the type of the answer."""
    process = containers.run(uid, claim, machine.socket, count, stays)
    return process, process.read_line().split()[0]


def end_all(processes):
    for process in processes:
        process.kill()


def test_limit_of_devices(machine_of, containers):
    machine = machine_of(8, "limits: {each_user: 2}\nhistory: no\n")
    asked = [ask_for(containers, machine, FIRST + number, 2) for number in (0, 1, 1000, 65535)]
    end_all(process for process, _ in asked)
    assert [answer for _, answer in asked] == ["GRANTED", "WAITING", "WAITING", "WAITING"]


def test_a_user_and_its_containers(machine_of, containers):
    """The user counts together with the containers, and other users do not count."""
    machine = machine_of(8, "limits: {each_user: 2}\nhistory: no\n")
    with machine.connect(MALLORY) as mallory, machine.connect(ALICE) as alice:
        mallory.claim({"gpus_min": 2, "gpus_max": 2})
        process, answer = ask_for(containers, machine, FIRST + 5, 1)
        alice.claim({"gpus_min": 2, "gpus_max": 2})
        process.kill()
    assert answer == "WAITING"


@pytest.mark.parametrize("name", ["ann@corp", "root"])
def test_a_range_without_a_user(machine_of, containers, name):
    """The range of a name that only a name service knows, or of root, has the limits of one user."""
    containers.file.write_text(f"{name}:{FIRST}:65536\n")
    machine = machine_of(8, "limits: {each_user: 2}\nhistory: no\n")
    asked = [ask_for(containers, machine, FIRST + number, 2) for number in (0, 1, 65535)]
    end_all(process for process, _ in asked)
    assert [answer for _, answer in asked] == ["GRANTED", "WAITING", "WAITING"]


def test_history(machine_of, containers):
    """The history has the leases of containers as those of their user, whose data is deleted first if there is too
    much of it."""
    machine = machine_of(1, "")
    for number in (0, 65535):
        process, answer = ask_for(containers, machine, FIRST + number, 1)
        assert answer == "GRANTED"
        process.kill()

    def users():
        done = machine.berth(0, "history", "--json")
        return [lease["user"] for lease in json.loads(done.stdout)["leases"] if lease["end"] is not None]

    until(lambda: len(users()) == 2, "two leases")
    assert set(users()) == {str(MALLORY)}


def test_a_file_that_changes(machine_of, containers):
    """A range that is added later counts, without a restart or a reload."""
    containers.file.write_text("")
    machine = machine_of(8, "limits: {each_user: 2}\nhistory: no\n")
    first, answer = ask_for(containers, machine, FIRST, 2)
    assert answer == "GRANTED"
    first.kill()
    until(lambda: not machine.root.look()["leases"], "the end of the lease")
    containers.file.write_text(f"{MALLORY}:{FIRST}:65536\n")
    with machine.connect(MALLORY) as mallory:
        mallory.claim({"gpus_min": 2, "gpus_max": 2})

        def waits():
            process, answer = ask_for(containers, machine, FIRST + 1, 2, stays=False)
            process.kill()
            return answer == "WAITING"

        until(waits, "the new range", timeout=5)


def test_a_damaged_file(machine_of, containers):
    """Lines that are wrong have no effect; no line makes the daemon fail."""
    words = [f"{MALLORY}:{FIRST}", ":::", "x" * 70000, f"{MALLORY}:0:4294967296", f"{MALLORY}:-1:5", f"{MALLORY}:4294967295:9"]
    containers.file.write_bytes("\n".join(words).encode() + b"\n\0\xff:1:2\n")
    machine = machine_of(3, "limits: {each_user: 1}\nhistory: no\n")
    with machine.connect(MALLORY) as mallory, machine.connect(ALICE) as alice:
        mallory.claim()
        # No line makes these users count as MALLORY, who has all devices that one user may have.
        assert alice.claim()["devices"]
        process, answer = ask_for(containers, machine, FIRST, 1)
        process.kill()
    assert answer == "GRANTED"


def test_first_connections_of_each_user(machine_of, sandbox):
    """Three users take all connections that they can get. Everybody else still gets the first eight."""
    machine = machine_of(1, "history: no\n", program=limited(sandbox))
    clients = [machine.connect(MALLORY + number % 3) for number in range(ALL)]
    for uid in (ALICE, ALICE + 1, ALICE + 2):
        mine = [machine.connect(uid) for _ in range(EACH)]
        clients += mine
        for client in mine:
            assert client.hello()["type"] == "POOL"
    for client in clients:
        client.close()


def test_connections_of_containers(machine_of, containers, sandbox):
    """Four uids of one user's containers open as many connections as they can."""
    machine = machine_of(1, "history: no\nbounds: {connections: 100}\n", program=limited(sandbox))
    crowd = [containers.run(FIRST + number, connect, machine.socket, 100) for number in range(4)]
    served = [int(process.read_line()) for process in crowd]
    try:
        assert sum(served) <= 100 + 4 * EACH
        with machine.connect(ALICE) as alice:
            assert alice.hello()
    finally:
        end_all(crowd)
