# SPDX-License-Identifier: Apache-2.0
"""The policy topology: it chooses the same sets as the vendors' own allocators, in plans and in
pools."""
import json

import pytest
import vendor_cases
from recorded_machine import data_file, place_for_many_files, unpack


def ids(vendor, numbers):
    return [f"{vendor}{number}" for number in numbers]


@pytest.fixture
def machine_file(source_root):
    return lambda name: source_root / f"tests/data/topology/{name}.yaml"


@pytest.fixture
def plan(sandbox):
    """Return the document of a plan on an inventory."""

    def run(inventory, *arguments):
        done = sandbox.run(["berth", "plan", "--inventory", inventory, "--policy", "topology",
                            "--json", *arguments])
        assert done.stderr == ""
        return json.loads(done.stdout)

    return run


# ---- The vendors' choices ----

# Machine, number of devices, free devices (None: all), required devices, and the answer.
CASES = [
    ("dgx1-volta", 2, [0, 2, 4, 5], [], [4, 5]),
    ("dgx1-volta", 2, [0, 1, 3], [], [0, 3]),
    ("dgx1-volta", 1, None, [4], [4]),
    ("dgx1-volta", 4, None, [4], [4, 5, 6, 7]),
    ("dgx1-volta", 4, None, [0, 2, 4, 6], [0, 2, 4, 6]),
    ("dgx1-volta", 1, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], []),
    ("dgx1-volta", 2, None, [], [0, 3]),
    ("dgx1-volta", 2, [1, 2, 4, 5, 6, 7], [], [1, 2]),
    ("dgx1-volta", 2, [4, 5, 6, 7], [], [4, 7]),
    ("dgx1-volta", 2, [5, 6], [], [5, 6]),
    ("dgx1-volta", 8, None, [], [0, 1, 2, 3, 4, 5, 6, 7]),
    ("dgx1-pascal", 4, None, [], [0, 1, 2, 3]),
    ("dgx1-pascal", 4, [4, 5, 6, 7], [], [4, 5, 6, 7]),
    ("dgx1-pascal", 1, [2, 3, 7], [], [2]),
    ("rtx8000", 1, None, [], [0]),
    ("rtx8000", 1, [3], [], [3]),
    ("rtx8000", 1, [], [], []),
    ("mi210", 1, None, [], [0]),
    ("mi210", 3, None, [], [0, 1, 2]),
    ("mi210", 5, None, [], [0, 1, 2, 3, 4]),
    ("mi210", 3, [2, 3, 4, 5, 6, 7], [], [4, 5, 6]),
    ("partitions", 1, None, [], [8]),
    ("partitions", 3, None, [], [8, 9, 10]),
    ("partitions", 4, None, [], [0, 1, 2, 3]),
    ("partitions", 2, [0, 1, 2, 3, 4, 5, 10], [], [4, 5]),
    ("partitions", 2, None, [3], [0, 3]),
]


@pytest.mark.parametrize("machine, size, free, required, expected", CASES)
def test_restated_cases(plan, machine_file, machine, size, free, required, expected):
    vendor = "nvidia" if machine.startswith(("dgx", "rtx")) else "amd"
    text = machine_file(machine).read_text()
    count = text.count("index:")
    arguments = ["-n", str(size)]
    if free is not None:
        busy = [number for number in range(count) if number not in free]
        arguments += ["--busy", ",".join(ids(vendor, busy))]
    if required:
        arguments += ["--must", ",".join(ids(vendor, required))]
    assert plan(machine_file(machine), *arguments)["devices"] == ids(vendor, expected)


@pytest.mark.parametrize("vendor", ["nvidia", "amd"])
def test_every_case_of_the_vendor(sandbox, plan, source_root, vendor):
    machines, cases = vendor_cases.READERS[vendor](data_file(source_root, f"topology/{vendor}.json"))
    assert len(cases) > 10
    for case in cases:
        inventory = sandbox.directory / f"{case.machine}.yaml"
        inventory.write_text(machines[case.machine])
        answer = plan(inventory, *vendor_cases.plan_arguments(case, machines[case.machine]))
        assert vendor_cases.is_matched(case, answer), (case.name, answer)


