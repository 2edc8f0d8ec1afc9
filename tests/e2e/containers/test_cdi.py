# SPDX-License-Identifier: Apache-2.0
"""berth cdi: CDI files for devices, CDI files of vendors, and the arguments for containers of a
lease."""
import json
import os
import stat

import cdi_rules
import nvml_machine
import pytest
import yaml
from fake_machine import FakeMachine, mixed
from machine_pool import MachinePool
from small_disk import SmallDisk

# Character devices that exist on every machine; they serve as device files.
NULL, ZERO, FULL = "/dev/null", "/dev/zero", "/dev/full"
COMMON = f"""devices:
- {{vendor: nvidia, index: 0, uuid: GPU-0, nodes: [{NULL}, {ZERO}]}}
- {{vendor: nvidia, index: 1, uuid: GPU-1, nodes: [{FULL}, {ZERO}]}}
- {{vendor: amd, index: 0}}
"""
LEFT_OUT = "berth: cdi: amd0: has no device file; left out\n"
HERE = {"BERTH_SYSROOT": None}
NAME = "berth-gpu.json"


@pytest.fixture
def inventory(sandbox):
    path = sandbox.directory / "common.yaml"
    path.write_text(COMMON)
    return path


def cdi(sandbox, *args, env=HERE):
    return sandbox.run(["berth", "cdi", *args], env=env)


def nodes_of(document):
    """Return the device files of each entry, by the entry's name."""
    return {
        device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]]
        for device in document["devices"]
    }


def as_on_host(node):
    """Check that the entry describes the device file as it is on the host."""
    status = os.lstat(node.get("hostPath", node["path"]))
    assert stat.S_ISCHR(status.st_mode)
    facts = {
        "type": "c",
        "major": os.major(status.st_rdev),
        "minor": os.minor(status.st_rdev),
        "fileMode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "permissions": "rw",
    }
    return {name: node[name] for name in facts} == facts


def check_nodes(document, prefix=""):
    for device in document["devices"]:
        for node in device["containerEdits"]["deviceNodes"]:
            assert as_on_host(node), node
            assert node.get("hostPath") == (f"{prefix}{node['path']}" if prefix else None)


def test_inventory(sandbox, inventory):
    done = cdi(sandbox, "--inventory", inventory)
    assert (done.code, done.stderr) == (0, LEFT_OUT)
    document = cdi_rules.check(done.stdout)
    assert document["kind"] == "berth/gpu"
    assert document["containerEdits"] == {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}
    assert nodes_of(document) == {"nvidia0": [NULL, ZERO], "nvidia1": [FULL, ZERO], "all": [NULL, ZERO, FULL]}
    check_nodes(document)
    assert cdi(sandbox, env={**HERE, "BERTH_INVENTORY": inventory}) == done


@pytest.mark.parametrize(
    "good, bad",
    [
        ('"0.5.0"', '"0.6.0"'),
        ('"berth/gpu"', '"berth"'),
        ('"nvidia1"', '"nvidia0"'),
        ('"nvidia1"', '"nvidia1="'),
        ('"major": 1', '"major": "1"'),
        ('"type": "c"', '"type": "char"'),
        ('"permissions": "rw"', '"permissions": "read"'),
        ('"fileMode": 438', '"mode": 438'),
        ('"fileMode": 438', '"fileMode": -1'),
        ('"path": "/dev/null",', ""),
        ('"path": "/dev/null"', '"path": "/dev/zero"'),
        ('"NVIDIA_VISIBLE_DEVICES=void"', '"NVIDIA_VISIBLE_DEVICES"'),
        ('"deviceNodes": [', '"deviceNodes": [], "nodes": ['),
        ('"kind"', '"kind": "a/b", "kind"'),
    ],
)
def test_rules_of_the_test(sandbox, inventory, good, bad):
    """The checks of CDI documents find the errors of an invalid document."""
    text = cdi(sandbox, "--inventory", inventory).stdout
    assert good in text
    with pytest.raises(AssertionError):
        cdi_rules.check(text.replace(good, bad, 1))


