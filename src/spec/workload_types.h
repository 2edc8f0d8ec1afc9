/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of values that only spec files use. Regular expressions can describe all values, so the
 * schema accepts the same values.
 */
#ifndef SPEC_WORKLOAD_TYPES_H
#define SPEC_WORKLOAD_TYPES_H

#include "spec/field.h"

/* The maximum number of digits of a size: before the unit (15 for bytes, 12 for K, 9 for M, 6 for
 * G, 3 for T) and after the point. */
#define WORKLOAD_SIZE_DIGITS     15
#define WORKLOAD_FRACTION_DIGITS 3
/* The maximum duration without a unit, in seconds. */
#define WORKLOAD_SECONDS_MAX 999999999
/* The maximum number of digits of days, and of hours without days. */
#define WORKLOAD_DAYS_DIGITS  4U
#define WORKLOAD_HOURS_DIGITS 5U
/* The maximum number of digits of each part of a duration, from the largest unit to the smallest,
 * ended by a part without a unit. All parts together, in nanoseconds, fit into 64 bits. */
struct workload_part {
    const char *unit;
    unsigned digits;
};
extern const struct workload_part workload_parts[];
/* The maximum length of a text with device ids, in bytes. Such a text has fewer than
 * DEVICE_ID_LIST_MAX ids. */
#define WORKLOAD_IDS_MAX 4095
/* The maximum number of words in a command (program and arguments), and the maximum length of a
 * word on Linux, in bytes. */
#define WORKLOAD_ARGUMENTS_MAX 4096
#define WORKLOAD_ARGUMENT_MAX  131071

/* struct device_count: a whole number from 1 to REQUEST_COUNT_MAX, a range of two such numbers from
 * the smaller to the larger, or `all`; without leading zeros, with or without quotes. */
extern const struct field_type workload_count;

/* char *: a text as field_text, of names with | between them. */
extern const struct field_type workload_models;

/* struct capability: a text MAJOR.MINOR or MAJOR of up to three digits each, in quotes. */
extern const struct field_type workload_capability;

/* struct optional_number, millionths: a number above 0 and up to 1 with any number of decimals,
 * without quotes; rounded, but not to 0. */
extern const struct field_type workload_share;

/* struct optional_number, bytes: a whole number of bytes of up to 15 digits without leading zeros;
 * or a number with up to three decimals, an optional blank, and a unit in upper or lower case: B
 * (no decimals); K M G T and KiB ... TiB; KB ... TB. `min` is 0 or 1; with 1 the size must not be
 * 0. */
extern const struct field_type workload_size;

/* struct optional_number, nanoseconds: a whole number of seconds up to WORKLOAD_SECONDS_MAX
 * without leading zeros; or parts with units from the largest to the smallest, the last with up to
 * three decimals: d (4 digits), h (5), m (7), s (9), ms (12); or [D-]H:M:S with up to 4 digits for
 * days, 5 for hours without days, and 2 for each other part, with minutes and seconds below 60 and
 * hours after days below 24. `min` is 0 or 1; with 1 the duration must not be 0. */
extern const struct field_type workload_duration;

/* struct device_id_list: a list of 1 to DEVICE_ID_LIST_MAX device ids, or a text of up to
 * WORKLOAD_IDS_MAX bytes with ids and commas between them. Repeated ids are allowed. */
extern const struct field_type workload_device_ids;

/* char *: an absolute path of up to `max` bytes. */
extern const struct field_type workload_directory;

/* struct string_list: a list of 1 to WORKLOAD_ARGUMENTS_MAX words, any scalars but null, of up to
 * WORKLOAD_ARGUMENT_MAX bytes without zero bytes; or one word alone. The first word is not empty.
 */
extern const struct field_type workload_command;

#endif
