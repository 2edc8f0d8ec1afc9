# SPDX-License-Identifier: Apache-2.0
"""What the tests written in Python share."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from sandbox import Sandbox  # noqa: E402


@pytest.fixture
def source_root():
    """The project's own directory."""
    return Path(os.environ.get("BERTH_SOURCE_ROOT", Path(__file__).resolve().parent.parent))


@pytest.fixture
def sandbox():
    """A place to run programs in that leaves nothing behind; see support/sandbox.py."""
    place = Sandbox()
    yield place
    place.close()
