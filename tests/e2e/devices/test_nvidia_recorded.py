# SPDX-License-Identifier: Apache-2.0
"""NVIDIA machines, described by the NVML double with recorded values."""
import itertools
import json
import os
from collections import Counter

import nvml_machine
import pytest
from recorded_machine import data_file
from sandbox import Sandbox

GIB = 1 << 30
HOSTS_OF_EIGHT = (0, 0, 0, 0, 1, 1, 1, 1)

# name, memory, free memory, capability, milliwatts, degrees, megahertz, addresses, first UUID,
# NUMA nodes, NVLink lanes of every pair.
PROFILES = {
    "a100": (
        "NVIDIA A100-SXM4-40GB",
        40 * GIB,
        42338353152,
        "8.0",
        72000,
        33,
        210,
        ("07", "0f", "47", "4e", "87", "90", "b7", "bd"),
        "GPU-12345678-1234-1234-1234-123456780000",
        HOSTS_OF_EIGHT,
        12,
    ),
    "b200": (
        "NVIDIA B200",
        192 * GIB,
        205084688384,
        "10.0",
        130000,
        35,
        345,
        ("1a", "1b", "4a", "4b", "8a", "8b", "ca", "cb"),
        "GPU-b2000000-0000-0000-0000-000000000000",
        HOSTS_OF_EIGHT,
        0,
    ),
    "gb200": (
        "NVIDIA GB200",
        192 * GIB,
        205084688384,
        "10.0",
        145000,
        36,
        345,
        ("0a", "0b", "4a", "4b", "8a", "8b", "ca", "cb"),
        "GPU-b200b200-0000-0000-0000-000000000000",
        (0, 0, 1, 1, 2, 2, 3, 3),
        18,
    ),
    "gb300": (
        "NVIDIA GB300 NVL",
        288 * GIB,
        307627032576,
        "10.0",
        175000,
        38,
        345,
        ("0a", "0b", "4a", "4b", "8a", "8b", "ca", "cb"),
        "GPU-b300b300-0000-0000-0000-000000000000",
        (0, 0, 1, 1, 2, 2, 3, 3),
        18,
    ),
    "h100": (
        "NVIDIA H100 80GB HBM3",
        80 * GIB,
        84825604096,
        "9.0",
        95000,
        34,
        345,
        ("1a", "1b", "4a", "4b", "8a", "8b", "ca", "cb"),
        "GPU-01000100-0000-0000-0000-000000000000",
        HOSTS_OF_EIGHT,
        18,
    ),
    "l40s": (
        "NVIDIA L40S",
        48 * GIB,
        51002736640,
        "8.9",
        45000,
        32,
        210,
        # NVML's order differs from the order of the addresses here.
        ("17", "31", "b1", "ca", "18", "32", "b2", "cb"),
        "GPU-14050000-0000-0000-0000-000000000000",
        (0, 0, 1, 1, 0, 0, 1, 1),
        0,
    ),
    "t4": (
        "NVIDIA T4",
        16 * GIB,
        16865296384,
        "7.5",
        12000,
        30,
        300,
        ("3b", "86", "af", "d8"),
        "GPU-00000074-0000-0000-0000-000000000000",
        (0, 0, 0, 0),
        0,
    ),
}


@pytest.fixture(scope="module")
def look():
    """Return what the probe reports on a machine of the data folder."""
    sandbox = Sandbox()
    sights = {}

    def run(name):
        if name not in sights:
            file = data_file(os.environ["BERTH_SOURCE_ROOT"], f"machines/{name}")
            machine = nvml_machine.read(file)
            root = sandbox.directory / file.stem
            machine.write(sandbox.directory / "machine")
            machine.write_sysfs(root)
            env = machine.environment(sandbox.directory / "machine")
            done = sandbox.run([os.environ["DUMP_SIGHT"], "nvidia"], env=env | {"BERTH_SYSROOT": root})
            assert (done.code, done.stderr) == (0, "")
            sights[name] = json.loads(done.stdout)
        sight = sights[name]
        assert (sight["error"], sight["problems"]) == (None, [])
        assert all(device["error"] is None for device in sight["devices"])
        return sight

    yield run
    sandbox.close()


