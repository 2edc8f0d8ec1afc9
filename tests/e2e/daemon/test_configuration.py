# SPDX-License-Identifier: Apache-2.0
"""The configuration of a pool: --check-config, the effect at the start, and changes by SIGHUP."""
import json
import os
import shutil
import signal
import time

import pytest
from policies import refusal
from programs import TIMEOUT, Deadline


SOMEBODY = 65534  # an ordinary user


def check(sandbox, text, *args, **options):
    path = sandbox.directory / "berth.yaml"
    path.write_text(text)
    return sandbox.run(["berth", "daemon", "--check-config", "--config", path, *args], **options), path


# ---- --check-config ----


def test_good_rules(sandbox):
    for text in ("", "grace: 5s\npolicy: round-robin\nhigh: [root]\nlimits: {users: {1001: 0.5}}\n", "{}"):
        done, path = check(sandbox, text)
        assert done == (0, f"{path}: good\n", "")


@pytest.mark.parametrize(
    "text, words",
    [
        ("grcae: 5s\n", "1:1: a configuration has no field 'grcae', did you mean 'grace'?"),
        ("grace: 5s\nage_step: 0\n", "2:11: age_step: expected at least 1s, got '0'"),
        ("high: [nobody-by-this-name]", "1:8: high: expected a user that is known here, got 'nobody-by-this-name'"),
        ("admins: [0, roott]", "1:13: admins: expected a user that is known here, got 'roott' (did you mean root?)"),
        ("limits: {each_user: {}}", "1:21: each_user: expected devices, longest_time or both, got neither"),
        ("prolog: {command: gpu-check}", "1:19: command: expected an absolute path, got 'gpu-check'"),
        ("bounds: {waiting: 0}", "1:19: waiting: expected a whole number from 1 to 1000000, got 0"),
        ("\npolicy: frist", f"2:9: {refusal('frist')}"),
    ],
)
def test_bad_rules(sandbox, text, words):
    done, path = check(sandbox, text)
    assert done == (2, "", f"berth: {path}:{words}\n")


def test_programs_have_to_be_there(sandbox):
    """--check-config requires the programs; the daemon itself starts without them."""
    program = sandbox.directory / "gpu-check"
    text = f"grace: 5s\nprolog: {{command: [{program}, --quick]}}\nnotify: /bin/sh\n"
    done, path = check(sandbox, text)
    assert done == (2, "", f"berth: {path}:2:20: prolog: {program}: no such file\n")
    program.touch(0o644)
    done, path = check(sandbox, text)
    assert done == (2, "", f"berth: {path}:2:20: prolog: {program}: is not executable\n")
    program.chmod(0o755)
    done, path = check(sandbox, text)
    assert done == (0, f"{path}: good\n", "")
    own = sandbox.home / ".config/berth/berth.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(f"epilog: {{command: {sandbox.directory}}}\n")
    done = sandbox.run(["berth", "daemon", "--check-config", "--own", sandbox.directory])
    assert done == (2, "", f"berth: {own}:1:19: epilog: {sandbox.directory}: is a directory\n")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to act as another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv")
def test_ordinary_users_may_check(sandbox):
    """A program that the user cannot look up is not reported as missing. A file that the user
    cannot read is an error."""
    sandbox.directory.chmod(0o711)
    closed = sandbox.directory / "closed"
    closed.mkdir(0o700)
    path = sandbox.directory / "berth.yaml"
    path.write_text(f"notify: {closed}/program\nadmins: [root]\n")
    user = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
    args = [*user, "berth", "daemon", "--check-config", "--config", path]
    path.chmod(0o644)
    done = sandbox.run(args)
    if done.stderr.startswith("setpriv:"):
        pytest.skip(f"another user cannot run berth here: {done.stderr.strip()}")
    assert done == (0, f"{path}: good\n", "")
    path.chmod(0o600)
    assert sandbox.run(args) == (2, "", f"berth: cannot read {path}: Permission denied\n")


