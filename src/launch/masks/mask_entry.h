/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the entries of a mask: numbers, optionally with the number of a part, or prefixes of
 * UUIDs, separated by commas. A mask is untrusted.
 */
#ifndef LAUNCH_MASKS_MASK_ENTRY_H
#define LAUNCH_MASKS_MASK_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of NAME=VALUE, or NULL if the name differs. */
const char *mask_entry_value(const char *assignment, const char *name);

/* One entry, without blanks around it. Points into the mask. */
struct mask_entry {
    const char *text;
    size_t length;
};

/* Reads the entry at *cursor and moves the cursor to the next one. Returns false after the last
 * entry, and if the cursor is NULL. */
bool mask_entry_next(const char **cursor, struct mask_entry *ret_entry);

/* A parsed entry: a number, or the prefix of a UUID. */
struct mask_named {
    bool is_number;
    bool has_part;
    uint32_t number;
    uint32_t part;          /* MIG instance or tile */
    struct mask_entry uuid; /* the prefix */
};

/* Parses an entry: a UUID (GPU-... or MIG-...), a number, or NUMBER MARK PART (mark 0: no parts).
 * Numbers are at most DEVICE_INDEX_MAX. Returns false for anything else. */
bool mask_entry_parse(struct mask_entry entry, char part_mark, struct mask_named *ret_named);

#endif
