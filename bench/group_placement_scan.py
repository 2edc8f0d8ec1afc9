# SPDX-License-Identifier: Apache-2.0
"""The cost of one placement decision over 100,000 devices, and how it grows."""
import functools

from harness import ROUNDS, Row, interleave, one_cpu
from peers import compiled_with_components, number

NODES = 12_500  # of 8 devices each


@functools.lru_cache(maxsize=None)
def program(build):
    return compiled_with_components(build, ("engine", "codec", "model", "base"), "placement.c")


def beside_reading(policy):
    """Every node is examined; the peer only reads the same data."""

    def measure(build):
        with one_cpu():
            return interleave(
                lambda: number(program(build), "scan", policy, NODES) / 1e3,
                lambda: number(program(build), "read", NODES) / 1e3,
            )

    return measure


def kept(nodes):
    """Measure the nanoseconds for a claim and a release."""

    def measure(build):
        with one_cpu():
            return [number(program(build), "kept", "frag", nodes) for _ in range(ROUNDS)], None

    return measure


def memory(build):
    return [number(program(build), "memory", "frag", NODES) for _ in range(ROUNDS)], None


ROWS = [
    Row("decision over 100,000 devices, first, every node asked (peer: read)", "placement", "us", 5, "lower",
        beside_reading("first")),
    Row("decision over 100,000 devices, frag, every node asked (peer: read)", "placement", "us", 5, "lower",
        beside_reading("frag")),
    Row("claim + release over 100,000 devices, frag, answers kept", "placement", "ns", 1000, "lower",
        kept(NODES)),
    Row("the same over 1,000 devices", "placement", "ns", 1000, "lower", kept(125)),
    Row("memory of a device of 100,000", "placement", "B", 2048, "lower", memory),
]
