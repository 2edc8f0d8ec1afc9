# SPDX-License-Identifier: Apache-2.0
"""A made-up machine with GPUs of three vendors, their pool, and a podman that runs containers on them.

All of it is in one mount namespace, where that machine is the real one and device files are real, with numbers of
their own that no driver serves: opening one says that there is no such device, or, where a container may not have it,
that it is not permitted. Those of intel0 open.
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

# Of Linux's DRM and of NVIDIA's driver; minors that nobody reaches.
DRM, NVIDIA, FIRST_MINOR = 226, 195, 900000

# Of the files that open, whose numbers are those of a file that every machine has: no two tests may have the same
# names, or they see each other's processes on them.
OPENED_MINOR = 100000 + secrets.randbelow(800000)
OPENED_NODE = f"/dev/dri/renderD{RENDER_FIRST + OPENED_MINOR}"

# The devices' own files and those that they share with others of their vendor, with their modes.
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
GROUP = 44  # of files that not everybody may use

# How long what a test has ended may take.
LEFT_END = 5.0

CONFIGURATION = "grace: 600ms\n"


def leased(options, command, podman="--rm --name one", arguments="$(berth cdi --arguments cdi)", before=""):
    """The words of a `berth run` with a container under its lease, as people type them; neither `command`, which
    the container runs, nor what comes `before` has quotes of one kind, '."""
    quoted = "'\\''"
    container = f"exec podman run {podman} {arguments} busybox sh -c {quoted}{command}{quoted}"
    return f"berth run {options} -- sh -c '{before} {container}'"


def nodes_of(*devices):
    """The files of these devices with their modes."""
    return {path: mode for device in devices for path, mode in NODES[device].items()}


def number_of(path):
    """The major and minor number of a device's file."""
    if path in NODES[OPENS]:
        return os.major(HARMLESS_DEVICE), os.minor(HARMLESS_DEVICE)
    return NVIDIA if "nvidia" in path else DRM, FIRST_MINOR + sorted(nodes_of(*NODES)).index(path)


def owner_of(path):
    return (0, 0) if nodes_of(*NODES)[path] & stat.S_IROTH else (0, GROUP)


def taken(slots):
    """The slots that somebody has, or that something is wrong with."""
    return {name: slot for name, slot in slots.items() if slot.get("tenants") or slot.get("state")}


class ContainerMachine:
    """Made once for the tests of a module; check() after each of them."""

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
        """Device files with numbers, modes and owners of their own."""
        root = Path(f"/proc/{self.namespace.holder.pid}/root")
        for path, mode in nodes_of(*NODES).items():
            file = root / path.lstrip("/")
            if path == "/dev/kfd":  # is mounted where it is
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
        """Starts a command of a script in the namespace."""
        return self.namespace.start("sh", "-c", f"exec {script}", **options)

    def others(self):
        """The processes that are neither the pool's nor the namespace's."""
        kept = {self.namespace.holder.pid, *(self.pool.daemons() if self.pool else ())}
        return {
            pid: processes.command_line(pid)
            for pid, zombie in processes.descendants(os.getpid())
            if not zombie and pid not in kept and not processes.is_probe(pid)
        }

    def check(self):
        """Nothing is left of a test: no process, no container, no lease."""
        try:
            until(lambda: not self.others(), lambda: f"the end of {self.others()}", timeout=LEFT_END)
            self.pool.until(lambda slots: not taken(slots), lambda: f"the end of {taken(self.pool.look())}")
        finally:
            self.end_others()
            self.reap_orphans()
            self.podman.remove_containers()

    def reap_orphans(self):
        """Those of a conmon that was killed, say: podman takes them for running as long as they are not reaped."""
        known = {program.pid for program in self.sandbox.programs}
        for pid, parent, zombie in processes.processes():
            if zombie and parent == os.getpid() and pid not in known:
                os.waitpid(pid, os.WNOHANG)

    def end_others(self):
        """For a test that has failed. What they have started becomes ours, and has its turn."""
        while left := self.others():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    descriptor = os.pidfd_open(pid)
                    if pid in self.others():
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    os.close(descriptor)

    def close(self):
        """Whatever a test has left was its failure."""
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
