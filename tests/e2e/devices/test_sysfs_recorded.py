# SPDX-License-Identifier: Apache-2.0
"""The results of Intel's, Apple's and the other tables on recorded machines."""

VENDORS = ("intel", "apple", "dri")
PCI_IDS = """\
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t687f  Vega 10 XL/XT [Radeon RX Vega 56/64]
8086  Intel Corporation
\t5912  HD Graphics 630
\t5917  UHD Graphics 620
"""
UNKNOWN = dict.fromkeys(
    "parent error uuid memory_total minor cap health_reason numa"
    " memory_free utilization temperature power frequency".split()
)


def test_an_integrated_gpu_without_classes_and_drivers(recorded_machine):
    machine = recorded_machine("intel-igpu-sys.ttar")
    machine.write("/usr/share/misc/pci.ids", PCI_IDS)
    sight = machine.look("intel")
    assert sight["devices"] == [
        UNKNOWN
        | {
            "id": "intel0",
            "pci": "0000:00:02.0",
            "path": "/sys/devices/pci0000:00/0000:00:02.0",
            "name": "Intel HD Graphics 630",
            "cpus": "0-7",
            "kind": "integrated",
            "health": "ok",
            "partitioned": False,
            "asleep": False,
            "nodes": [],
            "processes": [],
        }
    ]
    assert sight["problems"] == []
    for vendor in ("nvidia", "amd", "apple", "dri"):
        assert machine.look(vendor)["devices"] == []


def test_device_files_that_were_recorded_are_shown(recorded_machine):
    machine = recorded_machine("intel-igpu-sys.ttar")
    machine.write("/dev/dri/renderD129", "")
    assert machine.look("intel")["devices"][0]["nodes"] == ["/dev/dri/renderD129"]
    machine.write("/dev/dri/card1", "")
    assert machine.look("intel")["devices"][0]["nodes"] == ["/dev/dri/renderD129", "/dev/dri/card1"]


def test_a_display_chip_is_nothing_to_lease(recorded_machine):
    machine = recorded_machine("2pa-pcidomain32bits.tar.bz2")
    for vendor in ("nvidia", "amd", *VENDORS):
        sight = machine.look(vendor)
        assert (sight["devices"], sight["problems"]) == ([], [])


def test_a_class_of_directories(recorded_machine):
    """Beside the Vega there is the display of a notebook, of which the recording has little."""
    machine = recorded_machine("amd-vega10-sysfs.tar.xz")
    machine.write("/usr/share/misc/pci.ids", PCI_IDS)
    (found,) = machine.look("intel")["devices"]
    assert (found["id"], found["pci"], found["kind"]) == ("intel0", "0000:00:02.0", "integrated")
    assert found["path"] == "/sys/class/drm/card1/device"
    assert (found["name"], found["nodes"], found["cpus"]) == ("Intel UHD Graphics 620", [], None)
    assert found["health"] == "ok"
    assert machine.look("dri")["devices"] == []
    assert machine.look("apple")["devices"] == []
