# SPDX-License-Identifier: Apache-2.0
"""The messages by which a waiting command finds out whether its daemon is stuck."""
import time

import pytest
from scripted_daemon import GPU


def test_acknowledged_claim_is_asked_at_its_limit(sandbox, daemon):
    """A daemon that has queued a claim is asked at the limit. If it answers, its word counts."""
    with sandbox.start(["berth", "run", "--wait", "1s", "true"], env=daemon.env) as run:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.say("WAITING", claim, id=7, position=1)
        began = time.monotonic()
        ping = client.expect("HELLO")
        assert 0.5 < time.monotonic() - began < 2.4
        client.say("POOL", ping, pid=1)
        client.grant(claim)
        assert run.wait() == 0
        assert run.text("stderr") == ""


def test_late_acknowledgement(sandbox, daemon):
    """A ping that is answered keeps the daemon in good standing although the request has no answer yet."""
    with sandbox.start(["berth", "wait"], env=daemon.env) as wait:
        client = daemon.accept()
        question = client.expect("TEST")
        ping = client.expect("HELLO")
        client.say("POOL", ping, pid=1)
        client.socket.settimeout(2)
        with pytest.raises(TimeoutError):
            client.receive()
        assert wait.process.poll() is None
        client.say("DONE", question)
        assert wait.wait() == 0
        assert wait.text("stderr") == ""


def test_acknowledged_claim_is_asked_every_few_seconds(sandbox, daemon):
    """Without a limit, too, a queued claim asks for a sign of life."""
    with sandbox.start(["berth", "run", "true"], env=daemon.env) as run:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.say("WAITING", claim, id=7, position=1)
        for _ in range(2):
            began = time.monotonic()
            ping = client.expect("HELLO")
            assert 1.5 < time.monotonic() - began < 4.5
            client.say("POOL", ping, pid=1)
        client.expect("HELLO")
        run.wait_for_line("does not answer", stream="stderr")
        client.grant(claim)
        assert run.wait() == 0


def test_news_is_not_requested_of_a_silent_daemon(sandbox, daemon):
    """The waiting line asks for the claim's state each second, but not again before the answer."""
    with sandbox.start(["berth", "run", "-v", "true"], env=daemon.env) as run:
        client = daemon.accept()
        claim = client.expect("CLAIM")
        client.say("WAITING", claim, id=7, position=1)
        explain = client.expect("EXPLAIN")
        client.expect("HELLO")  # nothing else in between
        run.wait_for_line("does not answer", stream="stderr")
        client.say("WAITING", explain, id=7, position=1, text="needs 1, 0 free")
        run.wait_for_line("answers again", stream="stderr")
        client.grant(claim, devices=(GPU,))
        assert run.wait() == 0
