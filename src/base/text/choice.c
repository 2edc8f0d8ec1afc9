/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/choice.h"

#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"

const char *choice_name(const struct choice *table, int value)
{
    for (const struct choice *choice = table; choice->name != NULL; choice++) {
        if (choice->value == value)
            return choice->name;
    }
    return NULL;
}

void choice_list(struct text *out, const struct choice *table, const char *separator)
{
    for (const struct choice *choice = table; choice->name != NULL; choice++) {
        if (choice != table)
            text_append(out, separator);
        text_append(out, choice->name);
    }
}

int choice_parse(const struct choice *table, const char *name, int *ret_value,
                 struct berth_error *error)
{
    struct suggestion nearest = {.wanted = name};
    struct text names = {0};
    int code;

    for (const struct choice *choice = table; choice->name != NULL; choice++) {
        if (strcmp(choice->name, name) == 0) {
            *ret_value = choice->value;
            return 0;
        }
        suggest_compare(&nearest, choice->name);
    }
    choice_list(&names, table, ", ");
    if (text_failed(&names))
        code = error_set_memory(error);
    else if (nearest.best != NULL)
        code =
            error_set(error, BERTH_ERROR_INVALID, "expected one of %s, got %s (did you mean %s?)",
                      text_string(&names), quote(name).text, nearest.best);
    else
        code = error_set(error, BERTH_ERROR_INVALID, "expected one of %s, got %s",
                         text_string(&names), quote(name).text);
    text_finish(&names);
    return code;
}
