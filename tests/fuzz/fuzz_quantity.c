/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls all parsers of short strings: numbers, sizes, durations, fractions, lists of numbers and
 * names. The input is the string up to its first zero byte. The rest is a second name for the
 * search of similar names.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "base/text/quantity.h"
#include "base/text/suggest.h"
#include "base/text/text.h"
#include "support/require.h"

enum { UNTOUCHED = 4711, BITS_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks the error that every parser may leave. Returns whether the call succeeded. */
static bool check_error(int code, const struct berth_error *error)
{
    if (code == 0) {
        require(error->code == 0 && error->message[0] == '\0');
        return true;
    }
    require(code == BERTH_ERROR_SYNTAX || code == BERTH_ERROR_RANGE);
    require(error->code == code && error->message[0] != '\0');
    require_inert(error->message, strlen(error->message));
    return false;
}

static void check_number(const char *string)
{
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t number = UNTOUCHED;

    if (!check_error(quantity_parse_number(string, 10, 1000000, &number, &error), &error))
        require(number == UNTOUCHED);
    else
        require(number >= 10 && number <= 1000000 && number == strtoull(string, NULL, 10));
}

static void check_size(const char *string)
{
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t bytes = UNTOUCHED;
    uint64_t again;
    struct quantity_text text;
    char *blank;

    if (!check_error(quantity_parse_size(string, &bytes, &error), &error)) {
        require(bytes == UNTOUCHED);
        return;
    }
    text = quantity_format_size(bytes);
    blank = strchr(text.text, ' ');
    require(blank != NULL);
    memmove(blank, blank + 1, strlen(blank));
    require(quantity_parse_size(text.text, &again, NULL) == 0);
    require(again <= bytes && bytes - again <= bytes / 100 + 1);
}

static void check_duration(const char *string)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t nanoseconds = UNTOUCHED;
    int64_t again;

    if (!check_error(quantity_parse_duration(string, &nanoseconds, &error), &error)) {
        require(nanoseconds == UNTOUCHED);
        return;
    }
    require(nanoseconds >= 0);
    require(quantity_parse_duration(quantity_format_duration(nanoseconds).text, &again, NULL) == 0);
    require(again <= nanoseconds && nanoseconds - again < DURATION_HOUR);
    require(strlen(quantity_format_time(nanoseconds).text) == strlen("1970-01-01T00:00:00.000Z"));
}

static void check_decimal(const char *string)
{
    const uint64_t max = INT64_MAX;
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t value = UNTOUCHED;
    uint64_t again;

    if (!check_error(quantity_parse_decimal(string, 6, max, &value, &error), &error)) {
        require(value == UNTOUCHED);
        return;
    }
    require(value <= max);
    require(quantity_parse_decimal(quantity_format_decimal((int64_t)value, 6).text, 6, max, &again,
                                   NULL) == 0);
    require(again == value);
}

static void check_ranges(const char *string)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct bitset set = {.size = UNTOUCHED};
    struct bitset again;
    struct text text = {0};

    if (!check_error(bitset_parse_ranges(string, BITS_MAX, &set, &error), &error)) {
        require(set.size == UNTOUCHED && set.words == NULL);
        return;
    }
    require(set.size <= BITS_MAX);
    bitset_format_ranges(&set, &text);
    require(bitset_parse_ranges(text_string(&text), BITS_MAX, &again, NULL) == 0);
    require(again.size == set.size && bitset_equals(&again, &set));
    text_finish(&text);
    bitset_finish(&again);
    bitset_finish(&set);
}

static void check_nearest(const char *one, const char *other)
{
    struct suggestion there = {.wanted = one};
    struct suggestion back = {.wanted = other};
    size_t one_length = strlen(one);
    size_t other_length = strlen(other);
    size_t longer = one_length > other_length ? one_length : other_length;

    suggest_compare(&there, other);
    suggest_compare(&back, one);
    require((there.best == NULL) == (back.best == NULL));
    if (there.best == NULL)
        return;
    require(there.best == other && there.distance == back.distance);
    require(longer <= 64 && there.distance <= (longer + 2) / 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Two terminators, so that there is always a second name. */
    char *string = calloc(1, size + 2);

    require(string != NULL);
    if (size > 0)
        memcpy(string, data, size);
    check_number(string);
    check_size(string);
    check_duration(string);
    check_decimal(string);
    check_ranges(string);
    check_nearest(string, string + strlen(string) + 1);
    free(string);
    return 0;
}
