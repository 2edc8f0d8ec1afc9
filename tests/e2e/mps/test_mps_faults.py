# SPDX-License-Identifier: Apache-2.0
"""MPS control daemons that do not start, and that end by themselves."""
import os
import socket

import processes
import pytest
import wire
from daemons import start_daemon
from hostile_processes import StuckProcesses
from mps import kill
from mps_pool import TENANT, claim, refusal, until_state, until_states
from waiting import look, until, until_pending, until_served

# ---- Faults at the start ----


def failure(pool, client, **request):
    """Return the message when the control daemon cannot start. The device must stay usable for the
    next claim."""
    refused = refusal(client, **request)
    assert refused.error == wire.ERRORS["IO"]
    prefix = "cannot start the MPS control daemon of nvidia0: "
    assert refused.text.startswith(prefix)
    assert client.claim({})["devices"][0]["id"] == "nvidia0"
    return refused.text.removeprefix(prefix)


def test_failed_start(mps_pool, mps):
    mps.faults("fail no such device")
    with wire.connect(mps_pool.socket) as client:
        assert failure(mps_pool, client) == "exit code 1: no such device"
    until_states(mps_pool, "starting", "failed", "stopped")


def test_no_such_directory(mps_pool, mps, sandbox):
    missing = sandbox.directory / "missing/pipe"
    with wire.connect(mps_pool.socket) as client:
        said = failure(mps_pool, client, mps_pipe_dir=str(missing))
    assert said == f"cannot create {missing}: No such file or directory"


def test_something_else_in_the_place_of_a_directory(mps_pool, mps, sandbox):
    path = sandbox.directory / "file"
    path.write_text("")
    with wire.connect(mps_pool.socket) as client:
        said = failure(mps_pool, client, mps_log_dir=str(path))
    assert said == f"{path}: expected a directory, got something else"


def test_own_directory_is_checked(mps_pool, mps, sandbox):
    elsewhere = sandbox.directory / "elsewhere"
    elsewhere.mkdir()
    (mps_pool.directory / "mps").mkdir()
    root = mps_pool.directory / f"mps/{os.getuid()}"
    root.symlink_to(elsewhere)
    with wire.connect(mps_pool.socket) as client:
        assert failure(mps_pool, client) == f"{root}: expected a directory, got a symlink"
    assert not list(elsewhere.iterdir())


def test_another_one_in_the_same_directory(mps_pool, mps, sandbox):
    """berth neither uses nor changes a control daemon that it has not started."""
    pipe = sandbox.directory / "pipe"
    pipe.mkdir()
    directories = {"CUDA_MPS_PIPE_DIRECTORY": str(pipe), "CUDA_MPS_LOG_DIRECTORY": str(pipe)}
    with sandbox.start([mps.program, "-f"], env=directories) as other:
        until_served(pipe / "control", socket.SOCK_STREAM)
        with wire.connect(mps_pool.socket) as client:
            said = failure(mps_pool, client, mps_pipe_dir=str(pipe))
        assert said == f"{pipe}: in use by another MPS control daemon"
        assert other.process.poll() is None
        assert sandbox.run([mps.program], input="quit\n", env=directories).code == 0
        assert other.wait() == 0


def test_it_hangs(pool_of, mps):
    """berthd waits for the control daemon for a limited time, and leaves no process."""
    pool = pool_of(1)
    start_daemon(pool, "--idle", "1h", env={"BERTH_MPS_CONTROL": mps.program, "BERTH_MPS_DEADLINE": "300ms"})
    mps.faults("hang")
    with wire.connect(pool.socket) as client:
        assert failure(pool, client) == "no answer within 300ms"
        assert not mps.controls()


def test_wrong_deadlines_are_refused(pool_of):
    pool = pool_of(1)
    for directory in (pool.runtime, pool.directory):
        directory.mkdir(mode=0o700)
    for value, words in (("soon", "expected a duration"), ("1ms", "expected from 10ms to 10m, got 1ms")):
        done = pool.berth("daemon", "--own", pool.directory, env={"BERTH_MPS_DEADLINE": value})
        assert done.code != 0
        assert f"BERTH_MPS_DEADLINE: {words}" in done.stderr


def test_who_gives_up_while_it_hangs(mps_pool, mps):
    """berthd gives up a start that hangs when its only tenant leaves."""
    mps.faults("hang")
    with wire.connect(mps_pool.socket) as client:
        client.send_claim(TENANT)
        until_state(mps_pool, "starting")
        with wire.connect(mps_pool.socket) as other:
            waiting = other.send_claim({})
            until_pending(mps_pool, 1)
            client.close()
            other.granted(waiting)
    assert not mps.controls()


@pytest.mark.parametrize("told", [False, True], ids=["first", "second"])
def test_missing_program(pool_of, mps, told):
    pool = pool_of(1)
    assert pool.berth("status").code == 0
    with wire.connect(pool.socket) as client:
        if told:
            claim(client)
        mps.program.rename(mps.program.with_name("moved"))
        # The result is cached for one second.
        refused = until(lambda: try_claim(client), "a refusal")
        assert refused.error == wire.ERRORS["IMPOSSIBLE"]
        assert refused.text == f"sharing mps: cannot use MPS: {mps.program}: no such file"
        mps.program.with_name("moved").rename(mps.program)
    mps.until_gone()


