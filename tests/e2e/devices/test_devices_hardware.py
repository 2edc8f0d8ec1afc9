# SPDX-License-Identifier: Apache-2.0
"""berth devices and berth plan on hardware, as a scripted probe reports it."""
import json
import os
import re
import signal
import tarfile
import time

import pytest
from scripted_pool import NOW, lease, show, slot
from users import user_name
from waiting import until

ENTER = rb"\x1b\[\?1049h\x1b\[\?25l"
LEAVE = rb"\x1b\[\?25h\x1b\[\?1049l"
GIB = 1 << 30
OK, SICK = 1, 2
NVLINK, PIX, SYS = 0, 3, 7

MEMBERS = (
    "id slot vendor index name kind uuid pci parent memory_total memory_free cap numa cpus tiles utilization"
    " temperature_c power_w frequency_hz health health_reason asleep old sampled_at nodes processes"
)
PROCESS_MEMBERS = "pid user command memory lease container uid since squats"


def gpu(index, **values):
    usual = {
        "id": f"nvidia{index}",
        "name": "NVIDIA A100-SXM4-80GB",
        "uuid": f"GPU-{index}",
        "pci": f"0000:{index + 1:02x}:00.0",
        "memory_total": 80 * GIB,
        "memory_free": 79 * GIB,
        "utilization": 30,
        "health": OK,
    }
    return {**usual, **values}


class Hardware:
    """A machine whose probe reports what the test specifies."""

    def __init__(self, sandbox, source_root):
        self.sandbox = sandbox
        self.script = sandbox.directory / "probe.json"
        sandbox.environment["BERTH_PROBE"] = str(source_root / "tests/support/daemons/scripted_probe.py")
        sandbox.environment["BERTH_PROBE_SCRIPT"] = str(self.script)
        del sandbox.environment["BERTH_SYSROOT"]  # its processes are those of this machine
        self.is_now()

    def is_now(self, *devices, **script):
        new = self.script.with_suffix(".new")
        new.write_text(json.dumps({"devices": devices, **script}))
        new.rename(self.script)

    def log(self):
        return self.script.with_suffix(".json.log").read_text().splitlines()

    def berth(self, *args, **options):
        return self.sandbox.run(["berth", *args], **options)

    def document(self, *args, **options):
        done = self.berth("devices", "--json", *args, **options)
        assert (done.code, done.stderr) == (0, "")
        return json.loads(done.stdout)


@pytest.fixture
def hardware(sandbox, source_root):
    return Hardware(sandbox, source_root)


# ---- Once ----


def test_every_member_is_there(hardware):
    user = {"pid": 77, "uid": os.getuid(), "memory": GIB, "command": "train", "container": "c0ffee" * 8}
    hardware.is_now(
        gpu(0, kind=2, frequency=1410 * 10**6, temperature=64500, power=300250, processes=[user, {"pid": 78}]),
        {"id": "intel0", "kind": 1, "asleep": True},
        gpu(1, health=SICK, health_reason="fell off the bus", old=True, memory_free=None),
        links=[{"one": 0, "other": 2, "kind": NVLINK, "lanes": 12}],
        problems=[{"backend": "nvidia", "message": "nvidia1 fell off the bus"}],
    )
    document = hardware.document()
    assert list(document) == ["schema", "devices", "links", "problems"]
    assert document["schema"] == "berth.devices/1"
    first, second, third = document["devices"]
    assert list(first) == list(second) == MEMBERS.split()
    assert (first["slot"], first["kind"], first["frequency_hz"]) == (0, "discrete", 1410 * 10**6)
    assert (first["utilization"], first["temperature_c"], first["power_w"]) == (0.03, 64.5, 300.25)
    assert (first["health"], first["health_reason"], first["asleep"], first["old"]) == ("ok", None, False, False)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["sampled_at"])
    assert [list(process) for process in first["processes"]] == [PROCESS_MEMBERS.split()] * 2
    assert first["processes"][0] == {
        "pid": 77,
        "user": user_name(),
        "command": "train",
        "memory": GIB,
        "lease": None,
        "container": "c0ffee" * 8,
        "uid": os.getuid(),
        "since": None,
        "squats": None,
    }
    assert set(first["processes"][1].values()) == {78, None}
    assert (second["kind"], second["asleep"], second["health"], second["memory_total"]) == (
        "integrated",
        True,
        None,
        None,
    )
    assert (third["health"], third["health_reason"], third["old"]) == ("sick", "fell off the bus", True)
    assert document["links"] == [{"between": ["nvidia0", "nvidia1"], "kind": "nvlink", "lanes": 12}]
    assert document["problems"] == [{"backend": "nvidia", "message": "nvidia1 fell off the bus"}]


