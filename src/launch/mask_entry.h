/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of a mask: numbers, perhaps with the number of a part, or the beginnings of UUIDs,
 * with commas between them. A mask may be anybody's text.
 */
#ifndef LAUNCH_MASK_ENTRY_H
#define LAUNCH_MASK_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of NAME=VALUE; NULL when the entry of an environment has another name. */
const char *mask_entry_value(const char *assignment, const char *name);

/* One entry, without the blanks around it. Points into the mask. */
struct mask_entry {
    const char *text;
    size_t length;
};

/* Takes the entry at *cursor, up to the next comma, and moves there. False after the last one, and
 * for NULL. */
bool mask_entry_next(const char **cursor, struct mask_entry *ret_entry);

/* What an entry names. */
struct mask_named {
    bool is_number;
    bool has_part;
    uint32_t number;
    uint32_t part;          /* MIG instance or tile */
    struct mask_entry uuid; /* its beginning */
};

/* Reads GPU-... or MIG-..., a number, or a number, the mark and the number of a part (mark 0: parts
 * have none). Numbers are at most DEVICE_INDEX_MAX. False when it is none of these. */
bool mask_entry_parse(struct mask_entry entry, char part_mark, struct mask_named *ret_named);

#endif
