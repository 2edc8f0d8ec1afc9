/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any arguments, one per line or ended by zero bytes, as the options of a request.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "spec/request_options.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 64 };

/* Splits `line` into arguments and points argv at them, after the verb's name. Returns argc. */
static int split(char *line, size_t size, char **argv)
{
    char *end = line + size;
    int argc = 0;

    argv[argc++] = (char *)"verb";
    for (char *word = line; word < end && argc < WORDS_MAX;) {
        argv[argc++] = word;
        while (word < end && *word != '\0' && *word != '\n')
            word++;
        *word++ = '\0';
    }
    argv[argc] = NULL;
    return argc;
}

static void describe(const struct request_options *options)
{
    struct text words = {0};

    require(request_validate(&options->request, NULL) == 0);
    request_describe(&options->request, &words);
    require_lines(&words);
    require(strchr(words.bytes, '\n') == NULL);
    text_finish(&words);
}

typedef int parse_words(const struct option_binding *bindings, size_t count, int argc, char **argv,
                        int *ret_operand, struct berth_error *error);

static void try_words(parse_words *parse, int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options;
    struct option_binding bindings[OPTION_SETS_MAX];
    size_t count = 0;
    int operand = 0;
    int code;

    for (; request_option_sets[count] != NULL; count++)
        bindings[count] = (struct option_binding){request_option_sets[count], &options};
    request_options_init(&options);
    code = parse(bindings, count, argc, argv, &operand, &error);
    if (code == OPTIONS_CONTINUE) {
        require(operand >= 1 && operand <= argc);
        code = request_options_complete(&options, &error);
        if (code == 0)
            describe(&options);
    }
    if (code < 0)
        require_message(&error, code);
    else
        require(error.message[0] == '\0');
    request_options_finish(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[WORDS_MAX + 1];
    char *line = malloc(size + 1);
    int argc;

    require(line != NULL);
    if (size > 0)
        memcpy(line, data, size);
    line[size] = '\0';
    argc = split(line, size, argv);
    try_words(options_parse, argc, argv);
    try_words(options_parse_mixed, argc, argv);
    free(line);
    return 0;
}