def test_table_with_processes_and_problems(hardware):
    hardware.is_now(
        gpu(0, processes=[{"pid": 77, "uid": 4 * 10**9, "memory": GIB, "command": "python train.py"}]),
        gpu(1, asleep=True, memory_free=None, utilization=None),
        problems=[{"backend": "amd", "message": "no \x1b[31maccess"}],
    )
    done = hardware.berth("devices")
    assert (done.code, done.stderr) == (0, "berth: amd: no \ufffd[31maccess\n")
    assert done.stdout == (
        "ID       MODEL             MEMORY  UTIL  PCI           HEALTH  NOTE\n"
        "nvidia0  A100-SXM4-80GB  1/80 GiB    3%  0000:01:00.0  ok\n"
        "nvidia1  A100-SXM4-80GB  -/80 GiB     -  0000:02:00.0  ok      asleep\n"
        "\n"
        "DEVICE   PID  USER        MEMORY  COMMAND\n"
        "nvidia0   77  4000000000   1 GiB  python train.py\n"
    )


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_asked_for(hardware, columns):
    words = "python " + "train " * 100
    hardware.is_now(
        *(
            gpu(
                i,
                health=SICK,
                health_reason="a long story " * 20,
                processes=[{"pid": 10**6 + i, "uid": 4 * 10**9, "command": words, "container": "c" * 64, "memory": GIB}],
            )
            for i in range(16)
        ),
        links=[
            {"one": i, "other": j, "kind": NVLINK if i // 4 == j // 4 else SYS, "lanes": 12 if i // 4 == j // 4 else 0}
            for j in range(16)
            for i in range(j)
        ],
    )
    lines = hardware.berth("devices", env={"COLUMNS": columns}).stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("nvidia15 ") and "a long" in line for line in lines)
    assert any(line.startswith("nvidia15 ") and "python train" in line for line in lines)
    assert any(re.match(r"D +nvidia12-15 +sys +sys +sys +nv12$", line) for line in lines)


def test_nothing_found(hardware):
    done = hardware.berth("devices")
    assert done == (0, "No GPU found on this machine. To try berth without one: --inventory FILE\n", "")
    assert hardware.document() == {"schema": "berth.devices/1", "devices": [], "links": [], "problems": []}


def test_nothing_found_where_something_could_not_be_read(hardware):
    hardware.is_now(problems=[{"backend": "nvidia", "message": "the driver does not answer"}])
    assert hardware.berth("devices") == (
        0,
        "No GPU found on this machine, but reading some of the hardware failed.\n",
        "berth: nvidia: the driver does not answer\n",
    )


def test_an_inventory_goes_before_the_hardware(hardware, source_root):
    done = hardware.berth("devices", "--inventory", source_root / "examples/mig.yaml")
    assert "nvidia0.2" in done.stdout
    assert not hardware.script.with_suffix(".json.log").exists()