def test_output(sandbox, inventory):
    place = sandbox.directory / "cdi"
    printed = cdi(sandbox, "--inventory", inventory).stdout
    command = ["sh", "-c", f"umask 077; berth cdi --output {place} --inventory {inventory}"]
    for _ in range(2):  # first into a directory that berth makes, then over the existing file
        assert sandbox.run(command, env=HERE) == (0, "", LEFT_OUT)
        assert (place / NAME).read_text() == printed
        assert stat.S_IMODE((place / NAME).stat().st_mode) == 0o644
        assert os.listdir(place) == [NAME]
        (place / NAME).write_text("older")


def check_impossible(sandbox, *lines):
    """Check that berth writes nothing and prints these lines as the reason."""
    place = sandbox.directory / "cdi"
    for args in ([], ["--output", place]):
        assert cdi(sandbox, *args, env={}) == (120, "", "".join(f"berth: cdi: {line}\n" for line in lines))
    assert not place.exists()


def test_no_device(sandbox, machine):
    check_impossible(sandbox, "cannot write a CDI file: there is no device")


def test_no_device_files(sandbox, machine):
    """A recorded machine has no device files."""
    card = machine.add_intel(3)
    (machine.root / f"dev/dri/{card.card}").unlink()
    check_impossible(
        sandbox,
        f"{machine.root}{card.node_path()}: expected a character device, got a regular file; left out",
        "intel0: has no device file; left out",
        "cannot write a CDI file: no device has a device file",
    )


@pytest.fixture
def real_machine(sandbox):
    """A made-up machine with real device files."""
    if os.geteuid() != 0:
        pytest.skip("only root can make device files")
    made = FakeMachine(sandbox.directory / "machine", os.makedev(1, 7))
    sandbox.environment["BERTH_SYSROOT"] = str(made.root)
    sandbox.environment.setdefault("BERTH_PROBE_DEADLINE", "9s")
    return made


def test_hardware(sandbox, real_machine):
    cards = mixed(real_machine)
    os.chown(real_machine.root / "dev/dri" / cards["amd1"].render, 0, 44)
    os.chmod(real_machine.root / "dev/dri" / cards["amd1"].render, 0o660)
    done = cdi(sandbox, env={})
    assert (done.code, done.stderr) == (0, "")
    document = cdi_rules.check(done.stdout)
    found = nodes_of(document)
    own = {name: {card.node_path("render"), card.node_path("card")} for name, card in cards.items()}
    for name in ("amd0", "amd1"):
        own[name].add("/dev/kfd")
    assert {name: set(nodes) for name, nodes in found.items() if name != "all"} == own
    assert set(found["all"]) == set().union(*own.values())
    check_nodes(document, prefix=str(real_machine.root))


def make_node(machine, path):
    place = machine.root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 7))


def allow(machine, instance, minor):
    text = f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
    machine.write(machine.root / f"proc/driver/nvidia/capabilities/gpu0/mig/{instance}/access", text)
    make_node(machine, f"/dev/nvidia-caps/nvidia-cap{minor}")


@pytest.fixture
def partitioned(sandbox, real_machine):
    """One GPU with two MIG instances, and one whole GPU."""
    double = nvml_machine.Machine()
    for index in range(2):
        address = real_machine.pci(0x40 + index)
        double.gpu(name="NVIDIA A30", uuid=f"GPU-{index}", pci=(address, "0x20b710de", "0x12a210de"), minor=index)
        make_node(real_machine, f"/dev/nvidia{index}")
    for number in range(2):
        double.gpus[0].instance(number, name="NVIDIA A30 MIG 2g.12gb", uuid=f"MIG-{number}", gpu_instance=number + 1, compute_instance=0)
        allow(real_machine, f"gi{number + 1}", 12 + 9 * number)
        allow(real_machine, f"gi{number + 1}/ci0", 13 + 9 * number)
    make_node(real_machine, "/dev/nvidiactl")
    script = sandbox.directory / "nvml"
    double.write(script)
    sandbox.environment.update(double.environment(script))
    return real_machine


