# SPDX-License-Identifier: Apache-2.0
"""docs/PROTOCOL.md agrees with the headers, and so does the client in Python."""
import re
import struct

import pytest
import wire
import wire_format

# The heading of a table, or its first column: the header and the enum or list that it copies.
FIELD_TABLES = {
    "message": ("src/wire/wire_tables.h", "wire_tag", "WIRE_TAG_"),
    "request": ("src/codec/request_tags.h", "request_tag", "REQUEST_TAG_"),
    "device": ("src/codec/device_tags.h", "device_tag", "DEVICE_TAG_"),
    "process": ("src/codec/device_tags.h", "process_tag", "PROCESS_TAG_"),
    "problem": ("src/codec/device_tags.h", "problem_tag", "PROBLEM_TAG_"),
    "slot": ("src/wire/wire_tables.h", "wire_slot_tag", "WIRE_SLOT_"),
    "lease": ("src/wire/wire_tables.h", "wire_lease_tag", "WIRE_LEASE_"),
    "claim": ("src/wire/wire_tables.h", "wire_claim_tag", "WIRE_CLAIM_"),
    "lease that is over": ("src/wire/wire_tables.h", "wire_ended_tag", "WIRE_ENDED_"),
    "tally": ("src/wire/wire_tables.h", "wire_tally_tag", "WIRE_TALLY_"),
}
NUMBER_TABLES = {
    "type": ("src/wire/wire.h", "wire_type", "WIRE_"),
    "hold": ("src/model/pool_info.h", "lease_hold", "LEASE_HOLD_"),
    "end": ("src/model/pool_info.h", "lease_end", "LEASE_END_"),
    "state": ("src/model/pool_info.h", "slot_state", "SLOT_STATE_"),
    "section": ("src/wire/wire.h", "wire_section", "WIRE_SECTION_"),
    "vendor": ("src/model/machine/vendor.h", "vendor", "VENDOR_"),
    "vendor rule": ("src/model/request.h", "vendor_rule", "VENDOR_RULE_"),
    "sharing": ("src/model/request.h", "sharing", "SHARING_"),
    "scheduling": ("src/model/request.h", "scheduling", "SCHEDULING_"),
    "priority": ("src/model/request.h", "priority", "PRIORITY_"),
    "health": ("src/model/machine/device.h", "health", "HEALTH_"),
    "kind of device": ("src/model/machine/device.h", "device_kind", "DEVICE_KIND_"),
}
LIMIT_HEADERS = (
    "src/wire/wire.h",
    "src/model/request.h",
    "src/model/machine/device.h",
    "src/model/machine/device_id.h",
    "src/codec/device_tags.h",
    "src/model/machine/machine_report.h",
)
CLIENT_TABLES = {
    "message": wire_format.MESSAGE,
    "request": wire_format.REQUEST,
    "device": wire_format.DEVICE,
    "process": wire_format.PROCESS,
    "problem": wire_format.PROBLEM,
    "slot": wire_format.SLOT,
    "lease": wire_format.LEASE,
    "claim": wire_format.CLAIM,
    "lease that is over": wire_format.ENDED,
    "tally": wire_format.TALLY,
}
CLIENT_NUMBERS = {
    "type": wire_format.TYPES,
    "hold": wire_format.HOLDS,
    "end": wire_format.ENDS,
    "state": wire_format.STATES,
    "section": wire_format.SECTIONS,
    "vendor": {name.upper(): number for number, name in enumerate(wire_format.VENDORS)},
}


@pytest.fixture
def document(source_root):
    return (source_root / "docs/PROTOCOL.md").read_text()


def enum_of(source_root, header, enum, prefix):
    """Return the names without their prefix, their numbers and the first word of their comments."""
    text = (source_root / header).read_text()
    [body] = re.findall(rf"^enum {enum} \{{\n(.*?)^\}};", text, re.DOTALL | re.MULTILINE)
    values = {}
    number = -1
    for name, given, kind in re.findall(r"^ +([A-Z]\w+)(?: = (\d+))?,(?: +/\* (\w+))?", body, re.MULTILINE):
        number = int(given) if given else number + 1
        values[name.removeprefix(prefix)] = (number, kind)
    assert values, enum
    return values


