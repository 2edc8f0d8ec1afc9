/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/workload_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/string_list.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "model/request.h"

static const char digits[] = "0123456789";

/* Returns whether the number has a leading zero. Some versions of YAML read 010 as 8. */
static bool leads_with_zero(const char *number)
{
    return number[0] == '0' && strspn(number, digits) > 1;
}

static int fail_leading_zeros(const char *text, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_SYNTAX, "expected a number without leading zeros, got %s",
                     quote(text).text);
}

static bool has_other_digit_than_zero(const char *text)
{
    return strpbrk(text, "123456789") != NULL;
}

/* ---- Counts, capabilities and shares ---- */

static int parse_count(const struct field *field, const char *text, void *target,
                       struct berth_error *error)
{
    const char *dash = strchr(text, '-');
    struct device_count count;
    int code = request_parse_device_count(text, &count, error);

    (void)field;
    if (code < 0)
        return code;
    if (leads_with_zero(text) || (dash != NULL && leads_with_zero(dash + 1)))
        return fail_leading_zeros(text, error);
    *(struct device_count *)target = count;
    return 0;
}

const struct field_type workload_count = {
    .wanted = "a number of devices, a range such as 2-4, or all",
    .parse = parse_count,
};

/* Reads the text only: request_validate checks the names. */
static int parse_models(const struct field *field, const char *text, void *target,
                        struct berth_error *error)
{
    return field_text.parse(field, text, target, error);
}

const struct field_type workload_models = {
    .wanted = "a text",
    .parse = parse_models,
};

static int parse_capability(const struct field *field, const char *text, void *target,
                            struct berth_error *error)
{
    (void)field;
    return capability_parse(text, target, error);
}

static const char capability_wanted[] = "a compute capability in quotes such as \"8.0\"";

static const struct field_type capability_in_quotes = {
    .wanted = capability_wanted,
    .parse = parse_capability,
};

/* Refuses a capability without quotes: YAML reads 8.10 as the number 8.1. */
static int read_capability(const struct field_reading *reading, const struct field *field,
                           const struct document_node *node, void *target)
{
    if (node->kind == NODE_SCALAR && !node->quoted)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a compute capability in quotes such as \"8.0\", got "
                              "%s without them (8.10 and 8.1 are one number, but two capabilities)",
                              field->name, document_node_describe(node).text);
    return field_read(reading, &capability_in_quotes, field, node, target);
}

const struct field_type workload_capability = {
    .wanted = capability_wanted,
    .read = read_capability,
};

static int parse_share(const struct field *field, const char *text, void *target,
                       struct berth_error *error)
{
    size_t whole = strspn(text, digits);
    const char *fraction = text[whole] == '.' ? text + whole + 1 : "";
    size_t decimals = strspn(fraction, digits);
    bool is_one = whole == 1 && text[0] == '1';
    uint64_t millionths = is_one ? 1 : 0;

    (void)field;
    if (whole == 0 || fraction[decimals] != '\0' ||
        (text[whole] != '\0' && (text[whole] != '.' || decimals == 0)))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a number above 0 and up to 1, such as 0.25, got %s",
                         quote(text).text);
    if (leads_with_zero(text))
        return fail_leading_zeros(text, error);
    if (!has_other_digit_than_zero(text) || has_other_digit_than_zero(is_one ? fraction : "") ||
        (!is_one && text[0] != '0'))
        return error_set(error, BERTH_ERROR_RANGE,
                         "expected a number above 0 and up to 1, such as 0.25, got %s",
                         quote(text).text);
    for (size_t i = 0; i < SHARE_DECIMALS; i++)
        millionths = millionths * 10 + (i < decimals ? (uint64_t)(fraction[i] - '0') : 0);
    if (decimals > SHARE_DECIMALS && fraction[SHARE_DECIMALS] >= '5')
        millionths++;
    *(struct optional_number *)target = optional_number_of(millionths == 0 ? 1 : millionths);
    return 0;
}

const struct field_type workload_share = {
    .wanted = "a number above 0 and up to 1, such as 0.25",
    .bare = true,
    .parse = parse_share,
};

/* ---- Sizes and durations ---- */

/* Returns the maximum number of digits before the unit of a size; 0 for a unit that is too large
 * for any number. */
static size_t digits_before_unit(const char *unit)
{
    static const char prefixes[] = "kmgt";
    size_t left = WORKLOAD_SIZE_DIGITS;
    const char *found;

    if (unit[0] == '\0' || unit[0] == 'b' || unit[0] == 'B')
        return left;
    found = strchr(prefixes, unit[0] | ('a' ^ 'A'));
    return found == NULL ? 0 : left - 3 * (size_t)(found - prefixes + 1);
}

static int fail_size(const char *text, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_RANGE, "expected a size below 1000T, got %s",
                     quote(text).text);
}

