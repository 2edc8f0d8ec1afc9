# SPDX-License-Identifier: Apache-2.0
"""All of berth on a made-up machine, in a mount namespace that shows it as the real one."""
import json

import wire
from fake_machine import mixed
from users import user_name


def look(namespace):
    done = namespace.run("berth", "devices", "--json")
    assert (done.code, done.stderr) == (0, ""), done
    document = json.loads(done.stdout)
    return {device["id"]: device for device in document["devices"]}, document


def test_mixed_vendors(namespace):
    cards = mixed(namespace.machine)
    namespace.enter()
    devices, document = look(namespace)
    assert document["problems"] == []
    assert list(devices) == list(cards)
    for name, card in cards.items():
        assert devices[name]["health"] == "ok", name
        assert {card.node_path("render"), card.node_path("card")} <= set(devices[name]["nodes"])
    assert devices["amd0"]["nodes"][0] == "/dev/kfd"
    assert devices["amd0"]["memory_total"] == 32 << 30
    # The real machine's CPUs are still visible.
    assert namespace.run("test", "-e", "/sys/devices/system/cpu/online").code == 0


def test_a_machine_with_nothing_but_a_screen(namespace):
    namespace.machine.add_display_only(7)
    namespace.enter()
    done = namespace.run("berth", "devices")
    assert done == (0, "No GPU found on this machine. To try berth without one: --inventory FILE\n", "")


def test_a_card_without_its_device_file_is_named(namespace):
    cards = mixed(namespace.machine)
    (namespace.outside / "dev/dri" / cards["intel1"].render).unlink()
    namespace.enter()
    devices, document = look(namespace)
    assert [name for name in devices if name.startswith("intel")] == ["intel0"]
    [problem] = document["problems"]
    assert problem["backend"] == "intel"
    assert cards["intel1"].pci in problem["message"] and cards["intel1"].render in problem["message"]


def test_a_card_that_goes_and_one_that_hangs(namespace, impatient):
    cards = mixed(namespace.machine)
    namespace.enter()
    cards["amd1"].remove()
    cards["intel1"].hang("tile0/gt0/freq0/act_freq")
    devices, document = look(namespace)
    assert list(devices) == [name for name in cards if name != "amd1"]
    assert [name for name, device in devices.items() if device["health"] != "ok"] == ["intel1"]
    assert devices["intel1"]["health"] == "sick"
    [problem] = document["problems"]
    assert problem["message"].startswith("intel1 (")
    cards["amd1"].restore()
    cards["intel1"].mend("tile0/gt0/freq0/act_freq")
    devices, document = look(namespace)
    assert list(devices) == list(cards)
    assert document["problems"] == []


def test_a_process_that_has_a_device_open(namespace):
    cards = mixed(namespace.machine)
    namespace.enter()
    node = cards["amd1"].node_path()
    with namespace.start("sh", "-c", f"exec 5<>{node}; exec cat") as user:
        user.send("open\n")
        user.wait_for_line("^open$")  # which cat prints
        devices, document = look(namespace)
        assert document["problems"] == []
        [process] = devices["amd1"]["processes"]
        assert process["command"] == "cat"
        assert process["user"] == user_name()
        assert process["memory"] is None
        assert process["lease"] is None
        assert [name for name, device in devices.items() if device["processes"]] == ["amd1"]
    assert look(namespace)[0]["amd1"]["processes"] == []


def test_a_lease_and_who_uses_it(namespace, namespace_pool):
    namespace.machine.add_intel(3)
    namespace.machine.add_intel(4)
    namespace.enter()
    script = 'exec 5<>"${BERTH_DEVICE_NODES%%:*}"; echo $BERTH_LEASE $BERTH_DEVICES; exec cat'
    holder = namespace_pool.start("run", "--device", "intel1", "--", "sh", "-c", script)
    lease, device = holder.wait_for_line("intel").split()
    assert device == "intel1"
    devices, _ = look(namespace)
    assert [process["lease"] for process in devices["intel1"]["processes"]] == [int(lease)]
    done = namespace_pool.berth("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert (done.code, done.stdout) == (0, "intel0\n")
    namespace_pool.let_go(holder)


def test_the_daemon_goes_on_while_one_hangs(namespace, impatient, namespace_pool):
    cards = mixed(namespace.machine)
    del cards["apple0"], cards["dri1"]  # other devices share their names
    namespace.enter()
    anywhere = ("--device", ",".join(cards), "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert namespace_pool.berth("run", *anywhere).stdout == "intel0\n"
    cards["intel0"].hang("vendor")
    namespace_pool.until_state("intel0", "SICK")
    assert namespace_pool.berth("run", *anywhere).stdout == "intel1\n"
    cards["intel1"].remove()
    namespace_pool.until(lambda slots: slots["intel1"].get("state", 0) == wire.STATES["GONE"], "state GONE of intel1")
    assert namespace_pool.berth("run", *anywhere).stdout == "amd0\n"
    cards["intel0"].mend("vendor")
    namespace_pool.until_state("intel0", "FREE")
    assert namespace_pool.berth("run", *anywhere).stdout == "intel0\n"