def tables_of(document):
    """Return every table of the document: its header, and its rows as lists of cells."""
    for block in re.findall(r"(?:^\|.*\n)+", document, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        yield rows[0], rows[2:]


def numbers_of(document, what):
    """Return all tables whose first column has this name: from name to number."""
    values = {}
    for header, rows in tables_of(document):
        if header[:2] == [what, "number"]:
            for name, number, *_ in rows:
                assert name.strip("`") not in values
                values[name.strip("`")] = int(number)
    return values


def fields_of(document, what):
    """Return the table after the line `Of a WHAT:`: from name to tag and kind."""
    [block] = re.findall(rf"^Of a {what}:\n\n((?:^\|.*\n)+)", document, re.MULTILINE)
    [(header, rows)] = tables_of(block)
    assert header == ["tag", "field", "kind", "what"]
    return {name.strip("`"): (int(tag), kind) for tag, name, kind, _ in rows}


@pytest.mark.parametrize("what", NUMBER_TABLES)
def test_numbers(source_root, document, what):
    wanted = {name: number for name, (number, _) in enum_of(source_root, *NUMBER_TABLES[what]).items()}
    assert numbers_of(document, what) == wanted
    assert CLIENT_NUMBERS.get(what, wanted) == wanted


@pytest.mark.parametrize("what", FIELD_TABLES)
def test_fields(source_root, document, what):
    wanted = enum_of(source_root, *FIELD_TABLES[what])
    documented = fields_of(document, what)
    assert documented == {name.lower(): value for name, value in wanted.items()}
    assert {name: tag for name, (tag, _) in CLIENT_TABLES[what].items()} == {
        name: tag for name, (tag, _) in documented.items()
    }


def test_errors(source_root, document):
    text = (source_root / "include/berth/error.h").read_text()
    wanted = {name: int(number) for name, number in re.findall(r"X\((\w+), (\d+), ", text)}
    assert numbers_of(document, "error") == wanted
    assert wire_format.ERRORS == wanted


def test_limits(source_root, document):
    [rows] = [rows for header, rows in tables_of(document) if header == ["limit", "value", "in the code"]]
    headers = "\n".join((source_root / name).read_text() for name in LIMIT_HEADERS)
    assert len(rows) >= 11
    for _, value, name in rows:
        [given] = re.findall(rf"^#define {name.strip('`')} +([\d(][\d *()]*)", headers, re.MULTILINE)
        product = 1
        for factor in re.findall(r"\d+", given):
            product *= int(factor)
        assert int(value) == product, name
    assert wire_format.MESSAGE_MOST == 131072


def fields_by_type(document):
    """Return the fields of each type of message: from name to a set of names."""
    return {
        row[0].strip("`"): set(re.findall(r"`(\w+)`", row[2]))
        for header, rows in tables_of(document)
        if header[:3] == ["type", "number", "fields"]
        for row in rows
    }


def test_every_message_names_known_fields(document):
    """The tables of messages name only existing fields, and every field is in some message."""
    assert set().union(*fields_by_type(document).values()) == set(fields_of(document, "message"))


def test_every_message_has_the_fields_that_the_code_uses(source_root, document):
    text = (source_root / "src/wire/wire_tables.c").read_text()
    [body] = re.findall(r"^static const uint64_t type_tags\[\] = \{\n(.*?)^\};", text, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"\[WIRE_(\w+)\] = ([^,]*),", body)
    assert fields_by_type(document) == {
        name: {tag.lower() for tag in re.findall(r"TAG\((\w+)\)", tags)} for name, tags in rows
    }
    assert len(rows) == len(wire_format.TYPES)


def test_kinds_are_explained(document):
    [rows] = [rows for header, rows in tables_of(document) if header == ["kind", "value"]]
    explained = {row[0] for row in rows}
    for what in FIELD_TABLES:
        assert {kind for _, kind in fields_of(document, what).values()} <= explained


def examples_of(document):
    blocks = re.findall(r"^```hex\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    return [bytes.fromhex(re.sub("#.*", "", block)) for block in blocks]


def test_example(document):
    claim, granted = examples_of(document)
    assert wire.decode(claim) == {
        "type": "CLAIM",
        "number": 42,
        "token_high": 0x0123456789ABCDEF,
        "token_low": 0xFEDCBA9876543210,
        "request": {"gpus_min": 2, "gpus_max": 2, "model": "A100"},
        "hold": wire.HOLDS["PROCESS"],
        "command": "python train.py",
    }
    assert wire.decode(granted) == {
        "type": "GRANTED",
        "number": 42,
        "id": 12,
        "devices": [
            {"id": "nvidia0", "uuid": "GPU-0", "memory_total": 80 << 30},
            {"id": "nvidia1", "uuid": "GPU-1", "memory_total": 80 << 30},
        ],
        "replicas": 1,
        "granted": 1767323045678000000,
        "vendors": 1,
        "socket": "/run/berth/berth.sock",
        "pool": "5f0c7a31",
    }
    for example in (claim, granted):
        message = wire.decode(example)
        assert wire.encode(message.pop("type"), message.pop("number"), **message) == example


def test_the_client_reads_what_berth_writes(source_root):
    """The corpus has a message of each type. The tests of the C decoder use it, too."""
    seen = set()
    for path in sorted((source_root / "tests/fuzz/corpus/wire").iterdir()):
        if path.name.upper() in wire_format.TYPES:
            message = wire.decode(path.read_bytes())
            seen.add(message["type"])
            assert wire.encode(message.pop("type"), message.pop("number"), **message) == path.read_bytes()
    assert seen == set(wire_format.TYPES)


NO_MESSAGES = {
    "empty": b"",
    "short": b"\1" * 15,
    "version": wire.packet("HELLO", version=2),
    "type": wire.packet(0),
    "length": wire.packet("HELLO", length=1),
    "rest": wire.encode("HELLO", raw=b"\0" * 5),
    "field": wire.encode("HELLO", raw=struct.pack("<HI", 1, 1)),
    "mandatory": wire.encode("HELLO", raw=wire_format.field(0x8000, b"")),
    "twice": wire.encode("HELLO", id=1, raw=wire_format.field(1, b"\1")),
    "number": wire.encode("HELLO", raw=wire_format.field(1, bytes(9))),
    "item": wire.encode("PAGE", raw=wire_format.field(35, b"\1\0\0\0")),
    "items": wire.encode("PAGE", raw=wire_format.field(35, b"\0\0\0")),
    "text": wire.encode("HELLO", raw=wire_format.field(15, b"a\0b")),
    "id": wire.encode("GRANTED", raw=wire_format.field(18, struct.pack("<I", 8) + wire_format.field(1, b"12"))),
}


@pytest.mark.parametrize("name", NO_MESSAGES)
def test_the_client_refuses_what_is_no_message(name):
    with pytest.raises(wire.WireError):
        wire.decode(NO_MESSAGES[name])
