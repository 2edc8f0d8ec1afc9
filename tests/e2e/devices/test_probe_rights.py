# SPDX-License-Identifier: Apache-2.0
"""The rights of berth-probe and its workers, with the capabilities that the unit grants."""
import os
import re
import shutil
import signal
import socket
import struct
import subprocess

import pytest
from nvml_machine import Machine

DAEMON = 64990
KILL, DAC_READ_SEARCH, SYS_PTRACE = 1 << 5, 1 << 2, 1 << 19
READER = DAC_READ_SEARCH | SYS_PTRACE
GRANTED = "+kill,+dac_read_search,+sys_ptrace"
FILTERED = "2"  # Seccomp: in /proc/PID/status


def field(tag, value):
    return struct.pack("<HI", tag, len(value)) + value


def ask(channel, number):
    """Send a request for all devices and processes. Return the answer's bytes."""
    request = field(1, struct.pack("<Q", number)) + field(2, struct.pack("<Q", 30_000_000_000))
    channel.sendall(struct.pack("<I", len(request)) + request)
    (length,) = struct.unpack("<I", channel.recv(4, socket.MSG_WAITALL))
    return channel.recv(length, socket.MSG_WAITALL)


def status_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(re.findall(r"^(\w+):\s*(.*)$", file.read(), re.M))


def capabilities(status):
    return {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}


def workers_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


@pytest.fixture
def machine(sandbox):
    """A GPU with a process of root's on it, and the environment of a probe for this machine."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as the unit's user")
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    sandbox.directory.chmod(0o711)
    del sandbox.environment["BERTH_SYSROOT"]
    marked = {"BERTH_LEASE": "77", "BERTH_SOCKET": "/run/of/a/test.sock"}
    user = sandbox.start(["sleep", "1000"], env=marked)
    gpu = Machine()
    gpu.gpu(name="NVIDIA T4", uuid="GPU-0", pci="0000:01:00.0", minor=0).process("compute", user.pid, 1 << 30)
    gpu.write(sandbox.directory / "machine")
    sandbox.environment.update(gpu.environment(sandbox.directory / "machine"))
    yield sandbox
    user.kill(signal.SIGKILL)
    user.wait()


def test_only_the_reader_of_proc_has_capabilities(machine):
    ours, theirs = socket.socketpair()
    become = ["setpriv", f"--reuid={DAEMON}", f"--regid={DAEMON}", "--clear-groups"]
    rights = [f"--inh-caps=-all,{GRANTED}", f"--ambient-caps=-all,{GRANTED}", f"--bounding-set=-all,{GRANTED}"]
    with ours:
        with theirs:
            args = [*become, *rights, "--no-new-privs", "berth-probe"]
            probe = subprocess.Popen(args, stdin=theirs, env=machine.environment)
        answer = ask(ours, 1)
        # It has read the environment of another user's process.
        assert b"/run/of/a/test.sock" in answer

        supervisor = status_of(probe.pid)
        assert supervisor["NoNewPrivs"] == "1"
        assert capabilities(supervisor) == {"CapInh": 0, "CapPrm": READER, "CapEff": 0, "CapAmb": 0}
        # Only root may open what belongs to a process that is not dumpable.
        assert os.stat(f"/proc/{probe.pid}/mem").st_uid == 0

        workers = [status_of(pid) for pid in workers_of(probe.pid)]
        assert len(workers) >= 2
        for worker in workers:
            assert worker["NoNewPrivs"] == "1"
            assert worker["Seccomp"] == FILTERED
            assert capabilities(worker) in (
                {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0},
                {"CapInh": 0, "CapPrm": READER, "CapEff": READER, "CapAmb": 0},
            )
        readers = [worker for worker in workers if int(worker["CapEff"], 16) != 0]
        assert 1 <= len(readers) < len(workers)
        for pid in workers_of(probe.pid):
            assert os.stat(f"/proc/{pid}/mem").st_uid == 0
    # It ends when its socket is closed.
    assert probe.wait() == 0
