# SPDX-License-Identifier: Apache-2.0
"""A podman of a test's own: its storage, its control groups, its /run, its directories for CDI files.

It lives in a mount namespace (support/machines/namespaces.py), whose end takes its storage and all mounts with it. What it
starts is below the test's process, as orphans, so that a sandbox finds and ends it. Nothing of the machine is touched
but for control groups, which are in one of their own and removed by close().
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

# What is in the image, beside the shell: links to busybox.
COMMANDS = ("cat", "chmod", "dd", "echo", "env", "false", "id", "kill", "ls", "mknod", "mount", "sh", "sleep", "stat")
COMMANDS += ("test", "trap", "true", "wc")
LIMIT = 16384
REMOVAL_TIMEOUT = 30.0  # seconds
IMAGE = "docker.io/library/busybox:latest"

# podman reads CDI files in /etc/cdi and /var/run/cdi only; the locks of all podmen are in /dev/shm.
PRIVATE = """
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs none /dev/shm
mkdir /run/cdi /run/lock
if test -d /etc/cdi; then mount -t tmpfs none /etc/cdi; fi
"""

# No file says in which control group containers are to be.
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
    """What podman needs and is not here; an empty text when nothing is."""
    if os.geteuid() != 0:
        return "only root can make device files"
    for program in ("podman", "conmon", "unshare", "nsenter", "busybox"):
        if shutil.which(program) is None:
            return f"no {program}"
    if shutil.which("runc") is None and shutil.which("crun") is None:
        return "no runc and no crun"
    return "" if is_static(shutil.which("busybox")) else "busybox is not the static one (busybox-static)"


def is_static(program):
    """Whether it runs where there is no library."""
    return b"/ld-linux" not in Path(program).read_bytes()[:4096]


def limits():
    """Limits that containers can have here: podman's own are above what may be set where root may not raise them,
    and podman lowers its own to the number of processes that there may be."""
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(kind)[1]
        most = LIMIT if hard == resource.RLIM_INFINITY else min(hard, LIMIT)
        yield f'"{name}={most}:{most}"'


def write_image(path):
    """A root directory with busybox in it, as a tar file."""
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
    """Makes `podman` a command of the sandbox, for what is started in the namespace.

    before_entering() has to be called before the namespace's machine is made real, prepare() after that."""

    def __init__(self, sandbox, namespace):
        self.sandbox = sandbox
        self.namespace = namespace
        self.group = f"berth-test-{secrets.token_hex(8)}"
        self.commands = sandbox.directory / "bin"
        self.cdi = Path(f"/proc/{namespace.holder.pid}/root/run/cdi")

    def before_entering(self):
        """Keeps control groups where they are, for a machine whose /sys is made up; and a whole sysfs somewhere:
        users' containers may not mount one where there is none to be seen."""
        script = f"""
            cd {self.namespace.directory}
            mkdir -p sys/fs/cgroup sys-before
            mount --rbind /sys/fs/cgroup sys/fs/cgroup
            mount -t sysfs none sys-before
        """
        self._mount(script)

    def prepare(self):
        """Skips the test where podman cannot run a container, with its own words."""
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
            pytest.skip(f"no place for podman can be made here: {done.stderr.strip()}")

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
        """The path of a configuration (CONTAINERS_CONF) by which containers are run by this program."""
        path = self.sandbox.directory / f"containers-{Path(runtime).name}.conf"
        path.write_text(CONFIGURATION.format(limits=", ".join(limits()), runtime=runtime))
        return path

    def __call__(self, *args, **options):
        """Runs it to its end."""
        return self.namespace.run("podman", *args, **options)

    def containers(self):
        """The ids of all containers, also of those that have ended."""
        done = self("ps", "--all", "--quiet", "--no-trunc")
        assert done.code == 0, done
        return done.stdout.split()

    def inspect(self, container):
        """What podman knows of one container; None when there is none of this name."""
        done = self("inspect", "--type=container", container)
        return json.loads(done.stdout)[0] if done.code == 0 else None

    def pids(self, container):
        """The ids of the container's first process and of its conmon."""
        found = self.inspect(container)
        return found["State"]["Pid"], found["State"]["ConmonPid"]

    def processes(self, container=""):
        """The ids of all processes in this container's control group, or in those of all."""
        found = set()
        for group in self.groups():
            for file in group.rglob("cgroup.procs"):
                if "libpod-" + container in str(file):
                    with contextlib.suppress(OSError):  # it has just been removed
                        found.update(map(int, file.read_text().split()))
        return found

    def groups(self):
        """Its control group in every hierarchy."""
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
        """All its processes are to have ended."""
        for group in list(self.groups()):
            for directory in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
                self._remove_group(directory)
            self._remove_group(group)
        assert not list(self.groups())

    @staticmethod
    def _remove_group(directory):
        """The kernel takes a moment to see that the last process has gone."""

        def removed():
            with contextlib.suppress(OSError):
                directory.rmdir()
            return not directory.exists()

        until(removed, f"the end of {directory}")
