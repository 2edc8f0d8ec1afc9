# SPDX-License-Identifier: Apache-2.0
"""Containers of a real podman on leased devices: the devices they see, and when the devices become
free."""
import json
import shutil

import pytest
from container_machine import NODES, OPENED_NODE, OPENS, leased, nodes_of, number_of, owner_of
from fake_machine import FakeMachine
from namespaces import HARMLESS_DEVICE

# Print path, numbers in hexadecimal digits, mode and owner of every device file, except those that
# every container has.
LIST = r"""
for file in /dev/* /dev/*/*; do
    case $file in
    /dev/null | /dev/zero | /dev/full | /dev/random | /dev/urandom) ;;
    /dev/tty | /dev/console | /dev/ptmx | /dev/pts/*) ;;
    *) test ! -L "${file%/*}" && test ! -L "$file" && test -c "$file" && stat -c "node %n %t:%T %a %u:%g" "$file" ;;
    esac
done
"""

@pytest.fixture
def machine(container_machine):
    return container_machine


def lines_of(text, word):
    return [line.split()[1:] for line in text.splitlines() if line.startswith(word + " ")]


def wanted_nodes(*devices):
    """Return the lines that LIST must print in a container with these devices."""
    found = []
    for path, mode in nodes_of(*devices).items():
        major, minor = number_of(path)
        user, group = owner_of(path)
        found.append([path, f"{major:x}:{minor:x}", f"{mode:o}", f"{user}:{group}"])
    return sorted(found)


def sees(text):
    return sorted(lines_of(text, "node"))


