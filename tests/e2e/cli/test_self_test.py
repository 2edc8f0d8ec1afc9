# SPDX-License-Identifier: Apache-2.0
"""berth doctor --self-test with the doubles of NVML and CUDA."""
import json
import os
import threading
from pathlib import Path

import nvml_machine
import pytest
import wire
from lease_history import configure
from waiting import until

GIB = 1 << 30
TESTS = ["lease", "masks", "process", "assignment", "memory", "release"]


def uuid(index):
    return f"GPU-{index:08x}-0000-0000-0000-000000000000"


class Gpus:
    """A machine with NVIDIA GPUs, as NVML and CUDA show them. `lists` makes NVML's double list the processes of leases,
    as a driver does once they have a context."""

    def __init__(self, sandbox, machine, pool, count):
        self.pool = pool
        self.count = count
        self.nvml, self.cuda = sandbox.directory / "nvml", sandbox.directory / "cuda"
        self.addresses = []
        for index in range(count):
            card = machine.add_pci(0x40 + index, 0, 0x10DE, 0x1EB8, "nvidia", 0x030200)
            self.addresses.append(card.pci)
        library = Path(os.environ["BERTH_BUILD_ROOT"], "tests/libcuda.so.1")
        sandbox.environment.update(nvml_machine.Machine.environment(self.nvml))
        sandbox.environment.update({"BERTH_CUDA": str(library), "CUDA_DOUBLE": str(self.cuda)})
        self.show()
        self.write_cuda(self.addresses)

    def show(self, used=None):
        """Writes NVML's file. `used` has pids by index of the GPU."""
        made = nvml_machine.Machine()
        for index, address in enumerate(self.addresses):
            gpu = made.gpu(name="NVIDIA T4", uuid=uuid(index), pci=(address, "0x1eb810de", "0x12a210de"), minor=index)
            gpu.say(memory=(16 * GIB, 16 * GIB, 0), utilization=(0, 0))
            for pid in (used or {}).get(index, ()):
                gpu.say(memory=(16 * GIB, 15 * GIB, 0)).process("compute", pid, GIB)
        made.write(self.nvml)

    def write_cuda(self, addresses):
        self.cuda.write_text(
            "".join(f"gpu\nuuid {uuid(i)}\npci {address}\nname NVIDIA T4\n" for i, address in enumerate(addresses))
        )

    def follow(self, ended):
        """Shows the holders of leases until the event is set."""
        shown = {}
        while not ended.wait(0.05):
            with wire.connect(str(self.pool.socket)) as client:
                leases = client.look()["leases"]
            used = {}
            for lease in leases:
                for name in lease["devices"]:
                    used.setdefault(int(name[len("nvidia") :]), []).append(lease["pid"])
            if used != shown:
                self.show(used)
                shown = used


@pytest.fixture
def gpus_of(sandbox, machine, machine_pool):
    return lambda count: Gpus(sandbox, machine, machine_pool, count)


def self_test(pool, timeout=60):
    """Returns the states and texts of the lines by test and device."""
    done = pool.berth("doctor", "--self-test", "--json", timeout=timeout)
    document = json.loads(done.stdout)
    assert done.stderr == ""
    failed = any(line["state"] == "failed" for line in document["checks"])
    assert (done.code, document["good"]) == ((1, False) if failed else (0, True))
    found = {}
    for line in document["checks"]:
        device, _, words = line["what"].partition(": ")
        found[line["check"], device] = (line["state"], words)
    return found


def test_all_passes(gpus_of, machine_pool):
    """A driver that behaves passes every test on every device, and nothing is left of it."""
    gpus = gpus_of(2)
    assert machine_pool.berth("status").code == 0
    ended = threading.Event()
    driver = threading.Thread(target=gpus.follow, args=(ended,))
    driver.start()
    try:
        found = self_test(machine_pool)
    finally:
        ended.set()
        driver.join()
    assert {key: state for key, (state, _) in found.items()} == {
        (test, f"nvidia{index}"): "passed" for index in range(2) for test in TESTS
    }, found
    assert found["masks", "nvidia0"][1] == "1 other device is hidden"
    assert found["memory", "nvidia1"][1] == "a context uses 1 GiB"
    with wire.connect(str(machine_pool.socket)) as client:
        assert client.look()["leases"] == []


