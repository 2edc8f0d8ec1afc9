# SPDX-License-Identifier: Apache-2.0
"""The cost of a scrape with many devices."""
import functools

from harness import Row, interleave, one_cpu
from peers import compiled_with_components, number

DEVICES = 16_667  # with six figures each


@functools.lru_cache(maxsize=None)
def program(build):
    return compiled_with_components(build, ("web", "view", "client", "wire", "codec", "model", "base"), "metrics.c")


def scrape(build):
    with one_cpu():
        return interleave(
            lambda: number(program(build), "scrape", DEVICES), lambda: number(program(build), "copy", DEVICES)
        )


ROWS = [Row("metrics scrape, 100,000 series (peer: memcpy)", "web", "us", 6, "lower", scrape)]
