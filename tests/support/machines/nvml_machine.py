# SPDX-License-Identifier: Apache-2.0
"""Machines for the NVML double (tests/doubles/nvml_machine.h describes its files).

    machine = Machine()
    gpu = machine.gpu(name="NVIDIA T4", pci="0000:3B:00.0", memory=(16 << 30, 15 << 30, 0))
    gpu.call("nvmlDeviceGetPowerUsage", "hang")
    machine.write(path)                        # may be repeated: the double reads the file again

    env |= machine.environment(path)           # BERTH_NVML and NVML_DOUBLE

`read(FILE)` makes a machine from a profile in YAML or a topology of hwloc in XML. As a program, this
file writes that machine or its sysfs tree:

    python3 nvml_machine.py FILE OUT
    python3 nvml_machine.py FILE --sysfs DIRECTORY
"""
import os
import sys
import xml.etree.ElementTree
from pathlib import Path

LANES = 18
SINGLE, MULTIPLE, HOST_BRIDGE, NODE, SYSTEM = 10, 20, 30, 40, 50


class Unit:
    """A GPU, a MIG instance or a machine. Each argument becomes a statement, with - instead of _ in its name."""

    def __init__(self, **facts):
        self.lines = []
        self.facts = {}
        self.say(**facts)

    def say(self, **facts):
        """Adds facts. A fact replaces an earlier one of the same name; None removes it."""
        for word, value in facts.items():
            self.facts[word.replace("_", "-")] = value
        return self

    def call(self, function, action):
        """Makes a function of NVML fail: "return 15", "hang", "crash" or "lie"."""
        self.lines.append(f"call {function} {action}")
        return self

    def process(self, kind, pid, memory, *instances):
        memory = "-" if memory is None else memory
        self.lines.append(" ".join(str(word) for word in ("process", kind, pid, memory, *instances)))
        return self

    def statements(self):
        for word, value in self.facts.items():
            if value is not None:
                words = value if isinstance(value, (tuple, list)) else (value,)
                yield " ".join([word] + [str(word) for word in words])
        yield from self.lines


class Gpu(Unit):
    def __init__(self, **facts):
        super().__init__(**facts)
        self.instances = {}

    def lane(self, number, kind, address="", active=True):
        """Adds an NVLink to a gpu, switch or npu."""
        state = "active" if active else "inactive"
        self.lines.append(f"lane {number} {state} {kind} {address}".rstrip())
        return self

    def instance(self, number, **facts):
        """Adds a MIG instance, which puts the GPU into MIG mode."""
        self.say(mig=(1, 1), mig_most=7)
        self.instances[number] = Unit(**facts)
        return self.instances[number]

    def statements(self):
        yield from super().statements()
        for number, instance in self.instances.items():
            yield f"instance {number}"
            yield from instance.statements()


class Machine(Unit):
    def __init__(self, driver="550.163.01", **facts):
        super().__init__(driver=driver, **facts)
        self.gpus = []
        self.numa = {}  # NUMA nodes by PCI address, for `write_sysfs`
        self.hosts = {}  # host bridges by PCI address

    def gpu(self, **facts):
        self.gpus.append(Gpu(**facts))
        return self.gpus[-1]

    def topology(self, one, other, level):
        self.lines.append(f"topology {one} {other} {level}")

    def text(self):
        lines = list(self.statements())
        for gpu in self.gpus:
            lines.append("gpu")
            lines += ["  " + statement for statement in gpu.statements()]
        return "".join(line + "\n" for line in lines)

    def write(self, path):
        """Writes the file in one step, so that the double never reads half of it."""
        path = Path(path)
        unfinished = path.with_name(path.name + ".new")
        unfinished.write_text(self.text())
        unfinished.replace(path)

    @staticmethod
    def environment(path, log=None, kind=""):
        """Returns the variables that make berth load the double with this file; `kind` is "", "-old" or "-wide"."""
        library = Path(os.environ["BERTH_BUILD_ROOT"], "tests", f"libnvidia-ml{kind}.so.1")
        added = {"BERTH_NVML": str(library), "NVML_DOUBLE": str(path)}
        return added if log is None else added | {"NVML_DOUBLE_LOG": str(log)}

    def addresses(self):
        """Returns the GPUs' PCI addresses as the kernel writes them."""
        return [first_word(gpu.facts["pci"]).lower() for gpu in self.gpus]

    def write_sysfs(self, root):
        """Writes a sysfs tree below `root`, as the kernel has it: PCI devices that are bound to the driver."""
        for address in self.addresses():
            host = self.hosts.get(address, f"pci{address[:7]}")
            device = Path(root, "sys/devices", host, address)
            device.mkdir(parents=True)
            for name, value in (
                ("vendor", "0x10de"),
                ("class", "0x030200"),
                ("numa_node", self.numa.get(address, -1)),
                ("power/runtime_status", "active"),
                ("power/control", "on"),
            ):
                (device / name).parent.mkdir(exist_ok=True)
                (device / name).write_text(f"{value}\n")
            link(Path(root, "sys/bus/pci/devices", address), device)
            driver = Path(root, "sys/bus/pci/drivers/nvidia")
            driver.mkdir(parents=True, exist_ok=True)
            link(device / "driver", driver)
            link(driver / address, device)


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def first_word(value):
    return value[0] if isinstance(value, (tuple, list)) else value.split()[0]


