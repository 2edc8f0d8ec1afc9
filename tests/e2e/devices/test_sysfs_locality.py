# SPDX-License-Identifier: Apache-2.0
"""The location of PCI devices: berth's results from sysfs, compared with hwloc's from the same
files.

hwloc builds the tree of bridges from the bus numbers in their configuration space, and the
location of a host bridge from the mask in local_cpus. berth uses paths, numa_node and
local_cpulist.
"""
import json
import os
from itertools import combinations

import pytest

from recorded_machine import Machine


@pytest.fixture
def read_twice(sandbox):
    """Read a machine with both; see support/hardware/locality_oracle.c."""

    def read(root):
        oracle = os.environ.get("LOCALITY_ORACLE")
        if oracle is None:
            pytest.skip("libhwloc-dev is not installed")
        done = sandbox.run([oracle], env={"BERTH_SYSROOT": root, "HWLOC_FSROOT": root})
        assert (done.code, done.stderr) == (0, "")
        both = json.loads(done.stdout)
        devices = {device["pci"]: device for device in both["devices"]}
        pairs = {(pair["one"], pair["other"]): pair for pair in both["pairs"]}
        assert set(pairs) == set(combinations(devices, 2))
        return devices, pairs

    return read


def numbers(ranges):
    """Return 0-3,8 as a set."""
    found = set()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def kind_by_hwloc(pair, devices):
    """Return the kind of path between a pair in hwloc's tree."""
    one, other = (devices[pair[name]] for name in ("one", "other"))
    if one["pci"].rpartition(".")[0] == other["pci"].rpartition(".")[0]:
        return "psb"
    if pair["hwloc_common"] == "bridge":
        return "pix" if max(pair["hwloc_bridges"]) <= 1 else "pxb"
    if pair["hwloc_common"] == "host":
        return "phb"
    return "node" if one["hwloc_nodes"] == other["hwloc_nodes"] else "sys"


def check_pairs(devices, pairs):
    for names, pair in pairs.items():
        assert (names, pair["kind"]) == (names, kind_by_hwloc(pair, devices))


def test_a_recorded_machine(recorded_machine, read_twice):
    machine = recorded_machine("2pa-pcidomain32bits.tar.bz2")
    places = sorted((machine.root / "sys/bus/pci/devices").iterdir())
    assert len(places) == 9
    # A kernel writes both files from one mask. In this recording the mask was changed later and
    # differs from the list, so that hwloc has something to report.
    for place in places:
        mask = int((place / "local_cpus").read_text().replace(",", ""), 16)
        cpus = [str(cpu) for cpu in range(64) if mask >> cpu & 1]
        (place / "local_cpulist").write_text(",".join(cpus) + "\n")

    devices, pairs = read_twice(machine.root)
    # Debian's hwloc omits domains of more than 16 bits.
    assert set(devices) >= {place.name for place in places if len(place.name) == 12}
    for device in devices.values():
        assert numbers(device["cpus"]) == numbers(device["hwloc_cpus"])
        assert device["numa"] is None  # it says -1
        assert device["hwloc_nodes"] == "0"
    check_pairs(devices, pairs)
    assert pairs["0000:00:02.0", "0000:00:03.0"]["kind"] == "phb"
    assert pairs["0000:00:01.0", "0000:00:01.3"]["kind"] == "psb"


BRIDGE, DISPLAY = 0x060400, 0x030000


class TwoSockets:
    """A made-up machine of two sockets with four CPUs each."""

    CPUS = {0: range(0, 4), 1: range(4, 8)}

    def __init__(self, machine):
        self.machine = machine
        self.write("/sys/devices/system/node/online", "0-1")
        for name in ("online", "possible", "present"):
            self.write(f"/sys/devices/system/cpu/{name}", "0-7")
        for node, cpus in self.CPUS.items():
            self.write(f"/sys/devices/system/node/node{node}/cpumap", self.mask(cpus))
            self.write(f"/sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal: 1048576 kB")
            for cpu in cpus:
                topology = f"/sys/devices/system/cpu/cpu{cpu}/topology"
                self.write(f"{topology}/physical_package_id", str(node))
                self.write(f"{topology}/core_id", str(cpu))
                self.write(f"{topology}/package_cpus", self.mask(cpus))
                self.write(f"{topology}/core_cpus", self.mask([cpu]))
        self.write("/proc/cpuinfo", "")

    def write(self, path, value):
        self.machine.write(path, value + "\n")

    @staticmethod
    def mask(cpus):
        return f"{sum(1 << cpu for cpu in cpus):08x}"

    def add(self, node, path, class_code, buses=(0, 0)):
        """Add a PCI device. For a bridge, `buses` has the first and the last bus behind it."""
        address = path.rpartition("/")[2]
        directory = f"/sys/devices/{path}"
        configuration = bytearray(64)
        configuration[0:4] = bytes.fromhex("de10b020")
        configuration[9:12] = class_code.to_bytes(3, "little")
        configuration[14] = class_code == BRIDGE
        if class_code == BRIDGE:
            configuration[0x18:0x1B] = (int(address.split(":")[1], 16), *buses)
        cpus = self.CPUS[node]
        self.write(f"{directory}/numa_node", str(node))
        self.write(f"{directory}/local_cpulist", f"{cpus[0]}-{cpus[-1]}")
        self.write(f"{directory}/local_cpus", self.mask(cpus))
        self.write(f"{directory}/class", f"{class_code:#08x}")
        self.write(f"{directory}/vendor", "0x10de")
        self.write(f"{directory}/device", "0x20b0")
        (self.machine.root / directory[1:] / "config").write_bytes(configuration)
        link = self.machine.root / "sys/bus/pci/devices" / address
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../devices/{path}")


