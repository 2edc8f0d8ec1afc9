# SPDX-License-Identifier: Apache-2.0
"""The choices of the vendors' own allocators, as cases for berth plan: machines as inventories, and
for each case the free ids, the required ids, the number of devices, and the answer."""
import dataclasses
import itertools
import json
from typing import Optional


@dataclasses.dataclass(frozen=True)
class Case:
    """A case. If `expected` is None, any set of that size is right; if it is (), there is no set."""

    name: str
    machine: str
    free: tuple
    required: tuple
    size: int
    expected: Optional[tuple]


def as_inventory(devices, links):
    """The text of an inventory. JSON is YAML too."""
    return json.dumps({"devices": devices, "links": links})


def nvidia_ids(numbers):
    return tuple(f"nvidia{number}" for number in numbers)


def nvidia_machine(topology):
    count = topology["gpus"]
    links = []
    for one, other in itertools.combinations(range(count), 2):
        between = list(nvidia_ids([one, other]))
        lanes = topology["nvlinks"][one][other]
        path = topology["pcie"][one][other]
        if lanes > 0:
            links.append({"between": between, "kind": "nvlink", "lanes": lanes})
        if path is not None:
            links.append({"between": between, "kind": path.lower()})
    devices = [{"vendor": "nvidia", "index": index} for index in range(count)]
    return as_inventory(devices, links)


def nvidia_cases(test, gpus):
    """Yields the cases of a test. A sequence has a case for each step, with fewer and fewer free devices."""
    name = f"{test['test']}: {test.get('desc', test['topology'])}"
    if test["kind"] == "single":
        steps = [test]
        free = test["available"]
    else:
        steps = test["steps"]
        free = list(range(gpus))
    for number, step in enumerate(steps):
        yield Case(
            f"{name} {number}",
            test["topology"],
            nvidia_ids(free),
            nvidia_ids(step.get("required", [])),
            step["size"],
            nvidia_ids(step["expect"]),
        )
        free = [device for device in free if device not in step["expect"]]


def read_nvidia(file):
    """Returns the machines by name, and the cases."""
    document = json.loads(file.read_text())
    topologies = document["topologies"]
    cases = [
        case
        for test in document["tests"]
        for case in nvidia_cases(test, topologies[test["topology"]]["gpus"])
    ]
    return {name: nvidia_machine(topology) for name, topology in topologies.items()}, cases


XGMI = 11


def amd_machine(topology):
    """Returns an inventory with the devices of the vendor's test, in its order. Partitions name their GPU."""
    described = topology["test_devices"]
    index = {device["node"]: number for number, device in enumerate(described)}
    parts = [device["dev"] for device in described]
    numa = [device["numa"] for device in described]
    devices = []
    for number, device in enumerate(described):
        fields = {"vendor": "amd", "index": number, "numa": device["numa"]}
        if parts.count(device["dev"]) > 1:
            fields["parent"] = f"gpu-{device['dev']}"
        devices.append(fields)
    links = []
    for one, other, kind, _ in topology["links"]:
        if one not in index or other not in index:
            continue
        pair = sorted([index[one], index[other]])
        path = "node" if numa[pair[0]] == numa[pair[1]] else "sys"
        links.append({"between": [f"amd{number}" for number in pair],
                      "kind": "xgmi" if kind == XGMI else path})
    return as_inventory(devices, links)


def read_amd(file):
    """Returns the machines by name, and the cases."""
    document = json.loads(file.read_text())
    cases = []
    for test in document["tests"]:
        names = [device["id"] for device in document["topologies"][test["topology"]]["test_devices"]]

        def ids(wanted):
            return tuple(f"amd{names.index(name)}" for name in wanted)

        filtered = test["filtered"] or []
        free = [name for name in test["available"] or names if name not in filtered]
        expected = test["expectedIds"]
        cases.append(
            Case(
                f"{test['topology']}: {test['desc']}",
                test["topology"],
                ids(free),
                ids(test["required"] or []),
                test["size"],
                None if expected is None else ids(expected),
            )
        )
    machines = {name: amd_machine(topology) for name, topology in document["topologies"].items()}
    return machines, cases


READERS = {"nvidia": read_nvidia, "amd": read_amd}


def ids_of(inventory):
    return [f"{device['vendor']}{device['index']}" for device in json.loads(inventory)["devices"]]


def plan_arguments(case, inventory):
    """Returns the arguments of berth plan for a case."""
    busy = [device for device in ids_of(inventory) if device not in case.free]
    arguments = ["--policy", "topology", "--json", "-n", str(case.size)]
    if busy:
        arguments += ["--busy", ",".join(busy)]
    if case.required:
        arguments += ["--must", ",".join(case.required)]
    return arguments


def is_matched(case, answer):
    """Returns whether a plan's document has the vendor's answer."""
    if case.expected is None:
        return answer["now"] and len(answer["devices"]) == case.size
    if not case.expected:
        return answer["devices"] == []
    return sorted(answer["devices"]) == sorted(case.expected)
