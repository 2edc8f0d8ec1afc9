# SPDX-License-Identifier: Apache-2.0
"""A real systemd, the first process of a machine that consists of namespaces. Its files are those of this machine with
a temporary layer above them, in which berth is installed. It starts nothing but berth."""
import contextlib
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import processes
import pytest
from waiting import until, until_removed

BUILD = Path(os.environ.get("BERTH_BUILD_ROOT", "build"))

# The machine has only the files that a service needs. The files of this machine are the lower layer, so that programs
# and libraries have their usual paths. The network is separate, too, because pools lock devices by names in it.
SETUP = r"""
set -e
mount -t tmpfs -o mode=755 none "$MACHINE"
cd "$MACHINE"
mkdir upper work root
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work none root
cd root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=1777 none tmp
mkdir -p ../dev
mount -t tmpfs -o mode=755 none ../dev
for name in null zero full random urandom tty; do
    : >"../dev/$name"
    mount --bind "/dev/$name" "../dev/$name"
done
mkdir ../dev/shm ../dev/pts
ln -s /proc/self/fd ../dev/fd
mount --move ../dev dev
echo mounted
read -r _
mkdir -p before
pivot_root . before
umount -l before
exec env -i container=test PATH="$PATH" SYSTEMD_UNIT_PATH="$UNITS" SYSTEMD_LOG_TARGET=null \
    /usr/lib/systemd/systemd --system --unit=trial.target
"""

# Directories of the test's own units. They include empty targets in place of those that services depend on by default.
STUBS = {"system": "/etc/berth-test/system", "user": "/etc/berth-test/user"}
TARGETS = ("sysinit", "basic", "sockets", "shutdown")

# The service manager of a user. No user has logged in, so the unit sets the variables that a login sets.
USER_MANAGER = """
[Service]
Type=notify
User={uid}
Group={uid}
Delegate=yes
RuntimeDirectory=user/{uid}
RuntimeDirectoryMode=0700
Environment=XDG_RUNTIME_DIR=/run/user/{uid} HOME=/run/user/{uid} SYSTEMD_UNIT_PATH={path} PATH={search}
ExecStart=/usr/lib/systemd/systemd --user --unit=trial.target
"""


