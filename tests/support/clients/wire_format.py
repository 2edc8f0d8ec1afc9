# SPDX-License-Identifier: Apache-2.0
"""The messages of docs/PROTOCOL.md as Python values and as bytes, written from that page.

A message is a dict: `type`, `number`, and its fields by their names in the document's tables.
encode() checks nothing, so that tests can send invalid messages; decode() is as strict as the
document.
"""
import struct

VERSION = 1
HEADER = struct.Struct("<BBHIQ")
FIELD = struct.Struct("<HI")
MESSAGE_MOST = 128 * 1024
MANDATORY = 0x8000
NO_MIG = 0xFFFFFFFF

TYPES = {
    "HELLO": 1,
    "CLAIM": 2,
    "RELEASE": 3,
    "CANCEL": 4,
    "STOP": 5,
    "EXTEND": 6,
    "EXPLAIN": 7,
    "WATCH": 8,
    "TEST": 9,
    "LOOK": 10,
    "DRAIN": 11,
    "UNDRAIN": 12,
    "FOLLOW": 13,
    "POOL": 64,
    "WAITING": 65,
    "GRANTED": 66,
    "REFUSED": 67,
    "DONE": 68,
    "PAGE": 69,
    "NOTICE": 70,
    "ENDED": 71,
    "CLOSING": 72,
    "WARNING": 73,
    "NEWS": 74,
}
TYPE_NAMES = {number: name for name, number in TYPES.items()}

HOLDS = {"CONNECTION": 0, "PROCESS": 1, "NOTHING": 2}
ENDS = {
    "RELEASED": 1,
    "DIED": 2,
    "EXPIRED": 3,
    "REVOKED": 4,
    "STOPPED": 5,
    "CANCELLED": 6,
    "TIMED_OUT": 7,
    "IMPOSSIBLE": 8,
    "PARENT": 9,
    "IDLE": 10,
}
STATES = {
    "FREE": 0,
    "LEASED": 1,
    "SHARED": 2,
    "DRAINING": 3,
    "DRAINED": 4,
    "SICK": 5,
    "SQUATTED": 6,
    "ELSEWHERE": 7,
    "ASLEEP": 8,
    "GONE": 9,
}
BLOCKS = {"SQUATTED": 1, "DIRTY": 2, "DRAINED": 4, "ELSEWHERE": 8}
SECTIONS = {"END": 0, "DEVICES": 1, "LEASES": 2, "QUEUE": 3}
NEWS = {"HELLO": 1, "LOAD": 2, "LEASE": 4, "QUEUE": 8}
VENDORS = ("nvidia", "amd", "intel", "apple", "dri")
ERRORS = {
    "INVALID": 1,
    "MEMORY": 2,
    "IO": 3,
    "NOT_FOUND": 4,
    "SYNTAX": 5,
    "RANGE": 6,
    "LIMIT": 7,
    "IMPOSSIBLE": 8,
    "PERMISSION": 9,
    "NO_DEVICE": 10,
    "BUSY": 11,
    "TIMED_OUT": 12,
    "CANCELLED": 13,
    "FORKED": 14,
    "LOST": 15,
    "STALE": 16,
    "DRIVER": 17,
}


class WireError(Exception):
    """The bytes are not a valid message."""


# ---- Values: a pair of functions for each kind ----


