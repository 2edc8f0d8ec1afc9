/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the tables for zsh: a function per verb that passes its options and operands to
 * _arguments.
 */
#include <string.h>

#include "completion.h"

static const char *const operand_specs[] = {
    [OPERAND_CLAIM] = "'*:claim:_berth_claims'",
    [OPERAND_COMMAND] = "'(-)1:command:_command_names -e' '*::argument:_normal'",
    [OPERAND_DEVICE] = "'*:device:_berth_devices'",
    [OPERAND_FILE] = "'*:file:_files'",
    [OPERAND_JOB] = "'*:job:_berth_jobs'",
    [OPERAND_LEASE] = "'*:lease:_berth_leases'",
    [OPERAND_PROCESS] = "'1:process:_pids'",
    [OPERAND_VERB] = "'1:verb:_berth_verbs' '2:word:_berth_words'",
};

/* Appends the string for use inside single quotes, with a backslash before special characters. */
static void append_escaped(const char *string, const char *special, struct text *out)
{
    for (; *string != '\0'; string++) {
        if (strchr(special, *string) != NULL)
            text_append_char(out, '\\');
        if (*string == '\'')
            text_append(out, "'\\''");
        else
            text_append_char(out, *string);
    }
}

static void write_action(const struct option *option, struct text *out)
{
    const char *several = offer_is_list(option) ? "_sequence " : "";

    switch (offer_of(option)) {
    case OFFER_CHOICES:
    case OFFER_POLICIES:
        text_append(out, offer_is_list(option) ? "_sequence compadd - " : "(");
        offer_append_words(option, out);
        text_append(out, offer_is_list(option) ? "" : ")");
        break;
    case OFFER_DEVICES:
        text_append_format(out, "%s_berth_devices", several);
        break;
    case OFFER_DIRECTORIES:
        text_append(out, "_directories");
        break;
    case OFFER_FILES:
        text_append(out, "_files");
        break;
    case OFFER_USERS:
        text_append_format(out, "%s_users", several);
        break;
    case OFFER_FLAG:
    case OFFER_NOTHING:
        text_append_char(out, ' ');
        break;
    }
}

static void write_option(const struct verb *verb, const struct option *option, void *context)
{
    struct text *out = context;
    bool takes = option->argument != NULL;

    (void)verb;
    text_append(out, "    ");
    if (offer_is_list(option))
        text_append(out, "\\*");
    else if (option->letter != 0)
        text_append_format(out, "'(-%c --%s)'", option->letter, option->name);
    else
        text_append_format(out, "'(--%s)'", option->name);
    if (option->letter != 0)
        text_append_format(out, "{-%c%s,--%s%s}", option->letter, takes ? "+" : "", option->name,
                           takes ? "=" : "");
    else
        text_append_format(out, "--%s%s", option->name, takes ? "=" : "");
    text_append(out, "'[");
    append_escaped(option->help, "[]\\", out);
    text_append_char(out, ']');
    if (takes) {
        text_append_char(out, ':');
        append_escaped(option->argument, ":\\", out);
        text_append_char(out, ':');
        write_action(option, out);
    }
    text_append(out, "'\n");
}

static void write_words(const struct verb *verb, struct text *out)
{
    text_append(out, "_berth_words_");
    append_symbol(verb, out);
    text_append(out, "() {\n  local -a words_there=(\n");
    for (const struct verb *const *word = verb->subcommands; *word != NULL; word++) {
        text_append_format(out, "    '%s:", word_name(*word));
        append_escaped((*word)->summary, ":\\", out);
        text_append(out, "'\n");
    }
    text_append(out, "  )\n  _describe -t words word words_there\n}\n\n");
}

static void write_verb(const struct verb *verb, struct text *out)
{
    if (verb->subcommands != NULL)
        write_words(verb, out);
    text_append(out, "_berth_verb_");
    append_symbol(verb, out);
    text_append(out, "() {\n  local -a specs=(\n");
    options_each(verb, write_option, out);
    if (verb->subcommands != NULL) {
        text_append(out, "    '(-)1:word:_berth_words_");
        append_symbol(verb, out);
        text_append(out, "'\n    '*::argument:->follower'\n");
    } else if (verb->operand != OPERAND_NONE) {
        text_append_format(out, "    %s\n", operand_specs[verb->operand]);
    }
    text_append_format(out, "  )\n  _berth_arguments %s\n}\n\n",
                       verb->subcommands != NULL ? verb->name : "''");
}

void write_zsh(struct text *out)
{
    text_append(out, "_berth_verbs() {\n  local -a verbs_there=(\n");
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++) {
        text_append_format(out, "    '%s:", (*verb)->name);
        append_escaped((*verb)->summary, ":\\", out);
        text_append(out, "'\n");
    }
    text_append(out, "  )\n  _describe -t verbs verb verbs_there\n}\n\n");
    verbs_each(write_verb, out);
}
