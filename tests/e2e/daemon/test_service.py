# SPDX-License-Identifier: Apache-2.0
"""The installed units under a real systemd."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_machine import FakeMachine
from pool import inventory_of
from service_manager import BUILD, ServiceManager
from waiting import until

ALICE, BOB = 64991, 64992

INVENTORY = "/etc/berth-test/inventory.yaml"
LOG = "/run/berthd.log"
RULES = "/etc/berth-test/berth.yaml"


@pytest.fixture(scope="module")
def build_options():
    """Return the options of the build directory: {"prefix": "/usr/local", ...}"""
    words = ["meson", "introspect", "--buildoptions", BUILD]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    return {row["name"]: row["value"] for row in json.loads(answer.stdout)}


@pytest.fixture
def manager(sandbox, build_options):
    if build_options["b_sanitize"] != "none":
        pytest.skip("sanitizers do what the unit forbids")
    place = ServiceManager(sandbox, build_options)
    yield place
    place.close()


# ---- The machine's daemon ----


@pytest.fixture
def machine(manager):
    """A machine that has just booted, with two devices and no use of berth yet."""
    manager.write(INVENTORY, inventory_of(2))
    manager.write(RULES, "")
    manager.drop_in(
        "berthd.service",
        f"[Service]\nStandardError=append:{LOG}\n"
        f"ExecStart=\nExecStart={manager.programs}/berthd --inventory {INVENTORY} --config {RULES}\n",
    )
    manager.boot("berth.socket")
    done = manager.run("systemd-sysusers", manager.sysusers)
    assert done.code == 0, done
    return manager


def until_logged(machine, words, count=1):
    """Wait for the daemon's log, which is written a moment later."""
    log = machine.root / LOG.lstrip("/")
    until(lambda: log.read_text().count(words) >= count, lambda: f"{words!r} in\n{log.read_text()}")


