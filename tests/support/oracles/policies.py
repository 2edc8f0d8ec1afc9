# SPDX-License-Identifier: Apache-2.0
"""The placement policies, in the order in which messages list them."""

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

# Policies that only 'berth sim' has.
BASELINES = ("random", "dotprod", "clustering", "packing", "bestfit", "fgd")


def refusal(name):
    """Returns the message for a name that is not a policy."""
    return f"policy: expected one of {', '.join(POLICIES)}; got '{name}'"
