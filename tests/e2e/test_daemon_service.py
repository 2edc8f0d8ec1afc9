# SPDX-License-Identifier: Apache-2.0
"""The daemon in the hands of a service manager: sockets, readiness, reloading."""
import os
import pwd
import signal
import socket

import daemon_log
import pytest
import wire
from daemons import start_activated, start_daemon
from waiting import look, until, until_pending

USER = pwd.getpwuid(os.geteuid()).pw_name


class Manager:
    """The end of NOTIFY_SOCKET where messages arrive."""

    def __init__(self, sandbox, abstract=False):
        path = str(sandbox.directory / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + path if abstract else path)
        self.socket.settimeout(10)
        self.env = {"NOTIFY_SOCKET": "@" + path if abstract else path}

    def expect(self, start):
        message = self.socket.recv(4096).decode()
        assert message.startswith(start), message


@pytest.fixture
def machine(pool_of):
    """A pool that is named by BERTH_SOCKET, whose daemon is the test's to start."""
    pool = pool_of(2)
    pool.socket = pool.sandbox.directory / "machine.sock"
    pool.sandbox.environment["BERTH_SOCKET"] = str(pool.socket)
    return pool


def daemon_args(pool):
    return ["berthd", "--socket", pool.socket, "--inventory", pool.inventory]


def listen(path, kind=socket.SOCK_SEQPACKET):
    listener = socket.socket(socket.AF_UNIX, kind)
    listener.bind(str(path))
    listener.listen()
    return listener


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


def test_daemon_verb_becomes_the_daemon(machine):
    manager = Manager(machine.sandbox)
    with machine.sandbox.start(["berth", *daemon_args(machine)], env=manager.env) as other:
        assert other.wait() == 2  # berthd is no verb
    args = ["berth", "daemon", *daemon_args(machine)[1:]]
    with machine.sandbox.start(args, env=manager.env) as daemon:
        manager.expect("READY=1")
        with wire.connect(str(machine.socket)) as client:
            assert client.hello()["pid"] == daemon.pid
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


def test_not_own_does_not_idle(machine):
    """A machine's daemon stays, and leaves who connects later as many rights as the file's mode."""
    manager = Manager(machine.sandbox)
    with machine.sandbox.start([*daemon_args(machine), "--idle", "20ms"], env=manager.env) as daemon:
        manager.expect("READY=1")
        assert machine.socket.stat().st_mode & 0o777 == 0o666
        with pytest.raises(AssertionError):
            daemon.wait(timeout=0.3)
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


# ---- Sockets that somebody else made ----


def test_activation(machine):
    """Who connects before and between daemons is served, and the socket stays."""
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


def test_activation_by_another_kind_of_socket(machine):
    with listen(machine.socket, socket.SOCK_STREAM) as listener:
        daemon = start_activated(machine.sandbox, listener, daemon_args(machine))
        assert daemon.wait() == 2
        assert daemon.text("stderr") == (
            "berth: LISTEN_FDS: wanted a local SEQPACKET socket that listens, found another\n"
        )


def test_activation_of_somebody_else(machine):
    """Variables that were meant for another process are no sockets for this one."""
    manager = Manager(machine.sandbox)
    env = {**manager.env, "LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    with machine.sandbox.start(daemon_args(machine), env=env) as daemon:
        manager.expect("READY=1")
        assert machine.berth("run", "true").code == 0
        daemon.kill(signal.SIGTERM)
        assert daemon.wait() == 0
    manager.socket.close()


# ---- Rules that change ----


class Rules:
    """The pool's configuration file and a daemon that reads it."""

    def __init__(self, pool, text):
        self.pool = pool
        self.path = pool.sandbox.home / ".config/berth/berth.yaml"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(text)
        self.daemon = start_daemon(pool)
        self.log = pool.directory / "log"

    def reload(self, text):
        """Says whether the daemon took the new ones."""
        before = sum(e.word in ("reloaded", "error") for e in daemon_log.entries(self.log))
        self.path.write_text(text)
        self.daemon.kill(signal.SIGHUP)

        def came():
            words = [e.word for e in daemon_log.entries(self.log) if e.word in ("reloaded", "error")]
            return words[before:]

        return until(came, "a word about reloading")[0] == "reloaded"


def limit(count):
    return f"limits: {{users: {{{USER}: {count}}}}}\n"


def test_reload_moves_limits(pool_of):
    pool = pool_of(4)
    rules = Rules(pool, limit(1))
    done = pool.berth("run", "-n2", "true")
    assert done.code == 120 and "may hold at most 1 device" in done.stderr
    holder = pool.hold()
    with pool.start("run", "echo", "second") as second:
        until_pending(pool, 1)  # for the limit only: three devices are free
        assert rules.reload(limit(3))
        assert (second.wait(), second.text()) == (0, "second\n")
    assert pool.berth("run", "-n3", "--nonblock", "true").code == 123
    assert pool.berth("run", "-n2", "--nonblock", "true").code == 0
    assert rules.reload("")
    assert pool.berth("run", "-n3", "--nonblock", "true").code == 0
    assert rules.reload(limit(1))  # less than what is held takes nothing back
    assert len(look(pool)["leases"]) == 1
    assert pool.berth("run", "--nonblock", "true").code == 123
    pool.let_go(holder)


@pytest.mark.parametrize(
    "broken",
    ["limits: [", "limtis: {}\n", "grace: -1\n", "policy: nicest\n", f"limits: {{users: {{{USER}: 3, nobody-here: 1}}}}\n"],
    ids=["syntax", "misspelt", "value", "policy", "user"],
)
def test_broken_rules_change_nothing(pool_of, broken):
    pool = pool_of(4)
    rules = Rules(pool, limit(2))
    assert not rules.reload(broken)
    [error] = [entry for entry in daemon_log.entries(rules.log) if entry.word == "error"]
    assert error.values["what"] == "reload"
    assert "berth.yaml" in rules.log.read_text()
    assert pool.berth("run", "-n2", "true").code == 0
    assert pool.berth("run", "-n3", "true").code == 120
    assert rules.reload(limit(3))
    assert pool.berth("run", "-n3", "true").code == 0


def test_rules_that_went_away(pool_of):
    """Without a file there are the rules of without a file."""
    pool = pool_of(2)
    rules = Rules(pool, limit(1))
    rules.path.unlink()
    rules.daemon.kill(signal.SIGHUP)
    daemon_log.wait_for(rules.log, "reloaded")
    assert pool.berth("run", "-n2", "true").code == 0


def test_broken_rules_at_the_start(pool_of):
    pool = pool_of(1)
    path = pool.sandbox.home / ".config/berth/berth.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("grace: soon\n")
    done = pool.berth("run", "true")
    assert done.code in (2, 125)
    assert f"{path}:1:" in done.stderr and done.stderr.count("\n") == 1
    done = pool.sandbox.run(["berthd", "--check-config", "--config", path])
    assert done.code == 2 and f"{path}:1:" in done.stderr
    path.write_text("grace: 1s\n")
    assert pool.sandbox.run(["berthd", "--check-config", "--config", path]).code == 0
    assert pool.berth("run", "true").code == 0
