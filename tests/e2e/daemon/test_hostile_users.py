# SPDX-License-Identifier: Apache-2.0
"""Users that try to take what belongs to other users: they get nothing, and they delay no other
user."""
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

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

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
    """No claim is granted within another user's lease."""
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
    """Start a process of this user with a lease's marks in its environment. The lease may belong
    to any user."""
    marks = {"BERTH_LEASE": str(lease), "BERTH_SOCKET": str(machine.socket)}
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        env=marks, cwd="/", user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.readline()
    process.stdout.close()
    return process


def hold_as(machine, uid):
    """Start a process of this user that holds a lease. Return both."""
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
    """A process with the marks of another user's lease neither delays the end of this lease nor is
    killed."""
    holder, lease = hold_as(machine, ALICE)
    planted = start_marked(machine, MALLORY, lease)
    end(holder)
    until(lambda: not leases(machine), "the end of the lease", timeout=5)
    assert planted.poll() is None
    planted.kill()
    planted.wait()


def test_marks_of_ones_own_lease(machine):
    """Processes with the lease's marks that its user started belong to the lease."""
    holder, lease = hold_as(machine, ALICE)
    left = start_marked(machine, ALICE, lease)
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
    """A lease that leaves very many processes uses a limited number of descriptors, and all
    processes end."""
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
    assert most < before + 530 + 1024  # that are watched, and an answer about processes
    until(lambda: descriptors(machine.daemon.pid) <= before, "the descriptors of before")
    for pid, zombie in processes.descendants(os.getpid()):
        if zombie:
            os.waitpid(pid, 0)


# ---- Names of devices ----


# A daemon that waits for the answer about a name waits for this long.
PAUSE = 0.3


def keep_name(path, name):
    """Bind the kernel-wide name of a device, and let each client wait for a while before its connection is closed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(name)
        listener.listen()
        path.touch()
        while True:
            asker, _ = listener.accept()
            time.sleep(PAUSE)
            asker.close()


def test_names_that_somebody_keeps(machine):
    """A user has a device's name before the daemon starts. The daemon grants the device all the same, waits for no
    answer, and takes the name once it is free."""
    machine.root.close()
    machine.close()
    name = f"\0berth/{fnv1a(os.path.realpath(machine.inventory).encode()):016x}/nvidia3".encode()
    kept = machine.sandbox.directory / "home" / "kept"
    kept.parent.chmod(0o777)
    keeper = OtherUser(MALLORY, keep_name, kept, name)
    until(kept.exists, "the name")
    machine.start()
    times = []
    with machine.connect(ALICE) as alice:
        for _ in range(150):
            began = time.monotonic()
            alice.release(alice.claim({"wanted": ["nvidia3"]})["id"])
            times.append(time.monotonic() - began)
            assert keeper.runs(0.01)  # a pause in which the daemon may serve other users
        keeper.kill()
        times.sort()
        assert times[len(times) * 9 // 10] < PAUSE / 2
        check_longest(times)
    assert daemon_log.wait_for(machine.log, "name", 2)[-1].values["what"] == "ours"


# ---- Connections passed to another process ----


def test_connection_in_other_hands(machine):
    """The daemon uses the credentials of the process that connected, not of the process that
    sends: its user, and its process for leases held by a process."""
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
    # The process that connected has ended and cannot hold anything, even if its pid is in use
    # again.
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
    """Clients that claim for their process and exit before the grant leave nothing behind."""
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
