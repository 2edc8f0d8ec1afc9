# SPDX-License-Identifier: Apache-2.0
"""Finds and ends the processes below this one, orphans included."""
import ctypes
import os
import select
import signal
import time
from pathlib import Path

TIMEOUT = 10.0
PR_SET_CHILD_SUBREAPER = 36
PF_FORKNOEXEC = 0x40


def adopt_orphans():
    """Makes this process the parent of its children's orphans, instead of init."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def stat_fields(pid):
    """Returns the fields of /proc/PID/stat from the state on, or no fields if there is no such process."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return []
    try:
        return os.read(file, 4096).decode(errors="replace").rpartition(")")[2].split()
    except ProcessLookupError:
        return []
    finally:
        os.close(file)


def status_values(pid):
    """Returns the state and the parent's pid of a process, or None if there is no such process. Unlike /proc/PID/stat,
    the file can be read while the process is inside execve."""
    try:
        # Path is too slow: every test reads the files of all processes several times.
        file = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        text = os.read(file, 4096)
    except ProcessLookupError:
        return None
    finally:
        os.close(file)
    # The name in the first line has no newline: the kernel writes it as \\n.
    state = text.partition(b"\nState:\t")[2][:1]
    return state, int(text.partition(b"\nPPid:\t")[2].partition(b"\n")[0])


def ancestors(pid):
    """Returns the pids of a process's parent, its parent's parent and so on."""
    found = []
    while values := status_values(pid):
        pid = values[1]
        if pid == 0:
            break
        found.append(pid)
    return found


def processes():
    """Yields (pid, parent's pid, whether it is a zombie) for every process."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (values := status_values(entry)):
            yield int(entry), values[1], values[0] == b"Z"


def is_another_program(pid):
    """Returns whether a process runs and has called exec since its parent forked it."""
    fields = stat_fields(pid)
    return bool(fields) and not int(fields[6]) & PF_FORKNOEXEC


def command_line(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
        # During an exec, the process has a name but no command line.
        return (words or Path(f"/proc/{pid}/comm").read_bytes().strip()).decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "?"


def name(pid):
    """Returns the short name of a process, which it may have changed."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return "?"


def children(parent):
    """Returns the pids of a process's children that are alive."""
    return [pid for pid, above, zombie in processes() if above == parent and not zombie]


def is_ended(pid, timeout):
    """Waits for the end of any process, even an orphan. Returns true if it ended in time or does not exist."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], max(0, timeout))[0])
    finally:
        os.close(pidfd)


def wait_for_end(pid, timeout=TIMEOUT):
    """Waits for the end of any process."""
    assert is_ended(pid, timeout), f"pid {pid} did not end within {timeout} s: {command_line(pid)}"


def has_children():
    """Returns whether this process has a child, dead or alive. Orphans below it are its children; see adopt_orphans."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants(ancestor):
    """Returns (pid, whether it is a zombie) for all processes below one."""
    if ancestor == os.getpid() and not has_children():
        return []
    table = list(processes())
    found, parents = [], {ancestor}
    while parents:
        below = [(pid, zombie) for pid, parent, zombie in table if parent in parents]
        found += below
        parents = {pid for pid, _ in below}
    return found


def is_newborn(pid):
    """Returns whether a daemon has forked this process and it has not called exec yet."""
    return (
        "berthd" in command_line(pid).split(" ")[0]
        and bool(stat_fields(pid))
        and not is_another_program(pid)
        and name(pid) != "berth-launcher"  # which never becomes a program
    )


def await_newborns(timeout=TIMEOUT):
    """Waits until every process that a killed daemon forked has called exec or ended. Until then it keeps the daemon's
    socket open, so that a client can connect but gets no answer."""
    deadline = time.monotonic() + timeout
    for pid, zombie in descendants(os.getpid()):
        while not zombie and is_newborn(pid) and not is_ended(pid, 0.002):
            assert time.monotonic() < deadline, f"pid {pid} did not become a program within {timeout} s"


# Programs that end by themselves after the daemon.
BY_THEMSELVES = ("berth-probe", "scripted_probe", "berth-reader", "berth-recorder")


def is_probe(pid):
    """Returns whether a process is a berth-probe, berth-reader or berth-recorder, which end by themselves after the daemon."""
    line = command_line(pid)
    return any(name in line for name in BY_THEMSELVES)


def becomes_probe(pid, deadline):
    """Returns whether a process is a probe or recorder, or becomes one: its daemon may have ended after the fork."""
    while "berthd" in command_line(pid).split(" ")[0]:
        if is_ended(pid, 0.01) or time.monotonic() > deadline:
            return False
    return is_probe(pid)


def await_probes(timeout=TIMEOUT):
    """Waits for the end of probes and recorders whose daemons are gone."""
    deadline = time.monotonic() + timeout
    for pid, zombie in descendants(os.getpid()):
        if not zombie and becomes_probe(pid, deadline):
            is_ended(pid, deadline - time.monotonic())


def is_leaving(pid):
    """Returns whether a process has released its memory, with its command line, and ends a moment later."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return not words and is_ended(pid, 1)


def end_children():
    """Kills and reaps all processes below this one. Returns a message for each process that was still alive.

    Only direct children are signalled, because their pids cannot be reused before they are reaped. Their orphans
    become children of this process and are signalled in the next round.
    """
    left = {}
    deadline = time.monotonic() + TIMEOUT
    while found := descendants(os.getpid()):
        for pid, zombie in found:
            if not zombie and not is_leaving(pid):
                left.setdefault(pid, command_line(pid))
        for pid in [pid for pid, parent, _ in processes() if parent == os.getpid()]:
            os.kill(pid, signal.SIGKILL)
            wait_for_end(pid, deadline - time.monotonic())
            os.waitpid(pid, 0)
    return [f"left running: {pid} {command}" for pid, command in sorted(left.items())]


# The clock of /proc/PID/stat.
TICK = 1 / os.sysconf("SC_CLK_TCK")


def wake_ups(pid):
    """Returns how often the process has gone to sleep, and how many seconds of CPU time it has used: a process that
    never sleeps does not wake up either."""
    fields = stat_fields(pid)
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches:"):
            return int(line.split()[1]), (int(fields[11]) + int(fields[12])) * TICK
    raise AssertionError(f"no voluntary_ctxt_switches of {pid}")


def count_wake_ups(pid, seconds):
    """Returns how often the process wakes up within this time, and asserts that it sleeps for most of it."""
    before, used_before = wake_ups(pid)
    time.sleep(seconds)
    after, used = wake_ups(pid)
    assert used - used_before <= seconds / 4, f"pid {pid} used {used - used_before} s of CPU time in {seconds} s"
    return after - before
