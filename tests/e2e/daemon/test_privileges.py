# SPDX-License-Identifier: Apache-2.0
"""A daemon for all users that does not run as root: started as in systemd/system/berthd.service,
and with --user."""
import os
import re
import shutil
import signal
import socket

import daemon_log
import processes
import pytest
from daemons import start_activated
from waiting import look, until, until_pending

# The uids of the daemon and of two users. They are not in the user database.
DAEMON, ALICE, BOB = 64990, 64991, 64992

# The daemon keeps the first. Its launcher has those of the readers of /proc (CAP_DAC_READ_SEARCH and
# CAP_SYS_PTRACE), and with `mps: yes` CAP_SETGID and CAP_SETUID.
KILL = 1 << 5
READING = 1 << 2 | 1 << 19
USERS = 1 << 6 | 1 << 7

# How the daemon exits without its launcher, which the kernel may kill when memory is short.
LOST_LAUNCHER = "125"

UNIT_RIGHTS = "CAP_KILL CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"


def become(uid, *rights):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *rights]


@pytest.fixture
def machine(sandbox, pool_of):
    """A pool for all users with a short grace time. The test starts its daemon."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as other users")
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    pool = pool_of(1)
    sandbox.directory.chmod(0o711)
    pool.directory = sandbox.directory / "everybody"
    pool.socket = pool.directory / "berth.sock"
    pool.log = sandbox.directory / "log"
    rules = sandbox.directory / "berth.yaml"
    rules.write_text("grace: 300ms\n")
    pool.options = ["--socket", pool.socket, "--inventory", pool.inventory, "--config", rules, "--log", pool.log]
    sandbox.environment["BERTH_SOCKET"] = str(pool.socket)
    del sandbox.environment["BERTH_INVENTORY"]
    done = sandbox.run([*become(ALICE), "berth", "--version"])
    if done.code != 0:
        pytest.skip(f"another user cannot run berth here: {done.stderr.strip()}")
    return pool


# ---- Daemons ----


def start_as_root(machine, *options):
    """Start the daemon as root and wait until it has logged its rights. Return the program."""
    before = len(daemon_log.entries(machine.log))
    daemon = machine.sandbox.start(["berthd", *machine.options, *options])
    daemon_log.wait_for(machine.log, "rights", 1 + [e.word for e in daemon_log.entries(machine.log)[:before]].count("rights"))
    return daemon


def start_as_the_unit_does(machine, source_root):
    """Start the daemon as a user with few capabilities, with a socket made by root in a directory
    that belongs to the daemon's user."""
    text = (source_root / "systemd/system/berthd.service.in").read_text()
    says = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    assert says["AmbientCapabilities"] == says["CapabilityBoundingSet"] == UNIT_RIGHTS
    assert says["NoNewPrivileges"] == "yes"
    program, *options = says["ExecStart"].split()
    assert program == "@BINDIR@/berthd"
    caps = ",".join("+" + name.removeprefix("CAP_").lower() for name in says["AmbientCapabilities"].split())
    rights = [f"--inh-caps=-all,{caps}", f"--ambient-caps=-all,{caps}", f"--bounding-set=-all,{caps}", "--no-new-privs"]
    machine.directory.mkdir()
    machine.directory.chmod(int(says["RuntimeDirectoryMode"], 8))
    machine.log.touch()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(machine.socket))
        machine.socket.chmod(0o666)
        listener.listen()
        for path in (machine.directory, machine.socket, machine.log):
            os.chown(path, DAEMON, DAEMON)
        args = [*become(DAEMON, *rights), "berthd", *options, *machine.options]
        daemon = start_activated(machine.sandbox, listener, args)
    daemon_log.wait_for(machine.log, "rights")
    return daemon


def end(daemon):
    daemon.kill(signal.SIGTERM)
    assert daemon.wait() == 0


