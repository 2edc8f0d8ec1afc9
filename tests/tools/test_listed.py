# SPDX-License-Identifier: Apache-2.0
"""No test file is forgotten in tests/meson.build, where it would silently never run."""
import re

import pytest


def listed(source_root):
    return set(re.findall(r"^ +'(\w+)'(?:: (?:'[\w/]+'|\[.*\]))?,$", (source_root / "tests/meson.build").read_text(), re.M))


@pytest.mark.parametrize(
    "pattern", ["unit/**/test_*.c", "promises/test_*.c", "fuzz/fuzz_*.c", "e2e/test_*.py", "tools/test_*.py"]
)
def test_every_file_is_listed(source_root, pattern):
    names = {
        re.sub("^(test|fuzz)_", "", path.stem) for path in (source_root / "tests").glob(pattern)
    }
    assert sorted(names - listed(source_root)) == []


def test_the_list_is_read(source_root):
    assert "listed" in listed(source_root)
