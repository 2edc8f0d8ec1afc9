# SPDX-License-Identifier: Apache-2.0
"""`berth spec schema` and `berth spec check` accept the same files: in the corpus and in made-up
files.

The schema sees the values that a reader of YAML 1.2 or JSON produces, berth sees the text.
docs/SPEC.md names the two properties that only berth can check: how a number is written, and how
many bytes a text has. `Exact` passes both on to the schema; with it, schema and berth must always
agree. Without it, they must agree on files for which these two properties do not matter.
"""
import itertools
import json
import os
import random
import re

import pytest
import spec_documents
import yaml_core
from jsonschema import Draft202012Validator

BERTH = os.environ["BERTH"]
MADE_UP = 2500 * int(os.environ.get("BERTH_TEST_SCALE", "1"))
AT_ONCE = 500
TEXT_LONGEST = 255

# Numbers as berth accepts them, including negative ones, which no field allows.
PLAINLY_WRITTEN = re.compile(r"(?!-[0.]*$)-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


class Bytes(str):
    """A text whose length is its number of bytes."""

    def __len__(self):
        return len(self.encode())


class Pointed(float):
    """A number written with a decimal point, which berth does not accept as an integer."""

    def is_integer(self):
        return False


class Exact(yaml_core.Reader):
    """Keep the properties that the schema does not see; `differs` is set if they made a
    difference."""

    def __init__(self):
        super().__init__()
        self.differs = False

    def text(self, text):
        self.differs = self.differs or len(text) != len(text.encode())
        return Bytes(text)

    def number(self, text, value):
        if not PLAINLY_WRITTEN.fullmatch(text):
            self.differs = True
            return Pointed(-1.5)  # valid as a text, but as nothing else
        if isinstance(value, float):
            self.differs = self.differs or value.is_integer()
            return Pointed(value)
        if len(text) > TEXT_LONGEST:  # as a number it is too large for every field
            self.differs = True
            return Bytes(text)
        return value


@pytest.fixture
def schema(sandbox):
    done = sandbox.run([BERTH, "spec", "schema"])
    assert (done.code, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def check(sandbox):
    """Return berth's verdicts on files: whether each is valid, and why not."""

    def judge(texts):
        verdicts = []
        for start in range(0, len(texts), AT_ONCE):
            paths = []
            for number, text in enumerate(texts[start : start + AT_ONCE]):
                paths.append(sandbox.directory / f"{number}.yaml")
                paths[-1].write_bytes(text)
            done = sandbox.run([BERTH, "spec", "check", "--json", *paths])
            files = json.loads(done.stdout)["files"]
            assert done.code == (0 if all(file["valid"] for file in files) else 2)
            assert [file["file"] for file in files] == [str(path) for path in paths]
            verdicts += [(file["valid"], file["message"]) for file in files]
        return verdicts

    return judge


def takes(validator, text, reader=None):
    """Return whether the schema accepts a file. A file that cannot be loaded is not accepted."""
    try:
        return validator.is_valid(yaml_core.load(text, reader))
    except yaml_core.Refused:
        return False


def compare(schema, texts, verdicts):
    """Fail for files that the two judge differently. Return how many were valid."""
    validator = Draft202012Validator(schema)
    wrong = []
    for text, (valid, message) in zip(texts, verdicts):
        exact = Exact()
        if takes(validator, text, exact) != valid:
            wrong.append(f"{text.decode(errors='replace')}\n--> {message or 'good'}")
        elif not exact.differs and takes(validator, text) != valid:
            wrong.append(f"{text.decode(errors='replace')}\n--> {message or 'good'} (as everybody reads it)")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n\n".join(wrong[:10])
    return sum(valid for valid, _ in verdicts)


def corpus(source_root):
    """Return the files of the reader's tests, and the examples."""
    paths = [*sorted((source_root / "tests/data/spec").rglob("*")), *sorted((source_root / "examples/spec").iterdir())]
    return [path.read_bytes() for path in paths if path.suffix in (".yaml", ".json")]


def test_the_schema_is_one(schema):
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    used = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))
    assert used == set(schema["$defs"]) == {"gpu", "distributed", "resources"}


