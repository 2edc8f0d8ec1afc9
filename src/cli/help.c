/* SPDX-License-Identifier: Apache-2.0
 *
 * berth help: everything comes from the tables of verbs and options.
 */
#include <string.h>
#include <unistd.h>

#include "base/text/terminal.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/subcommands.h"

/* Lines longer than this tire the eye; shorter than that, words would not fit. */
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

int help_print_all(void)
{
    size_t width = help_width();
    struct text text = {0};

    text_append(&text,
                "berth gives out GPUs: who wants some waits a fair turn and gets them alone.\n\n"
                "Usage: berth VERB [options]\n"
                "       berth --version\n\n"
                "Verbs:\n");
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++) {
        text_append_format(&text, "  %-10s ", (*verb)->name);
        options_wrap((*verb)->summary, 13, width, &text);
    }
    text_append(&text, "\n'berth VERB --help' tells more about one.\n");
    return print_help(&text);
}

static void describe_subcommands(const struct verb *verb, size_t width, struct text *out)
{
    text_append(out, "\nWords:\n");
    for (const struct verb *const *word = verb->subcommands; *word != NULL; word++) {
        text_append_format(out, "  %-10s ", subcommand_name(*word));
        options_wrap((*word)->summary, 13, width, out);
    }
    text_append_format(out, "\n'berth %s WORD --help' tells more about one.\n", verb->name);
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
        text_append_char(&text, '\n');
        options_describe(*set, width, &text);
    }
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
    .usage = "[VERB [WORD]]",
    .summary = "list the verbs, or tell about one",
    .description =
        "Lists the verbs of berth, or tells what one verb does and which options it has.",
    .sets = no_sets,
    .operand = OPERAND_VERB,
    .run = run_help_verb,
};
