/* SPDX-License-Identifier: Apache-2.0
 *
 * berthd: the daemon that runs a pool.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/user_names.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/programs/program_options.h"
#include "cli/verbs.h"
#include "daemon/clients/activation.h"
#include "daemon/configure.h"
#include "daemon/core/priority.h"
#include "daemon/daemon.h"
#include "daemon/leases/pool.h"
#include "daemon/pool_directory.h"
#include "daemon/privileges.h"
#include "sandbox/sandbox.h"
#include "spec/configuration/configuration.h"

/* Reports why the daemon did not start. The process that starts a private daemon reads the reason
 * from standard output (client/start_daemon.c). Returns the exit code. */
static int report_failure(struct berth_error *error, bool is_own)
{
    /* The daemon has ended, so a slow name service delays no client. */
    int code = user_names_explain(error, error->code);
    bool not_good =
        code == BERTH_ERROR_INVALID || code == BERTH_ERROR_SYNTAX || code == BERTH_ERROR_RANGE;

    if (is_own) {
        printf("%s%s\n", not_good ? "not good: " : "", error->message);
        fflush(stdout);
    }
    output_error(error);
    return not_good ? EXIT_USAGE : EXIT_BERTH;
}

/* Finds the configuration file: --config, else the default path. A file at the default path may be
 * missing. */
static int find_rules(const struct daemon_options *options, struct text *ret_path,
                      struct berth_error *error)
{
    if (options->configuration != NULL) {
        if (access(options->configuration, R_OK) < 0)
            return error_set_errno(error, errno, "cannot read %s", options->configuration);
        text_append(ret_path, options->configuration);
    } else {
        configuration_append_path(options->own != NULL, ret_path);
    }
    return text_failed(ret_path) ? error_set_memory(error) : 0;
}

static int read_rules(const char *path, struct berth_error *error)
{
    struct rules rules;
    int code = configure_read_rules(path, NULL, &rules, error);

    if (code == 0)
        configuration_finish(&rules.configuration);
    return code;
}

/* Runs --check-config. Returns the exit code. */
static int check_rules(const struct daemon_options *options)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text path = {0};
    struct text message = {0};
    int code = find_rules(options, &path, &error);
    int result;

    if (code == 0)
        code = read_rules(path.length > 0 ? path.bytes : NULL, &error);
    /* The daemon does not check this when it starts: programs may be installed later. */
    if (code == 0)
        code = configuration_check_programs(path.length > 0 ? path.bytes : NULL, &error);
    if (path.length == 0)
        text_append(&message, "configuration file");
    else
        text_append(&message, path.bytes);
    if (path.length > 0 && access(path.bytes, F_OK) == 0)
        text_append(&message, ": good\n");
    else
        text_append(&message, ": not found, using the defaults\n");
    result = code < 0 ? output_error(&error) : output_write(&message);
    text_finish(&path);
    text_finish(&message);
    return result;
}

/* Prints the names of a configuration with their numbers, for the daemon that started this process.
 * Returns the exit code. */
static int print_names(const char *path)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int code = configure_print_names(path, &out, &error);
    int written = output_write(&out);

    text_finish(&out);
    return code < 0 ? EXIT_USAGE : written;
}

static int open_log(const char *path, int *ret_log, struct berth_error *error)
{
    *ret_log = STDERR_FILENO;
    if (path == NULL)
        return 0;
    *ret_log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *ret_log < 0 ? error_set_errno(error, errno, "cannot write %s", path) : 0;
}

/* The pool's settings, made from the command line, and the strings that they point to. */
struct daemon_setup {
    struct text socket;
    struct text rules;
    struct text log; /* with --own: path of the log, which the starting process has opened */
    char *inventory;
    struct pool_settings settings;
};

/* Opens the log, then becomes the user of --user. This order matters: often only root can write to
 * the log's directory. */
static int become_user(const struct daemon_options *options, const char *socket, int *ret_log,
                       struct berth_error *error)
{
    struct privileges_user user = {0};
    int code;

