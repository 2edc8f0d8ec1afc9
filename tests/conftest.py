# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all tests in Python."""
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import helper_folders  # noqa: E402, F401
import nvml_machine  # noqa: E402
from container_machine import ContainerMachine  # noqa: E402
from fake_machine import FakeMachine  # noqa: E402
from hardware_pool import HardwarePool  # noqa: E402
from machine_pool import MachinePool  # noqa: E402
from mps import Mps  # noqa: E402
from namespaces import Namespace  # noqa: E402
from occupied_gpus import OccupiedGpus  # noqa: E402
from pool import Pool, inventory_of  # noqa: E402
from recorded_machine import Machine, data_file, unpack  # noqa: E402
from sandbox import Sandbox  # noqa: E402
from scripted_daemon import ScriptedDaemon  # noqa: E402
from shared_machine import SharedMachine, needs_root  # noqa: E402
from site_programs import SitePrograms  # noqa: E402

# nohup and shells that start tests in the background ignore signals; the programs that tests start would inherit that.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def source_root():
    """The root of the source tree."""
    return Path(os.environ.get("BERTH_SOURCE_ROOT", Path(__file__).resolve().parent.parent))


@pytest.fixture
def sandbox():
    """A directory and an environment for programs. It fails a test that leaves a process; see support/sandbox.py."""
    place = Sandbox()
    yield place
    place.close()


@pytest.fixture
def pool_of(sandbox):
    """Makes the sandbox's pool: pool_of(2) has two equal devices, pool_of(text) has the devices of an inventory.

    The daemon ends with the test; see support/daemons/pool.py."""
    pools = []

    def make(devices):
        assert not pools, "a sandbox can have only one pool"
        pools.append(Pool(sandbox, inventory_of(devices) if isinstance(devices, int) else devices))
        return pools[0]

    yield make
    for pool in pools:
        pool.close()


@pytest.fixture
def hardware_of(sandbox):
    """Makes the sandbox's pool of hardware that a script describes; see support/daemons/hardware_pool.py."""
    pools = []

    def make(devices=(), **script):
        assert not pools, "a sandbox can have only one pool"
        pools.append(HardwarePool(sandbox, devices, **script))
        return pools[0]

    yield make
    for pool in pools:
        pool.close()


@pytest.fixture
def shared_machine_of(sandbox):
    """A machine that several users share. shared_machine_of(4) has four equal devices, shared_machine_of() has those of
    the hardware. The test starts the daemon; see support/daemons/shared_machine.py."""
    needs_root()
    machines = []

    def make(devices=None):
        assert not machines, "a sandbox can have only one shared machine"
        arguments = []
        if devices is not None:
            inventory = sandbox.directory / "inventory.yaml"
            inventory.write_text(inventory_of(devices))
            arguments = ["--inventory", inventory]
        machines.append(SharedMachine(sandbox, arguments))
        return machines[0]

    yield make
    for shared_machine in machines:
        shared_machine.finish()


@pytest.fixture
def daemon(sandbox):
    """A daemon that sends the messages that the test chooses; see support/daemons/scripted_daemon.py."""
    scripted = ScriptedDaemon(sandbox)
    yield scripted
    scripted.close()


@pytest.fixture
def site(sandbox):
    """Prolog, epilog and notification programs for the sandbox's daemon; see support/daemons/site_programs.py."""
    return SitePrograms(sandbox)


@pytest.fixture
def machine(sandbox):
    """A made-up machine, at first without devices, which berth reads instead of the real one; see
    support/machines/fake_machine.py."""
    made = FakeMachine(sandbox.directory / "machine")
    sandbox.environment["BERTH_SYSROOT"] = str(made.root)
    sandbox.environment.setdefault("BERTH_PROBE_DEADLINE", "9s")
    return made


@pytest.fixture
def impatient(sandbox):
    """Shortens the probe's deadline, for tests in which a driver hangs."""
    sandbox.environment["BERTH_PROBE_DEADLINE"] = "1500ms"