def rights_of(pid, uid):
    """Return its capabilities: permitted, and those of the programs that it starts, which have no effect in itself."""
    with open(f"/proc/{pid}/status") as file:
        status = dict(re.findall(r"^(\w+):\s*(.*)$", file.read(), re.M))
    assert set(status["Uid"].split()) == {str(uid)}
    assert status["NoNewPrivs"] == "1"
    permitted, effective, passed = (int(status[name], 16) for name in ("CapPrm", "CapEff", "CapAmb"))
    assert effective == permitted & ~passed and status["CapInh"] == status["CapAmb"]
    return permitted, passed


def launcher_of(daemon):
    [launcher] = [pid for pid in processes.children(daemon.pid) if processes.name(pid) == "berth-launcher"]
    return launcher


def check_rights(machine, daemon, uid, mps=False):
    assert rights_of(daemon.pid, uid) == (KILL, 0)
    assert rights_of(launcher_of(daemon), uid) == (READING | (USERS if mps else 0), READING)
    assert daemon_log.entries(machine.log)[-1].values == {
        "uid": str(uid), "signals": "everybody", "sees": "everybody", "mps": "everybody" if mps else "own"
    }


# ---- All users are served ----


def run_as(machine, uid, *args):
    return machine.sandbox.run([*become(uid), "berth", *args])


def start_as(machine, uid, *args):
    return machine.sandbox.start([*become(uid), "berth", *args])


# Leave a process that ignores SIGTERM, in its own session, and continue.
STUBBORN = """
setsid sh -c 'trap : TERM; echo left $$; while :; do sleep 0.05; done' &
exec cat
"""


def check_leftovers_are_ended(machine):
    """The holder is killed and leaves a process behind. The daemon kills this process before it
    grants the device to another user."""
    holder = start_as(machine, ALICE, "run", "sh", "-c", STUBBORN)
    left = int(holder.wait_for_line("^left ").split()[1])
    [lease] = look(machine)["leases"]
    assert (lease["uid"], lease["pid"]) == (ALICE, holder.pid)
    with start_as(machine, BOB, "run", "id", "-u") as waiting:
        until_pending(machine, 1)
        holder.stop()
        daemon_log.wait_for(machine.log, "draining", id=str(lease["id"]))
        processes.wait_for_end(left)
        assert (waiting.wait(), waiting.text()) == (0, f"{BOB}\n")


def check_commands_are_ended(machine):
    """A command that replaced berth run gets SIGTERM, and is killed if it ignores it."""
    with start_as(machine, ALICE, "run", "sh", "-c", "trap '' TERM; echo holding; exec cat") as holder:
        holder.wait_for_line("^holding$")
        [lease] = look(machine)["leases"]
        assert run_as(machine, BOB, "release", lease["id"]).code != 0
        assert machine.berth("release", lease["id"]).code == 0
        assert holder.wait() == -signal.SIGKILL


def check_everybody_is_served(machine):
    assert run_as(machine, ALICE, "run", "printenv", "BERTH_DEVICES") == (0, "nvidia0\n", "")
    assert machine.socket.stat().st_mode & 0o777 == 0o666
    check_leftovers_are_ended(machine)
    check_commands_are_ended(machine)


def test_as_the_unit_starts_it(machine, source_root):
    daemon = start_as_the_unit_does(machine, source_root)
    check_rights(machine, daemon, DAEMON)
    check_everybody_is_served(machine)
    end(daemon)
    assert machine.socket.exists()


def test_user(machine, nobody):
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    check_rights(machine, daemon, nobody.pw_uid)
    check_everybody_is_served(machine)
    end(daemon)
    assert not machine.socket.exists()


def test_the_probe_can_only_pass_on_the_rights_of_its_reader(machine, nobody):
    """Its worker that reads /proc gets CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE; the probe itself uses none."""
    at = machine.options.index("--inventory")
    del machine.options[at : at + 2]
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    [probe] = [pid for pid, _ in processes.descendants(os.getpid()) if "berth-probe" in processes.command_line(pid).split(" ")[0]][:1]

    def status():
        with open(f"/proc/{probe}/status") as file:
            return dict(re.findall(r"^(\w+):\s*(.*)$", file.read(), re.M))

    # It gives up the rest first of all.
    until(lambda: int(status()["CapPrm"], 16) == 1 << 2 | 1 << 19, "a probe with two rights")
    assert (int(status()["CapEff"], 16), status()["Uid"].split()[0]) == (0, str(nobody.pw_uid))
    end(daemon)


