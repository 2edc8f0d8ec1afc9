/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers for bytes and for numbers, the same everywhere and for ever. Not for what an enemy
 * chooses.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a with 64 bits. */
static inline uint64_t hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001B3);
    return hash;
}

/* Another number, each of whose bits depends on all of this one's; no two numbers have the same. */
static inline uint64_t hash_mix(uint64_t number)
{
    number = (number ^ (number >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    number = (number ^ (number >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    return number ^ (number >> 32);
}

#endif
