# SPDX-License-Identifier: Apache-2.0
"""Command lines on the page: without a token, which all users of the machine can read, only names of programs."""
import os

import pytest
from waiting import until
from web_server import TOKEN, serving, token_file

SECRET = "--api-key=very-secret"


@pytest.fixture
def busy_pool(hardware_of, sleeper):
    """A pool with a lease that is held, a claim that waits, a lease that has ended, and a process without a lease."""
    pool = hardware_of([0, 1])
    squatter = {"pid": sleeper().pid, "uid": os.getuid(), "command": f"/opt/bin/squatter {SECRET}"}
    pool.says([0, 1, pool.device(2, processes=[squatter])])
    assert pool.berth("run", "--device", "nvidia1", "--", "sh", "-c", "true", SECRET).code == 0
    holder = pool.start("run", "--device", "nvidia0", "--", "sh", "-c", "echo held; exec cat", SECRET)
    holder.wait_for_line("^held")
    waits = pool.start("run", "--device", "nvidia0", "--", "env", SECRET, "true")
    until(lambda: '"queue": [\n' in pool.berth("status", "--json").stdout, "a claim that waits")
    pool.until_state("nvidia2", "SQUATTED")
    yield pool
    waits.kill()
    waits.wait()
    pool.let_go(holder)


def read_all(pool, web, headers):
    """Return everything that the server says about jobs and processes."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    def history():
        return web.ask("/api/history", headers=headers)

    until(lambda: any(lease["end"] for lease in history().json["leases"]), "the history")
    with web.events(lines) as events:
        hello = str(events.wait("hello"))
        done = pool.berth("run", "--name", "short", "--device", "nvidia1", "--", "sh", "-c", "true", SECRET)
        assert done.code == 0
        ended = str(events.wait("lease", lambda data: data["lease"]["name"] == "short" and data["end"]))
    return {
        "status": web.ask("/api/status", headers=headers).text,
        "metrics": web.ask("/metrics", headers=headers).text,
        "history": history().text,
        "events": hello,
        "ended": ended,
    }


def test_names_of_programs_without_a_token(busy_pool, sandbox):
    with serving(sandbox) as web:
        told = read_all(busy_pool, web, {})
    assert [name for name, text in told.items() if SECRET in text] == []
    assert '"command":"env"' in told["status"].replace(": ", ":")
    assert '"command":"squatter"' in told["status"].replace(": ", ":")
    assert '"command":"sh"' in told["history"].replace(": ", ":")


def test_command_lines_with_a_token(busy_pool, sandbox):
    with serving(sandbox, "--token", token_file(sandbox)) as web:
        told = read_all(busy_pool, web, {"Authorization": f"Bearer {TOKEN}"})
    assert [name for name, text in told.items() if SECRET not in text] == ["metrics"]
    assert f"squatter {SECRET}" in told["status"]
