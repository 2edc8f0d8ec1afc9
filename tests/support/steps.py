# SPDX-License-Identifier: Apache-2.0
"""How long random tests go on, as support/steps.h has it for those in C."""
import os


def test_steps(standard, most):
    """`standard`, times BERTH_TEST_SCALE where that is set, but not more than `most`."""
    return min(standard * int(os.environ.get("BERTH_TEST_SCALE", "1")), most)


test_steps.__test__ = False  # no test of its own, whatever its name
