# SPDX-License-Identifier: Apache-2.0
"""What a program shows on a whole screen: it runs in a tmux of the test's own, which interprets what it writes."""
import itertools
import os
import re
import shutil

import processes
import pytest
from programs import TIMEOUT
from waiting import until

NUMBERS = itertools.count()


class Screen:
    """A program on a screen of some size, in the sandbox's environment; closing it ends the program."""

    def __init__(self, sandbox, args, columns=100, rows=30, env=None):
        if shutil.which("tmux") is None:
            pytest.skip("no tmux")
        self.sandbox = sandbox
        self.socket = sandbox.directory / f"tmux-{next(NUMBERS)}"
        # Its terminal is described by what every ncurses brings.
        words = ["env", "TERM=screen-256color", *(f"{name}={value}" for name, value in (env or {}).items()), *args]
        self._tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), *map(str, words), ";",
                   "set", "-g", "remain-on-exit", "on", ";", "set", "-g", "status", "off")  # fmt: skip
        self.server = int(self._about("pid"))
        self.pid = int(self._about("pane_pid"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _tmux(self, *words):
        done = self.sandbox.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words])
        assert (done.code, done.stderr) == (0, ""), done
        return done.stdout

    def _about(self, name):
        return self._tmux("display-message", "-p", f"#{{{name}}}").rstrip("\n")

    def text(self):
        """The screen as lines."""
        return self._tmux("capture-pane", "-p")

    def styled(self):
        """The same with the sequences that make colours and weights."""
        return self._tmux("capture-pane", "-p", "-e")

    def until(self, condition, what, timeout=TIMEOUT):
        """Waits until what is seen is as wanted, and returns it."""
        seen = [""]

        def look():
            seen[0] = self.text()
            # What is being drawn is not what it will be a moment later.
            return seen[0] if condition(seen[0]) and seen[0] == self.text() else None

        return until(look, lambda: f"{what} in\n{seen[0]}\n", timeout)

    def shows(self, pattern, timeout=TIMEOUT):
        """Waits until a regular expression is found, and returns what is seen."""
        return self.until(re.compile(pattern, re.MULTILINE).search, repr(pattern), timeout)

    def hides(self, pattern, timeout=TIMEOUT):
        """Waits until it is not found."""
        wanted = re.compile(pattern, re.MULTILINE)
        return self.until(lambda text: not wanted.search(text), f"no {pattern!r}", timeout)

    def press(self, *keys):
        """Presses keys, by the names that tmux has for them."""
        self._tmux("send-keys", *keys)

    def type(self, text):
        self._tmux("send-keys", "-l", text)

    def resize(self, columns, rows):
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def wait(self, timeout=TIMEOUT):
        """The exit code, negative for a signal, once it has ended."""
        answer = until(self._end, lambda: f"an end; seen:\n{self.text()}\n", timeout)
        return answer[0]

    def _end(self):
        """The exit code in a list, once there is one. tmux may miss the end of what it runs, which then stays a zombie
        whose status the kernel tells."""
        code, number = self._about("pane_dead_status} #{pane_dead_signal").split(" ")
        if code + number:
            return [int(code) if code else -int(number)]
        try:
            with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has just been heard of
            return None
        return [os.waitstatus_to_exitcode(int(fields[-1]))] if fields[0] == "Z" else None

    def close(self):
        """Ends it, if it has not ended, and the screen."""
        if self.server is not None:
            self._tmux("kill-server")
            for pid in (self.server, self.pid):
                processes.wait_for_end(pid)
        self.server = None
