/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of values that only the configuration uses.
 */
#ifndef SPEC_CONFIGURATION_CONFIGURATION_TYPES_H
#define SPEC_CONFIGURATION_CONFIGURATION_TYPES_H

#include "spec/configuration/configuration.h"
#include "spec/field.h"

/* uint32_t: a user or a group, by name or number; this machine must know the name. */
extern const struct field_type configuration_user;
extern const struct field_type configuration_group;

/* struct principals: a mapping of users and groups, or a list of users. */
extern const struct field_type configuration_principals;

/* struct configuration: sets each_user and limits. */
extern const struct field_type configuration_limits;

/* struct device_id_list: without repeated ids. */
extern const struct field_type configuration_device_ids;

/* struct reserved_list: a mapping of device ids to users and groups, or to `nobody`. */
extern const struct field_type configuration_reserved;

/* struct string_list: names of programs. */
extern const struct field_type configuration_program_names;

/* bool: yes or no. */
extern const struct field_type configuration_switch;

/* char *: the absolute path of a program. */
extern const struct field_type configuration_program;

/* struct string_list: a command. */
extern const struct field_type configuration_command;

/* The records of prolog and epilog; the target is a struct check_command. */
extern const struct record configuration_prolog;
extern const struct record configuration_epilog;

#endif
