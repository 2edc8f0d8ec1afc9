/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/exports.h"

#include <string.h>

/* Returns the entry with the same name as this one, or NULL. */
static const char *find_entry(char *const *environment, const char *entry)
{
    size_t length = strcspn(entry, "=");

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, entry, length) == 0 && (*environment)[length] == '=')
            return *environment;
    }
    return NULL;
}

/* Appends the value in single quotes. Only a single quote inside needs care. */
static void append_quoted(const char *value, struct text *out)
{
    text_append_char(out, '\'');
    for (; *value != '\0'; value++) {
        if (*value == '\'')
            text_append(out, "'\\''");
        else
            text_append_char(out, *value);
    }
    text_append_char(out, '\'');
}

void exports_write(char *const *before, char *const *after, struct text *out)
{
    for (char *const *entry = before; *entry != NULL; entry++) {
        if (strchr(*entry, '=') == NULL || find_entry(after, *entry) != NULL)
            continue;
        text_append(out, "unset ");
        text_append_bytes(out, *entry, strcspn(*entry, "="));
        text_append_char(out, '\n');
    }
    for (char *const *entry = after; *entry != NULL; entry++) {
        const char *old = find_entry(before, *entry);
        size_t length = strcspn(*entry, "=");

        if (strchr(*entry, '=') == NULL || (old != NULL && strcmp(old, *entry) == 0))
            continue;
        text_append(out, "export ");
        text_append_bytes(out, *entry, length + 1);
        append_quoted(*entry + length + 1, out);
        text_append_char(out, '\n');
    }
}
