# SPDX-License-Identifier: Apache-2.0
"""berthd reads nothing below /proc/PID: a process inside execve makes such a reader sleep. berth-reader does it."""
import os
import re
import subprocess
from pathlib import Path

# Functions of src/base that read below /proc/PID.
READERS = re.compile(r"^(process_stat|process_container|namespace)_\w+$")
# Files below /proc that belong to no other process.
HARMLESS = ("/proc/sys/", "/proc/self/")


def test_the_daemon_calls_no_function_that_reads_processes():
    library = Path(os.environ["BERTH_BUILD_ROOT"], "src/libdaemon.a")
    done = subprocess.run(["nm", "--undefined-only", "--format=just-symbols", library], capture_output=True, text=True, check=True)
    symbols = set(done.stdout.split())
    assert "error_set" in symbols  # of another library
    assert not [symbol for symbol in symbols if READERS.match(symbol)]


def test_the_daemon_names_no_file_of_a_process(source_root):
    found = {}
    for path in sorted((source_root / "src/daemon").rglob("*.c")):
        for text in re.findall(r'"(/proc[^"]*)"', path.read_text()):
            if not text.startswith(HARMLESS):
                found.setdefault(path.name, []).append(text)
    # The directory itself: the kernel answers stat() without waiting for the process.
    assert found == {"pidfd.c": ["/proc/%d"]}