def test_many_partitions_of_a_recorded_machine(sandbox, source_root):
    """With the real probe: eight MI300X as 63 partitions, all linked by the fabric."""
    recorded = source_root.parent / "shared/data/machines/kfd-topo-mi300-cpx.tar.xz"
    if not recorded.exists():
        pytest.skip(f"no {recorded.name}")
    kfd = sandbox.directory / "sysroot/sys/class/kfd/kfd"
    kfd.mkdir(parents=True)
    with tarfile.open(recorded) as archive:
        archive.extractall(kfd)
    done = sandbox.run(["berth", "devices"], env={"COLUMNS": "80"})
    lines = done.stdout.splitlines()
    assert done.code == 0
    assert max(map(len, lines)) <= 80
    assert lines[-3:] == ["LINKS  DEVICES  A", "A      amd0-62  xgmi", "xgmi: Infinity Fabric"]
    document = json.loads(sandbox.run(["berth", "devices", "--json"]).stdout)
    assert [device["slot"] for device in document["devices"]] == list(range(63))
    assert len({device["parent"] for device in document["devices"]}) == 8
    done = sandbox.run(["berth", "plan", "-n", "8"])
    assert done.code == 0 and done.stdout.startswith("now: amd")


# ---- Failures ----


def test_no_probe(hardware):
    wanted = "cannot start /nonexistent: No such file or directory\n"
    for verb in ("devices", "plan"):
        done = hardware.berth(verb, env={"BERTH_PROBE": "/nonexistent"})
        assert done == (125, "", f"berth: {verb}: {wanted}")


@pytest.mark.parametrize("behaviour", ["die", "garbage", "hang", "old number"])
def test_a_probe_that_is_no_good(hardware, behaviour):
    hardware.is_now(gpu(0), behaviour=behaviour)
    begin = time.monotonic()
    done = hardware.berth("devices", "--deadline", "100ms")
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr.startswith("berth: devices: ") and done.stderr.count("\n") == 1
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "text, found",
    [
        ("soon", "expected a duration"),
        ("-1s", "expected a duration"),
        ("", "expected a duration"),
        ("1ms", "expected 10ms to 10m, got '1ms'"),
        ("1h", "expected 10ms to 10m, got '1h'"),
    ],
)
def test_deadlines_that_are_none(hardware, text, found):
    done = hardware.berth("devices", f"--deadline={text}")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: devices: --deadline: {found}")
    if text:
        done = hardware.berth("devices", env={"BERTH_PROBE_DEADLINE": text})
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr.startswith(f"berth: devices: BERTH_PROBE_DEADLINE: {found}")


def test_a_deadline_is_kept(hardware):
    hardware.is_now(gpu(0), behaviour="late", delay=0.2)
    assert hardware.berth("devices", env={"BERTH_PROBE_DEADLINE": "10s"}).code == 0
    assert hardware.berth("devices", "--deadline", "1m").code == 0


# ---- Masks ----


def test_masks_hide(hardware):
    hardware.is_now(
        *map(gpu, range(8)),
        {"id": "dri0"},
        links=[{"one": i, "other": i + 1, "kind": PIX} for i in range(7)],
    )
    env = {"CUDA_VISIBLE_DEVICES": "3,2", "NVIDIA_VISIBLE_DEVICES": "all"}
    done = hardware.berth("devices", env=env)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.endswith("\n\n6 devices are hidden by CUDA_VISIBLE_DEVICES\n")
    assert "nvidia2" in done.stdout and "nvidia4" not in done.stdout
    document = hardware.document(env=env)
    assert [(device["id"], device["slot"]) for device in document["devices"]] == [
        ("nvidia2", 2),
        ("nvidia3", 3),
        ("dri0", 8),
    ]
    assert [link["between"] for link in document["links"]] == [["nvidia2", "nvidia3"]]


def test_masks_hide_all(hardware):
    hardware.is_now(gpu(0))
    env = {"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": "void"}
    assert hardware.berth("devices", env=env) == (
        0,
        "No GPU visible here: 1 device is hidden by CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES.\n",
        "",
    )
    assert hardware.document(env=env)["devices"] == []


# ---- With a pool ----


