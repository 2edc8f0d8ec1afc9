/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

const struct verb *const verbs[] = {
    &verb_devices,
    &verb_plan,
    &verb_help,
    NULL,
};

const struct verb *verb_find(const char *name)
{
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++) {
        if (strcmp((*verb)->name, name) == 0)
            return *verb;
    }
    return NULL;
}

int verb_fail_unknown(const char *name)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct nearest nearest = {.wanted = name};

    for (const struct verb *const *verb = verbs; *verb != NULL; verb++)
        nearest_offer(&nearest, (*verb)->name);
    if (nearest.best != NULL)
        error_set(&error, BERTH_ERROR_INVALID, "no verb %s, did you mean '%s'?", quote(name).text,
                  nearest.best);
    else
        error_set(&error, BERTH_ERROR_INVALID, "no verb %s ('berth help' lists them)",
                  quote(name).text);
    return output_error(&error);
}

bool verb_begin(const struct verb *verb, const struct option_binding *bindings, size_t count,
                int argc, char **argv, int *ret_exit)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int operand;
    int code = options_parse(bindings, count, argc, argv, &operand, &error);

    if (code == OPTIONS_HELP) {
        *ret_exit = help_print_verb(verb);
        return false;
    }
    if (code == OPTIONS_GO_ON && operand < argc)
        code = error_set(&error, BERTH_ERROR_INVALID, "wanted only options, found %s",
                         quote(argv[operand]).text);
    if (code < 0) {
        error_wrap(&error, code, "%s", verb->name);
        *ret_exit = output_error(&error);
        return false;
    }
    return true;
}

static int print_version(void)
{
    struct text text = {0};
    int code;

    text_append(&text, "berth " BERTH_VERSION "\n");
    code = output_write(&text);
    text_finish(&text);
    return code;
}

int cli_main(int argc, char **argv)
{
    const struct verb *verb;

    if (argc < 2) {
        fprintf(stderr, "berth: wanted a verb, found none ('berth help' lists them)\n");
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print_all();
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    verb = verb_find(argv[1]);
    return verb == NULL ? verb_fail_unknown(argv[1]) : verb->run(argc - 1, argv + 1);
}
