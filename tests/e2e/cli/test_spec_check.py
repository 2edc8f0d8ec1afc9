# SPDX-License-Identifier: Apache-2.0
"""berth spec check: its messages about valid and invalid spec files, as text and as JSON."""
import json

import pytest

GOOD = "name: finetune\nreplicas: 2\ngpu:\n  count: 4\n  model: H100\n  distributed: {}\ntime: 8h\n"
GOOD_WORDS = "4 devices for each of 2 replicas, vendor nvidia, model H100, for at most 8h"
BAD = "gpu:\n  cuont: 1\n"
BAD_WORDS = "2:3: gpu has no field 'cuont', did you mean 'count'?"


def check(sandbox, *args, **options):
    return sandbox.run(["berth", "spec", "check", *args], **options)


def write(sandbox, **files):
    for name, text in files.items():
        (sandbox.directory / f"{name}.yaml").write_text(text)


def test_good_file(sandbox):
    write(sandbox, good=GOOD)
    assert check(sandbox, "good.yaml") == (0, f"good.yaml: good: {GOOD_WORDS}\n", "")


def test_bad_file(sandbox):
    write(sandbox, bad=BAD)
    assert check(sandbox, "bad.yaml") == (2, "", f"berth: spec check: bad.yaml:{BAD_WORDS}\n")


def test_every_file_is_looked_at(sandbox):
    write(sandbox, good=GOOD, bad=BAD)
    done = check(sandbox, "none.yaml", "bad.yaml", "good.yaml", ".")
    assert done.code == 2
    assert done.stdout == f"good.yaml: good: {GOOD_WORDS}\n"
    assert done.stderr.splitlines() == [
        "berth: spec check: cannot read none.yaml: No such file or directory",
        f"berth: spec check: bad.yaml:{BAD_WORDS}",
        "berth: spec check: cannot read .: it is a directory",
    ]


def test_notes_are_told_and_the_file_is_good(sandbox):
    write(sandbox, notes="gpu:\n  vendor: nvida\n  mode: native\n")
    done = check(sandbox, "notes.yaml")
    assert (done.code, done.stdout) == (0, "notes.yaml: good: 1 device, vendor dri\n")
    assert done.stderr.splitlines() == [
        "berth: spec check: notes.yaml:2:11: note: vendor: 'nvida' is not a known vendor, so only devices that have just "
        "a DRI render node match (did you mean nvidia?)",
        "berth: spec check: notes.yaml:3:9: note: mode: has no effect on Linux",
    ]


def test_standard_input(sandbox):
    assert check(sandbox, "-", input='{"gpu": {"count": "all"}}') == (
        0,
        "<stdin>: good: all devices, vendor nvidia\n",
        "",
    )
    assert check(sandbox, "-", input=BAD) == (2, "", f"berth: spec check: <stdin>:{BAD_WORDS}\n")


def test_json(sandbox):
    write(sandbox, good="gpu:\n  mode: vm\n", bad=BAD)
    done = check(sandbox, "good.yaml", "bad.yaml", "none.yaml", "--json")
    assert (done.code, done.stderr) == (2, "")
    assert json.loads(done.stdout) == {
        "schema": "berth.spec/1",
        "files": [
            {
                "file": "good.yaml",
                "valid": True,
                "message": None,
                "notes": ["good.yaml:2:9: note: mode: has no effect on Linux"],
                "request": "1 device, vendor nvidia",
            },
            {
                "file": "bad.yaml",
                "valid": False,
                "message": f"bad.yaml:{BAD_WORDS}",
                "notes": [],
                "request": None,
            },
            {
                "file": "none.yaml",
                "valid": False,
                "message": "cannot read none.yaml: No such file or directory",
                "notes": [],
                "request": None,
            },
        ],
    }
    done = check(sandbox, "--json", "good.yaml")
    assert (done.code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["files"][0]["valid"] is True


@pytest.mark.parametrize(
    "args, wanted",
    [
        (["spec"], "spec: expected check FILE... | schema, got nothing"),
        (["spec", "chek"], "spec: no subcommand 'chek', did you mean 'check'?"),
        (["spec", "xyzzy"], "spec: no subcommand 'xyzzy' (--help lists them)"),
        (["spec", "--json"], "spec: no subcommand '--json' (--help lists them)"),
        (["spec", "check"], "spec check: expected a file, got none"),
        (["spec", "check", "--jsn"], "spec check: no option '--jsn' here, did you mean --json?"),
    ],
)
def test_wrong_usage(sandbox, args, wanted):
    assert sandbox.run(["berth", *args]) == (2, "", f"berth: {wanted}\n")


def test_help(sandbox):
    done = sandbox.run(["berth", "spec", "check", "--help"])
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: berth spec check [--json] FILE...\n")
    assert "--json" in done.stdout


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_full_disk_is_125(sandbox, options):
    write(sandbox, good=GOOD)
    script = 'exec berth spec check "$@" good.yaml good.yaml >/dev/full'
    done = sandbox.run(["sh", "-c", script, "sh", *options])
    assert (done.code, done.stderr) == (125, "berth: cannot write standard output: No space left on device\n")


def test_names_cannot_steer_a_terminal(sandbox):
    name = "a\x1b[31m\n.yaml"
    (sandbox.directory / name).write_text("gpu: {mode: vm}\n")
    done = check(sandbox, name)
    assert done.code == 0
    for text in (done.stdout, done.stderr):
        assert text.count("\n") == 1 and "\x1b" not in text
    (sandbox.directory / name).write_text(BAD)
    done = check(sandbox, name)
    assert done.code == 2 and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


def test_manual_example(sandbox, source_root):
    """The example of the manual page shows the real output."""
    page = (source_root / "man/berth-spec.1.scd").read_text()
    example = page.partition("$ cat train.yaml\n")[2]
    spec, _, rest = example.partition("$ berth spec check train.yaml\n")
    (sandbox.directory / "train.yaml").write_text(spec)
    assert check(sandbox, "train.yaml").stdout == rest.splitlines(keepends=True)[0]
