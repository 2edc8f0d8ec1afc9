# SPDX-License-Identifier: Apache-2.0
"""berth doctor in good and broken worlds."""
import json
import os
import shutil
import signal

import processes
import pytest
from fake_machine import AMD, PCI_DISPLAY_3D
from hardware_pool import SICK
from lease_history import configure
from nvml_machine import Machine
from shared_machine import ALICE
from waiting import until


def lines_of(done):
    """Returns the lines of a JSON report as (check, state): [(what, remedy), ...], and checks the document."""
    document = json.loads(done.stdout)
    assert document["schema"] == "berth.doctor/1"
    assert done.stderr == ""
    states = [line["state"] for line in document["checks"]]
    assert set(states) <= {"ok", "warning", "problem", "unknown"}
    assert document["good"] == ("problem" not in states)
    assert done.code == (0 if document["good"] else 1)
    assert [line for line in document["checks"] if line["state"] in ("warning", "problem") and not line["remedy"]] == []
    found = {}
    for line in document["checks"]:
        found.setdefault((line["check"], line["state"]), []).append((line["what"], line["remedy"]))
    return found


def doctor(sandbox, *options, **more):
    return lines_of(sandbox.run(["berth", "doctor", "--json", *options], **more))


def finished(program):
    """Returns the result of a program that was started and has ended."""
    return type("Done", (), {"stdout": program.text(), "stderr": program.text("stderr"), "code": program.code})


def problems(found):
    return {check: lines for (check, state), lines in found.items() if state == "problem"}


# ---- Good worlds ----


def test_good_world(machine, machine_pool, sandbox):
    """With a driver, a daemon and a clean environment every line is ok, and each check has one."""
    machine.add_amd(4)
    assert machine_pool.berth("status").code == 0
    [daemon] = machine_pool.daemons()
    done = sandbox.run(["berth", "doctor"])
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert {line.split("  ")[0] for line in lines} == {"ok"}, done.stdout
    for words in (
        "drivers       1 AMD GPU with a driver",
        "probe         1 device found",
        "device files  3 can be opened",
        f"daemon        your own daemon answers at {machine_pool.socket} (pid {daemon})",
        "versions      berth and the daemon are ",
        "rights        your own daemon sees and ends your processes",
        "pool          the daemon reports no problems",
        "squatters     every process on a device has a lease",
        "masks         the environment hides no device",
        f"directories   logs of jobs: {sandbox.home}/.local/state/berth (created when it is needed)",
        f"directories   own daemon: {machine_pool.directory}",
        "clock         ",
    ):
        assert any(line.startswith(f"ok  {words}") for line in lines), (words, done.stdout)


def test_inventory(pool):
    """An inventory needs no driver."""
    assert pool.berth("status").code == 0
    found = doctor(pool.sandbox)
    assert {state for _, state in found} == {"ok"}
    assert ("drivers", "ok") in found


def test_no_daemon(pool):
    """The check starts no daemon: one that starts on demand is no problem."""
    found = doctor(pool.sandbox)
    assert problems(found) == {}
    [(what, _)] = found["daemon", "ok"]
    assert what == f"your own daemon is not running; the next command starts it in {pool.directory}"
    assert pool.daemons() == []


# ---- Hardware ----


def test_drivers(machine, sandbox):
    """A GPU without a driver is a problem, another driver than the vendor's a warning."""
    bare = machine.add_pci(1, 0, 0x10DE, 0x1EB8, "none", PCI_DISPLAY_3D)
    (bare.path / "driver").unlink()
    other = machine.add_pci(2, 0, 0x10DE, 0x1EB8, "nouveau", PCI_DISPLAY_3D)
    machine.add_pci(3, 0, AMD, 0x738C, "vfio-pci", PCI_DISPLAY_3D)
    machine.add_pci(4, 0, AMD, 0x1234, "ahci", 0x010601)  # no GPU
    found = doctor(sandbox)
    assert found["drivers", "problem"] == [
        (f"NVIDIA GPU {bare.pci} has no driver", "install NVIDIA's driver, or load it: modprobe nvidia")
    ]
    assert found["drivers", "warning"] == [
        (f"NVIDIA GPU {other.pci} uses the driver nouveau", "CUDA needs the driver nvidia")
    ]
    assert len(found["drivers", "ok"]) == 1


