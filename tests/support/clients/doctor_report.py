# SPDX-License-Identifier: Apache-2.0
"""The report of `berth doctor --json`."""
import json


def lines_of(done):
    """Returns the lines of a JSON report as (check, state): [(what, remedy), ...], and checks the document."""
    document = json.loads(done.stdout)
    assert document["schema"] == "berth.doctor/1"
    assert done.stderr == ""
    states = [line["state"] for line in document["checks"]]
    assert set(states) <= {"ok", "warning", "problem", "unknown"}
    assert document["good"] == ("problem" not in states)
    assert done.code == (0 if document["good"] else 1)
    assert [line for line in document["checks"] if line["state"] != "ok" and not line["remedy"]] == []
    found = {}
    for line in document["checks"]:
        found.setdefault((line["check"], line["state"]), []).append((line["what"], line["remedy"]))
    return found


def doctor(sandbox, *options, **more):
    return lines_of(sandbox.run(["berth", "doctor", "--json", *options], **more))


def finished(program):
    """Returns the result of a program that was started and has ended."""
    return type("Done", (), {"stdout": program.text(), "stderr": program.text("stderr"), "code": program.code})


def problems(found):
    return {check: lines for (check, state), lines in found.items() if state == "problem"}
