# SPDX-License-Identifier: Apache-2.0
"""Runs berth web on a free port of the loopback interface."""


class WebProcess:
    """A berth web that runs until close()."""

    def __init__(self, sandbox, *options, env=None):
        self.program = sandbox.start(["berth", "web", "--listen", "127.0.0.1:0", *options], env=env)
        self.url = self.program.wait_for_line("^berth web: ").split()[-1].rstrip("/")
        self.address = self.url.removeprefix("http://")

    @property
    def pid(self):
        return self.program.process.pid

    def close(self):
        self.program.process.terminate()
        self.program.wait()