def test_recorded_partitions(sandbox, source_root):
    """Eight MI300X in 63 partitions, as the kernel reports them: the last GPU lacks one."""
    _, cases = vendor_cases.read_amd(data_file(source_root, "topology/amd.json"))
    archive = data_file(source_root, "machines/kfd-topo-mi300-cpx.tar.xz")
    everything = ids("amd", range(63))
    with place_for_many_files() as directory:
        environment = {"BERTH_SYSROOT": unpack(archive, directory / "mi300")}
        for case in cases:
            if case.machine != "mi300-cpx":
                continue
            busy = [device for device in everything if device not in case.free]
            arguments = ["--busy", ",".join(busy)] if busy else []
            done = sandbox.run(["berth", "plan", "--policy", "topology", "--json", "-n",
                                str(case.size), *arguments], env=environment)
            assert vendor_cases.is_matched(case, json.loads(done.stdout)), (case.name, done)


def test_recorded_hives(sandbox, source_root):
    """Eight MI210: slots are ordered by PCI address, so the sets equal the vendor's except for
    their names."""
    archive = data_file(source_root, "machines/kfd-topo-mi210-xgmi-pcie.tar.xz")
    with place_for_many_files() as directory:
        environment = {"BERTH_SYSROOT": unpack(archive, directory / "mi210")}

        def devices(*arguments):
            done = sandbox.run(["berth", "plan", "--policy", "topology", "--json", *arguments],
                               env=environment)
            return json.loads(done.stdout)

        assert set(devices("-n", "4")["devices"]) == set(ids("amd", range(4)))
        assert devices("-n", "3")["score"] == 120
        five = devices("-n", "5")
        assert (five["score"], len(five["devices"])) == (6 * 40 + 4 * 80, 5)
        assert set(devices("-n", "3", "--busy", "amd0,amd1")["devices"]) < set(ids("amd", range(4, 8)))


# ---- Texts ----


@pytest.mark.parametrize(
    "machine, arguments, score, why",
    [
        ("rtx8000", ["-n", "2"], 200,
         "4 of 4 devices fit and are free; topology takes the best-connected devices: "
         "connected by 2 NVLink lanes; best of 4 free devices"),
        ("rtx8000", ["-n", "2", "--busy", "nvidia2,nvidia3"], 20,
         "2 of 4 devices fit and are free: 2 are busy; topology takes the best-connected devices: "
         "connected within one NUMA node"),
        ("rtx8000", ["-n", "3"], 230,
         "4 of 4 devices fit and are free; topology takes the best-connected devices: of 3 pairs "
         "1 connected by NVLink (2 lanes), 1 within one NUMA node, 1 across NUMA nodes; best of 4 free "
         "devices"),
        ("dgx1-pascal", ["-n", "4"], 820,
         "8 of 8 devices fit and are free; topology takes the best-connected devices: "
         "every pair connected by 1 NVLink lane; best of 8 free devices"),
        ("mi210", ["-n", "3"], 120,
         "8 of 8 devices fit and are free; topology takes the best-connected devices: "
         "every pair connected by 1 XGMI lane; best of 8 free devices"),
        ("partitions", [], 0,
         "11 of 11 devices fit and are free; topology takes the best-connected devices: "
         "from the GPU with the fewest free devices"),
    ],
)
def test_why(plan, machine_file, machine, arguments, score, why):
    document = plan(machine_file(machine), *arguments)
    assert (document["policy"], document["score"], document["why"]) == ("topology", score, why)


def test_what_is_required_and_what_is_avoided(plan, machine_file):
    volta = machine_file("dgx1-volta")
    assert plan(volta, "-n", "2", "--must", "nvidia6")["devices"] == ids("nvidia", [5, 6])
    assert plan(volta, "-n", "2", "--avoid", "nvidia0")["devices"] == ids("nvidia", [2, 3])
    avoid = plan(volta, "-n", "4", "--avoid", "nvidia0,nvidia1,nvidia2,nvidia3,nvidia4")
    assert set(avoid["devices"]) > {"nvidia5", "nvidia6", "nvidia7"}