def test_version_of_the_driver(sandbox):
    root = sandbox.directory / "sysroot"
    made = Machine()
    made.gpu(name="NVIDIA T4", uuid="GPU-0", pci="0000:01:00.0", minor=0)
    made.write_sysfs(root)
    made.write(sandbox.directory / "nvml")
    (root / "sys/module/nvidia").mkdir(parents=True)
    (root / "sys/module/nvidia/version").write_text("550.163.01\n")
    found = doctor(sandbox, env=made.environment(sandbox.directory / "nvml"))
    assert found["drivers", "ok"] == [("1 NVIDIA GPU with a driver (550.163.01)", None)]
    [(_, remedy)] = [line for line in found["device files", "warning"] if line[0] == "nvidia0 has no device files"]
    assert "nvidia-modprobe" in remedy
    assert any("nvidia-uvm" in what for what, _ in found["device files", "warning"])


def test_closed_device_file(machine, sandbox):
    if os.geteuid() == 0:
        pytest.skip("root can open every file")
    card = machine.add_amd(4)
    (machine.root / "dev/dri" / card.render).chmod(0)
    found = doctor(sandbox)
    [(what, remedy)] = found["device files", "problem"]
    assert what == f"amd0: you cannot open {card.node_path()}: Permission denied"
    assert "usermod -aG render" in remedy


def test_probe_that_fails(machine, sandbox):
    """A probe that cannot be executed, and one that does not answer."""
    found = doctor(sandbox, env={"BERTH_PROBE": "/nonexistent/probe"})
    [(what, remedy)] = found["probe", "problem"]
    assert "cannot start /nonexistent/probe" in what
    assert remedy == "correct BERTH_PROBE, or unset it"
    slow = sandbox.directory / "slow-probe"
    slow.write_text(f"#!/bin/sh\necho $$ >'{slow}.pid'\nexec cat >/dev/null\n")
    slow.chmod(0o755)
    found = doctor(sandbox, env={"BERTH_PROBE": slow, "BERTH_PROBE_DEADLINE": "100ms"})
    [(what, remedy)] = found["probe", "problem"]
    assert "berth-probe" in what and "--deadline" in remedy
    processes.wait_for_end(int(slow.with_suffix(".pid").read_text()))


def test_sick_device(hardware_of, sandbox):
    """The scripted probe reports a sick device to the doctor and to the daemon."""
    pool = hardware_of()
    pool.says([pool.device(0, health=SICK, health_reason="fell off the bus")])
    found = doctor(sandbox)
    assert found["probe", "problem"][0][0] == "nvidia0 is sick: fell off the bus"


# ---- The daemon ----


def test_socket_without_daemon(sandbox):
    found = doctor(sandbox, env={"BERTH_SOCKET": "/nonexistent/berth.sock"})
    [(what, remedy)] = found["daemon", "problem"]
    assert what == "/nonexistent/berth.sock: no daemon is running (no such socket)"
    assert remedy == "start it, or unset BERTH_SOCKET"
    for check in ("versions", "rights", "pool", "squatters"):
        assert found[check, "unknown"] == [("no daemon answers", None)]
    assert daemon_problem(sandbox, {"BERTH_SOCKET": "relative"}) == (
        "BERTH_SOCKET: expected an absolute path, got 'relative'",
        "correct the variable, or unset it",
    )


def test_socket_that_is_none(sandbox):
    path = sandbox.directory / "odd"
    path.write_text("")
    what, remedy = daemon_problem(sandbox, {"BERTH_SOCKET": path})
    assert what.startswith(f"cannot connect to {path}: ") or what.startswith(f"{path}: no daemon is running")
    assert remedy in ("correct BERTH_SOCKET, or unset it", "start it, or unset BERTH_SOCKET")


def daemon_problem(sandbox, env):
    [line] = doctor(sandbox, env=env)["daemon", "problem"]
    return line


def test_stuck_daemon(pool):
    assert pool.berth("status").code == 0
    [daemon] = pool.daemons()
    os.kill(daemon, signal.SIGSTOP)
    try:
        with pool.sandbox.start(["berth", "doctor", "--json"], env={"BERTH_SOCKET": pool.socket}) as other:
            what, remedy = daemon_problem(pool.sandbox, None)
            other.wait()
            [(named, by_its_user)] = lines_of(finished(other))["daemon", "problem"]
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert what == named == f"the daemon (pid {daemon}) does not answer"
    assert remedy == "kill it with SIGKILL, and the next command restarts it (leases are kept)"
    assert by_its_user == "its user can kill it with SIGKILL, and start it again (leases are kept)"


def answer_queries(daemon, version, **page):
    """Answers the queries of one doctor."""
    client = daemon.accept()
    client.say("POOL", client.expect("HELLO"), pool="p", socket=str(daemon.path), version_text=version, pid=1)
    client.say("PAGE", client.expect("LOOK"), **{"capacity": 0, **page})
    client.expect_end()


