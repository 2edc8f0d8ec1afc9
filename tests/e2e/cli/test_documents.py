# SPDX-License-Identifier: Apache-2.0
"""The documentation is correct: the README's terminals, the examples, the manual pages, and the
installed files."""
import json
import os
import re
import shlex
import shutil
import subprocess
import time

import pytest
from programs import TIMEOUT
from users import user_name


def plain(text, directory):
    """Replace what differs between runs and machines: durations, paths, names, and the width of
    columns."""
    text = text.replace(f"{directory}/", "").replace(user_name(), "ada")
    text = re.sub(r"\b\d+(ms|s)\b", "T", text)
    return "\n".join(re.sub(" +", " ", line).strip() for line in text.strip().splitlines())


class Reader:
    """A user who types the README's commands, in a directory with a copy of the examples and a
    pool of its own."""

    def __init__(self, sandbox, source_root):
        self.sandbox = sandbox
        self.directory = sandbox.directory / "project"
        shutil.copytree(source_root / "examples", self.directory / "examples")
        self.exports = []
        self.background = []

    def script(self, command):
        return "\n".join([f"cd {self.directory}", *self.exports, command.replace("build/berth", "berth")])

    def run(self, command):
        return self.sandbox.run(["sh", "-c", f"exec 2>&1\n{self.script(command)}"])

    def start(self, command):
        """Start a command in the background and wait until it has its devices or waits for them."""
        known = self.count()
        self.background.append(self.sandbox.start(["sh", "-c", self.script(f"exec {command}")]))
        deadline = time.monotonic() + TIMEOUT
        while self.count() == known:
            assert time.monotonic() < deadline, command

    def count(self):
        status = json.loads(self.run("berth status --json").stdout)
        return len(status["leases"]) + len(status["queue"])

    def type(self, command):
        """Run the command and return its output."""
        if command.startswith("export "):
            self.exports.append(command)
        elif command.endswith("&"):
            self.start(command.rstrip("& "))
        else:
            return self.run(command).stdout
        return ""


@pytest.fixture
def reader(sandbox, pool, source_root):
    somebody = Reader(sandbox, source_root)
    yield somebody
    for program in somebody.background:
        program.stop()


@pytest.mark.parametrize("document, least", [("README.md", 9), ("docs/USING.md", 5)])
def test_terminals_show_what_berth_prints(reader, source_root, document, least):
    """Run every command of a document's terminals."""
    readme = (source_root / document).read_text()
    typed = 0
    for block in re.findall(r"```console\n(.*?)```", readme, re.DOTALL):
        for command, wanted in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            found = reader.type(command)
            assert plain(found, reader.directory) == plain(wanted, reader.directory), command
            typed += 1
    assert typed >= least


# Commands of the tables with a placeholder, and the commands that the test runs instead.
FILLED_IN = {
    "berth run --wait 10m …": "berth run --wait 10m true",
    "berth run --or-cpu …": "berth run --or-cpu true",
    """berth run --notify 'mail -s "$BERTH_MESSAGE" me' …""": "berth run --notify true true",
    "berth run -- sh -c 'exec podman run $(berth cdi --arguments cdi) IMAGE'": (
        "berth run -- sh -c 'echo podman run $(berth cdi --arguments cdi) IMAGE'"
    ),
    "berth cdi --output /etc/cdi": "BERTH_SYSROOT= berth cdi --output cdi --inventory files.yaml",
    "berth adopt PID": "berth adopt $$ -n 1",
    "berth release ID": "berth release $(berth reserve --for 1h)",
    "berth cancel ID": 'all=$(berth reserve -n 7 --for 1h); berth cancel "$(berth submit -n 3 true)"; berth release "$all"',
    "berth extend ID 2h": "berth extend $(berth reserve --for 1h) 2h",
    "berth VERB --help": "berth run --help",
    "berth status --watch": "timeout 1 berth status --watch || [ $? = 124 ]",
    "berth top": (
        "TERM=xterm script -qec 'timeout --foreground 1 berth top' /dev/null >/dev/null || [ $? = 124 ]"
    ),
    "berth web": "timeout 1 berth web --listen 127.0.0.1:0 2>&1 || [ $? = 124 ]",
    "berth devices --watch": "timeout 1 berth devices --watch || [ $? = 124 ]",
}
NOT_FOR_A_POOL = (
    "--json",
    "berth adopt --container ID",
    "berth sim place --nodes FILE --pods FILE --policy first,frag --plot chart.svg",
    "berth sim queue --jobs FILE --nodes 90 --gpus-per-node 8",
    "man berth",
    "make install PREFIX=/usr/local",
    "DESTDIR",
)


