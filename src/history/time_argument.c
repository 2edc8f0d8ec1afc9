/* SPDX-License-Identifier: Apache-2.0 */
#include "history/time_argument.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"

/* The first and last year in which every moment fits into the type. */
enum { YEAR_FIRST = 1970, YEAR_LAST = 2261 };

static int fail_parse(const char *string, int code, struct berth_error *error)
{
    return error_set(error, code,
                     "expected a duration (7d, 24h), a date (2026-11-01) or a time "
                     "(2026-11-01T09:30), got %s",
                     quote(string).text);
}

/* Reads exactly `digits` digits as a number in this range, and advances past them. */
static bool take_number(const char **at, int digits, int min, int max, int *ret_number)
{
    int number = 0;

    for (int i = 0; i < digits; i++) {
        if (!isdigit((unsigned char)(*at)[i]))
            return false;
        number = number * 10 + (*at)[i] - '0';
    }
    *at += digits;
    *ret_number = number;
    return number >= min && number <= max;
}

static bool take_character(const char **at, char wanted)
{
    if (**at != wanted)
        return false;
    ++*at;
    return true;
}

static bool take_date(const char **at, struct tm *date)
{
    int year;
    int month;

    if (!take_number(at, 4, YEAR_FIRST, YEAR_LAST, &year) || !take_character(at, '-') ||
        !take_number(at, 2, 1, 12, &month) || !take_character(at, '-') ||
        !take_number(at, 2, 1, 31, &date->tm_mday))
        return false;
    date->tm_year = year - 1900;
    date->tm_mon = month - 1;
    return true;
}

/* Reads the digits after the point; digits below a nanosecond are dropped. */
static bool take_fraction(const char **at, int64_t *ret_nanoseconds)
{
    int64_t unit = DURATION_SECOND;

    if (!isdigit((unsigned char)**at))
        return false;
    for (; isdigit((unsigned char)**at); ++*at) {
        unit /= 10;
        *ret_nanoseconds += (**at - '0') * unit;
    }
    return true;
}

static bool take_clock(const char **at, struct tm *date, int64_t *ret_nanoseconds)
{
    if (!take_number(at, 2, 0, 23, &date->tm_hour) || !take_character(at, ':') ||
        !take_number(at, 2, 0, 59, &date->tm_min))
        return false;
    if (!take_character(at, ':'))
        return true;
    if (!take_number(at, 2, 0, 60, &date->tm_sec))
        return false;
    return !take_character(at, '.') || take_fraction(at, ret_nanoseconds);
}

/* Reads Z or an offset from UTC in seconds; sets *ret_known to false if there is neither. */
static bool take_zone(const char **at, bool *ret_known, int64_t *ret_offset)
{
    bool is_negative = **at == '-';
    int hours;
    int minutes;

    *ret_known = **at != '\0';
    *ret_offset = 0;
    if (**at == '\0')
        return true;
    if (take_character(at, 'Z') || take_character(at, 'z'))
        return **at == '\0';
    if (!take_character(at, '+') && !take_character(at, '-'))
        return false;
    if (!take_number(at, 2, 0, 23, &hours) || !take_character(at, ':') ||
        !take_number(at, 2, 0, 59, &minutes))
        return false;
    *ret_offset = (is_negative ? -1 : 1) * (hours * INT64_C(3600) + minutes * INT64_C(60));
    return **at == '\0';
}

/* Returns whether the day exists (no 31 February). */
static bool is_same_day(const struct tm *one, const struct tm *other)
{
    return one->tm_mday == other->tm_mday && one->tm_mon == other->tm_mon;
}

static int parse_date(const char *string, int64_t *ret_time, struct berth_error *error)
{
    const char *at = string;
    struct tm date = {.tm_isdst = -1};
    struct tm day;
    int64_t nanoseconds = 0;
    int64_t offset = 0;
    bool has_zone = false;
    time_t seconds;

    if (!take_date(&at, &date))
        return fail_parse(string, BERTH_ERROR_SYNTAX, error);
    if (*at != '\0' &&
        ((!take_character(&at, 'T') && !take_character(&at, 't') && !take_character(&at, ' ')) ||
         !take_clock(&at, &date, &nanoseconds) || !take_zone(&at, &has_zone, &offset)))
        return fail_parse(string, BERTH_ERROR_SYNTAX, error);
    day = (struct tm){.tm_year = date.tm_year, .tm_mon = date.tm_mon, .tm_mday = date.tm_mday};
    timegm(&day);
    if (!is_same_day(&day, &date))
        return fail_parse(string, BERTH_ERROR_RANGE, error);
    seconds = has_zone ? timegm(&date) : mktime(&date);
    seconds -= offset;
    if (seconds < 0)
        return fail_parse(string, BERTH_ERROR_RANGE, error);
    *ret_time = seconds * DURATION_SECOND + nanoseconds;
    return 0;
}

/* Four digits, a dash and two more digits: no duration begins like this. */
static bool looks_like_date(const char *string)
{
    for (int i = 0; i < 8; i++) {
        if (i == 4 || i == 7 ? string[i] != '-' : !isdigit((unsigned char)string[i]))
            return false;
    }
    return true;
}

int time_argument_parse(const char *string, int64_t now, int64_t *ret_time,
                        struct berth_error *error)
{
    struct berth_error ignored = BERTH_ERROR_INIT;
    int64_t time = 0;
    int64_t ago;
    int code;

    if (looks_like_date(string)) {
        code = parse_date(string, &time, error);
        if (code < 0)
            return code;
    } else {
        code = quantity_parse_duration(string, &ago, &ignored);
        if (code < 0)
            return fail_parse(string, code, error);
        time = ago < now ? now - ago : 0;
    }
    /* 0 would mean: no limit. */
    *ret_time = time < 1 ? 1 : time;
    return 0;
}
