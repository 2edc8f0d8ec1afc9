# SPDX-License-Identifier: Apache-2.0
"""berth run --pin: commands run on the CPUs near the devices."""
import os

import pytest

ALLOWED = sorted(os.sched_getaffinity(0))

SHOW = "echo ${RANK-$BERTH_REPLICA}: $(grep Cpus_allowed_list /proc/self/status)"

several = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two CPUs")


def inventory_near(*cpus):
    """Return an inventory of devices with these CPUs near them; None means unknown."""
    rows = []
    for index, near in enumerate(cpus):
        known = "" if near is None else f', cpus: "{near}"'
        rows.append(f"- {{vendor: nvidia, index: {index}, name: NVIDIA A100, uuid: GPU-{index}, health: ok{known}}}\n")
    return "devices:\n" + "".join(rows)


def shown(done):
    """Return the CPUs of each copy by its number, which is empty if there is only one."""
    assert done.code == 0, done
    return {number: cpus.split()[1] for number, cpus in (line.split(": ", 1) for line in done.stdout.splitlines())}


def ranges(cpus):
    """Return the CPUs in the kernel's list format."""
    parts, cpus = [], sorted(cpus)
    while cpus:
        length = next((i for i in range(1, len(cpus)) if cpus[i] != cpus[0] + i), len(cpus))
        parts.append(f"{cpus[0]}" if length == 1 else f"{cpus[0]}-{cpus[length - 1]}")
        cpus = cpus[length:]
    return ",".join(parts)


@pytest.mark.parametrize("options", [[], ["--time", "1h"]], ids=["exec", "supervised"])
def test_command_is_pinned(pool_of, options):
    pool = pool_of(inventory_near(ALLOWED[0]))
    done = pool.berth("run", "--pin", *options, "sh", "-c", SHOW)
    assert (shown(done), done.stderr) == ({"": str(ALLOWED[0])}, "")
    done = pool.berth("run", *options, "sh", "-c", SHOW)
    assert shown(done) == {"": ranges(ALLOWED)}


@several
def test_all_devices_of_a_command_count(pool_of):
    pool = pool_of(inventory_near(ALLOWED[0], ALLOWED[1], None))
    assert shown(pool.berth("run", "--pin", "-n3", "sh", "-c", SHOW)) == {"": ranges(ALLOWED[:2])}


@several
def test_ranks_are_near_their_own(pool_of):
    pool = pool_of(inventory_near(ALLOWED[1], ALLOWED[0], ALLOWED[1]))
    wanted = {"0": str(ALLOWED[1]), "1": str(ALLOWED[0]), "2": str(ALLOWED[1])}
    for options in [[], ["--rank-mask", "one"], ["--label"]]:
        done = pool.berth("run", "--pin", "--ranks", "-n3", *options, "sh", "-c", SHOW)
        done = done._replace(stdout="".join(line[line.rindex(f"{line[0]}: C") :] for line in done.stdout.splitlines(True)))
        assert shown(done) == wanted


@several
@pytest.mark.parametrize("scheduling", ["gang", "best-effort"])
def test_replicas_are_near_theirs(pool_of, scheduling):
    pool = pool_of(inventory_near(ALLOWED[0], ALLOWED[1]))
    script = f"{SHOW}; echo $BERTH_REPLICA $BERTH_DEVICES >>devices"
    done = pool.berth("run", "--pin", "--replicas", "2", "--scheduling", scheduling, "sh", "-c", script)
    near = {"nvidia0": str(ALLOWED[0]), "nvidia1": str(ALLOWED[1])}
    devices = dict(line.split() for line in (pool.sandbox.directory / "devices").read_text().splitlines())
    assert shown(done) == {replica: near[device] for replica, device in devices.items()}


@several
def test_only_what_may_be_used(pool_of):
    """Only CPUs that taskset, a cgroup or Slurm allows are used."""
    pool = pool_of(inventory_near(f"{ALLOWED[0]},{ALLOWED[1]},65535", ALLOWED[0]))
    inside = ["taskset", "-c", str(ALLOWED[1]), "berth", "run", "--pin", "-v", "--device"]
    done = pool.sandbox.run([*inside, "nvidia0", "sh", "-c", SHOW])
    assert (shown(done), done.stderr) == ({"": str(ALLOWED[1])}, "berth: lease 1: nvidia0\n")
    done = pool.sandbox.run([*inside, "nvidia1", "sh", "-c", SHOW])
    assert shown(done) == {"": str(ALLOWED[1])}
    said = "berth: cannot pin the command: the CPUs near nvidia1 are not allowed for this process\n"
    assert done.stderr == f"berth: lease 2: nvidia1\n{said}"


def test_unknown_cpus(pool_of):
    pool = pool_of(inventory_near(None, "65535"))
    done = pool.berth("run", "--pin", "--ranks", "-n2", "sh", "-c", SHOW)
    assert (shown(done), done.stderr) == ({"0": ranges(ALLOWED), "1": ranges(ALLOWED)}, "")
    done = pool.berth("run", "-v", "--pin", "--ranks", "-n2", "sh", "-c", SHOW)
    assert shown(done) == {"0": ranges(ALLOWED), "1": ranges(ALLOWED)}
    assert done.stderr.splitlines()[2:] == [
        "berth: cannot pin the command: the CPUs near nvidia0 are not known",
        "berth: cannot pin the command: the CPUs near nvidia1 are not allowed for this process",
    ]


def test_on_the_cpu(pool_of):
    pool = pool_of(inventory_near(ALLOWED[0]))
    done = pool.berth("run", "--pin", "--or-cpu", "--vendor", "amd", "sh", "-c", SHOW)
    assert (shown(done), done.stderr) == ({"": ranges(ALLOWED)}, "")


def test_submitted(pool_of):
    pool = pool_of(inventory_near(ALLOWED[-1]))
    identity = pool.berth("submit", "--pin", "sh", "-c", SHOW).stdout.strip()
    assert pool.berth("wait", identity).code == 0
    assert pool.berth("logs", identity).stdout == f": Cpus_allowed_list: {ALLOWED[-1]}\n"
