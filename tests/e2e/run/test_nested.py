# SPDX-License-Identifier: Apache-2.0
"""berth run within a lease: it uses only the lease's devices and ends with the lease."""
import os
import signal
import subprocess
from pathlib import Path

import processes
import pytest
import wire
from many_commands import ManyCommands
from waiting import look, until, until_served

KINDS = pytest.mark.parametrize("options", ["", "--time 1h"], ids=["execed", "supervised"])


def shell(pool, script, *options):
    """Start a shell within a lease that reads commands from its input."""
    program = pool.start("run", *options, "sh", "-c", f"echo lease $BERTH_LEASE $BERTH_DEVICES; {script}")
    _, program.lease, devices = program.wait_for_line("^lease ").split()
    program.devices = devices.split(",")
    return program


def end_input(program):
    program.process.stdin.close()
    program.process.stdin = None


def inner(pool, parent):
    """Return the leases within a lease, and the claims within it."""
    seen = look(pool)
    return (
        [lease for lease in seen["leases"] if str(lease.get("parent", 0)) == parent],
        [claim for claim in seen["claims"] if str(claim.get("parent", 0)) == parent],
    )


def until_inner_claim(pool, program):
    until(lambda: inner(pool, program.lease)[1], "the claim inside")


@KINDS
def test_siblings(pool, options):
    """The first two get one device each, and the third waits for one of them, regardless of the
    queue outside."""
    program = shell(pool, "exec sh", "-n2")
    others = pool.hold("-n6")
    with pool.start("run", "true") as outside:
        until(lambda: look(pool)["claims"], "the claim outside")
        for i in range(3):
            script = f"echo {i} $BERTH_DEVICES $CUDA_VISIBLE_DEVICES; exec sleep 1000"
            program.send(f"berth run {options} sh -c '{script}' &\n")
        first, second = (program.wait_for_line("nvidia").split() for _ in range(2))
        assert {first[1], second[1]} == set(program.devices)
        assert [first[1], second[1]] == [f"nvidia{first[2]}", f"nvidia{second[2]}"]
        until(lambda: len(inner(pool, program.lease)[1]) == 1, "the third claim inside")
        leases, _ = inner(pool, program.lease)
        os.kill(leases[0]["pid"], signal.SIGKILL if not options else signal.SIGTERM)
        third = program.wait_for_line("nvidia").split()
        assert third[1] == leases[0]["devices"][0]
        assert len(look(pool)["claims"]) == 1  # the claim outside gets none of these devices
        pool.let_go(others)
        assert outside.wait() == 0
    program.kill(signal.SIGKILL)
    program.wait()
    until(lambda: look(pool)["leases"] == [], "the end of all leases")


def test_crowd_inside(pool):
    """Many commands in a lease of three devices: no device is used twice, and only the lease's
    devices are used."""
    many = ManyCommands(pool)
    program = shell(pool, "exec cat", "-n3")
    within = {"BERTH_LEASE": program.lease, "BERTH_SOCKET": str(pool.socket)}
    for i in range(40):
        many.start(*[(), ("-n2",), ("--time", "1h")][i % 3], seconds=0.01, env=within)
    outside = pool.hold("-n5")
    many.wait()
    many.check()
    assert {device for line in many.lines() for device in line.devices} == set(program.devices)
    pool.let_go(outside)
    pool.let_go(program)


def test_larger_than_the_parent(pool):
    script = "berth run -n3 true; echo $?; berth run --device nvidia7 true; echo $?; "
    script += "berth run -n all printenv BERTH_DEVICES"
    done = pool.berth("run", "-n2", "sh", "-c", script)
    *codes, devices = done.stdout.split()
    assert codes == ["120", "120"]
    assert len(devices.split(",")) == 2
    assert done.stderr.count("berth: run: ") == 2


def test_three_deep(pool):
    script = "berth run -n2 sh -c 'berth run sh -c \"echo \\$BERTH_DEVICES\"; berth run -n3 true; echo $?'"
    done = pool.berth("run", "-n4", "sh", "-c", script)
    device, code = done.stdout.split()
    assert device.startswith("nvidia") and "," not in device
    assert code == "120"


# ---- The end of the parent ----


