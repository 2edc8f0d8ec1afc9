# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus, and queries of it."""
import json
import re
import shutil
import time
import urllib.parse
import urllib.request

import yaml
from programs import TIMEOUT, Deadline

# Prometheus starts slowly on a busy machine.
PATIENCE = max(TIMEOUT, 60)


def is_installed():
    return bool(shutil.which("prometheus") and shutil.which("promtool"))


def fetch(url, token=None):
    """Returns the text at a URL of this machine. Ignores proxies of the environment."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
        return answer.read().decode()


def job_of(name, target, token_file=None):
    """Returns the scrape configuration of a target."""
    job = {"job_name": name, "static_configs": [{"targets": [target]}]}
    if token_file is not None:
        job["authorization"] = {"type": "Bearer", "credentials_file": str(token_file)}
    return job


class Prometheus:
    """A Prometheus that listens on a free port of the loopback interface until close()."""

    def __init__(self, sandbox, *jobs):
        directory = sandbox.directory / "prometheus"
        directory.mkdir()
        settings = {"global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"}, "scrape_configs": list(jobs)}
        configuration = directory / "prometheus.yml"
        configuration.write_text(yaml.safe_dump(settings))
        checked = sandbox.run(["promtool", "check", "config", configuration], timeout=PATIENCE)
        assert checked.code == 0, checked.stdout + checked.stderr
        self.program = sandbox.start(
            [
                "prometheus",
                f"--config.file={configuration}",
                f"--storage.tsdb.path={directory / 'data'}",
                "--web.listen-address=127.0.0.1:0",
            ],
            env={"GOMAXPROCS": "1"},
        )
        said = self.program.wait_for_line("Listening on", "stderr", timeout=PATIENCE)
        self.url = "http://" + re.search(r"address=(\S+)", said)[1]

    def query(self, text):
        """Returns the series that a query yields, as (labels, value)."""
        answer = json.loads(fetch(f"{self.url}/api/v1/query?query={urllib.parse.quote(text)}"))
        assert answer["status"] == "success", answer
        return [(series["metric"], float(series["value"][1])) for series in answer["data"]["result"]]

    def until(self, text, value=None):
        """Repeats a query until it yields series, all with this value if one is given. Returns the series' labels."""
        deadline = time.monotonic() + PATIENCE
        while not (found := self._answer(text)) or (value is not None and any(one != value for _, one in found)):
            if time.monotonic() > deadline:
                raise Deadline(f"{text}: expected {value}, got {found}")
            time.sleep(0.1)
        return [labels for labels, _ in found]

    def _answer(self, text):
        try:
            return self.query(text)
        except OSError:  # not ready yet
            return None

    def close(self):
        self.program.process.terminate()
        self.program.wait(timeout=PATIENCE)
