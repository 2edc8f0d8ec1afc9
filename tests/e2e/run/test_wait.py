# SPDX-License-Identifier: Apache-2.0
"""berth wait: until a request would be granted, or until the lease or job with an id has ended."""
import signal

import pytest


def test_free_at_once(pool):
    assert pool.berth("wait") == (0, "", "")
    assert pool.berth("wait", "-n8") == (0, "", "")
    assert pool.berth("run", "--nonblock", "-n8", "true").code == 0  # nothing was allocated


def test_never(pool):
    done = pool.berth("wait", "-n9")
    assert done == (120, "", "berth: wait: requested 9 devices, but this pool has only 8\n")


def test_not_in_time(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    assert pool.berth("wait", "--nonblock").code == 123
    assert pool.berth("wait", "--wait", "50ms").code == 123
    pool.let_go(holder)


def test_returns_when_it_is_free(pool_of):
    pool = pool_of(2)
    one, other = pool.hold(), pool.hold()
    with pool.start("wait", "-n2") as program:
        pool.let_go(one)
        assert pool.berth("wait").code == 0
        assert program.code is None
        pool.let_go(other)
        assert program.wait() == 0


def test_does_not_stand_in_the_way(pool_of):
    """berth wait delays no claim."""
    pool = pool_of(2)
    holder = pool.hold()
    with pool.start("wait", "-n2") as program:
        assert pool.berth("run", "--nonblock", "true").code == 0
        pool.let_go(holder)
        assert program.wait() == 0


def test_goes_on_with_the_next_daemon(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("wait") as program:
        assert pool.berth("wait", "--nonblock").code == 123
        pool.end_daemon(signal.SIGKILL)
        pool.let_go(holder)
        assert program.wait() == 0


@pytest.mark.parametrize("options", [[], ["--time", "1h"]])
def test_end_of_a_run(pool, options):
    holder = pool.hold(*options)
    with pool.start("wait", holder.lease) as program:
        pool.let_go(holder)
        assert program.wait() == 0


def test_exit_code_of_a_run(pool):
    """The exit code is known if berth supervised the command."""
    with pool.start("run", "--time", "1h", "sh", "-c", "echo $BERTH_LEASE; read line; exit 3") as run:
        with pool.start("wait", run.wait_for_line("^[0-9]")) as program:
            run.send("go\n")
            assert (run.wait(), program.wait()) == (3, 3)


def test_end_of_a_claim(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    with pool.start("run", "-v", "true") as waiting:
        waiting.wait_for_line("^berth: waiting", "stderr")
        with pool.start("wait", "2") as program:
            assert pool.berth("cancel", "2").code == 0
            assert (waiting.wait(), program.wait()) == (123, 123)
    assert pool.berth("wait", "2").code == 123  # also afterwards
    pool.let_go(holder)


@pytest.mark.parametrize(
    "args, wanted",
    [
        (["x"], "expected an id such as 12, got 'x'"),
        (["1", "2"], "expected one id, got 2"),
        (["-n2", "1"], "expected an id or a request, got both"),
        (["-n", "4x"], "--gpus: expected a number of devices"),
    ],
)
def test_wrong_usage(pool, args, wanted):
    done = pool.berth("wait", *args)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: wait: {wanted}")
    assert pool.daemons() == []


def test_inventory_option(pool):
    """--inventory finds the pool of an inventory, too."""
    env = {"BERTH_INVENTORY": None}
    lease = pool.berth("reserve", "--for", "1h", "--inventory", pool.inventory, env=env).stdout.strip()
    assert pool.berth("release", "--inventory", pool.inventory, lease, env=env) == (0, "", "")
    assert pool.berth("wait", "--inventory", pool.inventory, lease, env=env).code == 122
