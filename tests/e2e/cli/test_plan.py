# SPDX-License-Identifier: Apache-2.0
"""berth plan: requests are parsed, checked and answered."""
import json

import pytest
from policies import BASELINES, POLICIES, refusal


@pytest.fixture
def plan(sandbox, source_root):
    """Run berth plan on an example."""

    def run(example, *args):
        inventory = source_root / "examples" / f"{example}.yaml"
        return sandbox.run(["berth", "plan", "--inventory", inventory, *args])

    return run


@pytest.mark.parametrize(
    "example, args, devices",
    [
        ("dgx-a100", [], "nvidia0"),
        ("dgx-a100", ["-n", "2"], "nvidia0,nvidia1"),
        ("dgx-a100", ["-n2", "--busy", "nvidia0"], "nvidia2,nvidia3"),
        ("dgx-a100", ["--gpus=2-4", "--busy", "nvidia0,nvidia3"], "nvidia1,nvidia2,nvidia4,nvidia5"),
        ("dgx-a100", ["-n", "2-100"], ",".join(f"nvidia{i}" for i in range(8))),
        ("dgx-a100", ["-n", "all"], ",".join(f"nvidia{i}" for i in range(8))),
        ("dgx-a100", ["-n", "2", "--must", "nvidia5"], "nvidia4,nvidia5"),
        ("dgx-a100", ["-n", "2", "--avoid", "nvidia0,nvidia2"], "nvidia4,nvidia5"),
        ("dgx-a100", ["--device", "nvidia6"], "nvidia6"),
        ("dgx-a100", ["--device", "6"], "nvidia6"),
        ("dgx-a100", ["-n", "2", "--avoid", "0,2"], "nvidia4,nvidia5"),
        ("dgx-a100", ["-n", "2", "--busy", "0", "--must", "3"], "nvidia2,nvidia3"),
        ("dgx-a100", ["-n", "a100"], "nvidia0"),
        ("workstation", ["--device", "0", "--vendor", "nvidia"], "nvidia0"),
        ("workstation", ["--device", "2"], "nvidia2"),
        ("workstation", ["-n", "RTX 3090"], "nvidia2"),
        ("dgx-a100", ["-n", "2", "--replicas", "2"], "nvidia0,nvidia1 | nvidia2,nvidia3"),
        ("dgx-a100", ["-n", "1-3", "--replicas", "3", "--scheduling", "best-effort"],
         "nvidia0,nvidia1,nvidia2 | nvidia3,nvidia4,nvidia5 | nvidia6,nvidia7"),
        ("dgx-a100", ["--sharing", "time-slice", "--share", "0.5", "--replicas", "3"],
         "nvidia0 | nvidia0 | nvidia1"),
        ("workstation", ["--vendor", "nvidia", "-n", "2"], "nvidia0,nvidia2"),
        ("workstation", ["-n", "rtx 3090:1"], "nvidia2"),
        ("workstation", ["--min-free", "8GiB"], "nvidia0"),
        ("workstation", ["--min-cap", "8.9"], "nvidia0"),
        ("workstation", ["-n", "3", "--vendor", "any"], "intel0,nvidia0,nvidia2"),
        ("mig", ["-n", "all"], "nvidia0.0,nvidia0.1,nvidia0.2"),
    ],
)
def test_now(plan, example, args, devices):
    done = plan(example, *args)
    assert (done.code, done.stderr) == (0, "")
    first, why = done.stdout.splitlines()
    assert first == f"now: {devices}"
    assert why.startswith("why: ")


POOL = """
devices:
  - {vendor: nvidia, index: 0}
  - {vendor: nvidia, index: 1, memory: 40GiB, free: 10GiB, utilization: 0.5, cap: "9.0"}
  - {vendor: nvidia, index: 2, memory: 80GiB, free: 60GiB, utilization: 0.9, cap: "8.0"}
  - {vendor: nvidia, index: 3, memory: 80GiB, free: 20GiB, utilization: 0, cap: "8.10"}
  - {vendor: nvidia, index: 4, memory: 80GiB, free: 30GiB, utilization: 0.2, cap: "9.0"}
"""


