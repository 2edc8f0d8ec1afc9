# SPDX-License-Identifier: Apache-2.0
"""Sharing with MPS: each device has a control daemon exactly while it has tenants."""
import os
import stat

import processes
import pytest
import wire
from mps_pool import TENANT, claim, states, until_state, until_states
from waiting import look, until, until_pending

# ---- The double ----


def test_the_double(mps, sandbox):
    """The double behaves as the original is documented."""
    directories = {
        "CUDA_MPS_PIPE_DIRECTORY": str(sandbox.directory / "pipe"),
        "CUDA_MPS_LOG_DIRECTORY": str(sandbox.directory / "log"),
    }
    for directory in directories.values():
        os.mkdir(directory)

    def run(*options, lines=""):
        done = sandbox.run([mps.program, *options], input=lines, env=directories)
        return done.code, done.stdout

    assert run(lines="get_server_list\n") == (1, "Cannot find MPS control daemon process\n")
    assert run("-d") == (0, "")
    assert run("-d") == run("-f") == (1, "An instance of this daemon is already running\n")
    assert run(lines="get_default_active_thread_percentage\n") == (0, "100.0\n")
    assert run(lines="set_default_active_thread_percentage 40\nget_default_active_thread_percentage\n") == (
        0,
        "40.0\n40.0\n",
    )
    assert run(lines="set_default_device_pinned_mem_limit 0 2G\nget_default_device_pinned_mem_limit 0\n") == (0, "2G\n")
    assert run(lines=f"get_server_list\nstart_server -uid {os.getuid()}\n") == (0, "")
    code, server = run(lines="get_server_list\n")
    assert code == 0 and int(server) > 0
    assert run(lines=f"get_client_list {server}") == (0, "")
    assert run(lines=f"shutdown_server {server}") == (0, "")
    assert run(lines="get_server_list\n") == (0, "")
    [daemon] = [pid for pid, zombie in processes.descendants(os.getpid()) if not zombie]
    # The control daemon waits for clients, but only for a limited time.
    with sandbox.start([mps.program, "--client"], env=directories) as client:
        server = int(client.wait_for_line("^server ").split()[1])
        assert run(lines="quit -t 0\n") == (0, "")
        processes.wait_for_end(server)
        client.process.stdin.close()
        client.process.stdin = None
        assert client.wait() == 0
    processes.wait_for_end(daemon)
    assert "Starting new server" in (sandbox.directory / "log/control.log").read_text()


# ---- From the first tenant to the last ----


def test_it_is_there_while_there_are_tenants(mps_pool, mps):
    with wire.connect(mps_pool.socket) as client:
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
        until_state(mps_pool, "stopped")
        assert not mps.controls()
    until_states(mps_pool, "starting", "ready", "stopping", "stopped")
    until(lambda: not look(mps_pool)["slots"][0].get("blocks"), "a free device")


def test_clients_find_it(mps_pool, mps):
    with wire.connect(mps_pool.socket) as client:
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
    until_state(mps_pool, "stopped")


def test_the_next_holder_waits_for_its_end(mps_pool, mps):
    """No claim gets the device exclusively before the control daemon and its server have ended."""
    mps.faults("ignore-quit")
    with wire.connect(mps_pool.socket) as client:
        tenant = claim(client)
        control = mps.controls()["nvidia0"]
        mps.command(control, f"start_server -uid {os.getuid()}")
        [server] = mps.servers(control)
        waiting = client.send_claim({})
        until_pending(mps_pool, 1)
        client.release(tenant["id"])
        until_state(mps_pool, "stopping")
        [slot] = look(mps_pool)["slots"]
        assert slot["blocks"] == wire.BLOCKS["DIRTY"]
        assert mps_pool.berth("run", "--nonblock", "true").code == 123
        client.granted(waiting)
        assert processes.is_ended(control.pid, 0) and processes.is_ended(server, 0)
    # The daemon first asks the control daemon to quit, and kills it later.
    until_states(mps_pool, "starting", "ready", "stopping", "late", "stopped")


def test_refusing_to_end_does_not_help(mps_pool, mps):
    mps.faults("refuse-quit")
    with wire.connect(mps_pool.socket) as client:
        client.release(claim(client)["id"])
        until_state(mps_pool, "stopped")
    until_states(mps_pool, "starting", "ready", "stopping", "stopped")


def test_a_tenant_after_the_last(mps_pool, mps):
    """A tenant that arrives while the control daemon ends gets a new one."""
    with wire.connect(mps_pool.socket) as client:
        tenant = claim(client)
        former = mps.controls()["nvidia0"]
        client.send("RELEASE", id=tenant["id"])
        claim(client)
        assert mps.controls()["nvidia0"].pid != former.pid
        until_states(mps_pool, "starting", "ready", "stopping", "stopped", "starting", "ready")


def test_two_come_at_once(mps_pool, mps):
    """Both tenants are granted when the control daemon answers. Neither waits for the other."""
    with wire.connect(mps_pool.socket) as client:
        numbers = [client.send_claim({**TENANT, "nonblock": True}) for _ in range(3)]
        assert len({client.granted(number)["id"] for number in numbers}) == 3
        assert len(mps.controls()) == 1
        until_states(mps_pool, "starting", "ready")


def test_after_the_prolog(pool_of, mps, site):
    """No control daemon starts on a device before its prolog has succeeded."""
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
    until(lambda: "stopped" in states(pool), "the state stopped in the log")
    assert {entry.values["device"] for entry in until_state(pool, "starting")} == {"nvidia1"}