MIG = {
    "nvidia0.0": ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"],
    "nvidia0.1": ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"],
    "nvidia1": ["/dev/nvidia1", "/dev/nvidiactl"],
}


def test_partitions(sandbox, partitioned):
    """The GPU with instances cannot be leased, so it has no entry."""
    done = cdi(sandbox, env={})
    assert (done.code, done.stderr) == (0, "")
    found = nodes_of(cdi_rules.check(done.stdout))
    assert set(found.pop("all")) == {path for nodes in MIG.values() for path in nodes}
    assert found == MIG


def vendor_file(place, kind, devices, shared=(), **more):
    """Write a CDI file as vendors write it, in YAML unless `place` has another suffix."""
    edits = lambda paths: {"deviceNodes": [{"path": path} for path in paths]}
    document = {
        "cdiVersion": "0.5.0",
        "kind": kind,
        "containerEdits": {**edits(shared), "env": ["NVIDIA_VISIBLE_DEVICES=void"]},
        "devices": [{"name": name, "containerEdits": edits(nodes)} for name, nodes in devices.items()],
        **more,
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document) if place.suffix == ".json" else yaml.safe_dump(document))


def names(pool, *words, env=None):
    """Return BERTH_CDI_DEVICES of a command that berth run starts with these options."""
    done = pool.berth("run", *words, "--", "sh", "-c", 'echo "$BERTH_CDI_DEVICES"', env=env)
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout.strip()


@pytest.fixture
def partitioned_pool(sandbox, partitioned):
    pool = MachinePool(sandbox)
    yield pool
    pool.close()


def test_vendors_entries_of_partitions(partitioned, partitioned_pool):
    pool = partitioned_pool
    place = partitioned.root / "etc/cdi/nvidia.yaml"
    assert names(pool, "-n3") == "berth/gpu=nvidia0.0,berth/gpu=nvidia0.1,berth/gpu=nvidia1"
    caps = lambda *minors: ["/dev/nvidia0", *(f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in minors)]
    devices = {"0": ["/dev/nvidia0"], "0:0": caps(12, 13), "0:1": caps(21, 22), "1": ["/dev/nvidia1"]}
    devices["all"] = caps(12, 13, 21, 22)
    vendor_file(place, "nvidia.com/gpu", devices, ["/dev/nvidiactl"])
    assert names(pool, "-n3") == "nvidia.com/gpu=0:0,nvidia.com/gpu=0:1,nvidia.com/gpu=1"
    devices["MIG-1"] = caps(21, 22)
    vendor_file(place, "nvidia.com/gpu", devices, ["/dev/nvidiactl"])
    assert names(pool, "--device=nvidia0.1") == "nvidia.com/gpu=MIG-1"


VENDORS = """devices:
- {vendor: nvidia, index: 0, uuid: GPU-n0, nodes: [/dev/nvidia0, /dev/nvidiactl]}
- {vendor: nvidia, index: 1, uuid: GPU-n1, nodes: [/dev/nvidia1, /dev/nvidiactl]}
- {vendor: amd, index: 0, nodes: [/dev/kfd, /dev/dri/card0, /dev/dri/renderD128]}
- {vendor: intel, index: 0, nodes: [/dev/dri/card1, /dev/dri/renderD129]}
"""
ALL = ["-n4", "--vendor=any"]
OURS = ["berth/gpu=nvidia0", "berth/gpu=nvidia1", "berth/gpu=amd0", "berth/gpu=intel0"]


@pytest.fixture
def vendors(pool_of):
    """A pool, and the directories where vendors put their CDI files."""
    pool = pool_of(VENDORS)
    pool.static = pool.sandbox.directory / "sysroot/etc/cdi"
    pool.dynamic = pool.sandbox.directory / "sysroot/var/run/cdi"
    return pool