def column(sight, key):
    return [device[key] for device in sight["devices"]]


def lanes(sight):
    return {(one, other): count for one, other, kind, count in sight["links"] if kind == "nvlink"}


def paths(sight):
    return {(one, other): kind for one, other, kind, _ in sight["links"] if kind != "nvlink"}


def all_pairs(ids):
    return itertools.combinations(ids, 2)


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_profile_reads_right(look, profile):
    name, total, free, cap, power, degrees, clock, buses, uuid, numa, links = PROFILES[profile]
    sight = look(f"nvidia-profiles/{profile}.yaml")
    ids = [f"nvidia{i}" for i in range(len(buses))]
    assert column(sight, "id") == ids
    assert column(sight, "pci") == [f"0000:{bus}:00.0" for bus in buses]
    assert column(sight, "numa") == list(numa)
    assert column(sight, "minor") == list(range(len(buses)))
    assert column(sight, "uuid")[0] == uuid
    assert len(set(column(sight, "uuid"))) == len(buses)
    for key, wanted in {
        "name": name,
        "memory_total": total,
        "memory_free": free,
        "cap": cap,
        "power": power,
        "temperature": degrees * 1000,
        "frequency": clock * 1000000,
        "utilization": 0,
        "kind": "discrete",
        "health": "ok",
        "health_reason": None,
        "partitioned": False,
        "asleep": False,
        "parent": None,
        "processes": [],
    }.items():
        assert column(sight, key) == [wanted] * len(buses), key
    assert lanes(sight) == ({pair: links for pair in all_pairs(ids)} if links else {})
    near = dict(zip(ids, numa))
    assert paths(sight) == {
        (one, other): "phb" if near[one] == near[other] else "sys" for one, other in all_pairs(ids)
    }


def test_sixteen_v100_behind_nvswitches(look):
    sight = look("nvidiaDGX2.v2.xml")
    ids = [f"nvidia{i}" for i in range(16)]
    assert column(sight, "id") == ids
    assert column(sight, "name") == ["Tesla V100-SXM3-32GB-H"] * 16
    assert column(sight, "pci") == [
        f"0000:{bus}:00.0"
        for bus in "34 36 39 3b 57 59 5c 5e b7 b9 bc be e0 e2 e5 e7".split()
    ]
    assert column(sight, "uuid")[:2] == [
        "GPU-d3977428-7a30-086b-2e20-5c1eeed647c6",
        "GPU-5bfda7ef-6aec-a775-5ae1-a1c3dcaef094",
    ]
    assert column(sight, "memory_total") == [None] * 16  # the value was not recorded
    assert column(sight, "kind") == [None] * 16
    # Each GPU has six lanes to six switches: NV6 between all GPUs.
    assert lanes(sight) == {pair: 6 for pair in all_pairs(ids)}
    kinds = paths(sight)
    assert Counter(kinds.values()) == {"pix": 8, "pxb": 16, "node": 32, "sys": 64}
    assert [kinds["nvidia0", f"nvidia{i}"] for i in (1, 2, 3, 4, 8)] == ["pix", "pxb", "pxb", "node", "sys"]


def test_p100_of_power8(look):
    sight = look("power8gpudistances.v2.xml")
    assert column(sight, "name") == ["Tesla P100-SXM2-16GB"] * 4
    assert column(sight, "pci") == ["0002:01:00.0", "0003:01:00.0", "000a:01:00.0", "000b:01:00.0"]
    assert column(sight, "uuid")[0] == "GPU-77bf6b9a-6906-5a93-d28b-b77d2c23d1d2"
    assert column(sight, "memory_total") == [16671616 << 10] * 4
    # Two of four lanes go to the CPU and link no GPUs.
    assert lanes(sight) == {("nvidia0", "nvidia1"): 2, ("nvidia2", "nvidia3"): 2}
    assert paths(sight) == {
        (one, other): "node" if {one, other} in ({"nvidia0", "nvidia1"}, {"nvidia2", "nvidia3"}) else "sys"
        for one, other in all_pairs(["nvidia0", "nvidia1", "nvidia2", "nvidia3"])
    }
