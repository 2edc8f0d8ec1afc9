/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions for schemas. They use only syntax that ECMA-262 and Python's `re` share
 * ([0-9], because Python's \d matches digits of all scripts). Each pattern is one group and may
 * be part of a larger expression; PATTERN_BEGIN and PATTERN_END make it match a whole text.
 */
#ifndef TOOLS_SPEC_PATTERN_H
#define TOOLS_SPEC_PATTERN_H

#include <stdint.h>

#include "base/text/text.h"

#define PATTERN_BEGIN "^"
/* Python's $ alone also matches before a final line feed. */
#define PATTERN_END "$(?!\\n)"

/* Appends a pattern for a whole number without leading zeros. */
void pattern_append_whole(struct text *out, uint64_t min, uint64_t max);

/* Appends a pattern for two such numbers with a dash between, the first not larger than the second.
 * It uses groups numbered from 1, so no group may come before it. */
void pattern_append_elastic(struct text *out, uint64_t min, uint64_t max);

#endif
