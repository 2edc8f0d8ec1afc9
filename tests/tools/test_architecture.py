# SPDX-License-Identifier: Apache-2.0
"""docs/ARCHITECTURE.md is one page that names every folder and no path that does not exist."""
import re

import pytest

WORDS_MAX = 1500
ROWS_MIN = 30


@pytest.fixture(scope="module")
def page(source_root):
    return (source_root / "docs/ARCHITECTURE.md").read_text()


def named_paths(text):
    return set(re.findall(r"`((?:src|include|tests|bench|tools|man|examples|systemd)(?:/[\w./-]*)?)`", text))


def folders(source_root):
    """Return every folder of src/ that has files of its own, and the folders beside src/."""
    found = {
        str(path.parent.relative_to(source_root))
        for path in (source_root / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    } - {"src"}
    found |= {
        path.name
        for path in source_root.iterdir()
        if path.is_dir() and (path / ".").exists() and not path.name.startswith(("build", ".", "__"))
    } - {"src", "include", "docs"}
    return found


def test_every_folder_is_named(source_root, page):
    assert sorted(folders(source_root) - named_paths(page)) == []


def test_every_path_exists(source_root, page):
    assert [path for path in sorted(named_paths(page)) if not (source_root / path).exists()] == []


def test_every_path_of_the_internals_exists(source_root):
    missing = {
        (document.name, path)
        for document in (source_root / "docs/internals").glob("*.md")
        for path in named_paths(document.read_text())
        if not (source_root / path).exists()
    }
    assert sorted(missing) == []


def test_it_is_one_page(page):
    assert len(page.split()) <= WORDS_MAX
    table = page.split("## To change X, open Y")[1]
    assert table.count("\n| ") - 1 >= ROWS_MIN


def test_a_missing_folder_is_noticed(source_root, page):
    assert sorted(folders(source_root) - named_paths(page.replace("`src/wire`", "wire"))) == ["src/wire"]


def test_a_wrong_path_is_noticed():
    assert named_paths("see `src/none/such.c` and `make test`") == {"src/none/such.c"}
