# SPDX-License-Identifier: Apache-2.0
"""A directory and an environment for each test that runs programs.

Closing a Sandbox kills and reaps every process that the test has not ended, orphans included, and then fails the test.
"""
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import termios
from pathlib import Path
from typing import NamedTuple

import processes
from programs import TIMEOUT, Deadline, Program, Terminal, set_size

# How long a probe may take to notice that its daemon has ended, in seconds.
PROBES_END = 5.0

SANITIZERS = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")


class Result(NamedTuple):
    code: int
    stdout: str
    stderr: str


class Sandbox:
    """A private directory and environment, and the programs started in it."""

    def __init__(self):
        processes.adopt_orphans()
        # A shell starts background jobs with these signals ignored, and children inherit that.
        for number in (signal.SIGINT, signal.SIGQUIT):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        # Not below TMPDIR: the path of a socket must fit into 108 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="b-", dir="/tmp"))
        self.home = self.directory / "home"
        self.home.mkdir()
        # Without an inventory the machine has no devices, even if the real one has some.
        (self.directory / "sysroot").mkdir()
        self.programs = []
        self.environment = self._clean_environment()

    def _clean_environment(self):
        path = os.environ.get("PATH", os.defpath)
        if "BERTH" in os.environ:  # scripts that call `berth` call the program under test
            path = os.path.dirname(os.environ["BERTH"]) + os.pathsep + path
        # The only own daemon is one that the test starts.
        run = str(self.directory / "run")
        clean = {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "BERTH_RUNTIME_DIR": run}
        clean["BERTH_SYSROOT"] = str(self.directory / "sysroot")
        for name in SANITIZERS:  # close() looks for their reports
            if name in os.environ:
                clean[name] = f"{os.environ[name]}:log_path={self.directory}/sanitizer"
        return clean

    def _options(self, env, cwd=None):
        """Returns the environment with changes; None removes a variable."""
        merged = {**self.environment, **(env or {})}
        return {
            "env": {name: str(value) for name, value in merged.items() if value is not None},
            "cwd": cwd or self.directory,
        }

    def run(self, args, timeout=TIMEOUT, input=None, env=None, cwd=None):
        """Runs a program in the sandbox's directory or another, until it has ended and closed its output."""
        with subprocess.Popen(
            [str(arg) for arg in args],
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            **self._options(env, cwd),
        ) as process:
            try:
                out, err = process.communicate(input, timeout)
            except subprocess.TimeoutExpired as late:
                process.kill()
                seen = f"stdout {late.stdout!r}, stderr {late.stderr!r}"
                raise Deadline(f"{args} did not end within {timeout} s; {seen}") from None
        return Result(process.returncode, out, err)

    def start(self, args, env=None):
        """Starts a program. The test must end it."""
        process = subprocess.Popen(
            [str(arg) for arg in args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **self._options(env),
        )
        # The Program owns the descriptors from here on; Popen must not close them again.
        streams = {"stdout": os.dup(process.stdout.fileno()), "stderr": os.dup(process.stderr.fileno())}
        process.stdout.close()
        process.stderr.close()
        return self._keep(Program(process, streams))

    def terminal(self, args, columns=80, rows=24, env=None):
        """Starts a program in its own session on a new terminal."""
        master, slave = os.openpty()
        set_size(slave, columns, rows)
        before = termios.tcgetattr(slave)
        process = subprocess.Popen(
            [str(arg) for arg in args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            **self._options({"TERM": "xterm-256color", **(env or {})}),
        )
        os.close(slave)
        return self._keep(Terminal(process, master, before))

    def _keep(self, program):
        self.programs.append(program)
        return program

    def close(self):
        """Ends all processes. Fails if a process was still running, or if a sanitizer has written a report."""
        processes.await_probes(PROBES_END)
        problems = processes.end_children()
        for program in self.programs:
            program.close()
        for report in sorted(self.directory.glob("sanitizer.*")):
            problems.append(report.read_text(errors="replace"))
        shutil.rmtree(self.directory, ignore_errors=True)
        assert not problems, "\n".join(problems)
