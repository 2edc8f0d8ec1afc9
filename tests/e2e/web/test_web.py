# SPDX-License-Identifier: Apache-2.0
"""berth web: its paths, its start and its end."""
import itertools
import json
import os
import re
import signal
import socket
import sys

import pytest
import wire
from waiting import until, until_pending
from web_server import TOKEN, Web, serving, token_file

DATA = ("/api/events", "/api/history", "/api/report", "/api/status", "/healthz", "/metrics")


def test_the_page_has_no_outside_resources(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox) as web:
        page = web.ask("/")
        assert page.status == 200
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert not re.search(r"(src|href)=[\"']?(https?:)?//", page.text)
        policy = page.headers["Content-Security-Policy"]
        for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
            assert rule in policy
        assert "unsafe" not in policy
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in page.headers


def test_assets_are_asked_for_once(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox) as web:
        first = web.ask("/assets/index.html")
        assert first.status == 200 and first.body == web.ask("/").body
        again = web.ask("/assets/index.html", headers={"If-None-Match": f'"other", {first.headers["ETag"]}'})
        assert (again.status, again.body) == (304, b"")
        assert web.ask("/assets/index.html", headers={"If-None-Match": '"other"'}).status == 200
        assert web.ask("/assets/none.js").status == 404
        assert web.ask("/assets/../web.c").status == 404


