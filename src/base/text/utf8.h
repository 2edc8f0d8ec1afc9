/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 from strangers: decoding that never reads past the end, repair, the width of text on a
 * terminal, and text that cannot steer one. Pure functions over bytes; any thread may call them.
 */
#ifndef BASE_TEXT_UTF8_H
#define BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"

#define UTF8_REPLACEMENT 0xFFFD

/* Decodes one character from `length` > 0 bytes. Returns how many bytes it takes; what is not
 * well-formed (overlong, surrogate, above U+10FFFF, cut short) gives UTF8_REPLACEMENT and the
 * length of its longest well-formed beginning, at least 1, as Unicode recommends. */
size_t utf8_decode(const char *bytes, size_t length, uint32_t *ret_character);

/* utf8_decode with UTF8_REPLACEMENT for a controlling character (utf8_is_control) too. */
size_t utf8_decode_inert(const char *bytes, size_t length, uint32_t *ret_character);

/* Whether all `length` bytes are well-formed UTF-8. */
bool utf8_is_valid(const char *bytes, size_t length);

/* Appends one character, which must be a Unicode scalar value. */
void utf8_append(struct text *text, uint32_t character);

/* The largest position at or below `limit` that does not cut a character of `string` in two, judged
 * by the bytes before `limit` alone: when they end in a character's beginning, that is where it
 * starts, otherwise `limit`. So it serves a whole string and a copy that is cut already. */
size_t utf8_boundary(const char *string, size_t limit);

/* How many terminal columns a character takes: 0, 1 or 2. */
unsigned utf8_character_width(uint32_t character);

/* Whether a character could steer a terminal or reorder what is read: C0 and C1 controls, DEL,
 * line and paragraph separators, bidirectional marks and overrides. */
bool utf8_is_control(uint32_t character);

/* Appends `string` for showing to people: malformed bytes and controlling characters come out as
 * U+FFFD, so the result is one line and inert. */
void utf8_append_inert(struct text *text, const char *string);

/* The terminal columns that utf8_append_inert's result takes. */
size_t utf8_width(const char *string);

/* Does what utf8_append_inert does, but in place, with '?' for each offending byte; the length
 * stays. */
void utf8_make_plain(char *string);

#endif
