/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes UTF-8 from untrusted sources, replaces invalid bytes, measures text in terminal columns,
 * and makes text inert, so that it cannot control a terminal. Pure functions; any thread may call
 * them.
 */
#ifndef BASE_TEXT_UTF8_H
#define BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"

#define UTF8_REPLACEMENT 0xFFFD

/* Decodes one character from `length` > 0 bytes, and returns its length in bytes. Bytes that are
 * not well-formed (overlong, surrogate, above U+10FFFF, incomplete) give UTF8_REPLACEMENT and the
 * length of the longest well-formed prefix, at least 1, as Unicode recommends. */
size_t utf8_decode(const char *bytes, size_t length, uint32_t *ret_character);

/* Decodes like utf8_decode, but gives UTF8_REPLACEMENT for a control character (utf8_is_control)
 * too. */
size_t utf8_decode_inert(const char *bytes, size_t length, uint32_t *ret_character);

/* Returns whether all `length` bytes are well-formed UTF-8. */
bool utf8_is_valid(const char *bytes, size_t length);

/* Appends one character, which must be a Unicode scalar value. */
void utf8_append(struct text *text, uint32_t character);

/* Returns the largest position at or below `limit` that does not split a character of `string`. It
 * reads only the bytes before `limit`, so it also works on a copy that is cut at `limit`. */
size_t utf8_boundary(const char *string, size_t limit);

/* Returns the number of terminal columns of a character: 0, 1 or 2. */
unsigned utf8_character_width(uint32_t character);

/* Returns whether a character could control a terminal or change the order of the text: C0 and C1
 * controls, DEL, line and paragraph separators, bidirectional marks and overrides. */
bool utf8_is_control(uint32_t character);

/* Appends `string` as one line that cannot control a terminal: invalid bytes and control characters
 * become U+FFFD. */
void utf8_append_inert(struct text *text, const char *string);

/* Returns the number of terminal columns of utf8_append_inert's result. */
size_t utf8_width(const char *string);

/* Replaces each byte of invalid sequences and control characters by '?', in place. The length stays
 * the same. */
void utf8_make_plain(char *string);

#endif
