# SPDX-License-Identifier: Apache-2.0
"""The environment of a command in a lease, as the command sees it."""
import json

import pytest

MASKS = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
    "ONEAPI_DEVICE_SELECTOR",
)

MIXED = """devices:
- {vendor: nvidia, index: 0, uuid: GPU-n0}
- {vendor: nvidia, index: 0, mig: 1, uuid: MIG-1}
- {vendor: nvidia, index: 0, mig: 2, uuid: MIG-2}
- {vendor: nvidia, index: 1, uuid: GPU-n1, cpus: "0-3", nodes: [/dev/nvidia1, /dev/nvidiactl]}
- {vendor: nvidia, index: 2, uuid: GPU-n2, cpus: "2-7", nodes: [/dev/nvidia2, /dev/nvidiactl]}
- {vendor: amd, index: 0, uuid: GPU-a0}
- {vendor: amd, index: 1, uuid: GPU-a1}
- {vendor: amd, index: 2, parent: 00000000000000a2}
- {vendor: amd, index: 3, parent: 00000000000000a2}
- {vendor: intel, index: 0, tiles: 2}
- {vendor: intel, index: 1, tiles: 2}
- {vendor: dri, index: 0, nodes: [/dev/dri/renderD128]}
"""
AMD = "devices:\n" + "".join(f"- {{vendor: amd, index: {index}}}\n" for index in range(4))
INTEL = "devices:\n" + "".join(f"- {{vendor: intel, index: {index}, tiles: 2}}\n" for index in (0, 3, 5))

NO_NVIDIA = {"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": "void"}
NO_AMD = {"ROCR_VISIBLE_DEVICES": "-1"}
NO_INTEL = {"ZE_AFFINITY_MASK": "99999"}
COMPOSITE = {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}

# Variables that a shell may have set and that limit nothing here.
POLLUTION = {
    "CUDA_DEVICE_ORDER": "FASTEST_FIRST",
    "GPU_DEVICE_ORDINAL": "0,1,2,3",
    "ONEAPI_DEVICE_SELECTOR": "opencl:*",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER": "0",
}


def nvidia(cuda, uuids):
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return {"CUDA_VISIBLE_DEVICES": cuda, "NVIDIA_VISIBLE_DEVICES": uuids, **order}


def amd(rocr, hip=None):
    return {"ROCR_VISIBLE_DEVICES": rocr, **({"HIP_VISIBLE_DEVICES": hip} if hip else {})}


def intel(mask):
    return {"ZE_AFFINITY_MASK": mask, "ZE_ENABLE_PCI_ID_DEVICE_ORDER": "1"}


def parse(text):
    return dict(line.split("=", 1) for line in text.splitlines())


def run(pool, *words, env=None):
    """Return the environment of a command run with these options, which may end with other
    commands."""
    done = pool.berth("run", *words, "env", env=env)
    assert (done.code, done.stderr) == (0, ""), done
    return parse(done.stdout)


def masks(environment):
    return {name: environment[name] for name in MASKS if name in environment}


# The options, the variables of the shell, and all masks that the command sees.
ON_MIXED_HOST = [
    (["--device=nvidia1"], {}, {**nvidia("1", "GPU-n1"), **NO_AMD, **NO_INTEL}),
    (["--device=nvidia1", "--uuid"], {}, {**nvidia("GPU-n1", "GPU-n1"), **NO_AMD, **NO_INTEL}),
    (["--device=nvidia0.2"], {}, {**nvidia("MIG-2", "MIG-2"), **NO_AMD, **NO_INTEL}),
    (["-n2", "--device=amd0,amd1"], {}, {**NO_NVIDIA, **amd("0,1", "0,1"), **NO_INTEL}),
    (["--device=amd1", "--uuid"], {}, {**NO_NVIDIA, **amd("GPU-a1", "0"), **NO_INTEL}),
    (["-n2", "--device=amd2,amd3", "--uuid"], {}, {**NO_NVIDIA, **amd("2,3", "0,1"), **NO_INTEL}),
    (["--device=intel1"], {}, {**NO_NVIDIA, **NO_AMD, **intel("2,3")}),
    (["--device=intel1", "--uuid"], COMPOSITE, {**NO_NVIDIA, **NO_AMD, **intel("1")}),
    (["--device=dri0"], {}, {**NO_NVIDIA, **NO_AMD, **NO_INTEL}),
    (
        ["-n3", "--vendor=any", "--device=nvidia1,amd1,intel0"],
        {},
        {**nvidia("1", "GPU-n1"), **amd("1", "0"), **intel("0,1")},
    ),
    (["--or-cpu", "--model=no such"], {}, {**NO_NVIDIA, **NO_AMD, **NO_INTEL}),
]


