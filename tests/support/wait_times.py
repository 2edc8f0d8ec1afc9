# SPDX-License-Identifier: Apache-2.0
"""How long somebody has waited, time after time, on a machine that may stall now and then."""

# Seconds.
LONGEST = 2.0
STALLED = 10.0


def check_longest(times):
    """All are short, but for so few that the machine may have been the reason."""
    times = sorted(times)
    few = min(2 + len(times) // 100, len(times) - 1)
    assert times[-1 - few] < LONGEST, times[-1 - few :]
    assert times[-1] < STALLED
