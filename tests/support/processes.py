# SPDX-License-Identifier: Apache-2.0
"""The processes below this one, orphans included: finding them and ending them."""
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
    """Lets orphans of this process's children become its own, not those of init."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def stat_fields(pid):
    """Those behind the name, from the state on; empty where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def processes():
    """Yields (pid, parent, whether a zombie) of every process."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := stat_fields(entry)):
            yield int(entry), int(fields[1]), fields[0] == "Z"


def is_another_program(pid):
    """Whether it runs and has become one since its parent made it, whose words it had until then."""
    fields = stat_fields(pid)
    return bool(fields) and not int(fields[6]) & PF_FORKNOEXEC


def command_line(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
        # In the midst of an exec there are no words yet, but a name.
        return (words or Path(f"/proc/{pid}/comm").read_bytes().strip()).decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "?"


def is_ended(pid, timeout):
    """Whether a process, such as an orphan, ends in time; one that is gone has ended."""
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


def descendants(ancestor):
    """(pid, whether a zombie) of all processes below one."""
    table = list(processes())
    found, parents = [], {ancestor}
    while parents:
        below = [(pid, zombie) for pid, parent, zombie in table if parent in parents]
        found += below
        parents = {pid for pid, _ in below}
    return found


def is_newborn(pid):
    """Whether a daemon has made it and it is still to become the program that it is to be."""
    return "berthd" in command_line(pid).split(" ")[0] and bool(stat_fields(pid)) and not is_another_program(pid)


def await_newborns(timeout=TIMEOUT):
    """Waits until none is left of a daemon that was killed: until then they have what it had open, its socket too,
    where somebody who connects is heard by nobody."""
    deadline = time.monotonic() + timeout
    for pid, zombie in descendants(os.getpid()):
        while not zombie and is_newborn(pid) and not is_ended(pid, 0.002):
            assert time.monotonic() < deadline, f"pid {pid} did not become a program within {timeout} s"


# Those end by themselves when the daemon has.
BY_THEMSELVES = ("berth-probe", "scripted_probe", "berth-recorder")


def is_probe(pid):
    """Whether it is a berth-probe or berth-recorder, which end by themselves when nobody needs them."""
    line = command_line(pid)
    return any(name in line for name in BY_THEMSELVES)


def becomes_probe(pid, deadline):
    """Whether it is one, or is one a moment later: a daemon that has just ended may have begun to start it."""
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
    """Whether it has given its memory back, its words with it, and is gone a moment later."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return not words and is_ended(pid, 1)


def end_children():
    """Kills and reaps everything below this process; returns what was still alive, as text.

    Only direct children are signalled: their pids cannot be anybody else's before they are reaped.
    What they leave behind becomes a child of this process, and has its turn in the next round.
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
