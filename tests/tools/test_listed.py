# SPDX-License-Identifier: Apache-2.0
"""Every test file has its line in tests/meson.build. Without this line it would never run."""
import re

import pytest

# The files of each suite, and the table in tests/meson.build that lists them.
TABLES = {
    "unit/**/test_*.c": r"^units = \{\n(.*?)^\}",
    "promises/test_*.c": r"^promise_tests = \{\n(.*?)^\}",
    "fuzz/fuzz_*.c": r"^fuzz_targets = \{\n(.*?)^\}",
    "e2e/*/test_*.py": r"^  'e2e': \{\n(.*?)^  \}",
    "tools/test_*.py": r"^  'tools': \{\n(.*?)^  \}",
    "long": r"^long = \[\n(.*?)^\]",
}


@pytest.fixture
def listed(source_root):
    """Return the names of a table, with the text after them."""
    text = (source_root / "tests/meson.build").read_text()

    def read(table):
        [found] = re.findall(TABLES[table], text, re.MULTILINE | re.DOTALL)
        return dict(re.findall(r"^ +'(\w+)'(?:: (.*))?,$", found, re.MULTILINE))

    return read


def files(source_root, pattern):
    """Return the folders of the test files by the files' names."""
    tests = source_root / "tests"
    return {re.sub("^(test|fuzz)_", "", path.stem): path.parent.relative_to(tests) for path in tests.glob(pattern)}


@pytest.mark.parametrize("pattern", [table for table in TABLES if "/" in table])
def test_every_file_is_listed(source_root, listed, pattern):
    assert sorted(files(source_root, pattern)) == sorted(listed(pattern))


@pytest.mark.parametrize("pattern", ["unit/**/test_*.c", "e2e/*/test_*.py"])
def test_files_are_where_the_table_says(source_root, listed, pattern):
    suite = pattern.split("/")[0]
    there = {name: f"'{folder.relative_to(suite)}'" for name, folder in files(source_root, pattern).items()}
    assert listed(pattern) == there


def test_long_tests_exist(listed):
    assert set(listed("long")) <= set(listed("e2e/*/test_*.py"))