def write_number(value):
    value &= 0xFFFFFFFFFFFFFFFF  # two's complement
    return value.to_bytes((value.bit_length() + 7) // 8, "little")


def read_number(data):
    if len(data) > 8:
        raise WireError(f"a number of {len(data)} bytes")
    return int.from_bytes(data, "little")


def read_time(data):
    number = read_number(data)
    return number - (1 << 64) if number >> 63 else number


def write_text(value):
    return value if isinstance(value, bytes) else value.encode(errors="surrogateescape")


def read_text(data):
    if b"\0" in data:
        raise WireError("a text with a zero byte")
    return data.decode(errors="surrogateescape")


def write_id(name):
    """Returns the bytes of an id: nvidia0, or nvidia0.3 for a MIG instance."""
    [vendor] = [vendor for vendor in VENDORS if name.startswith(vendor)]
    index, _, mig = name[len(vendor) :].partition(".")
    return struct.pack("<BII", VENDORS.index(vendor), int(index), int(mig) if mig else NO_MIG)


def read_id(data):
    if len(data) != 9:
        raise WireError(f"a device id of {len(data)} bytes")
    vendor, index, mig = struct.unpack("<BII", data)
    if vendor >= len(VENDORS):
        raise WireError(f"a device id with vendor {vendor}")
    return f"{VENDORS[vendor]}{index}" + ("" if mig == NO_MIG else f".{mig}")


def write_ids(names):
    return b"".join(map(write_id, names))


def read_ids(data):
    return [read_id(data[at : at + 9]) for at in range(0, len(data), 9)]


def write_pci(value):
    return struct.pack("<IBBB", *value)


def read_pci(data):
    if len(data) != 7:
        raise WireError(f"a PCI address of {len(data)} bytes")
    return struct.unpack("<IBBB", data)


def write_list(values):
    return b"".join(struct.pack("<I", value) for value in values)


def read_list(data):
    if len(data) % 4 != 0:
        raise WireError(f"a list of {len(data)} bytes")
    return [value for (value,) in struct.iter_unpack("<I", data)]


def write_figure(value):
    return struct.pack("<qq", *value)


def read_figure(data):
    if len(data) != 16:
        raise WireError(f"a figure of {len(data)} bytes")
    return struct.unpack("<qq", data)


def write_parts(parts):
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def read_parts(data):
    at = 0
    while at < len(data):
        if len(data) - at < 4:
            raise WireError("a part without a length")
        [length] = struct.unpack_from("<I", data, at)
        at += 4
        if length > len(data) - at:
            raise WireError("a part that is longer than the field")
        yield data[at : at + length]
        at += length


def write_strings(values):
    return write_parts(map(write_text, values))


def read_strings(data):
    return [read_text(part) for part in read_parts(data)]


def fields_of(table):
    return (lambda value: encode_fields(value, table)), (lambda data: decode_fields(data, table))


def items_of(table):
    return (
        lambda values: write_parts(encode_fields(value, table) for value in values),
        lambda data: [decode_fields(part, table) for part in read_parts(data)],
    )


NUMBER = (write_number, read_number)
FLAG = (write_number, lambda data: bool(read_number(data)))
MAYBE = NUMBER
TIME = (write_number, read_time)
TEXT = (write_text, read_text)
ID = (write_id, read_id)
IDS = (write_ids, read_ids)
PCI = (write_pci, read_pci)
LIST = (write_list, read_list)
FIGURE = (write_figure, read_figure)
STRINGS = (write_strings, read_strings)


# ---- Tables: the name of each field, its tag, and the functions that write and read it ----

REQUEST = {
    "gpus_min": (1, NUMBER),
    "gpus_max": (2, NUMBER),
    "all": (3, FLAG),
    "replicas": (4, NUMBER),
    "wanted": (5, IDS),
    "avoided": (6, IDS),
    "vendor_rule": (7, NUMBER),
    "vendor": (8, NUMBER),
    "model": (9, TEXT),
    "min_free": (10, MAYBE),
    "min_memory": (11, MAYBE),
    "min_cap": (12, MAYBE),
    "sharing": (13, NUMBER),
    "share": (14, MAYBE),
    "memory": (15, MAYBE),
    "scheduling": (16, NUMBER),
    "priority": (17, NUMBER),
    "policy": (18, TEXT),
    "affinity": (19, TEXT),
    "opportunistic": (20, FLAG),
    "ranks": (21, FLAG),
    "or_cpu": (22, FLAG),
    "nonblock": (23, FLAG),
    "wait": (24, MAYBE),
    "time": (25, MAYBE),
    "name": (26, TEXT),
    "cpus": (27, MAYBE),
    "host_memory": (28, MAYBE),
    "mps_pipe_dir": (29, TEXT),
    "mps_log_dir": (30, TEXT),
}

PROCESS = {
    "pid": (1, NUMBER),
    "uid": (2, MAYBE),
    "memory": (3, MAYBE),
    "command": (4, TEXT),
    "container": (5, TEXT),
    "lease": (6, NUMBER),
    "started": (7, TIME),
    "draws": (8, FLAG),
    "squats": (9, FLAG),
    "said_lease": (10, NUMBER),
    "said_socket": (11, TEXT),
    "owner": (12, MAYBE),
    "undecided": (13, FLAG),
    "ancestors": (14, LIST),
}

DEVICE = {
    "id": (1, ID),
    "name": (2, TEXT),
    "uuid": (3, TEXT),
    "parent": (4, TEXT),
    "cpus": (5, TEXT),
    "pci": (6, PCI),
    "memory_total": (7, MAYBE),
    "numa": (8, MAYBE),
    "minor": (9, MAYBE),
    "cap": (10, MAYBE),
    "health": (11, NUMBER),
    "partitioned": (12, FLAG),
    "nodes": (13, STRINGS),
    "memory_free": (14, FIGURE),
    "utilization": (15, FIGURE),
    "temperature": (16, FIGURE),
    "power": (17, FIGURE),
    "health_reason": (18, TEXT),
    "asleep": (19, FLAG),
    "old": (20, FLAG),
    "kind": (21, NUMBER),
    "frequency": (22, FIGURE),
    "processes": (23, items_of(PROCESS)),
    "tiles": (24, MAYBE),
    "ordinal": (25, MAYBE),
    "first_tile": (26, MAYBE),
    "memory_idle": (27, MAYBE),
    "hides_processes": (28, FLAG),
}

PROBLEM = {
    "backend": (1, TEXT),
    "message": (2, TEXT),
}

SLOT = {
    "device": (1, fields_of(DEVICE)),
    "state": (2, NUMBER),
    "sharing": (3, NUMBER),
    "tenants": (4, NUMBER),
    "share_used": (5, NUMBER),
    "memory_used": (6, NUMBER),
    "blocks": (7, NUMBER),
    "reason": (8, TEXT),
    "reason_uid": (9, MAYBE),
    "reason_time": (10, TIME),
    "name_uid": (11, MAYBE),
    "name_pid": (12, MAYBE),
    "name_uid": (11, MAYBE),
    "name_pid": (12, MAYBE),
}

LEASE = {
    "id": (1, NUMBER),
    "parent": (2, NUMBER),
    "uid": (3, NUMBER),
    "pid": (4, NUMBER),
    "name": (5, TEXT),
    "command": (6, TEXT),
    "devices": (7, IDS),
    "replicas": (8, NUMBER),
    "share": (9, NUMBER),
    "memory": (10, MAYBE),
    "sharing": (11, NUMBER),
    "priority": (12, NUMBER),
    "opportunistic": (13, FLAG),
    "draining": (14, FLAG),
    "granted": (15, TIME),
    "since": (16, TIME),
    "expires": (17, TIME),
    "force_at": (18, TIME),
    "end": (19, NUMBER),
    "idle": (20, MAYBE),
    "idle_warned": (21, FLAG),
    "adopted": (22, FLAG),
    "preparing": (23, FLAG),
    "judged_time": (24, NUMBER),
    "idle_time": (25, NUMBER),
}

ENDED = {
    "lease": (1, fields_of(LEASE)),
    "end": (2, NUMBER),
    "time": (3, TIME),
    "exit_code": (4, MAYBE),
}

# The upper bounds of a histogram's counts, in seconds. One more count is for larger values.
BUCKET_BOUNDS = (0.1, 1, 10, 60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800)
HISTOGRAM = {
    "sum": (1, NUMBER),
    **{f"count_{bucket}": (2 + bucket, NUMBER) for bucket in range(len(BUCKET_BOUNDS) + 1)},
}

TALLY = {
    "granted": (1, NUMBER),
    "impossible": (2, NUMBER),
    "refused": (3, NUMBER),
    "busy": (4, NUMBER),
    "timed_out": (5, NUMBER),
    "cancelled": (6, NUMBER),
    "waited": (7, fields_of(HISTOGRAM)),
    "held": (8, fields_of(HISTOGRAM)),
}

CLAIM = {
    "id": (1, NUMBER),
    "parent": (2, NUMBER),
    "uid": (3, NUMBER),
    "pid": (4, NUMBER),
    "position": (5, NUMBER),
    "name": (6, TEXT),
    "command": (7, TEXT),
    "request": (8, TEXT),
    "since": (9, TIME),
    "why": (10, TEXT),
    "estimate": (11, MAYBE),
    "priority": (12, NUMBER),
    "opportunistic": (13, FLAG),
}

MESSAGE = {
    "id": (1, NUMBER),
    "parent": (2, NUMBER),
    "token_high": (3, NUMBER),
    "token_low": (4, NUMBER),
    "request": (5, fields_of(REQUEST)),
    "hold": (6, NUMBER),
    "resume": (7, FLAG),
    "masks": (8, STRINGS),
    "command": (9, TEXT),
    "inventory": (10, TEXT),
    "duration": (11, NUMBER),
    "section": (12, NUMBER),
    "after": (13, NUMBER),
    "error": (14, NUMBER),
    "text": (15, TEXT),
    "position": (16, NUMBER),
    "estimate": (17, MAYBE),
    "devices": (18, items_of(DEVICE)),
    "replicas": (19, NUMBER),
    "more": (20, FLAG),
    "granted": (21, TIME),
    "expires": (22, TIME),
    "vendors": (23, NUMBER),
    "socket": (24, TEXT),
    "pool": (25, TEXT),
    "version_text": (26, TEXT),
    "pid": (27, NUMBER),
    "force_at": (28, TIME),
    "end": (29, NUMBER),
    "exit_code": (30, MAYBE),
    "capacity": (31, NUMBER),
    "pending": (32, NUMBER),
    "time": (33, TIME),
    "slots": (34, items_of(SLOT)),
    "leases": (35, items_of(LEASE)),
    "claims": (36, items_of(CLAIM)),
    "problems": (37, items_of(PROBLEM)),
    "device_ids": (38, IDS),
    "started": (39, NUMBER),
    "present": (40, FLAG),
    "stay": (41, FLAG),
    "mps_root": (42, TEXT),
    "epoch": (43, NUMBER),
    "kinds": (44, NUMBER),
    "sections": (45, NUMBER),
    "history": (46, TEXT),
    "ended": (47, items_of(ENDED)),
    "lost": (48, NUMBER),
    "tally": (49, fields_of(TALLY)),
}


# ---- Messages ----


def field(tag, value):
    """Returns an encoded field, whose value is bytes."""
    return FIELD.pack(tag, len(value)) + value


def encode_fields(values, table):
    encoded = [(table[name][0], table[name][1][0](value)) for name, value in values.items() if value is not None]
    return b"".join(field(tag, value) for tag, value in sorted(encoded))


def decode_fields(data, table):
    """Returns the fields of the data that the table has."""
    names = {tag: (name, kind) for name, (tag, kind) in table.items()}
    values = {}
    at = 0
    while at < len(data):
        if len(data) - at < FIELD.size:
            raise WireError(f"{len(data) - at} bytes after the last field")
        tag, length = FIELD.unpack_from(data, at)
        at += FIELD.size
        if length > len(data) - at:
            raise WireError(f"field {tag} has {length} bytes, but only {len(data) - at} are left")
        if tag in names:
            name, (_, read) = names[tag]
            if name in values:
                raise WireError(f"{name} twice")
            values[name] = read(data[at : at + length])
        elif tag >= MANDATORY:
            raise WireError(f"an unknown mandatory field {tag}")
        at += length
    return values


def packet(kind, number=0, body=b"", version=VERSION, length=None):
    """Returns a packet with any header and bytes; `kind` is a type's name or number."""
    kind = TYPES.get(kind, kind)
    return HEADER.pack(version, kind, 0, len(body) if length is None else length, number) + body


def encode(kind, number=0, raw=b"", **values):
    return packet(kind, number, encode_fields(values, MESSAGE) + raw)


def decode(data):
    if len(data) < HEADER.size:
        raise WireError(f"a packet of {len(data)} bytes")
    version, kind, _, length, number = HEADER.unpack_from(data)
    if version != VERSION or kind == 0 or length != len(data) - HEADER.size:
        raise WireError(f"a header with version {version}, type {kind}, length {length}")
    return {"type": TYPE_NAMES.get(kind, kind), "number": number, **decode_fields(data[HEADER.size :], MESSAGE)}
