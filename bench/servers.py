# SPDX-License-Identifier: Apache-2.0
"""Starts and ends the servers that measurements need: berth's daemon and others, each in a private
directory."""
import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Skipped

HERE = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 10


@contextlib.contextmanager
def directory():
    """Make a private directory. Its path is short, because it must fit into socket addresses. A daemon
    that is about to end may still write there while it is removed."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-", ignore_cleanup_errors=True) as path:
        yield Path(os.path.realpath(path))


@contextlib.contextmanager
def running(command, **options):
    """Run a process and end it afterwards, together with the readers of its output."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def number_of(path):
    """Return the number that berth uses for the directory of an inventory: FNV-1a with 64 bits."""
    number = 0xCBF29CE484222325
    for byte in os.fsencode(path):
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return f"{number:016x}"


@dataclasses.dataclass
class Pool:
    """The user's own daemon on 8 made-up devices. All commands with this environment use it."""

    berth: Path
    pid: int
    socket: Path
    environment: dict


def require_berth(build):
    if not (build / "berth").exists() or not (build / "berthd").exists():
        raise Skipped("berth is not built")


@contextlib.contextmanager
def own_pool(build, place, own, options, variables):
    """Start a user's own daemon in the directory `own`."""
    own.mkdir(mode=0o700, exist_ok=True)
    command = [build / "berthd", "--own", own, "--idle", "1h", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BERTH_", "CUDA_"))}
    environment["XDG_CONFIG_HOME"] = str(place / "config")
    environment["BERTH_RUNTIME_DIR"] = str(place)
    environment.update(variables)
    with open(own / "log", "ab") as log, running(
        command, stdout=subprocess.PIPE, stderr=log, env=environment
    ) as process:
        said = process.stdout.readline().strip()
        if said != "ready":
            raise RuntimeError(f"cannot start berthd: {said}")
        yield Pool(build / "berth", process.pid, own / "berth.sock", environment)


@contextlib.contextmanager
def pool(build):
    """Start a pool of eight devices from an inventory."""
    require_berth(build)
    with directory() as place:
        inventory = place / "inventory.yaml"
        shutil.copy(HERE.parent / "examples/dgx-a100.yaml", inventory)
        variables = {"BERTH_INVENTORY": str(inventory)}
        with own_pool(build, place, place / number_of(inventory), ["--inventory", inventory], variables) as made:
            yield made


def nvml_double(build, place, count):
    """Return the variables that simulate `count` NVIDIA GPUs with the tests' NVML double."""
    library = build / "tests/libnvidia-ml.so.1"
    if not library.exists():
        raise Skipped("the double of NVML is not built: make test")
    sys.path.insert(0, str(HERE.parent / "tests/support/machines"))
    from nvml_machine import Machine  # the only module taken from the tests

    machine = Machine()
    for number in range(count):
        pci = f"{number // 32:04x}:{number % 32 * 4 + 1:02x}:00.0"
        machine.gpu(name="NVIDIA Test", pci=pci, memory=(80 << 30, 79 << 30, 0), utilization=(5, 1))
    machine.write(place / "machine")
    return {
        "BERTH_SYSROOT": str(place),
        "BERTH_NVML": str(library),
        "NVML_DOUBLE": str(place / "machine"),
    }


@contextlib.contextmanager
def hardware_pool(build):
    """Start a pool of eight GPUs of the double, which the probe finds."""
    require_berth(build)
    with directory() as place:
        with own_pool(build, place, place, [], nvml_double(build, place, 8)) as made:
            yield made


def redis_server():
    """Return the redis-server program. Packages install it under several names; the name in argv[0]
    selects its behaviour."""
    server = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if server is None:
        raise Skipped("redis is not installed: redis-tools")
    return server


@contextlib.contextmanager
def redis():
    """Start a server that stores nothing, and return its socket."""
    server = redis_server()
    with directory() as place:
        socket = place / "redis.sock"
        command = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", place, "--save", ""]
        command += ["--appendonly", "no"]
        with running(command, executable=server, stdout=subprocess.DEVNULL) as process:
            wait_until(lambda: socket.exists() or process.poll() is not None, "redis-server")
            yield socket


def wait_until(is_so, what):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: timeout after {TIMEOUT_SECONDS} s")
        time.sleep(0.001)