def objects_of(value):
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_of(item)


def test_examples_and_defaults_are_good(schema):
    """Each example and each default is a value that its field accepts."""
    tried = 0
    for field in objects_of(schema):
        if "examples" in field:
            validator = Draft202012Validator({**field, "$defs": schema["$defs"]})
            values = field["examples"] + ([field["default"]] if "default" in field else [])
            assert all(validator.is_valid(value) for value in values), field
            tried += len(values)
    assert tried > 40


def test_every_field_is_explained(schema):
    for block in (schema, *schema["$defs"].values()):
        assert block["additionalProperties"] is False
        assert all(field["description"].endswith(".") for field in block["properties"].values())


def test_made_up_files_have_every_field(schema):
    blocks = {"": schema, **schema["$defs"]}
    for name, fields in spec_documents.BLOCKS.items():
        assert sorted(fields) == sorted(blocks[name]["properties"]), name


@pytest.mark.parametrize("number", ["4.0", "04", "+4", "0x4", "4e0"])
def test_the_schema_sees_no_notation(schema, check, number):
    """The schema accepts numbers in any notation, as docs/SPEC.md says, and does not count bytes."""
    text = f"gpu: {{count: {number}}}".encode()
    [(valid, message)] = check([text])
    assert takes(Draft202012Validator(schema), text) and not valid
    assert number in message


@pytest.mark.parametrize(
    "text", ["gpu: {sharing: mps, share: .5}", f"gpu: {{}}\nname: {'é' * 200}", f"gpu: {{}}\nname: {'1' * 256}"]
)
def test_the_schema_sees_no_bytes(schema, check, text):
    [(valid, _)] = check([text.encode()])
    assert takes(Draft202012Validator(schema), text.encode()) and not valid


@pytest.mark.parametrize("text", ["gpu: {}\ngpu: {}\n", "gpu: {count: !!int 4}\n", "gpu: {}\n---\ngpu: {}\n"])
def test_what_is_no_file_for_a_schema_is_refused(check, text):
    [(valid, _)] = check([text.encode()])
    assert not valid


def test_wrong_usage(sandbox):
    done = sandbox.run([BERTH, "spec", "schema", "train.yaml"])
    assert done == (2, "", "berth: spec schema: expected only options, got 'train.yaml'\n")
    done = sandbox.run([BERTH, "spec", "schema", "--help"])
    assert (done.code, done.stderr) == (0, "") and done.stdout.startswith("Usage: berth spec schema\n")


def test_corpus(schema, check, source_root):
    texts = corpus(source_root)
    assert len(texts) >= 60
    good = compare(schema, texts, check(texts))
    assert 20 <= good <= len(texts) - 20


def test_every_value_of_every_field(schema, check):
    """Each value that the made-up files use, once, in an otherwise valid file."""
    beside = {"share": "sharing: mps", "memory": "sharing: time-slice"}
    beside |= {"mps_pipe_dir": "sharing: mps", "mps_log_dir": "sharing: mps"}
    texts = []
    for name, right in spec_documents.RIGHT.items():
        for value in dict.fromkeys((*right, *spec_documents.DOUBTFUL.get(name, ()), *spec_documents.ODD)):
            if name in spec_documents.TOP:
                texts.append(f"gpu: {{}}\n{name}: {value}\n")
            elif name in spec_documents.DISTRIBUTED:
                texts.append(f"gpu:\n  distributed:\n    {name}: {value}\n")
            else:
                texts.append(f"gpu:\n  {beside.get(name, 'model: x')}\n  {name}: {value}\n".replace("model: x\n  model", "model"))
    texts = [text.encode() for text in texts]
    good = compare(schema, texts, check(texts))
    assert len(texts) / 10 < good < len(texts)


