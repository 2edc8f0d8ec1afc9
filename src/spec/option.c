/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/option.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"

const struct option *option_find(const struct option_set *set, const char *name, size_t length)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct option *option = &set->options[i];

        if (strlen(option->name) == length && strncmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

int option_apply(const struct option *option, void *target, const char *value,
                 struct berth_error *error)
{
    if (option->argument == NULL && value != NULL)
        return error_set(error, BERTH_ERROR_INVALID, "takes no value, got %s", quote(value).text);
    if (option->argument != NULL && value == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "expected %s, got nothing", option->argument);
    assert(option->parse != NULL);
    return option->parse(option, (char *)target + option->offset, value, error);
}