@pytest.mark.parametrize("document, least", [("README.md", 10), ("docs/USING.md", 25)])
def test_table_of_commands(sandbox, pool, source_root, document, least):
    """Every command of a document's table works, in order, in one shell."""
    shutil.copytree(source_root / "examples", sandbox.directory / "examples")
    (sandbox.directory / "files.yaml").write_text("devices: [{vendor: dri, index: 0, nodes: [/dev/null]}]\n")
    for name in ("python", "train.sh"):
        program = sandbox.directory / name
        program.write_text('#!/bin/sh\necho "$0 on $BERTH_DEVICES"\n')
        program.chmod(0o755)
    table = re.search(r"\| to \| type \|\n\|---\|---\|\n(.*?)\n\n", (source_root / document).read_text(), re.DOTALL)
    commands = [
        FILLED_IN.get(command, command)
        for line in table.group(1).splitlines()
        for command in re.findall("`([^`]*)`", line.split(" | ")[-1])
        if command not in NOT_FOR_A_POOL
    ]
    assert len(commands) >= least
    if document == "docs/USING.md":
        for command in FILLED_IN.values():
            assert command in commands
    script = "\n".join(["set -eu", *(f"echo {shlex.quote(command)}\n{command}" for command in commands)])
    path = f"{sandbox.directory}:{sandbox.environment['PATH']}"
    done = sandbox.run(["sh", "-c", script], env={"PATH": path})
    assert (done.code, done.stderr) == (0, ""), done.stdout


def test_example_inventories_are_good(sandbox, source_root):
    paths = sorted(set((source_root / "examples").glob("*.yaml")) - {source_root / "examples/berth.yaml"})
    assert len(paths) >= 3
    for path in paths:
        done = sandbox.run(["berth", "devices", "--json", "--inventory", path])
        assert done.code == 0, done.stderr
        assert json.loads(done.stdout)["devices"]
        assert sandbox.run(["berth", "plan", "--inventory", path]).code == 0


# The manual page of each verb.
PAGES = {
    "run": "berth-run.1",
    "submit": "berth-submit.1",
    "logs": "berth-submit.1",
    "wait": "berth-wait.1",
    "reserve": "berth-reserve.1",
    "adopt": "berth-adopt.1",
    "extend": "berth-release.1",
    "release": "berth-release.1",
    "cancel": "berth-release.1",
    "status": "berth-status.1",
    "top": "berth-top.1",
    "web": "berth-web.1",
    "history": "berth-history.1",
    "report": "berth-report.1",
    "devices": "berth-devices.1",
    "doctor": "berth-doctor.1",
    "plan": "berth-plan.1",
    "spec": "berth-spec.1",
    "sim": "berth-sim.1",
    "cdi": "berth-cdi.1",
    "drain": "berth-drain.1",
    "undrain": "berth-drain.1",
    "daemon": "berthd.8",
}


def page_of(source_root, name):
    return (source_root / "man" / f"{name}.scd").read_text()


def test_manual_names_every_verb(sandbox, source_root):
    verbs = re.findall(r"^  ([a-z]+) ", sandbox.run(["berth", "help"]).stdout, re.MULTILINE)
    assert sorted(verbs) == sorted([*PAGES, "help"])
    assert all(f"\n*{verb}*" in page_of(source_root, "berth.1") for verb in verbs)


# The manual page of each subcommand.
WORDS = {"spec check": "berth-spec.1", "sim place": "berth-sim.1", "sim queue": "berth-sim.1"}


@pytest.mark.parametrize("verb", [*PAGES, *WORDS])
def test_manual_names_every_option(sandbox, source_root, verb):
    """Help is generated from the tables. The manual pages are written by hand and must have the
    same options."""
    shown = sandbox.run(["berth", *verb.split(), "--help"]).stdout
    name = {**PAGES, **WORDS}[verb]
    page = page_of(source_root, name)
    if f"*{name.partition('.')[0]}*(1)" not in page and "The request is that of *berth-run*(1)" in page:
        page += page_of(source_root, "berth-run.1")
    for option in re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", shown, re.MULTILINE):
        assert f"*{option}*" in page, f"{name} lacks {option}"


