/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions for schemas. They are written in what ECMA-262 and Python's
 * `re` have in common and mean alike ([0-9], as Python's \d knows the digits of all languages).
 * Each is one group that may stand within a larger expression; a whole text is one between
 * PATTERN_BEGIN and PATTERN_END. Pure.
 */
#ifndef TOOLS_SPEC_PATTERN_H
#define TOOLS_SPEC_PATTERN_H

#include <stdint.h>

#include "base/text/text.h"

#define PATTERN_BEGIN "^"
/* Python's $ alone also matches before a line feed at the end. */
#define PATTERN_END "$(?!\\n)"

/* A whole number without leading zeros. */
void pattern_append_whole(struct text *out, uint64_t min, uint64_t max);

/* Two of them with a dash between, the first not larger than the second. It holds the groups
 * numbered from 1, so nothing before it may. */
void pattern_append_elastic(struct text *out, uint64_t min, uint64_t max);

#endif
