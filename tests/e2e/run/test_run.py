# SPDX-License-Identifier: Apache-2.0
"""berth run with a real daemon: the command's environment, its exit code, and the release of
devices."""
import os
import re
import signal

import pytest
from processes import wait_for_end

MIXED = """
devices:
- {vendor: nvidia, index: 0, uuid: GPU-a, minor: 0, nodes: [/dev/nvidia0, /dev/nvidiactl]}
- {vendor: nvidia, index: 1, uuid: GPU-b}
- {vendor: nvidia, index: 2}
- {vendor: amd, index: 0}
"""


def environment(pool, *args, env=None):
    done = pool.berth("run", *args, "env", "-0", env=env)
    assert (done.code, done.stderr) == (0, "")
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)


def all_free(pool, count):
    """Check that every device can be claimed at once."""
    assert pool.berth("wait", "-n", str(count), "--nonblock").code == 0, pool.berth("status").stdout


# ---- The command ----


def test_streams_and_words_pass_through(pool):
    script = 'cat; echo "$#" "$@"; echo no >&2; exit 3'
    done = pool.berth("run", "sh", "-c", script, "sh", "-n", "a b", "", "--", input="yes\n")
    assert done == (3, "yes\n4 -n a b  --\n", "no\n")


@pytest.mark.parametrize("args", [["-n2", "--", "printenv"], ["-n", "2", "printenv"], ["--gpus=2", "printenv"]])
def test_options_end_at_the_command(pool, args):
    assert pool.berth("run", *args, "BERTH_DEVICES").stdout == "nvidia0,nvidia1\n"


def test_same_process(pool):
    """If nothing must be supervised, berth executes the command in its own process."""
    with pool.start("run", "sh", "-c", "echo $$") as program:
        assert program.wait_for_line("^[0-9]") == str(program.pid)
        assert program.wait() == 0


@pytest.mark.parametrize("options", [[], ["--time", "1h"]])
@pytest.mark.parametrize(
    "command, code",
    [
        (["true"], 0),
        (["false"], 1),
        (["sh", "-c", "exit 200"], 200),
        (["sh", "-c", "kill -KILL $$"], 137),
        (["sh", "-c", "kill -TERM $$"], 143),
    ],
)
def test_exit_codes(pool, options, command, code):
    found = pool.berth("run", *options, *command).code
    # A signal that ends the command ends berth, if berth became the command.
    assert found in ((code, 128 - code) if code > 128 and not options else (code,))
    all_free(pool, 8)


@pytest.mark.parametrize("options", [[], ["--time", "1h"], ["--replicas", "2"]])
def test_commands_that_cannot_be_started(pool, options):
    (pool.sandbox.directory / "file").write_text("no program\n")
    for command, code in [("no-such-command", 127), ("./none", 127), ("./file", 126), ("/", 126)]:
        done = pool.berth("run", *options, command)
        assert (done.code, done.stdout) == (code, "")
        assert re.fullmatch(f"berth: run: .*{re.escape(command)}.*\n", done.stderr)
    all_free(pool, 8)


@pytest.mark.parametrize(
    "args, wanted",
    [
        ([], "expected a command, got none"),
        (["-n2", "--"], "expected a command, got none"),
        (["-n", "0", "true"], "--gpus: expected a whole number from 1 to 1000000, got 0"),
        (["--label", "true"], "--label: needs --ranks or several replicas"),
        (["--master-port", "29500", "true"], "--master-port: needs --ranks"),
        (["--ranks", "--master-port", "65536", "true"],
         "--master-port: expected a whole number from 1 to 65535, got 65536"),
        (["--tiem", "1h", "true"], "no option '--tiem' here, did you mean --time?"),
    ],
)
def test_wrong_usage(pool, args, wanted):
    assert pool.berth("run", *args) == (2, "", f"berth: run: {wanted}\n")
    assert pool.daemons() == []  # berth has started no daemon


def test_missing_inventory(sandbox):
    done = sandbox.run(["berth", "run", "--inventory", "none.yaml", "true"])
    assert (done.code, done.stdout) == (2, "")
    assert re.fullmatch("berth: run: --inventory: .*none.yaml.*\n", done.stderr)


# ---- The request ----