def merged(under, over):
    """Returns `over`, with values of `under` for the keys that `over` lacks."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return under | {key: merged(under.get(key), value) for key, value in over.items()}


def profile_gpu(machine, facts):
    """Adds a GPU of a profile. The GPU does not support values that are N/A in the profile."""
    memory, bar1, pci, pcie = facts["memory"], facts["bar1_memory"], facts["pci"], facts["pcie"]
    clocks, remapped, fan = facts["clocks"], facts.get("remapped_rows"), facts["fan"]["speed_percent"]
    errors = facts["ecc"]["errors"]["volatile"]
    mig = facts["mig"]
    gpu = machine.gpu(
        name=facts["name"],
        uuid=facts["uuid"],
        serial=facts["serial"],
        pci=(pci["bus_id"], pci["device_id"], pci["subsystem_id"]),
        minor=facts["minor_number"],
        memory=(memory["total_bytes"], memory["free_bytes"], memory["reserved_bytes"]),
        bar1=(bar1["total_bytes"], bar1["free_bytes"]),
        utilization=(facts["utilization"]["gpu"], facts["utilization"]["memory"]),
        temperature=facts["thermal"]["temperature_gpu_c"],
        power=facts["power"]["current_draw_mw"],
        power_limit=facts["power"]["enforced_limit_mw"],
        clocks=[clocks[kind + "_current"] for kind in ("graphics", "sm", "memory", "video")],
        max_clocks=[clocks[kind + "_max"] for kind in ("graphics", "sm", "memory", "video")],
        capability=(facts["compute_capability"]["major"], facts["compute_capability"]["minor"]),
        ecc=(errors["single_bit"]["total"], errors["double_bit"]["total"]),
        retired_pending=int(facts["retired_pages"]["pending_retirement"]),
        pcie=[pcie[f"{when}_link_{what}"] for when in ("max", "current") for what in ("gen", "width")],
        fan=fan if isinstance(fan, int) else None,
    )
    # Turing and older GPUs retire pages instead.
    if remapped and "availability_histogram" in remapped:
        counts = (remapped["correctable"], remapped["uncorrectable"])
        gpu.say(remapped=(*counts, int(remapped["pending"]), int(remapped["failure_occurred"])))
    if mig["max_gpu_instances"] > 0:
        gpu.say(mig=(0, 0), mig_most=mig["max_gpu_instances"])
    return gpu


def profile_links(machine, nvlink):
    """Adds the lanes of each GPU. They go to the switches in turn; without switches, no lane is active."""
    switches = [switch["bdf"] for switch in nvlink.get("switches", ())]
    for gpu in machine.gpus:
        gpu.say(nvlink_version=nvlink["version"])
        for lane in range(min(nvlink["links_per_gpu"], LANES)):
            if switches:
                gpu.lane(lane, "switch", switches[lane % len(switches)])
            else:
                gpu.lane(lane, "unknown", active=False)


def read_profile(path):
    import yaml  # only here: other tests do not need it

    profile = yaml.safe_load(Path(path).read_text())
    machine = Machine(driver=profile["system"]["driver_version"])
    for device in profile["devices"]:
        profile_gpu(machine, merged(profile["device_defaults"], device))
    if "nvlink" in profile:
        profile_links(machine, profile["nvlink"])
    for host in profile["pcie_topology"]["root_complexes"]:
        for address in host["devices"]:
            machine.numa[address.lower()] = host["numa_node"]
            machine.hosts[address.lower()] = host["id"]
    places = machine.addresses()
    for one, here in enumerate(places):
        for other, there in enumerate(places[:one]):
            same = machine.hosts[here] == machine.hosts[there]
            machine.topology(other, one, HOST_BRIDGE if same else SYSTEM)
    return machine


def common_level(one, other):
    """Returns the level of two devices, given the objects above each device, outermost first."""
    depth = 0
    while depth < min(len(one), len(other)) and one[depth] is other[depth]:
        depth += 1
    meeting = one[depth - 1]
    if meeting.get("type") == "Bridge" and meeting.get("bridge_type") == "1-1":
        # Below a switch's upstream port, each device is behind one downstream port.
        return SINGLE if max(len(one), len(other)) - depth == 1 else MULTIPLE
    if meeting.get("type") == "Bridge":
        return HOST_BRIDGE
    return SYSTEM if meeting.get("type") == "Machine" else NODE


def matrix(distances):
    """Returns the names of a matrix's objects, and its rows."""
    names = " ".join(part.text for part in distances.findall("indexes")).split()
    values = [int(word) for part in distances.findall("u64values") for word in part.text.split()]
    return names, [values[i : i + len(names)] for i in range(0, len(values), len(names))]


