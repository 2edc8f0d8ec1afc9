# SPDX-License-Identifier: Apache-2.0
"""The placement policies there are, as they are listed."""

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
    "random",
    "dotprod",
    "clustering",
    "packing",
    "bestfit",
    "fgd",
)


def refusal(name):
    """What is said of a name that is none of them."""
    return f"policy: expected one that this version has ({', '.join(POLICIES)}), got '{name}'"
