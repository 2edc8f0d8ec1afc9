# SPDX-License-Identifier: Apache-2.0
"""berth run --ranks: one process for each device. The processes find each other."""
import contextlib
import os
import re
import signal
import socket
import sys

import pytest
from pool import inventory_of
from processes import wait_for_end
from waiting import until

TELL = """echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK ${BERTH_REPLICA-none} \
$BERTH_DEVICES $CUDA_VISIBLE_DEVICES"""

# Print the rank and pid, then each signal, until a signal ends the process.
LISTEN = """
for name in USR1 USR2; do trap "echo $RANK got $name" $name; done
for name in HUP INT TERM; do trap "echo $RANK got $name; exit 9" $name; done
echo $RANK is $$
while :; do sleep 0.02; done
"""


@pytest.fixture
def rendezvous(source_root):
    """Return the command that connects all ranks over TCP."""
    return [sys.executable, source_root / "examples/rendezvous.py"]


def tell(pool, *options, **how):
    """Return what each rank prints about its environment, in the order of the ranks."""
    done = pool.berth("run", "--ranks", *options, "sh", "-c", TELL, **how)
    assert (done.code, done.stderr) == (0, ""), done
    return sorted(done.stdout.splitlines())


def all_free(pool, count):
    assert pool.berth("wait", "-n", str(count), "--wait", "5s").code == 0


def started(program, count):
    """Return the pids of the ranks, by rank, once all of them listen."""
    words = [program.wait_for_line(r"^\d+ is \d+$").split() for _ in range(count)]
    return {int(rank): int(pid) for rank, _, pid in words}


@contextlib.contextmanager
def listening(port):
    """Listen on this port. If that fails, another process listens there already."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        yield


def held_port():
    """Return a port that the kernel does not assign and on which no process listens."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("0.0.0.0", 0))
    return holder, holder.getsockname()[1]


# ---- The environment of a rank ----


def test_replicas_by_count(pool):
    assert tell(pool, "-n2", "--replicas", "2") == [
        "0/4 0/2 0 0 nvidia0,nvidia1 0,1",
        "1/4 1/2 0 0 nvidia0,nvidia1 0,1",
        "2/4 0/2 1 1 nvidia2,nvidia3 2,3",
        "3/4 1/2 1 1 nvidia2,nvidia3 2,3",
    ]
    all_free(pool, 8)


def test_one_rank(pool):
    assert tell(pool) == ["0/1 0/1 0 none nvidia0 0"]


def test_own_device_only(pool):
    assert tell(pool, "-n2", "--replicas", "2", "--rank-mask", "one") == [
        "0/4 0/2 0 0 nvidia0 0",
        "1/4 1/2 0 0 nvidia1 1",
        "2/4 0/2 1 1 nvidia2 2",
        "3/4 1/2 1 1 nvidia3 3",
    ]


def test_elastic_ranks_are_what_was_granted(pool):
    holder = pool.hold("-n5")
    assert tell(pool, "-n2-4", "--rank-mask", "one") == [
        "0/3 0/3 0 none nvidia5 5",
        "1/3 1/3 0 none nvidia6 6",
        "2/3 2/3 0 none nvidia7 7",
    ]
    pool.let_go(holder)


def test_all_devices(pool):
    assert [line.split()[0] for line in tell(pool, "-n", "all")] == [f"{rank}/8" for rank in range(8)]


def test_sparse_devices(pool):
    devices = tell(pool, "-n3", "--device", "nvidia1,nvidia4,nvidia6", "--rank-mask", "one")
    assert [line.split()[4] for line in devices] == ["nvidia1", "nvidia4", "nvidia6"]


