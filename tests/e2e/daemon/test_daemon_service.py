# SPDX-License-Identifier: Apache-2.0
"""The daemon under a service manager: sockets and readiness."""
import contextlib
import os
import pwd
import resource
import signal
import socket

import pytest
import wire
from daemons import listen, start_activated, until_readable
from waiting import until_pending


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, sandbox, abstract=False):
        path = str(sandbox.directory / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + path if abstract else path)
        self.socket.settimeout(10)
        self.env = {"NOTIFY_SOCKET": "@" + path if abstract else path}

    def expect(self, start):
        message = self.socket.recv(4096).decode()
        assert message.startswith(start), message

    def drain(self):
        """Drop the messages that have arrived."""
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.socket.recv(4096)
        self.socket.settimeout(10)


@pytest.fixture
def machine(pool_of):
    """A pool named by BERTH_SOCKET. The test starts its daemon."""
    pool = pool_of(2)
    pool.socket = pool.sandbox.directory / "machine.sock"
    pool.sandbox.environment["BERTH_SOCKET"] = str(pool.socket)
    return pool


def daemon_args(pool):
    return ["berthd", "--socket", pool.socket, "--inventory", pool.inventory]


# ---- Readiness ----


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_readiness(machine, abstract):
    manager = Manager(machine.sandbox, abstract)
    with machine.sandbox.start(daemon_args(machine), env=manager.env) as daemon:
        manager.expect("READY=1")
        assert machine.berth("run", "true").code == 0
        daemon.kill(signal.SIGHUP)
        manager.expect("RELOADING=1\nMONOTONIC_USEC=")
        manager.expect("READY=1")
        daemon.kill(signal.SIGTERM)
        manager.expect("STOPPING=1")
        assert daemon.wait() == 0
    assert not machine.socket.exists()
    manager.socket.close()


def test_watchdog(machine):
    """The daemon says that it is alive, at least twice in the time that the service manager gives it."""
    manager = Manager(machine.sandbox)
    environment = {**manager.env, "WATCHDOG_USEC": "400000"}
    with machine.sandbox.start(daemon_args(machine), env=environment) as daemon:
        manager.expect("WATCHDOG=1")
        manager.expect("READY=1")
        for _ in range(3):
            manager.expect("WATCHDOG=1")
        daemon.kill(signal.SIGSTOP)
        manager.socket.settimeout(2)
        with pytest.raises(TimeoutError):
            while True:
                manager.expect("WATCHDOG=1")
        manager.socket.settimeout(10)
        daemon.kill(signal.SIGCONT)
        manager.expect("WATCHDOG=1")
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


def test_watchdog_without_descriptors(machine):
    """A daemon that can open no file is not stuck."""
    manager = Manager(machine.sandbox)
    environment = {**manager.env, "WATCHDOG_USEC": "400000"}
    with machine.sandbox.start(daemon_args(machine), env=environment) as daemon:
        manager.expect("WATCHDOG=1")
        manager.expect("READY=1")
        assert machine.berth("run", "true").code == 0
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, 1024))
        manager.drain()
        for _ in range(3):
            manager.expect("WATCHDOG=1")
        # A sanitizer needs descriptors at the end.
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


def test_watchdog_of_a_manager_that_was_restarted(machine):
    manager = Manager(machine.sandbox)
    environment = {**manager.env, "WATCHDOG_USEC": "400000"}
    with machine.sandbox.start(daemon_args(machine), env=environment) as daemon:
        manager.expect("WATCHDOG=1")
        manager.expect("READY=1")
        manager.socket.close()
        os.unlink(manager.env["NOTIFY_SOCKET"])
        manager = Manager(machine.sandbox)
        manager.expect("WATCHDOG=1")
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


def test_daemon_verb_becomes_the_daemon(machine):
    manager = Manager(machine.sandbox)
    with machine.sandbox.start(["berth", *daemon_args(machine)], env=manager.env) as other:
        assert other.wait() == 2  # berthd is not a verb
    args = ["berth", "daemon", *daemon_args(machine)[1:]]
    with machine.sandbox.start(args, env=manager.env) as daemon:
        manager.expect("READY=1")
        with wire.connect(str(machine.socket)) as client:
            assert client.hello()["pid"] == daemon.pid
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


