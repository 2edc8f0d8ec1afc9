# SPDX-License-Identifier: Apache-2.0
"""The files of examples/grafana use existing metrics: a dashboard, alerts and the configuration of
Prometheus."""
import json
import re
import shutil

import pytest
import yaml
from metric_names import METRICS, sample_names

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool")


@pytest.fixture
def examples(source_root):
    return source_root / "examples/grafana"


@pytest.fixture
def dashboard(examples):
    return json.loads((examples / "berth.json").read_text())


def expressions(dashboard):
    """Return all queries, with values in place of Grafana's variables."""
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(found) >= 20
    return [text.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$gpu", ".*") for text in found]


def names_in(expression):
    return set(re.findall(r"\bberth_\w+", expression))


def test_every_metric_is_one_of_berths(dashboard, examples):
    asked = set().union(*map(names_in, expressions(dashboard)))
    assert asked <= sample_names()
    shown = {re.sub("_(bucket|sum|count)$", "", name) for name in asked}
    assert shown == set(METRICS)
    for variable in dashboard["templating"]["list"]:
        assert names_in(variable.get("definition", "")) <= sample_names()
    assert names_in((examples / "alerts.yml").read_text()) <= sample_names()


def test_labels_are_those_of_the_metrics(dashboard):
    """Prometheus adds `instance`, and every histogram has `le`."""
    known = {"instance", "le", "result", "version", *METRICS["berth_device_leased"][1]}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            used |= set(re.findall(r"(\w+)=~", target["expr"]))
            for group in re.findall(r" by \(([^)]*)\)", target["expr"]):
                used |= set(group.split(", "))
            assert used <= known, target["expr"]


def test_the_table_of_the_readme_is_whole(examples):
    named = set(re.findall(r"`(berth_\w+?)(?:\{\w+\})?`", (examples / "README.md").read_text()))
    assert named == set(METRICS)


def test_panels(dashboard):
    """Each panel has its own number and its own place."""
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        references = [target["refId"] for target in panel.get("targets", [])]
        assert len(set(references)) == len(references)
        assert panel["type"] == "row" or panel["description"]


def test_the_data_source_is_asked_for(dashboard):
    """No panel names a fixed data source."""
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert dashboard["id"] is None and dashboard["schemaVersion"] >= 37
    for panel in dashboard["panels"]:
        for source in [panel.get("datasource"), *(target["datasource"] for target in panel.get("targets", []))]:
            assert panel["type"] == "row" or source == {"type": "prometheus", "uid": "${datasource}"}


@needs_promtool
def test_every_expression_is_valid(dashboard, sandbox):
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(expressions(dashboard))]
    path = sandbox.directory / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = sandbox.run(["promtool", "check", "rules", path])
    assert done.code == 0 and f"{len(rules)} rules found" in done.stdout, done.stdout + done.stderr
    rules[0]["expr"] = "sum(berth_devices{"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert sandbox.run(["promtool", "check", "rules", path]).code != 0


@needs_promtool
def test_configuration_and_alerts_are_valid(examples, sandbox):
    done = sandbox.run(["promtool", "check", "config", "--lint-fatal", examples / "prometheus.yml"])
    assert done.code == 0, done.stdout + done.stderr
    # The file is valid with the commented token, too.
    (sandbox.directory / "token").write_text("secret")
    shutil.copy(examples / "alerts.yml", sandbox.directory)
    text = (examples / "prometheus.yml").read_text()
    text = re.sub("^    # (?=authorization|  )", "    ", text, flags=re.MULTILINE)
    assert "\n      credentials_file: /etc/prometheus/berth-token" in text
    whole = sandbox.directory / "prometheus.yml"
    whole.write_text(text.replace("/etc/prometheus/berth-token", str(sandbox.directory / "token")))
    done = sandbox.run(["promtool", "check", "config", "--lint-fatal", whole])
    assert done.code == 0, done.stdout + done.stderr


SERIES = 'gpu="nvidia0", instance="box", job="berth"'


def alert_test(name, series, minutes, firing):
    return {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": [{"exp_labels": labels} for labels in firing]}
        ],
    }


@needs_promtool
def test_alerts_fire_when_they_should(examples, sandbox):
    """promtool simulates the hours."""
    rules = sandbox.directory / "alerts.yml"
    rules.write_text(re.sub(r"\n        annotations:\n(?:          .*\n)+", "\n", (examples / "alerts.yml").read_text()))
    here = {"instance": "box", "job": "berth"}
    device = {**here, "gpu": "nvidia0"}
    leased, busy = f"berth_device_leased{{{SERIES}}}", f"berth_device_utilization_ratio{{{SERIES}}}"
    queue = 'berth_claims_pending{instance="box", job="berth"}'
    up = 'up{instance="box", job="berth"}'
    devices = 'berth_devices{instance="box", job="berth"}'
    tests = [
        alert_test("BerthDeviceIdle", {leased: "1x70", busy: "0.01x70"}, 65, [{**device, "severity": "info"}]),
        alert_test("BerthDeviceIdle", {leased: "1x70", busy: "0.01x30 0.9x40"}, 65, []),
        alert_test("BerthDeviceIdle", {leased: "0x70", busy: "0x70"}, 65, []),
        alert_test("BerthDeviceIdle", {leased: "1x70"}, 65, []),  # the load is unknown
        alert_test("BerthQueueLong", {queue: "11x40"}, 35, [{**here, "severity": "warning"}]),
        alert_test("BerthQueueLong", {queue: "11x20 3x20"}, 35, []),
        alert_test("BerthDown", {up: "1x5 0x5"}, 9, [{**here, "severity": "critical"}]),
        alert_test("BerthDeviceGone", {devices: "8x20 7x20"}, 35, [{**here, "severity": "warning"}]),
    ]
    path = sandbox.directory / "tests.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}))
    done = sandbox.run(["promtool", "test", "rules", path])
    assert done.code == 0, done.stdout + done.stderr