def keys_of_the_configuration(source_root):
    sources = "".join(path.read_text() for path in (source_root / "src/spec/configuration").glob("*.c"))
    keys = set(re.findall(r'^    \{"(\w+)", &', sources, re.MULTILINE))
    assert len(keys) >= 30
    return keys


def test_manual_names_every_key(source_root):
    page = page_of(source_root, "berth.yaml.5")
    for key in keys_of_the_configuration(source_root):
        assert f"*{key}*" in page, key


def test_manual_names_every_word_of_the_log(source_root):
    page = page_of(source_root, "berthd.8")
    words = set()
    for path in (source_root / "src/daemon").rglob("*.c"):
        words.update(re.findall(r'log_(?:line|begin)\([^;]*?, "([a-z]+)"[,)]', path.read_text()))
    assert len(words) >= 14
    for word in words:
        assert f"\n*{word}*\n" in page, word


def check_configuration(sandbox, text):
    """Check the configuration, with existing users, groups and programs in place of the example's."""
    known = {"ada": 0, "ben": 1001, "guest": 1002, "gpu-admins": 0, "staff": 50, "students": 100, "teachers": 200}
    for name, number in known.items():
        text = re.sub(rf"(?<=[\[{{ ]){name}(?=[\],:])", str(number), text)
    text = re.sub(r"/usr/local/sbin/[\w-]+", "/bin/sh", text)
    rules = sandbox.directory / "berth.yaml"
    rules.write_text(text)
    done = sandbox.run(["berth", "daemon", "--check-config", "--config", rules])
    assert done == (0, f"{rules}: good\n", "")


def test_manual_example_configuration_is_good(sandbox, source_root):
    [example] = re.findall(r"# EXAMPLE\n\n```\n(.*?)```", page_of(source_root, "berth.yaml.5"), re.DOTALL)
    check_configuration(sandbox, example)


def test_example_configuration_is_good(sandbox, source_root):
    """The example is valid as it is, and with every commented line enabled. It has every key."""
    path = source_root / "examples/berth.yaml"
    done = sandbox.run(["berth", "daemon", "--check-config", "--config", path])
    assert done == (0, f"{path}: good\n", "")
    whole = re.sub(r"^( *)#(?=[^ \n])", r"\1", path.read_text(), flags=re.MULTILINE)
    check_configuration(sandbox, whole)
    for key in keys_of_the_configuration(source_root):
        assert re.search(rf"^[^#]*\b{key}:", whole, re.MULTILINE), key


@pytest.mark.skipif(shutil.which("meson") is None, reason="no meson")
def test_installed_tree(sandbox, source_root):
    """Check the files that `make install` puts in place, from the build under test."""
    build = os.environ["BERTH_BUILD_ROOT"]
    stage = sandbox.directory / "stage"
    subprocess.run(
        ["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", stage],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    files = {str(path.relative_to(stage)) for path in stage.rglob("*") if path.is_file()}
    [program] = [stage / name for name in files if name.endswith("/bin/berth")]
    assert sandbox.run([program, "--version"]).code == 0
    assert sandbox.run([program, "daemon", "--check-config", "--own", "/"]).code == 0  # berthd is in the same directory
    assert any(name.endswith("/bin/berth-probe") for name in files)
    assert any(name.endswith("/bin/berth-sim") for name in files)
    assert any(name.endswith("include/berth/error.h") for name in files)
    assert any(name.endswith("include/berth/berth.h") for name in files)
    assert any(name.endswith("doc/berth/examples/transcode.c") for name in files)
    assert any(name.endswith("doc/berth/LICENSE") for name in files)
    for name in ("bash-completion/completions/berth", "zsh/site-functions/_berth", "fish/vendor_completions.d/berth.fish"):
        [completion] = [stage / file for file in files if file.endswith(f"share/{name}")]
        assert "berth" in completion.read_text()
    if shutil.which("scdoc"):
        assert any(name.endswith("man/man1/berth.1") for name in files)
        assert any(name.endswith("man/man3/libberth.3") for name in files)
        pages = {os.path.basename(name) for name in files if "/man/man" in name}
        aliases = set(re.findall(r"^    '(berth-[a-z]+\.1)': ", (source_root / "man/meson.build").read_text(), re.M))
        assert pages == {path.stem for path in (source_root / "man").glob("*.scd")} | aliases
        assert any(name.endswith("man/man8/berthd.8") for name in files)
        assert any(name.endswith("man/man8/berth-probe.8") for name in files)
    assert not any("/tests/" in name or name.endswith(".a") for name in files)
