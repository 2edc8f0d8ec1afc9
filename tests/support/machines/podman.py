# SPDX-License-Identifier: Apache-2.0
"""A private podman, with its own storage, control groups, /run and directories for CDI files.

It lives in a mount namespace (support/machines/namespaces.py), and its storage and mounts disappear with the namespace.
The processes that it starts become orphans below the test's process, so that a sandbox finds and ends them. The machine
itself stays unchanged, except for one control group, which close() removes.
"""
import contextlib
import json
import os
import resource
import secrets
import shutil
import tarfile
from pathlib import Path

import pytest
from waiting import until

# The commands in the image: links to busybox.
COMMANDS = ("cat", "chmod", "dd", "echo", "env", "false", "id", "kill", "ls", "mknod", "mount", "sh", "sleep", "stat")
COMMANDS += ("test", "trap", "true", "wc")
LIMIT = 16384
REMOVAL_TIMEOUT = 30.0  # seconds
IMAGE = "docker.io/library/busybox:latest"

# podman reads CDI files only in /etc/cdi and /var/run/cdi. Its locks are in /dev/shm, whatever its storage.
PRIVATE = """
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs none /dev/shm
mkdir /run/cdi /run/lock
if test -d /etc/cdi; then mount -t tmpfs none /etc/cdi; fi
"""

# No configuration file can set the control group of containers, but an option can.
WRAPPER = """#!/bin/sh
case "${{1-}}" in
run | create)
    verb=$1
    shift
    exec {program} "$verb" --cgroup-parent=/{group} "$@"
    ;;
esac
exec {program} "$@"
"""

CONFIGURATION = """[containers]
netns = "none"
log_driver = "k8s-file"
apparmor_profile = "unconfined"
default_ulimits = [{limits}]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "{runtime}"
"""

STORAGE = """[storage]
driver = "vfs"
graphroot = "{directory}"
runroot = "{runtime}"
"""


def missing():
    """Returns why podman cannot run here, or an empty text."""
    if os.geteuid() != 0:
        return "only root can make device files"
    for program in ("podman", "conmon", "unshare", "nsenter", "busybox"):
        if shutil.which(program) is None:
            return f"no {program}"
    if shutil.which("runc") is None and shutil.which("crun") is None:
        return "no runc and no crun"
    return "" if is_static(shutil.which("busybox")) else "busybox is not the static one (busybox-static)"


def is_static(program):
    """Returns whether a program runs without shared libraries."""
    return b"/ld-linux" not in Path(program).read_bytes()[:4096]


def limits():
    """Yields limits that containers can have here. podman's defaults are too high where root cannot raise limits."""
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(kind)[1]
        most = LIMIT if hard == resource.RLIM_INFINITY else min(hard, LIMIT)
        yield f'"{name}={most}:{most}"'


