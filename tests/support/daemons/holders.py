# SPDX-License-Identifier: Apache-2.0
"""Processes of another user that hold one lease each."""
import os
import signal
import time

import wire
from other_users import OtherUser

PROCESS = wire.HOLDS["PROCESS"]


class Holders:
    """One process for each of these devices, which holds a lease on it until it ends. They end with the context.

    `leases` has the lease and the pid of each device."""

    def __init__(self, socket, uid, devices, **request):
        read, write = os.pipe()
        self.began = time.monotonic()
        self._parent = OtherUser(uid, _hold_each, socket, devices, request, write)
        os.close(write)
        self.leases = {}
        with open(read) as lines:
            for line in lines:
                device, lease, pid = line.split()
                self.leases[device] = (int(lease), int(pid))
        if len(self.leases) < len(devices):
            self.close()
        assert len(self.leases) == len(devices), f"{len(self.leases)} of {len(devices)} leases"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def age(self):
        """Returns how long the youngest lease has been held at most, in seconds."""
        return time.monotonic() - self.began

    def kill(self, device):
        """Kills the process that holds this device."""
        os.kill(self.leases.pop(device)[1], signal.SIGKILL)

    def close(self):
        for device in list(self.leases):
            self.kill(device)
        self._parent.kill()


def _hold_each(socket, devices, request, write):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for the children
    for device in devices:
        if os.fork() == 0:
            try:
                lease = wire.connect(socket).claim({"wanted": [device], **request}, hold=PROCESS)["id"]
                os.write(write, f"{device} {lease} {os.getpid()}\n".encode())
                os.close(write)
                signal.pause()
            finally:
                os._exit(1)
    os.close(write)
    signal.pause()
