/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/truncate.h"

#include <stdint.h>
#include <string.h>

#include "base/text/utf8.h"

struct truncation truncate_measure(const char *string, size_t room)
{
    size_t length = strlen(string);
    struct truncation piece = {.cut = true};
    size_t width = 0;
    uint32_t character;

    for (size_t i = 0; i < length;) {
        i += utf8_decode_inert(string + i, length - i, &character);
        width += utf8_character_width(character);
        if (width > room)
            break;
        /* Characters without width stay with the character before them, if the mark still fits. */
        if (width < room)
            piece = (struct truncation){.length = i, .width = width, .cut = true};
    }
    if (width <= room)
        return (struct truncation){.length = length, .width = width};
    piece.width++;
    return piece;
}

void truncate_append(struct text *out, const char *string, struct truncation piece,
                     enum style style, const struct terminal *terminal)
{
    bool styled = terminal->colour && style != STYLE_PLAIN;
    uint32_t character;

    if (styled)
        text_append(out, terminal_style_start(style));
    for (size_t i = 0; i < piece.length;) {
        i += utf8_decode_inert(string + i, piece.length - i, &character);
        utf8_append(out, character);
    }
    if (piece.cut)
        text_append(out, terminal->unicode ? "…" : "~");
    if (styled)
        text_append(out, terminal_style_end());
}