def test_impossible(pool):
    done = pool.berth("run", "-n", "9", "true")
    assert done == (120, "", "berth: run: requested 9 devices, but this pool has only 8\n")


def test_a_device_that_is_not_here(pool):
    """The refusal of the pool and the answer of the plan have the same words."""
    why = "no device named nvidia9 here; there are nvidia0 to nvidia7"
    done = pool.berth("run", "--device", "nvidia9", "true")
    assert done == (120, "", f"berth: run: {why}\n")
    assert pool.berth("plan", "--device", "nvidia9") == (120, f"never\nwhy: {why}\n", "")
    assert pool.berth("run", "--device", "nvidia9,nvidia2", "true").code == 0
    assert pool.berth("run", "--avoid", "nvidia9", "true").code == 0


def test_no_device(pool_of):
    assert pool_of("devices: []\n").berth("run", "true").code == 120


def test_or_cpu(pool):
    script = 'echo "$CUDA_VISIBLE_DEVICES ${BERTH_LEASE-none} ${BERTH_REPLICA-none}"'
    assert pool.berth("run", "-n9", "--or-cpu", "sh", "-c", script) == (0, "-1 none none\n", "")
    done = pool.berth("run", "-n9", "--replicas", "2", "--or-cpu", "sh", "-c", script)
    assert (done.code, sorted(done.stdout.splitlines())) == (0, ["-1 none 0", "-1 none 1"])
    done = pool.berth("run", "-n9", "--or-cpu", "-v", "true")
    assert done == (0, "", "berth: no device can ever match the request: running on the CPU\n")


