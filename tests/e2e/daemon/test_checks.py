# SPDX-License-Identifier: Apache-2.0
"""Prolog and epilog: a holder gets a device only after the prolog has succeeded, and the next
holder only after the epilog has succeeded."""
import json
import os
import signal
import time

import pytest
import wire
from daemon_log import wait_for
from daemons import start_asked_for
from processes import is_ended
from waiting import look, pending, until, until_pending

BLOCK_DIRTY, BLOCK_DRAINED = 2, 4


def start(pool):
    """Start the pool's daemon."""
    assert pool.berth("status").code == 0


def slots(pool):
    return {slot["device"]["id"]: slot for slot in look(pool)["slots"]}


def reason(pool, device):
    return slots(pool)[device].get("reason")


def until_drained(pool, device):
    def drained():
        slot = slots(pool)[device]
        return slot if slot.get("blocks", 0) & BLOCK_DRAINED else None

    return until(drained, f"state DRAINED of {device}")


def kill_daemon(pool):
    [pid] = pool.daemons()
    pool.end_daemon(signal.SIGKILL)
    return pid


def leases(pool):
    return {lease["id"]: lease for lease in look(pool)["leases"]}


# ---- Epilogs ----


def test_nobody_gets_a_device_before_its_epilog_is_over(pool_of, site):
    pool = pool_of(1)
    site.configure("epilog")
    site.hold("epilog")
    assert pool.berth("run", "--name", "first", "true").code == 0
    site.until("begin", "epilog", "nvidia0", "1")
    with wire.connect(pool.socket) as client:
        number = client.send_claim()
        until_pending(pool, 1)
        assert slots(pool)["nvidia0"].get("blocks") == BLOCK_DIRTY
        assert slots(pool)["nvidia0"]["state"] == wire.STATES["DRAINING"]
        assert pool.berth("run", "--nonblock", "true").code == 123
        assert not site.lines("end")
        site.let_go("epilog")
        client.granted(number)
        site.until("end", "epilog", "nvidia0", "1")
    site.until("end", "epilog", count=2)
    until(lambda: not slots(pool)["nvidia0"].get("blocks"), "a free device")


def test_what_an_epilog_is_told(pool_of, site):
    pool = pool_of("devices:\n- {vendor: nvidia, index: 3, uuid: GPU-x, pci: '0000:07:00.0'}\n")
    site.configure("epilog")
    assert pool.berth("run", "--name", "tuned", "true").code == 0
    [begun] = site.until("begin", "epilog", "nvidia3")[-1:]
    assert begun[-3:] == ["--for", "epilog", "nvidia3"]
    site.until("end", "epilog", "nvidia3", begun[3])
    told = site.environment("epilog.nvidia3")
    for name in ("PWD", "OLDPWD", "SHLVL", "_", "this"):
        told.pop(name, None)
    assert told == {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "BERTH_EVENT": "epilog",
        "BERTH_DEVICE": "nvidia3",
        "BERTH_DEVICE_UUID": "GPU-x",
        "BERTH_DEVICE_PCI": "0000:07:00.0",
        "BERTH_LEASE": begun[3],
        "BERTH_UID": str(os.getuid()),
        "BERTH_NAME": "tuned",
    }


def test_device_files_are_named(hardware_of, site):
    pool = hardware_of()
    pool.says([pool.device(2, nodes=["/dev/nvidia2", "/dev/nvidiactl"])])
    site.configure("epilog")
    assert pool.berth("run", "true").code == 0
    site.until("end", "epilog", "nvidia2")
    assert site.environment("epilog.nvidia2")["BERTH_DEVICE_NODES"] == "/dev/nvidia2:/dev/nvidiactl"


