# SPDX-License-Identifier: Apache-2.0
"""berth web and untrusted clients: tokens, hosts, and bytes that are not requests."""
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from other_users import OtherUser
from programs import Deadline
from waiting import until
from web_server import TOKEN, Web, read_all, serving, token_file

DATA = ("/api/events", "/api/history", "/api/report", "/api/status", "/healthz", "/metrics")
GET = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_data_needs_the_token(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        for path in DATA:
            refused = web.ask(path)
            assert refused.status == 401, path
            assert refused.headers["WWW-Authenticate"].startswith("Bearer")
            assert "nvidia" not in refused.text and TOKEN not in refused.text
            assert web.ask(path, "HEAD", headers=bearer(TOKEN)).status == 200, path


def test_the_page_does_not(pool_of, sandbox):
    """The page shows nothing of the pool, and the user types the token into it."""
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        page = web.ask("/")
        assert page.status == 200 and TOKEN not in page.text and "nvidia0" not in page.text
        assert web.ask("/assets/index.html").status == 200


WRONG = ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "x" * 3000]


def test_wrong_tokens_wait(pool_of, sandbox):
    """Each wrong token is delayed, even with many attempts at once; the right token is not."""
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        pair = web.ask("/login", "POST", body=f"token={TOKEN}").headers["Set-Cookie"].split(";")[0]

        def try_one(path, method, headers, body):
            begun = time.monotonic()
            return web.ask(path, method, headers, body).status, time.monotonic() - begun

        tries = [("/api/status", "GET", bearer(wrong), None) for wrong in WRONG]
        tries += [("/login", "POST", {}, f"token={quote(wrong)}") for wrong in WRONG]
        with ThreadPoolExecutor(len(tries)) as threads:
            begun = time.monotonic()
            under_way = [threads.submit(try_one, *one) for one in tries]
            assert web.ask("/api/status", headers=bearer(TOKEN)).status == 200
            assert web.ask("/api/status", headers={"Cookie": pair}).status == 200
            assert not all(one.done() for one in under_way) or time.monotonic() - begun > 0.9
            for one, wrong in zip(under_way, tries):
                status, took = one.result()
                assert (status, took >= 0.95) == (401, True), wrong


@pytest.mark.parametrize("token", [TOKEN, "a+b&c=d;e,f\"g\\h%i!~", "0" * 256])
def test_login_and_logout(pool_of, sandbox, token):
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox, token)) as web:
        home = web.ask("/login", "POST", body="token=" + quote(token, safe=""))
        assert (home.status, home.headers["Location"]) == (303, "/")
        cookie = home.headers["Set-Cookie"]
        for rule in ("HttpOnly", "SameSite=Strict", "Path=/"):
            assert rule in cookie
        assert token not in cookie
        pair = cookie.split(";")[0]
        assert web.ask("/api/status", headers={"Cookie": f"other=1; {pair}; x=y"}).status == 200
        with web.events(f"Cookie: {pair}\r\n") as events:
            events.wait("hello")
        gone = web.ask("/logout", "POST", headers={"Cookie": pair})
        assert gone.status == 303 and "Max-Age=0" in gone.headers["Set-Cookie"]
        assert web.ask("/api/status", headers={"Cookie": pair}).status == 401


def log_in(web, token=TOKEN):
    """Logs in, and returns the header with the cookie."""
    home = web.ask("/login", "POST", body="token=" + quote(token, safe=""))
    assert home.status == 303
    return {"Cookie": home.headers["Set-Cookie"].split(";")[0]}


def test_a_cookie_is_no_token(pool_of, sandbox):
    """Browsers send a cookie to all ports of a host. A server of another user that gets it learns nothing of the
    token, and cannot use it as one."""
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        cookie = log_in(web)
        value = cookie["Cookie"].split("=", 1)[1]
        assert TOKEN not in value and TOKEN.encode().hex() not in value
        assert web.ask("/api/status", headers=cookie).status == 200
        assert web.ask("/api/status", headers=bearer(value)).status == 401
        assert web.ask("/login", "POST", body=f"token={value}").status == 401
        for wrong in (value[:-1], value + "0", "0" * len(value), TOKEN, TOKEN.encode().hex(), ""):
            assert web.ask("/api/status", headers={"Cookie": f"berth_login={wrong}"}).status == 401, wrong


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")
def test_a_cookie_is_its_users(pool_of, sandbox):
    """A cookie is good only for the user who logged in."""
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        cookie = log_in(web)

        def steal():
            return web.ask("/api/status", headers=cookie).status, web.ask("/api/status", headers=bearer(TOKEN)).status

        assert OtherUser(61104, steal).result() == (401, 200)
        assert web.ask("/api/status", headers=cookie).status == 200