# Fields that may exclude each other. Fields that any other field may accompany are left out.
TOGETHER = (
    {"sharing": ("mps", "time-slice"), "vendor": ("nvidia", "amd", "any", "x", "5")},
    {"sharing": ("mps", "exclusive"), "count": ("1", "'1'", "1-1", "2", "all"), "distributed": ("{}", "{backend: null}")},
    {"sharing": ("mps", "time-slice", "exclusive"), "share": ("0.5",)},
    {"sharing": ("mps", "time-slice", "exclusive"), "memory": ("1G",)},
    {"sharing": ("mps", "time-slice", "exclusive"), "mps_pipe_dir": ("/x",), "mps_log_dir": ("/x",)},
    {"scheduling": ("gang", "spread", "best-effort"), "distributed": ("{}",)},
    {"count": ("all", "'all'", "1"), "replicas": ("1", "2")},
    {"priority": ("low", "normal"), "opportunistic": ("true", "True", "TRUE", "false")},
    {"label": ("true", "True", "false"), "distributed": ("{}",), "replicas": ("1", "2")},
)


def test_what_does_not_go_together(schema, check):
    """All combinations, with gpu at any position, and with empty values."""
    texts = []
    for fields in TOGETHER:
        for values in itertools.product(*((None, "null", *values) for values in fields.values())):
            given = [(name, value) for name, value in zip(fields, values) if value is not None]
            top = "".join(f"{name}: {value}\n" for name, value in given if name in spec_documents.TOP)
            gpu = "{" + ", ".join(f"{name}: {value}" for name, value in given if name not in spec_documents.TOP) + "}"
            texts += [f"{top}gpu: {gpu}\n", f"{top}resources: {{gpu: {gpu}}}\n", f"{top}gpu: null\nresources: {{gpu: {gpu}}}\n"]
    resources = ("null", "{}", "{gpu: null}", "{gpu: {}}", "[]", "5", "gpu", "{cpu: 1}")
    for above, below in itertools.product(("", "gpu: null\n", "gpu: {}\n", "gpu: 5\n"), resources):
        texts.append(f"{above}resources: {below}\n")
    texts = [text.encode() for text in texts]
    verdicts = check(texts)
    compare(schema, texts, verdicts)
    sentences = {rule["description"] for rule in schema["allOf"] + schema["$defs"]["gpu"]["allOf"]}
    met = {sentence for sentence in sentences for _, message in verdicts if message and sentence in message}
    assert met == sentences and len(sentences) >= 10


def test_the_largest_values(schema, check):
    texts = []
    for count in (4096, 4097):
        for name in ("device", "avoid"):
            texts.append(f"gpu: {{{name}: [{', '.join(['nvidia0'] * count)}]}}")
            texts.append(f"gpu: {{{name}: '{','.join(['nvidia1'] * 512 + ['x'])[: count - 2]}'}}")
            texts.append(f"gpu: {{{name}: '{','.join(['nvidia1'] * 511)},amd{'9' * (count - 4092)}'}}")
        texts.append(f"gpu: {{}}\ncommand: [{', '.join(['x'] * count)}]")
        texts.append(f"gpu: {{time_slicing_config_path: {'x' * (count - 1)}}}")
    for length in (131071, 131072):
        texts += [f"gpu: {{}}\ncommand: {'x' * length}", f"gpu: {{}}\ncommand: [x, {'x' * length}]"]
        texts += [f"gpu: {{}}\ncommand: [{'x' * length}]"]
    texts = [text.encode() for text in texts]
    good = compare(schema, texts, check(texts))
    assert 8 <= good <= len(texts) - 8


@pytest.mark.parametrize("seed", range(2))
def test_made_up_files(schema, check, seed):
    seeded = random.Random(seed)
    texts = [spec_documents.write(seeded).encode() for _ in range(MADE_UP // 2)]
    good = compare(schema, texts, check(texts))
    assert len(texts) / 10 < good < len(texts) * 0.9


def test_changed_files(schema, check, source_root):
    seeded = random.Random(7)
    known = [text.decode(errors="ignore") for text in corpus(source_root)]
    texts = [spec_documents.mutate(seeded.choice(known), seeded).encode() for _ in range(MADE_UP // 2)]
    assert compare(schema, texts, check(texts)) > len(texts) / 20


def test_json_files(schema, check):
    seeded = random.Random(11)
    texts = [spec_documents.write_json(seeded).encode() for _ in range(MADE_UP // 2)]
    assert compare(schema, texts, check(texts)) > len(texts) / 20
