# SPDX-License-Identifier: Apache-2.0
"""MPS control daemons while their pool has no daemon for a while."""
import os
import signal

import processes
import wire
from daemons import start_daemon_in_use
from mps import kill
from mps_pool import TENANT, claim, restart, states, until_state
from waiting import look, until

# ---- Without its daemon ----


def reserve(pool):
    """Make a tenant that no process holds."""
    with wire.connect(pool.socket) as client:
        return claim_for_long(client)


def claim_for_long(client):
    return client.claim({**TENANT, "time": 3600 * 10**9}, hold=wire.HOLDS["NOTHING"])


def stop(pool, lease):
    with wire.connect(pool.socket) as client:
        client.stop(lease["id"])


def test_it_outlives_the_daemon(mps_pool, mps):
    """The next daemon takes the control daemon over, and stops it after the last tenant."""
    tenant = reserve(mps_pool)
    control = mps.controls()["nvidia0"]
    mps_pool.end_daemon(signal.SIGKILL)
    assert mps.controls()["nvidia0"].pid == control.pid
    restart(mps_pool)
    until_state(mps_pool, "restored")
    with wire.connect(mps_pool.socket) as client:
        second = claim(client)
        assert mps.controls()["nvidia0"].pid == control.pid
        client.release(second["id"])
    until(lambda: len(look(mps_pool)["leases"]) == 1, "the end of the second lease")
    assert mps.controls()["nvidia0"].pid == control.pid
    stop(mps_pool, tenant)


def test_it_outlives_an_orderly_end(mps_pool, mps):
    tenant = reserve(mps_pool)
    control = mps.controls()["nvidia0"]
    mps_pool.end_daemon(signal.SIGTERM)
    restart(mps_pool)
    assert mps.controls()["nvidia0"].pid == control.pid
    stop(mps_pool, tenant)


def test_its_end_while_nobody_looks(mps_pool, mps):
    """The next daemon notices that the control daemon has ended and that a tenant needs one."""
    tenant = reserve(mps_pool)
    control = mps.controls()["nvidia0"]
    mps.command(control, f"start_server -uid {os.getuid()}")
    [server] = mps.servers(control)
    mps_pool.end_daemon(signal.SIGKILL)
    kill(control)
    before = states(mps_pool).count("ready")
    restart(mps_pool)
    other = mps.until_other(control)
    processes.wait_for_end(server)
    until_state(mps_pool, "ready", before + 1)
    assert mps.command(other, "get_server_list") == (0, "")
    stop(mps_pool, tenant)


def test_tenants_that_end_while_nobody_looks(mps_pool, mps):
    """The next daemon does not grant the device before the unneeded control daemon has ended."""
    tenant = mps_pool.hold("--sharing", "mps")
    control = mps.controls()["nvidia0"]
    mps_pool.end_daemon(signal.SIGKILL)
    mps_pool.let_go(tenant)
    # The control daemon is a zombie: it is a child of the test, which has not reaped it.
    done = mps_pool.berth("run", "--", "grep", "State", f"/proc/{control.pid}/status")
    assert (done.code, done.stdout) == (0, "State:\tZ (zombie)\n")


def test_daemon_that_is_killed_while_it_is_started(mps_pool, mps):
    """The client that waited for the control daemon reconnects and gets the device."""
    mps.faults("hang")
    token = 1 << 64 | 99
    with wire.connect(mps_pool.socket) as client:
        client.send_claim({**TENANT, "time": 3600 * 10**9}, token, hold=wire.HOLDS["NOTHING"])
        until_state(mps_pool, "starting")
        # The process may need a moment to execute its program.
        hung = until(lambda: mps.controls().get("nvidia0"), "the control daemon")
        mps_pool.end_daemon(signal.SIGKILL)
    mps.faults()
    kill(hung)
    restart(mps_pool)
    with wire.connect(mps_pool.socket) as client:
        tenant = client.claim({**TENANT, "time": 3600 * 10**9}, token, hold=wire.HOLDS["NOTHING"])
        assert mps.controls()["nvidia0"].pid != hung.pid
        client.stop(tenant["id"])


def test_the_daemon_stays_while_it_is_there(pool_of, mps):
    """The user's own daemon is not idle before the last control daemon has ended."""
    pool = pool_of(2)
    daemon, holder = start_daemon_in_use(pool, "--idle", "100ms", env={"BERTH_MPS_CONTROL": mps.program})
    mps.faults("ignore-quit")
    with wire.connect(pool.socket) as client:
        claim(client)
        [control] = mps.controls().values()
        pool.let_go(holder)
    assert daemon.wait() == 0
    assert processes.is_ended(control.pid, 0)


def test_many_tenants_and_daemons_that_are_killed(pool_of, mps):
    """Each command finds a control daemon that serves it, even if berthd is killed. At the end
    there is none."""
    pool = pool_of(2)
    command = ("--sharing", "mps", "--share", "0.25", "--", mps.program, "--client")
    programs = [pool.start("run", *command) for _ in range(40)]
    for program in programs:
        program.process.stdin.close()
        program.process.stdin = None

    def ended():
        return sum(program.process.poll() is not None for program in programs)

    for count in range(0, len(programs), 5):
        until(
            lambda: ended() == len(programs) or (ended() >= count and pool.daemons()),
            lambda: f"{count} ended commands (now {ended()}) and a daemon",
        )
        pool.end_daemon(signal.SIGKILL)
    assert [program.wait() for program in programs] == [0] * len(programs)
    assert all(program.text().startswith("server ") for program in programs)
    restart(pool)
    mps.until_gone()
    assert not [pid for pid, zombie in processes.descendants(os.getpid()) if not zombie and mps.is_server(pid)]