    if (options->user == NULL)
        return open_log(options->log, ret_log, error);
    code = privileges_find_user(options->user, &user, error);
    if (code == 0)
        code = pool_directory_give(&user, socket, error);
    if (code == 0)
        code = open_log(options->log, ret_log, error);
    if (code == 0)
        code = privileges_become(&user, error);
    return code;
}

/* Refuses relative paths: clients in other directories use the path too. */
static int check_absolute(const char *option, const char *path, struct berth_error *error)
{
    return path == NULL || path[0] == '/'
               ? 0
               : error_set(error, BERTH_ERROR_INVALID, "%s: expected an absolute path, got %s",
                           option, quote(path).text);
}

/* Returns BERTH_SOCKET, where clients look for the pool first; NULL if it is unset or empty. */
static const char *socket_variable(void)
{
    const char *path = getenv("BERTH_SOCKET");

    return path != NULL && *path != '\0' ? path : NULL;
}

static int prepare_setup(const struct daemon_options *options, struct daemon_setup *setup,
                         struct berth_error *error)
{
    struct pool_settings *settings = &setup->settings;
    const char *socket = options->socket != NULL ? options->socket : socket_variable();
    int code = find_rules(options, &setup->rules, error);

    if (code == 0 && options->socket != NULL && options->own != NULL)
        code = error_set(error, BERTH_ERROR_INVALID, "expected --socket or --own, got both");
    if (code == 0)
        code = check_absolute(options->socket != NULL ? "--socket" : "BERTH_SOCKET", socket, error);
    if (code == 0)
        code = check_absolute("--own", options->own, error);
    if (code == 0 && options->user != NULL && options->own != NULL)
        code = error_set(error, BERTH_ERROR_INVALID, "expected --user or --own, got both");
    if (code == 0 && options->inventory != NULL) {
        setup->inventory = realpath(options->inventory, NULL);
        if (setup->inventory == NULL)
            code = error_set_errno(error, errno, "--inventory: cannot read %s", options->inventory);
    }
    if (options->own != NULL)
        text_append_format(&setup->socket, "%s/berth.sock", options->own);
    else
        text_append(&setup->socket, socket != NULL ? socket : MACHINE_SOCKET);
    if (code == 0 && text_failed(&setup->socket))
        code = error_set_memory(error);
    if (code == 0 && options->own == NULL)
        priority_raise();
    if (code == 0)
        code = become_user(options, setup->socket.bytes, &settings->log, error);
    if (code == 0)
        code = activation_listener(&settings->listener, &settings->owns_path, error);
    /* Clients then get this process's pid from SO_PEERCRED, instead of that of the process that
     * created the socket. */
    if (code == 0 && settings->listener >= 0)
        listen(settings->listener, SOMAXCONN);
    settings->socket = text_string(&setup->socket);
    settings->inventory = setup->inventory;
    settings->configuration = setup->rules.length > 0 ? setup->rules.bytes : NULL;
    settings->own = options->own != NULL;
    if (options->own != NULL && options->log == NULL)
        text_append_format(&setup->log, "%s/log", options->own);
    settings->log_path = options->log != NULL ? options->log : setup->log.bytes;
    settings->idle = options->idle.known ? (int64_t)options->idle.value : DURATION_MINUTE;
    settings->ready = settings->own ? STDOUT_FILENO : -1;
    return code;
}

static int run_daemon(const struct daemon_options *options)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct daemon_setup setup = {0};
    int code = prepare_setup(options, &setup, &error);

    if (code == 0)
        code = daemon_run(&setup.settings, &error);
    text_finish(&setup.socket);
    text_finish(&setup.rules);
    text_finish(&setup.log);
    free(setup.inventory);
    return code < 0 ? report_failure(&error, setup.settings.own) : EXIT_GOOD;
}

int main(int argc, char **argv)
{
    struct daemon_options options = {0};
    const struct option_binding binding = {&daemon_option_set, &options};
    int code;

    sandbox_hide();
    if (argc == 3 && strcmp(argv[1], CONFIGURE_NAMES_OPTION) == 0)
        return print_names(argv[2]);
    if (!verb_begin(&verb_daemon, &binding, 1, argc, argv, &code))
        return code;
    return options.check ? check_rules(&options) : run_daemon(&options);
}
