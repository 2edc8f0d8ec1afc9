# SPDX-License-Identifier: Apache-2.0
"""Made-up machines: the files of GPUs and processes below a directory. Tests change them as drivers, users and faults
do.

berth reads a FakeMachine through BERTH_SYSROOT. namespaces.py shows one as the real machine to the programs that it
starts.
"""
import itertools
import os
import secrets
import shutil
import stat
from pathlib import Path

PCI_DISPLAY, PCI_DISPLAY_3D = 0x030000, 0x030200
INTEL, AMD, ASPEED, VIRTIO = 0x8086, 0x1002, 0x1A03, 0x1AF4
GIB = 1 << 30

# The minor number of the first render node, as the kernel counts them.
RENDER_FIRST = 128

# The machine's boot time, in seconds since 1970.
BOOTED = 1_700_000_000


class Card:
    """A device of the machine. `path` is its directory in sysfs, `render` and `card` are names in /dev/dri."""

    def __init__(self, machine, path, pci=None):
        self.machine = machine
        self.path = path
        self.pci = pci
        self.card = self.render = None
        self.driver = None
        self.files = []  # files below the machine's root that disappear with the device
        self.node = None  # the number of its KFD node
        self._mended = {}

    def file(self, name):
        """Returns the path of a file in the device's directory, or below the root if the name begins with a slash."""
        return self.machine.root / name.lstrip("/") if name.startswith("/") else self.path / name

    def write(self, name, value):
        """Writes a file of the device."""
        self.machine.write(self.file(name), value)

    def sleep(self):
        """Powers the device down, as the kernel does with an unused device."""
        self.write("power/runtime_status", "suspended\n")

    def wake(self):
        self.write("power/runtime_status", "active\n")

    def hang(self, name):
        """Blocks every process that opens this file, as a hanging driver does, until mend()."""
        file = self.file(name)
        self._mended.setdefault(file, file.read_bytes() if file.exists() else None)
        pipe = file.with_name(file.name + ".new")
        os.mkfifo(pipe)
        os.replace(pipe, file)

    def mend(self, name):
        """Restores the file's content, also for processes that are blocked by it."""
        file = self.file(name)
        content = self._mended.pop(file)
        with open(os.open(file, os.O_RDWR | os.O_NONBLOCK), "wb", buffering=0) as pipe:
            if content is None:
                file.unlink()
            else:
                self.machine.write(file, content)
                pipe.write(content)

    def remove(self):
        """Removes the device from the machine without notice."""
        kept = self.machine.aside / f"{self.path.name}-{secrets.token_hex(4)}"
        for number, file in enumerate([*self.files, self.path]):
            kept.mkdir(parents=True, exist_ok=True)
            shutil.move(file, kept / str(number))
        self._kept = kept

    def restore(self):
        """Puts the device back."""
        places = [*self.files, self.path]
        for number in reversed(range(len(places))):  # the directory before the links to it
            shutil.move(self._kept / str(number), places[number])
        shutil.rmtree(self._kept)

    def node_path(self, kind="render"):
        """Returns the path of the device file, as programs use it."""
        return f"/dev/dri/{getattr(self, kind)}"