def environment_of(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


# ---- Visible devices ----


@pytest.mark.parametrize("device", NODES)
def test_one_device(machine, device):
    """The container has only the device's files, with the same numbers and modes as outside. The
    names of parts have a dot."""
    done = machine.sh(leased(f"--device {device}", f"env; {LIST}"))
    assert (done.code, done.stderr) == (0, ""), done
    assert sees(done.stdout) == wanted_nodes(device)
    environment = environment_of(done.stdout)
    assert environment["BERTH_LEASE"].isdigit()
    assert environment["BERTH_DEVICES"] == device
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"


@pytest.mark.parametrize(
    "arguments",
    [
        "$(berth cdi --arguments cdi)",
        "$(berth cdi --arguments nodes)",
        "--device berth/gpu=nvidia0 --device berth/gpu=nvidia1 --env BERTH_LEASE --env BERTH_DEVICES",
    ],
    ids=["cdi", "nodes", "written out"],
)
def test_two_devices(machine, arguments):
    done = machine.sh(leased("-n 2 --device nvidia0,nvidia1", f"env; {LIST}", arguments=arguments))
    assert (done.code, done.stderr) == (0, ""), done
    assert sees(done.stdout) == wanted_nodes("nvidia0", "nvidia1")
    environment = environment_of(done.stdout)
    assert environment["BERTH_LEASE"].isdigit()
    assert environment["BERTH_DEVICES"] == "nvidia0,nvidia1"
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_all_devices(machine):
    run = leased("-n all --vendor any", LIST, arguments="--device berth/gpu=all --env BERTH_LEASE")
    done = machine.sh(run)
    assert (done.code, done.stderr) == (0, ""), done
    assert sees(done.stdout) == wanted_nodes(*NODES)


@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_runtimes(machine, runtime):
    """The result is the same with every OCI runtime."""
    program = shutil.which(runtime)
    if program is None:
        pytest.skip(f"no {runtime}")
    environment = {"CONTAINERS_CONF": machine.podman.configure(program)}
    done = machine.sh("podman run --rm busybox true", env=environment)
    if done.code != 0:
        pytest.skip(f"{runtime} runs no containers here: {done.stderr.strip()}")
    done = machine.sh(leased("--device amd1", f"{LIST} exit 7"), env=environment)
    assert (done.code, done.stderr) == (7, ""), done
    assert sees(done.stdout) == wanted_nodes("amd1")


def test_no_device_without_a_lease(machine):
    done = machine.sh(f"podman run --rm busybox sh -c '{LIST}'")
    assert (done.code, done.stderr, sees(done.stdout)) == (0, "", [])


def test_two_containers_at_once(machine):
    """The containers have different devices. Both see only the files that AMD's devices share."""
    command = f"{LIST} echo listed; cat"
    started = [machine.start(leased("--vendor amd", command, f"--rm -i --name {name}")) for name in ("one", "two")]
    for program in started:
        program.wait_for_line("^listed$")
    one, two = ({path for path, *_ in sees(program.text())} for program in started)
    assert {frozenset(one), frozenset(two)} == {frozenset(nodes_of("amd0")), frozenset(nodes_of("amd1"))}
    assert one & two == {"/dev/kfd"}
    for program in started:
        machine.pool.let_go(program)


# ---- Accessible devices ----

# Open a device file that the container made. If that is allowed, the error is "No such device or
# address", because no driver serves the number.
OPEN = "mknod /tmp/{0} c {1} {2}; cat /tmp/{0} 2>&1 | while read -r line; do echo {0} $line; done;"
REFUSED = "Operation not permitted"


def test_device_files_of_its_own_making(machine):
    """The control group refuses other devices, whatever device files the container makes."""

    def tries(path, name):
        return OPEN.format(name, *number_of(path))

    other = tries("/dev/dri/renderD129", "other")
    done = machine.sh(f"podman run --rm --cap-add MKNOD busybox sh -c '{other}'")
    assert done.code == 0, done
    if REFUSED not in done.stdout:
        pytest.skip("control groups do not restrict devices here")
    run = leased("--device amd0", tries("/dev/dri/renderD128", "own") + other, "--rm --cap-add MKNOD")
    done = machine.sh(run)
    assert (done.code, done.stderr) == (0, ""), done
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(said) == {"own", "other"}
    assert REFUSED in said["other"]
    assert REFUSED not in said["own"]


def test_a_device_can_be_used(machine):
    """The daemon attributes the process that uses the device to the lease."""
    command = f"exec 5<>{OPENED_NODE}; echo $BERTH_LEASE opened; cat"
    program = machine.start(leased(f"--device {OPENS}", command, "--rm -i --name one"))
    lease = int(program.wait_for_line("opened").split()[0])
    [found] = machine.pool.until(lambda slots: used_by(slots[OPENS]), "the process")[OPENS]["device"]["processes"]
    assert (found["lease"], found.get("squats")) == (lease, None)
    shown = json.loads(machine.pool.berth("devices", "--json").stdout)["devices"]
    [process] = next(device["processes"] for device in shown if device["id"] == OPENS)
    assert process["lease"] == lease
    machine.pool.let_go(program)


def used_by(slot):
    return slot["device"].get("processes")


# ---- CDI files of vendors ----

VENDOR = """
cdiVersion: "0.5.0"
kind: nvidia.com/gpu
containerEdits:
  env: [VENDOR_WAS_HERE=yes]
devices:
  - name: "0"
    containerEdits:
      env: [VENDOR_DEVICE=zero]
      deviceNodes: [{{path: /dev/nvidia0}}, {{path: /dev/nvidiactl}}]
      mounts: [{{hostPath: {library}, containerPath: /lib/libcuda.so.1, options: [ro, nosuid, nodev, bind]}}]
  - name: "1"
    containerEdits:
      deviceNodes: [{{path: /dev/nvidia1}}, {{path: /dev/nvidiactl}}]
"""


@pytest.fixture
def vendor(machine):
    """A CDI file for some of the devices, as nvidia-ctk writes it."""
    library = machine.sandbox.directory / "libcuda.so.1"
    library.write_text("the library of the driver\n")
    file = machine.podman.cdi / "nvidia.yaml"
    file.write_text(VENDOR.format(library=library))
    yield
    file.unlink()


def test_the_vendors_own_entry(machine, vendor):
    command = f"env; cat /lib/libcuda.so.1; {LIST}"
    done = machine.sh(leased("--device nvidia0", command, before="env | grep ^BERTH_CDI;"))
    assert (done.code, done.stderr) == (0, ""), done
    environment = environment_of(done.stdout)
    assert environment["BERTH_CDI_DEVICES"] == "nvidia.com/gpu=0"
    assert (environment["VENDOR_WAS_HERE"], environment["VENDOR_DEVICE"]) == ("yes", "zero")
    assert "the library of the driver" in done.stdout
    assert {path for path, *_ in sees(done.stdout)} == {"/dev/nvidia0", "/dev/nvidiactl"}


def test_devices_that_no_vendor_names(machine, vendor):
    run = leased("-n 2 --vendor any --device nvidia1,amd1", LIST, before="env | grep ^BERTH_CDI;")
    done = machine.sh(run)
    assert (done.code, done.stderr) == (0, ""), done
    names = environment_of(done.stdout)["BERTH_CDI_DEVICES"].split(",")
    assert sorted(names) == ["berth/gpu=amd1", "nvidia.com/gpu=1"]
    wanted = {"/dev/nvidia1", "/dev/nvidiactl", *NODES["amd1"]}
    assert {path for path, *_ in sees(done.stdout)} == wanted


# ---- Device files below another root ----


def test_device_files_below_another_root(machine):
    """With BERTH_SYSROOT, the container has the files at their usual paths."""
    directory = machine.namespace.directory / "other"
    other = FakeMachine(machine.namespace.outside / "other", HARMLESS_DEVICE)
    card = other.add_intel(9)
    script = f"""
        mount -t tmpfs none /run/cdi
        unset BERTH_NVML
        BERTH_SYSROOT={directory} berth cdi --output /run/cdi
        podman run --rm --device berth/gpu=intel0 busybox sh -c '{LIST}'
    """
    done = machine.namespace.run("unshare", "-m", "sh", "-ec", script)
    assert (done.code, done.stderr) == (0, ""), done
    assert {path for path, *_ in sees(done.stdout)} == {card.node_path("render"), card.node_path("card")}
