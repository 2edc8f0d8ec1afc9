# SPDX-License-Identifier: Apache-2.0
"""berth web for Prometheus and dcgm-exporter."""
import os
import re

import pytest
from lease_history import configure
from waiting import until
from web_server import serving

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[A-Za-z]+="(?:[^"\\\n]|\\.)*",?)+)\})? (-?[0-9.]+)')
LABEL = re.compile(r'([A-Za-z]+)="((?:[^"\\\n]|\\.)*)"')
DEVICE = ("leased", "utilization_ratio", "memory_used_bytes", "memory_total_bytes", "temperature_celsius", "power_watts")


def samples(text):
    """Return {(name, labels as sorted pairs): value} of an exposition, and check each line."""
    found, described = {}, {}
    for line in text.splitlines():
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            described.setdefault(name, {})[kind] = rest
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        family = re.sub("_(bucket|sum|count)$", "", name) if "seconds" in name else name
        assert set(described[family]) == {"HELP", "TYPE"}, line
        key = (name, tuple(sorted(LABEL.findall(labels or ""))))
        assert key not in found, line
        found[key] = float(value)
    return found


def value(found, name, **labels):
    """Return the sample with at least these labels, or None."""
    matching = [v for (n, pairs), v in found.items() if n == name and set(labels.items()) <= set(pairs)]
    assert len(matching) <= 1, matching
    return matching[0] if matching else None


def scrape(web):
    answer = web.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert answer.headers["Cache-Control"] == "no-store"
    return samples(answer.text)


def test_figures(hardware_of, sandbox):
    pool = hardware_of()
    configure(pool, "squatter_memory: 0\n")
    pool.says(
        [pool.device(0, utilization=125, memory_free=20 << 30, temperature=45500, power=250250), pool.device(1)]
    )
    with serving(sandbox) as web:
        holder = pool.hold("--device", "nvidia0")
        found = until(lambda: (s := scrape(web)) and value(s, "berth_device_leased", gpu="nvidia0") and s, "a lease")
        assert value(found, "berth_devices") == 2
        assert value(found, "berth_device_leased", gpu="nvidia1") == 0
        assert value(found, "berth_device_utilization_ratio", gpu="nvidia0") == 0.125
        assert value(found, "berth_device_memory_used_bytes", gpu="nvidia0") == 60 << 30
        assert value(found, "berth_device_memory_total_bytes", gpu="nvidia0") == 80 << 30
        assert value(found, "berth_device_temperature_celsius", gpu="nvidia0") == 45.5
        assert value(found, "berth_device_power_watts", gpu="nvidia0") == 250.25
        # An unknown value is absent, never 0.
        assert value(found, "berth_device_utilization_ratio", gpu="nvidia1") == 0
        for name in ("memory_used_bytes", "temperature_celsius", "power_watts"):
            assert value(found, f"berth_device_{name}", gpu="nvidia1") is None
        labels = dict(next(pairs for name, pairs in found if name == "berth_device_leased"))
        assert set(labels) == {"gpu", "UUID", "vendor", "model"}
        assert (labels["UUID"], labels["vendor"], labels["model"]) == ("GPU-0", "nvidia", "NVIDIA A100")
        assert value(found, "berth_leases") == 1
        assert value(found, "berth_build_info") == 1
        pool.let_go(holder)


def test_counters(pool_of, sandbox):
    pool = pool_of(1)
    with serving(sandbox) as web:
        holder = pool.hold()
        assert pool.berth("run", "--nonblock", "--", "true").code == 123
        assert pool.berth("run", "-n", "2", "--", "true").code == 120
        with pool.start("run", "--", "true") as waiter:
            until(lambda: value(scrape(web), "berth_claims_pending") == 1, "a claim that waits")
            pool.let_go(holder)
            assert waiter.wait() == 0
        found = until(
            lambda: (s := scrape(web)) and value(s, "berth_lease_seconds_count") == 2 and s, "two ended leases"
        )
        for result, count in {"granted": 2, "busy": 1, "impossible": 1, "cancelled": 0, "timed_out": 0, "refused": 0}.items():
            assert value(found, "berth_claims_total", result=result) == count, result
        for name in ("berth_claim_wait_seconds", "berth_lease_seconds"):
            buckets = [(dict(pairs)["le"], v) for (n, pairs), v in found.items() if n == f"{name}_bucket"]
            assert buckets[-1] == ("+Inf", value(found, f"{name}_count")) == ("+Inf", 2)
            bounds = [float(bound) for bound, _ in buckets]
            assert bounds == sorted(bounds) and [v for _, v in buckets] == sorted(v for _, v in buckets)
            assert value(found, f"{name}_sum") > 0


def test_models_are_escaped(pool_of, sandbox):
    model = 'a "quoted" \\ model'
    pool_of(f"devices:\n- {{vendor: nvidia, index: 0, name: '{model}'}}\n")
    with serving(sandbox) as web:
        text = web.ask("/metrics").text
        assert 'model="a \\"quoted\\" \\\\ model"' in text
        samples(text)


def test_claims_that_are_refused_at_once_count_at_once(pool_of, sandbox):
    """Refused claims are in the metrics even if nothing else has happened since."""
    pool = pool_of(1)
    with serving(sandbox) as web:
        for count in (1, 2, 3):
            assert pool.berth("run", "-n", "2", "--", "true").code == 120
            assert value(scrape(web), "berth_claims_total", result="impossible") == count


def files_of(directory):
    """Return the texts of the files, or nothing if one has just been removed."""
    try:
        return {path.name: path.read_text() for path in directory.iterdir()}
    except FileNotFoundError:
        return {}


INVENTORY = """devices:
- {vendor: nvidia, index: 0, name: NVIDIA A100}
- {vendor: nvidia, index: 3, name: NVIDIA A100}
- {vendor: amd, index: 0, name: AMD MI300}
"""


def test_job_mapping(pool_of, sandbox):
    pool = pool_of(INVENTORY)
    jobs = sandbox.directory / "jobs"
    jobs.mkdir()
    (jobs / "0").write_text("left\n")
    (jobs / "notes").write_text("not ours\n")
    # A reader of the stream makes berth web update more often.
    with serving(sandbox, "--job-mapping", jobs) as web, web.events():
        until(lambda: files_of(jobs) == {"notes": "not ours\n"}, "the removal of an old file")
        both = pool.hold("-n", "2", "--vendor", "nvidia")
        wanted = {"0": f"{both.lease}\n", "3": f"{both.lease}\n", "notes": "not ours\n"}
        until(lambda: files_of(jobs) == wanted, "the files of a lease")
        pool.let_go(both)
        until(lambda: files_of(jobs) == {"notes": "not ours\n"}, "no files without a lease")
        shared = [pool.hold("--sharing", "time-slice", "--device", "nvidia3") for _ in range(2)]
        lines = "".join(f"{holder.lease}\n" for holder in shared)
        until(lambda: files_of(jobs).get("3") == lines, "two lines for two tenants")
        other = pool.hold("--vendor", "amd")
    # berth web removes its own files at its end, and no others.
    assert files_of(jobs) == {"notes": "not ours\n"}
    for holder in (*shared, other):
        pool.let_go(holder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_job_mapping_needs_a_place(pool_of, sandbox):
    pool_of(1)
    jobs = sandbox.directory / "jobs"
    jobs.mkdir(mode=0o500)
    done = sandbox.run(["berth", "web", "--listen", "127.0.0.1:0", "--job-mapping", jobs])
    assert done.code == 2 and "cannot write into " in done.stderr