@pytest.mark.parametrize(
    "policy, order",
    [
        ("first", "01234"),
        ("round-robin", "01234"),
        ("least-loaded", "34120"),
        ("best-available", "24310"),
        ("best-compute", "41320"),
        ("weighted", "01234"),
        ("pack", "01234"),
        ("spread", "01234"),
    ],
)
def test_policies(sandbox, policy, order):
    inventory = sandbox.directory / "pool.yaml"
    inventory.write_text(POOL)
    for count in range(1, 6):
        done = sandbox.run(["berth", "plan", "--inventory", inventory, "--policy", policy,
                            "-n", str(count), "--json"])
        document = json.loads(done.stdout)
        assert (done.code, done.stderr, document["policy"]) == (0, "", policy)
        assert document["devices"] == [f"nvidia{i}" for i in sorted(order[:count])]


NUMA = """
devices:
  - {vendor: nvidia, index: 0, numa: 0}
  - {vendor: nvidia, index: 1, numa: 0}
  - {vendor: nvidia, index: 2, numa: 0}
  - {vendor: nvidia, index: 3, numa: 1}
  - {vendor: nvidia, index: 4, numa: 1}
  - {vendor: nvidia, index: 5, numa: 1}
"""


@pytest.mark.parametrize(
    "policy, busy, count, devices, score, why",
    [
        ("pack", "nvidia0,nvidia4", 1, "1", 3, "3 of 6 devices of the node stay free"),
        ("pack", "nvidia0", 2, "12", 3, "3 of 6 devices of the node stay free"),
        ("pack", "nvidia0", 3, "345", 2, "2 of 6 devices of the node stay free"),
        ("spread", "nvidia0,nvidia1,nvidia2", 1, "3", 50, "50 % of its node is free"),
        ("spread", "nvidia0", 2, "13", 84, "84 % of its node is free, on 2 NUMA nodes"),
        ("spread", "nvidia0,nvidia4", 3, "123", 67, "67 % of its node is free, on 2 NUMA nodes"),
    ],
)
def test_numa_nodes(sandbox, policy, busy, count, devices, score, why):
    """pack keeps the devices on one whole NUMA node, spread takes some of each node."""
    inventory = sandbox.directory / "pool.yaml"
    inventory.write_text(NUMA)
    done = sandbox.run(["berth", "plan", "--inventory", inventory, "--policy", policy, "--busy", busy,
                        "-n", str(count), "--json"])
    document = json.loads(done.stdout)
    assert document["devices"] == [f"nvidia{i}" for i in devices]
    assert document["score"] == score
    assert document["why"].endswith(f": {why}")


@pytest.mark.parametrize("policy", BASELINES)
def test_policies_of_the_simulator_are_refused(plan, policy):
    assert plan("workstation", "--policy", policy) == (2, "", f"berth: plan: {refusal(policy)}\n")


def test_every_policy_is_described(source_root):
    manual = (source_root / "man/berth-plan.1.scd").read_text()
    assert all(f"*{name}*" in manual for name in POLICIES)


@pytest.mark.parametrize(
    "example, args, policy, why",
    [
        ("dgx-a100", ["--device", "nvidia3,nvidia9", "--busy", "nvidia3"], "first",
         "needs 1: 1 is busy, 7 are not named in the request"),
        ("dgx-a100", ["-n", "8", "--busy", "nvidia0"], "topology",
         "needs 8, 7 free: 1 is busy"),
        ("workstation", ["--vendor", "amd"], "first",
         "needs 1: 1 is sick, 3 have another vendor"),
        ("workstation", ["--device", "nvidia2", "--min-free", "20G"], "first",
         "needs 1: 1 has too little or unknown free memory, 3 are not named in the request"),
    ],
)
def test_not_now(plan, example, args, policy, why):
    assert plan(example, *args) == (0, f"not now\nwhy: {why}\n", "")
    document = json.loads(plan(example, *args, "--json").stdout)
    assert document == {
        "schema": "berth.plan/1",
        "satisfiable": True,
        "now": False,
        "devices": [],
        "policy": policy,
        "score": None,
        "why": why,
    }


