# SPDX-License-Identifier: Apache-2.0
"""Control daemons of the MPS double (doubles/mps_control.c) in a sandbox."""
import os
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

import processes
import pytest
from waiting import until

SHARING_MPS = 1


class Control(NamedTuple):
    """A running control daemon, as /proc describes it."""

    pid: int
    environment: dict
    status: dict

    @property
    def uid(self):
        return int(self.status["Uid"].split()[0])

    @property
    def pipe(self):
        return Path(self.environment["CUDA_MPS_PIPE_DIRECTORY"])

    @property
    def log(self):
        return Path(self.environment["CUDA_MPS_LOG_DIRECTORY"])

    @property
    def device(self):
        return self.environment["BERTH_MPS"]


def read_control(pid):
    """Returns a control daemon, or None if it has ended or has not executed its program yet."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    environment = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if "BERTH_MPS" not in environment or status["State"].startswith("Z"):
        return None
    return Control(pid, environment, status)


def session_of(pid):
    """Returns the session of a process, or None if the process has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


class Mps:
    """Makes the sandbox's daemons run the double: a copy in the sandbox, with a file of faults beside it."""

    def __init__(self, sandbox):
        built = Path(os.environ["BERTH_BUILD_ROOT"]) / "tests/nvidia-cuda-mps-control"
        if not built.exists():
            pytest.skip("no double of the MPS control program was built")
        self.sandbox = sandbox
        self.program = sandbox.directory / "nvidia-cuda-mps-control"
        shutil.copy(built, self.program)
        self.program.chmod(0o755)
        sandbox.environment["BERTH_MPS_CONTROL"] = str(self.program)

    def faults(self, *lines):
        path = Path(f"{self.program}.faults")
        new = path.with_suffix(".new")
        new.write_text("".join(line + "\n" for line in lines))
        new.chmod(0o644)
        new.rename(path)

    def controls(self):
        """Returns the running control daemons by device. Their servers have the same command line, but do not lead a
        session."""
        found = [read_control(pid) for pid in self._pids(" -f") if session_of(pid) == pid]
        return {control.device: control for control in found if control is not None}

    def servers(self, control):
        """Returns the pids of a control daemon's servers, even if the control daemon has ended."""
        return [pid for pid in self._pids(" -f") if pid != control.pid and session_of(pid) == control.pid]

    def is_server(self, pid):
        return processes.command_line(pid) == f"{self.program} -f"

    def _pids(self, ending):
        line = f"{self.program}{ending}"
        return [
            pid
            for pid, zombie in processes.descendants(os.getpid())
            if not zombie and processes.command_line(pid) == line
        ]

    def until_gone(self, *devices, timeout=10):
        """Waits until no control daemon runs, and no program that sends one a command. With devices, waits only until
        they have no control daemon."""

        def gone():
            running = self.controls()
            return not set(devices) & set(running) if devices else not running and not self._pids("")

        until(gone, lambda: f"the end of the control daemons {self.controls()}", timeout)

    def until_other(self, former):
        """Waits for a new control daemon of the same device, and returns it."""

        def other():
            control = self.controls().get(former.device)
            return control if control is not None and control.pid != former.pid else None

        return until(other, f"another control daemon of {former.device}")

    def environment(self, control):
        """Returns the variables that a client of this control daemon needs."""
        return {name: value for name, value in control.environment.items() if name.startswith("CUDA_")}

    def command(self, control, line, become=()):
        """Sends the control daemon a command, as a user does."""
        done = self.sandbox.run([*become, self.program], input=line + "\n", env=self.environment(control))
        return done.code, done.stdout

    def client(self, control, become=()):
        """Starts a program that uses the device. It ends with its input."""
        return self.sandbox.start([*become, self.program, "--client"], env=self.environment(control))


def kill(control, number=signal.SIGKILL):
    os.kill(control.pid, number)
    processes.wait_for_end(control.pid)