def test_not_own_does_not_idle(machine):
    """A machine's daemon does not exit when it is idle. Its socket is open to all users."""
    manager = Manager(machine.sandbox)
    with machine.sandbox.start([*daemon_args(machine), "--idle", "20ms"], env=manager.env) as daemon:
        manager.expect("READY=1")
        assert machine.socket.stat().st_mode & 0o777 == 0o666
        with pytest.raises(AssertionError):
            daemon.wait(timeout=0.3)
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


# ---- Inherited sockets ----


def test_activation(machine):
    """Clients that connect before a daemon starts, or between two daemons, are served. The socket
    stays."""
    with listen(machine.socket) as listener, machine.start("run", "echo", "early") as early:
        first = start_activated(machine.sandbox, listener, daemon_args(machine))
        assert (early.wait(), early.text()) == (0, "early\n")
        holder = machine.hold("-n2")
        first.kill(signal.SIGTERM)
        assert first.wait() == 0
        assert machine.socket.exists()
        with machine.start("run", "echo", "between") as between:
            second = start_activated(machine.sandbox, listener, daemon_args(machine))
            until_pending(machine, 1)
            machine.let_go(holder)
            assert (between.wait(), between.text()) == (0, "between\n")
        second.kill(signal.SIGTERM)
        assert second.wait() == 0


def test_activation_of_the_users_own(pool_of):
    """A user's own daemon exits when it is idle, but the service manager keeps the socket. The
    manager starts the next daemon, and no command starts another one."""
    pool = pool_of(1)
    args = ["berthd", "--own", pool.directory, "--inventory", pool.inventory, "--idle", "50ms"]
    for directory in (pool.runtime, pool.directory):
        directory.mkdir(mode=0o700)
    with listen(pool.socket) as listener:
        inode = pool.socket.stat().st_ino
        for number in (None, None, signal.SIGTERM):
            # The command connects before the daemon runs.
            with pool.start("run", "echo", "fine") as command:
                until_readable(listener)
                daemon = start_activated(pool.sandbox, listener, args if number is None else args[:-2])
                assert (command.wait(), command.text(), command.text("stderr")) == (0, "fine\n", "")
            if number is not None:
                daemon.kill(number)
            assert daemon.wait() == 0
            assert pool.socket.stat().st_ino == inode
        assert pool.daemons() == []
    # The service manager has ended: commands start a daemon themselves and clean up.
    assert pool.berth("run", "echo", "fine") == (0, "fine\n", "")
    pool.end_daemon()
    assert not pool.socket.exists()


def test_activation_in_an_untrusted_directory(pool_of):
    """The service manager does not check the directory, so the daemon does."""
    pool = pool_of(1)
    pool.runtime.mkdir(mode=0o700)
    pool.directory.mkdir()
    pool.directory.chmod(0o755)
    args = ["berthd", "--own", pool.directory, "--inventory", pool.inventory]
    with listen(pool.socket) as listener:
        daemon = start_activated(pool.sandbox, listener, args)
        assert daemon.wait() == 125
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert daemon.text("stderr").endswith(
        f"berth: {pool.directory}: expected a directory of {user} that is closed to others (mode 0700), "
        f"got one of {user} with mode 0755\n"
    )
    assert not (pool.directory / "berth.lock").exists()


def test_activation_by_another_kind_of_socket(machine):
    with listen(machine.socket, socket.SOCK_STREAM) as listener:
        daemon = start_activated(machine.sandbox, listener, daemon_args(machine))
        assert daemon.wait() == 2
        assert daemon.text("stderr") == (
            "berth: LISTEN_FDS: expected a listening local SEQPACKET socket, got another\n"
        )


def test_activation_of_somebody_else(machine):
    """The daemon ignores socket variables that are meant for another process."""
    manager = Manager(machine.sandbox)
    env = {**manager.env, "LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    with machine.sandbox.start(daemon_args(machine), env=env) as daemon:
        manager.expect("READY=1")
        assert machine.berth("run", "true").code == 0
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()
