# SPDX-License-Identifier: Apache-2.0
"""A made-up machine with GPUs of three vendors, their pool, and a podman that runs containers on them.

All of it is in one mount namespace, which shows that machine as the real one. The device files are real, but no driver
serves their numbers: opening one fails with ENXIO, or with EPERM in a container that may not use the device. Only the
files of intel0 can be opened.
"""
import contextlib
import os
import secrets
import signal
import stat
from pathlib import Path

import nvml_machine
import podman
import processes
import pytest
from fake_machine import RENDER_FIRST
from machine_pool import MachinePool
from namespaces import HARMLESS_DEVICE, Namespace
from sandbox import Sandbox
from waiting import until

# The major numbers of Linux's DRM and of NVIDIA's driver, and minors that no driver reaches.
DRM, NVIDIA, FIRST_MINOR = 226, 195, 900000

# The number in the names of the files that can be opened. All of these files have the same device number, so tests with
# equal names would see each other's processes on them.
OPENED_MINOR = 100000 + secrets.randbelow(800000)
OPENED_NODE = f"/dev/dri/renderD{RENDER_FIRST + OPENED_MINOR}"

# The device files of each device, with their modes. Devices of one vendor share some of them.
NODES = {
    "amd0": {"/dev/dri/renderD128": 0o660, "/dev/dri/card0": 0o660, "/dev/kfd": 0o666},
    "amd1": {"/dev/dri/renderD129": 0o660, "/dev/dri/card1": 0o660, "/dev/kfd": 0o666},
    "intel0": {OPENED_NODE: 0o666, f"/dev/dri/card{OPENED_MINOR}": 0o666},
    "nvidia0": {"/dev/nvidia0": 0o666, "/dev/nvidiactl": 0o666, "/dev/nvidia-uvm": 0o644},
    "nvidia1": {"/dev/nvidia1": 0o666, "/dev/nvidiactl": 0o666, "/dev/nvidia-uvm": 0o644},
    "nvidia2.0": {"/dev/nvidia2": 0o666, "/dev/nvidiactl": 0o666, "/dev/nvidia-uvm": 0o644},
    "nvidia2.1": {"/dev/nvidia2": 0o666, "/dev/nvidiactl": 0o666, "/dev/nvidia-uvm": 0o644},
}
OPENS = "intel0"
GROUP = 44  # of files that only some users may open

# The time limit for the end of a test's processes, in seconds.
LEFT_END = 5.0

CONFIGURATION = "grace: 600ms\n"


def leased(options, command, podman="--rm --name one", arguments="$(berth cdi --arguments cdi)", before=""):
    """Returns the command line of a `berth run` that starts a container. The container runs `command`; a shell runs
    `before` first. Neither may contain a single quote."""
    quoted = "'\\''"
    container = f"exec podman run {podman} {arguments} busybox sh -c {quoted}{command}{quoted}"
    return f"berth run {options} -- sh -c '{before} {container}'"


def nodes_of(*devices):
    """Returns the device files of these devices with their modes."""
    return {path: mode for device in devices for path, mode in NODES[device].items()}


def number_of(path):
    """Returns the major and minor number of a device file."""
    if path in NODES[OPENS]:
        return os.major(HARMLESS_DEVICE), os.minor(HARMLESS_DEVICE)
    return NVIDIA if "nvidia" in path else DRM, FIRST_MINOR + sorted(nodes_of(*NODES)).index(path)


def owner_of(path):
    return (0, 0) if nodes_of(*NODES)[path] & stat.S_IROTH else (0, GROUP)


def taken(slots):
    """Returns the slots that have tenants or are not free."""
    return {name: slot for name, slot in slots.items() if slot.get("tenants") or slot.get("state")}