@pytest.fixture
def two_sockets(sandbox):
    root = sandbox.directory / "machine"
    root.mkdir()
    machine = TwoSockets(Machine(sandbox, root))
    upper = "pci0000:00/0000:00:01.0/0000:01:00.0"
    lower = f"{upper}/0000:02:02.0/0000:05:00.0"
    # A switch with two GPUs, and below it another switch with two more.
    machine.add(0, "pci0000:00/0000:00:01.0", BRIDGE, (1, 8))
    machine.add(0, upper, BRIDGE, (2, 8))
    machine.add(0, f"{upper}/0000:02:00.0", BRIDGE, (3, 3))
    machine.add(0, f"{upper}/0000:02:00.0/0000:03:00.0", DISPLAY)
    machine.add(0, f"{upper}/0000:02:01.0", BRIDGE, (4, 4))
    machine.add(0, f"{upper}/0000:02:01.0/0000:04:00.0", DISPLAY)
    machine.add(0, f"{upper}/0000:02:02.0", BRIDGE, (5, 8))
    machine.add(0, lower, BRIDGE, (6, 8))
    machine.add(0, f"{lower}/0000:06:00.0", BRIDGE, (7, 7))
    machine.add(0, f"{lower}/0000:06:00.0/0000:07:00.0", DISPLAY)
    machine.add(0, f"{lower}/0000:06:01.0", BRIDGE, (8, 8))
    machine.add(0, f"{lower}/0000:06:01.0/0000:08:00.0", DISPLAY)
    # One GPU on the chip, and one with two functions behind its own port.
    machine.add(0, "pci0000:00/0000:00:02.0", DISPLAY)
    machine.add(0, "pci0000:00/0000:00:03.0", BRIDGE, (0x10, 0x10))
    machine.add(0, "pci0000:00/0000:00:03.0/0000:10:00.0", DISPLAY)
    machine.add(0, "pci0000:00/0000:00:03.0/0000:10:00.1", DISPLAY)
    # Other host bridges: on the same socket, on the other one, and in a separate domain there.
    machine.add(0, "pci0000:40/0000:40:01.0", BRIDGE, (0x41, 0x41))
    machine.add(0, "pci0000:40/0000:40:01.0/0000:41:00.0", DISPLAY)
    machine.add(1, "pci0000:80/0000:80:01.0", BRIDGE, (0x81, 0x81))
    machine.add(1, "pci0000:80/0000:80:01.0/0000:81:00.0", DISPLAY)
    machine.add(1, "pci0001:00/0001:00:01.0", BRIDGE, (1, 1))
    machine.add(1, "pci0001:00/0001:00:01.0/0001:01:00.0", DISPLAY)
    return root


def test_two_sockets(two_sockets, read_twice):
    devices, pairs = read_twice(two_sockets)
    assert len(devices) == 10
    for device in devices.values():
        assert device["hwloc_nodes"] == str(device["numa"])
        assert device["hwloc_cpus"] == device["cpus"]
    check_pairs(devices, pairs)
    kinds = {(one, other): pair["kind"] for (one, other), pair in pairs.items()}
    assert kinds["0000:03:00.0", "0000:04:00.0"] == "pix"
    assert kinds["0000:07:00.0", "0000:08:00.0"] == "pix"
    assert kinds["0000:03:00.0", "0000:07:00.0"] == "pxb"
    assert kinds["0000:10:00.0", "0000:10:00.1"] == "psb"
    assert set(kinds.values()) == {"psb", "pix", "pxb", "phb", "node", "sys"}
