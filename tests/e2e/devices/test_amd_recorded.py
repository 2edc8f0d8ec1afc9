# SPDX-License-Identifier: Apache-2.0
"""Recorded AMD machines: the known facts of each device, and the links between them."""
import itertools
import json
import os
from collections import Counter

import pytest
from recorded_machine import Machine, data_file, place_for_many_files, unpack
from sandbox import Sandbox

# Device names come from this list, not from the installed one.
PCI_IDS = """\
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t6860  Vega 10 [Instinct MI25/MI25x2/V340/V320]
\t687f  Vega 10 XL/XT [Radeon RX Vega 56/64]
\t740f  Aldebaran/MI200 [Instinct MI210]
"""

MI210 = "kfd-topo-mi210-xgmi-pcie.tar.xz"
MI300 = "kfd-topo-mi300-cpx.tar.xz"
ONE_GPU = "kfd-topology-parsing.tar.xz"
VEGA10 = "amd-vega10-sysfs.tar.xz"

UNKNOWN_LOAD = dict.fromkeys(["memory_free", "utilization", "temperature", "power", "frequency"])


@pytest.fixture(scope="module")
def look():
    """Return what the probe reports on a recorded machine. Each machine is unpacked and probed
    once."""
    sandbox = Sandbox()
    sights = {}

    def run(name):
        if name not in sights:
            archive = data_file(os.environ["BERTH_SOURCE_ROOT"], f"machines/{name}")
            machine = Machine(sandbox, unpack(archive, directory / name))
            machine.write("/usr/share/misc/pci.ids", PCI_IDS)
            sights[name] = machine.look("amd")
        sight = sights[name]
        assert sight["problems"] == []
        assert all(device["error"] is None for device in sight["devices"])
        return sight

    with place_for_many_files() as directory:
        yield run
    sandbox.close()


def column(sight, key):
    return [device[key] for device in sight["devices"]]


def pairs(sight, *kinds):
    return {(one, other): lanes for one, other, kind, lanes in sight["links"] if kind in kinds}


def ids(*numbers):
    return [f"amd{number}" for number in numbers]


def test_eight_mi210(look):
    sight = look(MI210)
    assert column(sight, "id") == ids(*range(8))
    assert column(sight, "pci") == [
        f"0000:{bus}:00.0" for bus in ("63", "43", "03", "26", "e3", "c3", "83", "a3")
    ]
    assert column(sight, "uuid") == [
        "GPU-1901ead3a2ecd4a6",
        "GPU-51276ac12ce05db3",
        "GPU-93bb3629c01aea1c",
        "GPU-4344e78b718814cd",
        "GPU-aea834aa2723eb57",
        "GPU-a3781b5a10fcf54a",
        "GPU-f83f06efb714e6cf",
        "GPU-c34ec50444dd0a6d",
    ]
    assert column(sight, "numa") == [0, 0, 0, 0, 1, 1, 1, 1]
    for device in sight["devices"]:
        wanted = {
            **UNKNOWN_LOAD,
            "name": "AMD Instinct MI210",
            "cap": "9.0",
            "parent": None,
            "memory_total": None,  # the recording has no memory banks
            "kind": None,
            "health": None,
            "asleep": False,
            "nodes": [],
            "processes": [],
            "path": None,
        }
        assert {key: device[key] for key in wanted} == wanted


def test_links_of_eight_mi210(look):
    sight = look(MI210)
    near = {*itertools.combinations(ids(0, 1, 2, 3), 2), *itertools.combinations(ids(4, 5, 6, 7), 2)}
    far = {(one, other) for one in ids(0, 1, 2, 3) for other in ids(4, 5, 6, 7)}
    # There is one link between any two of the four GPUs: KFD reports 50 GB/s for the pair, and for
    # one link.
    assert pairs(sight, "xgmi") == dict.fromkeys(near, 1)
    assert set(pairs(sight, "node")) == near
    assert set(pairs(sight, "sys")) == far
    assert len(sight["links"]) == 2 * 12 + 16