def test_wrong_device(gpus_of, machine_pool):
    """CUDA numbers the devices otherwise than the masks assume: the leased device is not the one that is shown."""
    gpus = gpus_of(2)
    gpus.write_cuda(reversed(gpus.addresses))
    found = self_test(machine_pool)
    assert found["masks", "nvidia0"] == ("failed", "the vendor's library does not show it")
    assert found["release", "nvidia0"][0] == "passed"


def test_process_that_is_not_listed(gpus_of, machine_pool):
    """The driver lists no process, as in a container with its own pid namespace; the memory does not change."""
    gpus_of(1)
    found = self_test(machine_pool)
    assert found["masks", "nvidia0"] == ("not possible", "there is no other device to hide")
    assert found["process", "nvidia0"][0] == "failed"
    assert found["assignment", "nvidia0"][0] == "not possible"
    assert found["memory", "nvidia0"] == ("failed", "0 B are used with a context, 0 B without")
    assert found["release", "nvidia0"][0] == "passed"


def test_no_library(gpus_of, machine_pool, sandbox):
    """Without CUDA, the tests that need a context are not possible; a lease and its end are."""
    gpus_of(1)
    del sandbox.environment["BERTH_CUDA"]
    found = self_test(machine_pool)
    states = {test: found[test, "nvidia0"][0] for test in TESTS}
    assert states == {**dict.fromkeys(TESTS, "not possible"), "lease": "passed", "release": "passed"}
    assert "libcuda.so.1" in found["masks", "nvidia0"][1]


def test_device_in_use(gpus_of, machine_pool):
    gpus_of(1)
    holder = machine_pool.hold()
    found = self_test(machine_pool)
    assert found == {("lease", "nvidia0"): ("not possible", "it is not free")}
    machine_pool.let_go(holder)


def test_masks_of_the_shell(gpus_of, machine_pool, sandbox):
    """Devices that the shell's masks hide, such as those of other Slurm jobs, are left alone."""
    gpus_of(2)
    sandbox.environment["CUDA_VISIBLE_DEVICES"] = "1"
    found = self_test(machine_pool)
    assert found["lease", "nvidia0"] == ("not possible", "this shell's masks hide it")
    assert found["lease", "nvidia1"][0] == "passed"
    assert ("release", "nvidia0") not in found


def test_within_a_lease(gpus_of, machine_pool):
    gpus_of(2)
    done = machine_pool.berth("run", "--device", "nvidia0", "--", "berth", "doctor", "--self-test")
    assert done.code == 0
    assert done.stdout.split("  ") == ["not possible", "lease", "this shell runs in lease 1: use another shell\n"]


def test_command_that_fails(gpus_of, machine_pool):
    """The holder's own message is the result."""
    gpus_of(1)
    configure(machine_pool, "reserved: {nvidia0: {}}\n")
    found = self_test(machine_pool)
    state, words = found["lease", "nvidia0"]
    assert state == "failed" and words.startswith("berth: run: ")


def test_device_that_is_not_granted(gpus_of, machine_pool):
    """A claim that is refused between the check and the lease, as when another user is faster, is no fault."""
    gpus_of(2)
    configure(machine_pool, f"limits: {{users: {{{os.getuid()}: 1}}}}\n")
    holder = machine_pool.hold("--device", "nvidia0")
    found = self_test(machine_pool)
    state, words = found["lease", "nvidia1"]
    assert state == "not possible" and words.startswith("berth: run: ")
    assert ("release", "nvidia1") not in found
    machine_pool.let_go(holder)


@pytest.mark.parametrize("fixture, words", [("sandbox", "no GPU here"), ("pool", "no GPU here: the devices come")])
def test_no_gpu(fixture, words, request):
    where = request.getfixturevalue(fixture)
    sandbox = getattr(where, "sandbox", where)
    done = sandbox.run(["berth", "doctor", "--self-test"])
    lines = done.stdout.splitlines()
    assert done.code == 0
    assert [line.split()[2] for line in lines] == TESTS
    assert all(line.startswith("not possible  ") and words in line for line in lines)


def test_interrupted(gpus_of, machine_pool):
    """When the doctor is killed, its holder ends and frees the device."""
    gpus_of(1)
    with machine_pool.start("doctor", "--self-test") as doctor:
        with wire.connect(str(until_socket(machine_pool))) as client:
            until(lambda: client.look()["leases"], "a lease")
            doctor.kill(9)
            doctor.wait()
            until(lambda: not client.look()["leases"], "a free device")


def until_socket(pool):
    until(pool.socket.exists, "a socket")
    return pool.socket