def offer(pool):
    shared = ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    gpus = {"0": ["/dev/nvidia0", "/dev/dri/card7"], "1": ["/dev/nvidia1"], "all": ["/dev/nvidia0", "/dev/nvidia1"]}
    vendor_file(pool.static / "nvidia.yaml", "nvidia.com/gpu", gpus, shared)
    radeon = ["/dev/kfd", "/dev/dri/card0", "/dev/dri/renderD128"]
    vendor_file(pool.static / "amd.json", "amd.com/gpu", {"0": radeon, "all": radeon}, cdiVersion="0.6.0")
    vendor_file(pool.dynamic / "intel.yaml", "intel.com/gpu", {"0000-03-00-0-0x56c0": ["/dev/dri/card1"]})


def test_vendors_entries(vendors):
    """Every device has one entry, regardless of the client that asks for it."""
    assert names(vendors, *ALL) == ",".join(OURS)
    offer(vendors)
    theirs = ["nvidia.com/gpu=0", "nvidia.com/gpu=1", "amd.com/gpu=0", "intel.com/gpu=0000-03-00-0-0x56c0"]
    assert names(vendors, *ALL) == ",".join(theirs)
    done = vendors.berth("reserve", "--for=1h", "--export", *ALL)
    assert f"export BERTH_CDI_DEVICES='{','.join(theirs)}'\n" in done.stdout
    [lease] = [line.split("'")[1] for line in done.stdout.splitlines() if line.startswith("export BERTH_LEASE=")]
    assert vendors.berth("release", lease).code == 0
    number = vendors.berth("submit", "--device=amd0", "--", "sh", "-c", 'echo "$BERTH_CDI_DEVICES"').stdout.strip()
    assert vendors.berth("wait", number).code == 0
    assert vendors.berth("logs", number).stdout == "amd.com/gpu=0\n"
    script = ["--", "sh", "-c", 'echo "$BERTH_CDI_DEVICES"']
    for words in (["--ranks", "--rank-mask=one"], ["--replicas=2", "-n1"]):
        done = vendors.berth("run", "-n2" if "--ranks" in words else "-n1", "--vendor=nvidia", *words, *script)
        assert sorted(done.stdout.split()) == theirs[:2], done
    # The same holds within a lease.
    outer = ["-n2", "--vendor=nvidia", "--", "berth", "run", "--device=nvidia1"]
    assert vendors.berth("run", *outer, *script).stdout == "nvidia.com/gpu=1\n"


def test_later_directories_win(vendors):
    offer(vendors)
    vendor_file(vendors.dynamic / "nvidia.yaml", "nvidia.com/gpu", {"0": ["/dev/nvidia1"]})
    # Entries 0 and 1 now both name the other device. The first match counts.
    assert names(vendors, "--device=nvidia0") == "berth/gpu=nvidia0"
    assert names(vendors, "--device=nvidia1") == "nvidia.com/gpu=0"
    turned = {"BERTH_CDI_DIRECTORIES": f"{vendors.dynamic}:{vendors.static}"}
    assert names(vendors, "--device=nvidia0", env=turned) == "nvidia.com/gpu=0"
    assert names(vendors, *ALL, env={"BERTH_CDI_DIRECTORIES": "/nowhere"}) == ",".join(OURS)


def test_doubled_entries_are_neither(vendors):
    offer(vendors)
    vendor_file(vendors.static / "other.yaml", "nvidia.com/gpu", {"0": ["/dev/nvidia0"]})
    assert names(vendors, "-n2", "--vendor=nvidia") == "berth/gpu=nvidia0,nvidia.com/gpu=1"


def test_files_that_are_none_do_not_matter(vendors):
    offer(vendors)
    (vendors.static / "broken.yaml").write_text("kind: [\n")
    (vendors.static / "broken.json").write_text("{")
    (vendors.static / "large.yaml").write_text("#" * (4 << 20) + "\n")
    os.mkfifo(vendors.static / "pipe.yaml")
    (vendors.static / "directory.json").mkdir()
    (vendors.static / "link.yaml").symlink_to("nowhere")
    (vendors.static / "endless.yaml").symlink_to("/dev/zero")
    vendor_file(vendors.static / NAME, "berth/gpu", {"nvidia0": ["/dev/nvidia1"]})
    assert names(vendors, "-n2", "--vendor=nvidia") == "nvidia.com/gpu=0,nvidia.com/gpu=1"
    done = vendors.berth("run", "-v", "--vendor=nvidia", "true")
    assert done.code == 0
    skipped = [line for line in done.stderr.splitlines() if line.startswith("berth: skipping a CDI file: ")]
    assert [os.path.basename(line.split(": ")[2].split(":")[0]) for line in skipped] == [
        "broken.json",
        "broken.yaml",
        "directory.json",
        "endless.yaml",
        "large.yaml",
        "pipe.yaml",
    ]