class FakeMachine:
    """A machine below `root`. With `device_number`, its device files are real ones with this number."""

    def __init__(self, root, device_number=None):
        self.root = Path(root)
        self.aside = self.root / "aside"  # files of removed devices
        self.device_number = device_number
        # Devices are locked by names that all processes of the machine share, so each test needs its own addresses.
        self.domain = secrets.randbits(31) | 0x10000
        self._minors = itertools.count()
        self._nodes = itertools.count(1)
        for directory in ("sys/class/drm", "sys/bus/pci/devices", "sys/devices/system", "dev/dri", "proc"):
            (self.root / directory).mkdir(parents=True, exist_ok=True)

    # ---- Files ----

    def write(self, file, content):
        """Replaces a file atomically: no process reads half of the content, or blocks on a pipe that it replaces."""
        file = Path(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(file.name + ".new")
        new.write_bytes(content if isinstance(content, bytes) else str(content).encode())
        os.replace(new, file)

    def link(self, file, target):
        file.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(os.path.relpath(target, file.parent), file)
        return file

    def _device_file(self, path):
        file = self.root / path
        if self.device_number is None:
            self.write(file, "")
        else:
            os.mknod(file, stat.S_IFCHR | 0o666, self.device_number)
            os.chmod(file, 0o666)
        return file

    # ---- Devices ----

    def number_from(self, minor):
        """Sets the number of the next device's files in /dev/dri. Later devices have the numbers after it."""
        self._minors = itertools.count(minor)

    def pci(self, bus, device=0, function=0):
        """Returns an address in the machine's own domain."""
        return f"{self.domain:04x}:{bus:02x}:{device:02x}.{function}"

    def _bridge(self, bus):
        """Returns the directory of a bus's devices. Each bus but the first is behind its own port."""
        host = self.root / f"sys/devices/pci{self.domain:04x}:00"
        return host if bus == 0 else host / self.pci(0, bus)

    def add_pci(self, bus, device, vendor, number, driver, pci_class=PCI_DISPLAY, numa=0):
        """Adds a PCI device, with the files that the kernel shows for every PCI device."""
        address = self.pci(bus, device)
        card = Card(self, self._bridge(bus) / address, address)
        facts = {
            "vendor": f"{vendor:#06x}\n",
            "device": f"{number:#06x}\n",
            "subsystem_vendor": "0x0000\n",
            "subsystem_device": "0x0000\n",
            "class": f"{pci_class:#08x}\n",
            "numa_node": f"{numa}\n",
            "local_cpulist": "0-1\n",
            "power/runtime_status": "active\n",
            "uevent": f"DRIVER={driver}\nPCI_CLASS={pci_class:X}\nPCI_ID={vendor:04X}:{number:04X}\n"
            f"PCI_SLOT_NAME={address}\n",
        }
        for name, value in facts.items():
            card.write(name, value)
        card.files.append(self.link(self.root / f"sys/bus/pci/devices/{address}", card.path))
        self._drive(card, "pci", driver)
        return card

    def _drive(self, card, bus, driver):
        place = self.root / f"sys/bus/{bus}/drivers/{driver}"
        place.mkdir(parents=True, exist_ok=True)
        self.link(card.path / "driver", place)
        card.driver = driver

    def _add_drm(self, card, has_render=True):
        """Adds the device's files in /dev/dri, and their entries in sysfs."""
        minor = next(self._minors)
        names = {"card": f"card{minor}", "render": f"renderD{RENDER_FIRST + minor}"}
        if not has_render:
            del names["render"]
        for kind, name in names.items():
            place = card.path / "drm" / name
            self.write(place / "dev", f"226:{minor if kind == 'card' else RENDER_FIRST + minor}\n")
            self.link(place / "device", card.path)
            card.files.append(self.link(self.root / f"sys/class/drm/{name}", place))
            card.files.append(self._device_file(f"dev/dri/{name}"))
            setattr(card, kind, name)
        return card

    def _add_hwmon(self, card, number, **sensors):
        """Adds sensors, whose hwmon number is arbitrary, as on a real machine."""
        for name, value in sensors.items():
            card.write(f"hwmon/hwmon{number}/{name}", f"{value}\n")

    def add_intel_integrated(self):
        """Adds a GPU that i915 drives, without memory of its own."""
        card = self._add_drm(self.add_pci(0, 2, INTEL, 0x9A49, "i915"))
        card.write(f"drm/{card.card}/gt_act_freq_mhz", "350\n")
        return card

    def add_intel(self, bus, memory=16 * GIB):
        """Adds a card that xe drives."""
        card = self._add_drm(self.add_pci(bus, 0, INTEL, 0x56C0, "xe", PCI_DISPLAY_3D))
        card.write("tile0/physical_vram_size_bytes", f"{memory:#x}\n")
        card.write("tile0/gt0/freq0/act_freq", "2050\n")
        self._add_hwmon(card, 7, name="xe", temp2_input=51000, temp2_label="pkg")
        return card

    def add_ponte_vecchio(self, bus, tiles=2):
        """Adds a card that i915 drives, with a GT for each of its tiles."""
        card = self._add_drm(self.add_pci(bus, 0, INTEL, 0x0BD5, "i915", PCI_DISPLAY_3D))
        for tile in range(tiles):
            card.write(f"drm/{card.card}/gt/gt{tile}/id", f"{tile}\n")
        return card

    def add_amd(self, bus, memory=32 * GIB, used=2 * GIB, busy=25):
        """Adds a card that amdgpu drives and that can compute: it has a KFD node."""
        card = self._add_drm(self.add_pci(bus, 0, AMD, 0x738C, "amdgpu", PCI_DISPLAY_3D))
        card.write("mem_info_vram_total", f"{memory}\n")
        card.write("mem_info_vram_used", f"{used}\n")
        card.write("gpu_busy_percent", f"{busy}\n")
        card.write("unique_id", f"{0x1000 + bus:016x}\n")
        self._add_hwmon(card, 3, name="amdgpu", temp1_input=40000 + bus, temp1_label="edge", power1_average=90000000)
        self._add_kfd_node(card, bus, memory)
        return card

    def _add_kfd_node(self, card, bus, memory):
        nodes = self.root / "sys/class/kfd/kfd/topology/nodes"
        if not nodes.exists():
            self.write(nodes / "0/gpu_id", "0\n")
            self.write(nodes / "0/properties", "cpu_cores_count 2\nsimd_count 0\n")
            self._device_file("dev/kfd")
        card.node = next(self._nodes)
        place = nodes / str(card.node)
        properties = {
            "cpu_cores_count": 0,
            "simd_count": 480,
            "gfx_target_version": 90008,
            "vendor_id": AMD,
            "device_id": 0x738C,
            "location_id": bus << 8,
            "domain": self.domain,
            "drm_render_minor": int(card.render[len("renderD") :]),
            "unique_id": 0x1000 + bus,
        }
        self.write(place / "gpu_id", f"{1000 + card.node}\n")
        self.write(place / "properties", "".join(f"{name} {value}\n" for name, value in properties.items()))
        self.write(place / "mem_banks/0/properties", f"heap_type 1\nsize_in_bytes {memory}\n")
        card.files.append(place)

    def add_virtio(self, bus):
        """Adds the display of a virtual machine, whose DRM device is a child of the PCI device."""
        parent = self.add_pci(bus, 0, VIRTIO, 0x1050, "virtio-pci")
        card = Card(self, parent.path / "virtio0", parent.pci)
        card.path.mkdir()
        card.files = parent.files
        self._drive(card, "virtio", "virtio_gpu")
        return self._add_drm(card)

    def add_platform(self, name, driver, compatible=None):
        """Adds a platform device, which has no bus address."""
        card = Card(self, self.root / f"sys/devices/platform/{name}")
        card.write("uevent", f"DRIVER={driver}\n")
        if compatible:
            card.write("of_node/compatible", "".join(f"{word}\0" for word in compatible))
        self._drive(card, "platform", driver)
        return self._add_drm(card)

    def add_vgem(self):
        """Adds the kernel's GPU for tests, which is not hardware."""
        return self.add_platform("vgem", "vgem")

    def add_asahi(self):
        """Adds the GPU of an Apple machine."""
        return self.add_platform("406400000.gpu", "asahi", ["apple,agx-g13g", "apple,agx"])

    def add_display_only(self, bus):
        """Adds the chip of a server's remote console, which has a screen but cannot compute."""
        return self._add_drm(self.add_pci(bus, 0, ASPEED, 0x2000, "ast"), has_render=False)

    # ---- Processes ----

    def add_process(self, pid, card, kind="render", client=1, uid=1000, command=("train",), group="/", **keys):
        """Adds a process that has the device open. `keys` are keys of its fdinfo, with _ instead of -."""
        place = self.root / f"proc/{pid}"
        descriptor = len(list((place / "fd").iterdir())) if (place / "fd").exists() else 3
        lines = {"driver": card.driver, "client-id": client}
        if card.pci:
            lines["pdev"] = card.pci
        lines.update({name.replace("_", "-"): value for name, value in keys.items()})
        self.describe_process(pid, uid, command, group)
        self.write(
            place / f"fdinfo/{descriptor}",
            "pos:\t0\n" + "".join(f"drm-{name}:\t{value}\n" for name, value in lines.items()),
        )
        (place / "fd").mkdir(exist_ok=True)
        os.symlink(card.node_path(kind), place / f"fd/{descriptor}")

    def describe_process(self, pid, uid=1000, command=("train",), group="/", started=None, environment=(), parent=0):
        """Writes a process's files in /proc. `started` is in seconds since 1970; `environment` has NAME=VALUE."""
        place = self.root / f"proc/{pid}"
        uids = f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        self.write(place / "status", f"Name:\t{command[0]}\nPPid:\t{parent}\n{uids}")
        self.write(place / "cmdline", "".join(f"{word}\0" for word in command))
        self.write(place / "cgroup", f"0::{group}\n")
        self.write(place / "environ", "".join(f"{variable}\0" for variable in environment))
        if started is not None:
            self.write(self.root / "proc/stat", f"cpu 1 2 3\nbtime {BOOTED}\n")
            ticks = int((started - BOOTED) * os.sysconf("SC_CLK_TCK"))
            self.write(place / "stat", f"{pid} (a (b) c) S 1 " + "0 " * 17 + f"{ticks} 0\n")

    def remove_process(self, pid):
        shutil.rmtree(self.root / f"proc/{pid}")


def mixed(machine):
    """Adds devices of many kinds, and returns the cards by the ids of their devices, in order."""
    cards = {
        "intel0": machine.add_intel_integrated(),
        "intel1": machine.add_intel(3),
        "amd0": machine.add_amd(4),
        "amd1": machine.add_amd(5, busy=75),
        "dri0": machine.add_virtio(6),
        "apple0": machine.add_asahi(),
        "dri1": machine.add_vgem(),
    }
    machine.add_display_only(7)
    return cards
