# SPDX-License-Identifier: Apache-2.0
"""Finds and changes the records of a daemon's journal (src/engine/journal/journal.h)."""
import struct

FORMAT = 0xB1
HEADER = struct.Struct("<BBIHI")
KEPT_POOL = 128
KEPT_JOB = 129
KEPT_JOB_PID = 5
TIME_SIZE = 8
UNKNOWN_TAG = 0x7FFF
UNKNOWN_TYPES = (100, 250)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def records(data):
    """Yields (start, end, type) of each record."""
    at = 0
    while at + HEADER.size <= len(data) and data[at] == FORMAT:
        _, kind, length, _, _ = HEADER.unpack_from(data, at)
        yield at, at + HEADER.size + length, kind
        at += HEADER.size + length


def used(data):
    """Returns the data up to the end of the last record."""
    return data[: max((end for _, end, _ in records(data)), default=0)]


def replaced(data, old, new):
    """Returns the journal with `old` replaced by `new` in its first record, whose checksum is updated."""
    assert len(old) == len(new)
    start, end, _ = next(records(data))
    record = data[start:end]
    assert record.count(old) == 1
    record = bytearray(record.replace(old, new))
    record[8:12] = struct.pack("<I", crc32c(bytes(record[:8] + record[12:])))
    return bytes(record) + data[end:]


def record(kind, payload):
    """Returns a record with these bytes after its header."""
    begin = struct.pack("<BBI", FORMAT, kind, len(payload))
    begin += struct.pack("<H", crc32c(begin) & 0xFFFF)
    return begin + struct.pack("<I", crc32c(begin + payload)) + payload


def extended(data):
    """Returns the journal as a newer daemon may write it: with a further field in each record, and with records of
    unknown types, one of the engine and one of the daemon."""
    field = struct.pack("<HI", UNKNOWN_TAG, 3) + b"new"
    parts = []
    for start, end, kind in records(data):
        parts.append(record(kind, data[start + HEADER.size : end] + field))
        parts += [record(unknown, bytes(TIME_SIZE) + field) for unknown in UNKNOWN_TYPES]
    return b"".join(parts)


def with_number(data, kind, tag, number):
    """Returns the journal with this number in the field `tag` of all records of a type."""
    parts = []
    for start, end, found in records(data):
        payload = data[start + HEADER.size : end]
        if found == kind:
            fields, at = payload[:TIME_SIZE], TIME_SIZE
            while at < len(payload):
                name, length = struct.unpack_from("<HI", payload, at)
                value = struct.pack("<Q", number) if name == tag else payload[at + 6 : at + 6 + length]
                fields += struct.pack("<HI", name, len(value)) + value
                at += 6 + length
            payload = fields
        parts.append(record(found, payload))
    return b"".join(parts)
