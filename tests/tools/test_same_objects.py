# SPDX-License-Identifier: Apache-2.0
"""tools/same-objects, on a small project."""
import shutil
import subprocess

import pytest

BUILD = """project('small', 'c')
subdir('src')
"""
FIRST = """static int add(int a, int b)
{
    return a * 3 + b;
}
int first(int a);
int first(int a)
{
    return add(a, 7);
}
"""


@pytest.fixture
def commit(source_root, tmp_path):
    """Commit a source file of a small project."""
    if shutil.which("git") is None:
        pytest.skip("no git")

    def git(*words):
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        return subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    def make(name, text):
        source = tmp_path / "src"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        (source / name).write_text(text)
        (source / "meson.build").write_text(f"static_library('small', '{name}')\n")
        git("add", "-A")
        git("commit", "-qm", "change")

    (tmp_path / "meson.build").write_text(BUILD)
    git("init", "-q")
    make("first.c", FIRST)
    make.compare = lambda: subprocess.run(
        [source_root / "tools/same-objects", "HEAD^"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    return make


def test_moves_names_and_comments_do_not_count(commit):
    commit("second.c", "/* More. */\n" + FIRST.replace("add", "multiply_add").replace("first", "second"))
    done = commit.compare()
    assert (done.returncode, done.stdout) == (0, "same object code: 1 objects\n"), done.stderr


def test_code_counts(commit):
    commit("first.c", FIRST.replace("7", "8"))
    done = commit.compare()
    assert done.returncode == 1
    assert done.stdout == "only in the old commit: first.c.o\nonly in the new commit: first.c.o\n"
