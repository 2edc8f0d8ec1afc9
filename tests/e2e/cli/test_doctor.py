# SPDX-License-Identifier: Apache-2.0
"""berth doctor in good and broken worlds."""
import os
import signal

import processes
import pytest
from doctor_report import doctor, finished, lines_of, problems
from fake_machine import AMD, PCI_DISPLAY_3D
from hardware_pool import SICK
from nvml_machine import Machine
from shared_machine import ALICE
from waiting import until


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
        "drivers        1 AMD GPU with a driver",
        "probe          1 device found",
        "device files   3 can be opened",
        f"daemon         your own daemon answers at {machine_pool.socket} (pid {daemon})",
        "versions       berth and the daemon are ",
        "rights         your own daemon sees and ends your processes",
        "pool           the daemon reports no problems",
        "squatters      every process on a device has a lease",
        f"configuration  {sandbox.home}/.config/berth/berth.yaml does not exist: the defaults apply",
        "masks          the environment hides no device",
        f"directories    logs of jobs: {sandbox.home}/.local/state/berth (created when it is needed)",
        f"directories    own daemon: {machine_pool.directory}",
        "clock          ",
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
    [(what, remedy)] = found["probe", "problem"]
    assert what == "nvidia0 is sick: fell off the bus" and "dmesg" in remedy


def test_sick_device_of_an_inventory(sandbox):
    """No kernel and no GPU is behind a virtual device."""
    path = sandbox.directory / "sick.yaml"
    path.write_text("devices: [{vendor: nvidia, index: 0, name: NVIDIA T4, memory: 16GiB, health: sick}]\n")
    [(what, remedy)] = doctor(sandbox, "--inventory", path)["probe", "problem"]
    assert what.startswith("nvidia0 is sick")
    assert remedy == f"the file {path} says so: change its `health`"


def test_inventory_that_is_wrong(sandbox):
    """A missing file and one that does not parse are one problem; the other checks go on."""
    found = doctor(sandbox, env={"BERTH_INVENTORY": "/nonexistent"})
    assert problems(found) == {
        "probe": [
            ("cannot read /nonexistent: No such file or directory",
             "correct the file or BERTH_INVENTORY, or unset BERTH_INVENTORY")
        ]
    }  # fmt: skip
    assert found["daemon", "unknown"] == [("the inventory file names the pool", "see the line of the probe")]
    assert len(found["clock", "ok"]) == 1
    broken = sandbox.directory / "broken.yaml"
    broken.write_text("devices: 5\n")
    found = doctor(sandbox, "--inventory", broken)
    [(what, remedy)] = found["probe", "problem"]
    assert what.startswith(f"{broken}:1:") and remedy == "correct the file, or name another one with --inventory"
    assert list(problems(found)) == ["probe"]


def test_deadline_that_is_wrong(sandbox):
    [(what, remedy)] = doctor(sandbox, env={"BERTH_PROBE_DEADLINE": "soon"})["probe", "problem"]
    assert what.startswith("BERTH_PROBE_DEADLINE: ") and remedy == "correct BERTH_PROBE_DEADLINE, or unset it"


# ---- The daemon ----


def test_socket_without_daemon(sandbox):
    found = doctor(sandbox, env={"BERTH_SOCKET": "/nonexistent/berth.sock"})
    [(what, remedy)] = found["daemon", "problem"]
    assert what == "/nonexistent/berth.sock: no daemon is running (no such socket)"
    assert remedy == "start it, or unset BERTH_SOCKET"
    for check in ("versions", "rights", "pool", "squatters"):
        assert found[check, "unknown"] == [("no daemon answers", "see the line of the daemon")]
    assert found["directories", "unknown"] == [("history: its directory is not known", "see the line of the daemon")]
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
    assert what == f"your own daemon at {pool.socket} (pid {daemon}) does not answer"
    assert named == f"the daemon of BERTH_SOCKET at {pool.socket} (pid {daemon}) does not answer"
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


def test_rights_that_the_daemon_reports(sandbox, daemon):
    """The daemon itself knows the rights that it lacks. They are no problems of the pool, but warnings."""
    lacks = "the daemon cannot identify other users' processes (missing: CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)"
    mps = "the daemon cannot run MPS for other users (missing: CAP_SETUID and CAP_SETGID)"
    told = [{"backend": "rights", "message": lacks}, {"backend": "rights", "message": mps}]
    found = run_beside(sandbox, daemon, "0", time=0, problems=told)
    warnings = dict(found["rights", "warning"])
    assert warnings[lacks] == "start it with its systemd unit, or as root: berthd --user berth"
    assert "systemctl edit berthd" in warnings[mps] and "mps: no" in warnings[mps]
    assert found["pool", "ok"] == [("the daemon reports no other problems", None)]
    assert ("rights", "ok") not in found


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


# ---- The machine's daemon ----


def test_rights(shared_machine_of, sandbox, nobody):
    """The machine's daemon needs few rights, and root has all."""
    everybody = shared_machine_of(1)
    everybody.open("", "--user", "nobody")
    assert doctor(sandbox)["rights", "ok"] == [("the daemon runs as nobody and lacks no right", None)]
    everybody.close()
    everybody.open("")
    assert doctor(sandbox)["rights", "warning"] == [
        ("the daemon runs as root, with more rights than it needs",
         "start it with its systemd unit, or as root: berthd --user berth")
    ]  # fmt: skip
    everybody.close()


@pytest.mark.parametrize("kept", ["kill", "kill,+sys_ptrace"])
def test_a_daemon_that_sees_only_its_own(shared_machine_of, sandbox, kept):
    """The kernel requires two rights to look into other users' processes: one alone is none."""
    everybody = shared_machine_of(1)
    everybody.directory.mkdir()
    everybody.log.touch()
    for path in (everybody.directory, everybody.log):
        os.chown(path, ALICE, ALICE)
    caps = [f"--{sets}=-all,+{kept}" for sets in ("inh-caps", "ambient-caps", "bounding-set")]
    args = ["berthd", "--socket", everybody.socket, *everybody.devices, "--log", everybody.log]
    everybody.daemon = sandbox.start([*everybody.become(ALICE), *caps, *args])
    until(everybody.serves, "a daemon that serves")
    [(words, remedy)] = doctor(sandbox)["rights", "warning"]
    assert "cannot identify other users' processes" in words
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
    assert "cannot signal other users' processes" in found["rights", "warning"][0][0]


# ---- Wrong usage ----


def test_wrong_usage(sandbox):
    assert sandbox.run(["berth", "doctor", "now"]).code == 2
    done = sandbox.run(["berth", "doctor", "--inventory", ""])
    assert done.code == 2 and done.stderr.startswith("berth: doctor: --inventory: expected a file")
