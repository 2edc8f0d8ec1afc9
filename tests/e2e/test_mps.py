# SPDX-License-Identifier: Apache-2.0
"""Sharing by MPS: a control daemon for each device, there exactly as long as it has tenants."""
import os
import signal
import stat

import processes
import pytest
import wire
from daemon_log import entries, wait_for
from daemons import start_daemon
from mps import SHARING_MPS, Mps, kill
from waiting import look, until, until_pending

TENANT = {"sharing": SHARING_MPS, "share": 250000}


@pytest.fixture
def mps(sandbox):
    return Mps(sandbox)


@pytest.fixture
def pool(pool_of, mps):
    """A pool of one device whose daemon runs; all control daemons are to be gone at the end."""
    pool = pool_of(1)
    assert pool.berth("status").code == 0
    yield pool
    mps.until_gone()


def claim(client, **request):
    return client.claim({**TENANT, **request})


def states(pool):
    return [entry.values["state"] for entry in entries(pool.directory / "log") if entry.word == "mps"]


def until_states(pool, *wanted):
    """Waits for these, and nothing else, in the log."""
    until(lambda: states(pool) == list(wanted), lambda: f"{wanted}, where the log has {states(pool)},")


def until_state(pool, state, count=1):
    return wait_for(pool.directory / "log", "mps", count, state=state)


def restart(pool):
    assert pool.berth("status").code == 0


def refusal(client, **request):
    with pytest.raises(wire.Refused) as caught:
        claim(client, **request)
    return caught.value


# ---- From the first tenant to the last ----


def test_it_is_there_while_there_are_tenants(pool, mps):
    with wire.connect(pool.socket) as client:
        first = claim(client)
        control = mps.controls()["nvidia0"]
        assert mps.command(control, "get_server_list") == (0, "")
        second = claim(client)
        assert mps.controls()["nvidia0"].pid == control.pid
        client.release(first["id"])
        third = claim(client)
        client.release(second["id"])
        assert mps.controls()["nvidia0"].pid == control.pid
        client.release(third["id"])
        until_state(pool, "stopped")
        assert not mps.controls()
    until_states(pool, "starting", "ready", "stopping", "stopped")
    until(lambda: not look(pool)["slots"][0].get("blocks"), "the device to be free")


