# SPDX-License-Identifier: Apache-2.0
"""berth-probe beside processes at which a reader of /proc sleeps: inside execve, or in state D."""
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest
from hostile_processes import StuckProcesses
from nvml_machine import Machine

HOSTILE, HONEST = 64991, 64992
FIRST_OF_MANY, MANY = 64900, 50
MARK = {"BERTH_LEASE": "77", "BERTH_SOCKET": "/run/of/a/test.sock"}

# Tags of the probe's packets (probe/probe_messages.c, codec/device_tags.h).
DEVICES, PROBLEMS, PROCESSES = 3, 5, 23
PID, UID, COMMAND, SAID_LEASE, UNDECIDED, ANCESTORS = 1, 2, 4, 10, 13, 14
# Stuck processes are released after 15 s, and a question that waits for them ends no earlier.
SOON = 5.0


def fields(data):
    """Return the values of tagged fields by tag."""
    found, at = {}, 0
    while at < len(data):
        tag, length = struct.unpack_from("<HI", data, at)
        found[tag] = data[at + 6 : at + 6 + length]
        at += 6 + length
    return found


def items(data):
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        yield fields(data[at + 4 : at + 4 + length])
        at += 4 + length


def number(value):
    return int.from_bytes(value, "little")


class Probe:
    """A running berth-probe."""

    def __init__(self, sandbox):
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(["berth-probe"], stdin=theirs, env=sandbox.environment)
        self.socket.settimeout(60)

    def ask(self):
        """Request everything. Return the processes of all devices by pid, and the problems."""
        start = time.monotonic()
        request = struct.pack("<HIQHIQ", 1, 8, 1, 2, 8, 30_000_000_000)
        self.socket.sendall(struct.pack("<I", len(request)) + request)
        (length,) = struct.unpack("<I", self.socket.recv(4, socket.MSG_WAITALL))
        answer = fields(self.socket.recv(length, socket.MSG_WAITALL))
        self.took = time.monotonic() - start
        found = {}
        for device in items(answer.get(DEVICES, b"")):
            for process in items(device.get(PROCESSES, b"")):
                found[number(process[PID])] = process
        return found, [problem[2].decode() for problem in items(answer.get(PROBLEMS, b""))]

    def close(self):
        self.socket.close()
        return self.process.wait(30)


@pytest.fixture
def root_sandbox(sandbox):
    if os.geteuid() != 0:
        pytest.skip("needs root, to look at other users' processes")
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    sandbox.directory.chmod(0o711)
    del sandbox.environment["BERTH_SYSROOT"]
    return sandbox


def start_honest(sandbox):
    args = ["setpriv", f"--reuid={HONEST}", f"--regid={HONEST}", "--clear-groups", "sleep", "1000"]
    return sandbox.start(args, env=MARK)


def stop(program):
    program.kill(signal.SIGKILL)
    program.wait()


def put_on_gpu(sandbox, pids):
    machine = Machine()
    gpu = machine.gpu(name="NVIDIA T4", uuid="GPU-0", pci="0000:01:00.0", minor=0)
    for pid in pids:
        gpu.process("compute", pid, 1 << 30)
    machine.write(sandbox.directory / "machine")
    sandbox.environment.update(machine.environment(sandbox.directory / "machine"))


@pytest.mark.parametrize("mode", ["exec", "read"])
def test_stuck_processes_on_a_device_do_not_hide_others(root_sandbox, mode):
    honest = start_honest(root_sandbox)
    with StuckProcesses(root_sandbox, HOSTILE, mode, count=5) as stuck:
        put_on_gpu(root_sandbox, [*stuck.pids, honest.pid])
        probe = Probe(root_sandbox)
        found, _ = probe.ask()
        again, _ = probe.ask()
        took = probe.took
        assert probe.close() == 0
    stop(honest)
    for seen in (found, again):
        assert set(seen) == {*stuck.pids, honest.pid}
        assert number(seen[honest.pid][SAID_LEASE]) == 77
        assert number(seen[honest.pid][UID]) == HONEST
        assert UNDECIDED not in seen[honest.pid]
        for pid in stuck.pids:
            assert number(seen[pid][UID]) == HOSTILE
            assert COMMAND in seen[pid]
            # Its ancestors are known, too.
            assert number(seen[pid][ANCESTORS][:4]) == stuck.server.pid
            if mode == "exec":
                assert number(seen[pid][UNDECIDED]) == 1
    # Each stalled one reader, once.
    assert took < SOON


def make_machine_with_drm(root_sandbox):
    """The machine has a DRM device, so the open files of all processes are looked at."""
    machine = root_sandbox.directory / "machine-with-drm"
    (machine / "dev/dri").mkdir(parents=True)
    (machine / "dev/dri/renderD128").touch()
    (machine / "sys/class/drm/renderD128").mkdir(parents=True)
    (machine / "proc").symlink_to("/proc")
    root_sandbox.environment["BERTH_SYSROOT"] = str(machine)


def test_stuck_processes_of_a_stranger_do_not_stop_the_scan(root_sandbox):
    make_machine_with_drm(root_sandbox)
    with StuckProcesses(root_sandbox, HOSTILE, "exec", count=20):
        probe = Probe(root_sandbox)
        _, problems = probe.ask()
        first = probe.took
        _, problems_again = probe.ask()
        second = probe.took
        assert probe.close() == 0
    assert [*problems, *problems_again] == []
    # One reader was stalled: after the first process, the others of its user are avoided.
    assert first < SOON
    assert second < SOON


@pytest.mark.parametrize("belong_together", [True, False])
def test_stuck_processes_of_many_uids_do_not_stop_the_scan(root_sandbox, belong_together):
    """A container may have many uids. Those that /etc/subuid gives to one user stall one reader together."""
    uids = range(FIRST_OF_MANY, FIRST_OF_MANY + MANY)
    make_machine_with_drm(root_sandbox)
    ranges = root_sandbox.directory / "subuid"
    ranges.write_text(f"{HOSTILE}:{FIRST_OF_MANY}:{MANY}\n" if belong_together else "")
    root_sandbox.environment["BERTH_SUBUID"] = str(ranges)
    with contextlib.ExitStack() as stack:
        for uid in uids:
            stack.enter_context(StuckProcesses(root_sandbox, uid, "exec"))
        probe = Probe(root_sandbox)
        _, problems = probe.ask()
        took = probe.took
        assert probe.close() == 0
    assert problems == []
    # Otherwise each stalls a reader, until one asks no process.
    assert took < SOON