def test_another_token_ends_all_logins(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        cookie = log_in(web)
    with serving(sandbox, "--token", token_file(sandbox, TOKEN + "-2")) as web:
        assert web.ask("/api/status", headers=cookie).status == 401
        assert web.ask("/api/status", headers=bearer(TOKEN)).status == 401
        assert web.ask("/api/status", headers=log_in(web, TOKEN + "-2")).status == 200


def test_another_site_cannot_log_in(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        for site, status in {"cross-site": 403, "same-site": 403, "same-origin": 303, "none": 303}.items():
            headers = {"Sec-Fetch-Site": site}
            assert web.ask("/login", "POST", headers, f"token={TOKEN}").status == status, site
            assert web.ask("/logout", "POST", headers).status == status, site


ORIGINS = {
    "http://localhost:7411": 303,
    "https://localhost:7411": 303,
    "http://LOCALHOST:7411": 303,
    "http://localhost": 403,
    "http://localhost:9999": 403,
    "http://localhost:7411.evil.example": 403,
    "http://evil.example": 403,
    "ftp://localhost:7411": 403,
    "localhost:7411": 403,
    "null": 403,
    "": 403,
}


def test_another_origin_cannot_log_in(pool_of, sandbox):
    """On plain HTTP between machines, browsers send Origin, but no Sec-Fetch-Site."""
    pool_of(1)
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        for origin, status in ORIGINS.items():
            headers = {"Host": "localhost:7411", "Origin": origin}
            assert web.ask("/login", "POST", headers, f"token={TOKEN}").status == status, origin
            assert web.ask("/logout", "POST", headers).status == status, origin
        assert web.ask("/login", "POST", {"Sec-Fetch-Site": "same-origin", "Origin": "null"}, f"token={TOKEN}").status == 303


def test_any_address_with_a_token(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox, "--listen", "0.0.0.0:0", "--token", token_file(sandbox)) as web:
        assert web.ask("/api/status").status == 401
        named = {**bearer(TOKEN), "Host": socket.gethostname()}
        assert web.ask("/api/status", headers=named).status == 200
        addressed = {**bearer(TOKEN), "Host": "192.0.2.1:80"}
        assert web.ask("/api/status", headers=addressed).status == 200
        rebound = {**bearer(TOKEN), "Host": "rebound.example"}
        assert web.ask("/api/status", headers=rebound).status == 421


WRONG_FILES = [
    ("0123456789abcde\n", 0o600, "expected a token of 16 to 256 characters in one line, got 15"),
    ("x" * 257, 0o600, "expected a token of 16 to 256 characters in one line, got 257"),
    ("", 0o600, "expected a token of 16 to 256 characters in one line, got 0"),
    ("0123456789abcdef 0123", 0o600, "expected a token of printable characters"),
    ("0123456789abcdef\n0123456789abcdef\n", 0o600, "expected a token of printable characters"),
    ("0123456789abcdé0123", 0o600, "expected a token of printable characters"),
    ("0123456789abcdef", 0o604, "expected a file that others cannot read or change, got mode 0604"),
    ("0123456789abcdef", 0o622, "expected a file that others cannot read or change, got mode 0622"),
]


def test_token_files_that_will_not_do(pool_of, sandbox):
    pool_of(1)
    for content, mode, wanted in WRONG_FILES:
        path = token_file(sandbox, content, mode)
        done = sandbox.run(["berth", "web", "--listen", "127.0.0.1:0", "--token", path])
        assert done.stderr.startswith(f"berth: web: --token: {path}: {wanted}"), done.stderr
        assert (done.code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        path.unlink()


def test_a_token_is_no_pipe_or_directory(pool_of, sandbox):
    pool_of(1)
    pipe = sandbox.directory / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, sandbox.directory):
        done = sandbox.run(["berth", "web", "--listen", "127.0.0.1:0", "--token", path])
        assert done.code == 2 and "expected a regular file" in done.stderr


HOSTS = [
    ("localhost", 200),
    ("LocalHost:1", 200),
    ("127.0.0.1", 200),
    ("127.8.9.10:7411", 200),
    ("[::1]:7411", 200),
    ("gpu.example:80", 200),
    ("GPU.example", 200),
    ("gpu.example.evil", 421),
    ("evil.example", 421),
    ("localhost.evil.example", 421),
    ("127.0.0.1.evil.example", 421),
    ("10.0.0.1", 421),
    ("10.1.2.3:80", 200),
    ("[fd00::7]", 200),
    ("[FD00:0::7]:80", 200),
    ("fd00::7", 421),
    ("[::2]", 421),
    ("::1", 421),
    ("localhost:", 200),
    ("localhost:x", 421),
    ("localhost:99999", 421),
    ("", 421),
    ("[localhost]", 421),
]


def test_hosts(pool_of, sandbox):
    pool_of(1)
    named = [word for name in ("gpu.example", "other", "10.1.2.3", "[fd00::7]") for word in ("--host", name)]
    with serving(sandbox, *named) as web:
        for host, status in HOSTS:
            assert web.ask("/healthz", headers={"Host": host}).status == status, host


HOSTILE = [
    ("GARBAGE\r\n\r\n", 400),
    ("\r\n\r\n", 400),
    ("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("GET / HTTP/1.1\nHost: localhost\n\n", 400),
    ("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
    ("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: localhost\r\nA: b\0c\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: localhost\r\nCookie: a\r\nCookie: b\r\n\r\n", 400),
    ("GET /\x7f HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    ("POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n", 413),
    ("POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
    ("POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    ("GET /" + "a" * 5000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    ("GET /" + "a" * 30000, 414),
    ("GET / HTTP/1.1\r\nHost: localhost\r\n" + "A: b\r\n" * 100 + "\r\n", 431),
    ("GET / HTTP/1.1\r\nHost: localhost\r\nA: " + "b" * 20000 + "\r\n\r\n", 431),
    ("GET / HTTP/1.1\r\nHost: localhost\r\nA: " + "b" * 500000, 431),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 400),
]


def test_hostile_requests(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox) as web:
        for text, status in HOSTILE:
            assert web.status_of(text) == status, text[:80]
        assert web.ask("/healthz").status == 200


def test_old_clients_need_no_host(pool_of, sandbox):
    pool_of(1)
    with serving(sandbox) as web:
        assert web.status_of("GET /healthz HTTP/1.0\r\n\r\n") == 200


def test_requests_one_after_the_other(pool_of, sandbox):
    """Requests also work if they are sent all at once, byte by byte, or cut anywhere."""
    pool_of(1)
    request = GET.format("/healthz", "").replace("Connection: close\r\n", "").encode()
    last = GET.format("/healthz", "").encode()
    with serving(sandbox) as web:
        assert web.say(request * 50 + last).count(b"HTTP/1.1 200 OK") == 51
        with web.connect() as client:
            for byte in last:
                client.send(bytes([byte]))
            assert read_all(client).startswith(b"HTTP/1.1 200 ")


def test_descriptors_are_left_for_ourselves(pool_of, sandbox):
    """With few descriptors, clients get only some. The rest is for reconnecting to the daemon and
    reading the history."""
    pool = pool_of(1)
    words = ["sh", "-c", "ulimit -n 128; exec berth web --listen 127.0.0.1:0"]
    with sandbox.start(words) as program:
        web = Web(program)
        with web.events() as events:
            events.wait("state")
            crowd = [web.connect() for _ in range(150)]
            assert all(read_all(client).startswith(b"HTTP/1.1 503 ") for client in crowd[110:])
            pool.end_daemon(signal.SIGKILL)
            assert events.wait("state")["state"] == "gone"
            assert events.wait("state", timeout=30)["state"] == "live"
            for client in crowd:
                client.close()
        assert until(lambda: web.ask("/api/history").status == 200, "the history")
        assert web.end() == 0


def test_readers_that_vanish(pool_of, sandbox):
    pool = pool_of(4)
    with serving(sandbox) as web:
        for _ in range(50):
            client = web.connect()
            client.sendall(GET.format("/api/events", "").encode())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
        with web.events() as events:
            events.wait("hello")
            assert pool.berth("run", "--", "true").code == 0
            events.wait("lease")
        try:
            with web.events() as events:
                events.wait("nothing", timeout=0.1)
        except Deadline:
            pass
