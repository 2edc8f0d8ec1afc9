/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints any bytes as text: repaired, as JSON, and in a table. The first byte is the width of the
 * table.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "base/text/terminal.h"
#include "base/text/utf8.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes to the end. Every step advances, and encoding a decoded character gives its bytes again.
 */
static void try_decode(const char *bytes, size_t length)
{
    bool valid = true;

    for (size_t i = 0; i < length;) {
        struct text again = {0};
        uint32_t character;
        size_t taken = utf8_decode(bytes + i, length - i, &character);
        size_t boundary = utf8_boundary(bytes + i, taken);
        bool same;

        require(taken >= 1 && taken <= 4 && taken <= length - i);
        utf8_append(&again, character);
        same = again.length == taken && memcmp(again.bytes, bytes + i, taken) == 0;
        require(same || character == UTF8_REPLACEMENT);
        require(boundary == taken || (boundary == 0 && !same));
        valid = valid && same;
        i += taken;
        text_finish(&again);
    }
    require(utf8_is_valid(bytes, length) == valid);
    require(utf8_boundary(bytes, length) + 3 >= length);
}

static void try_inert(const char *string)
{
    struct text once = {0};
    struct text twice = {0};

    utf8_append_inert(&once, string);
    require_inert(text_string(&once), once.length);
    require(utf8_width(string) == utf8_width(text_string(&once)));
    utf8_append_inert(&twice, text_string(&once));
    require(strcmp(text_string(&once), text_string(&twice)) == 0);
    text_finish(&once);
    text_finish(&twice);
}

static void try_plain(const char *string)
{
    char *plain = strdup(string);

    require(plain != NULL);
    utf8_make_plain(plain);
    require(strlen(plain) == strlen(string));
    require_inert(plain, strlen(plain));
    free(plain);
}

/* Requires that the document is one string: after the first quotation mark, only the one at its end
 * has no backslash. */
static void require_one_string(const char *document, size_t length)
{
    size_t i = 1;

    require(length >= 3 && document[0] == '"' && document[length - 1] == '\n');
    while (document[i] != '"')
        i += document[i] == '\\' ? 2 : 1;
    require(i == length - 2);
    require_inert(document, length - 1);
}

static void try_json(const char *string)
{
    struct text document = {0};
    struct json json;

    json_start(&json, &document, JSON_COMPACT);
    json_string(&json, string);
    json_finish(&json);
    require_one_string(text_string(&document), document.length);
    text_finish(&document);
}

/* Requires two inert lines, without spaces at the end and no wider than the terminal. */
static void require_lines(const char *printed, size_t width)
{
    for (int i = 0; i < 2; i++) {
        const char *end = strchr(printed, '\n');
        char *line;

        require(end != NULL && (end == printed || end[-1] != ' '));
        line = strndup(printed, (size_t)(end - printed));
        require(line != NULL);
        require_inert(line, strlen(line));
        require(width == 0 || utf8_width(line) <= width);
        free(line);
        printed = end + 1;
    }
    require(printed[0] == '\0');
}

static void try_table(const char *string, size_t width)
{
    static const struct table_column columns[] = {
        {.heading = "ALWAYS", .min = 1, .priority = TABLE_ALWAYS},
        {.heading = "RIGHT", .right = true, .min = 3, .priority = 1},
        {.heading = "WHOLE", .hide_unknown = true, .priority = 2},
    };
    struct terminal terminal = {.width = width, .unicode = width % 2 == 0};
    struct table table;
    struct text printed = {0};

    table_init(&table, columns, COUNT(columns));
    table_cell(&table, string);
    table_cell_format(&table, "%s", string);
    table_cell_styled(&table, STYLE_BAD, string[0] == '-' ? NULL : string);
    require(table_print(&table, &terminal, &printed) == 0);
    require_lines(text_string(&printed), width);
    text_finish(&printed);
    table_finish(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *string;

    if (size == 0)
        return 0;
    try_decode((const char *)data + 1, size - 1);
    string = strndup((const char *)data + 1, size - 1);
    require(string != NULL);
    try_inert(string);
    try_plain(string);
    try_json(string);
    try_table(string, data[0]);
    free(string);
    return 0;
}