def test_clients_find_it(pool, mps):
    with wire.connect(pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
        with mps.client(control) as tenant:
            server = int(tenant.wait_for_line("^server ").split()[1])
            assert mps.command(control, "get_server_list") == (0, f"{server}\n")
            assert mps.command(control, f"get_client_list {server}") == (0, f"{tenant.pid}\n")
            tenant.process.stdin.close()
            tenant.process.stdin = None
            assert tenant.wait() == 0
    # The connection held the lease: the server ends with its control daemon.
    processes.wait_for_end(server)
    until_state(pool, "stopped")


def test_the_next_holder_waits_for_its_end(pool, mps):
    """Nobody has the device alone before the control daemon and its server have ended."""
    mps.faults("ignore-quit")
    with wire.connect(pool.socket) as client:
        tenant = claim(client)
        control = mps.controls()["nvidia0"]
        mps.command(control, f"start_server -uid {os.getuid()}")
        [server] = mps.servers(control)
        waiting = client.send_claim({})
        until_pending(pool, 1)
        client.release(tenant["id"])
        until_state(pool, "stopping")
        [slot] = look(pool)["slots"]
        assert slot["blocks"] == wire.BLOCKS["DIRTY"]
        assert pool.berth("run", "--nonblock", "true").code == 123
        client.granted(waiting)
        assert processes.is_ended(control.pid, 0) and processes.is_ended(server, 0)
    # It was asked, and then made to.
    until_states(pool, "starting", "ready", "stopping", "late", "stopped")


def test_refusing_to_end_does_not_help(pool, mps):
    mps.faults("refuse-quit")
    with wire.connect(pool.socket) as client:
        client.release(claim(client)["id"])
        until_state(pool, "stopped")
    until_states(pool, "starting", "ready", "stopping", "stopped")


def test_a_tenant_after_the_last(pool, mps):
    """One that comes while it ends gets another."""
    with wire.connect(pool.socket) as client:
        tenant = claim(client)
        former = mps.controls()["nvidia0"]
        client.send("RELEASE", id=tenant["id"])
        claim(client)
        assert mps.controls()["nvidia0"].pid != former.pid
        until_states(pool, "starting", "ready", "stopping", "stopped", "starting", "ready")


def test_two_come_at_once(pool, mps):
    """They are told when it answers, both of them, and nobody has to wait for another."""
    with wire.connect(pool.socket) as client:
        numbers = [client.send_claim({**TENANT, "nonblock": True}) for _ in range(3)]
        assert len({client.granted(number)["id"] for number in numbers}) == 3
        assert len(mps.controls()) == 1
        until_states(pool, "starting", "ready")


def test_after_the_prolog(pool_of, mps, site):
    """Nothing is started on a device that has not been checked, or is not good."""
    pool = pool_of(2)
    site.configure("prolog")
    site.does("prolog.nvidia0", "exit 1\n")
    site.hold("prolog.nvidia1")
    assert pool.berth("status").code == 0
    with wire.connect(pool.socket) as client:
        number = client.send_claim(TENANT)
        site.until("begin", "prolog", "nvidia1")
        assert states(pool) == []
        site.let_go("prolog.nvidia1")
        grant = client.granted(number)
        assert [device["id"] for device in grant["devices"]] == list(mps.controls()) == ["nvidia1"]
    mps.until_gone()
    until(lambda: "stopped" in states(pool), "the end in the log")
    assert {entry.values["device"] for entry in until_state(pool, "starting")} == {"nvidia1"}


def test_devices_have_their_own(pool_of, mps):
    pool = pool_of(2)
    assert pool.berth("status").code == 0
    with wire.connect(pool.socket) as client:
        # Ranks may have several devices, each of them its own control daemon.
        both = claim(client, least=2, most=2, ranks=True)
        controls = mps.controls()
        assert sorted(controls) == ["nvidia0", "nvidia1"]
        assert len({control.pid for control in controls.values()}) == 2
        one = claim(client, wanted=["nvidia1"])
        client.release(both["id"])
        mps.until_gone("nvidia0")
        assert mps.controls()["nvidia1"].pid == controls["nvidia1"].pid
        assert client.claim({"wanted": ["nvidia0"]})
        client.release(one["id"])
        mps.until_gone()


def test_within_another_lease(pool, mps):
    """It is the inner tenants' device as well as it would be the outer one's."""
    with wire.connect(pool.socket) as client:
        outer = client.claim({})
        inner = client.claim(TENANT, parent=outer["id"])
        control = mps.controls()["nvidia0"]
        second = client.claim(TENANT, parent=outer["id"])
        client.release(inner["id"])
        assert mps.controls()["nvidia0"].pid == control.pid
        client.release(second["id"])
        # The outer lease has the device all the time; another one within it waits for the end.
        third = client.claim(TENANT, parent=outer["id"])
        control = mps.until_other(control)
        assert third["mps_root"] == str(control.pipe.parent.parent)
        waiting = client.send_claim({})
        client.release(outer["id"])
        client.granted(waiting)
        assert not mps.controls()


def test_one_directory_for_all_around(pool, mps, sandbox):
    with wire.connect(pool.socket) as client:
        outer = claim(client)
        with pytest.raises(wire.Refused) as caught:
            client.claim({**TENANT, "mps_pipe_dir": str(sandbox.directory / "p")}, parent=outer["id"])
        assert caught.value.error == wire.ERRORS["IMPOSSIBLE"]
        assert len(mps.controls()) == 1


# ---- What it is started with ----


def test_what_it_is_started_with(pool, mps):
    with wire.connect(pool.socket) as client:
        grant = claim(client)
        control = mps.controls()["nvidia0"]
        root = pool.directory / "mps" / str(os.getuid())
        assert grant["mps_root"] == str(root)
        home = control.environment.pop("HOME", None)
        assert home is None or home.startswith("/")
        assert control.environment == {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "CUDA_VISIBLE_DEVICES": "GPU-0",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_MPS_PIPE_DIRECTORY": str(root / "nvidia0/pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(root / "nvidia0/log"),
            "BERTH_SOCKET": str(pool.socket),
            "BERTH_MPS": "nvidia0",
        }
        for directory in (root, root / "nvidia0", control.pipe, control.log):
            status = directory.stat()
            assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (os.getuid(), 0o700)
        links = {name: os.readlink(f"/proc/{control.pid}/fd/{name}") for name in os.listdir(f"/proc/{control.pid}/fd")}
        assert links.pop("0") == "/dev/null"
        assert links.pop("1").startswith("/memfd:") and links.pop("2").startswith("/memfd:")
        assert all(link.startswith("socket:") for link in links.values()), links
        assert (os.getsid(control.pid), os.readlink(f"/proc/{control.pid}/cwd")) == (control.pid, "/")
        # The C library keeps signals 32 and 33 for itself, the double does not mind the ends of its servers.
        for mask in ("SigBlk", "SigIgn"):
            assert int(control.status[mask], 16) & ~(0b11 << 31 | 1 << 16) == 0
        assert control.status["NoNewPrivs"] == "1" or os.getuid() == 0


def test_what_it_prints_does_not_matter(pool, mps):
    """It may print for ever; there is room for the first of it only, and nobody has to read it."""
    with wire.connect(pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
        size = os.stat(f"/proc/{control.pid}/fd/1").st_size
        for _ in range(300):
            with wire.socket.socket(wire.socket.AF_UNIX) as peer:
                peer.connect(str(control.pipe / "control"))
        assert mps.command(control, "get_server_list") == (0, "")
        assert os.stat(f"/proc/{control.pid}/fd/1").st_size == size


def test_directories_of_ones_own(pool, mps, sandbox):
    """Those that a request names are used as they are."""
    pipe, log = sandbox.directory / "pipe", sandbox.directory / "log"
    log.mkdir(mode=0o755)
    with wire.connect(pool.socket) as client:
        claim(client, mps_pipe_dir=str(pipe), mps_log_dir=str(log))
        control = mps.controls()["nvidia0"]
        assert (control.pipe, control.log) == (pipe, log)
        assert stat.S_IMODE(pipe.stat().st_mode) == 0o700
        assert (pipe / "control").is_socket()
        assert stat.S_IMODE(log.stat().st_mode) == 0o755
        assert "Starting control daemon" in (log / "control.log").read_text()
        assert not (pool.directory / "mps").exists()


def test_directories_of_ones_own_for_several(pool_of, mps, sandbox):
    pool = pool_of(2)
    assert pool.berth("status").code == 0
    pipe = sandbox.directory / "pipe"
    with wire.connect(pool.socket) as client:
        claim(client, least=2, most=2, ranks=True, mps_pipe_dir=str(pipe))
        controls = mps.controls()
        for device in ("nvidia0", "nvidia1"):
            assert controls[device].pipe == pipe / device
            assert controls[device].log == pool.directory / f"mps/{os.getuid()}/{device}/log"
    mps.until_gone()


# ---- What can go wrong at the start ----


def failure(pool, client, **request):
    """What is said when it cannot be started; the device is good for the next all the same."""
    refused = refusal(client, **request)
    assert refused.error == wire.ERRORS["IO"]
    prefix = "the MPS control daemon of nvidia0 could not be started: "
    assert refused.text.startswith(prefix)
    assert client.claim({})["devices"][0]["id"] == "nvidia0"
    return refused.text.removeprefix(prefix)


def test_failed_start(pool, mps):
    mps.faults("fail no such device")
    with wire.connect(pool.socket) as client:
        assert failure(pool, client) == "exit code 1: no such device"
    until_states(pool, "starting", "failed", "stopped")


def test_no_such_directory(pool, mps, sandbox):
    missing = sandbox.directory / "missing/pipe"
    with wire.connect(pool.socket) as client:
        said = failure(pool, client, mps_pipe_dir=str(missing))
    assert said == f"{missing}: cannot make it: No such file or directory"


def test_something_else_in_the_place_of_a_directory(pool, mps, sandbox):
    path = sandbox.directory / "file"
    path.write_text("")
    with wire.connect(pool.socket) as client:
        said = failure(pool, client, mps_log_dir=str(path))
    assert said == f"{path}: wanted a directory, found something else"


def test_own_directory_is_checked(pool, mps, sandbox):
    elsewhere = sandbox.directory / "elsewhere"
    elsewhere.mkdir()
    (pool.directory / "mps").mkdir()
    root = pool.directory / f"mps/{os.getuid()}"
    root.symlink_to(elsewhere)
    with wire.connect(pool.socket) as client:
        assert failure(pool, client) == f"{root}: wanted a directory, found a symlink"
    assert not list(elsewhere.iterdir())


def test_another_one_in_the_same_directory(pool, mps, sandbox):
    """It is somebody's: nothing of it is touched, and it does not pass for ours."""
    pipe = sandbox.directory / "pipe"
    pipe.mkdir()
    directories = {"CUDA_MPS_PIPE_DIRECTORY": str(pipe), "CUDA_MPS_LOG_DIRECTORY": str(pipe)}
    with sandbox.start([mps.program, "-f"], env=directories) as other:
        until((pipe / "control").exists, "another control daemon")
        with wire.connect(pool.socket) as client:
            said = failure(pool, client, mps_pipe_dir=str(pipe))
        assert said == f"{pipe}: another MPS control daemon works there"
        assert other.process.poll() is None
        assert sandbox.run([mps.program], input="quit\n", env=directories).code == 0
        assert other.wait() == 0


def test_it_hangs(pool_of, mps):
    """It is waited for, but not for ever, and nothing of it is left."""
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
    for value, words in (("soon", "wanted a duration"), ("1ms", "wanted from 10ms to 10m, found 1ms")):
        done = pool.berth("daemon", "--own", pool.directory, env={"BERTH_MPS_DEADLINE": value})
        assert done.code != 0
        assert f"BERTH_MPS_DEADLINE: {words}" in done.stderr


def test_who_gives_up_while_it_hangs(pool, mps):
    """A start that hangs is given up with its only tenant."""
    mps.faults("hang")
    with wire.connect(pool.socket) as client:
        client.send_claim(TENANT)
        until_state(pool, "starting")
        with wire.connect(pool.socket) as other:
            waiting = other.send_claim({})
            until_pending(pool, 1)
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
        # What was found out is good for a second.
        refused = until(lambda: try_claim(client), "a refusal")
        assert refused.error == wire.ERRORS["IMPOSSIBLE"]
        assert refused.text == f"sharing mps: wanted the MPS control program, found {mps.program}: no such file"
        mps.program.with_name("moved").rename(mps.program)
    mps.until_gone()


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


# ---- What can go wrong later ----


def test_it_is_started_again(pool, mps):
    """When it dies its server goes too, and clients find another one in the same place."""
    with wire.connect(pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
        mps.command(control, f"start_server -uid {os.getuid()}")
        [server] = mps.servers(control)
        kill(control)
        # Whoever comes now is told when it is there.
        claim(client)
        other = mps.controls()["nvidia0"]
        assert other.pid != control.pid and other.pipe == control.pipe
        processes.wait_for_end(server)
        with mps.client(other) as tenant:
            tenant.wait_for_line("^server ")
            tenant.process.stdin.close()
            tenant.process.stdin = None
            assert tenant.wait() == 0
        # The second time it takes a second, unless somebody comes.
        kill(other)
        third = mps.until_other(other)
        until_state(pool, "ready", 3)
        assert mps.command(third, "get_server_list") == (0, "")
    until_state(pool, "stopped", 3)
    reasons = [entry.values["reason"] for entry in until_state(pool, "died", 2)]
    assert all(reason.startswith("signal 9 (Killed)") for reason in reasons)


def test_servers_that_leave_the_session(pool, mps):
    """They are known by what they were started with."""
    mps.faults("leave-session")
    with wire.connect(pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
        mps.command(control, f"start_server -uid {os.getuid()}")
        server = int(mps.command(control, "get_server_list")[1])
        assert until(lambda: os.getsid(server) == server, "a session of its own")
        kill(control)
        processes.wait_for_end(server)
        until_state(pool, "ready", 2)


def test_crash_by_a_command(pool, mps):
    """What is asked of it to see whether it answers may be the end of it."""
    mps.faults("crash get_server_list")
    with wire.connect(pool.socket) as client:
        assert failure(pool, client).startswith("signal 6 (Aborted)")


def test_it_crashes_again_and_again(pool, mps):
    """Its tenants keep their leases; newcomers are refused, and it is tried again all the time."""
    with wire.connect(pool.socket) as client:
        tenant = claim(client)
        mps.faults("fail broken")
        kill(mps.controls()["nvidia0"])
        until_state(pool, "failed")
        refused = refusal(client)
        assert refused.text.endswith("exit code 1: broken")
        assert [lease["id"] for lease in look(pool)["leases"]] == [tenant["id"]]
        mps.faults()
        claim(client)
        assert mps.controls()


# ---- Without its daemon ----


def reserve(pool):
    """A tenant that nobody holds."""
    with wire.connect(pool.socket) as client:
        return claim_for_long(client)


def claim_for_long(client):
    return client.claim({**TENANT, "time": 3600 * 10**9}, hold=wire.HOLDS["NOTHING"])


def stop(pool, lease):
    with wire.connect(pool.socket) as client:
        client.stop(lease["id"])


def test_it_outlives_the_daemon(pool, mps):
    """Another daemon takes it over, and stops it after the last tenant."""
    tenant = reserve(pool)
    control = mps.controls()["nvidia0"]
    pool.end_daemon(signal.SIGKILL)
    assert mps.controls()["nvidia0"].pid == control.pid
    restart(pool)
    until_state(pool, "restored")
    with wire.connect(pool.socket) as client:
        second = claim(client)
        assert mps.controls()["nvidia0"].pid == control.pid
        client.release(second["id"])
    until(lambda: len(look(pool)["leases"]) == 1, "the end of the second")
    assert mps.controls()["nvidia0"].pid == control.pid
    stop(pool, tenant)


def test_it_outlives_an_orderly_end(pool, mps):
    tenant = reserve(pool)
    control = mps.controls()["nvidia0"]
    pool.end_daemon(signal.SIGTERM)
    restart(pool)
    assert mps.controls()["nvidia0"].pid == control.pid
    stop(pool, tenant)


def test_its_end_while_nobody_looks(pool, mps):
    """The next daemon finds that it is gone, and that somebody needs it."""
    tenant = reserve(pool)
    control = mps.controls()["nvidia0"]
    mps.command(control, f"start_server -uid {os.getuid()}")
    [server] = mps.servers(control)
    pool.end_daemon(signal.SIGKILL)
    kill(control)
    restart(pool)
    other = mps.until_other(control)
    processes.wait_for_end(server)
    until_state(pool, "ready")
    assert mps.command(other, "get_server_list") == (0, "")
    stop(pool, tenant)


def test_tenants_that_end_while_nobody_looks(pool, mps):
    """The device is nobody's before the control daemon that nobody needs any more has ended."""
    tenant = pool.hold("--sharing", "mps")
    control = mps.controls()["nvidia0"]
    pool.end_daemon(signal.SIGKILL)
    pool.let_go(tenant)
    # Its end is the test's to take note of.
    done = pool.berth("run", "--", "grep", "State", f"/proc/{control.pid}/status")
    assert (done.code, done.stdout) == (0, "State:\tZ (zombie)\n")


def test_daemon_that_is_killed_while_it_is_started(pool, mps):
    """Whoever waited for it comes back, and has it then."""
    mps.faults("hang")
    token = 1 << 64 | 99
    with wire.connect(pool.socket) as client:
        client.send_claim({**TENANT, "time": 3600 * 10**9}, token, hold=wire.HOLDS["NOTHING"])
        until_state(pool, "starting")
        hung = mps.controls()["nvidia0"]
        pool.end_daemon(signal.SIGKILL)
    mps.faults()
    kill(hung)
    restart(pool)
    with wire.connect(pool.socket) as client:
        tenant = client.claim({**TENANT, "time": 3600 * 10**9}, token, hold=wire.HOLDS["NOTHING"])
        assert mps.controls()["nvidia0"].pid != hung.pid
        client.stop(tenant["id"])


def test_the_daemon_stays_while_it_is_there(pool_of, mps):
    """The user's own is not idle before the last control daemon has ended."""
    pool = pool_of(1)
    daemon = start_daemon(pool, "--idle", "100ms", env={"BERTH_MPS_CONTROL": mps.program})
    mps.faults("ignore-quit")
    with wire.connect(pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
    assert daemon.wait() == 0
    assert processes.is_ended(control.pid, 0)


def test_many_tenants_and_daemons_that_are_killed(pool_of, mps):
    """Each command finds a control daemon that serves it, whatever becomes of berthd; in the end there is none."""
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
            lambda: f"{count} commands that have ended, of which there are {ended()}, and a daemon",
        )
        pool.end_daemon(signal.SIGKILL)
    assert [program.wait() for program in programs] == [0] * len(programs)
    assert all(program.text().startswith("server ") for program in programs)
    restart(pool)
    mps.until_gone()
    assert not [pid for pid, zombie in processes.descendants(os.getpid()) if not zombie and mps.is_server(pid)]
