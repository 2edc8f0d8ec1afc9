# SPDX-License-Identifier: Apache-2.0
"""Sharing with MPS on a machine with several users: a user's control daemons run as this user and
serve only this user."""
import os
import signal
import stat

import processes
import pytest
from daemon_log import wait_for
from hostile_processes import StuckProcesses
from mps import kill
from shared_machine import ALICE, BOB
from waiting import until

SHARING = ("--sharing", "mps", "--share", "0.25")

# Without it, a daemon runs MPS only for its own user.
RULES = "mps: yes\n"


@pytest.fixture
def shared_machine(shared_machine_of, mps):
    """Two devices. At the end all control daemons must be gone while their daemon still runs."""
    shared_machine = shared_machine_of(2)
    yield shared_machine
    mps.until_gone()


def check_is_of(control, uid, shared_machine):
    """Check that the control daemon runs with its user's ids, in directories that only this user
    can access."""
    assert set(control.status["Uid"].split()) == set(control.status["Gid"].split()) == {str(uid)}
    assert control.status["Groups"].split() == []
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(control.status[name], 16) == 0, name
    assert control.status["NoNewPrivs"] == "1"
    root = shared_machine.directory / "mps" / str(uid)
    assert control.pipe == root / control.device / "pipe"
    assert control.log == root / control.device / "log"
    for directory in (root, root / control.device, control.pipe, control.log):
        status = directory.stat()
        assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (uid, 0o700)
    assert (control.log / "control.log").stat().st_uid == uid
    base = (shared_machine.directory / "mps").stat()
    assert stat.S_IMODE(base.st_mode) == 0o731


def check_users(shared_machine, mps, daemon_uid):
    """Check two users on two devices: each has its own control daemon, and the user's clients find
    it."""
    alice = shared_machine.hold(ALICE, *SHARING)
    bob = shared_machine.hold(BOB, *SHARING)
    controls = {control.uid: control for control in mps.controls().values()}
    assert sorted(controls) == [ALICE, BOB]
    for uid, control in controls.items():
        check_is_of(control, uid, shared_machine)
    assert (shared_machine.directory / "mps").stat().st_uid == daemon_uid
    # A second tenant of the same user shares the device; a third user gets no device.
    again = shared_machine.hold(ALICE, *SHARING)
    assert {control.pid for control in mps.controls().values()} == {control.pid for control in controls.values()}
    assert shared_machine.berth(BOB + 100, "run", *SHARING, "--nonblock", "true").code == 123
    with mps.client(controls[ALICE], shared_machine.become(ALICE)) as client:
        client.wait_for_line("^server ")
        with mps.client(controls[ALICE], shared_machine.become(BOB)) as other:
            assert other.wait() == 1
            assert other.text() == "refused\n"
        client.process.stdin.close()
        client.process.stdin = None
        assert client.wait() == 0
    for holder in (alice, bob, again):
        shared_machine.let_go(holder)
    mps.until_gone()


def test_root_serves_everybody(shared_machine, mps):
    shared_machine.open(RULES)
    check_users(shared_machine, mps, 0)


def test_an_ordinary_user_with_few_rights_serves_everybody(shared_machine, mps, nobody):
    shared_machine.open(RULES, "--user", "nobody")
    check_users(shared_machine, mps, nobody.pw_uid)


def test_groups_of_the_user(shared_machine, mps, nobody):
    """If the user database knows the user, its groups are used, not those of the client."""
    shared_machine.open(RULES)
    holder = shared_machine.hold(nobody.pw_uid, *SHARING)
    [control] = mps.controls().values()
    assert control.status["Gid"].split()[0] == str(nobody.pw_gid)
    wanted = {str(gid) for gid in os.getgrouplist(nobody.pw_name, nobody.pw_gid)}
    assert set(control.status["Groups"].split()) == wanted
    assert control.environment["HOME"] == nobody.pw_dir
    shared_machine.let_go(holder)
    mps.until_gone()


