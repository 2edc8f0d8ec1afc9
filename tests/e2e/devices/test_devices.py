# SPDX-License-Identifier: Apache-2.0
"""berth devices: the table, the JSON document, and where the devices come from."""
import json
import re

import pytest

MINIMAL = "devices: [{vendor: amd, index: 3}]\n"


@pytest.fixture
def devices(sandbox, source_root):
    """Run berth devices on an example, or on a text."""

    def run(inventory, *args, **options):
        path = source_root / "examples" / inventory
        if not inventory.endswith(".yaml"):
            path = sandbox.directory / "inventory.yaml"
            path.write_text(inventory)
        return sandbox.run(["berth", "devices", "--inventory", path, *args], **options)

    return run


def test_nothing_found(sandbox):
    done = sandbox.run(["berth", "devices"])
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("No GPU found") and done.stdout.count("\n") == 1


def test_nothing_found_as_json(sandbox):
    done = sandbox.run(["berth", "devices", "--json"])
    assert done.code == 0
    assert json.loads(done.stdout) == {
        "schema": "berth.devices/1",
        "devices": [],
        "links": [],
        "problems": [],
    }


def test_empty_inventory(devices):
    done = devices("devices: []\n")
    assert done == (0, "No device found: the inventory lists none.\n", "")


def test_unknown_is_null_and_never_0(devices):
    document = json.loads(devices(MINIMAL, "--json").stdout)
    assert document["devices"] == [
        {
            "id": "amd3",
            "slot": 0,
            "vendor": "amd",
            "index": 3,
            "name": None,
            "kind": None,
            "uuid": None,
            "pci": None,
            "parent": None,
            "memory_total": None,
            "memory_free": None,
            "cap": None,
            "numa": None,
            "cpus": None,
            "tiles": None,
            "utilization": None,
            "temperature_c": None,
            "power_w": None,
            "frequency_hz": None,
            "health": None,
            "health_reason": None,
            "asleep": False,
            "old": False,
            "sampled_at": None,
            "nodes": [],
            "processes": [],
        }
    ]
    assert devices(MINIMAL).stdout == "ID    MODEL\namd3  -\n"


def test_every_field_as_json(devices):
    document = json.loads(
        devices(
            """
            devices:
              - {vendor: nvidia, index: 7, mig: 2, name: "Ünïcode \\"GPU\\"", uuid: MIG-1, parent: GPU-1,
                 pci: "10000:ff:1f.7", memory: 1.5GiB, free: 1GB, cap: "12.10", numa: 0,
                 cpus: "3,0-1", utilization: 0.5, temperature: 41.25, power: 0.001, health: sick,
                 minor: 9, nodes: [/dev/nvidia9, /dev/nvidiactl]}
            """,
            "--json",
        ).stdout
    )
    assert document["devices"][0] == {
        "id": "nvidia7.2",
        "slot": 0,
        "vendor": "nvidia",
        "index": 7,
        "name": 'Ünïcode "GPU"',
        "kind": None,
        "uuid": "MIG-1",
        "pci": "10000:ff:1f.7",
        "parent": "GPU-1",
        "memory_total": 3 << 29,
        "memory_free": 10**9,
        "cap": "12.10",
        "numa": 0,
        "cpus": "0-1,3",
        "tiles": None,
        "utilization": 0.5,
        "temperature_c": 41.25,
        "power_w": 0.001,
        "frequency_hz": None,
        "health": "sick",
        "health_reason": None,
        "asleep": False,
        "old": False,
        "sampled_at": None,
        "nodes": ["/dev/nvidia9", "/dev/nvidiactl"],
        "processes": [],
    }


def test_links_as_json(devices):
    document = json.loads(devices("dgx-a100.yaml", "--json").stdout)
    assert document["schema"] == "berth.devices/1"
    assert len(document["devices"]) == 8
    assert document["links"][:2] == [
        {"between": ["nvidia0", "nvidia1"], "kind": "nvlink", "lanes": 12},
        {"between": ["nvidia0", "nvidia1"], "kind": "pxb", "lanes": None},
    ]


def test_inventory_from_the_environment(sandbox, source_root):
    environment = {"BERTH_INVENTORY": source_root / "examples" / "mig.yaml"}
    done = sandbox.run(["berth", "devices"], env=environment)
    assert "nvidia0.2" in done.stdout
    other = source_root / "examples" / "workstation.yaml"
    done = sandbox.run(["berth", "devices", "--inventory", other], env=environment)
    assert "amd0" in done.stdout and "nvidia0.2" not in done.stdout
    assert sandbox.run(["berth", "devices"], env={"BERTH_INVENTORY": ""}).code == 0


