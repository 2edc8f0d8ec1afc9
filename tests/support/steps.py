# SPDX-License-Identifier: Apache-2.0
"""The number of steps of a random test; support/steps.h has it for tests in C."""
import os


def test_steps(standard, most):
    """Returns `standard`, multiplied by BERTH_TEST_SCALE if that is set, but not more than `most`."""
    return min(standard * int(os.environ.get("BERTH_TEST_SCALE", "1")), most)


test_steps.__test__ = False  # not a test, despite its name