def test_missing_program_on_the_command_line(mps_pool, mps):
    """No device here can ever satisfy the request, so --or-cpu runs the command on the CPU."""
    mps.program.chmod(0o644)
    done = mps_pool.berth("run", "--sharing", "mps", "true")
    words = f"sharing mps: cannot use MPS: {mps.program}: is not executable"
    assert done == (120, "", f"berth: run: {words}\n")
    done = mps_pool.berth("run", "--sharing", "mps", "--or-cpu", "printenv", "CUDA_VISIBLE_DEVICES")
    assert done == (0, "-1\n", "")


def test_no_program_in_the_usual_directories(pool_of, sandbox):
    name = "nvidia-cuda-mps-control"
    usual = ("/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin")
    if any(os.path.exists(f"{directory}/{name}") for directory in usual):
        pytest.skip(f"this machine has {name}")
    done = pool_of(1).berth("run", "--sharing", "mps", "true")
    assert done.code == 120
    assert f"cannot use MPS: {name}: not found in /usr/bin, " in done.stderr


def try_claim(client):
    try:
        client.release(claim(client)["id"])
    except wire.Refused as refused:
        return refused
    return None


def test_the_configuration_names_it(pool_of, mps, sandbox):
    del sandbox.environment["BERTH_MPS_CONTROL"]
    directory = sandbox.home / ".config/berth"
    directory.mkdir(parents=True)
    (directory / "berth.yaml").write_text(f"mps_control: {mps.program}\n")
    pool = pool_of(1)
    assert pool.berth("status").code == 0
    with wire.connect(pool.socket) as client:
        claim(client)
        assert list(mps.controls()) == ["nvidia0"]
    mps.until_gone()


# ---- Faults later ----


def test_it_is_started_again(mps_pool, mps):
    """When the control daemon dies, its server ends too. Clients find a new one in the same
    directory."""
    with wire.connect(mps_pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
        mps.command(control, f"start_server -uid {os.getuid()}")
        [server] = mps.servers(control)
        kill(control)
        # A tenant that arrives now is granted when the control daemon runs.
        claim(client)
        other = mps.controls()["nvidia0"]
        assert other.pid != control.pid and other.pipe == control.pipe
        processes.wait_for_end(server)
        with mps.client(other) as tenant:
            tenant.wait_for_line("^server ")
            tenant.process.stdin.close()
            tenant.process.stdin = None
            assert tenant.wait() == 0
        # The second restart waits one second, unless a tenant arrives.
        kill(other)
        third = mps.until_other(other)
        until_state(mps_pool, "ready", 3)
        assert mps.command(third, "get_server_list") == (0, "")
    until_state(mps_pool, "stopped", 3)
    reasons = [entry.values["reason"] for entry in until_state(mps_pool, "died", 2)]
    assert all(reason.startswith("signal 9 (Killed)") for reason in reasons)


def test_servers_that_leave_the_session(mps_pool, mps):
    """berth identifies the servers by their environment."""
    mps.faults("leave-session")
    with wire.connect(mps_pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
        mps.command(control, f"start_server -uid {os.getuid()}")
        server = int(mps.command(control, "get_server_list")[1])
        assert until(lambda: os.getsid(server) == server, "a session that the server leads")
        kill(control)
        processes.wait_for_end(server)
        until_state(mps_pool, "ready", 2)


def test_crash_by_a_command(mps_pool, mps):
    """A control daemon may crash at the command by which berthd tests whether it answers."""
    mps.faults("crash get_server_list")
    with wire.connect(mps_pool.socket) as client:
        assert failure(mps_pool, client).startswith("signal 6 (Aborted)")


def test_it_crashes_again_and_again(mps_pool, mps):
    """The tenants keep their leases, new claims are refused, and the daemon retries the start."""
    with wire.connect(mps_pool.socket) as client:
        tenant = claim(client)
        mps.faults("fail broken")
        kill(mps.controls()["nvidia0"])
        until_state(mps_pool, "failed")
        refused = refusal(client)
        assert refused.text.endswith("exit code 1: broken")
        assert [lease["id"] for lease in look(mps_pool)["leases"]] == [tenant["id"]]
        mps.faults()

        def is_granted():
            refused = try_claim(client)
            assert refused is None or refused.text.endswith("exit code 1: broken")
            return refused is None

        until(is_granted, "a control daemon that works")  # a start already under way still fails
        assert mps.controls()


def test_a_process_that_no_signal_ends(pool_of, mps):
    """The device stays blocked, and status names the process."""
    pool = pool_of(2)
    assert pool.berth("status").code == 0
    marks = {"BERTH_LEASE": 1 << 63, "BERTH_SOCKET": pool.socket}
    with wire.connect(pool.socket) as client:
        tenant = claim(client, wanted=["nvidia0"])
        with StuckProcesses(pool.sandbox, os.getuid(), mode="read", variables=marks) as stuck:
            client.release(tenant["id"])
            words = f"process {stuck.pids[0]} (uid {os.getuid()}) of the MPS control daemon of nvidia0 still runs "
            until(lambda: words in pool.berth("status").stdout, "the process in status")
            assert stuck.state() == "D"
            assert look(pool)["slots"][0]["blocks"] == wire.BLOCKS["DIRTY"]
            client.release(claim(client, wanted=["nvidia1"])["id"])
        client.release(claim(client, wanted=["nvidia0"])["id"])
        mps.until_gone()