def test_mixed_host(pool_of):
    pool = pool_of(MIXED)
    for options, shell, wanted in ON_MIXED_HOST:
        found = masks(run(pool, *options, env={**POLLUTION, **shell}))
        if "CUDA_DEVICE_ORDER" not in wanted:  # then it must be unchanged
            assert found.pop("CUDA_DEVICE_ORDER") == "FASTEST_FIRST"
        if "ZE_ENABLE_PCI_ID_DEVICE_ORDER" not in wanted:
            assert found.pop("ZE_ENABLE_PCI_ID_DEVICE_ORDER") == "0"
        assert found == wanted, options


def test_what_is_always_set(pool_of):
    pool = pool_of(MIXED)
    found = run(pool, "-n2", "--device=nvidia1,nvidia2", env={"BERTH_CPUS": "9", "BERTH_REPLICA": "9"})
    assert found["BERTH_LEASE"].isdigit()
    assert found["BERTH_DEVICES"] == "nvidia1,nvidia2"
    assert found["BERTH_DEVICE_NODES"] == "/dev/nvidia1:/dev/nvidiactl:/dev/nvidia2"
    assert found["BERTH_CDI_DEVICES"] == "berth/gpu=nvidia1,berth/gpu=nvidia2"
    assert found["BERTH_CPUS"] == "0-7"
    assert "BERTH_REPLICA" not in found
    found = run(pool, "--device=amd0", env={"BERTH_CPUS": "9"})
    assert (found["BERTH_DEVICES"], found["BERTH_DEVICE_NODES"]) == ("amd0", "")
    assert "BERTH_CPUS" not in found


def test_vendors_that_the_host_lacks_are_left_alone(pool_of):
    found = masks(run(pool_of(AMD), "--device=amd2", env={"CUDA_VISIBLE_DEVICES": "0,1,2,3", "ZE_AFFINITY_MASK": "5"}))
    assert found == {**amd("2"), "ZE_AFFINITY_MASK": "5"}


