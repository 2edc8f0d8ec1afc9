# SPDX-License-Identifier: Apache-2.0
"""A mount namespace in which a made-up machine replaces the real one."""
import os
import shlex
from pathlib import Path

import pytest
from fake_machine import FakeMachine

# /dev/full, which every user can open and which does no harm.
HARMLESS_DEVICE = os.makedev(1, 7)

# /dev has the files that every program may need, and only the GPUs of the made-up machine. /sys has only the files of
# the made-up machine, and the real devices/system.
SETUP = """
set -e
mkdir -p dev-before sys/devices/system
mount --rbind /dev dev-before
mount -t tmpfs -o mode=755 none /dev
for name in null zero full random urandom tty ptmx; do
    : >"/dev/$name"
    mount --bind "dev-before/$name" "/dev/$name"
done
for name in pts shm; do
    mkdir "/dev/$name"
    mount --rbind "dev-before/$name" "/dev/$name"
done
ln -s /proc/self/fd /dev/fd
mkdir /dev/dri
mount --bind dev/dri /dev/dri
if test -e dev/kfd; then
    : >/dev/kfd
    mount --bind dev/kfd /dev/kfd
fi
mount --rbind /sys/devices/system sys/devices/system
mount --rbind sys /sys
"""


class Namespace:
    """A mount namespace. The test adds devices to `machine` before enter(), and may change them later.

    With its own network, its pools share no names of devices with other pools."""

    def __init__(self, sandbox, own_network=False):
        if os.geteuid() != 0:
            pytest.skip("only root can make device files")
        self.sandbox = sandbox
        self.directory = sandbox.directory / "machine"
        self.directory.mkdir()
        script = f"mount -t tmpfs -o mode=755 none {self.directory} && echo mounted && exec cat"
        spaces = ["-m", "-n"] if own_network else ["-m"]
        self.holder = sandbox.start(["unshare", *spaces, "--propagation", "private", "sh", "-c", script])
        try:
            self.holder.wait_for_line("^mounted$")
        except AssertionError:
            self.holder.stop()
            pytest.skip("no such namespaces here: " + self.holder.text("stderr").strip())
        self.outside = Path(f"/proc/{self.holder.pid}/root{self.directory}")
        self.inside = ["nsenter", "-t", str(self.holder.pid), *spaces, f"--wd={sandbox.directory}"]
        sandbox.environment.pop("BERTH_SYSROOT", None)
        self.machine = FakeMachine(self.outside, HARMLESS_DEVICE)

    def enter(self):
        """Replaces the real machine for all programs that `inside` starts from now on."""
        script = f"cd {shlex.quote(str(self.directory))}\n" + SETUP
        done = self.sandbox.run([*self.inside, "sh", "-c", script])
        assert done.code == 0, done

    def run(self, *args, **options):
        return self.sandbox.run([*self.inside, *args], **options)

    def start(self, *args, **options):
        return self.sandbox.start([*self.inside, *args], **options)

    def close(self):
        self.holder.stop()