def hwloc_lanes(machine, root, by_index):
    """Adds the lanes. Their number follows from the bandwidth: 20 GB/s per lane on Pascal, 25 GB/s on later GPUs."""
    distances = root.find("distances2hetero[@name='NVLinkBandwidth']")
    names, rows = matrix(distances)
    pci = {f"PCIDev:{o.get('gp_index')}": o.get("pci_busid") for o in root.iter("object")}
    places = {f"OSDev:{index}": place for index, place in by_index.items()}
    for name, row in zip(names, rows):
        if name not in places:
            continue
        gpu = machine.gpus[places[name]]
        version, each = (1, 20000) if "P100" in gpu.facts["name"] else (2, 25000)
        gpu.say(nvlink_version=version)
        lane = 0
        for other, bandwidth in zip(names, row):
            if other == name:
                continue
            for _ in range(bandwidth // each):
                if other in places:
                    gpu.lane(lane, "gpu", first_word(machine.gpus[places[other]].facts["pci"]))
                elif other.startswith("PCIDev"):
                    gpu.lane(lane, "switch", pci[other])
                else:
                    gpu.lane(lane, "npu")
                lane += 1


def read_hwloc(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    machine = Machine(driver="450.80.02")
    above = []
    found = []

    def walk(item):
        if item.tag == "object" and item.get("type") == "OSDev" and item.get("name").startswith("nvml"):
            found.append((int(item.get("name")[4:]), item, list(above)))
        above.append(item)
        for child in item.findall("object"):
            walk(child)
        above.pop()

    walk(root)
    for place, (_, item, parents) in enumerate(sorted(found, key=lambda each: each[0])):
        infos = {info.get("name"): info.get("value") for info in item.findall("info")}
        beside = {i.get("name"): i.get("value") for i in parents[-1].iter("info")}
        gpu = machine.gpu(
            name=infos["GPUModel"],
            uuid=infos["NVIDIAUUID"],
            serial=infos["NVIDIASerial"],
            pci=parents[-1].get("pci_busid"),
            minor=place,
        )
        if "CUDAGlobalMemorySize" in beside:
            total = int(beside["CUDAGlobalMemorySize"]) << 10
            gpu.say(memory=(total, total, 0))
        else:  # the memory was not recorded, which does not mean that there is none
            for name in ("MemoryInfo", "MemoryInfo_v2", "BAR1MemoryInfo"):
                gpu.call(f"nvmlDeviceGet{name}", "return 999")
    places = sorted(found, key=lambda each: each[0])
    for one, (_, _, here) in enumerate(places):
        for other, (_, _, there) in enumerate(places[:one]):
            machine.topology(other, one, common_level(here[:-1], there[:-1]))
    hwloc_lanes(machine, root, {int(o.get("gp_index")): i for i, (_, o, _) in enumerate(places)})
    return machine


def read(path):
    return read_hwloc(path) if Path(path).suffix == ".xml" else read_profile(path)


if __name__ == "__main__":
    if sys.argv[2] == "--sysfs":
        read(sys.argv[1]).write_sysfs(sys.argv[3])
    else:
        read(sys.argv[1]).write(sys.argv[2])