def test_what_ranks_talk_with(pool):
    script = "echo $MASTER_ADDR $BERTH_BACKEND ${NCCL_SOCKET_IFNAME-none} ${GLOO_SOCKET_IFNAME-none}"
    for options, wanted in [
        ([], "127.0.0.1 nccl none none\n"),
        (["--backend", "gloo"], "127.0.0.1 gloo none none\n"),
        (["--backend", "mpi", "--interface", "eth1"], "127.0.0.1 mpi eth1 eth1\n"),
    ]:
        assert pool.berth("run", "--ranks", *options, "sh", "-c", script) == (0, wanted, "")


def test_own_device_is_all_that_is_told(pool):
    script = "echo $RANK $BERTH_CPUS $NVIDIA_VISIBLE_DEVICES $BERTH_CDI_DEVICES"
    done = pool.berth("run", "--ranks", "-n2", "--device", "nvidia0,nvidia2", "--rank-mask", "one", "sh", "-c", script)
    uuid = "GPU-00000000-0000-4000-8000-00000000000"
    assert sorted(done.stdout.splitlines()) == [
        f"0 48-63,176-191 {uuid}0 berth/gpu=nvidia0",
        f"1 16-31,144-159 {uuid}2 berth/gpu=nvidia2",
    ]


def test_ranks_of_a_lease_claim_within_it(pool):
    both = "echo $BERTH_DEVICES; : >here.$RANK; until test -e here.0 && test -e here.1; do sleep 0.02; done"
    done = pool.berth("run", "--ranks", "-n2", "berth", "run", "sh", "-c", both, timeout=20)
    assert (done.code, sorted(done.stdout.split())) == (0, ["nvidia0", "nvidia1"])


