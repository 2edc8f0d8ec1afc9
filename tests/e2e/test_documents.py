# SPDX-License-Identifier: Apache-2.0
"""What people read is true: the README's terminal, the examples, manual pages, what is installed."""
import json
import os
import re
import shutil
import subprocess

import pytest


def test_readme_shows_what_berth_prints(sandbox, source_root):
    """Every command of the README's terminal, run in the project's directory."""
    readme = (source_root / "README.md").read_text()
    block = re.search(r"```console\n(.*?)```", readme, re.DOTALL).group(1)
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert len(commands) >= 4
    exports = []
    for command, wanted in commands:
        if command.startswith("export "):
            exports.append(command)
            continue
        script = "\n".join([f"cd {source_root}", *exports, command.replace("build/berth", "berth")])
        done = sandbox.run(["sh", "-c", f"exec 2>&1\n{script}"])
        assert done.stdout.strip() == wanted.strip(), command


def examples(source_root):
    return sorted((source_root / "examples").glob("*.yaml"))


def test_examples_are_good(sandbox, source_root):
    assert len(examples(source_root)) >= 3
    for path in examples(source_root):
        done = sandbox.run(["berth", "devices", "--json", "--inventory", path])
        assert done.code == 0, done.stderr
        assert json.loads(done.stdout)["devices"]
        assert sandbox.run(["berth", "plan", "--inventory", path]).code == 0


def test_manual_names_every_option(sandbox, source_root):
    """Help comes from the tables; the manual pages are written by hand and must not fall behind."""
    for verb in ("devices", "plan", "run", "status"):
        shown = sandbox.run(["berth", verb, "--help"]).stdout
        page = (source_root / "man" / f"berth-{verb}.1.scd").read_text()
        for option in re.findall(r"--[a-z-]+", shown):
            assert f"*{option}*" in page, f"berth-{verb}(1) lacks {option}"
    verbs = re.findall(r"^  ([a-z]+) ", sandbox.run(["berth", "help"]).stdout, re.MULTILINE)
    page = (source_root / "man" / "berth.1.scd").read_text()
    assert all(f"*{verb}*" in page for verb in verbs)


@pytest.mark.skipif(shutil.which("meson") is None, reason="no meson")
def test_installed_tree(sandbox):
    """What `make install` puts where, from the build under test."""
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
    assert any(name.endswith("include/berth/error.h") for name in files)
    assert any(name.endswith("include/berth/berth.h") for name in files)
    assert any(name.endswith("doc/berth/examples/transcode.c") for name in files)
    assert any(name.endswith("doc/berth/LICENSE") for name in files)
    if shutil.which("scdoc"):
        assert any(name.endswith("man/man1/berth.1") for name in files)
        assert any(name.endswith("man/man3/libberth.3") for name in files)
        assert any(name.endswith("man/man5/berth-inventory.5") for name in files)
    assert not any("/tests/" in name or name.endswith(".a") for name in files)