static int parse_size(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    size_t whole = strspn(text, digits);
    size_t decimals = text[whole] == '.' ? strspn(text + whole + 1, digits) : 0;
    const char *unit = text + whole + (decimals > 0 ? decimals + 1 : 0);
    uint64_t bytes;
    int code = quantity_parse_size(text, &bytes, error);

    if (code == BERTH_ERROR_RANGE)
        return fail_size(text, error);
    if (code < 0)
        return code;
    unit += unit[0] == ' ';
    if (unit[0] == '\0' && leads_with_zero(text))
        return fail_leading_zeros(text, error);
    if (decimals > 0 && digits_before_unit(unit) == WORKLOAD_SIZE_DIGITS)
        return error_set(error, BERTH_ERROR_SYNTAX, "expected whole bytes, got %s",
                         quote(text).text);
    if (decimals > WORKLOAD_FRACTION_DIGITS)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a size with at most %d digits after the point, got %s",
                         WORKLOAD_FRACTION_DIGITS, quote(text).text);
    if (whole > digits_before_unit(unit))
        return fail_size(text, error);
    if (bytes < field->min)
        return error_set(error, BERTH_ERROR_RANGE, "expected more than 0 bytes, got %s",
                         quote(text).text);
    *(struct optional_number *)target = optional_number_of(bytes);
    return 0;
}

const struct field_type workload_size = {
    .wanted = "a size such as 8GiB",
    .parse = parse_size,
};

/* The maximum number of digits of seconds without a unit. */
enum { SECONDS_DIGITS = 9 };

const struct workload_part workload_parts[] = {
    {"d", WORKLOAD_DAYS_DIGITS}, {"h", WORKLOAD_HOURS_DIGITS}, {"m", 7}, {"s", 9}, {"ms", 12}, {0},
};

/* Returns whether a part of the duration is too long for a spec file. quantity_parse_duration must
 * have accepted the duration. */
static bool parts_are_long(const char *text)
{
    while (*text != '\0') {
        size_t whole = strspn(text, digits);
        const char *unit = text + strspn(text, "0123456789.");
        size_t length = strcspn(unit, digits);
        const struct workload_part *part = workload_parts;

        while (part->unit != NULL &&
               (strlen(part->unit) != length || memcmp(part->unit, unit, length) != 0))
            part++;
        if (part->unit == NULL || whole > part->digits)
            return true;
        text = unit + length;
    }
    return false;
}

static bool duration_is_long(const char *text)
{
    if (strchr(text, ':') != NULL)
        return strspn(text, digits) >
               (strchr(text, '-') != NULL ? (size_t)WORKLOAD_DAYS_DIGITS : WORKLOAD_HOURS_DIGITS);
    if (text[strspn(text, digits)] == '\0')
        return strlen(text) > SECONDS_DIGITS;
    return parts_are_long(text);
}

/* Returns whether a part of [D-]H:M:S after the first has more than two digits. */
static bool clock_has_many_digits(const char *text)
{
    for (text += strcspn(text, "-:"); *text != '\0'; text += strspn(text, digits)) {
        text++;
        if (strspn(text, digits) > 2)
            return true;
    }
    return false;
}

/* Checks the rules of spec files that are stricter than quantity_parse_duration. */
static int check_duration(const char *text, struct berth_error *error)
{
    const char *point = strchr(text, '.');
    size_t decimals = point == NULL ? 0 : strspn(point + 1, digits);

    if (point == NULL && text[strspn(text, digits)] == '\0' && leads_with_zero(text))
        return fail_leading_zeros(text, error);
    if (strchr(text, ':') != NULL && clock_has_many_digits(text))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected two digits after each '-' or ':', got %s", quote(text).text);
    if (point != NULL && point[1 + decimals] == '\0')
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected whole seconds, or a unit after the fraction, got %s",
                         quote(text).text);
    if (decimals > WORKLOAD_FRACTION_DIGITS)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a duration with at most %d digits after the point, got %s",
                         WORKLOAD_FRACTION_DIGITS, quote(text).text);
    return 0;
}

static int parse_duration(const struct field *field, const char *text, void *target,
                          struct berth_error *error)
{
    int64_t duration;
    int code = quantity_parse_duration(text, &duration, error);

    if (code == 0)
        code = check_duration(text, error);
    if (code == BERTH_ERROR_RANGE || (code == 0 && duration_is_long(text)))
        return error_set(
            error, BERTH_ERROR_RANGE,
            "expected a duration of at most 9999d, 99999h, 9999999m or 999999999s, got %s",
            quote(text).text);
    if (code < 0)
        return code;
    if (duration < (int64_t)field->min)
        return error_set(error, BERTH_ERROR_RANGE, "expected more than 0, got %s",
                         quote(text).text);
    *(struct optional_number *)target = optional_number_of((uint64_t)duration);
    return 0;
}

const struct field_type workload_duration = {
    .wanted = "a duration such as 90s or 1h30m",
    .parse = parse_duration,
};
