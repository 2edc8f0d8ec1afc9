# SPDX-License-Identifier: Apache-2.0
"""Processes on devices without a lease, and processes that a lease leaves behind."""
import os
import signal
import sys

import processes
import pytest
import wire
from daemon_log import wait_for
from hostile_processes import ordinary
from waiting import until, until_pending


def blocks(slot):
    return {name for name, bit in wire.BLOCKS.items() if slot.get("blocks", 0) & bit}


def with_process(pool, index, pid, **facts):
    found = {"pid": pid, "uid": os.getuid(), "command": "python train.py", "ancestors": processes.ancestors(pid)}
    return pool.device(index, processes=[{**found, **facts}])


def start_lingerer(pool, *options):
    """Start a lease with a process that carries no mark. Return the holder and the process's pid."""
    holder = pool.start("run", *options, "--", "sh", "-c", "env -i sleep 1000 & echo $!; cat")
    pid = int(holder.wait_for_line(r"^\d+$"))
    # The shell and env, which it was before, carry the mark.
    until(lambda: processes.command_line(pid) == "sleep 1000", "the program")
    return holder, pid


def where(pool, *options):
    run = pool.berth("run", *options, "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert (run.code, run.stderr) == (0, "")
    return run.stdout.strip()


# ---- Squatters ----


def test_a_squatted_device_is_not_granted_while_that_lasts(pool_with, sleeper):
    pool = pool_with([0, 1])
    squatter = sleeper()
    pool.says([with_process(pool, 0, squatter.pid), 1])
    slots = pool.until_state("nvidia0", "SQUATTED")
    assert [process["squats"] for process in slots["nvidia0"]["device"]["processes"]] == [True]
    [entry] = wait_for(pool.log, "squatted", device="nvidia0")
    assert (entry.values["pid"], entry.values["command"]) == (str(squatter.pid), "python train.py")
    assert where(pool) == "nvidia1"
    waits = pool.start("run", "-n", "2", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    pool.says([0, 1])
    squatter.kill()
    squatter.wait()
    assert waits.wait_for_line("nvidia") == "nvidia0,nvidia1"
    assert waits.wait() == 0


def test_its_end_is_noticed_at_once(pool_with, sleeper):
    """The daemon does not wait for the next regular probe, which may be ten seconds away."""
    pool = pool_with([0])
    squatter = sleeper()
    pool.says([with_process(pool, 0, squatter.pid)])
    pool.until_state("nvidia0", "SQUATTED")
    waits = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    pool.says([0])
    squatter.kill()
    squatter.wait()
    waits.wait_for_line("nvidia0", timeout=5)
    assert waits.wait() == 0


def test_a_claim_rests_on_a_fresh_look(pool_with, sleeper):
    """A process may have started since the last probe. The daemon probes once a minute while nothing
    is leased."""
    pool = pool_with([0, 1])
    assert where(pool) == "nvidia0"
    squatter = sleeper()
    pool.says([with_process(pool, 0, squatter.pid), 1])
    requests = pool.requests()
    pool.sandbox.environment["BERTH_PROBE_SCRIPT"] = str(pool.script)
    pool.end_daemon(signal.SIGKILL)
    assert where(pool) == "nvidia1"
    assert pool.requests() > requests


def test_somebody_is_told_of_it(hardware_of, sleeper, site):
    site.configure("notify")
    pool = hardware_of([0])
    assert pool.berth("status").code == 0
    squatter = sleeper()
    pool.says([with_process(pool, 0, squatter.pid, command="python \x1b[2J")])
    pool.until_state("nvidia0", "SQUATTED")
    site.until("end", "squatter", "nvidia0")
    told = site.environment("squatter")
    assert (told["BERTH_PID"], told["BERTH_UID"]) == (str(squatter.pid), str(os.getuid()))
    start = f"nvidia0 is used without a lease by process {squatter.pid} of uid {os.getuid()}: python "
    assert told["BERTH_MESSAGE"].startswith(start)
    assert len(site.lines("begin", "squatter")) == 1


@pytest.mark.parametrize("command", ["/usr/lib/xorg/Xorg :0", "nvidia-smi", "/opt/own-compositor --all"])
def test_programs_that_never_count(pool_with, sleeper, command):
    pool = pool_with([0], "squatters_except: [own-compositor]\n")
    pool.says([with_process(pool, 0, sleeper().pid, command=command)])
    slots = pool.until(lambda slots: "processes" in slots["nvidia0"]["device"], "the process")
    assert not slots["nvidia0"]["device"]["processes"][0].get("squats")
    assert where(pool) == "nvidia0"


@pytest.mark.parametrize(
    "facts, squatted",
    [({"draws": True}, False), ({"draws": True, "memory": 1 << 30}, True), ({"memory": 1 << 20}, True)],
    ids=["draws", "draws much", "computes"],
)
def test_who_only_draws(pool_with, sleeper, facts, squatted):
    pool = pool_with([0])
    pool.says([with_process(pool, 0, sleeper().pid, **facts)])
    slots = pool.until(lambda slots: slots and "processes" in slots["nvidia0"]["device"], "the process")
    assert slots["nvidia0"].get("state", 0) == wire.STATES["SQUATTED" if squatted else "FREE"]


def test_ignored_by_the_configuration(pool_with, sleeper):
    pool = pool_with([0], "squatters: ignore\n")
    pool.says([with_process(pool, 0, sleeper().pid)])
    pool.until(lambda slots: slots["nvidia0"]["device"].get("processes", [{}])[0].get("squats"), "the process")
    assert where(pool) == "nvidia0"


def test_a_lease_on_another_device_is_none_here(pool_with):
    pool = pool_with([0, 1, 2])
    holder = pool.hold("--device", "nvidia0")
    pool.says([0, with_process(pool, 1, holder.process.pid), 2])
    pool.until_state("nvidia1", "SQUATTED")
    pool.let_go(holder)


def test_a_process_is_known_by_its_environment(pool_with, sleeper):
    """A process that left its parents still belongs to the lease that its environment names, unless
    that is not a lease of this pool."""
    pool = pool_with([0, 1])
    holder = pool.hold("--device", "nvidia0")
    lease, socket = int(holder.lease), str(pool.socket)
    said = [(lease, socket), (77, socket), (lease, socket + "x")]
    processes = [
        {"pid": sleeper().pid, "uid": os.getuid(), "said_lease": lease, "said_socket": socket} for lease, socket in said
    ]
    pool.says([pool.device(0, processes=processes), 1])
    slots = pool.until(lambda slots: "processes" in slots["nvidia0"]["device"], "the processes")
    found = slots["nvidia0"]["device"]["processes"]
    assert [process.get("lease") for process in found] == [lease, None, None]
    assert [process.get("squats") for process in found] == [None, True, True]
    assert not any("said_lease" in process or "said_socket" in process for process in found)
    pool.let_go(holder)


def test_what_a_user_runs_on_a_reserved_device(pool_with, sleeper):
    """A reservation belongs to its user, who may run any process on it."""
    pool = pool_with([0])
    lease = int(pool.berth("reserve", "--for", "1h").stdout)
    processes = [{"pid": sleeper().pid, "uid": uid} for uid in (os.getuid(), os.getuid() + 1)]
    pool.says([pool.device(0, processes=processes)])
    slots = pool.until(lambda slots: "processes" in slots["nvidia0"]["device"], "the processes")
    seen = [(process.get("lease"), process.get("squats")) for process in slots["nvidia0"]["device"]["processes"]]
    assert seen == [(lease, None), (None, True)]
    pool.says([0])
    assert pool.berth("release", str(lease)).code == 0


def test_a_lease_of_another_user_in_the_environment_is_none(pool_with, sleeper):
    pool = pool_with([0])
    holder = pool.hold()
    said = {"said_lease": int(holder.lease), "said_socket": str(pool.socket)}
    pool.says([pool.device(0, processes=[{"pid": sleeper().pid, "uid": os.getuid() + 1, **said}])])
    slots = pool.until(lambda slots: "processes" in slots["nvidia0"]["device"], "the process")
    assert slots["nvidia0"]["device"]["processes"][0]["squats"]
    pool.let_go(holder)


# ---- Handover ----


def test_what_lingers_keeps_the_device(pool_with, sleeper):
    """A process of the lease without its parents and environment is still on the device."""
    pool = pool_with([0])
    holder, pid = start_lingerer(pool)
    try:
        pool.says([with_process(pool, 0, pid)])
        pool.until(lambda slots: slots["nvidia0"]["device"].get("processes", [{}])[0].get("lease"), "the process")
        pool.let_go(holder)
        pool.until_state("nvidia0", "DRAINING")
        slots = pool.until(lambda slots: "DIRTY" in blocks(slots["nvidia0"]), "a block")
        [process] = slots["nvidia0"]["device"]["processes"]
        assert (process["pid"], process.get("squats")) == (pid, None)
        waits = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
        until_pending(pool, 1)
    finally:
        os.kill(pid, signal.SIGKILL)
    pool.says([0])
    assert waits.wait_for_line("nvidia") == "nvidia0"
    assert waits.wait() == 0


def test_a_device_is_looked_at_before_it_is_granted_on(pool_with):
    pool = pool_with([0])
    for _ in range(3):
        before = pool.requests()
        assert where(pool) == "nvidia0"
        until(lambda before=before: pool.requests() > before, "a probe after the lease")
    pool.until(lambda slots: not blocks(slots["nvidia0"]), "the end of the handover")


def test_who_does_not_wait_waits_for_the_look(pool_with):
    """A device that its holder has just left is not "busy": the daemon is still checking whether
    it is free."""
    pool = pool_with([0])
    pool.says([0], behaviour="late", delay=0.3)
    for _ in range(3):
        assert where(pool, "--nonblock") == "nvidia0"
        assert pool.berth("wait", "--nonblock") == (0, "", "")
    holder = pool.hold()
    assert pool.berth("run", "--nonblock", "true").code == 123
    pool.let_go(holder)


def test_nobody_waits_for_a_probe_that_does_not_answer(hardware_of):
    pool = hardware_of([0])
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "1500ms"
    holder = pool.hold()
    waits = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    until_pending(pool, 1)
    pool.says([0], behaviour="hang")
    pool.let_go(holder)
    waits.wait_for_line("nvidia0")
    assert waits.wait() == 0


def test_a_daemon_that_dies_in_between_looks_again(hardware_of):
    pool = hardware_of([0])
    pool.sandbox.environment["BERTH_PROBE_DEADLINE"] = "20s"
    holder = pool.hold()
    pool.says([0], behaviour="hang")
    pool.let_go(holder)
    pool.until(lambda slots: "DIRTY" in blocks(slots["nvidia0"]), "a device that is being checked")
    pool.end_daemon(signal.SIGKILL)
    pool.says([0])
    assert where(pool) == "nvidia0"


# A chain of processes, each the child of the one before, with many children at its end, whose pids it prints.
CHAIN = """
import os, signal
os.setpgid(0, 0)
for _ in range(70):
    if os.fork():
        signal.pause()
leaves = []
for _ in range(100):
    leaves.append(os.fork())
    if not leaves[-1]:
        signal.pause()
print(*leaves, flush=True)
signal.pause()
"""


def test_long_chains_of_processes(pool_with, sandbox):
    """A user's many processes with many parents do not make others' processes squatters."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another user")
    pool = pool_with([0, 1])
    holder, mine = start_lingerer(pool, "--device", "nvidia1")
    chain = sandbox.start([*ordinary(61001), sys.executable, "-c", CHAIN])
    leaves = [int(word) for word in chain.wait_for_line(r"^\d+ ").split()]
    try:
        facts = {"uid": 61001, "command": "squat"}
        pool.says([pool.device(0, processes=[{"pid": pid, **facts} for pid in leaves]), with_process(pool, 1, mine)])
        slots = pool.until_state("nvidia0", "SQUATTED")
        [process] = slots["nvidia1"]["device"]["processes"]
        assert (process["pid"], process.get("squats"), str(process.get("lease"))) == (mine, None, look_at(pool))
    finally:
        os.killpg(chain.pid, signal.SIGKILL)
        chain.wait()
        os.kill(mine, signal.SIGKILL)
        pool.let_go(holder)


def look_at(pool):
    """Return the id of the only lease."""
    with wire.connect(str(pool.socket)) as client:
        [lease] = client.look()["leases"]
    return str(lease["id"])
