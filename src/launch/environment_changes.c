/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/environment_changes.h"

#include <berth/error.h>
#include <string.h>

struct variable_name {
    const char *text;
    size_t length;
};

static const struct variable_name names[VARIABLE_COUNT] = {
#define NAME(variable) [variable] = {#variable, sizeof(#variable) - 1},
    VARIABLES(NAME)
#undef NAME
};

const char *launch_variable_name(enum variable variable)
{
    return names[variable].text;
}

void environment_changes_remove(struct environment_changes *changes, enum variable variable)
{
    changes->of[variable].is_ours = true;
    text_clear(&changes->of[variable].assignment);
}

struct text *environment_changes_begin_value(struct environment_changes *changes,
                                             enum variable variable)
{
    struct text *assignment = &changes->of[variable].assignment;

    environment_changes_remove(changes, variable);
    text_append_bytes(assignment, names[variable].text, names[variable].length);
    text_append_char(assignment, '=');
    return assignment;
}

void environment_changes_set(struct environment_changes *changes, enum variable variable,
                             const char *value)
{
    text_append(environment_changes_begin_value(changes, variable), value);
}

void environment_changes_set_number(struct environment_changes *changes, enum variable variable,
                                    uint64_t number)
{
    text_append_number(environment_changes_begin_value(changes, variable), number);
}

bool environment_changes_is_set(const struct environment_changes *changes, enum variable variable)
{
    const struct text *assignment = &changes->of[variable].assignment;

    return assignment->length > 0 || text_failed(assignment);
}

static bool is_inherited(const struct environment_changes *changes, const char *entry)
{
    for (enum variable variable = VARIABLE_NONE + 1; variable < VARIABLE_COUNT; variable++) {
        const struct variable_name *name = &names[variable];

        if (changes->of[variable].is_ours && entry[0] == name->text[0] &&
            strncmp(entry, name->text, name->length) == 0 && entry[name->length] == '=')
            return false;
    }
    return true;
}

int environment_changes_apply(struct environment_changes *changes, char *const *inherited,
                              struct string_list *environment)
{
    for (; *inherited != NULL; inherited++) {
        if (is_inherited(changes, *inherited) && string_list_append(environment, *inherited) < 0)
            return BERTH_ERROR_MEMORY;
    }
    for (enum variable variable = VARIABLE_NONE + 1; variable < VARIABLE_COUNT; variable++) {
        struct text *assignment = &changes->of[variable].assignment;
        char **place;

        if (text_failed(assignment))
            return BERTH_ERROR_MEMORY;
        if (assignment->length == 0)
            continue;
        place = vector_append(environment);
        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = text_detach(assignment);
    }
    return vector_append(environment) == NULL ? BERTH_ERROR_MEMORY : 0;
}

void environment_changes_finish(struct environment_changes *changes)
{
    for (enum variable variable = VARIABLE_NONE; variable < VARIABLE_COUNT; variable++)
        text_finish(&changes->of[variable].assignment);
}
