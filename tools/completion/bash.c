/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the tables for bash: a function per verb with its options and operands.
 */
#include "completion.h"

static const char *const operand_words[] = {
    [OPERAND_NONE] = "",          [OPERAND_CLAIM] = "claims",      [OPERAND_COMMAND] = "command",
    [OPERAND_DEVICE] = "devices", [OPERAND_FILE] = "files",        [OPERAND_JOB] = "jobs",
    [OPERAND_LEASE] = "leases",   [OPERAND_PROCESS] = "processes", [OPERAND_VERB] = "verbs",
};

static const char *const offer_words[] = {
    [OFFER_NOTHING] = "nothing", [OFFER_CHOICES] = "words",
    [OFFER_DEVICES] = "devices", [OFFER_DIRECTORIES] = "directories",
    [OFFER_FILES] = "files",     [OFFER_POLICIES] = "words",
    [OFFER_USERS] = "users",
};

static void write_flag(const struct verb *verb, const struct option *option, void *context)
{
    struct text *out = context;

    (void)verb;
    if (option->argument != NULL)
        return;
    text_append_format(out, " --%s", option->name);
    if (option->letter != 0)
        text_append_format(out, " -%c", option->letter);
}

/* Appends what the shell offers for the option's value, after "list" if it is a list. */
static void write_offer(const struct option *option, struct text *out)
{
    enum offer offer = offer_of(option);
    struct text subcommands = {0};

    if (offer_is_list(option))
        text_append(&subcommands, "list ");
    text_append(&subcommands, offer_words[offer]);
    if (offer == OFFER_CHOICES || offer == OFFER_POLICIES) {
        text_append_char(&subcommands, ' ');
        offer_append_words(option, &subcommands);
    }
    append_quoted(text_string(&subcommands), out);
    out->failed |= text_failed(&subcommands);
    text_finish(&subcommands);
}

static void write_taking(const struct verb *verb, const struct option *option, void *context)
{
    struct text *out = context;

    (void)verb;
    if (option->argument == NULL)
        return;
    text_append_format(out, "        [--%s]=", option->name);
    write_offer(option, out);
    text_append_char(out, '\n');
    if (option->letter == 0)
        return;
    text_append_format(out, "        [-%c]=", option->letter);
    write_offer(option, out);
    text_append_char(out, '\n');
}

static void write_verb(const struct verb *verb, struct text *out)
{
    text_append(out, "_berth_verb_");
    append_symbol(verb, out);
    text_append_format(out, "()\n{\n    operands='%s'\n    followers='",
                       operand_words[verb->operand]);
    if (verb->subcommands != NULL) {
        for (const struct verb *const *word = verb->subcommands; *word != NULL; word++)
            text_append_format(out, "%s%s", word == verb->subcommands ? "" : " ", word_name(*word));
    }
    text_append(out, "'\n    flags='");
    options_each(verb, write_flag, out);
    text_append(out, "'\n    takes=(\n");
    options_each(verb, write_taking, out);
    text_append(out, "    )\n}\n\n");
}

void write_bash(struct text *out)
{
    text_append(out, "_berth_verbs='");
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++)
        text_append_format(out, "%s%s", verb == verbs ? "" : " ", (*verb)->name);
    text_append(out, "'\n\n");
    verbs_each(write_verb, out);
}