def test_unreadable_files_do_not_matter(vendors):
    if os.geteuid() == 0:
        pytest.skip("root can read every file")
    offer(vendors)
    (vendors.static / "nvidia.yaml").chmod(0)
    assert names(vendors, *ALL).startswith("berth/gpu=nvidia0,berth/gpu=nvidia1,amd.com/gpu=0")
    vendors.static.chmod(0)
    assert names(vendors, "--device=amd0") == "berth/gpu=amd0"
    vendors.static.chmod(0o700)


def arguments(pool, how, *words, env=None):
    done = pool.berth("run", *words, "--", "berth", "cdi", "--arguments", how, env=env)
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


def test_arguments(vendors):
    """The arguments that podman and docker get for a lease."""
    offer(vendors)
    (vendors.static / "amd.json").unlink()
    found = arguments(vendors, "cdi", "-n2", "--vendor=any", "--device=nvidia1,amd0")
    lease = [line for line in found if line.startswith("--env=BERTH_LEASE=")]
    common = [*lease, f"--env=BERTH_SOCKET={vendors.socket}", "--env=BERTH_DEVICES=nvidia1,amd0"]
    common += ["--env=NVIDIA_VISIBLE_DEVICES=void"]
    assert found == ["--device=nvidia.com/gpu=1", "--device=berth/gpu=amd0", *common]
    assert lease[0].rpartition("=")[2].isdigit()
    root = vendors.sandbox.directory / "sysroot"
    found = arguments(vendors, "nodes", "--device=nvidia1")
    assert found[:2] == [f"--device={root}/dev/nvidia1:/dev/nvidia1", f"--device={root}/dev/nvidiactl:/dev/nvidiactl"]
    assert found[2].startswith("--env=BERTH_LEASE=")


def test_arguments_of_this_machine(pool_of):
    pool = pool_of(COMMON)
    found = arguments(pool, "nodes", "-n2", "--vendor=nvidia", env=HERE)
    assert found[:3] == [f"--device={path}" for path in (NULL, ZERO, FULL)]
    done = pool.berth("run", "--device=amd0", "--", "berth", "cdi", "--arguments", "nodes", env=HERE)
    wanted = "berth: cdi: --arguments: BERTH_DEVICE_NODES: expected device files of 'amd0', got none\n"
    assert done == (2, "", wanted)