@pytest.fixture
def nvml(machine, sandbox):
    """Adds NVIDIA GPUs to that machine, with the double of NVML. nvml(2, (1, FUNCTION, "hang")) adds two GPUs; the
    function hangs for the second, or with None instead of 1 for both; see support/machines/nvml_machine.py."""

    def make(count, *faults):
        double = nvml_machine.Machine()
        for index in range(count):
            address = machine.pci(0x40 + index)
            double.gpu(name="NVIDIA T4", uuid=f"GPU-{index}", pci=(address, "0x1eb810de", "0x12a210de"), minor=index)
            double.gpus[index].say(memory=(1000, 600, 0), utilization=(50, 20))
        for index, function, action in faults:
            (double if index is None else double.gpus[index]).call(function, action)
        script = sandbox.directory / "nvml"
        double.write(script)
        sandbox.environment.update(double.environment(script))

    return make


@pytest.fixture
def machine_pool(sandbox, machine):
    """The pool of that machine's devices."""
    pool = MachinePool(sandbox)
    yield pool
    pool.close()


@pytest.fixture
def namespace(sandbox):
    """A mount namespace in which a made-up machine replaces the real one; see support/machines/namespaces.py."""
    place = Namespace(sandbox)
    sandbox.environment.setdefault("BERTH_PROBE_DEADLINE", "9s")
    yield place
    place.close()


@pytest.fixture
def namespace_pool(sandbox, namespace):
    """The pool of that namespace's devices."""
    pool = MachinePool(sandbox, namespace.inside)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def shared_container_machine():
    """A machine with GPUs and podman, which all tests of a file share; see support/machines/container_machine.py."""
    made = ContainerMachine()
    yield made
    made.close()


@pytest.fixture
def container_machine(shared_container_machine):
    """The same machine. It fails a test that leaves a process, a container or a lease."""
    yield shared_container_machine
    shared_container_machine.check()


@pytest.fixture
def pool(pool_of, source_root):
    """A pool of eight devices: examples/dgx-a100.yaml."""
    return pool_of((source_root / "examples/dgx-a100.yaml").read_text())


@pytest.fixture
def recorded_machine(sandbox, source_root):
    """Unpacks a recorded machine: recorded_machine("kfd-topo-mi300-cpx.tar.xz"); see support/machines/recorded_machine.py."""

    def make(name):
        archive = data_file(source_root, f"machines/{name}")
        return Machine(sandbox, unpack(archive, sandbox.directory / "machine"))

    return make


@pytest.fixture
def mps(sandbox):
    """Control daemons of the MPS double; see support/daemons/mps.py."""
    return Mps(sandbox)


@pytest.fixture
def nobody():
    """The ordinary user `nobody`, which every machine has."""
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("no user nobody")


@pytest.fixture
def mps_pool(pool_of, mps):
    """A pool of one device with a running daemon. At the end all MPS control daemons must be gone."""
    pool = pool_of(1)
    assert pool.berth("status").code == 0
    yield pool
    mps.until_gone()


@pytest.fixture
def pool_with(hardware_of):
    """Makes a pool of these devices with a running daemon: pool_with([0, 1])."""

    def start(devices, configuration=""):
        pool = hardware_of(devices)
        directory = pool.sandbox.home / ".config/berth"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "berth.yaml").write_text(configuration)
        assert pool.berth("status").code == 0
        return pool

    return start


@pytest.fixture
def sleeper():
    """Starts processes that sleep, and ends them with the test."""
    started = []

    def start(*args, **options):
        started.append(subprocess.Popen([*args, "sleep", "1000"], **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def shared_machine(shared_machine_of, sandbox, machine):
    """A shared_machine with three GPUs of NVIDIA; see support/machines/occupied_gpus.py."""
    shared_machine = shared_machine_of()
    shared_machine.gpus = OccupiedGpus(sandbox, machine, 3)
    return shared_machine