def test_nonblock_and_wait(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    assert pool.berth("run", "--nonblock", "true").code == 123
    assert pool.berth("run", "--wait", "50ms", "true").code == 123
    pool.let_go(holder)
    assert pool.berth("run", "--nonblock", "true").code == 0


def test_waits_its_turn(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "-v", "echo", "granted") as waiting:
        waiting.wait_for_line("^berth: waiting, 1st of 1", "stderr")
        assert waiting.text() == ""
        pool.let_go(holder)
        assert waiting.wait() == 0
        assert waiting.text() == "granted\n"


def test_cancel_while_it_waits(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "-v", "true") as waiting:
        waiting.wait_for_line("^berth: waiting", "stderr")
        claim = int(holder.lease) + 1
        assert pool.berth("cancel", str(claim)) == (0, "", "")
        assert waiting.wait() == 123
        assert waiting.text("stderr").splitlines()[-1].startswith("berth: run: ")
    pool.let_go(holder)


def test_waiting_ends_by_signal(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "-v", "true") as waiting:
        waiting.wait_for_line("^berth: waiting", "stderr")
        waiting.kill(signal.SIGTERM)
        assert waiting.wait() == -signal.SIGTERM
    pool.let_go(holder)
    assert pool.berth("wait", "--wait", "10s").code == 0


# ---- The environment ----


def test_environment(pool_of):
    pool = pool_of(MIXED)
    found = environment(pool, "-n", "2", "--device", "nvidia0,nvidia1")
    assert found["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert found["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert found["NVIDIA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert found["ROCR_VISIBLE_DEVICES"] == "-1"  # the host has one, this pool does not
    assert found["BERTH_DEVICES"] == "nvidia0,nvidia1"
    assert found["BERTH_SOCKET"] == str(pool.socket)
    assert found["BERTH_LEASE"] == "1"
    assert "BERTH_REPLICA" not in found
    assert found["HOME"] == str(pool.sandbox.home)


def test_uuid(pool_of):
    pool = pool_of(MIXED)
    assert environment(pool, "--uuid", "--device", "nvidia1")["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    done = pool.berth("run", "--uuid", "--device", "nvidia2", "true")
    assert (done.code, done.stdout) == (2, "")
    assert "nvidia2" in done.stderr
    all_free(pool, 3)


def test_inherited_mask(pool):
    found = environment(pool, "-n", "all", env={"CUDA_VISIBLE_DEVICES": "2,5"})
    assert found["CUDA_VISIBLE_DEVICES"] == "2,5"
    assert pool.berth("run", "-n3", "true", env={"CUDA_VISIBLE_DEVICES": "2,5"}).code == 120


# ---- Replicas ----


@pytest.mark.parametrize("scheduling", ["gang", "spread", "best-effort"])
def test_replicas(pool, scheduling):
    script = "echo $BERTH_REPLICA $BERTH_DEVICES"
    done = pool.berth("run", "-n2", "--replicas", "3", "--scheduling", scheduling, "sh", "-c", script)
    assert (done.code, done.stderr) == (0, "")
    numbers, devices = zip(*(line.split() for line in sorted(done.stdout.splitlines())))
    assert numbers == ("0", "1", "2")
    if scheduling == "gang":  # best-effort replicas may run one after the other
        assert len(set(",".join(devices).split(","))) == 6
    all_free(pool, 8)


@pytest.mark.parametrize("scheduling", ["gang", "best-effort"])
def test_first_failure_stops_the_rest(pool, scheduling):
    script = "if [ $BERTH_REPLICA = 1 ]; then exit 5; fi; exec sleep 60"
    done = pool.berth("run", "--replicas", "3", "--scheduling", scheduling, "sh", "-c", script)
    assert (done.code, done.stdout) == (5, "")
    all_free(pool, 8)


def test_best_effort_replicas_take_turns(pool_of):
    pool = pool_of(1)
    script = "echo $BERTH_REPLICA $BERTH_DEVICES"
    done = pool.berth("run", "--replicas", "3", "--scheduling", "best-effort", "sh", "-c", script)
    assert (done.code, sorted(done.stdout.split())) == (0, ["0", "1", "2"] + ["nvidia0"] * 3)


def test_best_effort_impossible_is_one_line(pool):
    done = pool.berth("run", "-n9", "--replicas", "3", "--scheduling", "best-effort", "true")
    assert (done.code, done.stderr.count("\n")) == (120, 1)


# ---- The end of a lease ----


def test_time_limit(pool_of):
    pool = pool_of(1)
    assert pool.berth("run", "--time", "100ms", "sleep", "60") == (124, "", "")
    all_free(pool, 1)


def test_warning_before_the_time_limit(pool_of):
    pool = pool_of(1)

    def is_warned():
        with pool.start("run", "-v", "--time", "1500ms", "sleep", "60") as program:
            assert program.wait() == 124
        line = r"^berth: lease (\d+) reaches its time limit in 1s \(to extend it: berth extend \1 1h\)$"
        return re.search(line, program.text("stderr"), re.MULTILINE)

    # A machine that stalls at that moment warns too late or not at all.
    assert any(is_warned() for _ in range(3))


def test_opportunistic_gives_way(pool_of):
    pool = pool_of(1)
    with pool.start("run", "--opportunistic", "sh", "-c", "echo started; exec sleep 60") as helper:
        helper.wait_for_line("^started$")
        assert pool.berth("run", "echo", "went first") == (0, "went first\n", "")
        assert helper.wait() == 122
        assert helper.text("stderr") == ""


def test_extended_time_limit(pool_of):
    pool = pool_of(1)
    with pool.start("run", "--time", "2500ms", "sh", "-c", "echo $BERTH_LEASE; read line; exit 3") as program:
        lease = program.wait_for_line("^[0-9]")
        assert pool.berth("extend", lease, "1h").code == 0
        assert pool.berth("wait", "--wait", "2600ms").code == 123  # past its first limit
        program.send("go\n")
        assert program.wait() == 3


def test_time_slices(pool_of):
    pool = pool_of(1)
    options = ["--sharing", "time-slice", "--share", "0.5"]
    one, other = pool.hold(*options), pool.hold(*options)
    assert pool.berth("run", *options, "--nonblock", "true").code == 123
    pool.let_go(one)
    pool.let_go(other)


def test_signals_are_passed_on(pool):
    script = "trap 'echo got $0; exit 6' USR1; echo ready; while :; do sleep 0.05; done"
    for options in [[], ["--time", "1h"]]:
        with pool.start("run", *options, "sh", "-c", script, "it") as program:
            program.wait_for_line("^ready$")
            program.kill(signal.SIGUSR1)
            assert program.wait() == 6
            assert program.text() == "ready\ngot it\n"


@pytest.mark.parametrize("options", [[], ["--time", "1h"]])
def test_killed_run_leaves_nobody(pool_of, options):
    pool = pool_of(1)
    with pool.start("run", *options, "sh", "-c", "sleep 1000 & echo $$ $!; wait") as program:
        pids = [int(word) for word in program.wait_for_line("^[0-9]").split()]
        program.kill(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL
    assert pool.berth("run", "true", timeout=20).code == 0  # the device is free again
    for pid in pids:
        wait_for_end(pid)


@pytest.mark.parametrize("options, code", [([], 143), (["--time", "1h"], 122)])
def test_release_stops_the_command(pool_of, options, code):
    pool = pool_of(1)
    with pool.start("run", *options, "sh", "-c", "echo $BERTH_LEASE; exec sleep 60") as program:
        lease = program.wait_for_line("^[0-9]")
        assert pool.berth("release", lease) == (0, "", "")
        all_free(pool, 1)
        assert program.wait() in (code, 128 - code)


def test_daemon_killed_while_the_command_runs(pool_of):
    pool = pool_of(1)
    script = "echo started; read line; echo $line; exit 4"
    for options in [[], ["--time", "1h"]]:
        with pool.start("run", *options, "sh", "-c", script) as program:
            program.wait_for_line("^started$")
            pool.end_daemon(signal.SIGKILL)
            assert pool.berth("run", "--nonblock", "true").code == 123  # still held
            program.send("undisturbed\n")
            assert program.wait() == 4
            assert program.text() == "started\nundisturbed\n"
        assert pool.berth("run", "true").code == 0


def test_daemon_killed_while_it_waits(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "-v", "echo", "granted") as waiting:
        waiting.wait_for_line("^berth: waiting", "stderr")
        pool.end_daemon(signal.SIGKILL)
        pool.let_go(holder)
        assert waiting.wait() == 0
        assert waiting.text() == "granted\n"


def test_many_at_once(pool_of):
    """All commands get their turn, and each device has one command at a time."""
    pool = pool_of(3)
    (pool.sandbox.directory / "busy").mkdir()
    script = "mkdir busy/$BERTH_DEVICES && rmdir busy/$BERTH_DEVICES"
    programs = [pool.start("run", *options, "sh", "-c", script) for options in [[], ["--time", "1h"]] * 20]
    for program in programs:
        with program:
            assert program.wait(timeout=30) == 0, program.text("stderr")


# ---- Within a lease ----


def test_nested(pool):
    script = """
    berth run sh -c 'echo $BERTH_DEVICES; read line' <"$1" &
    berth run sh -c 'echo $BERTH_DEVICES; read line' <"$1" &
    wait
    berth run -n3 true; echo $?
    """
    fifo = pool.sandbox.directory / "fifo"
    os.mkfifo(fifo)
    with pool.start("run", "-n2", "sh", "-c", script, "sh", fifo) as program:
        gate = os.open(fifo, os.O_RDWR)
        devices = {program.wait_for_line("^nvidia"), program.wait_for_line("^nvidia")}
        assert devices == {"nvidia0", "nvidia1"}
        os.write(gate, b"\n\n")
        assert program.wait_for_line("^[0-9]") == "120"
        assert program.wait() == 0
        os.close(gate)


@pytest.mark.parametrize("options", [[], ["--time", "1h"]])
def test_nested_ends_with_what_it_is_in(pool_of, options):
    pool = pool_of(1)
    outer = pool.berth("reserve", "--for", "1h").stdout.strip()
    env = {"BERTH_LEASE": outer}
    with pool.start("run", *options, "sh", "-c", "echo started; exec sleep 60", env=env) as inner:
        inner.wait_for_line("^started$")
        assert pool.berth("release", outer).code == 0
        # The signal to everything within the lease may arrive before the notice.
        assert inner.wait() in ((122, 143) if options else (143, -signal.SIGTERM))
    all_free(pool, 1)


def test_unknown_lease(pool):
    done = pool.berth("run", "true", env={"BERTH_LEASE": "99"})
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr.count("\n") == 1


def test_verbose(pool):
    done = pool.berth("run", "-v", "-n2", "true")
    assert done == (0, "", "berth: lease 1: nvidia0 nvidia1\n")
