/* SPDX-License-Identifier: Apache-2.0
 *
 * berth adopt: a lease for a process, or a container, that runs already.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/run/claim_await.h"
#include "cli/run/container_lookup.h"
#include "cli/run/run.h"
#include "spec/option_types.h"

struct adopt_options {
    struct request_options request;
    struct notify_options notify;
    const char *container; /* NULL: it is about a pid */
    bool verbose;
};

static const struct option adopt_rows[] = {
    {.name = "container",
     .argument = "ID",
     .help = "adopt the first process of this container, and all else that is in it",
     .offset = offsetof(struct adopt_options, container),
     .parse = option_type_string},
    {.name = "verbose",
     .letter = 'v',
     .help = "say on standard error what is waited for and what was granted",
     .offset = offsetof(struct adopt_options, verbose),
     .parse = option_type_flag},
};

static const struct option_set adopt_option_set = {
    .heading = "Options",
    .options = adopt_rows,
    .count = COUNT(adopt_rows),
};

static const struct option_set *const adopt_sets[] = {
    &adopt_option_set,
    &notify_option_set,
    &request_option_set,
    NULL,
};

/* The process that is to hold the lease. */
struct adopted {
    pid_t pid;
    uint64_t started;
    struct text command; /* for people; empty: not known */
};

/* Before options are read, no device is asked for, which they cannot do: so it shows whether a
 * number was said, also the usual one. */
static bool has_device_count(const struct request *request)
{
    return request->gpus.min > 0 || request->gpus.all;
}

/* Whether something was said about which devices it is to be; else they are those that the process
 * uses. How they are held, for how long and under which name is another matter. */
static bool selects_devices(const struct request_options *options)
{
    const struct request *request = &options->request;

    return has_device_count(request) || options->count_model != NULL || request->wanted.count > 0 ||
           request->avoided.count > 0 || request->vendor_rule != VENDOR_RULE_ONE ||
           request->model != NULL || request->min_free.known || request->min_memory.known ||
           request->min_cap.known || request->policy != NULL || request->affinity != NULL;
}

/* One process cannot be several, and one that has begun cannot be told where MPS is. */
static int refuse_copies(const struct request_options *options, struct berth_error *error)
{
    if (options->request.replicas > 1)
        return error_set(error, BERTH_ERROR_INVALID, "--replicas: goes with a command");
    if (options->request.sharing == SHARING_MPS)
        return error_set(error, BERTH_ERROR_INVALID, "--sharing mps: goes with a command");
    return run_refuse_commands(options, error);
}

/* Its command line as one; whose it is may have written anything there. */
static void find_command(struct adopted *adopted)
{
    char path[64];
    char line[WIRE_TEXT_MAX];
    size_t length;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)adopted->pid);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    length = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    while (length > 0 && line[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\0')
            line[i] = ' ';
    }
    line[length] = '\0';
    utf8_append_inert(&adopted->command, line);
}

/* The pid that was said, or that of the container's first process. */
static int find_pid(const char *container, int count, char **operands, pid_t *ret_pid,
                    struct berth_error *error)
{
    uint64_t pid;

    if (container != NULL && count > 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected a pid or a container, got --container %s and %s",
                         quote(container).text, quote(operands[0]).text);
    if (container != NULL)
        return container_lookup_first_process(container, ret_pid, error);
    if (count != 1)
        return error_set(error, BERTH_ERROR_INVALID, "expected the pid of one process, got %d",
                         count);
    if (quantity_parse_number(operands[0], 1, INT_MAX, &pid, NULL) < 0)
        return error_set(error, BERTH_ERROR_INVALID, "expected a pid such as 4711, got %s",
                         quote(operands[0]).text);
    *ret_pid = (pid_t)pid;
    return 0;
}

static int find_process(const char *container, int count, char **operands, struct adopted *adopted,
                        struct berth_error *error)
{
    int code = find_pid(container, count, operands, &adopted->pid, error);

    if (code < 0)
        return code;
    adopted->started = process_stat_started(adopted->pid);
    if (adopted->started == 0)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "expected a running process, got none with pid %d", (int)adopted->pid);
    find_command(adopted);
    return text_failed(&adopted->command) ? error_set_memory(error) : 0;
}

/* With a connection: claims, and appends what is to be printed. */
static int claim_for_process(const struct adopted *adopted, struct pool_connection *connection,
                             struct adopt_options *options, bool present, struct text *out,
                             struct berth_error *error)
{
    const struct claim_facts facts = {
        .request = &options->request.request,
        .hold = LEASE_HOLD_PROCESS,
        .command = adopted->command.length == 0 ? NULL : text_string(&adopted->command),
        .inventory = connection->address.inventory,
        .pid = adopted->pid,
        .started = adopted->started,
        .present = present,
    };
    const struct claim_await_options awaiting = {.verbose = options->verbose,
                                                 .notify = options->notify};
    struct client_claim claim;
    int code = claim_init(&claim, &facts, error);

    if (code == 0)
        code = claim_await(&claim, &connection->session, &awaiting, error);
    if (code == 0 && options->verbose)
        claim_await_print_grant(&claim);
    if (code == 0)
        text_append_format(out, "%" PRIu64 "\n", claim.id);
    claim_finish(&claim);
    return code;
}

static int adopt_process(struct adopt_options *options, int count, char **operands,
                         struct text *out, struct berth_error *error)
{
    struct request *request = &options->request.request;
    struct adopted adopted = {0};
    bool present = !selects_devices(&options->request);
    struct pool_connection connection;
    int code;

    if (!has_device_count(request))
        request->gpus = (struct device_count){.min = 1, .max = 1};
    code = request_options_complete(&options->request, error);
    if (code == 0)
        code = refuse_copies(&options->request, error);
    if (code == 0)
        code = find_process(options->container, count, operands, &adopted, error);
    if (code == 0)
        code = connect_open_for_request(&connection, &options->request, error);
    if (code == 0) {
        code = claim_for_process(&adopted, &connection, options, present, out, error);
        connect_close(&connection);
    }
    text_finish(&adopted.command);
    return code;
}

static int run_adopt_verb(int argc, char **argv)
{
    struct adopt_options options = {0};
    const struct option_binding bindings[] = {
        {&adopt_option_set, &options},
        {&notify_option_set, &options.notify},
        {&request_option_set, &options.request},
    };
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int operand;
    int code;

    request_options_init(&options.request);
    options.request.request.gpus = (struct device_count){0};
    if (verb_begin_mixed(&verb_adopt, bindings, COUNT(bindings), argc, argv, &operand, &code)) {
        code = adopt_process(&options, argc - operand, argv + operand, &out, &error);
        code = code < 0 ? run_fail(&verb_adopt, &error) : output_write(&out);
    }
    text_finish(&out);
    request_options_finish(&options.request);
    return code;
}

const struct verb verb_adopt = {
    .name = "adopt",
    .usage = "PID|--container ID [options] [request]",
    .summary = "put a process that runs already under a lease",
    .description =
        "Claims devices for a process that was not started by berth and prints the id of the "
        "lease, which ends with the process. Without a word on which devices it is to be, they are "
        "those that the process uses already. Nothing is done to the process itself: what it sees "
        "of the machine stays as it is. Instead of a pid, a container can be named by its id. The "
        "exit codes are those of 'berth run'.",
    .sets = adopt_sets,
    .operand = OPERAND_PROCESS,
    .run = run_adopt_verb,
};
