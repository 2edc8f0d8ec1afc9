/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/exit_codes.h"

static void print_error(const struct berth_error *error)
{
    const char *message =
        error->message[0] == '\0' ? berth_error_describe(error->code) : error->message;

    fprintf(stderr, "berth: %s\n", message);
}

int output_error(const struct berth_error *error)
{
    print_error(error);
    return error->code == BERTH_ERROR_MEMORY ? EXIT_BERTH : EXIT_USAGE;
}

int output_refusal(const struct berth_error *error)
{
    print_error(error);
    return exit_code_of_refusal(error->code);
}

int output_write(const struct text *text)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (text_failed(text)) {
        error_set_memory(&error);
        return output_error(&error);
    }
    if (fwrite(text_string(text), 1, text->length, stdout) != text->length || fflush(stdout) != 0) {
        error_set_errno(&error, errno, "cannot write standard output");
        output_error(&error);
        return EXIT_BERTH;
    }
    return EXIT_GOOD;
}
