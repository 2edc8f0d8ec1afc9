# SPDX-License-Identifier: Apache-2.0
"""Daemons that a test starts by hand, where the one that berth starts by itself will not do."""
import os
import signal
import subprocess

import processes
from programs import Program


def start_daemon(pool, *options, program="berthd", inventory=None, env=None):
    """Starts the pool's own daemon and waits until it serves; it ends with the test at the latest."""
    for directory in (pool.runtime, pool.directory):
        directory.mkdir(mode=0o700, exist_ok=True)
    args = [program, "--own", pool.directory, "--inventory", inventory or pool.inventory]
    daemon = pool.sandbox.start([*args, "--log", pool.directory / "log", *options], env=env)
    daemon.wait_for_line("^ready$")
    return daemon


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


def end(pid, number=signal.SIGKILL):
    os.kill(pid, number)
    processes.wait_for_end(pid)