def test_status_is_what_the_verb_says(pool_of, sandbox):
    pool = pool_of(2)
    holder = pool.hold("-n", "1", "--name", "train")
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        answer = web.ask("/api/status", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
        found, wanted = answer.json, json.loads(pool.berth("status", "--json").stdout)
        for document in (found, wanted):
            del document["pool"]["time"]
        assert found == wanted
    pool.let_go(holder)


def test_status_is_fresh_although_nobody_looked(pool_of, sandbox):
    """A change of a device is visible even without any lease, because berth web queries the daemon
    for each request."""
    pool = pool_of(2)
    with serving(sandbox) as web:
        assert pool.berth("drain", "nvidia1").code == 0
        assert [device["state"] for device in web.ask("/api/status").json["devices"]] == ["free", "drained"]


def test_status_is_fresh_although_somebody_looked_before(pool_of, sandbox):
    pool = pool_of(2)
    with serving(sandbox) as web:
        for verb, state in [("drain", "drained"), ("undrain", "free")] * 3:
            assert pool.berth(verb, "nvidia1").code == 0
            assert web.ask("/api/status").json["devices"][1]["state"] == state
            assert web.ask("/metrics").status == 200


def test_a_long_queue(pool_of, sandbox):
    """The stream has only the front of the queue, at each change; a single request gets
    everything."""
    pool = pool_of(1)
    holder = pool.hold()
    with wire.connect(str(pool.socket)) as client:
        for _ in range(520):
            client.send_claim({"gpus_min": 1})
        until_pending(pool, 520)
        with serving(sandbox) as web, web.events() as events:
            hello = events.wait("hello")
            assert (hello["pool"]["pending"], len(hello["queue"])) == (520, 500)
            found, wanted = web.ask("/api/status").json, json.loads(pool.berth("status", "--json").stdout)
            assert [claim["id"] for claim in found["queue"]] == [claim["id"] for claim in wanted["queue"]]
            assert len(found["queue"]) == 520
            pool.let_go(holder)
            queue = events.wait("queue", lambda data: data["pending"] < 520)
            assert len(queue["queue"]) == 500


def test_a_daemon_that_does_not_answer(pool_of, sandbox):
    """While the daemon does not answer, the stream reports its data as old, and other paths give no
    data."""
    paths = ("/healthz", "/metrics", "/api/status")
    pool = pool_of(1)
    with serving(sandbox) as web, web.events() as events:
        assert (web.ask("/healthz").status, web.ask("/healthz").text) == (200, "ok\n")
        events.wait("state")
        [daemon] = pool.daemons()
        os.kill(daemon, signal.SIGSTOP)
        events.seen.clear()
        try:
            web.ask("/api/status")  # berth web queries the daemon, which does not answer
            silent = events.wait("state", timeout=30)
            assert silent["state"] == "silent" and silent["reason"]
            assert [web.ask(path).status for path in paths] == [503, 503, 503]
            assert web.ask("/").status == 200
            if "tick" not in [name for name, _ in events.seen]:
                events.wait("tick", timeout=30)
            with web.events() as late:
                assert late.next()[1]["state"] == "silent"
        finally:
            os.kill(daemon, signal.SIGCONT)
        assert events.wait("state", timeout=30)["state"] == "live"
        assert [web.ask(path).status for path in paths] == [200, 200, 200]


def test_head_has_no_content(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox) as web:
        for path in DATA:
            answer = web.ask(path, "HEAD")
            assert (answer.status, answer.body) == (200, b""), path


OTHERS = [
    ("/nowhere", "GET", 404, None),
    ("/api", "GET", 404, None),
    ("/api/status/", "GET", 404, None),
    ("/api/status", "POST", 405, "GET, HEAD"),
    ("/", "DELETE", 405, "GET, HEAD"),
    ("/assets/index.html", "PUT", 405, "GET, HEAD"),
    ("/login", "GET", 405, "POST"),
    ("/logout", "HEAD", 405, "POST"),
]


def test_other_paths_and_methods(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox) as web:
        for path, method, status, allowed in OTHERS:
            answer = web.ask(path, method)
            assert (answer.status, answer.headers["Allow"]) == (status, allowed), (method, path)
            assert method == "HEAD" or answer.text.count("\n") == 1, (method, path)


def test_history_and_report(pool_of, sandbox):
    pool = pool_of(2)
    with serving(sandbox) as web:
        assert web.ask("/api/history").json == {"schema": "berth.history/1", "leases": []}
        assert pool.berth("run", "-n", "2", "--name", "train", "--", "true").code == 0

        # Answers are cached for a moment, so each request must differ.
        hours = itertools.cycle(range(1, 169))

        def ended():
            return [lease for lease in web.ask(f"/api/history?hours={next(hours)}").json["leases"] if lease["ended_at"]]

        [lease] = until(ended, "an ended lease")
        assert (lease["name"], lease["devices"]) == ("train", ["nvidia0", "nvidia1"])
        report = until(lambda: web.ask("/api/report?by=name&hours=168").json["rows"], "a row")
        assert [row["key"] for row in report] == ["train"]
        assert web.ask("/api/report").json["by"] == "user"


WRONG_QUESTIONS = ["/api/history?hours=0", "/api/history?hours=169", "/api/history?hours=x", "/api/history?hours=-1",
                   "/api/report?by=nobody", "/api/report?by=", "/api/report?hours=99999999999999999999"]  # fmt: skip


def test_wrong_questions_about_the_past(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox) as web:
        for path in WRONG_QUESTIONS:
            answer = web.ask(path)
            assert answer.status == 400 and answer.text.count("\n") == 1 and "expected" in answer.text, path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_when_it_is_told(pool_of, sandbox, number):
    pool_of(1)
    with sandbox.start(["berth", "web", "--listen", "127.0.0.1:0"]) as program:
        web = Web(program)
        with web.events() as events:
            events.wait("hello")
            assert web.end(number) == 0
            with pytest.raises(EOFError):
                events.wait("nothing")
        assert program.text("stderr") == ""


def test_port_in_use(pool_of, sandbox):
    pool_of(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        done = sandbox.run(["berth", "web", "--listen", address])
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr == (
            f"berth: web: cannot listen on {address}: the port is in use (port 0 takes any free port)\n"
        )


def test_ipv6(pool_of, sandbox):
    try:
        socket.socket(socket.AF_INET6).bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    pool_of(1)
    with serving(sandbox, "--listen", "[::1]:0") as web:
        assert web.url.startswith("http://[::1]:")
        assert web.ask("/healthz").status == 200


WRONG_USAGE = [
    (["--listen", "7411"], "--listen: expected ADDRESS:PORT"),
    (["--listen", "example.org:80"], "--listen: expected ADDRESS:PORT"),
    (["--listen", "127.0.0.1:65536"], "--listen: expected ADDRESS:PORT"),
    (["--listen", "::1:80"], "--listen: expected ADDRESS:PORT"),
    (["--listen", "203.0.113.7:0", "--token", "TOKEN"], "--listen: cannot listen on 203.0.113.7:0: "),
    (["--listen", "0.0.0.0:0"], "--listen 0.0.0.0:0: other machines can reach this address, so --token FILE is required"),
    (["--listen", "[::]:0"], "--listen [::]:0: other machines can reach this address, so --token FILE is required"),
    (["--host", ""], "--host: expected a name"),
    (["--host", "two words"], "--host: expected a name"),
    (["--host", "http://gpu.example/"], "--host: expected a name"),
    (["--host", "gpu.example:8080"], "--host: expected a name or an address without a port"),
    (["--job-mapping", "none"], "--job-mapping: cannot write into none: "),
    (["--token", "none"], "--token: cannot read none: No such file"),
    (["--inventory", "none.yaml"], "--inventory: cannot read none.yaml: "),
    (["nonsense"], "expected only options"),
]


def test_wrong_usage(pool_of, sandbox):
    pool_of(1)
    token = sandbox.directory / "TOKEN"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    for options, wanted in WRONG_USAGE:
        listen = [] if "--listen" in options else ["--listen", "127.0.0.1:0"]
        done = sandbox.run(["berth", "web", *listen, *options])
        assert done.stderr.startswith(f"berth: web: {wanted}") and done.stderr.count("\n") == 1, done.stderr
        assert (done.code, done.stdout) == (2, ""), options


def test_nobody_listens(sandbox):
    path = sandbox.directory / "none.sock"
    done = sandbox.run(["berth", "web", "--listen", "127.0.0.1:0"], env={"BERTH_SOCKET": path})
    assert done == (125, "", f"berth: web: {path}: no daemon is running (no such socket)\n")


# Becomes berth web with a socket as descriptor 3, as a service manager starts it.
HAND = """
import os, socket, sys
{socket}
print("port", taken.getsockname()[1], flush=True)
os.dup2(taken.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execvp("berth", ["berth", "web", *sys.argv[1:]])
"""
LISTENING = "taken = socket.create_server(('{}', 0))"


def hand(sandbox, code, *options):
    return sandbox.start([sys.executable, "-c", HAND.format(socket=code), *options])


def test_a_socket_of_the_service_manager(pool_of, sandbox):
    pool_of(1)
    with hand(sandbox, LISTENING.format("127.0.0.1")) as program:
        port = int(program.wait_for_line("^port ").split()[1])
        web = Web(program)
        assert web.port == port
        assert web.ask("/api/status").status == 200
        assert (web.end(), program.text("stderr")) == (0, "")


WRONG_SOCKETS = [
    ("taken = socket.socket(); taken.bind(('127.0.0.1', 0))", (), "LISTEN_FDS: expected one listening TCP socket"),
    ("taken = socket.socket(type=socket.SOCK_DGRAM); taken.bind(('127.0.0.1', 0))", (), "LISTEN_FDS: expected one"),
    (LISTENING.format("127.0.0.1"), ("--listen", "127.0.0.1:0"), "--listen: expected no address beside a socket"),
    (LISTENING.format("0.0.0.0"), (), "--listen 0.0.0.0:"),
]


@pytest.mark.parametrize("code, options, words", WRONG_SOCKETS)
def test_sockets_that_will_not_do(sandbox, code, options, words):
    with hand(sandbox, code, *options) as program:
        assert program.wait() == 2
        assert program.text("stderr").startswith(f"berth: web: {words}")
        assert program.text("stderr").count("\n") == 1
