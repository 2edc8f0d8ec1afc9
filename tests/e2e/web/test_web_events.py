# SPDX-License-Identifier: Apache-2.0
"""berth web's event stream: claims that arrive and end, daemons that exit and restart, readers
that sleep."""
import signal
import time

from web_server import serving

LOAD = {"id", "leased", "state", "utilization", "memory_used", "memory_total", "temperature_c", "power_w",
        "sampled_at", "health", "asleep", "old"}  # fmt: skip


def test_begins_with_everything(pool_of, sandbox):
    pool = pool_of(2)
    holder = pool.hold("-n", "1", "--name", "train")
    with serving(sandbox) as web, web.events() as events:
        assert "Content-Type: text/event-stream" in events.head
        assert "Cache-Control: no-store" in events.head
        name, hello = events.next()
        assert (name, hello["schema"], hello["state"]) == ("hello", "berth.hello/1", "live")
        assert hello["pool"]["capacity"] == 2
        assert [device["id"] for device in hello["devices"]] == ["nvidia0", "nvidia1"]
        assert [lease["name"] for lease in hello["leases"]] == ["train"]
        assert (hello["queue"], hello["problems"]) == ([], [])
        name, load = events.next()
        assert (name, load["schema"]) == ("load", "berth.load/1")
        assert all(set(device) == LOAD for device in load["devices"])
        assert [(device["leased"], device["utilization"]) for device in load["devices"]] == [(True, None), (False, None)]
        name, state = events.next()
        assert (name, state["state"], state["reason"]) == ("state", "live", None)
    pool.let_go(holder)


def test_leases_and_the_queue(pool_of, sandbox):
    pool = pool_of(1)
    with serving(sandbox) as web, web.events() as events:
        events.wait("state")
        holder = pool.hold("--name", "first")
        first = events.wait("lease")
        assert (first["schema"], first["what"], first["lease"]["name"]) == ("berth.lease/1", "granted", "first")
        assert (first["end"], first["ended_at"], first["exit_code"]) == (None, None, None)
        device = events.wait("devices")["devices"][0]
        assert (device["state"], device["leases"]) == ("leased", [int(holder.lease)])
        assert events.wait("load")["devices"][0]["leased"] is True
        with pool.start("run", "--name", "second", "--", "true") as second:
            queue = events.wait("queue", lambda data: data["pending"] == 1)
            assert [claim["name"] for claim in queue["queue"]] == ["second"]
            assert "holds" in queue["queue"][0]["why"]
            pool.let_go(holder)
            gone = events.wait("lease", lambda data: data["what"] != "changed")
            assert (gone["what"], gone["lease"]["name"]) == ("released", "first")
            assert gone["ended_at"] is not None
            assert second.wait() == 0
        granted = events.wait("lease", lambda data: data["lease"]["name"] == "second")
        assert granted["what"] == "granted"
        over = events.wait("lease", lambda data: data["lease"]["name"] == "second" and data["what"] == "released")
        assert over["exit_code"] in (None, 0)


def test_ends_have_names(pool_of, sandbox):
    pool = pool_of(2)
    with serving(sandbox) as web, web.events() as events:
        assert pool.berth("run", "--name", "short", "--time", "200ms", "--", "sleep", "30").code == 124
        assert events.wait("lease", lambda data: data["end"] is not None)["what"] == "expired"
        with pool.hold("--name", "stopped") as holder:
            assert pool.berth("release", holder.lease).code == 0
            holder.wait()
        over = events.wait("lease", lambda data: data["end"] is not None)
        assert (over["what"], over["end"]) == ("revoked", "stopped")


def test_hostile_names_stay_in_their_line(pool_of, sandbox):
    pool = pool_of(1)
    name = "a\u2028b\u202e<script>alert(1)</script>\" \\ é"
    with serving(sandbox) as web, web.events() as events:
        holder = pool.hold("--name", name)
        lease = events.wait("lease")["lease"]
        assert "<script>" in lease["name"] and "\n" not in lease["name"]
        pool.let_go(holder)


def test_drained_devices_are_told(pool_of, sandbox):
    pool = pool_of(2)
    with serving(sandbox) as web, web.events() as events:
        events.wait("state")
        assert pool.berth("drain", "nvidia0", "--reason", "fan").code == 0
        drained = events.wait("devices")["devices"][0]
        assert (drained["state"], drained["drain"]["reason"]) == ("drained", "fan")


def test_the_daemon_is_killed_and_comes_back(pool_of, sandbox):
    pool = pool_of(1)
    with serving(sandbox) as web, web.events() as events:
        events.wait("state")
        holder = pool.hold()
        events.wait("lease")
        pool.end_daemon(signal.SIGKILL)
        gone = events.wait("state")
        assert gone["state"] == "gone" and gone["reason"]
        # berth web starts the user's own daemon again, as every command does.
        assert events.wait("state", timeout=30)["state"] == "live"
        hello = next(data for name, data in reversed(events.seen) if name == "hello")
        assert [str(lease["id"]) for lease in hello["leases"]] == [holder.lease]
        pool.let_go(holder)
        assert events.wait("lease", lambda data: data["end"] is not None)["what"] == "released"


def test_a_slow_reader_gets_the_newest_state(pool_of, sandbox):
    """A reader that has slept gets the current state, not the changes during its sleep."""
    pool = pool_of(512)
    with serving(sandbox) as web, web.events() as quick:
        quick.wait("state")
        sleeper = web.connect(receive_buffer=4096)
        sleeper.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # Send enough to fill every buffer between berth web and the reader.
        sent = 0
        while sent < 2 << 20:
            assert pool.berth("drain", "nvidia0").code == 0
            quick.wait("devices")
            assert pool.berth("undrain", "nvidia0").code == 0
            quick.wait("devices")
            sent += sum(len(str(data)) for _, data in quick.seen)
            quick.seen.clear()
        holder = pool.hold("-n", "512", "--name", "newest")
        quick.wait("lease")
        found, deadline = b"", time.monotonic() + 20
        while b'"newest"' not in found:
            assert time.monotonic() < deadline
            found += sleeper.recv(1 << 20)
        assert len(found) < sent
        assert found.count(b"event: hello") == 2
        sleeper.close()
        pool.let_go(holder)


def test_many_readers(pool_of, sandbox):
    pool = pool_of(8)
    with serving(sandbox) as web:
        readers = [web.events() for _ in range(100)]
        for reader in readers:
            reader.wait("hello")
        holder = pool.hold("-n", "8")
        for reader in readers:
            assert len(reader.wait("lease")["lease"]["devices"]) == 8
        for reader in readers:
            reader.client.close()
        pool.let_go(holder)
        assert web.ask("/healthz").status == 200
