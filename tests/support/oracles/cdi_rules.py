# SPDX-License-Identifier: Apache-2.0
"""The rules for CDI files of version 0.5.0: a JSON Schema, and the rules that a schema cannot express."""
import json
import re

from jsonschema import Draft202012Validator

UINT32 = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
INT64 = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": {"type": "string"}}


def record(required, **properties):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def records(required, **properties):
    return {"type": "array", "items": record(required, **properties)}


EDITS = record(
    [],
    env={"type": "array", "items": {"type": "string", "pattern": "^[^=]+=."}},
    deviceNodes=records(
        ["path"],
        path=TEXT,
        hostPath=TEXT,
        type={"enum": ["b", "c", "u", "p"]},
        major=INT64,
        minor=INT64,
        fileMode=UINT32,
        permissions={"type": "string", "pattern": "^[rwm]+$"},
        uid=UINT32,
        gid=UINT32,
    ),
    mounts=records(
        ["hostPath", "containerPath"], hostPath=TEXT, containerPath=TEXT, options=TEXTS, type={"type": "string"}
    ),
    hooks=records(["hookName", "path"], hookName=TEXT, path=TEXT, args=TEXTS, env=TEXTS, timeout=UINT32),
)

SCHEMA = record(
    ["cdiVersion", "kind", "devices"],
    cdiVersion={"const": "0.5.0"},
    kind={"type": "string", "pattern": r"^[A-Za-z]([\w.-]*[A-Za-z0-9])?/[A-Za-z]([\w-]*[A-Za-z0-9])?$"},
    devices={
        **records(
            ["name", "containerEdits"],
            name={"type": "string", "pattern": "^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$"},
            containerEdits={**EDITS, "minProperties": 1},
        ),
        "minItems": 1,
    },
    containerEdits=EDITS,
)


def read_once(pairs):
    """Returns a JSON object. Fails if a key appears twice."""
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def check(text):
    """Checks that the text is a valid CDI file, and returns the document."""
    document = json.loads(text, object_pairs_hook=read_once)
    Draft202012Validator.check_schema(SCHEMA)
    assert [str(error) for error in Draft202012Validator(SCHEMA).iter_errors(document)] == []
    names = [device["name"] for device in document["devices"]]
    assert len(names) == len(set(names)), names
    for device in document["devices"]:
        edits = device["containerEdits"]
        assert any(edits.values()), device
        paths = [node["path"] for node in edits.get("deviceNodes", [])]
        assert len(paths) == len(set(paths)), paths
        assert all(re.fullmatch("/[^ ]*", path) for path in paths), paths
    return document