def test_what_the_command_is_told(shared_machine, mps):
    shared_machine.open(RULES)
    done = shared_machine.berth(ALICE, "run", *SHARING, "--memory", "8GiB", "--", "env")
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    root = shared_machine.directory / f"mps/{ALICE}/nvidia0"
    assert told["CUDA_MPS_PIPE_DIRECTORY"] == str(root / "pipe")
    assert told["CUDA_MPS_LOG_DIRECTORY"] == str(root / "log")
    assert told["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    assert told["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"].startswith("0=")
    assert told["CUDA_VISIBLE_DEVICES"] == "GPU-0"


def test_directories_with_the_rights_of_the_user_alone(shared_machine, mps, sandbox):
    """A user cannot make the daemon create or use directories that the user cannot access."""
    shared_machine.open(RULES)
    private = sandbox.directory / "private"
    private.mkdir(mode=0o700)
    done = shared_machine.berth(ALICE, "run", *SHARING, "--mps-pipe-dir", private / "pipe", "true")
    assert done.code == 125
    words = f"cannot start the MPS control daemon of nvidia0: cannot create {private}/pipe: Permission denied"
    assert done.stderr == f"berth: run: {words}\n"
    assert not list(private.iterdir())
    shown = sandbox.directory / "shown"
    shown.mkdir()
    shown.chmod(0o755)
    done = shared_machine.berth(ALICE, "run", *SHARING, "--mps-log-dir", shown, "true")
    assert done.code == 125
    assert f"{shown}: expected a directory that user {ALICE} may write to, got one of root" in done.stderr


def test_directories_of_others_are_refused(shared_machine, mps):
    """A file or directory of another owner in the place of a user's directory is not used."""
    shared_machine.open(RULES)
    base = shared_machine.directory / "mps"
    base.mkdir()
    (base / str(ALICE)).mkdir()
    done = shared_machine.berth(ALICE, "run", *SHARING, "true")
    assert done.code == 125
    words = f"{base}/{ALICE}: expected a directory of user {ALICE}, got one of root"
    assert done.stderr.endswith(f"cannot start the MPS control daemon of nvidia0: {words}\n")


def test_it_is_taken_over(shared_machine, mps, nobody):
    """A daemon that restarts as another user continues with the existing control daemons."""
    shared_machine.open(RULES)
    holder = shared_machine.hold(ALICE, *SHARING)
    [control] = mps.controls().values()
    shared_machine.close(signal.SIGKILL)
    shared_machine.open(RULES, "--user", "nobody")
    wait_for(shared_machine.log, "mps", state="restored")
    second = shared_machine.hold(ALICE, *SHARING)
    assert [other.pid for other in mps.controls().values()] == [control.pid]
    # The new daemon restarts a control daemon that dies.
    kill(control)
    other = mps.until_other(control)
    check_is_of(other, ALICE, shared_machine)
    shared_machine.let_go(holder)
    shared_machine.let_go(second)
    mps.until_gone()
    processes.wait_for_end(other.pid)


def test_its_program_is_fixed_from_the_start(shared_machine, mps, nobody):
    """The launcher runs only the control program that was configured when it started."""
    program = shared_machine.sandbox.environment.pop("BERTH_MPS_CONTROL")
    shared_machine.open(RULES + f"mps_control: {program}\n", "--user", "nobody")
    shared_machine.reload(RULES + "mps_control: /bin/false\n")
    holder = shared_machine.hold(ALICE, *SHARING)
    shared_machine.let_go(holder)
    mps.until_gone()


def start_without_rights(shared_machine, rules):
    """Start a daemon of ALICE, without any capability."""
    shared_machine.directory.mkdir()
    os.chown(shared_machine.directory, ALICE, ALICE)
    shared_machine.log.touch()
    os.chown(shared_machine.log, ALICE, ALICE)
    shared_machine.rules.write_text(rules)
    args = ["berthd", "--socket", shared_machine.socket, *shared_machine.devices, "--config", shared_machine.rules, "--log", shared_machine.log]
    shared_machine.daemon = shared_machine.sandbox.start([*shared_machine.become(ALICE), *args])
    until(shared_machine.serves, "a daemon that serves")


def check_refusal(shared_machine, words):
    done = shared_machine.berth(BOB, "run", *SHARING, "true")
    assert (done.code, done.stderr) == (120, f"berth: run: sharing mps: {words}\n")
    assert shared_machine.berth(BOB, "run", *SHARING, "--or-cpu", "true").code == 0


def test_a_daemon_that_may_not_become_others(shared_machine, mps):
    """The daemon serves its own user, and tells other users which privilege is missing."""
    start_without_rights(shared_machine, RULES)
    holder = shared_machine.hold(ALICE, *SHARING)
    [control] = mps.controls().values()
    check_is_of(control, ALICE, shared_machine)
    check_refusal(
        shared_machine,
        f"the daemon cannot become user {BOB}: it was started without CAP_SETUID and CAP_SETGID, or before mps: yes",
    )
    shared_machine.let_go(holder)
    [rights] = wait_for(shared_machine.log, "rights")
    assert rights.values["mps"] == "own"
    assert "cannot run MPS for other users: CAP_SETUID and CAP_SETGID" in rights.values["missing"]
    mps.until_gone()


def test_a_user_whose_processes_no_signal_ends(shared_machine, mps, sandbox):
    """A device counts for its user until its control daemon has ended: nobody can block more devices than the limit."""
    shared_machine.open(RULES + "limits: {each_user: 1}\n")
    marks = {"BERTH_LEASE": 1 << 63, "BERTH_SOCKET": shared_machine.socket}
    holder = shared_machine.hold(ALICE, "--sharing", "mps", "--share", "1", "--device", "nvidia0")
    with StuckProcesses(sandbox, ALICE, mode="read", variables=marks) as stuck:
        shared_machine.let_go(holder)
        words = f"process {stuck.pids[0]} (uid {ALICE}) of the MPS control daemon of nvidia0 still runs "
        for sharing in ((), SHARING):
            assert shared_machine.berth(ALICE, "run", *sharing, "--nonblock", "true").code == 123
            assert shared_machine.berth(BOB, "run", *sharing, "true").code == 0
        until(lambda: words in shared_machine.berth(BOB, "status").stdout, "the process in status")
        assert shared_machine.berth(ALICE, "run", "--nonblock", "true").code == 123
    assert shared_machine.berth(ALICE, "run", *SHARING, "true").code == 0


@pytest.mark.parametrize("options", [(), ("--user", "nobody")], ids=["root", "user"])
def test_it_is_off_for_others_by_default(shared_machine, mps, options):
    shared_machine.open("", *options)
    [rights] = wait_for(shared_machine.log, "rights")
    assert rights.values["mps"] == "own" and "missing" not in rights.values
    owner = "nobody" if options else "root"
    check_refusal(shared_machine, f"this pool runs MPS only for {owner} (others need mps: yes in its configuration)")


def test_it_is_on_only_from_the_start(shared_machine, mps, nobody):
    """The daemon has given the rights up when it reads its configuration again."""
    shared_machine.open("", "--user", "nobody")
    shared_machine.reload(RULES)
    check_refusal(
        shared_machine,
        f"the daemon cannot become user {BOB}: it was started without CAP_SETUID and CAP_SETGID, or before mps: yes",
    )
