# SPDX-License-Identifier: Apache-2.0
"""Processes like those of containers: orphans in their own namespaces and control group.

As a program, this file starts one of them, which its argument describes in JSON. It prints the pid and ends.
"""
import contextlib
import ctypes
import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
PR_SET_DUMPABLE = 4
HIERARCHIES = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/freezer")
LENT, LENT_COUNT = 7100000, 65536  # uids without an account


def lent(uid):
    """Returns the first of the uids that a user's containers have."""
    return LENT + uid % 16 * LENT_COUNT


class Container:
    """The first process of a container; `id` is in the name of its control group, or None without a group."""

    def __init__(self, pid, identity):
        self.pid = pid
        self.id = identity

    def is_running(self):
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        # The orphan has become a child of this process, which must reap it.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class Containers:
    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.started = []
        self.groups = {}

    def group(self, identity=None):
        """Makes a container's control group, and returns the container's id, or None if no group can be made."""
        identity = identity or secrets.token_hex(32)
        for hierarchy in HIERARCHIES:
            place = Path(hierarchy) / f"docker-{identity}.scope"
            with contextlib.suppress(OSError):
                if (Path(hierarchy) / "cgroup.procs").exists():
                    place.mkdir()
                    self.groups[identity] = place
                    return identity
        return None

    def start(self, identity=None, environment=None, command=("sleep", "1000"), inside=(), **facts):
        """Starts a container in the group of this id. `facts`: `uid` starts the container; with `user`, it has a user
        namespace, with more uids if root makes it; `inner` is its uid there; without `alone`, it sees all pids."""
        order = {"environment": environment or {}, "command": command, **facts}
        words = [*inside, sys.executable, os.path.realpath(__file__), json.dumps(order)]
        if identity is not None:
            # Join the control group first: `inside` may enter a namespace that shows no control groups.
            words = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', self.groups[identity] / "cgroup.procs", *words]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr)
        self.started.append(Container(int(done.stdout), identity))
        return self.started[-1]

    def close(self):
        # Not at the top of the file: the program below cannot import other helpers.
        from waiting import until_removed

        for container in self.started:
            container.end()
        for place in self.groups.values():
            until_removed(place)


# ---- The program ----


def call(name, *arguments):
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name)


def write_maps(pid, uid, gid, lends):
    """Writes the id maps of a user namespace. Its root is this user; with `lends`, it also has uids without account."""
    more = f"\n1 {lent(uid)} {LENT_COUNT}" if lends else ""
    Path(f"/proc/{pid}/uid_map").write_text(f"0 {uid} 1{more}")
    if not lends:
        Path(f"/proc/{pid}/setgroups").write_text("deny")
    Path(f"/proc/{pid}/gid_map").write_text(f"0 {gid} 1{more}")


def enter_user_namespace(uid):
    """Enters a user namespace that this user owns. If this process is root, a child that stays root writes the maps."""
    lends = os.geteuid() == 0
    gid = os.getegid()
    told, tell = os.pipe()
    helper = os.fork() if lends else None
    if helper == 0:
        os.close(tell)
        os.read(told, 1)
        write_maps(os.getppid(), uid, uid, True)
        os._exit(0)
    if lends:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)
    call("unshare", CLONE_NEWUSER)
    if not lends:
        write_maps("self", uid, gid, False)
        return
    os.write(tell, b"x")
    _, status = os.waitpid(helper, 0)
    if status != 0:
        raise OSError("cannot write the id maps")


def become(order):
    """Sets the uid of the child, and executes its command in its environment."""
    uid = order.get("inner", 0) if order.get("user") else order.get("uid", os.geteuid())
    if uid != os.geteuid():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.execvpe(order["command"][0], list(order["command"]), {"PATH": os.environ["PATH"], **order["environment"]})


def main(order):
    if order.get("user"):
        enter_user_namespace(order.get("uid", os.geteuid()))
    if order.get("alone", True):
        call("unshare", CLONE_NEWPID | CLONE_NEWNS)
    begun, begins = os.pipe()  # exec closes the write end
    child = os.fork()
    if child == 0:
        os.close(begun)
        become(order)
    os.close(begins)
    os.read(begun, 1)
    print(child)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
