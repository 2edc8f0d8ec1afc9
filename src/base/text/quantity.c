/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/quantity.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quote.h"

/* Holds the product of a 64-bit number and any unit, and sums of several such products. */
__extension__ typedef unsigned __int128 wide;

enum {
    FRACTION_DIGITS = 9, /* of sizes and durations */
    DECIMALS_MAX = 18,   /* 10^18 is the largest power of ten that int64_t holds */
    CASE_BIT = 'a' ^ 'A',
};

static const char digits[] = "0123456789";

static uint64_t power_of_ten(unsigned exponent)
{
    uint64_t power = 1;

    while (exponent-- > 0)
        power *= 10;
    return power;
}

/* A number as the user wrote it. */
struct decimal {
    uint64_t whole;
    bool overflows;    /* the number does not fit into `whole` */
    uint64_t fraction; /* in units of 10^-fraction_digits; valid up to DECIMALS_MAX digits */
    size_t fraction_digits;
};

/* Reads digits, optionally followed by a point and more digits. Returns where they end, or NULL
 * when there are none. */
static const char *read_decimal(const char *at, struct decimal *ret_decimal)
{
    char *end;

    *ret_decimal = (struct decimal){0};
    if (strspn(at, digits) == 0)
        return NULL;
    errno = 0;
    ret_decimal->whole = strtoull(at, &end, 10);
    ret_decimal->overflows = errno == ERANGE;
    /* A point without digits is left for the caller, which rejects it. */
    if (end[0] != '.' || strspn(end + 1, digits) == 0)
        return end;
    ret_decimal->fraction_digits = strspn(end + 1, digits);
    ret_decimal->fraction = strtoull(end + 1, NULL, 10);
    return end + 1 + ret_decimal->fraction_digits;
}

/* Returns the number times `unit`, rounded down. */
static wide scale_decimal(const struct decimal *decimal, uint64_t unit)
{
    return (wide)decimal->whole * unit +
           (wide)decimal->fraction * unit / power_of_ten((unsigned)decimal->fraction_digits);
}

