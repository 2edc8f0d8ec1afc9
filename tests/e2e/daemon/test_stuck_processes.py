# SPDX-License-Identifier: Apache-2.0
"""Processes inside execve, whose files in /proc make their reader sleep: the daemon serves all users, and leases end.

While the stuck processes exist, every program of the machine hangs that reads all of /proc. So they exist only for a
moment, and this file runs alone."""
import os
import select
import signal
import statistics
import time

import processes
import pytest
import wire
from hostile_processes import LargeExec, StuckProcesses
from machine_daemon import MachineDaemon
from holders import Holders
from waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

MALLORY, ALICE, CAROL = 61001, 61004, 61005
PROCESS = wire.HOLDS["PROCESS"]
# A daemon that waits for a stuck process does not answer at all. The longest wait of a busy machine is far shorter.
ANSWERS = 2.0
# Usual time from the end of a lease to the next grant; bench/run measures it on a quiet machine.
USUAL = 0.05
# The daemon looks at all processes when it no longer knows one that is a little older than the lease.
OLD = 2.2


@pytest.fixture(params=["new", "old"])
def kernel(request, sandbox):
    """With and without the kernel's newest queries of processes."""
    if request.param == "old":
        sandbox.environment["BERTH_READER_OLD_KERNEL"] = "1"


@pytest.fixture
def machine_of(sandbox, pool_of):
    made = []

    def make(count, rules="history: no\n"):
        made.append(MachineDaemon(sandbox, pool_of(count).inventory))
        made[0].start(rules)
        return made[0]

    yield make
    for machine in made:
        until(machine.serves, "a daemon that serves")
        machine.end()


def devices(count):
    return [f"nvidia{index}" for index in range(count)]


def time_of_grants(holders, client, names):
    """End the leases of these devices one by one, while another user waits for each. Return the times from the end of
    the holder to the next grant."""
    numbers = {name: client.send_claim({"wanted": [name]}) for name in names}
    for number in numbers.values():
        client.receive(number, kinds=("WAITING",))
    times = []
    for name, number in numbers.items():
        began = time.monotonic()
        holders.kill(name)
        client.granted(number, timeout=ANSWERS)
        times.append(time.monotonic() - began)
    return times


def test_end_of_anothers_lease(machine_of, kernel):
    machine = machine_of(1)
    with machine.connect(CAROL) as carol, Holders(machine.socket, ALICE, ["nvidia0"]) as holders:
        until(lambda: holders.age() > OLD, "a lease that is old enough")
        with StuckProcesses(machine.sandbox, MALLORY):
            time_of_grants(holders, carol, ["nvidia0"])


def test_a_hundred_stuck_processes_and_a_hundred_leases(machine_of, kernel):
    machine = machine_of(100)
    names = devices(100)
    with machine.connect(CAROL) as carol, Holders(machine.socket, ALICE, names) as holders:
        until(lambda: holders.age() > OLD, "leases that are old enough")
        with StuckProcesses(machine.sandbox, MALLORY, count=100):
            times = time_of_grants(holders, carol, names)
        assert statistics.median(times) < USUAL
        assert max(times) < ANSWERS / 2


def test_end_of_a_lease_of_roots(machine_of, kernel):
    """Descendants of root's leases may have any uid. The search for them stalls at no process of another user."""
    machine = machine_of(1, "history: no\ngrace: 200ms\n")
    with machine.connect(CAROL) as carol, Holders(machine.socket, 0, ["nvidia0"]) as holders:
        marks = {"BERTH_LEASE": holders.leases["nvidia0"][0], "BERTH_SOCKET": machine.socket}
        variables = [f"{name}={value}" for name, value in marks.items()]
        left = machine.sandbox.start(["env", *variables, "sh", "-c", "trap : TERM; echo left; while :; do sleep 0.1; done"])
        left.wait_for_line("^left$")
        with StuckProcesses(machine.sandbox, MALLORY, count=70):
            time_of_grants(holders, carol, ["nvidia0"])
            assert processes.is_ended(left.pid, 0)
        left.stop()
    assert not machine.lines("stalled")


def test_end_of_ones_own_lease(machine_of, kernel):
    """The stuck process may belong to the lease, or not: its environment cannot be read. Only its own user's lease may
    wait for it."""
    machine = machine_of(2)
    with machine.connect(CAROL) as carol, Holders(machine.socket, MALLORY, ["nvidia0"]) as holders:
        lease, _ = holders.leases["nvidia0"]
        marks = {"BERTH_LEASE": lease, "BERTH_SOCKET": machine.socket}
        with StuckProcesses(machine.sandbox, MALLORY, variables=marks):
            number = carol.send_claim({"wanted": ["nvidia0"]})
            carol.receive(number, kinds=("WAITING",))
            holders.kill("nvidia0")
            deadline = time.monotonic() + ANSWERS
            while time.monotonic() < deadline:
                assert carol.ask("HELLO", "POOL", timeout=ANSWERS)
                with machine.connect(ALICE) as alice:
                    alice.release(alice.claim({"wanted": ["nvidia1"]}, timeout=ANSWERS)["id"])
                time.sleep(0.01)  # a pause in which the daemon is idle
        carol.granted(number)


