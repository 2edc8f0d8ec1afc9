# SPDX-License-Identifier: Apache-2.0
"""docs/SPEC.md and the schema are generated from the tables of spec files, and are correct."""
import json
import os
import re
import subprocess

import pytest


@pytest.fixture
def document(source_root):
    return (source_root / "docs/SPEC.md").read_text(encoding="utf-8")


@pytest.fixture
def schema(sandbox):
    return json.loads(sandbox.run([os.environ["BERTH"], "spec", "schema"]).stdout)


@pytest.mark.parametrize("what, path", [("document", "docs/SPEC.md"), ("schema", "src/spec/workload.schema.json")])
def test_it_is_written_from_the_tables(source_root, what, path):
    written = subprocess.run([os.environ["WRITE_SPEC"], what], stdout=subprocess.PIPE, check=True).stdout
    assert (source_root / path).read_bytes() == written, "run `make docs`"


def test_berth_prints_the_checked_in_schema(source_root, sandbox):
    printed = sandbox.run([os.environ["BERTH"], "spec", "schema"]).stdout
    assert printed == (source_root / "src/spec/workload.schema.json").read_text(encoding="utf-8")


def rows_of(document, heading):
    [block] = re.findall(rf"^### {heading}\n\n((?:\|.*\n)+)", document, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines()]


@pytest.mark.parametrize(
    "heading, name", [("At the top", ""), ("gpu", "gpu"), (r"gpu\.distributed", "distributed"), ("resources", "resources")]
)
def test_every_field_of_the_schema_is_in_it(document, schema, heading, name):
    header, rule, *rows = rows_of(document, heading)
    assert header == ["field", "value", "when left out", "meaning"]
    assert all(set(cell) == {"-"} for cell in rule)
    fields = (schema["$defs"][name] if name else schema)["properties"]
    assert [row[0] for row in rows] == [f"`{field}`" for field in fields]
    for row in rows:
        assert len(row) == 4 and row[1] and row[3].endswith("."), row


def test_columns_line_up(document):
    """The columns of the tables are aligned in the source text."""
    for block in re.findall(r"(?:^\|.*\n)+", document, re.MULTILINE):
        places = {tuple(i for i, c in enumerate(line) if c == "|")[:4] for line in block.splitlines()}
        assert len(places) == 1
    assert not re.search(r"[ \t]$", document, re.MULTILINE)


def test_lines_are_not_long(document):
    prose = [line for line in document.splitlines() if not line.startswith(("|", "- "))]
    assert max(map(len, prose)) <= 120


def test_its_examples_are_good(document, sandbox):
    examples = re.findall(r"^```yaml\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    assert len(examples) == 3
    for number, example in enumerate(examples):
        path = sandbox.directory / f"{number}.yaml"
        path.write_text(example, encoding="utf-8")
        done = sandbox.run([os.environ["BERTH"], "spec", "check", path])
        assert (done.code, done.stderr) == (0, ""), example
