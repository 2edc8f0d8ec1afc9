/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/quote.h"

#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"

enum { LENGTH_MAX = 60 };

struct quoted quote_bytes(const char *bytes, size_t length)
{
    struct quoted quoted;
    char shown[LENGTH_MAX + 1];
    size_t room = length < LENGTH_MAX ? length : LENGTH_MAX;

    for (size_t i = 0; i < room; i++)
        shown[i] = bytes[i] == '\0' ? '?' : bytes[i];
    shown[room] = '\0';
    if (room < length)
        shown[utf8_boundary(shown, room)] = '\0';
    utf8_make_plain(shown);
    snprintf(quoted.text, sizeof(quoted.text), "'%s%s'", shown, room < length ? "..." : "");
    return quoted;
}

struct quoted quote(const char *string)
{
    return quote_bytes(string, strlen(string));
}
