/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the tables for fish: a `complete` command per verb, option and kind of operand.
 */
#include "completion.h"

static const char *const operand_arguments[] = {
    [OPERAND_CLAIM] = "-a '(__berth_ids claims)'",
    [OPERAND_DEVICE] = "-a '(__berth_ids devices)'",
    [OPERAND_FILE] = "-F",
    [OPERAND_JOB] = "-a '(__berth_ids jobs)'",
    [OPERAND_LEASE] = "-a '(__berth_ids leases)'",
    [OPERAND_PROCESS] = "-a '(__fish_complete_pids)'",
    [OPERAND_VERB] = NULL,
};

/* Appends the string in single quotes, where fish knows only the escapes \\ and \'. */
static void append_fish(const char *string, struct text *out)
{
    text_append_char(out, '\'');
    for (; *string != '\0'; string++) {
        if (*string == '\'' || *string == '\\')
            text_append_char(out, '\\');
        text_append_char(out, *string);
    }
    text_append_char(out, '\'');
}

static void write_offer(const struct option *option, struct text *out)
{
    bool several = offer_is_list(option);

    switch (offer_of(option)) {
    case OFFER_CHOICES:
    case OFFER_POLICIES:
        text_append(out, several ? " -x -a '(__berth_list " : " -x -a '");
        offer_append_words(option, out);
        text_append(out, several ? ")'" : "'");
        break;
    case OFFER_DEVICES:
        text_append(out, several ? " -x -a '(__berth_list (__berth_ids devices))'"
                                 : " -x -a '(__berth_ids devices)'");
        break;
    case OFFER_DIRECTORIES:
        text_append(out, " -x -a '(__berth_directories)'");
        break;
    case OFFER_FILES:
        text_append(out, " -r -F");
        break;
    case OFFER_USERS:
        text_append(out, " -x -a '(__fish_complete_users)'");
        break;
    case OFFER_NOTHING:
        text_append(out, " -x");
        break;
    case OFFER_FLAG:
        break;
    }
}

static void write_option(const struct verb *verb, const struct option *option, void *context)
{
    struct text *out = context;

    text_append_format(out, "complete -c berth -n '%s %s'",
                       verb->subcommands != NULL ? "__berth_before_word" : "__berth_at",
                       verb->name);
    if (option->letter != 0)
        text_append_format(out, " -s %c", option->letter);
    text_append_format(out, " -l %s", option->name);
    write_offer(option, out);
    text_append(out, " -d ");
    append_fish(option->help, out);
    text_append_char(out, '\n');
}

static void write_taking(const struct verb *verb, const struct option *option, void *context)
{
    struct text *out = context;

    (void)verb;
    if (option->argument == NULL)
        return;
    text_append_format(out, " --%s", option->name);
    if (option->letter != 0)
        text_append_format(out, " -%c", option->letter);
}

static void write_words(const struct verb *verb, struct text *out)
{
    for (const struct verb *const *word = verb->subcommands; *word != NULL; word++) {
        text_append_format(out, "complete -c berth -n '__berth_before_word %s' -a %s -d ",
                           verb->name, word_name(*word));
        append_fish((*word)->summary, out);
        text_append_format(out, "\ncomplete -c berth -n '__berth_at help %s' -a %s -d ", verb->name,
                           word_name(*word));
        append_fish((*word)->summary, out);
        text_append_char(out, '\n');
    }
}

static void write_verb(const struct verb *verb, struct text *out)
{
    text_append_char(out, '\n');
    if (verb->subcommands != NULL)
        write_words(verb, out);
    if (verb->operand == OPERAND_COMMAND) {
        text_append_format(out, "set -g __berth_takes_%s", verb->name);
        options_each(verb, write_taking, out);
        text_append_format(out,
                           "\ncomplete -c berth -n '__berth_in_command %s' -x"
                           " -a '(__berth_command)'\n",
                           verb->name);
    } else if (operand_arguments[verb->operand] != NULL) {
        text_append_format(out, "complete -c berth -n '__berth_at %s' %s\n", verb->name,
                           operand_arguments[verb->operand]);
    }
    options_each(verb, write_option, out);
}

void write_fish(struct text *out)
{
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++) {
        text_append_format(out, "complete -c berth -n '__berth_before_verb' -a %s -d ",
                           (*verb)->name);
        append_fish((*verb)->summary, out);
        text_append_format(out, "\ncomplete -c berth -n '__berth_before_help' -a %s -d ",
                           (*verb)->name);
        append_fish((*verb)->summary, out);
        text_append_char(out, '\n');
    }
    verbs_each(write_verb, out);
}
