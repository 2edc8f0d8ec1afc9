# SPDX-License-Identifier: Apache-2.0
"""The user's own daemon: it starts on demand from any process and directory, and exits when it is
idle."""
import os
import random
import shutil
import signal
import socket
import time
from pathlib import Path

import daemon_log
import pytest
import wire
from daemons import end, start_daemon, start_daemon_in_use
from programs import Deadline
from steps import test_steps
from waiting import look, until, until_pending

# ---- Start ----


@pytest.mark.parametrize("count", [2, 20])
def test_race_to_start_it(pool_of, count):
    pool = pool_of(2)
    programs = [pool.start("run", "sh", "-c", "echo $BERTH_LEASE") for _ in range(count)]
    assert [program.wait() for program in programs] == [0] * count
    assert len({int(program.text()) for program in programs}) == count
    assert len(pool.daemons()) == 1
    assert len(daemon_log.wait_for(pool.directory / "log", "started")) == 1


def leave_dead_socket(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(path))
        dead.listen()


def leave_file(path):
    path.write_text("no socket")


@pytest.mark.parametrize("leave", [leave_dead_socket, leave_file])
def test_stale_socket(pool_of, leave):
    pool = pool_of(1)
    pool.directory.mkdir(mode=0o700, parents=True)
    pool.runtime.chmod(0o700)
    leave(pool.socket)
    assert pool.berth("run", "true").code == 0
    assert len(pool.daemons()) == 1


def make_symlink(path):
    path.with_name("elsewhere").mkdir(mode=0o700)
    path.symlink_to("elsewhere")


def make_open(path):
    path.mkdir()
    path.chmod(0o770)


def make_file(path):
    path.write_text("")


def make_foreign(path):
    if os.geteuid() != 0:
        pytest.skip("only root can change a directory's owner")
    path.mkdir(mode=0o700)
    os.chown(path, 65534, 65534)


@pytest.mark.parametrize("inner", [False, True], ids=["outer", "inner"])
@pytest.mark.parametrize(
    "make, words",
    [
        (make_symlink, "expected a directory, got a symlink"),
        (make_open, "expected a directory with mode 0700, got mode 0770"),
        (make_file, "expected a directory, got a file"),
        (
            make_foreign,
            "expected a directory of root, got one of nobody; set BERTH_RUNTIME_DIR to use another directory",
        ),
    ],
    ids=["symlink", "open", "file", "foreign"],
)
def test_untrusted_directory(pool_of, make, words, inner):
    pool = pool_of(1)
    if inner:
        pool.runtime.mkdir(mode=0o700)
    path = pool.directory if inner else pool.runtime
    make(path)
    done = pool.berth("run", "true")
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr == f"berth: run: {path}: {words}\n"
    assert pool.daemons() == []


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can act as two users")
def test_squatted_directory(pool_of):
    """Another user has created the default directory first: the daemon uses the user's runtime directory."""
    pool = pool_of(1)
    pool.sandbox.directory.chmod(0o711)
    uid = 600000 + os.getpid()  # a user whose directory no other program uses
    session = pool.sandbox.directory / "session"
    squatted = Path(f"/tmp/berth-{uid}")
    env = {"BERTH_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": session, "HOME": session}
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    squatted.mkdir(mode=0o700)
    try:
        done = pool.sandbox.run([*become, "berth", "run", "true"], env=env)
        assert done.code == 125
        assert done.stderr.startswith(f"berth: run: {squatted}: expected a directory of user {uid}, got one of root; ")
        session.mkdir(mode=0o700)
        os.chown(session, uid, uid)
        done = pool.sandbox.run([*become, "berth", "run", "printenv", "BERTH_SOCKET"], env=env)
        assert (done.code, done.stderr) == (0, "")
        assert done.stdout == f"{session}/berth/{pool.directory.name}/berth.sock\n"
        assert list(squatted.iterdir()) == []
    finally:
        squatted.rmdir()
        pool.end_daemon()


def test_directory_that_cannot_be_made(pool_of):
    pool = pool_of(1)
    done = pool.berth("run", "true", env={"BERTH_RUNTIME_DIR": "/proc/berth"})
    assert done.code == 125
    assert done.stderr.startswith("berth: run: cannot create the directory /proc/berth: ")


def test_unwritable_directory(pool_of):
    if os.geteuid() == 0:
        pytest.skip("root can write everywhere")
    pool = pool_of(1)
    pool.directory.mkdir(mode=0o700, parents=True)
    pool.runtime.chmod(0o700)
    pool.directory.chmod(0o500)
    done = pool.berth("run", "true")
    assert done.code == 125
    assert str(pool.directory) in done.stderr and "Permission denied" in done.stderr


def test_started_from_a_masked_shell(pool_of):
    """The daemon has all devices. Requests from that shell get only the devices of the shell's mask."""
    pool = pool_of(4)
    masked = {"CUDA_VISIBLE_DEVICES": "2,1"}
    done = pool.berth("run", "-n2", "sh", "-c", "echo $BERTH_DEVICES $CUDA_VISIBLE_DEVICES", env=masked)
    assert (done.code, done.stdout) == (0, "nvidia1,nvidia2 1,2\n")
    assert pool.berth("run", "-n3", "true", env=masked).code == 120
    assert pool.berth("run", "-n4", "true").code == 0
    assert len(pool.daemons()) == 1


