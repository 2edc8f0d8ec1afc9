/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers with units, as people write them, and back. All parsing is exact and checked: what does
 * not fit is BERTH_ERROR_RANGE, what is not of the form BERTH_ERROR_SYNTAX, and the message says
 * what was wanted and quotes what was found. The result is untouched on failure. Leading and
 * trailing blanks, signs and empty strings are not of any form. Pure; any thread may call these.
 */
#ifndef BASE_TEXT_QUANTITY_H
#define BASE_TEXT_QUANTITY_H

#include <berth/error.h>
#include <stdint.h>

/* Nanoseconds; all durations and times in berth are. */
#define DURATION_SECOND INT64_C(1000000000)
#define DURATION_MINUTE (60 * DURATION_SECOND)
#define DURATION_HOUR   (60 * DURATION_MINUTE)
#define DURATION_DAY    (24 * DURATION_HOUR)

/* A whole number in decimal digits, from `least` to `most`. */
int quantity_parse_number(const char *string, uint64_t min, uint64_t max, uint64_t *ret_number,
                          struct berth_error *error);

/* A size in bytes: a number, perhaps with a fraction (1.5GiB; cut to whole bytes), and a unit in
 * any case: none or B; K M G T P E and KiB ... EiB are powers of 1024; KB ... EB powers of 1000.
 * One blank may stand before the unit, as quantity_format_size writes it. */
int quantity_parse_size(const char *string, uint64_t *ret_bytes, struct berth_error *error);

/* A duration in nanoseconds: seconds (90, 0.5), parts with units in falling order (1h30m, 90s,
 * 500ms, 2d12h; d h m s ms; only the last part may have a fraction, cut to whole nanoseconds), or
 * clock form (1:30:00, 2-00:00:00: days-hours:minutes:seconds, where hours after days are below
 * 24, minutes and seconds below 60). A fraction, here and of sizes, has at most 9 digits. */
int quantity_parse_duration(const char *string, int64_t *ret_nanoseconds,
                            struct berth_error *error);

/* A decimal fraction from 0 to `most` (both in units of 10^-decimals), with at most `decimals`
 * digits behind the point: ("0.25", 6, 1000000) is 250000. decimals <= 18. */
int quantity_parse_decimal(const char *string, unsigned decimals, uint64_t max, uint64_t *ret_value,
                           struct berth_error *error);

struct quantity_text {
    char text[40];
};

/* A size for people, the first three digits without trailing zeros and a binary unit: "512 B",
 * "1.5 KiB", "80 GiB", "79.2 GiB", "1.99 TiB". Rounded down, so that what is shown is there;
 * "1023 MiB" stays so. */
struct quantity_text quantity_format_size(uint64_t bytes);

/* A duration for people, its largest unit and the next one if that is not 0: "0s", "350ms", "45s",
 * "1h30m", "2d4h", "1d". What is smaller is dropped, milliseconds from a second up, so that it is
 * rounded towards zero. Negative ones start with '-'. */
struct quantity_text quantity_format_duration(int64_t nanoseconds);

/* value / 10^decimals without trailing zeros: (250000, 6) is "0.25". decimals <= 18. */
struct quantity_text quantity_format_decimal(int64_t value, unsigned decimals);

/* Nanoseconds since 1970 UTC as RFC 3339 with milliseconds: "2026-01-02T03:04:05.678Z". Any value
 * works (the year runs from 1677 to 2262). */
struct quantity_text quantity_format_time(int64_t nanoseconds);

#endif