class ContainerMachine:
    """A machine that all tests of a file share. check() must be called after each test."""

    def __init__(self):
        if podman.missing():
            pytest.skip(podman.missing())
        self.sandbox = Sandbox()
        self.pool = self.podman = self.namespace = None
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self):
        sandbox = self.sandbox
        self.namespace = Namespace(sandbox, own_network=True)
        sandbox.environment["BERTH_PROBE_DEADLINE"] = "9s"
        self.machine = self.namespace.machine
        self.machine.add_amd(4)
        self.machine.add_amd(5)
        self.machine.number_from(OPENED_MINOR)
        self.machine.add_intel(6)
        self._add_nvidia()
        self.podman = podman.Podman(sandbox, self.namespace)
        self.podman.before_entering()
        self.namespace.enter()
        self._make_nodes()
        self.podman.prepare()
        configuration = sandbox.home / ".config/berth/berth.yaml"
        configuration.parent.mkdir(parents=True)
        configuration.write_text(CONFIGURATION)
        self.pool = MachinePool(sandbox, self.namespace.inside)
        for words in (["cdi", "--output", "/run/cdi"], ["status"]):
            done = self.pool.berth(*words)
            assert (done.code, done.stderr) == (0, ""), done

    def _add_nvidia(self):
        double = nvml_machine.Machine()
        for index in range(3):
            pci = (self.machine.pci(0x40 + index), "0x20b010de", "0x12a210de")
            double.gpu(name="NVIDIA A100", uuid=f"GPU-{index}", pci=pci, minor=index)
        for number in range(2):
            double.gpus[2].instance(number, uuid=f"MIG-{number}", memory=(5 << 30, 5 << 30, 0))
        script = self.sandbox.directory / "nvml"
        double.write(script)
        self.sandbox.environment.update(double.environment(script))

    def _make_nodes(self):
        """Makes the device files with their numbers, modes and owners."""
        root = Path(f"/proc/{self.namespace.holder.pid}/root")
        for path, mode in nodes_of(*NODES).items():
            file = root / path.lstrip("/")
            if path == "/dev/kfd":  # a bind mount: another file is mounted over it below
                file = self.namespace.outside / "dev/kfd-numbered"
            file.unlink(missing_ok=True)
            os.mknod(file, stat.S_IFCHR | mode, os.makedev(*number_of(path)))
            os.chmod(file, mode)
            os.chown(file, *owner_of(path))
        done = self.namespace.run("mount", "--bind", self.namespace.directory / "dev/kfd-numbered", "/dev/kfd")
        assert done.code == 0, done

    def sh(self, script, **options):
        """Runs a script in the namespace to its end."""
        return self.namespace.run("sh", "-c", script, **options)

    def start(self, script, **options):
        """Starts a shell command in the namespace."""
        return self.namespace.start("sh", "-c", f"exec {script}", **options)

    def others(self):
        """Returns the processes that belong neither to the pool nor to the namespace."""
        kept = {self.namespace.holder.pid, *(self.pool.daemons() if self.pool else ())}
        return {
            pid: processes.command_line(pid)
            for pid, zombie in processes.descendants(os.getpid())
            if not zombie and pid not in kept and not processes.is_probe(pid)
        }

    def check(self):
        """Checks that a test leaves nothing: no process, no container, no lease."""
        try:
            until(lambda: not self.others(), lambda: f"the end of {self.others()}", timeout=LEFT_END)
            self.pool.until(lambda slots: not taken(slots), lambda: f"the end of {taken(self.pool.look())}")
        finally:
            self.end_others()
            self.reap_orphans()
            self.podman.remove_containers()

    def reap_orphans(self):
        """Reaps orphans, such as the children of a killed conmon. podman reports them as running until then."""
        known = {program.pid for program in self.sandbox.programs}
        for pid, parent, zombie in processes.processes():
            if zombie and parent == os.getpid() and pid not in known:
                os.waitpid(pid, os.WNOHANG)

    def end_others(self):
        """Kills the processes that a failed test has left. Their children become ours and are killed next."""
        while left := self.others():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    descriptor = os.pidfd_open(pid)
                    if pid in self.others():
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    os.close(descriptor)

    def close(self):
        """Ends everything. Processes that a test has left are no error here: check() has reported them."""
        try:
            if self.namespace is not None:
                self.end_others()
                self.reap_orphans()
            if self.pool is not None:
                self.podman.remove_containers()
                self.pool.end_daemon()
                processes.await_probes()
            if self.namespace is not None:
                self.namespace.close()
        finally:
            try:
                self.sandbox.close()
            finally:
                if self.podman is not None:
                    self.podman.close()
