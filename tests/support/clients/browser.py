# SPDX-License-Identifier: Apache-2.0
"""A real Chromium that tests control. All tests of a file share it, because it takes seconds to start.

    page = browser.open(url, width=390)
    page.until("document.querySelectorAll('.device').length === 3")

tests/page/driver.mjs drives it with playwright-core. playwright-core and axe-core are installed into the build folder.
"""
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import processes
import pytest
from waiting import until

NODE_OLDEST = 18
START = 30.0
PR_GET_CHILD_SUBREAPER = 37


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no chromium")


def node():
    found = shutil.which("node") or shutil.which("nodejs")
    if found is None:
        pytest.skip("no node")
    version = subprocess.run([found, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if int(version.strip().lstrip("v").split(".")[0]) < NODE_OLDEST:
        pytest.skip(f"node {version.strip()} is older than {NODE_OLDEST}")
    return found


def fetch(place):
    """Installs the packages into a directory. Returns the reason of a failure, or None."""
    words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=20000"]
    if shutil.which(words[0]) is None:
        return "no npm"
    try:
        done = subprocess.run(words, cwd=place, timeout=60, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return "npm did not end within 60 s"
    lines = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"npm: {lines[0] if lines else done.returncode}"


def install(source_root):
    """Installs the packages of the lock file below the build folder, unless they are there. Returns their directory."""
    source = source_root / "tests/page"
    lock = source / "package-lock.json"
    tag = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    place = Path(os.environ["BERTH_BUILD_ROOT"], "tests", f"page-{tag}")
    place.mkdir(parents=True, exist_ok=True)
    with open(place / ".lock", "w", encoding="utf-8") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        if not (place / "done").exists():
            print(f"installing playwright-core and axe-core into {place}", file=sys.stderr)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, place)
            problem = fetch(place)
            if problem is not None:
                pytest.skip(f"cannot install playwright-core and axe-core: {problem}")
            (place / "done").touch()
    return place


@contextlib.contextmanager
def nobodys_children():
    """Within this context, this process adopts no orphans. A sandbox kills all descendants of this process, but the
    browser must outlive the sandbox."""
    set_subreaper = ctypes.CDLL(None).prctl
    was = ctypes.c_int()
    set_subreaper(PR_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0)
    set_subreaper(processes.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    try:
        yield
    finally:
        set_subreaper(processes.PR_SET_CHILD_SUBREAPER, was.value, 0, 0, 0)


class Browser:
    def __init__(self, source_root):
        words = [node(), source_root / "tests/page/driver.mjs", install(source_root)]
        self.directory = Path(tempfile.mkdtemp(prefix="b-", dir="/tmp"))
        path = self.directory / "driver"
        log = self.directory / "log"
        # The shell prints the driver's pid and exits, so that the driver becomes an orphan.
        script = 'setsid "$@" >"$LOG" 2>&1 </dev/null & echo $!'
        words = ["sh", "-c", script, "sh", *map(str, words), str(path), chromium()]
        home = {"HOME": str(self.directory), "LOG": str(log)}
        with nobodys_children():
            started = subprocess.run(words, stdout=subprocess.PIPE, check=True, env={**os.environ, **home})
        self.pid = int(started.stdout)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        until(lambda: self._connects(path), lambda: f"a browser: {log.read_text()}", START)
        self.stream = self.socket.makefile("rw", encoding="utf-8")

    def _connects(self, path):
        with contextlib.suppress(OSError):
            self.socket.connect(str(path))
            return True
        return None

    def do(self, what, **words):
        self.stream.write(json.dumps({"do": what, **words}) + "\n")
        self.stream.flush()
        reply = json.loads(self.stream.readline())
        assert "problem" not in reply, reply["problem"]
        return reply["answer"]

    def open(self, url, **how):
        return Page(self, self.do("open", url=url, **how))

    def close(self):
        self.stream.close()
        self.socket.close()
        processes.wait_for_end(self.pid)
        shutil.rmtree(self.directory, ignore_errors=True)


class Page:
    """A browser tab with its own storage. page.click(selector=...) runs the command `click` of driver.mjs."""

    def __init__(self, browser, number):
        self.browser = browser
        self.number = number

    def do(self, what, **words):
        return self.browser.do(what, page=self.number, **words)

    def __getattr__(self, what):
        return lambda **words: self.do(what, **words)

    def until(self, script, timeout=15000):
        return self.do("until", script=script, timeout=timeout)

    def evaluate(self, script):
        return self.do("evaluate", script=script)

    def press(self, *keys):
        for key in keys:
            self.do("press", key=key)

    def texts(self, selector):
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => node.textContent)")

    def screenshot(self, name, full=True):
        place = Path(os.environ["BERTH_BUILD_ROOT"], "screenshots")
        place.mkdir(exist_ok=True)
        self.do("screenshot", path=str(place / f"{name}.png"), full=full)