def is_over(process):
    """Return whether a process is gone or a zombie."""
    try:
        status = (process / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return "State:\tZ" in status


def test_the_machines_daemon(machine):
    """The first command of an ordinary user starts the daemon, which runs as a user with few
    privileges."""
    socket = machine.root / "run/berth/berth.sock"
    assert machine.show("berthd.service", "ActiveState") == "inactive"
    assert socket.stat().st_mode & 0o777 == 0o666
    assert machine.run("berth", "run", "printenv", "BERTH_DEVICES", uid=ALICE) == (0, "nvidia0\n", "")
    assert machine.show("berthd.service", "ActiveState") == "active"
    user = machine.run("id", "-u", "berth").stdout.strip()
    until_logged(machine, f" rights uid={user} signals=everybody sees=everybody mps=own\n")
    groups = machine.run("id", "-Gn", "berth").stdout.split()
    assert {"berth", "render", "video"} <= set(groups)
    status = (machine.root / "proc" / machine.show("berthd.service", "MainPID") / "status").read_text()
    assert "NoNewPrivs:\t1\nSeccomp:\t2\n" in status
    # systemd makes the daemon reload its configuration, and then exit; the socket stays.
    assert machine.systemctl("reload", "berthd").code == 0
    until_logged(machine, " reloaded")
    inode = socket.stat().st_ino
    assert machine.systemctl("stop", "berthd").code == 0
    assert machine.show("berthd.service", "Result") == "success"
    assert socket.stat().st_ino == inode
    assert machine.run("berth", "run", "true", uid=BOB).code == 0


def test_leftovers_of_other_users(machine):
    """Within all restrictions of the unit, the daemon finds, signals and waits for processes of
    other users."""
    script = "setsid sh -c 'echo left $$; exec sleep 1000' & echo holder $$; exec cat"
    with machine.start("berth", "run", "-n2", "sh", "-c", script, uid=ALICE) as holder:
        pids = dict(holder.wait_for_line("^(left|holder) ").split() for _ in range(2))
        assert machine.run("kill", "-KILL", pids["holder"]).code == 0
        holder.wait()
    assert machine.run("berth", "run", "-n2", "echo", "next", uid=BOB) == (0, "next\n", "")
    until_logged(machine, " draining id=1\n")
    assert is_over(machine.root / "proc" / pids["left"])


def test_replacing_it_keeps_leases_and_the_queue(machine):
    """A new daemon restores them after systemctl restart, and after a crash."""
    holder = machine.start("berth", "run", "-n2", "sh", "-c", "echo holding; exec cat", uid=ALICE)
    holder.wait_for_line("^holding$")
    before = machine.show("berthd.service", "MainPID")
    with machine.start("berth", "run", "-n2", "echo", "served", uid=BOB) as waiting:
        until_logged(machine, " queued id=2 ")
        assert machine.systemctl("restart", "berthd").code == 0
        second = machine.show("berthd.service", "MainPID")
        until_logged(machine, " attached id=2 ")
        assert machine.systemctl("kill", "--signal=KILL", "berthd").code == 0
        until_logged(machine, " attached id=2 ", 2)
        assert len({before, second, machine.show("berthd.service", "MainPID")}) == 3
        holder.process.stdin.close()
        holder.process.stdin = None
        assert holder.wait() == 0
        assert (waiting.wait(), waiting.text()) == (0, "served\n")


def mps_drop_in(source_root):
    """Returns the drop-in for MPS of the manual."""
    return re.search(r"^# MPS\n(.*?)```", (source_root / "docs/ADMIN.md").read_text(), re.M | re.S)[1]


def test_mps(machine, source_root):
    """Within all restrictions of the unit, a control daemon runs as its user. It continues when
    berthd is replaced, and ends with its lease."""
    shutil.copy(BUILD / "tests/nvidia-cuda-mps-control", machine.root / "usr/bin")
    machine.drop_in("berthd.service", mps_drop_in(source_root), name="mps")
    machine.write(RULES, "mps: yes\n")
    assert machine.systemctl("daemon-reload").code == 0
    sharing = ("berth", "run", "--sharing", "mps")
    holder = machine.start(*sharing, "sh", "-c", "echo holding; exec cat", uid=ALICE)
    holder.wait_for_line("^holding$")
    pipes = machine.root / f"run/berth/mps/{ALICE}/nvidia0/pipe"
    process = machine.root / "proc" / (pipes / "nvidia-cuda-mps-control.pid").read_text().strip()
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    assert set(status["Uid"].split()) == {str(ALICE)}
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert (process / "oom_score_adj").read_text() == "0\n"
    assert machine.systemctl("restart", "berthd").code == 0
    until_logged(machine, " mps state=restored ")
    assert machine.systemctl("kill", "--kill-whom=main", "--signal=KILL", "berthd").code == 0
    until_logged(machine, " mps state=restored ", 2)
    assert machine.run(*sharing, "printenv", "CUDA_MPS_PIPE_DIRECTORY", uid=ALICE).stdout.endswith("/nvidia0/pipe\n")
    assert not is_over(process)
    holder.process.stdin.close()
    holder.process.stdin = None
    assert holder.wait() == 0
    assert machine.run("berth", "run", "--device", "nvidia0", "true", uid=BOB).code == 0
    assert is_over(process)
    log = (machine.root / LOG.lstrip("/")).read_text()
    assert log.count(" mps state=starting ") == 1, log


def test_without_the_drop_in_for_mps(machine):
    """The unit's daemon cannot become another user."""
    shutil.copy(BUILD / "tests/nvidia-cuda-mps-control", machine.root / "usr/bin")
    machine.write(RULES, "mps: yes\n")
    done = machine.run("berth", "run", "--sharing", "mps", "true", uid=ALICE)
    assert (done.code, done.stderr.count("\n")) == (120, 1), done
    until_logged(machine, 'missing="cannot run MPS for other users: CAP_SETUID and CAP_SETGID"')
    assert machine.run("berth", "run", "-n2", "true", uid=ALICE).code == 0


# ---- The page ----

TAKE = "import socket; socket.create_server(('127.0.0.1', 7411))"
ASK = """\
from urllib.request import urlopen
print(urlopen("http://127.0.0.1:7411/api/status", timeout=10).status)
"""


def test_the_page(machine):
    """Within all restrictions of its unit, berth-web serves the machine's pool to all local users."""
    # Containers may not make device files.
    machine.drop_in("berth-web.service", "[Service]\nPrivateDevices=no\n")
    assert machine.systemctl("daemon-reload").code == 0
    if machine.run("ip", "link", "set", "lo", "up").code != 0:
        pytest.skip("no ip, to make a loopback interface")
    assert machine.systemctl("start", "berth-web.socket").code == 0
    # From now on no user can take the port, whether berth-web runs or not.
    assert machine.run(sys.executable, "-c", TAKE, uid=ALICE).code == 1
    assert machine.run(sys.executable, "-c", ASK, uid=ALICE) == (0, "200\n", "")
    status = (machine.root / "proc" / machine.show("berth-web.service", "MainPID") / "status").read_text()
    assert "NoNewPrivs:\t1\nSeccomp:\t2\n" in status
    assert machine.systemctl("stop", "berth-web.service").code == 0
    assert machine.show("berth-web.service", "Result") == "success"
    assert machine.run(sys.executable, "-c", TAKE, uid=ALICE).code == 1
    assert machine.run(sys.executable, "-c", ASK, uid=ALICE) == (0, "200\n", "")


# ---- Hardware ----


@pytest.fixture
def cards(manager):
    """Add a GPU to the machine and return the environment that makes it visible."""
    FakeMachine(manager.root / "etc/berth-test/cards").add_amd(3)
    return "Environment=BERTH_SYSROOT=/etc/berth-test/cards BERTH_PROBE_DEADLINE=9s\n"


def test_the_probe_works_within_the_bounds(manager, cards):
    manager.drop_in("berthd.service", f"[Service]\nStandardError=append:{LOG}\n{cards}")
    manager.boot("berth.socket")
    assert manager.run("systemd-sysusers", manager.sysusers).code == 0
    assert manager.run("berth", "run", "printenv", "BERTH_DEVICES", uid=ALICE) == (0, "amd0\n", "")
    assert machine_log_is_clean(manager)


def machine_log_is_clean(manager):
    words = (manager.root / LOG.lstrip("/")).read_text()
    assert " error " not in words and " probe " not in words, words
    return True


# ---- A user's own ----


def test_the_users_own(manager, cards):
    """Commands find the daemon at the usual socket. It exits when it is idle but its socket stays,
    and the next client gets another daemon. Commands never start a second one."""
    unit = Path(f"{manager.root}{manager.units['user']}/berthd.service").read_text()
    [start] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    manager.drop_in("berthd.service", f"[Service]\n{cards}ExecStart=\n{start} --idle 100ms\n", "user")
    manager.add_user_manager(ALICE, "berth.socket")
    manager.boot("user.service")
    directory = manager.root / f"tmp/berth-{ALICE}"
    until((directory / "berth.sock").exists, "the socket")
    inode = (directory / "berth.sock").stat().st_ino
    assert directory.stat().st_mode & 0o777 == 0o700
    for _ in range(3):
        done = manager.run("berth", "run", "printenv", "BERTH_SOCKET", "BERTH_DEVICES", uid=ALICE)
        assert done == (0, f"/tmp/berth-{ALICE}/berth.sock\namd0\n", "")
        until(lambda: manager.show("berthd.service", "ActiveState", uid=ALICE) == "inactive", "the end")
        assert manager.show("berthd.service", "Result", uid=ALICE) == "success"
        assert (directory / "berth.sock").stat().st_ino == inode
    # A restart keeps the lease.
    with manager.start("berth", "run", "sh", "-c", "echo holding; exec cat", uid=ALICE) as holder:
        holder.wait_for_line("^holding$")
        assert manager.systemctl("restart", "berthd", uid=ALICE).code == 0
        assert manager.run("berth", "run", "--nonblock", "true", uid=ALICE).code == 123
        holder.process.stdin.close()
        holder.process.stdin = None
        assert holder.wait() == 0


# ---- Without a manager ----


@pytest.fixture(params=["system", "user"])
def staged_units(request, sandbox, build_options):
    """The units as `make install` installs them, with paths of existing programs."""
    words = ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", sandbox.directory / "stage"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    prefix = build_options["prefix"]
    stage = Path(f"{sandbox.directory}/stage{prefix}")
    units = stage / build_options[f"systemd_{request.param}_units"]
    for unit in units.iterdir():
        assert "@BINDIR@" not in unit.read_text()
        unit.write_text(unit.read_text().replace(f"={prefix}/", f"={stage}/"))
    return request.param, sorted(units.iterdir())


def test_the_units_are_understood(staged_units, sandbox):
    """The installed systemd accepts the units without a warning."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    kind, units = staged_units
    web = ["berth-web.service", "berth-web.socket"] if kind == "system" else ["berth-web.service"]
    assert [unit.name for unit in units] == [*web, "berth.socket", "berthd.service"]
    runtime = sandbox.directory / "runtime"
    runtime.mkdir(mode=0o700)
    words = ["systemd-analyze", "verify", "--man=no", f"--{kind}", *units]
    done = sandbox.run(words, env={"XDG_RUNTIME_DIR": runtime})
    assert done == (0, "", "")


# The exposure levels of systemd-analyze security, from 0 to 10. A change must not raise them.
EXPOSURE_MAX = {
    ("system", "berthd.service"): 2.2,
    ("system", "berth-web.service"): 1.1,
    ("user", "berthd.service"): 6.8,
    ("user", "berth-web.service"): 6.5,
}


def test_the_units_are_confined(staged_units, sandbox):
    """The units have as few rights as before, or fewer."""
    kind, units = staged_units
    for unit in units:
        if unit.suffix != ".service":
            continue
        done = sandbox.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit])
        level = re.search(r"Overall exposure level for .*: ([0-9.]+) ", done.stdout)
        if level is None:
            pytest.skip(f"no systemd-analyze that can read a unit file: {done.stderr}")
        assert float(level[1]) <= EXPOSURE_MAX[kind, unit.name], done.stdout