@pytest.mark.parametrize(
    "example, args, why",
    [
        ("dgx-a100", ["-n", "9"], "requested 9 devices, but this pool has only 8"),
        ("dgx-a100", ["-n", "H100:1"],
         "requested 1 device, model H100, but none of 8 devices is suitable: 8 are other models"),
        ("dgx-a100", ["--device", "nvidia9"], "no device named nvidia9 here; there are nvidia0 to nvidia7"),
        ("dgx-a100", ["--device", "nvidia9,amd0", "--avoid", "nvidia1"],
         "no device named nvidia9 here; there are nvidia0 to nvidia7"),
        ("workstation", ["-n", "3"],
         "requested 3 devices, but all devices of a replica must have one vendor, unless vendor is any"),
        ("mig", ["-n", "4"],
         "requested 4 devices, but only 3 of 4 devices are suitable: 1 is split into partitions"),
    ],
)
def test_never(plan, example, args, why):
    assert plan(example, *args) == (120, f"never\nwhy: {why}\n", "")
    done = plan(example, *args, "--json")
    assert done.code == 120
    document = json.loads(done.stdout)
    assert (document["satisfiable"], document["now"], document["devices"]) == (False, False, [])


def test_no_device_at_all(sandbox):
    assert sandbox.run(["berth", "plan"]) == (120, "never\nwhy: this pool has no devices\n", "")


@pytest.mark.parametrize(
    "args, wanted",
    [
        (["-n", "0"], "--gpus: expected a whole number from 1 to 1000000, got 0"),
        (["-n", "4x"], "--gpus: expected a number of devices, a range such as 2-4, or all, got '4x'"),
        (["-n", "4-2"], "--gpus: expected a range from the smaller number to the larger, got '4-2'"),
        (["-n"], "--gpus: expected [MODEL:]N, got nothing"),
        (["--gpu", "2"], "no option '--gpu' here, did you mean --gpus?"),
        (["--min-free", "8Gx"], "--min-free: expected a size such as 8GiB or 512M, got '8Gx': "
                                "unknown unit 'Gx'"),
        (["--share", "0.5"], "--share: needs --sharing mps or time-slice"),
        (["--sharing", "mps", "--vendor", "amd"],
         "--sharing: mps works on nvidia devices only, got another vendor"),
        (["--sharing", "mps", "-n", "2"], "--sharing: mps gives one device to each process: use --gpus "
                                          "1 or --ranks"),
        (["--ranks"], "--ranks: an option of berth run and submit only"),
        (["--wait", "5m"], "--wait: an option of berth run, submit, reserve, wait and adopt only"),
        (["-n", "A100:1", "--model", "H100"],
         "--model: expected the model of --gpus, 'A100', got 'H100'"),
        (["--opportunistic", "--priority", "low"],
         "--priority: cannot be combined with --opportunistic"),
        (["--vendor", "nvdia"], "--vendor: expected one of nvidia, amd, intel, apple, dri, any, got "
                                "'nvdia' (did you mean nvidia?)"),
        (["--policy", "topologie"], refusal("topologie")),
        (["--must", "nvidia9"], "--must: no device named nvidia9 here; there are nvidia0 to nvidia7"),
        (["--device", "9"], "--device: no device with index 9 here; there are nvidia0 to nvidia7"),
        (["--label"], "--label: an option of berth run and submit only"),
        (["python"], "expected only options, got 'python'"),
    ],
)
def test_wrong_requests(plan, args, wanted):
    assert plan("dgx-a100", *args) == (2, "", f"berth: plan: {wanted}\n")


def test_an_ambiguous_index(plan):
    done = plan("workstation", "--device", "0")
    assert done == (2, "", "berth: plan: --device: index 0 is ambiguous here: did you mean intel0 or nvidia0?\n")


def test_more_required_than_requested(plan):
    """This request once made the search endless, with links and the policy topology."""
    must = ",".join(f"nvidia{i}" for i in range(1, 7))
    done = plan("dgx-a100", "--policy", "topology", "-n", "4", "--must", must)
    assert done.code == 120
    assert done.stdout.startswith("never\n")