/* Reports what was expected and found, and the reason unless it is NULL. */
static int report_syntax_error(struct berth_error *error, const char *wanted, const char *found,
                               const char *reason)
{
    return error_set(error, BERTH_ERROR_SYNTAX, "expected %s, got %s%s%s", wanted,
                     quote(found).text, reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
}

static int report_unknown_unit(struct berth_error *error, const char *wanted, const char *found,
                               const char *unit, size_t unit_length)
{
    char reason[16 + sizeof(struct quoted)];

    snprintf(reason, sizeof(reason), "unknown unit %s", quote_bytes(unit, unit_length).text);
    return report_syntax_error(error, wanted, found, reason);
}

static int report_too_many_digits(struct berth_error *error, const char *wanted, const char *found,
                                  unsigned digits_max)
{
    char reason[64];

    snprintf(reason, sizeof(reason), "more than %u digits after the point", digits_max);
    return report_syntax_error(error, wanted, found, reason);
}

int quantity_parse_number(const char *string, uint64_t min, uint64_t max, uint64_t *ret_number,
                          struct berth_error *error)
{
    struct decimal decimal;
    struct quoted found;
    const char *end = read_decimal(string, &decimal);

    if (end == NULL || end[0] != '\0' || decimal.fraction_digits > 0)
        return report_syntax_error(error, "a whole number", string, NULL);
    if (!decimal.overflows && decimal.whole >= min && decimal.whole <= max) {
        *ret_number = decimal.whole;
        return 0;
    }
    if (decimal.overflows)
        found = quote(string);
    else
        snprintf(found.text, sizeof(found.text), "%" PRIu64, decimal.whole);
    return error_set(error, BERTH_ERROR_RANGE,
                     "expected a whole number from %" PRIu64 " to %" PRIu64 ", got %s", min, max,
                     found.text);
}

/* Compares without regard to case or locale. `letters` are lower case. */
static bool equals_ignoring_case(const char *string, const char *letters)
{
    while (*letters != '\0' && (*string | CASE_BIT) == *letters) {
        string++;
        letters++;
    }
    return *letters == '\0' && *string == '\0';
}

/* Returns the unit of a size in bytes, or 0 when there is no such unit. */
static uint64_t find_size_unit(const char *unit)
{
    static const char prefixes[] = "kmgtpe";
    uint64_t binary = 1, decimal = 1;

    if (unit[0] == '\0' || equals_ignoring_case(unit, "b"))
        return 1;
    for (size_t i = 0; prefixes[i] != '\0'; i++) {
        binary *= 1024;
        decimal *= 1000;
        if ((unit[0] | CASE_BIT) != prefixes[i])
            continue;
        if (unit[1] == '\0' || equals_ignoring_case(unit + 1, "ib"))
            return binary;
        return equals_ignoring_case(unit + 1, "b") ? decimal : 0;
    }
    return 0;
}

int quantity_parse_size(const char *string, uint64_t *ret_bytes, struct berth_error *error)
{
    static const char wanted[] = "a size such as 8GiB or 512M";
    struct decimal decimal;
    const char *unit = read_decimal(string, &decimal);
    uint64_t unit_size;
    wide bytes;

    if (unit == NULL)
        return report_syntax_error(error, wanted, string, NULL);
    if (unit[0] == ' ' && unit[1] != '\0')
        unit++;
    unit_size = find_size_unit(unit);
    if (unit_size == 0)
        return report_unknown_unit(error, wanted, string, unit, strlen(unit));
    if (decimal.fraction_digits > FRACTION_DIGITS)
        return report_too_many_digits(error, wanted, string, FRACTION_DIGITS);
    bytes = scale_decimal(&decimal, unit_size);
    if (decimal.overflows || bytes > UINT64_MAX)
        return error_set(error, BERTH_ERROR_RANGE, "expected a size below 16 EiB, got %s",
                         quote(string).text);
    *ret_bytes = (uint64_t)bytes;
    return 0;
}

static const char duration_wanted[] = "a duration such as 90s, 1h30m or 2-00:00:00";

static const struct duration_unit {
    const char *name;
    int64_t nanoseconds;
} duration_units[] = {
    {"d", DURATION_DAY},    {"h", DURATION_HOUR},           {"m", DURATION_MINUTE},
    {"s", DURATION_SECOND}, {"ms", DURATION_SECOND / 1000},
};

/* Returns the index of a unit in the table, or the table's length when there is no such unit. */
static size_t find_duration_unit(const char *name, size_t length)
{
    size_t i;

    for (i = 0; i < COUNT(duration_units); i++) {
        if (strlen(duration_units[i].name) == length &&
            memcmp(duration_units[i].name, name, length) == 0)
            break;
    }
    return i;
}

/* The sum of a duration's parts. It may be too large for a duration. */
struct duration_sum {
    wide nanoseconds;
    bool overflows;
};

static void add_duration_part(struct duration_sum *sum, const struct decimal *part, int64_t unit)
{
    sum->nanoseconds += scale_decimal(part, (uint64_t)unit);
    sum->overflows = sum->overflows || part->overflows;
}

/* Reads seconds, or parts with units. */
static int read_duration_parts(const char *string, struct duration_sum *sum,
                               struct berth_error *error)
{
    size_t next_unit = 0;

    for (const char *at = string; at == string || *at != '\0';) {
        struct decimal part;
        const char *unit = read_decimal(at, &part);
        size_t unit_length, i;

        if (unit == NULL)
            return report_syntax_error(error, duration_wanted, string, NULL);
        unit_length = strcspn(unit, digits);
        i = find_duration_unit(unit, unit_length);
        if (unit[0] == '\0' && at == string)
            i = find_duration_unit("s", 1);
        else if (unit[0] == '\0')
            return report_syntax_error(error, duration_wanted, string, "the last part has no unit");
        if (i == COUNT(duration_units))
            return report_unknown_unit(error, duration_wanted, string, unit, unit_length);
        if (i < next_unit)
            return report_syntax_error(error, duration_wanted, string,
                                       "units must go from large to small: d, h, m, s, ms");
        at = unit + unit_length;
        if (part.fraction_digits > 0 && *at != '\0')
            return report_syntax_error(error, duration_wanted, string,
                                       "only the last part may have a fraction");
        if (part.fraction_digits > FRACTION_DIGITS)
            return report_too_many_digits(error, duration_wanted, string, FRACTION_DIGITS);
        add_duration_part(sum, &part, duration_units[i].nanoseconds);
        next_unit = i + 1;
    }
    return 0;
}

/* Reads [days-]hours:minutes:seconds. */
static int read_duration_clock(const char *string, struct duration_sum *sum,
                               struct berth_error *error)
{
    static const struct {
        char separator; /* after the field */
        uint64_t limit; /* applies unless the field is the first */
        int64_t nanoseconds;
        const char *reason;
    } fields[] = {
        {'-', UINT64_MAX, DURATION_DAY, ""},
        {':', 24, DURATION_HOUR, "hours after days must be below 24"},
        {':', 60, DURATION_MINUTE, "minutes must be below 60"},
        {'\0', 60, DURATION_SECOND, "seconds must be below 60"},
    };
    size_t first = strchr(string, '-') != NULL ? 0 : 1;
    const char *at = string;

    for (size_t i = first; i < COUNT(fields); i++) {
        struct decimal field;

        at = read_decimal(at, &field);
        if (at == NULL || *at != fields[i].separator || field.fraction_digits > 0)
            return report_syntax_error(error, duration_wanted, string,
                                       "the clock form is hours:minutes:seconds");
        if (i > first && field.whole >= fields[i].limit)
            return report_syntax_error(error, duration_wanted, string, fields[i].reason);
        add_duration_part(sum, &field, fields[i].nanoseconds);
        if (*at != '\0')
            at++;
    }
    return 0;
}

int quantity_parse_duration(const char *string, int64_t *ret_nanoseconds, struct berth_error *error)
{
    bool is_clock = strchr(string, ':') != NULL;
    struct duration_sum sum = {0};
    int code = is_clock ? read_duration_clock(string, &sum, error)
                        : read_duration_parts(string, &sum, error);

    if (code < 0)
        return code;
    if (sum.overflows || sum.nanoseconds > INT64_MAX)
        return error_set(error, BERTH_ERROR_RANGE,
                         "expected a duration of at most %lld days, got %s",
                         (long long)(INT64_MAX / DURATION_DAY), quote(string).text);
    *ret_nanoseconds = (int64_t)sum.nanoseconds;
    return 0;
}

/* Formats value / 10^decimals without trailing zeros, between `sign` and `suffix`. */
static struct quantity_text format_fixed(const char *sign, uint64_t value, unsigned decimals,
                                         const char *suffix)
{
    struct quantity_text result;
    uint64_t one;

    assert(decimals <= DECIMALS_MAX);
    while (decimals > 0 && value % 10 == 0) {
        value /= 10;
        decimals--;
    }
    one = power_of_ten(decimals);
    if (decimals == 0)
        snprintf(result.text, sizeof(result.text), "%s%" PRIu64 "%s", sign, value, suffix);
    else
        snprintf(result.text, sizeof(result.text), "%s%" PRIu64 ".%0*" PRIu64 "%s", sign,
                 value / one, (int)decimals, value % one, suffix);
    return result;
}

static uint64_t absolute_value(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

int quantity_parse_decimal(const char *string, unsigned decimals, uint64_t max, uint64_t *ret_value,
                           struct berth_error *error)
{
    char wanted[24 + sizeof(struct quantity_text)];
    struct decimal decimal;
    const char *end = read_decimal(string, &decimal);
    wide value;

    snprintf(wanted, sizeof(wanted), "a number from 0 to %s",
             format_fixed("", max, decimals, "").text);
    if (end == NULL || end[0] != '\0')
        return report_syntax_error(error, wanted, string, NULL);
    if (decimal.fraction_digits > decimals)
        return report_too_many_digits(error, wanted, string, decimals);
    value = scale_decimal(&decimal, power_of_ten(decimals));
    if (decimal.overflows || value > max)
        return error_set(error, BERTH_ERROR_RANGE, "expected %s, got %s", wanted,
                         quote(string).text);
    *ret_value = (uint64_t)value;
    return 0;
}

struct quantity_text quantity_format_size(uint64_t bytes)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    unsigned unit = 0;
    unsigned decimals;
    uint64_t whole;

    while (unit + 1 < COUNT(units) && bytes >> (10 * (unit + 1)) != 0)
        unit++;
    whole = bytes >> (10 * unit);
    decimals = unit == 0 || whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
    return format_fixed("", (uint64_t)((wide)bytes * power_of_ten(decimals) >> (10 * unit)),
                        decimals, units[unit]);
}

struct quantity_text quantity_format_duration(int64_t nanoseconds)
{
    const char *sign = nanoseconds < 0 ? "-" : "";
    uint64_t rest = absolute_value(nanoseconds);
    struct quantity_text result;
    size_t i = 0;
    uint64_t unit, first, second;

    while (i + 1 < COUNT(duration_units) && rest < (uint64_t)duration_units[i].nanoseconds)
        i++;
    unit = (uint64_t)duration_units[i].nanoseconds;
    first = rest / unit;
    if (first == 0)
        return format_fixed("", 0, 0, "s");
    /* Seconds and milliseconds are not followed by a smaller unit. */
    if (unit <= (uint64_t)DURATION_SECOND)
        return format_fixed(sign, first, 0, duration_units[i].name);
    second = rest % unit / (uint64_t)duration_units[i + 1].nanoseconds;
    if (second == 0)
        return format_fixed(sign, first, 0, duration_units[i].name);
    snprintf(result.text, sizeof(result.text), "%s%" PRIu64 "%s%" PRIu64 "%s", sign, first,
             duration_units[i].name, second, duration_units[i + 1].name);
    return result;
}

struct quantity_text quantity_format_decimal(int64_t value, unsigned decimals)
{
    return format_fixed(value < 0 ? "-" : "", absolute_value(value), decimals, "");
}

/* Returns the days from the first day of the year 1 to the first day of `year`, in the Gregorian
 * calendar. */
static int64_t days_before_year(int64_t year)
{
    int64_t past = year - 1;

    return past * 365 + past / 4 - past / 100 + past / 400;
}

static bool is_leap_year(int64_t year)
{
    return days_before_year(year + 1) - days_before_year(year) == 366;
}

/* Does not use gmtime_r, which reads the time zone's file and takes a lock. */
struct quantity_text quantity_format_time(int64_t nanoseconds)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t days = nanoseconds / DURATION_DAY;
    int64_t rest = nanoseconds % DURATION_DAY;
    int64_t year;
    size_t month = 0;
    struct quantity_text result;

    if (rest < 0) {
        rest += DURATION_DAY;
        days--;
    }
    days += days_before_year(1970);
    /* 400 years have 146097 days. This estimate is never too early, and at most two years late. */
    year = days * 400 / 146097 + 2;
    while (days_before_year(year) > days)
        year--;
    days -= days_before_year(year);
    for (; month < 11; month++) {
        int length = month_days[month] + (month == 1 && is_leap_year(year));

        if (days < length)
            break;
        days -= length;
    }
    snprintf(result.text, sizeof(result.text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year,
             (int)month + 1, (int)days + 1, (int)(rest / DURATION_HOUR),
             (int)(rest / DURATION_MINUTE % 60), (int)(rest / DURATION_SECOND % 60),
             (int)(rest / (DURATION_SECOND / 1000) % 1000));
    return result;
}
