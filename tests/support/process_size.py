# SPDX-License-Identifier: Apache-2.0
"""The number of descriptors and the memory of a process."""
import os
import re
from pathlib import Path


def is_reader(pid, descriptor):
    """Returns whether the descriptor is a pidfd of berth-reader, or its stat file. The daemon gets them some time after
    its start."""
    try:
        if re.fullmatch(r"/proc/\d+/stat", os.readlink(f"/proc/{pid}/fd/{descriptor}")):
            return True
        found = re.search(r"^Pid:\s+(\d+)", Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text(), re.MULTILINE)
        return found is not None and Path(f"/proc/{found[1]}/comm").read_text() == "berth-reader\n"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descriptors(pid):
    """Returns the number of descriptors, or 0 if the kernel hides them: a daemon is not dumpable, so only root sees
    them."""
    if not os.access(f"/proc/{pid}/fd", os.R_OK):
        return 0
    return sum(not is_reader(pid, descriptor) for descriptor in os.listdir(f"/proc/{pid}/fd"))


def resident(pid):
    """Returns the memory that a program of berth uses, in KiB, or 0 with sanitizers, which keep freed memory."""
    program = Path(os.environ["BERTH"]).read_bytes()
    if b"__asan_init" in program or b"__tsan_init" in program:
        return 0
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])
