# SPDX-License-Identifier: Apache-2.0
"""berth drain and undrain: take devices out of service and put them back."""
import json
import re
import time

import pytest
from scripted_pool import NOW, lease, show, slot
from users import user_name

DRAINED = 4


def drained(index, state="DRAINED", **values):
    return slot(index, state, blocks=DRAINED, reason_time=NOW, **values)


def answer(client, kind, **pool):
    """Answer the request with DONE and show the pool. Return the request."""
    question = client.expect(kind)
    client.say("DONE", question)
    show(client, **pool)
    return question


# ---- Messages to the daemon ----


@pytest.mark.parametrize(
    "args",
    [
        ["nvidia0", "nvidia2.1", "--reason", "fan is loud"],
        ["--reason", "fan is loud", "nvidia0,nvidia2.1,nvidia0"],
        ["nvidia0", "--reason=fan is loud", "nvidia2.1"],
    ],
)
def test_question(sandbox, daemon, args):
    with sandbox.start(["berth", "drain", *args], env=daemon.env) as program:
        pool = {"slots": [drained(0), drained(2, device={"id": "nvidia2.1"})]}
        question = answer(daemon.accept(), "DRAIN", **pool)
        assert (question["device_ids"], question["text"]) == (["nvidia0", "nvidia2.1"], "fan is loud")
        assert program.wait() == 0
        assert program.text() == "nvidia0: out of service\nnvidia2.1: out of service\n"
        assert program.text("stderr") == ""


def test_leases_have_to_end_first(sandbox, daemon):
    with sandbox.start(["berth", "drain", "nvidia0,nvidia1,nvidia2", "nvidia9"], env=daemon.env) as program:
        slots = [drained(0, "LEASED"), drained(1, "SHARED"), slot(2)]
        leases = [
            lease(12, ["nvidia0"]),
            lease(13, ["nvidia1"], uid=4000000000),
            lease(14, ["nvidia1"], uid=4000000001),
            lease(15, ["nvidia0"], parent=12),
        ]
        question = answer(daemon.accept(), "DRAIN", slots=slots, leases=leases)
        assert "text" not in question
        assert program.wait() == 0
        assert program.text() == (
            "nvidia0: out of service once lease 12 (root) ends\n"
            "nvidia1: out of service once leases 13 (4000000000), 14 (4000000001) end\n"
            "nvidia2: in service\n"  # another user has put it back already
            "nvidia9: no longer in this pool\n"
        )


def test_undrain_question(sandbox, daemon):
    with sandbox.start(["berth", "undrain", "nvidia0"], env=daemon.env) as program:
        question = answer(daemon.accept(), "UNDRAIN", slots=[slot(0)])
        assert question["device_ids"] == ["nvidia0"]
        assert program.wait() == 0
        assert program.text() == "nvidia0: in service\n"


@pytest.mark.parametrize("verb", ["drain", "undrain"])
@pytest.mark.parametrize("error", ["PERMISSION", "NOT_FOUND", "INVALID", "IO"])
def test_refusals(sandbox, daemon, verb, error):
    with sandbox.start(["berth", verb, "nvidia0"], env=daemon.env) as program:
        client = daemon.accept()
        client.refuse(client.expect(verb.upper()), error, "expected this, got that")
        assert program.wait() == 125
        assert (program.text(), program.text("stderr")) == ("", f"berth: {verb}: expected this, got that\n")


def test_pool_that_shows_nothing(sandbox, daemon):
    with sandbox.start(["berth", "drain", "nvidia0"], env=daemon.env) as program:
        client = daemon.accept()
        client.say("DONE", client.expect("DRAIN"))
        client.refuse(client.expect("HELLO"), "PERMISSION", "not for you")
        assert program.wait() == 125
        assert program.text("stderr") == (
            "berth: drain: done, but reading the new state failed: not for you\n"
        )


WORD = "expected a device id such as nvidia0, amd3 or nvidia0.1, got"