def run_beside(sandbox, daemon, version, **page):
    with sandbox.start(["berth", "doctor", "--json"], env=daemon.env) as program:
        answer_queries(daemon, version, **page)
        program.wait()
        return lines_of(finished(program))


def test_other_version(sandbox, daemon):
    found = run_beside(sandbox, daemon, "99.0", time=0)
    [(what, remedy)] = found["versions", "warning"]
    assert what.endswith("the daemon is 99.0") and remedy == "restart the daemon (leases are kept)"


def test_clock_that_was_set(sandbox, daemon):
    """The pool's time goes on when the clock is set; here it is far behind the clock."""
    found = run_beside(sandbox, daemon, "0", time=1_700_000_000_000_000_000)
    [(what, _)] = found["clock", "warning"]
    assert what.startswith("the clock was set: the pool's time is ") and what.endswith(" behind it")


def test_problems_of_the_pool(sandbox, daemon):
    told = [{"backend": "history", "message": "the disk is full"}]
    found = run_beside(sandbox, daemon, "0", time=0, problems=told)
    assert found["pool", "problem"] == [("history: the disk is full", "see the daemon's log")]


def test_squatter(hardware_of, sandbox, sleeper):
    """A process without a lease on a device is named, with the way to adopt it."""
    pool = hardware_of([0])
    stranger = sleeper()
    process = {"pid": stranger.pid, "uid": os.getuid(), "command": "train\x1b[2J"}
    pool.says([pool.device(0, processes=[process], nodes=[])])
    assert pool.berth("status").code == 0
    pool.until(lambda slots: slots["nvidia0"].get("blocks"), "a squatted device")
    done = sandbox.run(["berth", "doctor"])
    assert done.code == 0
    [line] = [line for line in done.stdout.splitlines() if f"process {stranger.pid} " in line]
    assert line.startswith("warning  squatters ")
    assert line.endswith(f"uses nvidia0 without a lease; end it, or run as its user: berth adopt {stranger.pid}")
    assert "\x1b" not in done.stdout


# ---- The environment ----


def test_masks(pool):
    assert pool.berth("status").code == 0
    found = doctor(pool.sandbox, env={"CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": ""})
    assert found["masks", "warning"] == [
        ("CUDA_VISIBLE_DEVICES limits this shell's jobs to 0,1", "if this is not intended: unset CUDA_VISIBLE_DEVICES")
    ]
    found = doctor(pool.sandbox, env={"CUDA_VISIBLE_DEVICES": ""})
    assert found["masks", "warning"][0][0] == "CUDA_VISIBLE_DEVICES limits this shell's jobs to no device"


