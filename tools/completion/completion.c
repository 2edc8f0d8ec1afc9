/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

#include <string.h>

#include "cli/programs/sim_options.h"
#include "engine/policy/policies.h"
#include "sim/baselines/baselines.h"

static const struct option help_option = {
    .name = "help",
    .letter = 'h',
    .help = "show this help",
};

static bool starts(const char *string, const char *with)
{
    return strncmp(string, with, strlen(with)) == 0;
}

enum offer offer_of(const struct option *option)
{
    if (option->argument == NULL)
        return OFFER_FLAG;
    if (option->choices != NULL)
        return OFFER_CHOICES;
    if (strcmp(option->name, "policy") == 0)
        return OFFER_POLICIES;
    if (strcmp(option->name, "user") == 0)
        return OFFER_USERS;
    if (strcmp(option->argument, "ID,...") == 0 || starts(option->argument, "DEVICE"))
        return OFFER_DEVICES;
    if (starts(option->argument, "DIR"))
        return OFFER_DIRECTORIES;
    if (starts(option->argument, "FILE") || strcmp(option->argument, "PATH") == 0)
        return OFFER_FILES;
    return OFFER_NOTHING;
}

bool offer_is_list(const struct option *option)
{
    return option->argument != NULL && strstr(option->argument, ",...") != NULL;
}

static bool is_of_set(const struct option *option, const struct option_set *set)
{
    return option >= set->options && option < set->options + set->count;
}

/* Appends the policies' names, each but the first after a blank. */
static void append_policies(const struct policy *const *list, bool first, struct text *out)
{
    for (; *list != NULL; list++) {
        text_append(out, first ? "" : " ");
        text_append(out, (*list)->name);
        first = false;
    }
}

void offer_append_words(const struct option *option, struct text *out)
{
    if (option->choices != NULL) {
        choice_list(out, option->choices, " ");
        return;
    }
    append_policies(policies, true, out);
    if (is_of_set(option, &sim_place_option_set) || is_of_set(option, &sim_queue_option_set))
        append_policies(baselines, false, out);
}

/* Returns true if a set before this one has an option of this name. */
static bool is_repeated(const struct verb *verb, const struct option_set *const *before,
                        const char *name)
{
    for (const struct option_set *const *set = verb->sets; set != before; set++) {
        if (option_find(*set, name, strlen(name)) != NULL)
            return true;
    }
    return false;
}

void options_each(const struct verb *verb,
                  void each(const struct verb *verb, const struct option *option, void *context),
                  void *context)
{
    each(verb, &help_option, context);
    for (const struct option_set *const *set = verb->sets; *set != NULL; set++) {
        for (size_t i = 0; i < (*set)->count; i++) {
            const struct option *option = &(*set)->options[i];

            if (!option->hidden && !is_repeated(verb, set, option->name))
                each(verb, option, context);
        }
    }
}

void verbs_each(void each(const struct verb *verb, struct text *out), struct text *out)
{
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++) {
        each(*verb, out);
        if ((*verb)->subcommands == NULL)
            continue;
        for (const struct verb *const *word = (*verb)->subcommands; *word != NULL; word++)
            each(*word, out);
    }
}

const char *word_name(const struct verb *word)
{
    return strchr(word->name, ' ') + 1;
}

void append_symbol(const struct verb *verb, struct text *out)
{
    for (const char *at = verb->name; *at != '\0'; at++)
        text_append_char(out, *at == ' ' ? '_' : *at);
}

void append_quoted(const char *string, struct text *out)
{
    text_append_char(out, '\'');
    for (; *string != '\0'; string++) {
        if (*string == '\'')
            text_append(out, "'\\''");
        else
            text_append_char(out, *string);
    }
    text_append_char(out, '\'');
}