def test_the_recorder_has_none(machine, nobody):
    """The recorder writes a file in a directory that belongs to the daemon's user, and needs no
    capability."""
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    assert run_as(machine, ALICE, "run", "--name", "hers", "true").code == 0
    started = daemon_log.wait_for(machine.log, "recorder", what="started")[0].values
    file = machine.socket.with_suffix(".history")
    assert started["file"] == str(file)

    def status():
        with open(f"/proc/{started['pid']}/status") as stream:
            return dict(re.findall(r"^(\w+):\s*(.*)$", stream.read(), re.M))

    until(lambda: file.exists() and file.stat().st_size > 0, "the file")
    assert [int(status()[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0] * 4
    assert status()["Uid"].split() == [str(nobody.pw_uid)] * 4
    assert os.stat(f"/proc/{started['pid']}/mem").st_uid == 0  # processes of its user cannot open it
    assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (nobody.pw_uid, 0o644)
    until(lambda: "hers" in run_as(machine, BOB, "history").stdout, "the lease")
    end(daemon)


def test_restarts(machine, nobody):
    """The daemon takes over the files and leases of a daemon that ran as root, then its own, then
    root takes over again."""
    daemon = start_as_root(machine)
    holder = start_as(machine, ALICE, "run", "sh", "-c", "echo holding; exec cat")
    holder.wait_for_line("^holding$")
    for options in (["--user", nobody.pw_name], ["--user", nobody.pw_name], []):
        end(daemon)
        daemon = start_as_root(machine, *options)
        assert [lease["pid"] for lease in look(machine)["leases"]] == [holder.pid]
    machine.let_go(holder)
    end(daemon)


# ---- Without capabilities ----


def test_a_machine_wide_daemon_without_rights_says_so(machine):
    machine.directory.mkdir()
    machine.log.touch()
    for path in (machine.directory, machine.log):
        os.chown(path, DAEMON, DAEMON)
    daemon = machine.sandbox.start([*become(DAEMON), "berthd", *machine.options])
    [rights] = daemon_log.wait_for(machine.log, "rights")
    assert rights.values == {
        "uid": str(DAEMON),
        "signals": "own",
        "sees": "own",
        "mps": "own",
        "missing": "cannot signal other users' processes: CAP_KILL; "
        "cannot identify other users' processes: CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
    }
    assert run_as(machine, ALICE, "run", "true").code == 0
    end(daemon)


def test_files_of_root_are_in_the_way_of_others(machine):
    end(start_as_root(machine))
    os.chown(machine.directory, DAEMON, DAEMON)
    machine.log.unlink()
    done = machine.sandbox.run([*become(DAEMON), "berthd", *machine.options[:-2]])
    assert done.code == 125
    assert done.stderr.endswith(
        f"berth: {machine.directory}/berth.lock: expected a file of user {DAEMON}, got one of root, who ran the "
        "daemon before; root can take over the files of root with berthd --user\n"
    )


# ---- Refusals ----


def refused(machine, *options):
    done = machine.sandbox.run(["berthd", *machine.options, *options])
    return done.code, done.stderr.splitlines()[-1]


def test_users_that_cannot_be(machine):
    assert refused(machine, "--user", "no such") == (
        2, "berth: --user: expected a user of this machine, got 'no such'"
    )
    assert refused(machine, "--user", "root") == (2, "berth: --user: expected another user than root, got 'root'")
    done = machine.sandbox.run(["berthd", "--own", "/tmp/nowhere", "--user", "nobody"])
    assert (done.code, done.stderr) == (2, "berth: expected --user or --own, got both\n")
    done = machine.sandbox.run([*become(ALICE), "berthd", *machine.options[:-2], "--user", "nobody"])
    assert (done.code, done.stderr) == (2, f"berth: --user: expected to be started by root, got user {ALICE}\n")
    assert not machine.directory.exists()


def fill(machine):
    machine.directory.mkdir()
    (machine.directory / "passwd").write_text("root's")


def link(machine):
    machine.directory.with_name("elsewhere").mkdir()
    machine.directory.symlink_to("elsewhere")


def open_up(machine):
    machine.directory.mkdir()
    machine.directory.chmod(0o1777)


def give_away(machine):
    machine.directory.mkdir()
    os.chown(machine.directory, ALICE, ALICE)


@pytest.mark.parametrize(
    "make, words",
    [
        (fill, "cannot give {directory} to {name}: it contains 'passwd'"),
        (link, "{directory}: expected a directory, got a symlink"),
        (open_up, "{directory}: expected a directory that only its owner may write to, got mode 1777"),
        (give_away, f"{{directory}}: expected a directory of root or of {{name}}, got one of user {ALICE}"),
    ],
    ids=["filled", "symlink", "open", "foreign"],
)
def test_directories_that_are_not_to_be_given(machine, nobody, make, words):
    make(machine)
    before = machine.directory.stat()
    code, words_found = refused(machine, "--user", nobody.pw_name)
    expected = words.format(directory=machine.directory, name=nobody.pw_name)
    assert (code, words_found) == (125, f"berth: {expected}")
    after = machine.directory.stat()
    assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode)


def test_a_file_with_another_name_is_not_given(machine, nobody):
    """A file with a second link may be any user's, so the daemon does not change its owner."""
    machine.directory.mkdir()
    secret = machine.sandbox.directory / "secret"
    secret.write_text("")
    os.link(secret, machine.directory / "berth.other")
    (machine.directory / "berth.symlink").symlink_to(secret)
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    assert (secret.stat().st_uid, machine.directory.stat().st_uid) == (0, nobody.pw_uid)
    end(daemon)


# ---- Programs of the site ----


def rights_of_programs(machine, daemon_user, options=""):
    """Return the capabilities that a prolog and an epilog have. `options` are further keys of the prolog."""
    rights = machine.sandbox.directory / "rights"
    rights.mkdir()
    rights.chmod(0o777)
    program = machine.sandbox.directory / "program"
    # The daemon's end may end the second epilog at any moment.
    program.write_text(
        f"#!/bin/sh\ngrep ^Cap /proc/self/status >{rights}/new.$$ && mv {rights}/new.$$ {rights}/$BERTH_EVENT\n"
    )
    program.chmod(0o755)
    rules = machine.sandbox.directory / "berth.yaml"
    rules.write_text(f"prolog: {{command: {program}{options}}}\nepilog: {{command: [{program}]}}\n")
    daemon = start_as_root(machine, "--user", daemon_user)
    assert run_as(machine, ALICE, "run", "true").code == 0
    assert machine.berth("run", "true").code == 0  # the epilog of the first has ended
    end(daemon)

    def read(event):
        values = dict(line.split() for line in (rights / event).read_text().splitlines())
        sets = {int(values[name], 16) for name in ("CapInh:", "CapPrm:", "CapEff:", "CapAmb:")}
        assert len(sets) == 1
        return sets.pop()

    return read("prolog"), read("epilog")


def test_programs_of_the_site_have_none(machine, nobody):
    """They get texts of users, and need no rights by default."""
    assert rights_of_programs(machine, nobody.pw_name) == (0, 0)


def test_programs_with_rights(machine, nobody):
    """`rights: yes` lets one of them signal all users' processes, and no more."""
    assert rights_of_programs(machine, nobody.pw_name, ", rights: yes") == (KILL, 0)


def test_priority(machine, nobody):
    """The machine's daemon comes before users' programs; the programs of the site have the normal priority."""
    niceness = machine.sandbox.directory / "niceness"
    niceness.mkdir()
    niceness.chmod(0o777)
    program = machine.sandbox.directory / "program"
    program.write_text(f"#!/bin/sh\nnice >{niceness}/prolog\n")
    program.chmod(0o755)
    (machine.sandbox.directory / "berth.yaml").write_text(f"prolog: {{command: [{program}]}}\n")
    if machine.sandbox.run(["nice", "-n", "-5", "true"]).stderr:
        pytest.skip("this machine's root may not raise priorities")
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    assert run_as(machine, ALICE, "run", "true").code == 0
    assert os.getpriority(os.PRIO_PROCESS, daemon.pid) == -5
    assert (niceness / "prolog").read_text() == "0\n"
    end(daemon)


# ---- The launcher ----


def test_the_launcher_has_the_rights_for_mps_only_if_configured(machine, nobody):
    (machine.sandbox.directory / "berth.yaml").write_text("grace: 300ms\nmps: yes\n")
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    check_rights(machine, daemon, nobody.pw_uid, mps=True)
    end(daemon)


def test_mps_without_its_rights_says_so(machine, source_root):
    """The unit's daemon has no right to become other users without the drop-in of ADMIN.md."""
    (machine.sandbox.directory / "berth.yaml").write_text("mps: yes\n")
    daemon = start_as_the_unit_does(machine, source_root)
    [*_, rights] = daemon_log.wait_for(machine.log, "rights")
    assert (rights.values["mps"], rights.values["missing"]) == (
        "own", "cannot run MPS for other users: CAP_SETUID and CAP_SETGID"
    )
    status = machine.berth("status").stdout
    assert "rights: the daemon cannot run MPS for other users (missing: CAP_SETUID and CAP_SETGID)" in status
    end(daemon)


def test_the_launcher_has_nothing_of_the_daemon(machine, nobody):
    """It holds no lock, socket or log of the daemon, and other processes of its user cannot look into it."""
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    launcher = launcher_of(daemon)
    names = {os.readlink(f"/proc/{launcher}/fd/{number}") for number in os.listdir(f"/proc/{launcher}/fd")}
    assert {name.partition(":")[0] for name in names} == {"/dev/null", "socket"}
    for pid in (daemon.pid, launcher):
        assert os.stat(f"/proc/{pid}/mem").st_uid == 0
        look_inside = f"import os; os.open('/proc/{pid}/mem', os.O_RDONLY)"
        done = machine.sandbox.run([*become(nobody.pw_uid), "/usr/bin/python3", "-c", look_inside])
        assert "PermissionError" in done.stderr
    end(daemon)
    processes.wait_for_end(launcher)


@pytest.mark.parametrize("kind", ["system", "user"])
def test_the_unit_starts_a_daemon_that_has_failed(source_root, kind):
    """The exit code of a daemon whose launcher was killed is none of those that end the service."""
    text = (source_root / "systemd" / kind / "berthd.service.in").read_text()
    says = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    assert says["Restart"] == "on-failure"
    assert LOST_LAUNCHER not in says["RestartPreventExitStatus"].split()


def test_without_its_launcher_the_daemon_ends(machine, nobody):
    """A service manager starts another one, which has the rights again, and the leases."""
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    holder = start_as(machine, ALICE, "run", "sh", "-c", "echo holding; exec cat")
    holder.wait_for_line("^holding$")
    os.kill(launcher_of(daemon), signal.SIGKILL)
    assert daemon.wait() == int(LOST_LAUNCHER)
    daemon_log.wait_for(machine.log, "launcher", what="lost")
    [failure] = [entry for entry in daemon_log.entries(machine.log) if entry.word == "error"]
    assert "berth-launcher has ended" in str(failure)
    daemon = start_as_root(machine, "--user", nobody.pw_name)
    assert [lease["pid"] for lease in look(machine)["leases"]] == [holder.pid]
    machine.let_go(holder)
    end(daemon)