@pytest.mark.parametrize(
    "options, world",
    [(["-n3", "--replicas", "2"], 6), (["-n2-4"], 2), (["-n", "all"], 1), (["-n2", "--label", "--pin"], 2)],
)
def test_on_the_cpu(pool, options, world):
    """With --or-cpu, there are as many ranks as the request's minimum, and every GPU is hidden."""
    script = "echo $RANK/$WORLD_SIZE ${BERTH_LEASE-none} $CUDA_VISIBLE_DEVICES ${BERTH_REPLICA-none}:$BERTH_DEVICES"
    done = pool.berth("run", "--ranks", "--or-cpu", "--vendor", "amd", *options, "sh", "-c", script)
    assert (done.code, done.stderr) == (0, "")
    lines = sorted(line.removeprefix(f"{line[0]}: ") for line in done.stdout.splitlines())
    replicas = int(options[2]) if "--replicas" in options else 1
    numbers = [rank * replicas // world if replicas > 1 else "none" for rank in range(world)]
    assert lines == [f"{rank}/{world} none -1 {numbers[rank]}:" for rank in range(world)]


def test_too_many_on_the_cpu(pool):
    done = pool.berth("run", "--ranks", "--or-cpu", "-n", "1000000", "--replicas", "1000000", "true")
    assert (done.code, done.stderr.count("\n")) == (125, 1)
    assert "1000000000000 times" in done.stderr


@pytest.mark.parametrize("verb", [["reserve", "--for", "1h"], ["adopt", "1"]])
def test_without_a_command(pool, verb):
    for options in [["--ranks"], ["--pin"]]:
        done = pool.berth(*verb, *options)
        assert done == (2, "", f"berth: {verb[0]}: {options[0]}: an option of berth run and submit only\n")


# ---- Finding each other ----


def met(done):
    """Return which ranks each rank has met."""
    assert (done.code, done.stderr) == (0, ""), done
    lines = [re.fullmatch(r"rank (\d+) of (\d+) met (.*)", line).groups() for line in done.stdout.splitlines()]
    return {int(rank): (int(size), others.split()) for rank, size, others in lines}


def test_all_ranks_connect(pool, rendezvous):
    found = met(pool.berth("run", "--ranks", "-n3", "--replicas", "2", "--rank-mask", "one", *rendezvous, timeout=40))
    everybody = [f"{rank}=nvidia{rank}" for rank in range(6)]
    assert found == {rank: (6, everybody) for rank in range(6)}


def test_two_gangs_at_once(pool, rendezvous):
    """Both gangs start before either of them listens: only the choice of ports keeps them apart."""
    gate = pool.sandbox.directory / "gate"
    script = 'echo "port $MASTER_PORT"; while ! test -e gate; do sleep 0.02; done; exec "$@"'
    gangs = [pool.start("run", "--ranks", "-n2", "sh", "-c", script, "sh", *rendezvous) for _ in range(3)]
    ports = [{gang.wait_for_line("^port ") for _ in range(2)} for gang in gangs]
    assert [len(port) for port in ports] == [1, 1, 1]
    assert len(set.union(*ports)) == 3
    gate.touch()
    for gang in gangs:
        with gang:
            assert gang.wait(timeout=40) == 0, gang.text("stderr")
            assert len(re.findall(r"^rank \d of 2 met 0=\S+ 1=\S+$", gang.text(), re.MULTILINE)) == 2


def test_default_port_is_taken(pool, rendezvous):
    with listening(29500):
        done = pool.berth("run", "-v", "--ranks", "-n2", *rendezvous, timeout=40)
    assert done.code == 0
    port = re.search(r"^berth: world size 2, master port (\d+)$", done.stderr, re.MULTILINE).group(1)
    assert port != "29500"
    assert done.stdout.count("of 2 met 0=nvidia0,nvidia1 1=nvidia0,nvidia1\n") == 2


def test_port_that_was_asked_for(pool):
    holder, port = held_port()
    command = ["run", "--ranks", "-n2", "--master-port", str(port), "sh", "-c", "echo $MASTER_PORT"]
    with holder:
        assert pool.berth(*command) == (0, f"{port}\n" * 2, "")
        holder.listen()
        # The warning is printed only where a user may see it.
        assert pool.berth(*command) == (0, f"{port}\n" * 2, "")
        done = pool.berth(*command[:1], "-v", *command[1:])
        assert (done.code, done.stdout) == (0, f"{port}\n" * 2)
        assert f"berth: master port {port} is in use by another process\n" in done.stderr
        with pool.terminal(*command) as program:
            program.wait_for(f"master port {port} is in use")
            assert program.wait() == 0


def test_port_is_held_while_ranks_run(pool):
    """The process that waits for the ranks holds the port, with a name in the kernel's table of
    sockets."""
    with pool.start("run", "--ranks", "sh", "-c", "echo $MASTER_PORT; exec cat") as program:
        port = program.wait_for_line(r"^\d")
        names = open("/proc/net/unix").read()
        assert f"@berth/port/{port}\n" in names
        program.process.stdin.close()
        program.process.stdin = None
        assert program.wait() == 0


# ---- The end ----


@pytest.mark.parametrize("end, code", [("exit 7", 7), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)])
def test_first_failure_stops_the_rest(pool, end, code):
    script = f'if test $RANK = 2; then {end}; fi; echo $$; exec sleep 60'
    with pool.start("run", "--ranks", "-n2", "--replicas", "2", "sh", "-c", script) as program:
        assert program.wait() == code
        for pid in program.text().split():
            wait_for_end(int(pid), 0)
    assert program.text("stderr") == ""
    all_free(pool, 8)


def test_one_rank_is_killed(pool):
    with pool.start("run", "--ranks", "-n4", "sh", "-c", LISTEN) as program:
        ranks = started(program, 4)
        os.kill(ranks[1], signal.SIGKILL)
        assert program.wait() == 137
        assert set(program.text().splitlines()[4:]) == {"0 got TERM", "2 got TERM", "3 got TERM"}
    all_free(pool, 8)