def test_nothing_of_the_daemon_is_in_a_program(pool_of, site):
    pool = pool_of(1)
    site.configure("epilog")
    site.does("epilog", "ls -l /proc/self/fd | cat >fds; cat /proc/self/status >status; cat >input; umask >mask\n")
    assert pool.berth("run", "true").code == 0
    site.until("end", "epilog")

    def text(name):
        return (site.directory / name).read_text()

    links = {line.split()[-3]: line.split()[-1] for line in text("fds").splitlines() if "->" in line}
    assert links["0"] == "/dev/null"
    assert set(links) == {"0", "1", "2", "3"}
    assert links["1"].startswith("pipe:") and links["2"].startswith("pipe:")
    assert links["3"].startswith("/proc/")  # the directory that ls reads
    status = dict(line.split(":\t", 1) for line in text("status").splitlines() if ":\t" in line)
    # The C library keeps signals 32 and 33 for itself: they are inherited from the parent process.
    for mask in ("SigBlk", "SigIgn"):
        assert int(status[mask], 16) & ~(0b11 << 31) == 0
    assert text("input") == ""
    assert text("mask").strip() == "0077"


def test_failed_epilogs_take_the_device_out_of_service(pool_of, site):
    pool = pool_of(2)
    site.configure("epilog")
    site.does("epilog.nvidia0", "echo fine; echo '  ECC error in bank 3 '; echo; exit 7\n")
    assert pool.berth("run", "true").code == 0
    slot = until_drained(pool, "nvidia0")
    assert slot["reason"] == "epilog: exit code 7: ECC error in bank 3"
    assert "reason_uid" not in slot
    assert not slots(pool)["nvidia0"]["blocks"] & BLOCK_DIRTY
    assert pool.berth("run", "--device", "nvidia0", "--nonblock", "true").code == 123
    done = pool.berth("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert done.stdout == "nvidia1\n"
    site.until("end", "epilog", "nvidia1")
    # The fault survives a restart, and an administrator may override it.
    kill_daemon(pool)
    assert reason_after_start(pool, "nvidia0") == "epilog: exit code 7: ECC error in bank 3"
    site.does("epilog.nvidia0", None)
    with wire.connect(pool.socket) as client:
        client.ask("UNDRAIN", "DONE", device_ids=["nvidia0"])
    done = pool.berth("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert done.stdout == "nvidia0\n"


def reason_after_start(pool, device):
    start(pool)
    return reason(pool, device)


@pytest.mark.parametrize(
    "text, found",
    [
        ("kill -SEGV $$\n", "epilog: signal 11 (Segmentation fault)"),
        ("printf 'not\\033[2J a\\001line\\r\\n\\n'; exit 1\n", "epilog: exit code 1: not\ufffd[2J a\ufffdline"),
        ("printf '\\377\\376x'; exit 2\n", "epilog: exit code 2: \ufffd\ufffdx"),
        ("head -c 5000000 /dev/zero | tr '\\0' 'y'; exit 1\n", "epilog: exit code 1: " + 200 * "y"),
        ("yes | head -c 3000000; echo last >&2; exit 1\n", "epilog: exit code 1: last"),
    ],
)
def test_what_a_program_prints_is_hostile(pool_of, site, text, found):
    pool = pool_of(1)
    site.configure("epilog")
    site.does("epilog", text)
    assert pool.berth("run", "true").code == 0
    assert until_drained(pool, "nvidia0")["reason"] == found


@pytest.mark.parametrize("what", ["missing", "not executable", "no program", "a directory"])
def test_programs_that_cannot_be_started(pool_of, site, what):
    pool = pool_of(1)
    site.configure("epilog")
    words = {
        "missing": "No such file or directory",
        "not executable": "Permission denied",
        "no program": "Exec format error",
        "a directory": "Permission denied",
    }
    site.program.unlink()
    if what == "not executable":
        site.program.write_text("#!/bin/sh\n")
    elif what == "no program":
        site.program.write_text("true\n")
        site.program.chmod(0o700)
    elif what == "a directory":
        site.program.mkdir()
    assert pool.berth("run", "true").code == 0
    assert until_drained(pool, "nvidia0")["reason"] == f"epilog: cannot be started: {words[what]}"


def test_an_epilog_that_hangs_is_killed_with_all_of_its_group(pool_of, site):
    pool = pool_of(1)
    site.does("epilog", "echo resetting; sleep 1000 & echo $! >$!; mv $! child; exec sleep 1000\n")
    child = site.directory / "child"
    for deadline in ("500ms", "5s"):  # 5 s if the machine is too slow for 500 ms
        pool.end_daemon()
        site.configure("epilog", deadline=deadline)
        assert pool.berth("undrain", "nvidia0").code == 0
        assert pool.berth("run", "true").code == 0
        slot = until_drained(pool, "nvidia0")
        if child.exists():
            break
    assert slot["reason"] == f"epilog: no end within {deadline}: resetting"
    assert is_ended(int(site.lines("begin")[-1][4]), 10)
    assert is_ended(int(child.read_text()), 10)


def test_children_that_linger_do_not_count(pool_of, site):
    """The daemon waits only for the program itself, not for children that keep its output open."""
    pool = pool_of(1)
    site.configure("epilog")
    site.does("epilog", "sleep 1000 & echo $! >>children\n")
    began = time.monotonic()
    assert pool.berth("run", "true").code == 0
    assert pool.berth("run", "true").code == 0
    assert time.monotonic() - began < 10
    site.until("end", "epilog", count=2)
    children = [int(line) for line in (site.directory / "children").read_text().split()]
    assert len(children) == 2
    for pid in children:
        os.kill(pid, signal.SIGKILL)  # fails if the daemon killed the child


def test_many_devices_at_once(pool_of, site):
    pool = pool_of(24)
    site.configure("epilog")
    site.hold("epilog")
    assert pool.berth("run", "-n", "24", "true").code == 0
    site.until("begin", "epilog", count=16)
    with wire.connect(pool.socket) as client:
        number = client.send_claim({"gpus_min": 24, "gpus_max": 24})
        until_pending(pool, 1)
        assert len(site.lines("begin")) == 16
        site.let_go("epilog")
        client.granted(number)
        assert len(site.lines("end", "epilog")) == 24
        assert {line[2] for line in site.lines("end")} == {f"nvidia{index}" for index in range(24)}
    site.until("end", "epilog", count=48)


def test_sharers_and_inner_leases(pool_of, site):
    """The epilog runs when the last lease leaves a device, the prolog when the first lease gets
    it."""
    pool = pool_of(1)
    site.configure("prolog", "epilog")
    start(pool)
    with wire.connect(pool.socket) as client:
        request = {"sharing": 2, "share": 250000}
        first, second = client.claim(request), client.claim(request)
        assert len(site.lines("end", "prolog")) == 1
        inner = client.claim(parent=first["id"])
        client.release(inner["id"])
        client.release(first["id"])
        assert not site.lines("begin", "epilog")
        third = client.claim(request)
        client.release(second["id"])
        client.release(third["id"])
        site.until("end", "epilog")
    assert [line[1] for line in site.lines("begin")] == ["prolog", "epilog"]
    assert site.lines("begin", "epilog")[0][3] == str(third["id"])


def test_a_restart_in_the_midst_of_an_epilog(pool_of, site):
    pool = pool_of(1)
    site.configure("epilog")
    site.hold("epilog")
    assert pool.berth("run", "--name", "mine", "true").code == 0
    [begun] = site.until("begin", "epilog")
    kill_daemon(pool)
    assert is_ended(int(begun[4]), 10), "the program must end with its daemon"
    waiter = pool.start("run", "--", "sh", "-c", "echo held")
    site.until("begin", "epilog", "nvidia0", "1", count=2)
    until_pending(pool, 1)
    assert site.environment("epilog.nvidia0")["BERTH_NAME"] == "mine"
    assert waiter.text() == ""
    # Restart once more, before anything has changed.
    kill_daemon(pool)
    start(pool)
    site.until("begin", "epilog", "nvidia0", "1", count=3)
    until_pending(pool, 1)
    assert not site.lines("end")
    site.let_go("epilog")
    assert waiter.wait() == 0
    site.until("end", "epilog", "nvidia0", "2")
    wait_for(pool.directory / "log", "epilog", id="2", result="ok")
    # A finished program does not run again.
    kill_daemon(pool)
    assert pool.berth("run", "true").code == 0
    site.until("end", "epilog", count=3)
    assert [line[3] for line in site.lines("end")] == ["1", "2", site.lines("end")[2][3]]
    assert [line[3] for line in site.lines("begin")] == ["1", "1", "1", "2", site.lines("end")[2][3]]


def test_ending_the_daemon_leaves_no_program(pool_of, site):
    pool = pool_of(2)
    site.configure("epilog")
    site.hold("epilog")
    site.does("epilog", "exit 1\n")
    assert pool.berth("run", "-n", "2", "true").code == 0
    begun = site.until("begin", "epilog", count=2)
    pool.end_daemon(signal.SIGTERM)
    for line in begun:
        assert is_ended(int(line[4]), 10)


def test_a_pool_of_its_own_does_not_end_in_the_midst(pool_of, site):
    """An unused daemon exits, but not while it runs a program."""
    pool = pool_of(1)
    site.configure("epilog")
    site.hold("epilog")
    command, daemon = start_asked_for(pool, ["run", "true"], "--idle", "100ms")
    assert command.wait() == 0
    site.until("begin", "epilog")
    assert not is_ended(daemon.process.pid, 0.5)
    site.let_go("epilog")
    assert daemon.wait() == 0
    assert site.lines("end", "epilog")


# ---- Prologs ----


def test_a_holder_is_told_after_the_prolog(pool_of, site):
    pool = pool_of(2)
    site.configure("prolog")
    site.hold("prolog")
    start(pool)
    with wire.connect(pool.socket) as client:
        number = client.send_claim({"gpus_min": 2, "gpus_max": 2, "name": "both"})
        waiting = client.answer(number, ("WAITING",))
        site.until("begin", "prolog", count=2)
        [lease] = look(pool)["leases"]
        assert lease["preparing"] and lease["id"] == waiting["id"]
        assert pending(pool) == 0
        assert client.explain(waiting["id"])["text"] == "its devices are being checked"
        assert site.environment("prolog.nvidia1")["BERTH_NAME"] == "both"
        site.let_go("prolog")
        grant = client.granted(number)
        assert grant["id"] == waiting["id"]
        assert len(site.lines("end", "prolog")) == 2
        assert "preparing" not in look(pool)["leases"][0]
    until(lambda: not leases(pool), "the end of the lease")
    assert pool.berth("run", "--nonblock", "true").code == 0


def test_run_waits_for_the_prolog_and_has_the_exit_code_of_its_command(pool_of, site):
    pool = pool_of(1)
    site.configure("prolog", "epilog")
    done = pool.berth("run", "--", "sh", "-c", "exit 9")
    assert (done.code, done.stdout, done.stderr) == (9, "", "")
    site.until("end", "epilog")
    assert [line[1] for line in site.lines("end")] == ["prolog", "epilog"]


def test_a_failed_prolog_gives_the_claim_another_device(pool_of, site):
    pool = pool_of(2)
    site.configure("prolog")
    site.does("prolog.nvidia0", "echo no such luck; exit 3\n")
    done = pool.berth("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert (done.code, done.stdout) == (0, "nvidia1\n")
    assert reason(pool, "nvidia0") == "prolog: exit code 3: no such luck"
    wait_for(pool.directory / "log", "returned", id="1")
    [prolog] = wait_for(pool.directory / "log", "prolog", device="nvidia0")
    assert prolog.values["result"] == "exit code 3: no such luck"


def test_a_failed_prolog_puts_the_claim_back_into_its_place(pool_of, site):
    pool = pool_of(1)
    site.configure("prolog")
    site.hold("prolog")
    site.does("prolog", "exit 1\n")
    start(pool)
    with wire.connect(pool.socket) as client, wire.connect(pool.socket) as later:
        first = client.send_claim()
        site.until("begin", "prolog")
        second = later.send_claim()
        until_pending(pool, 1)
        site.let_go("prolog")
        until_drained(pool, "nvidia0")
        until_pending(pool, 2)
        queue = look(pool)["claims"]
        assert [claim["id"] for claim in queue] == sorted(claim["id"] for claim in queue)
        site.does("prolog", None)
        client.ask("UNDRAIN", "DONE", device_ids=["nvidia0"])
        grant = client.granted(first)
        assert pending(pool) == 1
        client.release(grant["id"])
        later.granted(second)


def test_one_bad_device_of_several(pool_of, site):
    """All devices of the claim are released, and those with a successful prolog get their epilog."""
    pool = pool_of(4)
    site.configure("prolog", "epilog")
    site.does("prolog.nvidia1", "exit 1\n")
    done = pool.berth("run", "-n", "2", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert done.code == 0
    assert "nvidia1" not in done.stdout
    assert reason(pool, "nvidia1") == "prolog: exit code 1"
    assert site.until("end", "epilog", "nvidia0")
    assert not site.lines("begin", "epilog", "nvidia1")


@pytest.mark.parametrize("option", ["--nonblock", "--wait=200ms"])
def test_claims_that_do_not_wait_for_ever(pool_of, site, option):
    pool = pool_of(1)
    site.configure("prolog")
    site.does("prolog", "exit 1\n")
    assert pool.berth("run", option, "true").code == 123
    until_drained(pool, "nvidia0")
    assert pending(pool) == 0


def test_nonblock_gets_another_device(pool_of, site):
    pool = pool_of(2)
    site.configure("prolog")
    site.does("prolog.nvidia0", "exit 1\n")
    done = pool.berth("run", "--nonblock", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert (done.code, done.stdout) == (0, "nvidia1\n")


def test_a_prolog_that_hangs(pool_of, site):
    pool = pool_of(2)
    site.configure("prolog", deadline="400ms")
    site.hold("prolog.nvidia0")
    assert pool.berth("drain", "nvidia1").code == 0
    command = pool.start("run", "--", "sh", "-c", "echo $BERTH_DEVICES")
    assert until_drained(pool, "nvidia0")["reason"] == "prolog: no end within 400ms"
    until_pending(pool, 1)
    # The prolog of the other device may take as long as it needs.
    site.configure("prolog")
    os.kill(pool.daemons()[0], signal.SIGHUP)
    wait_for(pool.directory / "log", "reloaded")
    assert pool.berth("undrain", "nvidia1").code == 0
    assert (command.wait(), command.text()) == (0, "nvidia1\n")


@pytest.mark.parametrize("how", ["hang up", "cancel", "stop", "release"])
@pytest.mark.parametrize("hold", ["CONNECTION", "PROCESS", "NOTHING"])
def test_a_client_that_does_not_wait_for_the_prolog(pool_of, site, how, hold):
    pool = pool_of(1)
    site.configure("prolog", "epilog")
    site.hold("prolog")
    start(pool)
    with wire.connect(pool.socket) as client:
        number = client.send_claim({"time": 3600 * 10**9}, hold=wire.HOLDS[hold])
        id = client.answer(number, ("WAITING",))["id"]
        [begun] = site.until("begin", "prolog")
        if how != "hang up":
            client.ask(how.upper(), "DONE", id=id)
            with pytest.raises(wire.Refused) as refusal:
                client.granted(number)
            assert refusal.value.error == wire.ERRORS["CANCELLED"]
    # The prolog does not keep running beside the epilog.
    site.until("end", "epilog", "nvidia0", str(id))
    assert is_ended(int(begun[4]), 10)
    assert not site.lines("end", "prolog")
    until(lambda: not leases(pool), "the end of the lease")
    site.let_go("prolog")
    assert pool.berth("run", "true").code == 0


def test_without_an_epilog_a_stopped_prolog_still_comes_first(pool_of, site):
    pool = pool_of(1)
    site.configure("prolog")
    site.hold("prolog")
    start(pool)
    with wire.connect(pool.socket) as client:
        client.send_claim()
        [begun] = site.until("begin", "prolog")
    until(lambda: not leases(pool), "the end of the lease")
    site.let_go("prolog")
    assert pool.berth("run", "true").code == 0
    assert is_ended(int(begun[4]), 0)


def test_a_holder_that_dies_during_the_prolog(pool_of, site):
    pool = pool_of(1)
    site.configure("prolog", "epilog")
    site.hold("prolog")
    holder = pool.start("run", "true")
    site.until("begin", "prolog")
    holder.process.kill()
    holder.wait()
    site.until("end", "epilog")
    until(lambda: not leases(pool), "the end of the lease")


def test_a_time_limit_during_the_prolog(pool_of, site):
    pool = pool_of(1)
    site.configure("prolog")
    site.hold("prolog")
    done = pool.berth("run", "--time", "300ms", "true")
    assert done.code == 123
    assert not site.lines("end")


@pytest.mark.parametrize("hold", ["CONNECTION", "PROCESS", "NOTHING"])
def test_a_restart_in_the_midst_of_a_prolog(pool_of, site, hold):
    pool = pool_of(1)
    site.configure("prolog")
    site.hold("prolog")
    start(pool)
    token = 7 << 64 | 9
    with wire.connect(pool.socket) as client:
        client.send_claim({"time": 3600 * 10**9}, token=token, hold=wire.HOLDS[hold])
        [begun] = site.until("begin", "prolog")
        kill_daemon(pool)
    assert is_ended(int(begun[4]), 10)
    start(pool)
    site.until("begin", "prolog", count=2)
    with wire.connect(pool.socket) as client:
        number = client.send_claim({"time": 3600 * 10**9}, token=token, hold=wire.HOLDS[hold])
        client.answer(number, ("WAITING",))
        assert not site.lines("end")
        site.let_go("prolog")
        grant = client.granted(number)
        assert len(site.lines("end", "prolog")) == 1
        client.release(grant["id"])


def test_a_claim_that_waited_is_prepared_after_a_restart_too(pool_of, site):
    """The daemon is killed between the grant and the first message. The journal is enough to
    continue."""
    pool = pool_of(1)
    site.configure("prolog")
    holder = pool.hold()
    site.until("end", "prolog")
    site.hold("prolog")
    waiter = pool.start("run", "--", "sh", "-c", "echo held")
    until_pending(pool, 1)
    kill_daemon(pool)
    pool.let_go(holder)
    start(pool)
    site.until("begin", "prolog", count=2)
    assert waiter.text() == ""
    site.let_go("prolog")
    assert waiter.wait() == 0


def test_rules_that_change(pool_of, site):
    pool = pool_of(2)
    site.configure()
    start(pool)
    log = pool.directory / "log"
    holder = pool.hold()
    assert not site.lines()
    site.configure("prolog", "epilog")
    os.kill(pool.daemons()[0], signal.SIGHUP)
    wait_for(log, "reloaded")
    pool.let_go(holder)
    site.until("end", "epilog", "nvidia0")
    assert pool.berth("run", "--device", "nvidia1", "true").code == 0
    site.until("end", "epilog", "nvidia1")
    assert site.lines("end", "prolog", "nvidia1")
    # When the epilog is removed from the configuration, a pending epilog counts as finished.
    site.hold("epilog")
    assert pool.berth("run", "--device", "nvidia0", "true").code == 0
    site.until("begin", "epilog", "nvidia0", count=2)
    site.configure()
    kill_daemon(pool)
    assert pool.berth("run", "-n", "2", "true").code == 0


def test_status_in_the_midst(pool_of, site):
    pool = pool_of(2)
    site.configure("prolog", "epilog")
    site.hold("epilog")
    assert pool.berth("run", "true").code == 0
    site.until("begin", "epilog")
    state = json.loads(pool.berth("status", "--json").stdout)
    assert [device["state"] for device in state["devices"]] == ["draining", "free"]
    site.let_go("epilog")