def test_arguments_of_ranks_and_replicas(vendors):
    done = vendors.berth("run", "-n2", "--vendor=nvidia", "--ranks", "--label", "--", "berth", "cdi", "--arguments=cdi")
    assert done.code == 0
    lines = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("1: ")]
    for word in ("RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "MASTER_ADDR=127.0.0.1", "BERTH_BACKEND=nccl"):
        assert f"--env={word}" in lines, done.stdout
    done = vendors.berth("run", "--vendor=nvidia", "--replicas=2", "--", "berth", "cdi", "--arguments=cdi")
    assert sorted(line for line in done.stdout.splitlines() if "REPLICA" in line) == [
        "--env=BERTH_REPLICA=0",
        "--env=BERTH_REPLICA=1",
    ]


def test_arguments_of_mps(mps_pool):
    """A container on a device shared with MPS finds the MPS server, and its limits hold."""
    found = arguments(mps_pool, "cdi", "--sharing=mps", "--share=0.25", "--memory=1GiB")
    [pipes] = [line.rpartition("=")[2] for line in found if line.startswith("--env=CUDA_MPS_PIPE_DIRECTORY=")]
    assert {"--ipc=host", f"--volume={pipes}:{pipes}"} < set(found)
    assert "--env=CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25" in found
    assert "--env=CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1024M" in found


def test_arguments_on_the_cpu(vendors):
    """A lease without devices gives a container no device and says so in the environment."""
    found = arguments(vendors, "cdi", "--or-cpu", "--model=no such")
    assert found == ["--env=BERTH_DEVICES=", "--env=NVIDIA_VISIBLE_DEVICES=void"]


@pytest.mark.parametrize("how", ["cdi", "nodes"])
def test_arguments_without_a_lease(sandbox, how):
    done = cdi(sandbox, "--arguments", how)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("berth: cdi: --arguments: not inside a lease (no BERTH_DEVICES); ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args, wanted",
    [
        (["--arguments", "all"], "--arguments: expected one of cdi, nodes, got 'all'"),
        (["--arguments", "cdi", "--output", "x"], "--arguments: expected no other option, got --output"),
        (["--arguments", "cdi", "--inventory", "x"], "--arguments: expected no other option, got --inventory"),
        (["--output", ""], "--output: expected a directory, got nothing"),
        (["x"], "expected only options, got 'x'"),
        (["--inventory", "none.yaml"], "cannot read none.yaml: No such file or directory"),
        (["--output", "no/such", "--inventory", "common.yaml"], "cannot write into no/such: No such file or directory"),
        (["--output", "common.yaml", "--inventory", "common.yaml"], "cannot write into common.yaml: Not a directory"),
    ],
)
def test_wrong_words(sandbox, inventory, args, wanted):
    before = sorted(os.listdir(sandbox.directory))
    done = cdi(sandbox, *args)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.removeprefix(LEFT_OUT) == f"berth: cdi: {wanted}\n"
    assert sorted(os.listdir(sandbox.directory)) == before


@pytest.fixture
def disk(sandbox):
    small = SmallDisk(sandbox, "64k")
    yield small
    small.close()


def test_full_disk(sandbox, inventory, disk):
    """On a full disk, the older file stays and no other file is left beside it."""
    place = disk.path / "cdi"
    command = [*disk.inside, "berth", "cdi", "--output", place, "--inventory", inventory]
    disk.fill()
    done = sandbox.run(command, env=HERE)
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr == f"{LEFT_OUT}berth: cdi: cannot write into {place}: No space left on device\n"
    assert os.listdir(disk.outside) == ["filler"]
    (disk.outside / "filler").unlink()
    assert sandbox.run(command, env=HERE).code == 0
    before = (disk.outside / "cdi" / NAME).read_text()
    disk.fill()
    assert sandbox.run(command, env=HERE).code == 125
    assert os.listdir(disk.outside / "cdi") == [NAME]
    assert (disk.outside / "cdi" / NAME).read_text() == before


def test_read_only_disk(sandbox, inventory):
    disk = sandbox.directory / "disk"
    disk.mkdir()
    alone = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "--propagation", "private", "sh", "-c"]
    mount = f"mount -t tmpfs -o ro none {disk}"
    done = sandbox.run([*alone, mount])
    if done.code != 0:
        pytest.skip("no mount namespaces here: " + done.stderr.strip())
    for place in (disk, disk / "cdi"):
        done = sandbox.run([*alone, f"{mount} && berth cdi --output {place} --inventory {inventory}"], env=HERE)
        assert done == (125, "", f"{LEFT_OUT}berth: cdi: cannot write into {place}: Read-only file system\n")


def test_closed_directory(sandbox, inventory):
    if os.geteuid() == 0:
        pytest.skip("root can access every file")
    place = sandbox.directory / "closed"
    place.mkdir(mode=0o500)
    done = cdi(sandbox, "--output", place, "--inventory", inventory)
    assert done == (125, "", f"{LEFT_OUT}berth: cdi: cannot write into {place}: Permission denied\n")
    assert os.listdir(place) == []


def test_output_that_takes_no_more(sandbox, inventory):
    done = sandbox.run(["sh", "-c", f"berth cdi --inventory {inventory} >/dev/full"], env=HERE)
    assert done.code == 125
    assert done.stderr == f"{LEFT_OUT}berth: cannot write standard output: No space left on device\n"