def test_slots_and_leases_are_the_pools(hardware, sandbox, daemon):
    """The process is a child of the holder. The pool has only some of the devices, in another
    order."""
    with sandbox.start(["sh", "-c", "sleep 60 & echo $!; wait"]) as holder:
        child = int(holder.wait_for_line(r"^\d+$"))
        hardware.is_now(gpu(0, processes=[{"pid": child}, {"pid": os.getpid()}]), gpu(1), gpu(2))
        with sandbox.start(["berth", "devices", "--json"], env=daemon.env) as program:
            show(
                daemon.accept(),
                slots=[slot(1), slot(0, "LEASED")],
                leases=[lease(12, ["nvidia0"], pid=holder.process.pid), lease(13, ["nvidia1"], pid=1 << 30)],
            )
            assert program.wait() == 0
        document = json.loads(program.text())
        os.kill(child, signal.SIGKILL)
        assert holder.wait() == 0
    assert [device["slot"] for device in document["devices"]] == [1, 0, None]
    assert [process["lease"] for process in document["devices"][0]["processes"]] == [12, None]


def test_what_the_pool_knows_of_processes(hardware, sandbox, daemon):
    pids = (1 << 30, (1 << 30) + 1)
    known = {"pid": pids[0], "started": NOW, "squats": True}
    hardware.is_now(gpu(0, processes=[{"pid": pid} for pid in pids]))
    for args in (["--json"], []):
        with sandbox.start(["berth", "devices", *args], env=daemon.env) as program:
            show(daemon.accept(), slots=[slot(0, "SQUATTED", device={"processes": [known]})])
            assert program.wait() == 0
        if args:
            [device] = json.loads(program.text())["devices"]
            told = [(process["since"], process["squats"]) for process in device["processes"]]
            assert told == [("2026-11-16T12:00:00.000Z", True), (None, False)]
        else:
            assert re.search(rf"^nvidia0 +{pids[0]} .*squats", program.text(), re.MULTILINE)
            assert re.search(rf"^nvidia0 +{pids[1]}", program.text(), re.MULTILINE)


def test_the_pool_of_an_inventory_says_nothing_of_hardware(hardware, sandbox, daemon):
    hardware.is_now(gpu(0, processes=[{"pid": os.getpid()}]))
    with sandbox.start(["berth", "devices", "--json"], env=daemon.env) as program:
        pool = {"slots": [slot(1), slot(0, "LEASED")], "leases": [lease(12, ["nvidia0"], pid=os.getpid())]}
        show(daemon.accept(), **pool, inventory="/some/file")
        assert program.wait() == 0
    [device] = json.loads(program.text())["devices"]
    assert (device["slot"], device["processes"][0]["lease"]) == (0, None)


def test_a_pool_that_does_not_answer_is_not_waited_for(hardware, daemon):
    hardware.is_now(gpu(0))
    assert hardware.document(env=daemon.env)["devices"][0]["slot"] == 0
    assert hardware.document(env={"BERTH_SOCKET": "/nonexistent"})["devices"][0]["slot"] == 0


def test_no_pool_is_started(hardware, sandbox):
    hardware.document()
    assert not (sandbox.directory / "run").exists()


# ---- Watching ----


def test_watch_on_a_terminal(hardware, sandbox):
    hardware.is_now(gpu(0))
    with sandbox.terminal(["berth", "devices", "--watch"]) as terminal:
        terminal.wait_for(ENTER)
        terminal.wait_for(rb"nvidia0")
        hardware.is_now(gpu(1), problems=[{"backend": "amd", "message": "no access"}])
        terminal.wait_for(rb"nvidia1")
        terminal.wait_for(rb"amd: no access")
        terminal.send("\x03")
        terminal.wait_for(LEAVE)
        assert terminal.wait() == -signal.SIGINT
    assert [line for line in hardware.log() if line.startswith("start")] == hardware.log()[:1]