@pytest.mark.parametrize("command, code", [("no-such-command", 127), ("/", 126)])
def test_ranks_that_cannot_start(pool, command, code):
    done = pool.berth("run", "--ranks", "-n4", "--label", command)
    assert (done.code, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    all_free(pool, 8)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_signals_reach_all(pool, number):
    with pool.start("run", "--ranks", "-n2", "--replicas", "2", "sh", "-c", LISTEN) as program:
        started(program, 4)
        for mild in ["USR1", "USR2"]:
            program.kill(getattr(signal, f"SIG{mild}"))
            assert {program.wait_for_line(f"got {mild}$") for _ in range(4)} == {f"{i} got {mild}" for i in range(4)}
        program.kill(number)
        assert program.wait() == 9
        name = number.name.removeprefix("SIG")
        # The first rank that ends makes berth signal the others. This signal may come first, or a
        # second time.
        assert {line.split()[0] for line in program.text().splitlines()[12:]} == set("0123")
        assert f"got {name}" in program.text()


def state_of(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]


# Run in its own process group, as a shell's job: SIGTSTP does not stop an orphaned group.
AS_JOB = "import os, sys; os.setpgid(0, 0); os.execvp(sys.argv[1], sys.argv[1:])"


def test_ranks_stop_and_go_on(pool):
    command = ["berth", "run", "--ranks", "-n3", "sh", "-c", LISTEN]
    with pool.sandbox.start([sys.executable, "-c", AS_JOB, *command]) as program:
        ranks = started(program, 3)
        program.kill(signal.SIGTSTP)
        everybody = [program.pid, *ranks.values()]
        until(lambda: all(state_of(pid) == "T" for pid in everybody), "the stop of all processes")
        program.kill(signal.SIGCONT)
        until(lambda: all(state_of(pid) != "T" for pid in everybody), "the continuation of all processes")
        program.kill(signal.SIGTERM)
        assert program.wait() == 9


def test_interrupt_on_a_terminal(pool):
    script = LISTEN.replace("USR1 USR2", "USR1 USR2 INT").replace("HUP INT TERM", "HUP TERM")
    with pool.terminal("run", "--ranks", "-n3", "sh", "-c", script) as program:
        for _ in range(3):
            program.wait_for(r"\d is \d+")
        program.send("\x03")
        for _ in range(3):
            program.wait_for(r"\d got INT")
        program.kill(signal.SIGTERM)
        assert program.wait() == 9
    for rank in range(3):
        assert program.screen.count(b"%d got INT" % rank) == 1


def test_killed_run_ends_all_ranks(pool):
    with pool.start("run", "--ranks", "-n4", "sh", "-c", LISTEN) as program:
        ranks = started(program, 4)
        program.kill(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL
        for pid in ranks.values():
            wait_for_end(pid)
    all_free(pool, 8)


def test_time_limit_ends_all_ranks(pool):
    with pool.start("run", "--ranks", "-n3", "--time", "2500ms", "sh", "-c", LISTEN) as program:
        ranks = started(program, 3)
        assert program.wait() == 124
        for pid in ranks.values():
            wait_for_end(pid, 0)
        assert set(program.text().splitlines()[3:]) == {f"{rank} got TERM" for rank in range(3)}
    all_free(pool, 8)


def test_release_ends_all_ranks(pool):
    with pool.start("run", "--ranks", "-n3", "sh", "-c", "echo lease $BERTH_LEASE; exec sleep 60") as program:
        lease = {program.wait_for_line("^lease").split()[1] for _ in range(3)}.pop()
        assert pool.berth("release", lease).code == 0
        assert program.wait() == 122


def test_daemon_is_killed_meanwhile(pool, rendezvous):
    script = 'echo ready; while ! test -e gate; do sleep 0.02; done; exec "$@"'
    with pool.start("run", "--ranks", "-n2", "sh", "-c", script, "sh", *rendezvous) as program:
        for _ in range(2):
            program.wait_for_line("^ready$")
        pool.end_daemon(signal.SIGKILL)
        assert pool.berth("run", "-n7", "--nonblock", "true").code == 123  # still held
        (pool.sandbox.directory / "gate").touch()
        assert program.wait(timeout=40) == 0
    all_free(pool, 8)


# ---- Detached ----


def test_submitted_ranks(pool, rendezvous):
    done = pool.berth("submit", "--ranks", "-n2", "--label", *rendezvous)
    assert done.code == 0, done
    identity = done.stdout.strip()
    assert pool.berth("wait", identity, timeout=40).code == 0
    lines = sorted(pool.berth("logs", identity).stdout.splitlines())
    assert lines == [f"{rank}: rank {rank} of 2 met 0=nvidia0,nvidia1 1=nvidia0,nvidia1" for rank in range(2)]


def test_many_ranks(pool_of):
    """More ranks than most machines have devices."""
    pool = pool_of(inventory_of(64))
    done = pool.berth("run", "--ranks", "-n", "all", "--rank-mask", "one", "sh", "-c", "echo $RANK $BERTH_DEVICES", timeout=30)
    assert (done.code, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(f"{rank} nvidia{rank}" for rank in range(64))


# ---- Sharing with MPS: the grant, and the environment of each process ----

MPS = """echo $RANK$BERTH_REPLICA $BERTH_DEVICES $CUDA_VISIBLE_DEVICES $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_LOG_DIRECTORY \
${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE-all} ${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-all}"""


@pytest.mark.parametrize(
    "options, replicas, wanted",
    [
        ([], 1, ["nvidia0 GPU-0 /r/nvidia0/pipe /r/nvidia0/log all all"]),
        (
            ["--share", "0.25", "--memory", "1GiB", "--time", "1h"],
            1,
            ["nvidia0 GPU-0 /r/nvidia0/pipe /r/nvidia0/log 25 0=1024M"],
        ),
        (["--mps-pipe-dir", "/p", "--mps-log-dir", "/l"], 1, ["nvidia0 GPU-0 /p /l all all"]),
        (
            ["--replicas", "2", "--mps-pipe-dir", "/p"],
            2,
            [f"{i} nvidia{i} GPU-{i} /p/nvidia{i} /r/nvidia{i}/log all all" for i in range(2)],
        ),
        (
            ["--ranks", "-n2", "--share", "0.5"],
            1,
            [f"{i} nvidia{i} GPU-{i} /r/nvidia{i}/pipe /r/nvidia{i}/log 50 all" for i in range(2)],
        ),
        (
            ["--ranks", "-n1-2", "--mps-pipe-dir", "/p", "--mps-log-dir", "/l"],
            1,
            ["0 nvidia0 GPU-0 /p/nvidia0 /l/nvidia0 all all"],
        ),
    ],
)
def test_each_process_has_one_device(sandbox, daemon, options, replicas, wanted):
    devices = [{"id": f"nvidia{i}", "uuid": f"GPU-{i}"} for i in range(len(wanted))]
    with sandbox.start(["berth", "run", "--sharing", "mps", *options, "sh", "-c", MPS], env=daemon.env) as program:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.grant(claim, devices=devices, replicas=replicas, mps_root="/r")
        if replicas > 1 or "--ranks" in options:
            client.say("DONE", client.expect("RELEASE"))
        assert program.wait() == 0
    assert sorted(program.text().splitlines()) == wanted


@pytest.mark.parametrize("said", [{}, {"mps_root": "/r", "devices": [{"id": "nvidia0"}, {"id": "nvidia1"}]}])
def test_strange_grants(sandbox, daemon, said):
    """berth runs no command if the grant is invalid: the command could miss its control daemon, or
    share the wrong device."""
    with sandbox.start(["berth", "run", "--sharing", "mps", "echo", "ran"], env=daemon.env) as program:
        client = daemon.accept()
        client.grant(client.expect("CLAIM"), **said)
        assert program.wait() == 125
        assert (program.text(), program.text("stderr").count("\n")) == ("", 1)
        assert "MPS" in program.text("stderr")