@pytest.mark.parametrize("verb", ["drain", "undrain"])
@pytest.mark.parametrize(
    "args, wanted",
    [
        ([], "expected a device id such as nvidia0, got nothing"),
        (["12"], f"{WORD} '12'"),
        (["nvidia0", "gpu1"], f"{WORD} 'gpu1'"),
        (["nvidia0,,nvidia1"], f"{WORD} ''"),
        ([""], f"{WORD} ''"),
        (["--", "--reason"], f"{WORD} '--reason'"),
        (["nvidia0", "--raeson", "x"], "no option '--raeson' here"),
    ],
)
def test_wrong_usage(sandbox, daemon, verb, args, wanted):
    done = sandbox.run(["berth", verb, *args], env=daemon.env)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"berth: {verb}: {wanted}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("length", [255, 256])
def test_length_of_the_reason(sandbox, daemon, length):
    with sandbox.start(["berth", "drain", "nvidia0", "--reason", "x" * length], env=daemon.env) as program:
        if length == 255:
            assert answer(daemon.accept(), "DRAIN", slots=[drained(0)])["text"] == "x" * 255
            assert program.wait() == 0
        else:
            assert program.wait() == 2
            assert program.text("stderr") == "berth: drain: --reason: expected at most 255 bytes, got 256\n"


def test_empty_reason_is_none(sandbox, daemon):
    with sandbox.start(["berth", "drain", "nvidia0", "--reason", ""], env=daemon.env) as program:
        assert "text" not in answer(daemon.accept(), "DRAIN", slots=[drained(0)])
        assert program.wait() == 0


def test_nobody_listens(sandbox):
    path = sandbox.directory / "none"
    done = sandbox.run(["berth", "drain", "nvidia0"], env={"BERTH_SOCKET": path})
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr.startswith(f"berth: drain: {path}: ")


# ---- With a pool ----


def device_of(pool, index):
    return json.loads(pool.berth("status", "--json").stdout)["devices"][index]


def said_of_drain(pool, what, began):
    """Return the text after the user and the time. The time must not be before `began`."""
    shown = pool.berth("status").stdout
    match = re.search(rf"^nvidia0 {what} \({re.escape(user_name())}, (\d+)s ago\)(.*)$", shown, re.M)
    assert match, shown
    assert int(match[1]) <= time.monotonic() - began
    return match[2]


def test_out_of_service_and_back(pool_of):
    pool = pool_of(2)
    began = time.monotonic()
    done = pool.berth("drain", "nvidia0", "--reason", "fan is\nloud")
    assert done == (0, "nvidia0: out of service\n", "")
    assert pool.berth("run", "--nonblock", "-n2", "true").code == 123
    assert pool.berth("run", "--nonblock", "printenv", "BERTH_DEVICES").stdout == "nvidia1\n"
    shown = device_of(pool, 0)
    assert (shown["state"], shown["drain"]["reason"], shown["drain"]["user"]) == ("drained", "fan is\nloud", user_name())
    words = said_of_drain(pool, "is drained", began)
    assert words == ": fan is\N{REPLACEMENT CHARACTER}loud"
    assert pool.berth("undrain", "nvidia0,nvidia1") == (0, "nvidia0: in service\nnvidia1: in service\n", "")
    assert pool.berth("run", "--nonblock", "-n2", "true").code == 0
    assert device_of(pool, 0)["drain"] is None


def test_lease_goes_on(pool_of):
    pool = pool_of(1)
    holder = pool.hold()
    began = time.monotonic()
    done = pool.berth("drain", "nvidia0")
    assert done == (0, f"nvidia0: out of service once lease {holder.lease} ({user_name()}) ends\n", "")
    assert device_of(pool, 0)["state"] == "leased"
    assert said_of_drain(pool, "will be drained", began) == ""
    pool.let_go(holder)
    assert device_of(pool, 0)["state"] == "drained"
    assert pool.berth("run", "--wait", "50ms", "true").code == 123
    with pool.start("run", "echo", "at last") as program:
        assert pool.berth("undrain", "nvidia0").code == 0
        assert program.wait() == 0


def test_all_or_none(pool_of):
    pool = pool_of(1)
    done = pool.berth("drain", "nvidia0", "nvidia7")
    assert (done.code, done.stdout) == (125, "")
    assert done.stderr == "berth: drain: no device named nvidia7 in this pool\n"
    assert device_of(pool, 0)["state"] == "free"