def end_and_claim_at_once(holders, client, name):
    """End the lease of this device, and claim the device without waiting. Return whether it was granted."""
    process = os.pidfd_open(holders.leases[name][1])
    holders.kill(name)
    select.select([process], [], [])
    os.close(process)
    answer = client.receive(client.send_claim({"wanted": [name], "nonblock": 1}), kinds=("GRANTED", "REFUSED"))
    return answer["type"] == "GRANTED"


def test_claims_without_waiting_beside_ones_own_stuck_process(machine_of, kernel):
    """A stuck process that is known delays no later search, and claims of its own user still wait for the searches."""
    machine = machine_of(8)
    names = devices(8)
    with machine.connect(MALLORY) as mallory, Holders(machine.socket, MALLORY, names) as holders:
        with StuckProcesses(machine.sandbox, MALLORY):
            holders.kill(names[0])
            mallory.claim({"wanted": [names[0]]}, timeout=ANSWERS)
            granted = [end_and_claim_at_once(holders, mallory, name) for name in names[1:]]
    # A busy machine may take more than the 50 ms that such a claim waits.
    assert granted.count(True) > len(granted) / 2


@pytest.mark.parametrize("uid", [MALLORY, 0])
def test_adopting_a_stuck_process(machine_of, uid, kernel):
    machine = machine_of(2)
    with machine.connect(uid) as client, machine.connect(ALICE) as alice:
        with StuckProcesses(machine.sandbox, MALLORY) as stuck:
            number = client.send_claim({"wanted": ["nvidia0"]}, hold=PROCESS, pid=stuck.pids[0], started=0)
            for _ in range(20):
                assert alice.release(alice.claim({"wanted": ["nvidia1"]}, timeout=ANSWERS)["id"])
            refused = client.receive(number, kinds=("GRANTED", "REFUSED"))
    assert (refused["type"], refused["error"]) == ("REFUSED", wire.ERRORS["BUSY"])
    assert f"cannot adopt process {stuck.pids[0]}: it does not answer" in refused["text"]


def test_restart(machine_of, kernel):
    """A daemon that restores a lease whose holder has ended starts beside a stuck process."""
    machine = machine_of(2)
    with Holders(machine.socket, ALICE, ["nvidia0"]) as holders:
        until(lambda: holders.age() > OLD, "a lease that is old enough")
        machine.close(signal.SIGKILL)
        machine.root.close()
        holders.kill("nvidia0")
        with StuckProcesses(machine.sandbox, MALLORY, count=10):
            machine.start("history: no\n", timeout=ANSWERS)
            with machine.connect(CAROL) as carol:
                carol.release(carol.claim({"wanted": ["nvidia0"]}, timeout=ANSWERS)["id"])


def test_exec_of_a_large_process(machine_of, capsys):
    """The kernel frees the memory within execve: about 75 ms for each GiB. No other user waits for that."""
    machine = machine_of(8)
    names = devices(8)
    with machine.connect(CAROL) as carol, Holders(machine.socket, ALICE, names) as holders:
        until(lambda: holders.age() > OLD, "leases that are old enough")
        with LargeExec(machine.sandbox, MALLORY) as large:
            large.execute()
            times = time_of_grants(holders, carol, names)
    with capsys.disabled():
        print(f"# an exec of {large.mib} MiB: the longest of {len(times)} grants took {max(times) * 1000:.1f} ms")
    assert max(times) < 0.1, f"beside an exec of {large.mib} MiB"


def test_processes_in_state_d(machine_of, kernel):
    """Processes of another user that no signal ends delay nothing."""
    machine = machine_of(4)
    names = devices(4)
    with machine.connect(CAROL) as carol, Holders(machine.socket, ALICE, names) as holders:
        until(lambda: holders.age() > OLD, "leases that are old enough")
        with StuckProcesses(machine.sandbox, MALLORY, mode="read", count=10) as stuck:
            stuck.put_to_sleep()
            assert max(time_of_grants(holders, carol, names)) < ANSWERS / 2


def test_stuck_process_on_a_device(pool_with):
    """The driver says that a stuck process uses a device. Only this device is blocked, and status names the process."""
    pool = pool_with([0, 1], "history: no\n")
    with StuckProcesses(pool.sandbox, MALLORY) as stuck:
        [pid] = stuck.pids
        pool.says([pool.device(0, processes=[{"pid": pid, "uid": MALLORY, "command": "stuck"}]), 1])

        def is_squatted():
            with wire.connect(str(pool.socket), ANSWERS) as client:
                return client.look()["slots"][0].get("state") == wire.STATES["SQUATTED"]

        until(is_squatted, "a squatter")
        for _ in range(5):
            done = pool.berth("run", "--wait", "2s", "sh", "-c", "echo $BERTH_DEVICES", timeout=5)
            assert (done.code, done.stdout) == (0, "nvidia1\n")
        assert str(pid) in pool.berth("status").stdout
    pool.says([0, 1])
    assert pool.berth("run", "-n2", "--wait", "10s", "true", timeout=15).code == 0
