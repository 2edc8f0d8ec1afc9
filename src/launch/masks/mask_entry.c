/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/masks/mask_entry.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "model/machine/device_id.h"

const char *mask_entry_value(const char *assignment, const char *name)
{
    size_t length = strlen(name);

    return strncmp(assignment, name, length) == 0 && assignment[length] == '='
               ? assignment + length + 1
               : NULL;
}

bool mask_entry_next(const char **cursor, struct mask_entry *ret_entry)
{
    const char *text = *cursor;
    size_t length;

    if (text == NULL)
        return false;
    length = strcspn(text, ",");
    *cursor = text[length] == ',' ? text + length + 1 : NULL;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    *ret_entry = (struct mask_entry){text, length};
    return true;
}

/* Parses the number at the start of the entry and skips it. Returns false if there is none, or if
 * it is larger than DEVICE_INDEX_MAX. */
static bool parse_number(struct mask_entry *entry, uint32_t *ret_number)
{
    uint32_t number = 0;
    size_t length = 0;

    for (; length < entry->length && isdigit((unsigned char)entry->text[length]); length++) {
        number = number * 10 + (uint32_t)(entry->text[length] - '0');
        if (number > DEVICE_INDEX_MAX)
            return false;
    }
    *ret_number = number;
    entry->text += length;
    entry->length -= length;
    return length > 0;
}

bool mask_entry_parse(struct mask_entry entry, char part_mark, struct mask_named *ret_named)
{
    *ret_named = (struct mask_named){.uuid = entry};
    if (entry.length > 4 &&
        (strncasecmp(entry.text, "GPU-", 4) == 0 || strncasecmp(entry.text, "MIG-", 4) == 0))
        return true;
    ret_named->is_number = true;
    if (!parse_number(&entry, &ret_named->number))
        return false;
    if (entry.length == 0)
        return true;
    if (part_mark == '\0' || entry.text[0] != part_mark)
        return false;
    ret_named->has_part = true;
    entry.text++;
    entry.length--;
    return parse_number(&entry, &ret_named->part) && entry.length == 0;
}
