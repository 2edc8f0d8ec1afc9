/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes of bytes and numbers. They are the same on every machine and in every version, and they do
 * not resist an attacker who chooses the input.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* FNV-1a with 64 bits. */
static inline uint64_t hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001B3);
    return hash;
}

/* Maps each number to a different number, each of whose bits depends on all bits of the input. */
static inline uint64_t hash_mix(uint64_t number)
{
    number = (number ^ (number >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    number = (number ^ (number >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    return number ^ (number >> 32);
}

/* Returns the hash of a sequence with one more number; the hash of an empty sequence is 0. */
static inline uint64_t hash_add(uint64_t hash, uint64_t number)
{
    return hash_mix((hash + UINT64_C(0x9E3779B97F4A7C15)) ^ number);
}

/* Returns the hash of a sequence with one more string. NULL counts as a value of its own. */
static inline uint64_t hash_add_string(uint64_t hash, const char *string)
{
    return hash_add(hash, string == NULL ? 0 : hash_bytes(string, strlen(string)));
}

#endif