def skip_unless_possible():
    if os.geteuid() != 0:
        pytest.skip("needs root, to make a machine")
    for tool in ("unshare", "nsenter", "pivot_root", "setpriv", "systemctl", "systemd-sysusers", "meson"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    if not os.access("/usr/lib/systemd/systemd", os.X_OK):
        pytest.skip("no systemd")


def own_cgroup(name):
    """Makes a control group of version 2 below the one of this process, and returns its path."""
    mounts = re.findall(r"^\S+ (\S+) cgroup2 ", Path("/proc/self/mounts").read_text(), re.M)
    inside = re.findall(r"^0::/(.*)$", Path("/proc/self/cgroup").read_text(), re.M)
    if not mounts or not inside:
        pytest.skip("no control groups of version 2")
    group = Path(mounts[0]) / inside[0] / name
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group of our own: {error}")
    return group


class ServiceManager:
    """A machine with systemd. systemctl() controls it, run() and start() run other programs inside, and drop_in()
    extends a unit. close() ends all processes inside."""

    def __init__(self, sandbox, options):
        skip_unless_possible()
        self.sandbox = sandbox
        self.programs = f"{options['prefix']}/{options['bindir']}"
        self.units = {kind: f"{options['prefix']}/{options[f'systemd_{kind}_units']}" for kind in ("system", "user")}
        self.sysusers = f"{options['prefix']}/{options['sysusers']}/berth.conf"
        self.group = own_cgroup(sandbox.directory.name)
        self.first = None
        directory = sandbox.directory / "service-machine"
        directory.mkdir()
        enter = f"echo $$ >{shlex.quote(str(self.group))}/cgroup.procs && exec "
        enter += "unshare --mount --propagation private --pid --net --cgroup --uts --ipc --fork --kill-child sh -c "
        units = f"{STUBS['system']}:{self.units['system']}"
        self.holder = sandbox.start(["sh", "-c", enter + shlex.quote(SETUP)], env={"UNITS": units, "MACHINE": directory})
        try:
            self.holder.wait_for_line("^mounted$")
        except AssertionError:
            words = self.holder.text("stderr").strip()
            self.close()
            pytest.skip(f"cannot make a machine here: {words}")
        [(self.first, _)] = processes.descendants(self.holder.pid)
        self.root = Path(f"/proc/{self.first}/root{directory}/root")
        self._install()

    def _install(self):
        subprocess.run(
            ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.root],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for kind in STUBS:
            for name in TARGETS:
                self.add_unit(f"{name}.target", "[Unit]\nDefaultDependencies=no\n", kind)

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def add_unit(self, name, text, kind="system"):
        self.write(f"{STUBS[kind]}/{name}", text)

    def drop_in(self, unit, text, kind="system", name="test"):
        self.add_unit(f"{unit}.d/{name}.conf", text, kind)

    def _add_trial(self, kind, wanted):
        names = " ".join(wanted)
        self.add_unit("trial.target", f"[Unit]\nDefaultDependencies=no\nRequires={names}\nAfter={names}\n", kind)

    def boot(self, *wanted):
        """Starts systemd with these units. From then on, paths are those that programs inside see."""
        self._add_trial("system", wanted)
        self.holder.send("\n")
        self.root = Path(f"/proc/{self.first}/root")
        until(lambda: self.systemctl("is-active", "trial.target").stdout == "active\n", self.describe)

    def add_user_manager(self, uid, *wanted):
        """Adds a unit user.service, which manages these units of a user. Must be called before boot()."""
        for file, line in (("passwd", f"user:x:{uid}:{uid}::/:/bin/sh\n"), ("group", f"user:x:{uid}:\n")):
            self.write(f"etc/{file}", (self.root / "etc" / file).read_text() + line)
        path = f"{STUBS['user']}:{self.units['user']}"
        search = self.environment()["PATH"]
        self.add_unit("user.service", USER_MANAGER.format(uid=uid, path=path, search=search))
        self._add_trial("user", wanted)

    def describe(self):
        return "the machine's start; " + self.systemctl("--failed", "--no-pager").stdout + self.holder.text("stderr")

    def _inside(self, uid):
        become = [] if uid == 0 else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        return ["nsenter", "-t", str(self.first), "-m", "-p", "-n", "-C", "-u", "-i", "--wd=/", *become]

    def environment(self):
        path = f"{self.programs}:{self.sandbox.environment['PATH']}"
        gone = dict.fromkeys(name for name in self.sandbox.environment if name.startswith("BERTH_"))
        return {**gone, "PATH": path, "HOME": "/"}

    def run(self, *args, uid=0, env=None):
        return self.sandbox.run([*self._inside(uid), *args], env={**self.environment(), **(env or {})})

    def start(self, *args, uid=0, env=None):
        return self.sandbox.start([*self._inside(uid), *args], env={**self.environment(), **(env or {})})

    def systemctl(self, *args, uid=0):
        """Runs systemctl for the machine's systemd, or for a user's own."""
        if uid == 0:
            return self.run("systemctl", *args)
        return self.run("systemctl", "--user", *args, uid=uid, env={"XDG_RUNTIME_DIR": f"/run/user/{uid}"})

    def show(self, unit, name, uid=0):
        return self.systemctl("show", "-P", name, unit, uid=uid).stdout.strip()

    def close(self):
        self.holder.stop()
        if self.first:
            until(self._has_ended, "the end of systemd")
        for directory, _, _ in os.walk(self.group, topdown=False):
            until_removed(directory)

    def _has_ended(self):
        """Returns whether systemd has ended. It ends after all processes inside are reaped; the orphans of a killed
        nsenter are children of this process."""
        for pid, zombie in processes.descendants(os.getpid()):
            if zombie:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        return processes.is_ended(self.first, 0)