@pytest.mark.parametrize(
    "outer,inner,wanted",
    [
        (
            ["-n2", "--device=nvidia1,nvidia2"],
            ["--device=nvidia2"],
            {**nvidia("2", "GPU-n2"), **NO_AMD, **NO_INTEL},
        ),
        (["-n2", "--device=nvidia0.1,nvidia0.2"], [], {**nvidia("MIG-1", "MIG-1"), **NO_AMD, **NO_INTEL}),
        (["-n3", "--device=amd0,amd1,amd3"], ["--device=amd3"], {**NO_NVIDIA, **amd("3", "0"), **NO_INTEL}),
        (
            ["-n2", "--device=intel0,intel1"],
            ["--device=intel1"],
            {**NO_NVIDIA, **NO_AMD, **intel("2,3")},
        ),
        (
            ["-n2", "--vendor=any", "--device=nvidia1,intel1"],
            ["--vendor=intel"],
            {**NO_NVIDIA, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", **NO_AMD, **intel("2,3")},
        ),
        (["--device=dri0"], [], {**NO_NVIDIA, **NO_AMD, **NO_INTEL}),
    ],
)
def test_within_a_lease(pool_of, outer, inner, wanted):
    pool = pool_of(MIXED)
    done = run(pool, *outer, "--", "berth", "run", *inner, "--")
    assert masks(done) == wanted
    # A device of the host that is not in the lease cannot be claimed within the lease.
    assert pool.berth("run", *outer, "--", "berth", "run", "-n4", "true").code == 120


def test_cards_within_a_lease(pool_of):
    """With cards as devices, and one part of a card: the mask is passed from lease to lease."""
    pool = pool_of(INTEL)
    words = ["-n2", "--device=intel0,intel5", "--", "berth", "run", "--device=intel5", "--"]
    assert run(pool, *words, env=COMPOSITE)["ZE_AFFINITY_MASK"] == "2"
    shell = {**COMPOSITE, "ZE_AFFINITY_MASK": "0,2.1"}
    found = run(pool, *words, env=shell)
    assert (found["BERTH_DEVICES"], found["ZE_AFFINITY_MASK"]) == ("intel5", "2.1")


def test_tiles_of_hardware(machine, machine_pool):
    """One GPU with a single tile, one whose tiles xe shows, and one for which i915 shows a GT per
    tile."""
    machine.add_intel_integrated()
    machine.add_intel(3).write("tile1/physical_vram_size_bytes", f"{16 << 30:#x}\n")
    machine.add_ponte_vecchio(5)
    document = json.loads(machine_pool.berth("devices", "--json").stdout)
    assert [(device["id"], device["tiles"]) for device in document["devices"]] == [
        ("intel0", 1),
        ("intel1", 2),
        ("intel2", 2),
    ]
    for device, mask, card in [("intel0", "0", "0"), ("intel1", "1,2", "1"), ("intel2", "3,4", "2")]:
        assert masks(run(machine_pool, f"--device={device}")) == intel(mask)
        assert masks(run(machine_pool, f"--device={device}", env=COMPOSITE)) == intel(card)
    shell = {**COMPOSITE, "ZE_AFFINITY_MASK": "1.1", "ZE_ENABLE_PCI_ID_DEVICE_ORDER": "1"}
    assert machine_pool.berth("devices", env=shell).stdout.endswith("\n2 devices are hidden by ZE_AFFINITY_MASK\n")
    # If the order is not set, Level Zero counts integrated GPUs last.
    shell = {"ZE_AFFINITY_MASK": "4"}
    assert masks(run(machine_pool, env=shell)) == intel("0")
    assert masks(run(machine_pool, env={**shell, "ZE_ENABLE_PCI_ID_DEVICE_ORDER": "1"})) == intel("4")


# The variables of a batch system or a container runtime, the request, and the result: the exit
# code, or the devices and their masks.
BATCH_ON_AMD = [
    ({"ROCR_VISIBLE_DEVICES": "2,3", "GPU_DEVICE_ORDINAL": "2,3"}, ["-n2"], ("amd2,amd3", amd("2,3"))),
    ({"ROCR_VISIBLE_DEVICES": "2,3", "GPU_DEVICE_ORDINAL": "2,3"}, ["-n3"], 120),
    (
        dict.fromkeys(["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"], "3"),
        [],
        ("amd3", amd("3")),
    ),
    ({"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}, [], ("amd2", amd("2"))),
    ({"ROCR_VISIBLE_DEVICES": "0", "GPU_DEVICE_ORDINAL": "0"}, ["--device=amd1"], 120),
]
BATCH_ON_INTEL = [
    ({"ZE_AFFINITY_MASK": "1,2"}, ["-n2"], ("intel0,intel3", intel("1,2"))),
    ({"ZE_AFFINITY_MASK": "1,2"}, ["-n3"], 120),
    ({"ZE_AFFINITY_MASK": "4,5"}, [], ("intel5", intel("4,5"))),
    ({"ZE_AFFINITY_MASK": "2", **COMPOSITE}, [], ("intel5", intel("2"))),
    ({"ZE_AFFINITY_MASK": "0.1", **COMPOSITE}, [], ("intel0", intel("0.1"))),
    ({"ZE_AFFINITY_MASK": "6"}, [], 120),
]
HIDDEN = {**NO_AMD, **NO_INTEL}
BATCH_ON_MIXED = [
    ({"CUDA_VISIBLE_DEVICES": "2"}, ["--vendor=nvidia"], ("nvidia2", {**nvidia("2", "GPU-n2"), **HIDDEN})),
    ({"CUDA_VISIBLE_DEVICES": "2"}, ["--vendor=nvidia", "-n2"], 120),
    ({"CUDA_VISIBLE_DEVICES": "MIG-2"}, ["--vendor=nvidia"], ("nvidia0.2", {**nvidia("MIG-2", "MIG-2"), **HIDDEN})),
    (
        {"NVIDIA_VISIBLE_DEVICES": "GPU-n2,GPU-n1"},
        ["--vendor=nvidia", "-n2"],
        ("nvidia1,nvidia2", {**nvidia("1,2", "GPU-n1,GPU-n2"), **HIDDEN}),
    ),
    ({"NVIDIA_VISIBLE_DEVICES": "GPU-n2"}, ["--device=nvidia1"], 120),
    ({"NVIDIA_VISIBLE_DEVICES": "void"}, ["--vendor=nvidia"], 120),
    ({"NVIDIA_VISIBLE_DEVICES": "none"}, ["--vendor=nvidia"], 120),
    ({"NVIDIA_VISIBLE_DEVICES": "all"}, ["--device=nvidia2"], ("nvidia2", {**nvidia("2", "GPU-n2"), **HIDDEN})),
]


@pytest.mark.parametrize(
    "inventory,rows",
    [(AMD, BATCH_ON_AMD), (INTEL, BATCH_ON_INTEL), (MIXED, BATCH_ON_MIXED)],
    ids=["amd", "intel", "mixed"],
)
def test_inherited_masks(pool_of, inventory, rows):
    pool = pool_of(inventory)
    for shell, options, wanted in rows:
        if isinstance(wanted, int):
            assert pool.berth("run", *options, "true", env=shell).code == wanted, (shell, options)
            continue
        found = run(pool, *options, env=shell)
        assert (found["BERTH_DEVICES"], masks(found)) == wanted, (shell, options)
