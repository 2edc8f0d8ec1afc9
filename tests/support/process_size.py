# SPDX-License-Identifier: Apache-2.0
"""The number of descriptors and the memory of a process."""
import os
import re
from pathlib import Path


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident(pid):
    """Returns the memory in use, in KiB, or 0 for a program with sanitizers, which keep freed memory."""
    program = Path(f"/proc/{pid}/exe").read_bytes()
    if b"__asan_init" in program or b"__tsan_init" in program:
        return 0
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])
