# SPDX-License-Identifier: Apache-2.0
"""The time to list the devices of a machine that has many."""
import contextlib
import os
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import servers
from harness import ROUNDS, Row, Skipped

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parents[1] / "shared/data/machines/kfd-topo-mi300-cpx.tar.xz"
GPUS = 64


def list_time(build, environment):
    """Return the milliseconds from the start of `berth devices --json` to its end."""
    begin = time.perf_counter_ns()
    done = subprocess.run(
        [str(build / "berth"), "devices", "--json"],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    taken = (time.perf_counter_ns() - begin) / 1e6
    return taken, done.stdout.count(b'"slot"')


def measure_list(build, environment, wanted):
    """Return the rounds' times. Fail if a list is incomplete."""
    times = []
    for number in range(ROUNDS + 1):
        taken, found = list_time(build, environment)
        if found != wanted:
            raise RuntimeError(f"expected {wanted} devices, got {found}")
        if number > 0:  # the first round reads the files from disk
            times.append(taken)
    return times, None


@contextlib.contextmanager
def unpacked():
    if not RECORDED.exists():
        raise Skipped(f"no {RECORDED.name}")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "sys/class/kfd/kfd"
        place.mkdir(parents=True)
        with tarfile.open(RECORDED) as archive:
            archive.extractall(place)
        yield directory


def recorded(build):
    if not (build / "berth-probe").exists():
        raise Skipped("berth-probe is not built")
    with unpacked() as directory:
        return measure_list(build, {"BERTH_SYSROOT": directory}, 63)


def double(build):
    with tempfile.TemporaryDirectory() as directory:
        return measure_list(build, servers.nvml_double(build, Path(directory), GPUS), GPUS)


def row(name, measure):
    return Row(name, "devices", "ms", 50.0, "lower", measure, goal_is_ratio=False)


ROWS = [
    row("63 recorded devices listed (MI300X, CPX)", recorded),
    row("64 GPUs of a double of NVML listed", double),
]
