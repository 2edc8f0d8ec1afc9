# SPDX-License-Identifier: Apache-2.0
"""--spec FILE: the request and the command come from a file. Options of the command line override
it."""
import json

import pytest
from waiting import until_free

MIXED = """devices:
- {vendor: nvidia, index: 0, name: NVIDIA A100, memory: 80GiB, uuid: GPU-0, health: ok}
- {vendor: nvidia, index: 1, name: NVIDIA A100, memory: 80GiB, uuid: GPU-1, health: ok}
- {vendor: nvidia, index: 2, name: NVIDIA H100, memory: 80GiB, uuid: GPU-2, health: ok}
- {vendor: amd, index: 0, name: Instinct MI210, memory: 64GiB, health: ok}
"""


@pytest.fixture
def mixed(pool_of):
    return pool_of(MIXED)


@pytest.fixture
def spec(mixed):
    """Write a spec file and return its path."""

    def write(text, name="job.yaml"):
        path = mixed.sandbox.directory / name
        path.write_text(text)
        return path

    return write


SHOW = 'command: [sh, -c, "echo $BERTH_DEVICES"]\n'


def devices_of(done):
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout.strip()


def test_request_and_command_come_from_the_file(mixed, spec):
    path = spec("gpu: {count: 2, model: a100}\n" + SHOW)
    assert devices_of(mixed.berth("run", "--spec", path)) == "nvidia0,nvidia1"


def test_json_does_as_well(mixed, spec):
    path = spec(json.dumps({"gpu": {"model": "H100"}, "command": ["sh", "-c", "echo $BERTH_DEVICES"]}), "job.json")
    assert devices_of(mixed.berth("run", "--spec", path)) == "nvidia2"


def test_standard_input_does_as_well(mixed):
    done = mixed.berth("run", "--spec", "-", input="gpu: {model: H100}\n" + SHOW)
    assert devices_of(done) == "nvidia2"


def test_vendor_is_nvidia_unless_said(mixed, spec):
    path = spec("resources: {gpu: {count: 4}}\n" + SHOW)
    done = mixed.berth("run", "--spec", path)
    assert done.code == 120 and "1 has another vendor" in done.stderr


@pytest.mark.parametrize(
    "text, options, wanted",
    [
        ("gpu: {count: 2}\n", ["-n", "1"], "nvidia0"),
        ("gpu: {count: 2, model: A100}\n", ["--model", "H100", "-n", "1"], "nvidia2"),
        ("gpu: {count: 1, model: A100}\n", ["-n", "H100:1"], "nvidia2"),
        ("gpu: {vendor: nvidia}\n", ["--vendor", "amd"], "amd0"),
        ("gpu: {device: nvidia0}\n", ["--device", "nvidia1"], "nvidia1"),
        ("gpu: {avoid: nvidia0}\n", ["--avoid", "nvidia1"], "nvidia0"),
        ("gpu: {sharing: time-slice, share: 0.5, memory: 8GiB}\n", ["--sharing", "exclusive"], "nvidia0"),
        ("gpu: {sharing: mps, mps_pipe_dir: /x}\n", ["--sharing", "time-slice"], "nvidia0"),
        ("gpu: {}\nopportunistic: true\n", ["--priority", "low"], "nvidia0"),
        ("gpu: {}\npriority: low\n", ["--opportunistic"], "nvidia0"),
        ("gpu: {}\nwait: 5s\n", ["--nonblock"], "nvidia0"),
    ],
)
def test_options_of_the_line_win(mixed, spec, text, options, wanted):
    path = spec(text + SHOW)
    assert devices_of(mixed.berth("run", *options, "--spec", path)) == wanted
    until_free(mixed)
    assert devices_of(mixed.berth("run", f"--spec={path}", *options)) == wanted


def test_the_command_of_the_line_wins(mixed, spec):
    path = spec("gpu: {}\n" + SHOW)
    assert devices_of(mixed.berth("run", "--spec", path, "--", "echo", "mine")) == "mine"


def test_without_any_command(mixed, spec):
    done = mixed.berth("run", "--spec", spec("gpu: {}\n"))
    assert (done.code, done.stderr) == (2, "berth: run: expected a command, got none\n")


def test_a_wrong_file_is_wrong_usage(mixed, spec):
    path = spec("gpu:\n  cuont: 2\n")
    for verb in (["run"], ["submit"], ["reserve", "--for", "1h"], ["wait"], ["plan"], ["adopt", "1"]):
        done = mixed.berth(*verb, "--spec", path)
        assert done.code == 2 and done.stdout == ""
        assert done.stderr == (
            f"berth: {verb[0]}: --spec: {path}:2:3: gpu has no field 'cuont', did you mean 'count'?\n"
        )


def test_a_missing_file(mixed):
    done = mixed.berth("run", "--spec", "nowhere.yaml", "true")
    assert done.code == 2 and done.stderr.startswith("berth: run: --spec: cannot read nowhere.yaml: ")


def test_other_verbs_take_it_too(mixed, spec):
    path = spec("name: job\nreplicas: 3\ngpu: {count: 1, distributed: {}}\ncommand: [sleep, 60]\n")
    plan = json.loads(mixed.berth("plan", "--json", "--spec", path).stdout)
    assert plan["devices"] == ["nvidia0", "nvidia1", "nvidia2"]
    assert mixed.berth("wait", "--nonblock", "--spec", path).code == 0
    lease = mixed.berth("reserve", "--for", "1h", "--spec", path).stdout.strip()
    status = json.loads(mixed.berth("status", "--json").stdout)
    assert [held["name"] for held in status["leases"]] == ["job"]
    assert mixed.berth("wait", "--nonblock", "--spec", path).code == 123
    assert mixed.berth("release", lease).code == 0


def test_submit(mixed, spec):
    path = spec("gpu: {count: 2}\n" + SHOW)
    job = mixed.berth("submit", "--spec", path).stdout.strip()
    assert mixed.berth("wait", job).code == 0
    assert mixed.berth("logs", job).stdout == "nvidia0,nvidia1\n"


def test_notes_are_said_when_asked(mixed, spec):
    path = spec("gpu: {time_slice_index: 1, sharing: time-slice}\n" + SHOW)
    assert mixed.berth("run", "--spec", path).stderr == ""
    said = mixed.berth("run", "-v", "--spec", path).stderr
    assert f"{path}:1:" in said and "time_slice_index" in said
