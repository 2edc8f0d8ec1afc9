/* SPDX-License-Identifier: Apache-2.0
 *
 * berth help: the texts come from the tables of verbs and options.
 */
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/terminal.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/subcommands.h"

/* Longer lines are hard to read; shorter lines have no room for the help texts. */
enum { WIDTH_MAX = 96, WIDTH_MIN = 50 };

static size_t help_width(void)
{
    size_t width = terminal_detect(STDOUT_FILENO).width;

    if (width == 0)
        return 80;
    if (width < WIDTH_MIN)
        return WIDTH_MIN;
    return width > WIDTH_MAX ? WIDTH_MAX : width;
}

static int print_help(struct text *text)
{
    int code = output_write(text);

    text_finish(text);
    return code;
}

/* The groups of the overview: each begins with the verb named here, in the order of verbs[]. */
static const struct {
    const struct verb *first;
    const char *title;
} groups[] = {
    {&verb_run, "Run jobs"},
    {&verb_status, "Look"},
    {&verb_extend, "Manage"},
    {&verb_daemon, "Set up"},
};

/* Appends the title of the group that begins with this verb, if one does. */
static void describe_group(const struct verb *verb, struct text *out)
{
    for (size_t i = 0; i < COUNT(groups); i++) {
        if (groups[i].first == verb)
            text_append_format(out, "\n%s:\n", groups[i].title);
    }
}

int help_print_all(void)
{
    size_t width = help_width();
    struct text text = {0};

    text_append(&text, "berth shares GPUs: each job waits its turn and gets GPUs of its own.\n\n"
                       "Usage: berth VERB [options]\n"
                       "       berth --version\n");
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++) {
        describe_group(*verb, &text);
        text_append_format(&text, "  %-10s ", (*verb)->name);
        options_wrap((*verb)->summary, 13, width, &text);
    }
    text_append(&text, "\n'berth VERB --help' explains a verb and its options.\n");
    return print_help(&text);
}

static void describe_subcommands(const struct verb *verb, size_t width, struct text *out)
{
    text_append(out, "\nSubcommands:\n");
    for (const struct verb *const *sub = verb->subcommands; *sub != NULL; sub++) {
        text_append_format(out, "  %-10s ", subcommand_name(*sub));
        options_wrap((*sub)->summary, 13, width, out);
    }
    text_append_format(
        out, "\n'berth %s SUBCOMMAND --help' explains a subcommand and its options.\n", verb->name);
}

/* Appends the examples, each line indented. */
static void describe_examples(const char *examples, struct text *out)
{
    text_append(out, "\nExamples:\n");
    while (*examples != '\0') {
        size_t length = strcspn(examples, "\n");

        text_append_format(out, "  %.*s\n", (int)length, examples);
        examples += examples[length] == '\0' ? length : length + 1;
    }
}

int help_print_verb(const struct verb *verb)
{
    size_t width = help_width();
    struct text text = {0};

    text_append_format(&text, "Usage: berth %s%s%s\n\n", verb->name,
                       *verb->usage == '\0' ? "" : " ", verb->usage);
    options_wrap(verb->description, 0, width, &text);
    if (verb->subcommands != NULL)
        describe_subcommands(verb, width, &text);
    for (const struct option_set *const *set = verb->sets; *set != NULL; set++) {
        if (set == verb->sets || strcmp((*set)->heading, set[-1]->heading) != 0)
            text_append_format(&text, "\n%s:\n", (*set)->heading);
        options_describe(*set, width, &text);
    }
    if (verb->examples != NULL)
        describe_examples(verb->examples, &text);
    return print_help(&text);
}

static int run_help_verb(int argc, char **argv)
{
    const struct verb *verb;
    int code;

    if (argc < 2)
        return help_print_all();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print_verb(&verb_help);
    verb = verb_find(argv[1]);
    if (verb == NULL)
        return verb_fail_unknown(argv[1]);
    if (argc > 2 && verb->subcommands != NULL)
        verb = subcommand_find(verb, argc - 1, argv + 1, &code);
    return verb == NULL ? code : help_print_verb(verb);
}

static const struct option_set *const no_sets[] = {NULL};

const struct verb verb_help = {
    .name = "help",
    .usage = "[VERB [SUBCOMMAND]]",
    .summary = "list the verbs, or explain one",
    .description = "Lists the verbs of berth, or explains one verb and its options.",
    .examples = "berth help run\n"
                "berth help spec check\n",
    .sets = no_sets,
    .operand = OPERAND_VERB,
    .run = run_help_verb,
};
