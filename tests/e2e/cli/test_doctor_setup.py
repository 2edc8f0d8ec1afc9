# SPDX-License-Identifier: Apache-2.0
"""berth doctor on the user's setup: the configuration, masks and directories."""
import os
import pwd
import shutil

import pytest
from doctor_report import doctor, finished, lines_of, problems
from lease_history import configure
from lease_history import problems as history_problems
from waiting import until


# ---- The configuration ----


def test_configuration(pool):
    """The daemon would not start with this file, and says so only when it starts."""
    path = pool.sandbox.home / ".config/berth/berth.yaml"
    configure(pool, "age_step: 2h\n")
    assert doctor(pool.sandbox)["configuration", "ok"] == [(f"{path} is valid", None)]
    for text, words in [
        ("grace: banana\n", f"{path}:1:8: grace: "),
        ("\npolicy: best\n", f"{path}:2:9: "),
        ("notify: /nonexistent\n", f"{path}:1:9: notify: /nonexistent: no such file"),
    ]:
        configure(pool, text)
        found = doctor(pool.sandbox)
        [(what, remedy)] = found["configuration", "problem"]
        assert what.startswith(words)
        assert remedy == f"correct the file, then run: berth daemon --check-config --config {path}"
    assert doctor(pool.sandbox, env={"HOME": None})["configuration", "ok"] == [
        ("no file, as HOME is not set: the defaults apply", None)
    ]


def test_configuration_of_the_machine(sandbox):
    """A pool that is not the user's own has the machine's configuration."""
    found = doctor(sandbox, env={"BERTH_SOCKET": "/nonexistent/berth.sock"})
    lines = [line for (check, _), lines in found.items() for line in lines if check == "configuration"]
    assert [what.startswith("/etc/berth/berth.yaml") for what, _ in lines] == [True]


def test_configuration_that_cannot_be_read(pool):
    if os.geteuid() == 0:
        pytest.skip("root can read every file")
    configure(pool, "grace: 3s\n")
    path = pool.sandbox.home / ".config/berth/berth.yaml"
    path.chmod(0)
    [(what, remedy)] = doctor(pool.sandbox)["configuration", "problem"]
    assert what == f"cannot read {path}: Permission denied"
    assert remedy.startswith("make it readable for you")


# ---- The environment ----


def test_masks(pool):
    assert pool.berth("status").code == 0
    found = doctor(pool.sandbox, env={"CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": ""})
    assert found["masks", "warning"] == [
        ("CUDA_VISIBLE_DEVICES limits this shell's jobs to 0,1", "if this is not intended: unset CUDA_VISIBLE_DEVICES")
    ]
    found = doctor(pool.sandbox, env={"CUDA_VISIBLE_DEVICES": ""})
    assert found["masks", "warning"][0][0] == "CUDA_VISIBLE_DEVICES leaves no nvidia device to this shell's jobs"