def write_image(path):
    """Writes a tar file of a root directory with busybox in it."""
    with tarfile.open(path, "w") as archive:
        archive.add(shutil.which("busybox"), "bin/busybox")
        for name in COMMANDS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        for name in ("dev", "proc", "sys", "etc", "tmp", "run"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(directory)


class Podman:
    """Makes `podman` a command of the sandbox, for programs in the namespace.

    before_entering() must be called before the namespace's enter(), and prepare() after it."""

    def __init__(self, sandbox, namespace):
        self.sandbox = sandbox
        self.namespace = namespace
        self.group = f"berth-test-{secrets.token_hex(8)}"
        self.commands = sandbox.directory / "bin"
        self.cdi = Path(f"/proc/{namespace.holder.pid}/root/run/cdi")

    def before_entering(self):
        """Mounts the control groups into the made-up /sys, and a complete sysfs beside it: users' containers may mount
        a sysfs only if a complete one is visible."""
        script = f"""
            cd {self.namespace.directory}
            mkdir -p sys/fs/cgroup sys-before
            mount --rbind /sys/fs/cgroup sys/fs/cgroup
            mount -t sysfs none sys-before
        """
        self._mount(script)

    def prepare(self):
        """Sets podman up. Skips the test, with podman's message, if podman cannot run a container."""
        self._mount(PRIVATE)
        self._write_commands()
        archive = self.sandbox.directory / "image.tar"
        write_image(archive)
        done = self("import", archive, IMAGE)
        if done.code == 0:
            done = self("run", "--rm", "busybox", "echo", "works")
        if (done.code, done.stdout) != (0, "works\n"):
            pytest.skip("podman runs no containers here: " + done.stderr.strip().rpartition("\n")[2])

    def _mount(self, script):
        done = self.namespace.run("sh", "-ec", script)
        if done.code != 0:
            pytest.skip(f"cannot set podman up here: {done.stderr.strip()}")

    def _write_commands(self):
        configuration = self.configure(shutil.which("runc") or shutil.which("crun"))
        storage = self.sandbox.directory / "storage.conf"
        storage.write_text(STORAGE.format(directory=self.namespace.directory / "storage", runtime="/run/storage"))
        self.commands.mkdir()
        wrapper = self.commands / "podman"
        wrapper.write_text(WRAPPER.format(program=shutil.which("podman"), group=self.group))
        wrapper.chmod(0o755)
        self.sandbox.environment.update(
            CONTAINERS_CONF=str(configuration),
            CONTAINERS_STORAGE_CONF=str(storage),
            PATH=f"{self.commands}{os.pathsep}{self.sandbox.environment['PATH']}",
        )

    def configure(self, runtime):
        """Writes a configuration (CONTAINERS_CONF) that runs containers with this runtime, and returns its path."""
        path = self.sandbox.directory / f"containers-{Path(runtime).name}.conf"
        path.write_text(CONFIGURATION.format(limits=", ".join(limits()), runtime=runtime))
        return path

    def __call__(self, *args, **options):
        """Runs podman to its end."""
        return self.namespace.run("podman", *args, **options)

    def containers(self):
        """Returns the ids of all containers, including those that have ended."""
        done = self("ps", "--all", "--quiet", "--no-trunc")
        assert done.code == 0, done
        return done.stdout.split()

    def inspect(self, container):
        """Returns podman's description of a container, or None if there is no such container."""
        done = self("inspect", "--type=container", container)
        return json.loads(done.stdout)[0] if done.code == 0 else None

    def pids(self, container):
        """Returns the pids of the container's first process and of its conmon."""
        found = self.inspect(container)
        return found["State"]["Pid"], found["State"]["ConmonPid"]

    def processes(self, container=""):
        """Returns the pids of all processes in this container's control group, or in all containers' groups."""
        found = set()
        for group in self.groups():
            for file in group.rglob("cgroup.procs"):
                if "libpod-" + container in str(file):
                    with contextlib.suppress(OSError):  # the group has just been removed
                        found.update(map(int, file.read_text().split()))
        return found

    def groups(self):
        """Yields podman's control group in every hierarchy."""
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind = line.split()[:3]
            if kind in ("cgroup", "cgroup2") and (Path(place) / self.group).is_dir():
                yield Path(place) / self.group

    def remove_containers(self):
        """Ends and removes all containers. podman fails for one whose `podman run --rm` removes it at the same time."""
        until(
            lambda: not self.containers() or self("rm", "--all", "--force", "--time=0").code == 0,
            lambda: f"the removal of {self.containers()}",
            REMOVAL_TIMEOUT,
        )

    def close(self):
        """Removes the control groups. All their processes must have ended."""
        for group in list(self.groups()):
            for directory in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                self._remove_group(directory)
            self._remove_group(group)
        assert not list(self.groups())

    @staticmethod
    def _remove_group(directory):
        """Removes a control group. The kernel refuses that until a moment after the last process's end."""

        def removed():
            with contextlib.suppress(OSError):
                directory.rmdir()
            return not directory.exists()

        until(removed, f"the end of {directory}")