@KINDS
@pytest.mark.parametrize("how", ["killed", "ended", "released"])
def test_ends_with_the_parent(pool_of, options, how):
    """Commands inside are stopped and waiting claims are refused. Then the devices are free."""
    pool = pool_of(2)
    pids = pool.sandbox.directory / "pids"
    # The commands have their own sessions, so that only berth signals them.
    run = f"setsid berth run {options} sh -c 'echo $$ >>{pids}; exec sleep 1000' &\n"
    program = shell(pool, "exec sh")
    program.send(run)
    until(lambda: pids.exists() and pids.read_text().endswith("\n"), "the command inside")
    program.send(run)
    until_inner_claim(pool, program)
    if how == "killed":
        program.kill(signal.SIGKILL)
    elif how == "ended":
        end_input(program)
    else:
        assert pool.berth("release", program.lease).code == 0
    program.wait()
    assert pool.berth("run", "--wait", "10", "-n2", "true").code == 0
    until(lambda: look(pool)["leases"] == [], "the end of all leases")
    assert look(pool)["claims"] == []
    for pid in pids.read_text().split():
        processes.wait_for_end(int(pid))
    assert pids.read_text().count("\n") == 1, "the waiting command has run"


def answers(pool):
    try:
        return look(pool)
    except (FileNotFoundError, ConnectionRefusedError):
        return None


def test_daemon_dies_meanwhile(pool_of):
    """Inner leases and claims stay inside their lease over a restart."""
    pool = pool_of(3)
    program = shell(pool, "exec sh", "-n2")
    script = "berth run sh -c 'echo $BERTH_DEVICES; exec sleep 1000' &\n"
    program.send(script * 2)
    devices = {program.wait_for_line("nvidia") for _ in range(2)}
    assert devices == set(program.devices)
    program.send("berth run --time 1h sh -c 'echo third $BERTH_DEVICES' &\n")
    until_inner_claim(pool, program)
    before = inner(pool, program.lease)
    pool.end_daemon(signal.SIGKILL)
    # The waiting command inside knows that the pool is the user's own, and starts another daemon.
    until(lambda: answers(pool), "a daemon that was started inside")
    until_inner_claim(pool, program)
    after = inner(pool, program.lease)
    assert [lease["id"] for lease in after[0]] == [lease["id"] for lease in before[0]]
    assert after[1][0]["id"] == before[1][0]["id"]
    os.kill(after[0][0]["pid"], signal.SIGKILL)
    assert program.wait_for_line("^third ").split()[1] == after[0][0]["devices"][0]
    assert pool.berth("run", "--nonblock", "-n2", "true").code == 123
    program.kill(signal.SIGKILL)
    program.wait()
    assert pool.berth("run", "--wait", "10", "-n3", "true").code == 0


# ---- Invalid leases ----


@pytest.mark.parametrize("lease", ["99", "0", "x", "18446744073709551616", "-1"])
def test_unknown_lease(pool_of, lease):
    pool = pool_of(1)
    done = pool.berth("run", "true", env={"BERTH_LEASE": lease})
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr.startswith("berth: run: BERTH_LEASE: ") and done.stderr.count("\n") == 1


def test_lease_that_has_ended(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    pool.let_go(holder)
    until(lambda: look(pool)["leases"] == [], "its end")
    done = pool.berth("run", "true", env={"BERTH_LEASE": holder.lease})
    assert done.code == 125
    assert f"BERTH_LEASE: lease {holder.lease} does not exist, or it ends or has ended" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
def test_lease_of_somebody_else(sandbox, pool_of):
    pool = pool_of(2)
    sandbox.directory.chmod(0o755)
    pool.socket = sandbox.directory / "all.sock"
    daemon = sandbox.start(["berthd", "--socket", pool.socket, "--inventory", pool.inventory])
    until_served(pool.socket)
    program = Path(os.environ["BERTH"])
    if subprocess.run(["test", "-x", program], user=65534, check=False).returncode != 0:
        daemon.stop()
        pytest.skip("other users cannot access the build directory")
    env = {**sandbox.environment, "BERTH_SOCKET": str(pool.socket)}
    with wire.connect(str(pool.socket)) as client:
        lease = client.claim()["id"]
        done = subprocess.run(
            [program, "run", "true"],
            user=65534,
            group=65534,
            cwd="/",
            env={**env, "BERTH_LEASE": str(lease)},
            capture_output=True,
            text=True,
            timeout=10,
        )
    assert done.returncode == 125
    assert done.stderr == f"berth: run: BERTH_LEASE: lease {lease} belongs to another user\n"
    daemon.stop()