def test_masks_that_leave_no_device(pool_of):
    """Entries that are no device here end a mask, as they do for CUDA."""
    pool = pool_of(4)
    found = doctor(pool.sandbox, env={"CUDA_VISIBLE_DEVICES": "garbage,99"})
    assert found["masks", "warning"] == [
        ("CUDA_VISIBLE_DEVICES leaves no nvidia device to this shell's jobs: 'garbage,99' does not begin with a device "
         "of this machine",
         "if this is not intended: unset CUDA_VISIBLE_DEVICES")
    ]  # fmt: skip
    found = doctor(pool.sandbox, env={"CUDA_VISIBLE_DEVICES": "0", "NVIDIA_VISIBLE_DEVICES": "1"})
    assert found["masks", "warning"][2:] == [
        ("together, the masks leave no nvidia device to this shell's jobs",
         "if this is not intended: unset CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "masks",
    [{"NVIDIA_VISIBLE_DEVICES": "all"}, {"ROCR_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}],
    ids=["container", "other vendor", "all"],
)
def test_masks_that_hide_nothing(pool_of, masks):
    found = doctor(pool_of(4).sandbox, env=masks)
    assert found["masks", "ok"] == [("the environment hides no device", None)]


def test_within_a_lease(pool):
    """The masks of a lease are as they should be. Those of a lease that has ended are a problem."""
    done = pool.berth("run", "berth", "doctor", "--json")
    [(what, _)] = lines_of(done)["masks", "ok"]
    assert what.startswith("this shell runs in lease ")
    found = doctor(pool.sandbox, env={"BERTH_LEASE": "4711", "CUDA_VISIBLE_DEVICES": "0"})
    assert found["masks", "problem"][0][0] == "this shell belongs to lease 4711, which has ended"
    assert len(found["masks", "warning"]) == 1
    assert found["masks", "problem"][0][1] == "unset BERTH_LEASE and the masks, or open a new shell"
    found = doctor(pool.sandbox, env={"BERTH_LEASE": "x"})
    assert found["masks", "problem"][0][0] == "BERTH_LEASE: expected the id of a lease, got 'x'"


def test_lease_of_a_daemon_that_has_ended(pool):
    """The user's own daemon ends when it has no leases, so this one has ended."""
    found = doctor(pool.sandbox, env={"BERTH_LEASE": "7", "CUDA_VISIBLE_DEVICES": "0"})
    assert found["masks", "problem"][0][0] == "this shell belongs to lease 7, which has ended"
    assert len(found["masks", "warning"]) == 1


def test_directories(pool):
    """A state directory that is a file, and an own directory that is open to others."""
    state = pool.sandbox.home / ".local/state/berth"
    state.parent.mkdir(parents=True)
    state.write_text("")
    pool.runtime.mkdir(mode=0o700)
    pool.runtime.chmod(0o755)
    found = doctor(pool.sandbox)
    assert found["directories", "problem"] == [
        (
            f"logs of jobs: cannot write to {state}: not a directory",
            "make it writable, or set XDG_STATE_HOME to another directory",
        ),
        (
            f"own daemon: {pool.runtime}: expected a directory with mode 0700, got mode 0755",
            "fix it, or set BERTH_RUNTIME_DIR to another directory",
        ),
    ]
    found = doctor(pool.sandbox, env={"HOME": None})
    assert found["directories", "problem"][0] == ("logs of jobs: HOME: expected an absolute path, got ''", "set HOME or XDG_STATE_HOME")


def test_runtime_directory_that_cannot_be_made(pool):
    (pool.sandbox.directory / "file").write_text("")
    runtime = pool.sandbox.directory / "file/run"
    [(what, remedy)] = doctor(pool.sandbox, env={"BERTH_RUNTIME_DIR": runtime})["directories", "problem"]
    assert what.startswith("own daemon: ")
    assert remedy == "make it writable, or set BERTH_RUNTIME_DIR to another directory"


def test_history(pool_of):
    """The directory of the history, and a pool without one."""
    pool = pool_of(1)
    configure(pool, "history: no\n")
    assert pool.berth("status").code == 0
    assert ("history: leases are not recorded (history: no)", None) in doctor(pool.sandbox)["directories", "ok"]
    pool.end_daemon()
    missing = pool.sandbox.directory / "missing"
    configure(pool, f"history: {missing}/history.db\n")
    missing.write_text("")
    assert pool.berth("status").code == 0
    [(what, remedy)] = doctor(pool.sandbox)["directories", "problem"]
    assert what == f"history: the directory {missing} is missing"
    configuration = pool.sandbox.home / ".config/berth/berth.yaml"
    assert remedy == f"run: mkdir -p {missing}, or set `history` in {configuration} to another file"


def test_history_without_a_daemon(pool_of):
    """The directory is checked before a daemon uses it."""
    pool = pool_of(1)
    found = doctor(pool.sandbox)
    assert (f"history: {pool.directory} (created when it is needed)", None) in found["directories", "ok"]
    configure(pool, f"history: {pool.sandbox.directory}/missing/history.db\n")
    [(what, _)] = doctor(pool.sandbox)["directories", "problem"]
    assert what == f"history: the directory {pool.sandbox.directory}/missing is missing"
    configure(pool, "history: no\n")
    assert ("history: leases are not recorded (history: no)", None) in doctor(pool.sandbox)["directories", "ok"]


def test_history_that_cannot_be_created(pool_of):
    """The daemon's own message is the only line about the history, with the way out."""
    pool = pool_of(1)
    missing = pool.sandbox.directory / "file/deep"
    missing.parent.write_text("")
    configure(pool, f"history: {missing}/history.db\n")
    assert pool.berth("run", "true").code == 0
    [words] = until(lambda: history_problems(pool), "a problem")
    found = doctor(pool.sandbox)
    [(what, remedy)] = found["pool", "problem"]
    assert what == f"history: {words}" and remedy.startswith(f"run: mkdir -p {missing}, or set `history` in ")
    assert list(problems(found)) == ["pool"]
    assert not [what for what, _ in found["directories", "ok"] if what.startswith("history")]


def test_history_of_a_service(sandbox, daemon):
    """The command is that of ADMIN.md, for the user of the daemon."""
    missing = f"{sandbox.directory}/missing"
    with sandbox.start(["berth", "doctor", "--json"], env=daemon.env) as program:
        client = daemon.accept()
        about = {"pool": "p", "socket": str(daemon.path), "version_text": "0", "pid": 1, "history": f"{missing}/h.db"}
        client.say("POOL", client.expect("HELLO"), **about)
        client.say("PAGE", client.expect("LOOK"), capacity=0, time=0)
        client.expect_end()
        program.wait()
        [(_, remedy)] = lines_of(finished(program))["directories", "problem"]
    user = next((user.pw_name for user in pwd.getpwall() if user.pw_uid == os.getuid()), str(os.getuid()))
    options = "-o berth -g berth" if user in ("root", "berth") else f"-o {user}"
    assert remedy == f"run as root: install -d {options} -m 0755 {missing}"


def test_foreign_state_directory(pool):
    if os.geteuid() != 0:
        pytest.skip("only root can change a directory's owner")
    state = pool.sandbox.home / ".local/state/berth"
    state.mkdir(parents=True)
    shutil.chown(state, 65534, 65534)
    [(what, remedy)] = doctor(pool.sandbox)["directories", "problem"]
    assert what.startswith(f"logs of jobs: {state} belongs to ")
    assert remedy == f"run as root: chown -R 0 {state}"
