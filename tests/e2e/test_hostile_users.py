# SPDX-License-Identifier: Apache-2.0
"""Users that want what is others': nothing of it is given, and nobody waits for them."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import daemon_log
import processes
import pytest
import wire
from machine_daemon import MachineDaemon
from other_users import OtherUser, acting_as
from pool import fnv1a
from process_size import descriptors
from wait_times import check_longest
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")

MALLORY, ALICE = 61001, 61004
PROCESS = wire.HOLDS["PROCESS"]


@pytest.fixture
def machine(sandbox, pool_of):
    made = MachineDaemon(sandbox, pool_of(4).inventory)
    made.start()
    yield made
    made.end()


def leases(machine):
    return {lease["id"]: lease for lease in machine.root.look()["leases"]}


def test_lease_of_somebody_else(machine):
    """Nothing is granted within it."""
    with machine.connect(ALICE) as alice, machine.connect(MALLORY) as mallory:
        lease = alice.claim({"gpus_min": 4, "gpus_max": 4})["id"]
        with pytest.raises(wire.Refused) as refused:
            mallory.claim({}, parent=lease)
        assert refused.value.error == wire.ERRORS["PERMISSION"]
        done = machine.berth(MALLORY, "run", "true", env={"BERTH_LEASE": lease})
        assert done == (125, "", f"berth: run: BERTH_LEASE: lease {lease} belongs to another user\n")
        assert list(leases(machine)) == [lease]


SLEEPER = "import signal; print('ready', flush=True); signal.pause()"


def start_marked(machine, uid, lease):
    """A process of this user with a lease's marks in its environment, whoever's that is."""
    marks = {"BERTH_LEASE": str(lease), "BERTH_SOCKET": str(machine.socket)}
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        env=marks, cwd="/", user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.readline()
    process.stdout.close()
    return process


def hold_as(machine, uid):
    """A process of this user that holds a lease. Returns both."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        client = wire.connect(machine.socket)
        os.write(write, str(client.claim({}, hold=PROCESS)["id"]).encode())
        signal.pause()
    lease = int(os.read(read, 100))
    os.close(read)
    os.close(write)
    return pid, lease


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_marks_of_somebody_elses_lease(machine):
    """A process that says it is of another user's lease does not keep that from ending, nor is it ended."""
    holder, lease = hold_as(machine, ALICE)
    planted = start_marked(machine, MALLORY, lease)
    end(holder)
    until(lambda: not leases(machine), "the end of the lease", timeout=5)
    assert planted.poll() is None
    planted.kill()
    planted.wait()


@pytest.mark.parametrize("uid", [ALICE, 0])
def test_marks_of_ones_own_lease(machine, uid):
    """What the lease's user, or root, has started with its marks is of the lease."""
    holder, lease = hold_as(machine, ALICE)
    left = start_marked(machine, uid, lease)
    end(holder)
    assert left.wait(10) == -signal.SIGTERM
    until(lambda: not leases(machine), "the end of the lease", timeout=5)


MANY = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(700):
    if os.fork() == 0:
        signal.pause()
print("ready", flush=True)
signal.pause()
"""


def test_more_processes_than_descriptors_for_them(machine):
    """A lease that leaves very many processes takes only so many descriptors, and all of them end."""
    machine.reload("grace: 3s\nhistory: no\n")
    before = descriptors(machine.daemon.pid)
    environment = machine.sandbox.environment
    holder = subprocess.Popen(
        ["berth", "run", sys.executable, "-c", MANY], env=environment, cwd="/", stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"ready\n"
    holder.stdout.close()
    holder.kill()
    holder.wait()
    until(lambda: descriptors(machine.daemon.pid) > before + 500, "many descriptors")
    most = 0
    while leases(machine):
        most = max(most, descriptors(machine.daemon.pid))
    assert most < before + 530
    until(lambda: descriptors(machine.daemon.pid) <= before, "the descriptors of before")
    for pid, zombie in processes.descendants(os.getpid()):
        if zombie:
            os.waitpid(pid, 0)


# ---- Names of devices ----


def keep_name(path, name, seconds):
    """Has the kernel-wide name of a device, and takes its time to say nothing to whoever asks."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(name)
        listener.listen()
        path.touch()
        until = time.monotonic() + seconds
        listener.settimeout(seconds)
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                asker, _ = listener.accept()
                time.sleep(0.15)
                asker.close()


def test_names_that_somebody_keeps(machine):
    """Whoever says that a device is used elsewhere has it; but nobody waits long for the word."""
    name = f"\0berth/{fnv1a(os.path.realpath(machine.inventory).encode()):016x}/nvidia3".encode()
    kept = machine.sandbox.directory / "home" / "kept"
    kept.parent.chmod(0o777)
    keeper = OtherUser(MALLORY, keep_name, kept, name, 3)
    until(kept.exists, "the name")
    times = []
    with machine.connect(ALICE) as alice:
        for _ in range(150):
            began = time.monotonic()
            alice.release(alice.claim({"wanted": ["nvidia0"]})["id"])
            times.append(time.monotonic() - began)
            keeper.runs(0.01)  # others may ask meanwhile
        times.sort()
        assert times[len(times) // 2] < 0.05
        assert times[len(times) * 9 // 10] < 0.05
        check_longest(times)
        keeper.kill()
        alice.claim({"wanted": ["nvidia3"]})


# ---- A connection in other hands ----


def test_connection_in_other_hands(machine):
    """Whoever connected is who is there, whoever talks: its user, and its process for what a process holds."""
    ours, theirs = socket.socketpair()
    connector = OtherUser(ALICE, connect_and_hand_over, machine.socket, theirs)
    _, (descriptor,), _, _ = socket.recv_fds(ours, 100, 1)
    client = wire.connect(machine.socket)
    client.socket.close()
    client.socket = socket.socket(fileno=descriptor)
    with acting_as(MALLORY):
        lease = client.claim({}, hold=PROCESS, pid=None)["id"]
    assert leases(machine)[lease]["uid"] == ALICE
    assert leases(machine)[lease]["pid"] == connector.pid
    connector.kill()
    until(lambda: not leases(machine), "the end of the lease", timeout=5)
    # Nobody is there any more who could hold anything, whatever has its number now.
    number = client.send_claim({}, hold=PROCESS)
    client.receive(number)
    until(lambda: not leases(machine), "the end of the lease", timeout=5)
    assert daemon_log.wait_for(machine.log, "ended", 2)[-1].values["reason"] == "its holder ended"
    client.close()
    ours.close()
    theirs.close()


def connect_and_hand_over(path, to):
    with wire.connect(path) as client:
        socket.send_fds(to, [b"x"], [client.fileno()])
        signal.pause()


def test_gone_at_once(machine):
    """Clients that claim for their process and are gone before it is granted leave nothing."""
    machine.reload("history: no\n")
    before = descriptors(machine.daemon.pid)
    for _ in range(3):
        children = []
        for _ in range(20):
            children.append(OtherUser(MALLORY, claim_and_go, machine.socket))
        for child in children:
            child.result()
    until(lambda: not leases(machine), "the end of the leases", timeout=10)
    assert machine.root.hello().get("pending", 0) == 0
    until(lambda: descriptors(machine.daemon.pid) <= before, "the descriptors of before")


def claim_and_go(path):
    client = wire.connect(path)
    for _ in range(3):
        client.send_claim({}, hold=PROCESS)
    client.close()