def test_mi300_in_63_partitions(look):
    sight = look(MI300)
    assert column(sight, "id") == ids(*range(63))
    # Each GPU has eight partitions; the recording of the last GPU is incomplete.
    gpus = {
        f"{16404946649897475633:016x}": "0000:05:00.0",
        f"{2472748907779728154:016x}": "0000:27:00.0",
        f"{15565237874008425757:016x}": "0000:47:00.0",
        f"{12035684874187068538:016x}": "0000:65:00.0",
        f"{15304831566906821053:016x}": "0000:85:00.0",
        f"{13644590235195043050:016x}": "0000:a7:00.0",
        f"{13326531576914550249:016x}": "0000:c7:00.0",
        f"{15931900197903628278:016x}": "0000:e5:00.0",
    }
    assert column(sight, "parent") == [parent for parent in gpus for _ in range(8)][:63]
    assert column(sight, "pci") == [pci for pci in gpus.values() for _ in range(8)][:63]
    assert column(sight, "numa") == [0] * 32 + [1] * 31
    # All partitions report the id of their GPU, so this id identifies no partition.
    assert set(column(sight, "uuid")) == {None}
    assert set(column(sight, "cap")) == {"9.4"}
    assert set(column(sight, "name")) == {"AMD gfx942"}  # the list of names has no entry for it


def test_links_of_mi300_in_63_partitions(look):
    sight = look(MI300)
    kinds = Counter(kind for _, _, kind, _ in sight["links"])
    within = 7 * 28 + 21  # pairs within seven GPUs of eight partitions, and within one of seven
    on_numa_nodes = 32 * 31 // 2 + 31 * 30 // 2
    assert kinds == {
        "xgmi": 63 * 62 // 2,
        "psb": within,
        "node": on_numa_nodes - within,
        "sys": 32 * 31,
    }
    # KFD reports neither value for two GPUs. Within one GPU the bandwidth is that of the memory.
    assert set(pairs(sight, "xgmi").values()) == {0}
    assert ("amd0", "amd7") in pairs(sight, "psb")
    assert ("amd7", "amd8") in pairs(sight, "node")
    assert ("amd31", "amd32") in pairs(sight, "sys")


@pytest.mark.parametrize("name, topology", [(MI210, "mi210-xgmi-pcie"), (MI300, "mi300-cpx")])
def test_links_are_those_that_amds_own_plugin_reads(look, source_root, name, topology):
    known = json.loads(data_file(source_root, "topology/amd.json").read_text())["topologies"][topology]
    id_of = {int(node): f"amd{i}" for i, node in enumerate(sorted(known["nodes"], key=int))}
    wanted = {2: set(), 11: set()}
    for one, other, kind, _ in known["links"]:
        if one in id_of and other in id_of:
            wanted[kind].add((id_of[one], id_of[other]))
    sight = look(name)
    assert set(pairs(sight, "xgmi")) == wanted[11]
    assert wanted[2] <= set(pairs(sight, "psb", "node", "sys"))
    for node, facts in known["nodes"].items():
        device = sight["devices"][int(id_of[int(node)][3:])]
        unique_id = f"{int(facts['unique_id']):016x}"
        assert unique_id in (device["parent"], (device["uuid"] or "")[4:])
        assert device["pci"][5:10] == f"{facts['location_id'] >> 8 & 0xff:02x}:00"


def test_one_gpu_and_its_copy(look):
    """The second GPU is a copy of the first, made by hand with an id of its own. berth sees two
    GPUs, not partitions."""
    sight = look(ONE_GPU)
    assert column(sight, "id") == ["amd0", "amd1"]
    assert column(sight, "uuid") == ["GPU-c34ec50444dd0a6c", "GPU-c34ec50444dd0a6d"]
    for device in sight["devices"]:
        wanted = {
            **UNKNOWN_LOAD,
            "name": "AMD Instinct MI25/MI25x2/V340/V320",
            "pci": "0000:19:00.0",
            "parent": None,
            "cap": None,
            "kind": "discrete",
            "memory_total": 17163091968,
            "memory_free": 17163091968 - 14102528,
            "numa": 0,
        }
        assert {key: device[key] for key in wanted} == wanted
    assert sight["links"] == [["amd0", "amd1", "node", 0]]


