# SPDX-License-Identifier: Apache-2.0
"""The metrics of berth web, checked with promtool and read by a real Prometheus."""
import re
import urllib.error

import pytest
from lease_history import configure
from metric_names import METRICS
from prometheus import Prometheus, fetch, is_installed, job_of
from waiting import until
from web_process import WebProcess

needs_prometheus = pytest.mark.skipif(not is_installed(), reason="no prometheus")

# Label values with every character that has a meaning in the format, and some others.
ODD_NAMES = [
    'quotes " and \\ backslashes \\n \\" {}',
    "Grafikkarte für 東京 🚢 à vendre",
    "a=\"b\",c='d'} 1",
    "# HELP x y",
    "two\nlines",
    "",
]


@pytest.fixture
def pool(hardware_of):
    pool = hardware_of()
    configure(pool, "squatter_memory: 0\n")
    known = {"memory_free": 60 << 30, "utilization": 420, "temperature": 61500, "power": 250250}
    pool.says(
        [
            pool.device(0, **known),
            pool.device(1, utilization=None, memory_total=None),
            *(pool.device(2 + number, name=name, uuid=name) for number, name in enumerate(ODD_NAMES)),
        ]
    )
    return pool


@pytest.fixture
def web(sandbox, pool):
    served = WebProcess(sandbox)
    yield served
    served.close()


LABEL = re.compile(r'(\w+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
SAMPLE = re.compile(r'(\w+)(?:\{((?:[^"{}]|"(?:[^"\\\n]|\\["\\n])*")*)\})? (\S+)')


def samples(text):
    """Return all samples as (name, labels, value), read by the rules of the format."""
    found = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, inside, value = SAMPLE.fullmatch(line).groups()
        labels = {}
        rest = inside or ""
        while rest:
            match = LABEL.match(rest)
            labels[match[1]] = re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], match[2])
            rest = rest[match.end() :]
        found.append((name, labels, float(value)))
    return found


def value_of(text, name, **labels):
    [value] = [value for found, has, value in samples(text) if found == name and labels.items() <= has.items()]
    return value


def until_metrics(web, condition, what):
    """Return the metrics once they satisfy the condition: berth web learns of changes a moment
    later."""

    def ask():
        text = fetch(f"{web.url}/metrics")
        return text if condition(text) else None

    return until(ask, what)


def with_some_past(pool, web):
    """Make two ended leases, one held lease and one impossible claim. Return the holder and the metrics."""
    for _ in range(2):
        assert pool.berth("run", "true").code == 0
    assert pool.berth("run", "-n", "100", "true").code == 120
    holder = pool.hold("--device", "nvidia0")
    text = until_metrics(
        web,
        lambda text: value_of(text, "berth_lease_seconds_count") == 2
        and value_of(text, "berth_claims_total", result="granted") == 3
        and value_of(text, "berth_leases") == 1
        and ("berth_device_temperature_celsius", "nvidia0") in {(name, has.get("gpu")) for name, has, _ in samples(text)},
        "the metrics of these leases and claims",
    )
    return holder, text


def check_names_kinds_and_labels(text):
    """Check the names, kinds and labels that users rely on, and that there are no others."""
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    assert kinds == {name: kind for name, (kind, _) in METRICS.items()}
    assert set(re.findall(r"^# HELP (\w+) \S", text, re.MULTILINE)) == set(METRICS)
    seen = set()
    for name, labels, _ in samples(text):
        family = name if name in METRICS else re.sub("_(bucket|sum|count)$", "", name)
        wanted = METRICS[family][1] + (("le",) if name.endswith("_bucket") else ())
        assert tuple(sorted(labels)) == tuple(sorted(wanted)), name
        seen.add(family)
    assert seen == set(METRICS)