def test_watch_in_a_pipe(hardware, sandbox):
    hardware.is_now(gpu(0, memory_free=None, utilization=None))
    with sandbox.start(["berth", "devices", "--watch"]) as program:
        program.wait_for_line(r"^20\d\d-\d\d-\d\dT")
        program.wait_for_line("^nvidia0 ")
        until(lambda: len(hardware.log()) > 3, "a third probe")
        hardware.is_now(gpu(0), problems=[{"backend": "amd", "message": "no access"}])
        program.wait_for_line("^amd: no access")
        program.kill(signal.SIGTERM)
        assert program.wait() == -signal.SIGTERM
    # There is one block for each change, and no block for unchanged reports.
    assert len(re.findall("^20", program.text(), re.MULTILINE)) == 2
    assert program.text("stderr") == ""


def test_watch_as_json(hardware, sandbox):
    hardware.is_now({"id": "amd0"})
    with sandbox.start(["berth", "devices", "--watch", "--json"]) as program:
        program.wait_for_line(r'^{"schema":"berth.devices/1"')
        hardware.is_now({"id": "amd0", "asleep": True})
        program.wait_for_line('"asleep":true')
        program.kill(signal.SIGINT)
        assert program.wait() == -signal.SIGINT
        documents = list(map(json.loads, program.text().splitlines()))
    assert [document["devices"][0]["asleep"] for document in documents] == [False, True]


def test_watch_ends_when_nobody_reads(hardware, sandbox):
    hardware.is_now(gpu(0))
    done = sandbox.run(["sh", "-c", "berth devices --watch --json | head -n 1"])
    assert done.code == 0 and done.stdout.count("\n") == 1


def test_watch_outlives_the_probe(hardware, sandbox):
    """The last report is marked old until the next probe has answered."""
    hardware.is_now({"id": "amd0"})
    with sandbox.start(["berth", "devices", "--watch", "--json"]) as program:
        program.wait_for_line('"old":false')
        hardware.is_now({"id": "amd0"}, behaviour="die")
        program.wait_for_line('"old":true.*"problems":.{"backend":"probe"')
        hardware.is_now({"id": "amd1"})
        program.wait_for_line('"amd1".*"old":false.*"problems":..}')
        program.kill(signal.SIGTERM)
        assert program.wait() == -signal.SIGTERM
    assert len([line for line in hardware.log() if line.startswith("start")]) >= 2


def test_watch_an_inventory(hardware, sandbox, source_root):
    """berth prints an inventory once, because it cannot change."""
    inventory = source_root / "examples/mig.yaml"
    with sandbox.start(["berth", "devices", "--watch", "--inventory", inventory]) as program:
        program.wait_for_line("nvidia0.2")
        program.kill(signal.SIGTERM)
        assert program.wait() == -signal.SIGTERM


# ---- Plans ----


def test_plan_on_hardware(hardware):
    hardware.is_now(gpu(0, health=SICK), gpu(1), gpu(2), problems=[{"backend": "amd", "message": "no access"}])
    done = hardware.berth("plan", "-n", "2")
    assert (done.code, done.stderr) == (0, "berth: amd: no access\n")
    assert done.stdout.startswith("now: nvidia1,nvidia2\n")
    done = hardware.berth("plan", "-n", "2", env={"CUDA_VISIBLE_DEVICES": "1"})
    assert done.code == 120 and done.stdout.startswith("never\n")
    assert hardware.berth("plan", "--busy", "nvidia7").code == 2


def test_plan_for_a_pool_where_hardware_cannot_be_read(hardware, sandbox, daemon):
    hardware.is_now(gpu(0), behaviour="die")
    with sandbox.start(["berth", "plan"], env=daemon.env) as program:
        client = daemon.accept()
        show(client, slots=[slot(3)])
        client.say("DONE", client.expect("TEST"))
        assert program.wait() == 0
        assert program.text().startswith("now: nvidia3\n")
        assert program.text("stderr") == ""
