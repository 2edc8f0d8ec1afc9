/* SPDX-License-Identifier: Apache-2.0
 *
 * The UUIDs by which drivers identify GPUs and partitions. Pure. Zeroed memory is unknown.
 */
#ifndef CONTEXT_UUID_H
#define CONTEXT_UUID_H

#include <stdbool.h>
#include <stdint.h>

enum { UUID_SIZE = 16 };

struct uuid {
    bool known;
    uint8_t bytes[UUID_SIZE];
};

/* Parses NVIDIA's format: GPU- or, for a partition, MIG-, and 8-4-4-4-12 hexadecimal digits. Any
 * other text, or NULL, is unknown. */
struct uuid uuid_parse(const char *text, bool is_partition);

/* Makes a UUID from a driver's 16 bytes; unknown if all are 0. */
struct uuid uuid_of(const uint8_t *bytes);

/* Compares two UUIDs, which must be known. */
bool uuid_equals(const struct uuid *one, const struct uuid *other);

#endif