def test_started_from_a_deleted_directory(pool_of):
    pool = pool_of(1)
    script = "mkdir gone && cd gone && rmdir ../gone && exec berth run echo fine"
    done = pool.sandbox.run(["sh", "-c", script])
    assert (done.code, done.stdout) == (0, "fine\n")
    [pid] = pool.daemons()
    if os.getuid() == 0:  # the kernel hides it from other users, because the daemon is not dumpable
        assert os.readlink(f"/proc/{pid}/cwd") == "/"


def test_broken_inventory(pool_of):
    pool = pool_of("devices: [{vendor: nvidia}]\n")
    done = pool.berth("run", "true")
    assert done.code == 2
    assert f"{pool.inventory}:1:" in done.stderr and done.stderr.count("\n") == 1
    until(lambda: pool.daemons() == [], "the end of the daemon that could not start")


def test_other_inventory(pool_of):
    pool = pool_of(1)
    assert pool.berth("run", "true").code == 0
    other = pool.sandbox.directory / "other.yaml"
    other.write_text(pool.inventory.read_text())
    done = pool.berth("run", "--inventory", other, "true", env={"BERTH_SOCKET": pool.socket})
    assert done.code == 2
    assert done.stderr == (
        f"berth: run: --inventory: expected {pool.inventory}, which this pool uses, got {other}\n"
    )


# ---- Exit ----


def test_gone_after_being_idle(pool_of):
    pool = pool_of(1)
    daemon, holder = start_daemon_in_use(pool, "--idle", "100ms")
    pool.let_go(holder)
    assert daemon.wait() == 0
    assert not pool.socket.exists()
    assert pool.berth("run", "true").code == 0


def stays(daemon):
    with pytest.raises(Deadline):
        daemon.wait(timeout=0.4)
    return True


def test_stays_while_it_is_of_use(pool_of):
    pool = pool_of(1)
    daemon, holder = start_daemon_in_use(pool, "--idle", "50ms")
    assert stays(daemon)  # held by a process without a connection
    with pool.start("run", "true") as waiting:
        until_pending(pool, 1)
        assert stays(daemon)
        pool.let_go(holder)
        assert waiting.wait() == 0
    assert daemon.wait() == 0


def test_stays_while_something_is_reserved(pool_of):
    pool = pool_of(2)
    daemon, holder = start_daemon_in_use(pool, "--idle", "50ms")
    with wire.connect(str(pool.socket)) as client:
        grant = client.claim({"time": 3600 * 10**9}, hold=wire.HOLDS["NOTHING"])
    pool.let_go(holder)
    assert stays(daemon)
    with wire.connect(str(pool.socket)) as client:
        client.stop(grant["id"])
    assert daemon.wait() == 0


def test_stays_while_somebody_is_connected(pool_of):
    pool = pool_of(1)
    daemon, holder = start_daemon_in_use(pool, "--idle", "50ms")
    with wire.connect(str(pool.socket)) as client:
        client.hello()
        pool.let_go(holder)
        assert stays(daemon)
    assert daemon.wait() == 0


def test_command_that_comes_as_it_goes(pool_of):
    """A command that connects while the daemon exits gets another daemon and does not notice."""
    pool = pool_of(4)
    chance = random.Random(1)
    for _ in range(test_steps(12, 200)):
        daemon = start_daemon(pool, "--idle", "4ms")
        programs = []
        for _ in range(6):
            programs.append(pool.start("run", "echo", "fine"))
            time.sleep(0.004 * chance.random())  # the moment is random
        for program in programs:
            assert (program.wait(), program.text(), program.text("stderr")) == (0, "fine\n", "")
            program.close()
            pool.sandbox.programs.remove(program)
        for pid in pool.daemons():
            end(pid)
        daemon.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_stopped_daemon_keeps_leases_and_queue(pool_of, number):
    pool = pool_of(1)
    start_daemon(pool)
    holder = pool.hold()
    with pool.start("run", "sh", "-c", "echo $BERTH_LEASE") as waiting:
        until_pending(pool, 1)
        before = look(pool)
        pool.end_daemon(number)
        until_pending(pool, 1)  # it has started another
        after = look(pool)
        for name in ("leases", "claims"):
            assert [entry["id"] for entry in after[name]] == [entry["id"] for entry in before[name]]
        assert after["leases"][0]["granted"] == before["leases"][0]["granted"]
        pool.let_go(holder)
        assert (waiting.wait(), waiting.text()) == (0, "2\n")


def test_two_daemons_of_one_directory(pool_of):
    """The second daemon waits for the first to exit, then gives up and does not disturb it."""
    pool = pool_of(1)
    first = start_daemon(pool)
    args = ["berthd", "--own", pool.directory, "--inventory", pool.inventory]
    with pool.sandbox.start(args) as second:
        assert second.wait() == 125
        assert "another daemon uses it" in second.text("stderr")
    assert pool.berth("run", "true").code == 0
    assert pool.daemons() == [first.pid]
    until(lambda: pool.socket.exists(), "the socket")
