/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/child_environment.h"

#include "base/text/text.h"
#include "base/text/utf8.h"

static void add_entry(struct child_environment *variables, struct text *entry)
{
    if (text_failed(entry) || string_list_append(&variables->list, text_string(entry)) < 0)
        variables->failed = true;
    text_finish(entry);
}

void child_environment_add(struct child_environment *variables, const char *name, const char *value)
{
    struct text entry = {0};

    if (value == NULL)
        return;
    text_append_format(&entry, "%s=", name);
    utf8_append_inert(&entry, value);
    add_entry(variables, &entry);
}

void child_environment_add_number(struct child_environment *variables, const char *name,
                                  uint64_t value)
{
    struct text entry = {0};

    text_append_format(&entry, "%s=", name);
    text_append_number(&entry, value);
    add_entry(variables, &entry);
}