def test_a_claim_that_returns_to_the_queue(pool_of, mps, site):
    """A claim whose prolog fails on one device is no tenant of its other devices any more."""
    pool = pool_of(2)
    site.configure("prolog")
    site.hold("prolog.nvidia1")
    site.does("prolog.nvidia1", "exit 1\n")
    assert pool.berth("status").code == 0
    with wire.connect(pool.socket) as client:
        tenant = claim(client, wanted=["nvidia0"])
        client.send_claim({**TENANT, "gpus_min": 2, "gpus_max": 2, "ranks": True})
        site.until("begin", "prolog", "nvidia1")
        client.release(tenant["id"])
        assert list(mps.controls()) == ["nvidia0"]
        site.let_go("prolog.nvidia1")
        mps.until_gone()
        until(lambda: not look(pool)["slots"][0].get("blocks"), "a free device")


def test_devices_have_their_own(pool_of, mps):
    pool = pool_of(2)
    assert pool.berth("status").code == 0
    with wire.connect(pool.socket) as client:
        # Ranks may have several devices, each with its own control daemon.
        both = claim(client, gpus_min=2, gpus_max=2, ranks=True)
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


def test_within_another_lease(mps_pool, mps):
    """The device of an outer lease can be shared by inner tenants."""
    with wire.connect(mps_pool.socket) as client:
        outer = client.claim({})
        inner = client.claim(TENANT, parent=outer["id"])
        control = mps.controls()["nvidia0"]
        second = client.claim(TENANT, parent=outer["id"])
        client.release(inner["id"])
        assert mps.controls()["nvidia0"].pid == control.pid
        client.release(second["id"])
        # The outer lease keeps the device; another tenant within it waits for the end of the
        # control daemon.
        third = client.claim(TENANT, parent=outer["id"])
        control = mps.until_other(control)
        assert third["mps_root"] == str(control.pipe.parent.parent)
        waiting = client.send_claim({})
        client.release(outer["id"])
        client.granted(waiting)
        assert not mps.controls()


def test_one_directory_for_all_around(mps_pool, mps, sandbox):
    with wire.connect(mps_pool.socket) as client:
        outer = claim(client)
        with pytest.raises(wire.Refused) as caught:
            client.claim({**TENANT, "mps_pipe_dir": str(sandbox.directory / "p")}, parent=outer["id"])
        assert caught.value.error == wire.ERRORS["IMPOSSIBLE"]
        assert len(mps.controls()) == 1


# ---- Environment of the control daemon ----


def test_what_it_is_started_with(mps_pool, mps):
    with wire.connect(mps_pool.socket) as client:
        grant = claim(client)
        control = mps.controls()["nvidia0"]
        root = mps_pool.directory / "mps" / str(os.getuid())
        assert grant["mps_root"] == str(root)
        home = control.environment.pop("HOME", None)
        assert home is None or home.startswith("/")
        assert control.environment == {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "BERTH_LEASE": str(1 << 63),
            "CUDA_VISIBLE_DEVICES": "GPU-0",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_MPS_PIPE_DIRECTORY": str(root / "nvidia0/pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(root / "nvidia0/log"),
            "BERTH_SOCKET": str(mps_pool.socket),
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
        # The C library keeps signals 32 and 33 for itself, and the double ignores SIGCHLD.
        for mask in ("SigBlk", "SigIgn"):
            assert int(control.status[mask], 16) & ~(0b11 << 31 | 1 << 16) == 0
        assert control.status["NoNewPrivs"] == "1" or os.getuid() == 0


def test_what_it_prints_does_not_matter(mps_pool, mps):
    """A control daemon may print without end. Only the beginning is kept, and no process has to read
    the rest."""
    with wire.connect(mps_pool.socket) as client:
        claim(client)
        control = mps.controls()["nvidia0"]
        size = os.stat(f"/proc/{control.pid}/fd/1").st_size
        for _ in range(300):
            with wire.socket.socket(wire.socket.AF_UNIX) as peer:
                peer.connect(str(control.pipe / "control"))
        assert mps.command(control, "get_server_list") == (0, "")
        assert os.stat(f"/proc/{control.pid}/fd/1").st_size == size


def test_directories_of_ones_own(mps_pool, mps, sandbox):
    """Directories that a request names are used as they are."""
    pipe, log = sandbox.directory / "pipe", sandbox.directory / "log"
    log.mkdir(mode=0o755)
    with wire.connect(mps_pool.socket) as client:
        claim(client, mps_pipe_dir=str(pipe), mps_log_dir=str(log))
        control = mps.controls()["nvidia0"]
        assert (control.pipe, control.log) == (pipe, log)
        assert stat.S_IMODE(pipe.stat().st_mode) == 0o700
        assert (pipe / "control").is_socket()
        assert stat.S_IMODE(log.stat().st_mode) == 0o755
        assert "Starting control daemon" in (log / "control.log").read_text()
        assert not (mps_pool.directory / "mps").exists()


def test_directories_of_ones_own_for_several(pool_of, mps, sandbox):
    pool = pool_of(2)
    assert pool.berth("status").code == 0
    pipe = sandbox.directory / "pipe"
    with wire.connect(pool.socket) as client:
        claim(client, gpus_min=2, gpus_max=2, ranks=True, mps_pipe_dir=str(pipe))
        controls = mps.controls()
        for device in ("nvidia0", "nvidia1"):
            assert controls[device].pipe == pipe / device
            assert controls[device].log == pool.directory / f"mps/{os.getuid()}/{device}/log"
    mps.until_gone()
