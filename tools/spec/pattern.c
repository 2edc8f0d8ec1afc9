/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WHOLE_DIGITS = 20 }; /* of UINT64_MAX */

static const char zeros[] = "00000000000000000000";
static const char nines[] = "99999999999999999999";

static bool are_all(const char *digits, char digit, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (digits[i] != digit)
            return false;
    }
    return true;
}

static void append_class(struct text *out, char first, char last)
{
    if (first == last)
        text_append_char(out, first);
    else
        text_append_format(out, "[%c-%c]", first, last);
}

static void append_times(struct text *out, size_t min, size_t max)
{
    if (min == max && min != 1)
        text_append_format(out, "{%zu}", min);
    else if (min != max)
        text_append_format(out, "{%zu,%zu}", min, max);
}

static void append_any(struct text *out, size_t count)
{
    if (count == 0)
        return;
    text_append(out, "[0-9]");
    append_times(out, count, count);
}

/* Appends a pattern for numbers of `count` digits between two numbers of the same length. */
static void append_between(struct text *out, const char *min, const char *max, size_t count)
{
    bool first_apart, last_apart; /* leading digits after which not all digits may follow */
    char first, last;             /* leading digits after which all may follow */

    if (count == 0)
        return;
    if (min[0] == max[0]) {
        text_append_char(out, min[0]);
        append_between(out, min + 1, max + 1, count - 1);
        return;
    }
    first_apart = !are_all(min + 1, '0', count - 1);
    last_apart = !are_all(max + 1, '9', count - 1);
    first = (char)(min[0] + first_apart);
    last = (char)(max[0] - last_apart);
    if (!first_apart && !last_apart) {
        append_class(out, first, last);
        append_any(out, count - 1);
        return;
    }
    text_append(out, "(?:");
    if (first_apart) {
        text_append_char(out, min[0]);
        append_between(out, min + 1, nines, count - 1);
        text_append(out, first <= last || last_apart ? "|" : "");
    }
    if (first <= last) {
        append_class(out, first, last);
        append_any(out, count - 1);
        text_append(out, last_apart ? "|" : "");
    }
    if (last_apart) {
        text_append_char(out, max[0]);
        append_between(out, zeros, max + 1, count - 1);
    }
    text_append_char(out, ')');
}

/* Appends a pattern for all numbers of `shortest` to `longest` digits. */
static void append_lengths(struct text *out, size_t shortest, size_t longest)
{
    text_append(out, "[1-9]");
    if (longest > 1) {
        text_append(out, "[0-9]");
        append_times(out, shortest - 1, longest - 1);
    }
}

/* Appends a bar before each alternative but the first. */
static void append_bar(struct text *out, bool *any)
{
    text_append(out, *any ? "|" : "");
    *any = true;
}

void pattern_append_whole(struct text *out, uint64_t min, uint64_t max)
{
    char from[WHOLE_DIGITS + 1], to[WHOLE_DIGITS + 1];
    char smallest[WHOLE_DIGITS + 1] = "1"; /* its first n digits: the smallest number of n digits */
    size_t shortest = (size_t)snprintf(from, sizeof(from), "%" PRIu64, min);
    size_t longest = (size_t)snprintf(to, sizeof(to), "%" PRIu64, max);
    size_t whole_from, whole_to; /* the lengths for which all numbers match */
    bool any = false;

    assert(min <= max);
    memcpy(smallest + 1, zeros, sizeof(smallest) - 1);
    whole_from = memcmp(from, smallest, shortest) == 0 ? shortest : shortest + 1;
    whole_to = are_all(to, '9', longest) ? longest : longest - 1;
    text_append(out, "(?:");
    if (shortest == longest) {
        append_between(out, from, to, longest);
        text_append_char(out, ')');
        return;
    }
    if (whole_from > shortest) {
        append_bar(out, &any);
        append_between(out, from, nines, shortest);
    }
    if (whole_from <= whole_to) {
        append_bar(out, &any);
        append_lengths(out, whole_from, whole_to);
    }
    if (whole_to < longest) {
        append_bar(out, &any);
        append_between(out, smallest, to, longest);
    }
    text_append_char(out, ')');
}

void pattern_append_elastic(struct text *out, uint64_t min, uint64_t max)
{
    char digits[WHOLE_DIGITS + 1];
    size_t longest = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, max);

    /* Two numbers in range ... */
    text_append(out, "(?:(?=");
    pattern_append_whole(out, min, max);
    text_append_char(out, '-');
    pattern_append_whole(out, min, max);
    text_append(out, "(?![0-9]))(?:");
    /* ... of which the first has fewer digits, ... */
    for (size_t length = 1; length < longest; length++)
        text_append_format(out, "[0-9]{%zu}-[0-9]{%zu,}|", length, length + 1);
    /* ... or both are equal, ... */
    text_append(out, "([0-9]+)-\\1(?![0-9])|(?=(?:");
    /* ... or have the same length and a common beginning, followed by a smaller and a larger
     * digit. */
    for (size_t length = 1; length <= longest; length++)
        text_append_format(out, "%s[0-9]{%zu}-[0-9]{%zu}", length == 1 ? "" : "|", length, length);
    text_append(out, ")(?![0-9]))([0-9]*)(?:");
    for (char digit = '0'; digit < '9'; digit++)
        text_append_format(out, "%s%c[0-9]*-\\2[%c-9]", digit == '0' ? "" : "|", digit, digit + 1);
    text_append(out, ")[0-9]*))");
}
