# SPDX-License-Identifier: Apache-2.0
"""The machine's daemon keeps the kernel-wide names of its devices; users who take them change nothing."""
import contextlib
import json
import os
import signal
import socket
import sys

import daemon_log
import pytest
from pool import fnv1a
from shared_machine import ALICE, BOB
from waiting import until

STRANGER = """
import socket, sys
taken = []
for name in sys.argv[2:]:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind("\\0" + name)
    if sys.argv[1] == "listens":
        sock.listen()
    taken.append(sock)
print("taken", flush=True)
sys.stdin.read()
"""


def inventory_of(machine):
    return machine.devices[machine.devices.index("--inventory") + 1]


def names_of(machine, count):
    key = fnv1a(os.path.realpath(inventory_of(machine)).encode())
    return [f"berth/{key:016x}/nvidia{index}" for index in range(count)]


@contextlib.contextmanager
def stranger(machine, uid, names, listens=True):
    """A process of the user that holds names of devices before the daemon starts."""
    args = [*machine.become(uid), sys.executable, "-c", STRANGER, "listens" if listens else "silent"]
    process = machine.sandbox.start([*args, *names])
    process.wait_for_line("^taken$")
    try:
        yield process
    finally:
        process.kill(signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("listens", [True, False])
def test_names_of_a_user_block_nothing(shared_machine_of, listens):
    machine = shared_machine_of(2)
    with stranger(machine, BOB, names_of(machine, 2), listens) as other:
        machine.open()
        assert machine.berth(ALICE, "run", "-n", "2", "--nonblock", "true").code == 0
        status = machine.berth(ALICE, "status")
        document = json.loads(machine.berth(ALICE, "status", "--json").stdout)
        if listens:
            pid = int(other.pid)
            assert f"process {pid} of {BOB} holds the kernel-wide name of nvidia0" in " ".join(status.stdout.split())
            assert document["devices"][0]["name_held_by"] == {"pid": pid, "uid": BOB, "user": str(BOB)}
            [first, _] = daemon_log.wait_for(machine.log, "name", 2)
            assert first.values["what"] == "taken" and first.values["blocks"] == "no"
            assert (first.values["uid"], first.values["pid"]) == (str(BOB), str(pid))
        assert [device["state"] for device in document["devices"]] == ["free", "free"]
    # The names are the daemon's once the process has ended.
    until(lambda: not can_take(machine, 0), "the daemon's names")


def can_take(machine, index):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.bind("\0" + names_of(machine, index + 1)[index])
        except OSError:
            return False
        return True


def test_names_are_kept_from_the_start_and_for_good(shared_machine_of):
    machine = shared_machine_of(2)
    machine.open()
    assert not can_take(machine, 0)
    assert not can_take(machine, 1)
    # A process that asks for a name is told that the device is in use, and gets nothing.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        asker.connect("\0" + names_of(machine, 1)[0])
        asker.settimeout(5)
        assert asker.recv(1) == b"u"
        assert machine.berth(ALICE, "run", "-n", "2", "true").code == 0
        assert not can_take(machine, 0)


def until_state(machine, device, state):
    def has_state():
        [found] = [entry for entry in json.loads(machine.berth(0, "status", "--json").stdout)["devices"] if entry["id"] == device]
        return found if found["state"] == state else None

    return until(has_state, f"{device} {state}")


def test_name_blocks_with_a_process_of_its_user_on_the_device(shared_machine):
    """BOB has the names of two GPUs and uses one of them: only this one counts as used by another pool. ALICE's
    process on a third one is a squatter."""
    machine = shared_machine
    names = [f"berth/{address}" for address in machine.gpus.addresses]
    on = machine.sleeper(BOB)
    machine.gpus.use(0, on.pid, uid=BOB)
    machine.gpus.use(1, machine.sleeper(ALICE).pid, uid=ALICE)
    with stranger(machine, BOB, names) as other:
        machine.open()
        held = until_state(machine, "nvidia0", "elsewhere")
        assert (held["name_held_by"]["pid"], held["name_held_by"]["uid"]) == (other.pid, BOB)
        until_state(machine, "nvidia1", "squatted")
        until_state(machine, "nvidia2", "free")
        devices = machine.berth(ALICE, "run", "printenv", "BERTH_DEVICES").stdout
        assert devices == "nvidia2\n"
        assert machine.berth(ALICE, "run", "-n", "2", "--nonblock", "true").code == 123
        machine.gpus.leave(0, on.pid)
        until_state(machine, "nvidia0", "free")
        assert machine.berth(ALICE, "run", "-n", "2", "--nonblock", "true").code == 0


def test_name_of_root_blocks(shared_machine_of):
    machine = shared_machine_of(1)
    with stranger(machine, 0, names_of(machine, 1)):
        machine.open()
        document = json.loads(machine.berth(ALICE, "status", "--json").stdout)
        assert document["devices"][0]["state"] == "elsewhere"
        assert document["devices"][0]["name_held_by"]["user"] == "root"
        assert machine.berth(ALICE, "run", "--nonblock", "true").code == 123
    assert machine.berth(ALICE, "run", "--wait", "10s", "true").code == 0


def test_own_daemon_leaves_the_hardware_to_the_machines_pool(sandbox):
    if os.getuid() != 0:
        pytest.skip("needs root, to mount another /run")
    own = sandbox.directory / "own"
    own.mkdir(mode=0o700)
    script = (
        "unset BERTH_SYSROOT; mount -t tmpfs none /run && mkdir /run/berth && : >/run/berth/berth.sock"
        f" && exec berthd --own {own}"
    )
    done = sandbox.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script])
    if "unshare:" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert done.code == 125
    assert "cannot use the hardware: it belongs to the machine's pool at /run/berth/berth.sock" in done.stderr
