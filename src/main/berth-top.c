/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-top: shows a pool on a full screen, live. 'berth top' becomes this program.
 */
#include <signal.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/programs/program_options.h"
#include "cli/verbs.h"
#include "top/top.h"

static int check_interval(const struct top_options *options, struct berth_error *error)
{
    if (!options->interval.known || options->interval.value >= TOP_INTERVAL_MIN)
        return 0;
    return error_set(error, BERTH_ERROR_INVALID, "--interval: expected at least %s, got %s",
                     quantity_format_duration(TOP_INTERVAL_MIN).text,
                     quantity_format_duration((int64_t)options->interval.value).text);
}

int main(int argc, char **argv)
{
    struct top_options options = {0};
    const struct option_binding binding = {&top_option_set, &options};
    struct berth_error error = BERTH_ERROR_INIT;
    struct top_settings settings;
    int code;

    if (!verb_begin(&verb_top, &binding, 1, argc, argv, &code))
        return code;
    settings = (struct top_settings){
        .inventory = options.inventory,
        .column = options.column,
        .filter = options.filter,
        .interval = options.interval.known ? (int64_t)options.interval.value : TOP_INTERVAL_MIN,
    };
    code = check_interval(&options, &error);
    if (code == 0)
        code = top_run(&settings, &error);
    if (code < 0) {
        error_wrap(&error, code, "top");
        return output_refusal(&error);
    }
    /* End by the signal that ended top, so that the parent process sees it. */
    if (code > 0)
        raise(code);
    return EXIT_GOOD;
}
