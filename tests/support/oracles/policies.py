# SPDX-License-Identifier: Apache-2.0
"""The placement policies, in the order of messages."""

POLICIES = (
    "first",
    "round-robin",
    "least-loaded",
    "best-available",
    "best-compute",
    "pack",
    "spread",
    "topology",
    "frag",
    "weighted",
)

# Only 'berth sim' has these.
BASELINES = ("random", "dotprod", "clustering", "packing", "bestfit", "fgd")


def refusal(name):
    """Returns the message for a name that is none of them."""
    return f"policy: expected one of {', '.join(POLICIES)}; got '{name}'"
