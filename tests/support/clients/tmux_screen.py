# SPDX-License-Identifier: Apache-2.0
"""Full-screen programs. Each runs in its own tmux, which interprets the program's escape sequences."""
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
    """A program on a screen of a given size, in the sandbox's environment. Closing the screen ends the program."""

    def __init__(self, sandbox, args, columns=100, rows=30, env=None):
        if shutil.which("tmux") is None:
            pytest.skip("no tmux")
        self.sandbox = sandbox
        self.socket = sandbox.directory / f"tmux-{next(NUMBERS)}"
        # Every ncurses has the description of this terminal.
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
        """Returns the text on the screen."""
        return self._tmux("capture-pane", "-p")

    def styled(self):
        """Returns the text on the screen with the escape sequences for colours and weights."""
        return self._tmux("capture-pane", "-p", "-e")

    def until(self, condition, what, timeout=TIMEOUT):
        """Waits until the text on the screen satisfies a condition, and returns the text."""
        seen = [""]

        def look():
            seen[0] = self.text()
            # A screen that is still being drawn differs a moment later.
            return seen[0] if condition(seen[0]) and seen[0] == self.text() else None

        return until(look, lambda: f"{what} in\n{seen[0]}\n", timeout)

    def shows(self, pattern, timeout=TIMEOUT):
        """Waits until a regular expression matches, and returns the text on the screen."""
        return self.until(re.compile(pattern, re.MULTILINE).search, repr(pattern), timeout)

    def hides(self, pattern, timeout=TIMEOUT):
        """Waits until a regular expression no longer matches."""
        wanted = re.compile(pattern, re.MULTILINE)
        return self.until(lambda text: not wanted.search(text), f"no {pattern!r}", timeout)

    def press(self, *keys):
        """Presses keys, which have tmux's names."""
        self._tmux("send-keys", *keys)

    def type(self, text):
        self._tmux("send-keys", "-l", text)

    def resize(self, columns, rows):
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def wait(self, timeout=TIMEOUT):
        """Waits for the program's end, and returns the exit code, which is negative for a signal."""
        answer = until(self._end, lambda: f"the program's end; screen:\n{self.text()}\n", timeout)
        return answer[0]

    def _end(self):
        """Returns the exit code in a list, or None if the program still runs. tmux may miss the program's end; then the
        kernel reports the zombie's status."""
        code, number = self._about("pane_dead_status} #{pane_dead_signal").split(" ")
        if code + number:
            return [int(code) if code else -int(number)]
        try:
            with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # tmux has just reaped it
            return None
        return [os.waitstatus_to_exitcode(int(fields[-1]))] if fields[0] == "Z" else None

    def close(self):
        """Ends tmux, and the program if it still runs."""
        if self.server is not None:
            self._tmux("kill-server")
            for pid in (self.server, self.pid):
                processes.wait_for_end(pid)
        self.server = None
