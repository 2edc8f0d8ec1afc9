/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses arguments as request options, as a verb does.
 */
#ifndef TESTS_REQUEST_LINES_H
#define TESTS_REQUEST_LINES_H

#include "support/unit.h"

#include "cli/options.h"
#include "spec/request_options.h"

enum { REQUEST_WORDS_MAX = 12 };

/* The arguments of one command line, up to the first NULL, without argv[0]. */
struct request_words {
    const char *words[REQUEST_WORDS_MAX];
};

/* Initialises the options, parses the arguments and completes the request. The caller finishes the
 * options, also on failure. Returns 0 or the negative code. */
static inline int request_words_read(const struct request_words *line,
                                     struct request_options *ret_options, struct berth_error *error)
{
    struct option_binding bindings[OPTION_SETS_MAX];
    size_t count = 0;
    char *argv[REQUEST_WORDS_MAX + 2] = {(char *)"verb"};
    int argc = 1;
    int operand;
    int code;

    while (argc <= REQUEST_WORDS_MAX && line->words[argc - 1] != NULL) {
        argv[argc] = (char *)line->words[argc - 1];
        argc++;
    }
    for (; request_option_sets[count] != NULL; count++)
        bindings[count] = (struct option_binding){request_option_sets[count], ret_options};
    request_options_init(ret_options);
    code = options_parse(bindings, count, argc, argv, &operand, error);
    if (code < 0)
        return code;
    assert_int_equal(code, OPTIONS_CONTINUE);
    assert_int_equal(operand, argc);
    return request_options_complete(ret_options, error);
}

#endif
