/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes by which drivers tell GPUs, and partitions of GPUs, apart. Pure. Zeroed memory is
 * unknown.
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

/* Reads it as NVIDIA writes it: GPU-, or MIG- of a partition, and 8-4-4-4-12 hexadecimal digits.
 * Anything else, NULL included, is unknown. */
struct uuid uuid_parse(const char *text, bool is_partition);

/* Of the 16 bytes that a driver gave; where all are 0 it gave none. */
struct uuid uuid_of(const uint8_t *bytes);

/* Both must be known. */
bool uuid_equals(const struct uuid *one, const struct uuid *other);

#endif
