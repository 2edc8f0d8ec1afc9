/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/last_line.h"

#include <string.h>

#include "base/text/utf8.h"

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\0';
}

void last_line_add(struct last_line *line, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            line->is_over = true;
            continue;
        }
        if (is_blank(bytes[i]) && (line->is_over || line->length == 0))
            continue;
        if (line->is_over)
            line->length = 0;
        line->is_over = false;
        if (line->length < LAST_LINE_MAX)
            line->bytes[line->length++] = bytes[i];
    }
}

void last_line_append(const struct last_line *line, struct text *out)
{
    char string[LAST_LINE_MAX + 1];
    size_t length = line->length;

    while (length > 0 && is_blank(line->bytes[length - 1]))
        length--;
    for (size_t i = 0; i < length; i++)
        string[i] = line->bytes[i] == '\0' ? ' ' : line->bytes[i];
    string[length] = '\0';
    if (line->length == LAST_LINE_MAX)
        string[utf8_boundary(string, length)] = '\0';
    utf8_append_inert(out, string);
}
