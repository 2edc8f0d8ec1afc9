# SPDX-License-Identifier: Apache-2.0
"""Processes that cannot be killed, like those that a driver blocks in the kernel. A cgroup of version 1 freezes them:
they are in state D, and SIGKILL works only after they are thawed."""
import os
import secrets
from pathlib import Path

import pytest
from waiting import until

HIERARCHY = Path("/sys/fs/cgroup/freezer")


class Freezer:
    def __init__(self):
        if os.geteuid() != 0:
            pytest.skip("only root can freeze processes")
        self.group = HIERARCHY / f"berth-test-{secrets.token_hex(8)}"
        try:
            self.group.mkdir()
        except OSError as error:
            pytest.skip(f"no cgroup freezer here: {error}")
        self.pids = []

    def freeze(self, pid):
        """Freezes a process until close()."""
        (self.group / "tasks").write_text(str(pid))
        self.pids.append(pid)
        (self.group / "freezer.state").write_text("FROZEN")
        until(lambda: (self.group / "freezer.state").read_text() == "FROZEN\n", "a frozen cgroup")

    def close(self):
        (self.group / "freezer.state").write_text("THAWED")
        until(lambda: not (self.group / "tasks").read_text(), "the end of the frozen processes")
        self.group.rmdir()
