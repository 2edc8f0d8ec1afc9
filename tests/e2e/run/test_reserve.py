# SPDX-License-Identifier: Apache-2.0
"""berth reserve, extend, release and cancel."""
import re
import signal

import pytest


def reserve(pool, *args):
    done = pool.berth("reserve", *args)
    assert (done.code, done.stderr) == (0, "")
    return done.stdout.strip()


def is_free(pool, count):
    return pool.berth("wait", "-n", str(count), "--nonblock").code == 0


def test_reserve_and_release(pool_of):
    pool = pool_of(2)
    lease = reserve(pool, "-n2", "--for", "1h")
    assert lease == "1"
    assert not is_free(pool, 1)
    assert pool.berth("release", lease) == (0, "", "")
    assert is_free(pool, 2)


def test_time_is_the_same(pool_of):
    pool = pool_of(1)
    assert pool.berth("release", reserve(pool, "--time", "1h")).code == 0
    assert pool.berth("release", reserve(pool, "--time", "1h", "--for", "60m")).code == 0


def test_ends_by_itself(pool_of):
    pool = pool_of(1)
    lease = reserve(pool, "--for", "100ms")
    assert pool.berth("wait", lease).code == 124
    assert is_free(pool, 1)


def test_waits(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("reserve", "-v", "--for", "1h") as program:
        program.wait_for_line("^berth: waiting, 1st of 1", "stderr")
        pool.let_go(holder)
        assert program.wait() == 0
        assert pool.berth("release", program.text().strip()).code == 0


def test_interrupt_cancels(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.terminal("reserve", "--for", "1h") as program:
        program.wait_for("berth: waiting")
        program.send("\x03")
        assert program.wait() == -signal.SIGINT
    pool.let_go(holder)
    assert pool.berth("wait", "--wait", "10s").code == 0


def test_survives_the_daemon(pool_of):
    pool = pool_of(1)
    lease = reserve(pool, "--for", "1h")
    for number in (signal.SIGKILL, signal.SIGTERM):
        pool.end_daemon(number)
        assert not is_free(pool, 1)
    assert pool.berth("release", lease).code == 0
    assert is_free(pool, 1)


def test_export(pool):
    script = """
    ROCR_VISIBLE_DEVICES=; export ROCR_VISIBLE_DEVICES
    eval "$(berth reserve -n2 --for 1h --export)" || exit 9
    echo "$BERTH_LEASE $BERTH_DEVICES $CUDA_VISIBLE_DEVICES ${GPU_DEVICE_ORDINAL-unset}"
    berth run printenv BERTH_DEVICES
    berth run -n3 true; echo $?
    berth release $BERTH_LEASE
    """
    done = pool.sandbox.run(["sh", "-c", script], env={"GPU_DEVICE_ORDINAL": "0"})
    assert (done.code, done.stdout) == (0, "1 nvidia0,nvidia1 0,1 unset\nnvidia0\n120\n")


def test_export_is_quoted(pool_of):
    pool = pool_of("devices:\n- {vendor: nvidia, index: 0, uuid: \"it's $HOME `id`\"}\n")
    done = pool.berth("reserve", "--for", "1h", "--uuid", "--export")
    assert (done.code, done.stderr) == (0, "")
    for line in done.stdout.splitlines():
        assert re.fullmatch(r"unset [A-Z_]+|export [A-Z_]+='([^']|'\\'')*'", line)
    script = f'{done.stdout}printf %s "$CUDA_VISIBLE_DEVICES"'
    assert pool.sandbox.run(["sh", "-c", script]).stdout == "it's $HOME `id`"
    assert pool.berth("release", "1").code == 0


def test_extend(pool_of):
    pool = pool_of(1)
    lease = reserve(pool, "--for", "1h")
    done = pool.berth("extend", lease, "2h")
    assert (done.code, done.stderr) == (0, "")
    assert re.fullmatch(rf"lease {lease} ends 20\d\d-\d\d-\d\dT[0-9:.]+Z\n", done.stdout)
    assert pool.berth("release", lease).code == 0


def test_extend_is_felt(pool_of):
    pool = pool_of(1)
    lease = reserve(pool, "--for", "2500ms")
    assert pool.berth("extend", lease, "1h").code == 0
    assert pool.berth("wait", "--wait", "2600ms").code == 123  # past its first limit
    assert pool.berth("release", lease).code == 0


@pytest.mark.parametrize(
    "args, wanted",
    [
        (["reserve"], "reserve: expected --for DURATION, got none"),
        (["reserve", "--for", "x"], "reserve: --for: expected a duration"),
        (["reserve", "--for", "1h", "--time", "2h"], "reserve: --for: expected the same time as --time, 2h, got 1h"),
        (["reserve", "--for", "1h", "true"], "reserve: expected only options, got 'true'"),
        (["reserve", "--for", "1h", "--or-cpu"], "reserve: --or-cpu: an option of berth run only"),
        (["reserve", "--for", "1h", "--replicas", "2", "--scheduling", "best-effort"],
         "reserve: --scheduling: only 'berth run' and 'berth submit' accept best-effort"),
        (["reserve", "--for", "1h", "--label", "--replicas", "2"], "reserve: --label: an option of berth run and submit only"),
        (["reserve", "--for", "1h", "--export", "--sharing", "mps", "--replicas", "2"],
         "reserve: --export: expected one device with sharing mps, got several"),
        (["extend", "1"], "extend: expected the id of a lease and a duration, got 1 argument"),
        (["extend", "1", "x"], "extend: expected a duration"),
        (["extend", "x", "1h"], "extend: expected an id such as 12, got 'x'"),
        (["release"], "release: expected an id, got nothing"),
        (["cancel", "1", "x"], "cancel: expected an id such as 12, got 'x'"),
    ],
)
def test_wrong_usage(pool, args, wanted):
    done = pool.berth(*args)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: {wanted}") and done.stderr.count("\n") == 1
    assert pool.daemons() == []


def test_impossible(pool):
    assert pool.berth("reserve", "-n9", "--for", "1h").code == 120


def test_several_ids(pool_of):
    pool = pool_of(3)
    leases = [reserve(pool, "--for", "1h") for _ in range(3)]
    done = pool.berth("release", leases[0], "98", leases[1], "99", leases[2])
    assert (done.code, done.stdout) == (125, "")
    lines = done.stderr.splitlines()
    assert [line.split(":")[1:3] for line in lines] == [
        [" release", " cannot end lease 98"],
        [" release", " cannot end lease 99"],
    ]
    assert is_free(pool, 3)


def test_cancel_of_several(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "-v", "true") as one, pool.start("run", "-v", "true") as other:
        one.wait_for_line("^berth: waiting", "stderr")
        other.wait_for_line("^berth: waiting", "stderr")
        done = pool.berth("cancel", "2", "3", holder.lease)
        assert (one.wait(), other.wait()) == (123, 123)
    assert (done.code, done.stderr.count("\n")) == (125, 1)  # a granted claim cannot be cancelled
    pool.let_go(holder)


def test_release_waits_for_the_end(pool_of):
    """The command needs time to end. The devices are free when release returns."""
    pool = pool_of(1)
    script = "trap 'sleep 0.3; echo bye; exit 0' TERM; echo $BERTH_LEASE; while :; do sleep 0.05; done"
    for options in [[], ["--time", "1h"]]:
        with pool.start("run", *options, "sh", "-c", script) as program:
            lease = program.wait_for_line("^[0-9]")
            assert pool.berth("release", lease).code == 0
            assert is_free(pool, 1)
            program.wait_for_line("^bye$")
            assert program.wait() == (122 if options else 0)


def test_release_of_a_waiting_claim(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "-v", "true") as waiting:
        waiting.wait_for_line("^berth: waiting", "stderr")
        assert pool.berth("release", "2").code == 125
        pool.let_go(holder)
        assert waiting.wait() == 0