def test_many_devices_are_said_to_be_unproven(sandbox, plan):
    """A ring with chords: no set of four is as good as the bound for four neighbours."""
    inventory = sandbox.directory / "ring.yaml"
    devices = [{"vendor": "nvidia", "index": index} for index in range(23)]
    links = [{"between": ids("nvidia", [one, other]), "kind": "nvlink", "lanes": 1}
             for other in range(23) for one in range(other) if (other - one) % 23 in (1, 5, 18, 22)]
    inventory.write_text(vendor_cases.as_inventory(devices, links))
    document = plan(inventory, "-n", "4")
    assert document["why"].endswith("; best found of 23 free devices (not proven best)")
    assert document == plan(inventory, "-n", "4")


def test_no_links(plan, sandbox):
    inventory = sandbox.directory / "none.yaml"
    inventory.write_text("devices:\n" + "".join(
        f"  - {{vendor: nvidia, index: {index}}}\n" for index in range(4)))
    document = plan(inventory, "-n", "2", "--busy", "nvidia0")
    assert document["devices"] == ids("nvidia", [1, 2])
    assert document["why"].endswith(": the lowest slots, because no links are known")


# ---- In pools ----


def take(pool, *options):
    """Reserve devices and return them."""
    done = pool.berth("reserve", "--for", "1h", "--policy", "topology", *options)
    assert done.code == 0, done
    document = json.loads(pool.berth("status", "--json").stdout)
    leases = {str(lease["id"]): lease for lease in document["leases"]}
    return [device["id"] for device in leases[done.stdout.strip()]["devices"]]


def test_leases_of_an_inventory(pool_of, machine_file):
    pool = pool_of(machine_file("dgx1-volta").read_text())
    assert take(pool, "-n", "2") == ids("nvidia", [0, 3])
    assert take(pool, "-n", "2") == ids("nvidia", [1, 2])
    assert take(pool, "-n", "4") == ids("nvidia", [4, 5, 6, 7])


@pytest.mark.parametrize("policy", [["--policy", "topology"], []])
def test_run_on_pairs(pool_of, machine_file, policy):
    """A request for several devices without a policy gets well connected ones, too."""
    pool = pool_of(machine_file("rtx8000").read_text())
    done = pool.berth("run", "-n", "2", *policy, "--", "printenv", "BERTH_DEVICES")
    assert (done.code, done.stdout) == (0, "nvidia0,nvidia3\n")
    planned = json.loads(pool.berth("plan", "-n", "2", *policy, "--json").stdout)
    assert (planned["policy"], planned["devices"], planned["score"]) == (
        "topology", ids("nvidia", [0, 3]), 200)


def test_one_device_needs_no_links(pool_of, machine_file):
    pool = pool_of(machine_file("dgx1-volta").read_text())
    planned = json.loads(pool.berth("plan", "--json").stdout)
    assert (planned["policy"], planned["devices"]) == ("first", ["nvidia0"])


def test_example_pairs_share_a_switch(pool_of, source_root):
    pool = pool_of((source_root / "examples/dgx-a100.yaml").read_text())
    assert take(pool, "--device", "nvidia0") == ["nvidia0"]
    assert take(pool, "-n", "2") == ids("nvidia", [2, 3])


NVLINK = 0
SYS = 7


def test_links_of_the_hardware(hardware_of):
    """The links come from the probe, also those of devices that appear later."""
    pool = hardware_of()
    gpus = [pool.device(index) for index in range(3)]
    pool.says(gpus, links=[{"one": 0, "other": 2, "kind": NVLINK, "lanes": 4},
                           {"one": 0, "other": 1, "kind": SYS},
                           {"one": 1, "other": 2, "kind": SYS}])
    run = ["run", "-n", "2", "--policy", "topology", "--", "printenv", "BERTH_DEVICES"]
    assert pool.berth(*run).stdout == "nvidia0,nvidia2\n"
    gpus.append(pool.device(3))
    pool.says(gpus, links=[{"one": 1, "other": 3, "kind": NVLINK, "lanes": 6}])
    pool.until(lambda devices: "nvidia3" in devices, "a fourth device")
    assert pool.berth(*run).stdout == "nvidia1,nvidia3\n"
