# SPDX-License-Identifier: Apache-2.0
"""The machine's daemon and its other users: their processes, floods and faults."""
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import servers
from harness import Skipped
from peers import compiled

HERE = Path(__file__).resolve().parent
SUPPORT = HERE.parent / "tests/support"
sys.path.append(str(SUPPORT))

import helper_folders  # noqa: E402, F401
import wire  # noqa: E402
from other_users import OtherUser  # noqa: E402

MALLORY, ALICE = 61001, 61004
# The device that the measured user claims; floods claim the others.
DEVICE = "nvidia0"
PROCESS = wire.HOLDS["PROCESS"]
# A daemon that answers nothing for this time counts as if it answered now.
TIMEOUT_MS = 1000.0
STUCK = 100
STUCK_SECONDS = "5"


@dataclasses.dataclass
class Machine:
    berth: Path
    pid: int
    socket: Path
    environment: dict


def inventory_of(count):
    device = "- {{vendor: nvidia, index: {0}, name: NVIDIA A100, memory: 80GiB, uuid: GPU-{0}}}\n"
    return "devices:\n" + "".join(device.format(index) for index in range(count))


def serves(path):
    try:
        with wire.connect(path) as client:
            return client.hello()
    except (OSError, wire.Closed):
        return None


@contextlib.contextmanager
def machine(build, count=8, rules="history: no\n", hardware=False):
    """Start the machine's daemon with devices of an inventory, or with GPUs of the double of NVML."""
    servers.require_berth(build)
    if os.geteuid() != 0:
        raise Skipped("needs root, to act as several users")
    with servers.directory() as place:
        place.chmod(0o711)
        (place / "inventory.yaml").write_text(inventory_of(count), encoding="utf-8")
        (place / "berth.yaml").write_text(rules, encoding="utf-8")
        variables = servers.nvml_double(build, place, count) if hardware else {}
        devices = [] if hardware else ["--inventory", place / "inventory.yaml"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("BERTH_", "CUDA_"))}
        environment.update(variables, BERTH_SOCKET=str(place / "berth.sock"))
        command = [build / "berthd", "--socket", place / "berth.sock", "--config", place / "berth.yaml", *devices]
        command += ["--log", place / "log"]
        with servers.running(command, env=environment, stdout=subprocess.DEVNULL) as process:
            servers.wait_until(lambda: serves(place / "berth.sock"), "berthd")
            yield Machine(build / "berth", process.pid, place / "berth.sock", environment)


# ---- The measured user ----


def connect_in_time(path):
    """Connect as berth does: while more connections wait than the kernel keeps, try again."""
    for _ in range(10000):
        try:
            return wire.connect(path, timeout=TIMEOUT_MS / 1000)
        except BlockingIOError:
            time.sleep(0.001)
    raise RuntimeError("cannot connect: berthd accepts no more connections")


def claim_often(path, count):
    """Claim and release one device. Return the milliseconds of each round."""
    client = connect_in_time(path)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        try:
            client.release(client.claim({"wanted": [DEVICE]}, hold=PROCESS)["id"])
        except TimeoutError:
            return [*times, TIMEOUT_MS]
        times.append((time.perf_counter() - began) * 1000)
    return times


def claims_of_another_user(pool, count=300):
    return OtherUser(ALICE, claim_often, pool.socket, count).result()


# ---- Floods: functions that another user runs until it is killed ----


def connect_often(path):
    while True:
        with contextlib.suppress(OSError, wire.Closed), wire.connect(path) as client:
            client.send("HELLO")


def keep_connections(path):
    clients = [wire.connect(path) for _ in range(900)]
    while True:
        for client in clients:
            client.hello()


def read_slowly(path):
    """Ask for more than is ever read; connect again when the daemon closes a connection."""
    clients = {}
    while True:
        for number in range(300):
            try:
                if number not in clients:
                    clients[number] = wire.connect(path)
                    clients[number].socket.setblocking(False)
                clients[number].send("LOOK", section=wire.SECTIONS["DEVICES"])
            except BlockingIOError:
                continue
            except OSError:
                with contextlib.suppress(KeyError):
                    clients.pop(number).close()


def churn(path):
    """Claim and release with long names and commands."""
    client = wire.connect(path)
    while True:
        lease = client.claim({"avoided": [DEVICE], "name": "n" * 200}, command="c" * 1000)["id"]
        client.release(lease)


def fork_often(path):
    del path
    while True:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


@contextlib.contextmanager
def flood(function, pool, count=1):
    floods = [OtherUser(MALLORY, function, pool.socket) for _ in range(count)]
    try:
        time.sleep(0.3)  # the flood rises
        if any(not one.runs() for one in floods):
            floods[0].result()
        yield
    finally:
        for one in floods:
            one.kill()


# ---- Faults ----


def helpers(pool, name):
    """Return the daemon's helpers of this name. They need not be its children."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_bytes() == name.encode() + b"\n":
                if os.fsencode(pool.socket.parent) in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


@contextlib.contextmanager
def stopped(pool, name):
    """Stop the daemon's helpers of this name, as a hanging disk or driver would."""
    servers.wait_until(lambda: helpers(pool, name), name)
    pids = helpers(pool, name)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def as_user(uid):
    return {"user": uid, "group": uid, "extra_groups": []}


@contextlib.contextmanager
def stuck_processes(build):
    """Keep processes of another user inside execve. Programs that read all of /proc hang meanwhile."""
    program = compiled(build, SUPPORT / "hostile/stuck_processes.c")
    with servers.directory() as place:
        place.chmod(0o711)
        (place / "mount").mkdir()
        os.mknod(place / "fuse", 0o20666, os.makedev(10, 229))
        (place / "fuse").chmod(0o666)
        command = [program, "exec", str(STUCK), STUCK_SECONDS, place / "fuse", place / "mount"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **as_user(MALLORY)
        ) as process:
            try:
                if not process.stdout.readline().startswith("stuck"):
                    raise Skipped(process.stderr.read().strip())
                yield
            finally:
                process.kill()


@contextlib.contextmanager
def idle_processes(build, count):
    """Keep many idle processes of another user."""
    used = sum(name.isdigit() for name in os.listdir("/proc"))
    if int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii")) < used + count + 1000:
        raise Skipped(f"no {count} pids are left")
    program = compiled(build, SUPPORT / "hostile/idle_processes.c")
    with subprocess.Popen(
        [program, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **as_user(MALLORY),
    ) as process:
        if process.stdout.readline() != "ready\n":
            raise Skipped(process.stderr.read().strip())
        try:
            yield
        finally:
            process.stdin.close()
            process.wait(60)
