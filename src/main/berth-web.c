/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-web: serves the pool over HTTP. 'berth web' becomes this program.
 */
#include <stdio.h>

#include "base/error.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/programs/program_options.h"
#include "cli/verbs.h"
#include "web/web_loop.h"

static void print_url(const char *url)
{
    printf("berth web: %s\n", url);
    fflush(stdout);
}

static int read_options(const struct web_options *options, struct web_settings *settings,
                        struct berth_error *error)
{
    int code = listen_address_inherit(&settings->listener, &settings->address, error);
    char *const *host;

    if (code < 0)
        return code;
    if (settings->listener > 0 && options->listen != NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--listen: expected no address beside a socket of the service manager "
                         "(LISTEN_FDS)");
    if (settings->listener == 0 &&
        listen_address_parse(options->listen == NULL ? LISTEN_DEFAULT : options->listen,
                             &settings->address, error) < 0)
        return error_wrap(error, BERTH_ERROR_INVALID, "--listen");
    if (options->token == NULL && !listen_address_is_loopback(&settings->address))
        return error_set(
            error, BERTH_ERROR_INVALID,
            "--listen %s: other machines can reach this address, so --token FILE is required",
            listen_address_format(&settings->address).text);
    vector_for_each (host, &options->hosts) {
        if (listen_address_check_name(*host, error) < 0)
            return error_wrap(error, BERTH_ERROR_INVALID, "--host");
    }
    settings->token = options->token;
    settings->hosts = options->hosts;
    settings->inventory = options->inventory;
    settings->job_mapping = options->job_mapping;
    return 0;
}

int main(int argc, char **argv)
{
    struct web_options options = {0};
    const struct option_binding binding = {&web_option_set, &options};
    struct web_settings settings = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (!verb_begin(&verb_web, &binding, 1, argc, argv, &code))
        return code;
    code = read_options(&options, &settings, &error);
    if (code == 0)
        code = web_serve(&settings, print_url, &error);
    string_list_finish(&options.hosts);
    if (code == 0)
        return EXIT_GOOD;
    error_wrap(&error, code, "web");
    return code == BERTH_ERROR_INVALID ? output_error(&error) : output_refusal(&error);
}
