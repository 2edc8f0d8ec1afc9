/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of a text as there is room for on a terminal; where that is not all of it, a mark in the
 * last column says so. Any thread may call these.
 */
#ifndef BASE_TEXT_TRUNCATE_H
#define BASE_TEXT_TRUNCATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/terminal.h"
#include "base/text/text.h"

struct truncation {
    size_t length; /* bytes of the text */
    size_t width;  /* terminal columns, with the mark when cut */
    bool cut;
};

/* The piece of `string` that `room` columns have room for, at least 1. */
struct truncation truncate_measure(const char *string, size_t room);

/* Appends it, inert, in a style if the terminal has those. */
void truncate_append(struct text *out, const char *string, struct truncation piece,
                     enum style style, const struct terminal *terminal);

#endif