def test_default_places(sandbox):
    done = sandbox.run(["berth", "daemon", "--check-config", "--own", sandbox.directory])
    assert done == (0, f"{sandbox.home}/.config/berth/berth.yaml: not found, using the defaults\n", "")
    place = sandbox.directory / "settings" / "berth"
    place.mkdir(parents=True)
    (place / "berth.yaml").write_text("grace: never\n")
    env = {"XDG_CONFIG_HOME": place.parent}
    done = sandbox.run(["berth", "daemon", "--check-config", "--own", sandbox.directory], env=env)
    assert done.code == 2
    assert done.stderr.startswith(f"berth: {place}/berth.yaml:1:8: grace: expected a duration")
    if not os.path.exists("/etc/berth/berth.yaml"):
        done = sandbox.run(["berth", "daemon", "--check-config"])
        assert done == (0, "/etc/berth/berth.yaml: not found, using the defaults\n", "")


def test_a_file_that_was_named_has_to_be_there(sandbox):
    done = sandbox.run(["berth", "daemon", "--check-config", "--config", "none.yaml"])
    assert done == (2, "", "berth: cannot read none.yaml: No such file or directory\n")
    done = sandbox.run(["berth", "daemon", "--check-config", "--config", sandbox.directory])
    assert done == (2, "", f"berth: cannot read {sandbox.directory}: it is a directory\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_output_that_cannot_be_written(sandbox):
    done = sandbox.run(["sh", "-c", "exec berth daemon --check-config --own / >/dev/full"])
    assert done.code == 125


def test_paths_are_absolute(sandbox):
    """Paths must be absolute, because clients run in other directories."""
    for option in ("--socket", "--own"):
        done = sandbox.run(["berth", "daemon", option, "pool"])
        assert done.code == 2
        assert done.stderr == f"berth: {option}: expected an absolute path, got 'pool'\n"


# ---- Effect ----


class Rules:
    """The configuration of the sandbox's own daemon."""

    def __init__(self, sandbox, pool):
        self.pool = pool
        self.path = sandbox.home / ".config/berth/berth.yaml"
        self.path.parent.mkdir(parents=True)

    def write(self, text):
        self.path.write_text(text)

    def reload(self, text, word="reloaded"):
        """Write a new configuration, send SIGHUP and wait until the daemon's log has one more such
        line."""
        before = self.logged(word)
        self.write(text)
        [daemon] = self.pool.daemons()
        os.kill(daemon, signal.SIGHUP)
        deadline = time.monotonic() + TIMEOUT
        while len(lines := self.logged(word)) == len(before):
            if time.monotonic() > deadline:
                raise Deadline(f"no line '{word}' in the daemon's log")
            self.pool.berth("status")  # waits for one turn of the daemon's loop
        return lines[-1]

    def logged(self, word):
        lines = (self.pool.directory / "log").read_text().splitlines()
        return [line for line in lines if line.split(" ")[1] == word]

    def status(self):
        return json.loads(self.pool.berth("status", "--json").stdout)


@pytest.fixture
def rules(sandbox, pool_of):
    return Rules(sandbox, pool_of(4))


def test_bad_rules_keep_the_daemon_from_starting(rules):
    rules.write("grace: 1s\nmps_tenants: 0\n")
    done = rules.pool.berth("run", "true")
    assert done.code == 2
    assert f"{rules.path}:2:14: mps_tenants: expected a whole number from 1 to 1024, got 0" in done.stderr


def test_limits(rules):
    rules.write(f"limits: {{users: {{{os.getuid()}: 2}}}}")
    done = rules.pool.berth("run", "-n", "3", "true")
    assert done.code == 120
    first, second = rules.pool.hold(), rules.pool.hold()
    done = rules.pool.berth("run", "--nonblock", "true")
    assert done.code == 123
    rules.pool.let_go(first)
    assert rules.pool.berth("run", "true").code == 0
    rules.pool.let_go(second)


def test_reload_with_an_unknown_name(rules):
    """Another process asks the name service for names that /etc/passwd does not have, and its answer is logged."""
    rules.pool.berth("status")
    line = rules.reload("high: [root, roott]\n", word="error")
    assert f"{rules.path}:1:14: high: expected a user that is known here, got 'roott' (did you mean root?)" in line
    rules.reload("high: [root]\n")


def test_reloading_does_not_lift_a_limit_that_stays(rules):
    text = f"limits: {{users: {{{os.getuid()}: 1}}, groups: {{4000000000: 3}}}}\n"
    rules.write(text)
    first = rules.pool.hold()
    with rules.pool.start("run", "-v", "echo", "granted") as waiter:
        waiter.wait_for_line("waiting, 1st of 1", "stderr")
        rules.reload(text)
        rules.reload(f"grace: 2s\n{text}")
        assert [claim["id"] for claim in rules.status()["queue"]] == [2]
        assert "granted" not in waiter.text()
        rules.reload("grace: 2s\n")
        assert waiter.wait() == 0
        assert waiter.text() == "granted\n"
    rules.pool.let_go(first)


def test_reloading_sets_times_and_policy(rules):
    rules.write("")
    first = rules.pool.hold()
    assert rules.status()["leases"][0]["expires_at"] is None
    rules.reload("default_time: 1h\npolicy: round-robin\n")
    second, third = rules.pool.hold(), rules.pool.hold()
    assert [lease["expires_at"] is None for lease in rules.status()["leases"]] == [True, False, False]
    rules.pool.let_go(second)
    fourth = rules.pool.hold()
    assert [lease["devices"][0]["id"] for lease in rules.status()["leases"]] == ["nvidia0", "nvidia2", "nvidia3"]
    for holder in (first, third, fourth):
        rules.pool.let_go(holder)


def test_reloading_sets_tenants(rules):
    rules.write("time_slice_tenants: 1\n")
    holders = [rules.pool.hold("--sharing", "time-slice") for _ in range(4)]
    with rules.pool.start("run", "-v", "--sharing", "time-slice", "--share", "0.1", "echo", "granted") as waiter:
        waiter.wait_for_line("waiting, 1st of 1", "stderr")
        rules.pool.let_go(holders.pop())
        assert waiter.wait() == 0
    holders.append(rules.pool.hold("--sharing", "time-slice", "--share", "0.5"))
    with rules.pool.start("run", "-v", "--sharing", "time-slice", "--share", "0.4", "echo", "granted") as waiter:
        waiter.wait_for_line("waiting, 1st of 1", "stderr")
        rules.reload("time_slice_tenants: 2\n")
        assert waiter.wait() == 0
        assert waiter.text() == "granted\n"
    assert len(rules.status()["leases"]) == 4
    for holder in holders:
        rules.pool.let_go(holder)


def test_bad_rules_change_nothing(rules):
    rules.write("default_time: 1h\n")
    holder = rules.pool.hold()
    line = rules.reload("default_time: 2h\npolicy: frist\n", word="error")
    assert f'what=reload reason="{rules.path}:2:9: policy: expected one' in line
    rules.reload("default_time: soon\n", word="error")
    line = rules.reload("grace: 1s\nreserved:\n  nvidia0: root\n", word="error")
    assert f'what=reload reason="{rules.path}:3:12: reserved: expected a list of users' in line
    assert not rules.logged("reloaded")
    second = rules.pool.hold()
    leases = rules.status()["leases"]
    assert all(lease["expires_at"] is not None for lease in leases)
    rules.pool.let_go(second)
    rules.pool.let_go(holder)


def test_grace(rules):
    rules.write("grace: 100ms\n")
    stubborn = rules.pool.start("run", "--", "sh", "-c", "trap '' TERM; echo holding; while :; do sleep 1; done")
    stubborn.wait_for_line("^holding$")
    assert rules.pool.berth("release", "1").code == 0
    assert stubborn.wait() == -signal.SIGKILL
