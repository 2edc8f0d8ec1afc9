/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of values that only a spec file has. What they take can be said by a regular
 * expression, so that the schema takes the same.
 */
#ifndef SPEC_WORKLOAD_TYPES_H
#define SPEC_WORKLOAD_TYPES_H

#include "spec/field.h"

/* The most digits before the unit of a size: 15 of bytes, 12 of K, 9 of M, 6 of G and 3 of T; and
 * behind the point. */
#define WORKLOAD_SIZE_DIGITS     15
#define WORKLOAD_FRACTION_DIGITS 3
/* The most seconds of a duration without a unit. */
#define WORKLOAD_SECONDS_MAX 999999999
/* The most digits of days, and of hours where they come first. */
#define WORKLOAD_DAYS_DIGITS  4U
#define WORKLOAD_HOURS_DIGITS 5U
/* The same of each part of a duration, in falling order, ended by a part without a unit: all of
 * them together fit into 64 bits of nanoseconds. */
struct workload_part {
    const char *unit;
    unsigned digits;
};
extern const struct workload_part workload_parts[];
/* The longest text with device ids, in bytes: it has fewer than DEVICE_ID_LIST_MAX. */
#define WORKLOAD_IDS_MAX 4095
/* The most words of a command, and the bytes of one: Linux takes no longer ones. */
#define WORKLOAD_ARGUMENTS_MAX 4096
#define WORKLOAD_ARGUMENT_MAX  131071

/* struct device_count: a whole number from 1 to REQUEST_COUNT_MAX, `all`, or a range of them from
 * the smaller to the larger; numbers without leading zeros; quotes do not matter. */
extern const struct field_type workload_count;

/* char *: a text as field_text, of names with | between them. */
extern const struct field_type workload_models;

/* struct capability: a text MAJOR.MINOR or MAJOR of up to three digits each, in quotes. */
extern const struct field_type workload_capability;

/* struct optional_number, millionths: a number above 0 and up to 1 with any number of decimals,
 * unquoted; rounded, but not to 0. */
extern const struct field_type workload_share;

/* struct optional_number, bytes: a whole number of bytes of up to 15 digits without leading zeros,
 * or a number, perhaps with a fraction of up to three digits, and a unit in any case, one blank
 * between them or none: B (no fraction); K M G T and KiB ... TiB; KB ... TB. `least` is 0 or 1:
 * then one digit at least is not 0. */
extern const struct field_type workload_size;

/* struct optional_number, nanoseconds: a whole number of seconds up to WORKLOAD_SECONDS_MAX
 * without leading zeros; or parts with units in falling order, the last perhaps with a fraction of
 * up to three digits: d (4 digits), h (5), m (7), s (9), ms (12); or [D-]H:M:S with up to 4 digits
 * of days, 5 of hours without days, and 2 of all else, minutes and seconds below 60, hours behind
 * days below 24. `least` is 0 or 1: then one digit at least is not 0. */
extern const struct field_type workload_duration;

/* struct device_id_list: a list of 1 to DEVICE_ID_LIST_MAX device ids, or a text of up to
 * WORKLOAD_IDS_MAX bytes with ids and commas between them. An id may be there twice. */
extern const struct field_type workload_device_ids;

/* char *: an absolute path of up to `most` bytes. */
extern const struct field_type workload_directory;

/* struct string_list: a list of 1 to WORKLOAD_ARGUMENTS_MAX words, any scalars but null, of up to
 * WORKLOAD_ARGUMENT_MAX bytes without zero bytes, the first of at least one; or that one alone. */
extern const struct field_type workload_command;

#endif
