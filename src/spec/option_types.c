/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/option_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/optional.h"
#include "base/text/quantity.h"
#include "model/machine/device_id.h"

int option_type_flag(const struct option *option, void *member, const char *value,
                     struct berth_error *error)
{
    (void)option;
    (void)value;
    (void)error;
    *(bool *)member = true;
    return 0;
}

int option_type_string(const struct option *option, void *member, const char *value,
                       struct berth_error *error)
{
    (void)option;
    (void)error;
    *(const char **)member = value;
    return 0;
}

int option_type_text(const struct option *option, void *member, const char *value,
                     struct berth_error *error)
{
    char *copy = strdup(value);

    (void)option;
    if (copy == NULL)
        return error_set_memory(error);
    free(*(char **)member);
    *(char **)member = copy;
    return 0;
}

int option_type_size(const struct option *option, void *member, const char *value,
                     struct berth_error *error)
{
    uint64_t size;
    int code = quantity_parse_size(value, &size, error);

    (void)option;
    if (code == 0)
        *(struct optional_number *)member = optional_number_of(size);
    return code;
}

int option_type_duration(const struct option *option, void *member, const char *value,
                         struct berth_error *error)
{
    int64_t duration;
    int code = quantity_parse_duration(value, &duration, error);

    (void)option;
    if (code == 0)
        *(struct optional_number *)member = optional_number_of((uint64_t)duration);
    return code;
}

int option_type_choice(const struct option *option, void *member, const char *value,
                       struct berth_error *error)
{
    return choice_parse(option->choices, value, member, error);
}

int option_type_ids(const struct option *option, void *member, const char *value,
                    struct berth_error *error)
{
    struct device_id_list *list = member;
    size_t before = list->count;
    int code = device_id_list_parse_form(list, value, DEVICE_ID_OR_INDEX, error);

    (void)option;
    if (code < 0)
        list->count = before;
    return code;
}
