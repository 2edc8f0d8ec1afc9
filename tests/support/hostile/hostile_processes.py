# SPDX-License-Identifier: Apache-2.0
"""Processes that a daemon must survive: stuck in the kernel, large, very many, with the uids of a container, or root's.

Each is a context manager, or ends with the `Program` that it returns.
"""
import contextlib
import ctypes
import os
import select
import shutil
import signal
import stat
import time
from pathlib import Path

import processes
import pytest
from waiting import until

# The kernel releases stuck processes after this time, whatever happens to the test. While they exist, all programs
# of the machine that read all of /proc hang.
STUCK_SECONDS_MAX = 15
FUSE_DEVICE = (10, 229)
LARGE_MIB, LARGE_MIB_MIN = 4096, 512
CLONE_NEWUSER = 0x10000000


def program(name):
    return Path(os.environ["BERTH_BUILD_ROOT"], "tests", name)


def ordinary(uid):
    """Returns the arguments that, before a command, run it as another user without further groups."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if os.geteuid() == 0 else []


class StuckProcesses:
    """Processes of one user that no signal ends: inside `execve` ("exec") or inside `read` ("read").

    While a process is inside execve, reading /proc/PID/stat and /proc/PID/environ sleeps, and so does stat() of
    /proc/PID/ns/*. Processes inside read are in state D after a signal; /proc/PID can be read.
    `variables` are in their environment; `prefix` are arguments before the program that makes them."""

    def __init__(self, sandbox, uid, mode="exec", count=1, seconds=STUCK_SECONDS_MAX, prefix=(), variables=None):
        sandbox.directory.chmod(0o711)  # the user opens the device
        place = sandbox.directory / f"stuck-{len(sandbox.programs)}"
        place.mkdir()
        (place / "mount").mkdir()
        self._make_device(place / "fuse")
        args = [program("stuck-processes"), mode, count, seconds, place / "fuse", place / "mount"]
        args += [f"{name}={value}" for name, value in (variables or {}).items()]
        self.server = sandbox.start([*ordinary(uid), *prefix, *args])
        try:
            self.pids = [int(word) for word in self.server.wait_for_line("^stuck ").split()[1:]]
        except AssertionError:
            self.close()
            pytest.skip("no FUSE in a user namespace here: " + self.server.text("stderr").strip())

    @staticmethod
    def _make_device(path):
        """Makes a node that everybody may open, as /dev/fuse is on most systems."""
        if os.access("/dev/fuse", os.R_OK | os.W_OK) and os.geteuid() != 0:
            path.symlink_to("/dev/fuse")
            return
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(*FUSE_DEVICE))
            path.chmod(0o666)
        except PermissionError:
            pytest.skip("no /dev/fuse for ordinary users")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def state(self, index=0):
        """Returns the state of one process as `ps` prints it, for example "D"."""
        values = processes.status_values(self.pids[index])
        return values and values[0].decode()

    def put_to_sleep(self, number=signal.SIGKILL):
        """Signals the processes, and waits until they are in state D. They do not end before close()."""
        for index, pid in enumerate(self.pids):
            os.kill(pid, number)
            until(lambda index=index: self.state(index) == "D", "a process in state D")

    def close(self):
        """Ends the server, and with it the processes."""
        if self.server.process.stdin:
            self.server.process.stdin.close()
            self.server.process.stdin = None
        with contextlib.suppress(AssertionError):
            self.server.wait(2)
        self.server.stop()


class IdleProcesses:
    """Many idle processes of one user."""

    def __init__(self, sandbox, uid, count):
        free = int(Path("/proc/sys/kernel/pid_max").read_text()) - sum(e.isdigit() for e in os.listdir("/proc"))
        if count > free - 1000:
            pytest.skip(f"no {count} pids here")
        self.program = sandbox.start([*ordinary(uid), program("idle-processes"), count])
        try:
            self.program.wait_for_line("^ready$", timeout=60)
        except AssertionError:
            self.close()
            pytest.skip(f"no {count} processes here: " + self.program.text("stderr").strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.program.process.stdin:
            self.program.process.stdin.close()
            self.program.process.stdin = None
        self.program.wait(60)


class LargeExec:
    """A process with much memory. `execute()` makes it call exec, which frees the memory.

    `mib` is its size: 4 GiB if the machine has more than 6 GiB to spare, otherwise as much as fits."""

    def __init__(self, sandbox, uid):
        available = int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) // 1024
        self.mib = mib = LARGE_MIB if available > LARGE_MIB * 3 // 2 else available * 2 // 3
        if mib < LARGE_MIB_MIN:
            pytest.skip(f"only {available} MiB of memory here")
        self.program = sandbox.start([*ordinary(uid), program("large-exec"), mib])
        self.pid = self.program.pid
        self.program.wait_for_line("^ready$", timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.stop(30)

    def execute(self):
        self.program.send("\n")


def setuid_root_program(sandbox):
    """Installs a program that becomes root fully and then runs its arguments, as sudo does. Returns its path."""
    path = sandbox.directory / "become-root"
    if os.statvfs(sandbox.directory).f_flag & os.ST_NOSUID:
        pytest.skip("no setuid programs here")
    shutil.copy(program("become-root"), path)
    os.chown(path, 0, 0)
    path.chmod(0o4755)
    return path


class SubordinateUsers:
    """The uids that /etc/subuid gives a user, as containers without root use them.

    BERTH_SUBUID names the file that berth reads instead of /etc/subuid."""

    def __init__(self, sandbox, user, first, count=65536):
        self.first = first
        self.count = count
        self.user = user
        self.file = sandbox.directory / "subuid"
        self.file.write_text(f"{user}:{first}:{count}\n")
        sandbox.environment["BERTH_SUBUID"] = str(self.file)

    def run(self, uid, function, *args):
        """Runs a function as a subordinate uid, within a user namespace whose map newuidmap has written."""
        assert self.first <= uid < self.first + self.count
        return InNamespace(self.user, self.first, self.count, uid, function, args)


class InNamespace:
    """A function that runs in its own process, in a user namespace. `pid` is the process; kill() ends it.

    The function gets a file object to which it can write lines; read_line() returns them."""

    def __init__(self, user, first, count, uid, function, args):
        mapped, say_mapped = os.pipe()
        ready, say_ready = os.pipe()
        words, say_words = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                for other in (say_mapped, ready, words):
                    os.close(other)
                _enter(user, say_ready, mapped)
                os.setresgid(uid - first + 1, uid - first + 1, uid - first + 1)
                os.setresuid(uid - first + 1, uid - first + 1, uid - first + 1)
                with open(say_words, "w") as out:
                    function(out, *args)
            os._exit(1)
        for end in (mapped, say_ready, say_words):
            os.close(end)
        self.words = words
        os.read(ready, 1)
        os.close(ready)
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{self.pid}/{name}").write_text(f"0 {user} 1\n1 {first} {count}\n")
        os.write(say_mapped, b"x")
        os.close(say_mapped)

    def read_line(self, timeout=30.0):
        line = b""
        deadline = time.monotonic() + timeout
        while not line.endswith(b"\n"):
            left = max(0, deadline - time.monotonic())
            assert select.select([self.words], [], [], left)[0], f"no line within {timeout} s"
            byte = os.read(self.words, 1)
            assert byte, f"the process ended after {line!r}"
            line += byte
        return line.decode().rstrip("\n")

    def kill(self):
        os.close(self.words)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _enter(user, say_ready, mapped):
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    os.write(say_ready, b"x")
    os.read(mapped, 1)