def check_values(text):
    assert value_of(text, "berth_devices") == 2 + len(ODD_NAMES)
    assert value_of(text, "berth_device_leased", gpu="nvidia0", UUID="GPU-0", vendor="nvidia", model="NVIDIA A100") == 1
    assert value_of(text, "berth_device_leased", gpu="nvidia1") == 0
    assert value_of(text, "berth_device_utilization_ratio", gpu="nvidia0") == 0.42
    assert value_of(text, "berth_device_memory_used_bytes", gpu="nvidia0") == 20 << 30
    assert value_of(text, "berth_device_memory_total_bytes", gpu="nvidia0") == 80 << 30
    assert value_of(text, "berth_device_temperature_celsius", gpu="nvidia0") == 61.5
    assert value_of(text, "berth_device_power_watts", gpu="nvidia0") == 250.25
    assert value_of(text, "berth_claims_total", result="impossible") == 1
    known_of_1 = {name for name, labels, _ in samples(text) if labels.get("gpu") == "nvidia1"}
    assert known_of_1 == {"berth_device_leased"}  # an unknown value is absent, never 0


def check_odd_names(text):
    for number, name in enumerate(ODD_NAMES):
        assert value_of(text, "berth_device_leased", gpu=f"nvidia{2 + number}", model=name, UUID=name) == 0


def check_histograms(text):
    """Check that the buckets are cumulative."""
    for name in ("berth_claim_wait_seconds", "berth_lease_seconds"):
        buckets = [(float(labels["le"]), value) for found, labels, value in samples(text) if found == f"{name}_bucket"]
        assert buckets == sorted(buckets) and buckets[-1][0] == float("inf")
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1][1] == value_of(text, f"{name}_count")
        assert 0 <= value_of(text, f"{name}_sum") < 600


def test_metrics(sandbox, pool, web):
    holder, text = with_some_past(pool, web)
    check_names_kinds_and_labels(text)
    check_values(text)
    check_odd_names(text)
    check_histograms(text)
    pool.let_go(holder)
    if not is_installed():
        pytest.skip("no promtool")
    assert sandbox.run(["promtool", "check", "metrics"], input=text, timeout=60) == (0, "", "")


@pytest.fixture
def guarded(sandbox, pool):
    """A second berth web of the pool, which requires a token."""
    token = sandbox.directory / "token"
    token.touch(0o600)
    token.write_text("0123456789abcdef0123456789abcdef\n")
    served = WebProcess(sandbox, "--token", token)
    served.token = token
    yield served
    served.close()


@needs_prometheus
def test_a_real_prometheus(sandbox, pool, web, guarded):
    """Prometheus reads all metrics, with a token if berth web requires one. Without this token no client does."""
    holder, _ = with_some_past(pool, web)
    prometheus = Prometheus(
        sandbox,
        job_of("berth", web.address),
        job_of("guarded", guarded.address, guarded.token),
        job_of("outside", guarded.address),
    )
    for wrong in (None, "0123456789abcdef0123456789abcdeX"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetch(f"{guarded.url}/metrics", wrong)
        assert refused.value.code == 401
    for job in ("berth", "guarded"):
        prometheus.until(f'up{{job="{job}"}}', 1)
        prometheus.until(f'berth_devices{{job="{job}"}}', 2 + len(ODD_NAMES))
    prometheus.until('up{job="outside"}', 0)
    assert prometheus.query('berth_devices{job="outside"}') == []
    prometheus.until('berth_device_leased{gpu="nvidia0"}', 1)
    prometheus.until('berth_device_utilization_ratio{gpu="nvidia0"}', 0.42)
    prometheus.until("berth_lease_seconds_count", 2)
    prometheus.until('berth_lease_seconds_bucket{le="+Inf"}', 2)
    prometheus.until("histogram_quantile(0.5, berth_lease_seconds_bucket)")
    names = {labels["model"] for labels in prometheus.until("berth_device_leased") if "model" in labels}
    # Prometheus treats a label with an empty value as absent.
    assert names == {"NVIDIA A100", *filter(None, ODD_NAMES)}
    pool.let_go(holder)
    prometheus.until("berth_leases", 0)
    prometheus.until('scrape_samples_scraped{job="berth"} > 20')
    prometheus.close()
