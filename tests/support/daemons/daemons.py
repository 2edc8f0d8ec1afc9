# SPDX-License-Identifier: Apache-2.0
"""Daemons that a test starts itself, instead of the one that berth starts on demand."""
import os
import select
import signal
import socket
import subprocess

import processes
from programs import TIMEOUT, Program


def own_daemon(pool, *options, program="berthd", inventory=None):
    """Returns the command line of the pool's own daemon, and makes its directories."""
    for directory in (pool.runtime, pool.directory):
        directory.mkdir(mode=0o700, exist_ok=True)
    words = [program, "--own", pool.directory, "--inventory", inventory or pool.inventory]
    return [*words, "--log", pool.directory / "log", *options]


def start_daemon(pool, *options, env=None, **values):
    """Starts the pool's own daemon and waits until it is ready. It ends with the test at the latest."""
    daemon = pool.sandbox.start(own_daemon(pool, *options, **values), env=env)
    daemon.wait_for_line("^ready$")
    return daemon


def start_daemon_in_use(pool, *options, **about):
    """Starts a daemon that restores a lease, so that it is not idle before the holder ends."""
    holder = pool.hold()
    pool.end_daemon()
    return start_daemon(pool, *options, **about), holder


def listen(path, kind=socket.SOCK_SEQPACKET):
    listener = socket.socket(socket.AF_UNIX, kind)
    listener.bind(str(path))
    listener.listen()
    return listener


def until_readable(listener):
    """Waits until a client connects."""
    assert select.select([listener], [], [], TIMEOUT)[0], "no client connected"


def start_activated(sandbox, listener, args, env=None):
    """Starts a daemon with a socket as descriptor 3, as a service manager does."""
    words = " ".join(str(arg) for arg in args)
    process = subprocess.Popen(
        ["sh", "-c", f"LISTEN_FDS=1 LISTEN_PID=$$ exec {words}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(3,),
        preexec_fn=lambda: os.dup2(listener.fileno(), 3),
        cwd=sandbox.directory,
        env={name: str(value) for name, value in {**sandbox.environment, **(env or {})}.items()},
    )
    streams = {"stdout": os.dup(process.stdout.fileno()), "stderr": os.dup(process.stderr.fileno())}
    process.stdout.close()
    process.stderr.close()
    program = Program(process, streams)
    sandbox.programs.append(program)
    return program


def start_asked_for(pool, command, *options):
    """Starts a command, and then its daemon, which thus has a client from the start. Returns both."""
    words = own_daemon(pool, *options)
    with listen(pool.socket) as listener:
        asker = pool.start(*command)
        until_readable(listener)
        return asker, start_activated(pool.sandbox, listener, words)


def end(pid, number=signal.SIGKILL):
    os.kill(pid, number)
    processes.wait_for_end(pid)
    processes.await_newborns()