def test_inventory_from_a_pipe(sandbox):
    script = "berth devices --inventory <(echo 'devices: [{vendor: dri, index: 0}]')"
    assert "dri0" in sandbox.run(["bash", "-c", script]).stdout


def test_bad_inventory_says_where(devices, sandbox):
    done = devices("devices:\n  - {vendor: nvidia, index: 0, memroy: 8GiB}\n")
    place = sandbox.directory / "inventory.yaml"
    wanted = f"berth: devices: {place}:2:32: a device has no field 'memroy', did you mean 'memory'?\n"
    assert done == (2, "", wanted)


def test_whole_table_where_nobody_looks(devices):
    """In a pipe, berth shortens and colours nothing."""
    done = devices("workstation.yaml")
    assert "  GeForce RTX 4090  " in done.stdout and "0000:01:00.0" in done.stdout
    assert "\x1b" not in done.stdout


def columns_of(lines):
    """Return the number of visible columns: they are separated by two or more blanks in every
    line."""
    width = max(map(len, lines))
    filled = "".join(
        " " if all(line.ljust(width)[i] == " " for line in lines) else "x" for i in range(width)
    )
    return len(re.split(r" {2,}", filled))


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 140])
@pytest.mark.parametrize("example", ["dgx-a100.yaml", "workstation.yaml", "mig.yaml"])
def test_table_fits_and_lines_up(devices, example, columns):
    lines = devices(example, env={"COLUMNS": columns}).stdout.splitlines()
    table = lines[: lines.index("")] if "" in lines else lines
    assert max(map(len, table)) <= columns
    assert all(line == line.rstrip() for line in lines)
    assert columns_of(table) == len(re.split(r" {2,}", table[0]))


def test_without_unicode(devices):
    text = "devices: [{vendor: dri, index: 0, name: A GPU with a name that goes on and on}]\n"
    done = devices(text, env={"COLUMNS": "40", "LANG": "C"})
    assert "~" in done.stdout and done.stdout.isascii()


def test_on_a_terminal(sandbox, source_root):
    inventory = source_root / "examples" / "workstation.yaml"
    terminal = sandbox.terminal(["berth", "devices", "--inventory", inventory], columns=70)
    assert terminal.wait() == 0
    screen = terminal.screen.decode()
    assert "\x1b[" in screen
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen).splitlines()
    assert 60 < max(map(len, plain)) <= 70
    assert "sick" in screen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_on_a_terminal_without_colour(sandbox, source_root, env):
    inventory = source_root / "examples" / "workstation.yaml"
    terminal = sandbox.terminal(["berth", "devices", "--inventory", inventory], env=env)
    assert terminal.wait() == 0
    assert b"\x1b" not in terminal.screen


def test_hostile_names_are_inert(devices):
    text = 'devices: [{vendor: dri, index: 0, name: "\\e[31mred\\u202e\\nline"}]\n'
    shown = devices(text).stdout
    assert shown == "ID    MODEL\ndri0  \ufffd[31mred\ufffd\ufffdline\n"
    assert json.loads(devices(text, "--json").stdout)["devices"][0]["name"] == "\x1b[31mred\u202e\nline"


def test_64_devices(devices):
    text = "devices:\n" + "".join(
        f"  - {{vendor: nvidia, index: {i}, name: Some GPU, memory: 8GiB}}\n" for i in range(64)
    )
    text += "links:\n" + "".join(
        f"  - {{between: [nvidia{i}, nvidia{i + 1}], kind: pix}}\n" for i in range(63)
    )
    lines = devices(text, env={"COLUMNS": "80"}).stdout.splitlines()
    assert len(lines) == 64 + 3
    assert lines[-1] == "63 links (a wider terminal shows them, --json lists them)"
    assert len(devices(text).stdout.splitlines()) == 64 + 1 + 1 + 65 + 1


def test_more_devices_than_a_matrix_shows(devices):
    """Devices with the same links are shown together; if no devices are linked, only a number is
    shown."""
    text = "devices:\n" + "".join(f"  - {{vendor: amd, index: {i}}}\n" for i in range(65))
    assert devices(text + "links: [{between: [amd0, amd64], kind: xgmi}]\n").stdout.splitlines()[-5:] == [
        "",
        "LINKS  DEVICES     A     B",
        "A      amd0,amd64  xgmi  -",
        "B      amd1-63     -     -",
        "xgmi: Infinity Fabric",
    ]
    chain = "links:\n" + "".join(f"  - {{between: [amd{i}, amd{i + 1}], kind: pix}}\n" for i in range(64))
    assert devices(text + chain).stdout.splitlines()[-1] == "64 links (--json lists them)"
