# SPDX-License-Identifier: Apache-2.0
"""The cost of many clients of one event stream for berth web and the daemon.

SOAK_READERS and SOAK_SECONDS set the number of clients and the duration. The limits on CPU time and memory are checked
only for programs without sanitizers, and only if the duration is long enough to measure them.
"""
import json
import os
import re
import socket
import sys
import time
from pathlib import Path

from programs import TIMEOUT
from web_process import WebProcess

READERS = int(os.environ.get("SOAK_READERS", "200"))
SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
PROCESSES = 4
# A burst has more leases than there are devices, but the average is a little below what the devices can serve. So a
# queue forms with every burst and never grows from one burst to the next.
DEVICES, BURST, EVERY, HELD = 8, 10, 2.0, 1.5
COUNTS = SECONDS >= 20 and os.environ.get("BERTH_SANITIZERS", "none") == "none"
WEB_MOST, DAEMON_MOST = 0.20, 0.05  # of one core
GROWTH_MOST = 2 << 20  # bytes
SILENCE_MOST = 10.0  # seconds
SCRIPT = Path(__file__).with_name("event_readers.py")


class Measured:
    """The resources that a process uses from now on."""

    def __init__(self, pid):
        self.pid = pid
        self.began = time.monotonic()
        self.used = self.cpu()
        self.memory = self.resident()

    def cpu(self):
        """Returns the CPU seconds of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        return int(re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text(), re.M)[1]) << 10

    def share(self):
        """Returns its share of one core."""
        return (self.cpu() - self.used) / (time.monotonic() - self.began)

    def growth(self):
        return self.resident() - self.memory


class SlowReader:
    """Reads nothing before read_until()."""

    def __init__(self, served):
        host, port = served.address.split(":")
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect((host, int(port)))
        self.socket.sendall(f"GET /api/events HTTP/1.1\r\nHost: {served.address}\r\n\r\n".encode())

    def read_until(self, name):
        """Returns all bytes until the lease of this name is seen, in a snapshot or in an event of its own."""
        self.socket.settimeout(TIMEOUT)
        deadline = time.monotonic() + TIMEOUT
        text = b""
        while f'"{name}"'.encode() not in text:
            data = self.socket.recv(1 << 16)
            assert data, "the server closed the connection of the slow reader"
            assert time.monotonic() < deadline, f"no {name} in {len(text)} bytes, with {text.count(b'event: hello')} hellos"
            text += data
        return text


class Comings:
    """Leases that come and go."""

    def __init__(self, pool):
        self.pool = pool
        self.running = []
        self.count = 0

    def go_on(self, seconds):
        began = time.monotonic()
        due = began
        while (now := time.monotonic()) < began + seconds:
            if now >= due:
                due += EVERY
                for _ in range(BURST):
                    self.count += 1
                    self.running.append(self.pool.start("run", "--name", f"job-{self.count}", "sleep", str(HELD)))
            self.running = [program for program in self.running if program.code is None]
            time.sleep(max(0.0, min(due, began + seconds) - time.monotonic()))

    def end(self):
        for program in self.running:
            assert program.wait() == 0


def start_readers(sandbox, served):
    each, more = divmod(READERS, PROCESSES)
    counts = [each + (number < more) for number in range(PROCESSES)]
    readers = [sandbox.start([sys.executable, SCRIPT, served.address, count]) for count in counts if count]
    for program in readers:
        program.wait_for_line("^reading", timeout=60)
    return readers


def tell(numbers, capsys):
    with capsys.disabled():
        print("".join(f"\n{name}: {value}" for name, value in numbers.items()), file=sys.stderr, flush=True)
    (Path(os.environ["BERTH_BUILD_ROOT"]) / "soak-web.json").write_text(json.dumps(numbers, indent=2) + "\n")


def test_many_readers(sandbox, nvml, machine_pool, capsys):
    nvml(DEVICES)
    comings = Comings(machine_pool)
    served = WebProcess(sandbox)
    comings.go_on(1)  # until all programs have started
    [daemon] = machine_pool.daemons()
    before = comings.count
    readers = start_readers(sandbox, served)
    slow = SlowReader(served) if COUNTS else None
    comings.go_on(min(10.0, SECONDS / 2))  # until the memory use is stable
    web, pool = Measured(served.pid), Measured(daemon)
    comings.go_on(SECONDS - min(10.0, SECONDS / 2))
    numbers = {
        "readers": READERS,
        "seconds": SECONDS,
        "leases": comings.count,
        "web, of one core": round(web.share(), 4),
        "daemon, of one core": round(pool.share(), 4),
        "web, KiB": [web.memory >> 10, web.resident() >> 10],
        "daemon, KiB": [pool.memory >> 10, pool.resident() >> 10],
    }
    growth = web.growth(), pool.growth()
    comings.end()
    machine_pool.let_go(machine_pool.hold("--name", "the-last"))
    heard = []
    for program in readers:
        program.send("until the-last\n")
    for program in readers:
        heard += json.loads(program.wait_for_line(r"^\[", timeout=90))
        assert program.wait() == 0, program.text("stderr")
    kinds = {kind: min(reader["events"].get(kind, 0) for reader in heard) for kind in ("hello", "load", "lease", "queue")}
    numbers["fewest events of a reader"] = kinds
    numbers["KiB for each reader"] = sorted(reader["bytes"] >> 10 for reader in heard)[len(heard) // 2]
    numbers["longest silence, s"] = round(max(reader["longest_silence"] for reader in heard), 2)
    if slow is not None:
        holder = machine_pool.hold("--name", "for-the-slow")
        text = slow.read_until("for-the-slow")
        machine_pool.let_go(holder)
        numbers["slow reader, hellos"] = text.count(b"event: hello\n")
        numbers["slow reader, KiB"] = len(text) >> 10
    tell(numbers, capsys)
    served.close()

    assert len(heard) == READERS
    assert all(reader["heard_all"] for reader in heard)
    # A client that keeps up misses nothing, and gets no second snapshot.
    assert max(reader["events"]["hello"] for reader in heard) <= 2
    assert min(reader["released"] for reader in heard) >= comings.count - before
    assert {reader["pending"] for reader in heard} <= {0, None}
    assert kinds["load"] >= SECONDS * 0.5
    assert kinds["queue"] >= SECONDS / EVERY / 2
    if COUNTS:
        assert numbers["web, of one core"] < WEB_MOST, numbers
        assert numbers["daemon, of one core"] < DAEMON_MOST, numbers
        assert max(growth) < GROWTH_MOST, numbers
        # No client waited so long that a page would mark its data as old.
        assert numbers["longest silence, s"] < SILENCE_MOST, numbers
        # A client that does not read gets a new snapshot, not all events that it missed.
        assert numbers["slow reader, hellos"] >= 2
        assert numbers["slow reader, KiB"] < numbers["KiB for each reader"]