@pytest.mark.parametrize(
    "masks",
    [{"NVIDIA_VISIBLE_DEVICES": "all"}, {"ROCR_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}],
    ids=["container", "other vendor", "all"],
)
def test_masks_that_hide_nothing(pool_of, masks):
    found = doctor(pool_of(4).sandbox, env=masks)
    assert found["masks", "ok"] == [("the environment hides no device", None)]


def test_within_a_lease(pool):
    """The masks of a lease are as they should be. Those of a lease that has ended are a problem."""
    done = pool.berth("run", "berth", "doctor", "--json")
    [(what, _)] = lines_of(done)["masks", "ok"]
    assert what.startswith("this shell runs in lease ")
    found = doctor(pool.sandbox, env={"BERTH_LEASE": "4711", "CUDA_VISIBLE_DEVICES": "0"})
    assert found["masks", "problem"][0][0] == "this shell belongs to lease 4711, which has ended"
    assert len(found["masks", "warning"]) == 1
    assert found["masks", "problem"][0][1] == "unset BERTH_LEASE and the masks, or open a new shell"
    found = doctor(pool.sandbox, env={"BERTH_LEASE": "x"})
    assert found["masks", "problem"][0][0] == "BERTH_LEASE: expected the id of a lease, got 'x'"


def test_lease_of_a_daemon_that_has_ended(pool):
    """The user's own daemon ends when it has no leases, so this one has ended."""
    found = doctor(pool.sandbox, env={"BERTH_LEASE": "7", "CUDA_VISIBLE_DEVICES": "0"})
    assert found["masks", "problem"][0][0] == "this shell belongs to lease 7, which has ended"
    assert len(found["masks", "warning"]) == 1


def test_directories(pool):
    """A state directory that is a file, and an own directory that is open to others."""
    state = pool.sandbox.home / ".local/state/berth"
    state.parent.mkdir(parents=True)
    state.write_text("")
    pool.runtime.mkdir(mode=0o700)
    pool.runtime.chmod(0o755)
    found = doctor(pool.sandbox)
    assert found["directories", "problem"] == [
        (
            f"logs of jobs: cannot write to {state}: not a directory",
            "make it writable, or set XDG_STATE_HOME to another directory",
        ),
        (
            f"own daemon: {pool.runtime}: expected a directory with mode 0700, got mode 0755",
            "mend it, or set BERTH_RUNTIME_DIR to another directory",
        ),
    ]
    found = doctor(pool.sandbox, env={"HOME": None})
    assert found["directories", "problem"][0] == ("logs of jobs: HOME: expected an absolute path, got ''", "set HOME or XDG_STATE_HOME")


def test_runtime_directory_that_cannot_be_made(pool):
    (pool.sandbox.directory / "file").write_text("")
    runtime = pool.sandbox.directory / "file/run"
    [(what, remedy)] = doctor(pool.sandbox, env={"BERTH_RUNTIME_DIR": runtime})["directories", "problem"]
    assert what.startswith("own daemon: ")
    assert remedy == "make it writable, or set BERTH_RUNTIME_DIR to another directory"


def test_history(pool_of):
    """The directory of the history, and a pool without one."""
    pool = pool_of(1)
    configure(pool, "history: no\n")
    assert pool.berth("status").code == 0
    assert ("history: leases are not recorded (history: no)", None) in doctor(pool.sandbox)["directories", "ok"]
    pool.end_daemon()
    missing = pool.sandbox.directory / "missing"
    configure(pool, f"history: {missing}/history.db\n")
    missing.write_text("")
    assert pool.berth("status").code == 0
    [(what, remedy)] = doctor(pool.sandbox)["directories", "problem"]
    assert what == f"history: the directory {missing} is missing"
    assert remedy == "create it for the daemon's user"


def test_foreign_state_directory(pool):
    if os.geteuid() != 0:
        pytest.skip("only root can change a directory's owner")
    state = pool.sandbox.home / ".local/state/berth"
    state.mkdir(parents=True)
    shutil.chown(state, 65534, 65534)
    [(what, remedy)] = doctor(pool.sandbox)["directories", "problem"]
    assert what.startswith(f"logs of jobs: {state} belongs to ")
    assert remedy == f"run as root: chown -R 0 {state}"


# ---- The machine's daemon ----


def test_rights(shared_machine_of, sandbox, nobody):
    """The machine's daemon sees and may end all processes, as root and by its launcher."""
    everybody = shared_machine_of(1)
    for options, user in [((), "root"), (("--user", "nobody"), "nobody")]:
        everybody.open("", *options)
        found = doctor(sandbox)
        words = f"the daemon runs as {user}; it sees and may end the processes of all users"
        assert found["rights", "ok"] == [(words, None)]
        everybody.close()


def test_a_daemon_that_sees_only_its_own(shared_machine_of, sandbox):
    everybody = shared_machine_of(1)
    everybody.directory.mkdir()
    everybody.log.touch()
    for path in (everybody.directory, everybody.log):
        os.chown(path, ALICE, ALICE)
    caps = "--inh-caps=-all,+kill --ambient-caps=-all,+kill --bounding-set=-all,+kill".split()
    args = ["berthd", "--socket", everybody.socket, *everybody.devices, "--log", everybody.log]
    everybody.daemon = sandbox.start([*everybody.become(ALICE), *caps, *args])
    until(everybody.serves, "a daemon that serves")
    [(words, remedy)] = doctor(sandbox)["rights", "warning"]
    assert "does not see the processes of other users" in words
    assert remedy.endswith("berthd --user berth")


def test_rights_that_are_missing(sandbox):
    """A socket of a process without rights."""
    if os.geteuid() == 0:
        pytest.skip("root has every right")
    path = sandbox.directory / "berth.sock"
    with sandbox.start(["berthd", "--socket", str(path)]) as daemon:
        daemon.wait_for_line("started", stream="stderr")
        found = doctor(sandbox, env={"BERTH_SOCKET": path})
        daemon.stop()
    assert "may not end the processes of other users" in found["rights", "warning"][0][0]


# ---- Wrong usage ----


def test_wrong_usage(sandbox):
    assert sandbox.run(["berth", "doctor", "--inventory", "absent.yaml"]).code == 2
    assert sandbox.run(["berth", "doctor", "now"]).code == 2
    done = sandbox.run(["berth", "doctor"], env={"BERTH_PROBE_DEADLINE": "soon"})
    assert done.code == 2 and done.stderr.startswith("berth: doctor: BERTH_PROBE_DEADLINE")
