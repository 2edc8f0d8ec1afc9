/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and formats numbers with units. Parsing is exact. It fails with BERTH_ERROR_RANGE for a
 * number that does not fit, and with BERTH_ERROR_SYNTAX for text in another form, such as an empty
 * string, a sign, or blanks at either end. The message has the form "expected X, got Y". The result
 * is untouched on failure. Pure functions; any thread may call them.
 */
#ifndef BASE_TEXT_QUANTITY_H
#define BASE_TEXT_QUANTITY_H

#include <berth/error.h>
#include <stdint.h>

/* In nanoseconds, as all durations and times in berth. */
#define DURATION_SECOND INT64_C(1000000000)
#define DURATION_MINUTE (60 * DURATION_SECOND)
#define DURATION_HOUR   (60 * DURATION_MINUTE)
#define DURATION_DAY    (24 * DURATION_HOUR)

/* Parses a whole number in decimal digits, from `min` to `max`. */
int quantity_parse_number(const char *string, uint64_t min, uint64_t max, uint64_t *ret_number,
                          struct berth_error *error);

/* Parses a size in bytes: a number, optionally with a fraction (1.5GiB, rounded down to whole
 * bytes), and a unit in upper or lower case: none or B; K M G T P E and KiB ... EiB are powers of
 * 1024; KB ... EB are powers of 1000. One blank may precede the unit, as in the output of
 * quantity_format_size. */
int quantity_parse_size(const char *string, uint64_t *ret_bytes, struct berth_error *error);

/* Parses a duration in nanoseconds. It has one of three forms:
 *
 *     90, 0.5                   seconds
 *     1h30m, 90s, 500ms, 2d12h  parts with units, from large to small: d, h, m, s, ms. Only the
 *                               last part may have a fraction, rounded down to whole nanoseconds.
 *     1:30:00, 2-00:00:00       [days-]hours:minutes:seconds. Hours after days are below 24,
 *                               minutes and seconds are below 60.
 *
 * A fraction, here and of sizes, has at most 9 digits. */
int quantity_parse_duration(const char *string, int64_t *ret_nanoseconds,
                            struct berth_error *error);

/* Parses a decimal fraction from 0 to `max`, with at most `decimals` digits after the point. `max`
 * and the result are in units of 10^-decimals: ("0.25", 6, 1000000) is 250000. `decimals` is at
 * most 18. */
int quantity_parse_decimal(const char *string, unsigned decimals, uint64_t max, uint64_t *ret_value,
                           struct berth_error *error);

struct quantity_text {
    char text[40];
};

/* Formats a size with a binary unit: three digits, rounded down, without trailing zeros. "512 B",
 * "1.5 KiB", "80 GiB", "79.2 GiB", "1.99 TiB"; only 1000 to 1023 have four digits, "1023 MiB". */
struct quantity_text quantity_format_size(uint64_t bytes);

/* Formats a duration as its largest unit and, if that is not 0, the next one: "0s", "350ms",
 * "45s", "1h30m", "2d4h", "1d". Smaller units are dropped, so it is rounded towards zero.
 * Milliseconds are shown only below a second. Negative durations start with '-'. */
struct quantity_text quantity_format_duration(int64_t nanoseconds);

/* Formats value / 10^decimals without trailing zeros: (250000, 6) is "0.25". `decimals` is at most
 * 18. */
struct quantity_text quantity_format_decimal(int64_t value, unsigned decimals);

/* Formats nanoseconds since 1970 UTC as RFC 3339 with milliseconds: "2026-01-02T03:04:05.678Z".
 * Any value is valid; years are from 1677 to 2262. */
struct quantity_text quantity_format_time(int64_t nanoseconds);

#endif
