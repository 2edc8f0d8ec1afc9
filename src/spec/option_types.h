/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsers for the `parse` member of struct option. Each comment names the type of the target member
 * and its value.
 */
#ifndef SPEC_OPTION_TYPES_H
#define SPEC_OPTION_TYPES_H

#include "spec/option.h"

/* bool: true; the option has no argument. */
int option_type_flag(const struct option *option, void *member, const char *value,
                     struct berth_error *error);

/* const char *: the argument itself, not copied. */
int option_type_string(const struct option *option, void *member, const char *value,
                       struct berth_error *error);

/* char *: an allocated copy, which replaces and frees the earlier one. */
int option_type_text(const struct option *option, void *member, const char *value,
                     struct berth_error *error);

/* struct optional_number: bytes. */
int option_type_size(const struct option *option, void *member, const char *value,
                     struct berth_error *error);

/* struct optional_number: nanoseconds. */
int option_type_duration(const struct option *option, void *member, const char *value,
                         struct berth_error *error);

/* int or an enum: one of the option's choices. */
int option_type_choice(const struct option *option, void *member, const char *value,
                       struct berth_error *error);

/* struct device_id_list: the ids are appended to the list. */
int option_type_ids(const struct option *option, void *member, const char *value,
                    struct berth_error *error);

#endif
