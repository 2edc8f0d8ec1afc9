# SPDX-License-Identifier: Apache-2.0
"""Finds and changes the records of a daemon's journal (src/engine/journal/journal.h)."""
import struct

FORMAT = 0xB1
HEADER = struct.Struct("<BBIHI")
KEPT_POOL = 128


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