def test_vega_10_without_kfd(look):
    sight = look(VEGA10)
    (device,) = sight["devices"]
    wanted = {
        "id": "amd0",
        "pci": "0000:09:00.0",
        "parent": None,
        "path": "/sys/class/drm/card0/device",
        "name": "AMD Radeon RX Vega 56/64",
        "uuid": "GPU-0123456789abcdef",
        "cpus": "0-15",
        "numa": None,
        "kind": "discrete",
        "cap": None,
        "memory_total": 8573157376,
        "memory_free": 8573157376 - 1490378752,
        "utilization": 40,
        "temperature": None,
        "power": None,
        "frequency": None,
        "health": "ok",
        "health_reason": None,
        "asleep": False,
        "nodes": [],
        "processes": [],
    }
    assert {key: device[key] for key in wanted} == wanted
    assert sight["links"] == []


def test_device_files_of_a_recorded_machine(recorded_machine):
    """The device files have the numbers that KFD reports. Only existing files are listed."""
    machine = recorded_machine(MI210)
    for file in ("kfd", "dri/renderD128", "dri/renderD131", "dri/renderD135", "dri/card0"):
        machine.write(f"/dev/{file}", "")
    nodes = column(machine.look("amd"), "nodes")
    wanted = [["/dev/kfd"] for _ in range(8)]
    for index in (0, 3, 7):
        wanted[index].append(f"/dev/dri/renderD{128 + index}")
    assert nodes == wanted


def devices(machine, *arguments):
    """Run berth devices on the machine, with the real probe."""
    return machine.sandbox.run(["berth", "devices", *arguments], env={"BERTH_SYSROOT": machine.root})


def test_the_probe_says_the_same(recorded_machine):
    machine = recorded_machine(MI210)
    machine.write("/usr/share/misc/pci.ids", PCI_IDS)
    sight = machine.look("amd")
    done = devices(machine, "--json")
    assert (done.code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["problems"] == []
    by_id = {device["id"]: device for device in document["devices"]}
    assert [device["pci"] for device in document["devices"]] == sorted(column(sight, "pci"))
    for device in sight["devices"]:
        same = ("pci", "uuid", "name", "parent", "cap", "numa", "memory_total", "health", "nodes")
        assert {key: by_id[device["id"]][key] for key in same} == {key: device[key] for key in same}
    found = {(frozenset(link["between"]), link["kind"], link["lanes"]) for link in document["links"]}
    assert found == {
        (frozenset((one, other)), kind, lanes or None) for one, other, kind, lanes in sight["links"]
    }


def test_a_node_that_hangs_costs_itself(recorded_machine):
    machine = recorded_machine(MI210)
    properties = machine.root / "sys/class/kfd/kfd/topology/nodes/4/properties"
    properties.unlink()
    os.mkfifo(properties)
    done = devices(machine, "--json", "--deadline", "3s")
    assert done.code == 0
    document = json.loads(done.stdout)
    (problem,) = document["problems"]
    assert problem["backend"] == "amd" and problem["message"].startswith("amd2: ")
    assert len(document["devices"]) == 8
    for device in document["devices"]:
        assert device["health"] == ("sick" if device["id"] == "amd2" else None)
        assert (device["pci"] is None) == (device["id"] == "amd2")


def test_63_partitions_are_read_at_once(look):
    """The probe reads thousands of small files. The limit is far above the usual time, for slow
    machines."""
    assert look(MI300)["cpu_nanoseconds"] < 1_000_000_000
