# SPDX-License-Identifier: Apache-2.0
"""Running programs: their output, their input and their end.

All waits are for an event and have a timeout. Sandbox (sandbox.py) starts the programs.
"""
import fcntl
import os
import re
import select
import signal
import struct
import termios
import time

import processes

TIMEOUT = 10.0


class Deadline(AssertionError):
    """An expected event did not happen in time, or can no longer happen."""


class Program:
    """A running program. Its output is collected during each wait."""

    def __init__(self, process, streams):
        self.process = process
        self.pid = process.pid
        self.code = None
        self.output = {name: bytearray() for name in streams}
        self._taken = dict.fromkeys(streams, 0)
        self._open = {fd: name for name, fd in streams.items()}
        self._pidfd = os.pidfd_open(self.pid)
        for fd in self._open:
            os.set_blocking(fd, False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _read(self, fd):
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return False
        except OSError:  # the other side of the terminal is closed
            data = b""
        self.output[self._open[fd]] += data
        if not data:
            del self._open[fd]
            os.close(fd)
        return bool(data)

    def _until(self, done, timeout, what):
        """Collects output until done() is not None, and returns it."""
        deadline = time.monotonic() + timeout
        while (answer := done()) is None:
            poll = select.poll()
            for fd in self._open:
                poll.register(fd, select.POLLIN)
            if self.code is None:
                poll.register(self._pidfd, select.POLLIN)
            elif not self._open:
                raise Deadline(f"{what} will not come: the program ended with {self.code}; {self._seen()}")
            left = deadline - time.monotonic()
            events = poll.poll(left * 1000) if left > 0 else []
            if not events:
                raise Deadline(f"{what} did not come within {timeout} s; {self._seen()}")
            for fd, _ in events:
                if fd == self._pidfd:
                    self.code = self.process.wait()
                else:
                    self._read(fd)
        return answer

    def _seen(self):
        return "seen so far: " + ", ".join(f"{k} {bytes(v)!r}" for k, v in self.output.items())

    def _search(self, name, pattern):
        """Returns the first match after the matches of earlier calls."""
        match = pattern.search(self.output[name], self._taken[name])
        if match:
            self._taken[name] = match.end()
        return match

    def wait(self, timeout=TIMEOUT):
        """Waits for the program's end, and returns the exit code, which is negative for a signal."""
        self._until(lambda: self.code, timeout, f"the end of pid {self.pid}")
        for fd in list(self._open):  # reads the rest; an orphan may keep the pipes open
            while self._read(fd):
                pass
        if self.code < 0:
            processes.await_newborns()
        return self.code

    def wait_for_line(self, pattern, stream="stdout", timeout=TIMEOUT):
        """Returns the next whole line that matches the regular expression, without its newline."""
        whole = re.compile(rb"(?m)^(?=(?:[^\n]*?)(?:" + pattern.encode() + rb"))[^\n]*\n")
        match = self._until(lambda: self._search(stream, whole), timeout, f"a line {pattern!r}")
        return match.group().decode(errors="replace").rstrip("\n")

    def send(self, text):
        os.write(self.process.stdin.fileno(), text if isinstance(text, bytes) else text.encode())

    def kill(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self, timeout=TIMEOUT):
        """Kills the program if it has not ended, and returns its exit code."""
        if self.code is None:
            self.kill(signal.SIGKILL)
        return self.wait(timeout)

    def text(self, stream="stdout"):
        return self.output[stream].decode(errors="replace")

    def close(self):
        """Closes the descriptors."""
        for fd in self._open:
            os.close(fd)
        self._open.clear()
        if self.process.stdin:
            self.process.stdin.close()
        os.close(self._pidfd)


class Terminal(Program):
    """A program on a terminal. Its output is collected as bytes."""

    def __init__(self, process, master, before):
        self.before = before  # the terminal's settings before the program started
        # Reading closes its descriptor at the end, so writing needs another.
        self.master = os.dup(master)
        super().__init__(process, {"screen": master})

    @property
    def screen(self):
        return bytes(self.output["screen"])

    def send(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def wait_for(self, pattern, timeout=TIMEOUT):
        """Returns the next match of a regular expression in the output, which is bytes."""
        pattern = re.compile(pattern if isinstance(pattern, bytes) else pattern.encode())
        return self._until(lambda: self._search("screen", pattern), timeout, f"{pattern.pattern!r}")

    def resize(self, columns, rows):
        set_size(self.master, columns, rows)

    def close(self):
        super().close()
        os.close(self.master)


def set_size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
