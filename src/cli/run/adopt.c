/* SPDX-License-Identifier: Apache-2.0
 *
 * berth adopt: puts a running process or container under a lease.
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
#include "cli/kept_commands.h"
#include "cli/output.h"
#include "cli/run/claim_await.h"
#include "cli/run/container_lookup.h"
#include "cli/run/run.h"
#include "spec/option_types.h"

struct adopt_options {
    struct request_options request;
    struct notify_options notify;
    const char *container; /* NULL: a pid is given instead */
    bool verbose;
};

static const struct option adopt_rows[] = {
    {.name = "container",
     .argument = "ID",
     .help = "adopt all processes of this container",
     .offset = offsetof(struct adopt_options, container),
     .parse = option_type_string},
    {.name = "verbose",
     .letter = 'v',
     .help = "print the waiting reasons and the granted devices",
     .offset = offsetof(struct adopt_options, verbose),
     .parse = option_type_flag},
};

static const struct option_set adopt_option_set = {
    .heading = "Options",
    .options = adopt_rows,
    .count = COUNT(adopt_rows),
};

static const struct option_set *const adopt_sets[] = {
    &adopt_option_set,    &request_device_set, &request_sliced_sharing_set, &request_queue_set,
    &request_waiting_set, &notify_option_set,  &request_file_set,           NULL,
};

/* The process that will hold the lease. */
struct adopted {
    pid_t pid;
    uint64_t started;
    struct text command; /* shown in status; empty: unknown */
};

/* Returns true if a number of devices was given. Before parsing, the number is 0, which no option
 * can set. */
static bool has_device_count(const struct request *request)
{
    return request->gpus.min > 0 || request->gpus.all;
}

/* Returns true if an option selects devices. If none does, the lease covers the devices that the
 * process already uses. Options such as --time and --name do not count. */
static bool selects_devices(const struct request_options *options)
{
    const struct request *request = &options->request;

    return has_device_count(request) || options->count_model != NULL || request->wanted.count > 0 ||
           request->avoided.count > 0 || request->vendor_rule != VENDOR_RULE_ONE ||
           request->model != NULL || request->min_free.known || request->min_memory.known ||
           request->min_cap.known || request->policy != NULL || request->affinity != NULL;
}

/* Refuses replicas, because there is one process, and MPS, because the process already runs and
 * cannot get the MPS variables. */
static int refuse_copies(const struct request_options *options, struct berth_error *error)
{
    if (options->request.replicas > 1)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--replicas: expected 1 for a running process, got %u",
                         options->request.replicas);
    if (options->request.sharing == SHARING_MPS)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--sharing: mps must be set up before a process starts; use 'berth run'");
    return run_refuse_commands(options, error);
}

/* Reads the process's command line. It is untrusted: the process can write anything there. */
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

/* Finds the pid: the operand, or the pid of the container's first process. */
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
        return error_set(error, BERTH_ERROR_INVALID, "expected one pid, got %d", count);
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
        return error_set(error, BERTH_ERROR_NOT_FOUND, "cannot adopt process %d: no such process",
                         (int)adopted->pid);
    find_command(adopted);
    return text_failed(&adopted->command) ? error_set_memory(error) : 0;
}

/* Claims the devices, and appends the lease's id to the output. */
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
    if (code == 0) {
        kept_commands_add(&connection->address, &claim);
        text_append_format(out, "%" PRIu64 "\n", claim.id);
    }
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
        code = connect_open_for_request(&connection, &options->request, verb_adopt.name, error);
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
    struct option_binding bindings[OPTION_SETS_MAX] = {
        {&adopt_option_set, &options},
        {&notify_option_set, &options.notify},
    };
    size_t count = verb_bind_request(&verb_adopt, bindings, 2, &options.request);
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int operand;
    int code;

    request_options_init(&options.request);
    options.request.request.gpus = (struct device_count){0};
    if (verb_begin_mixed(&verb_adopt, bindings, count, argc, argv, &operand, &code)) {
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
    .summary = "put a running process under a lease",
    .description =
        "Claims devices for a process that berth did not start, and prints the id of the lease. "
        "The lease ends with the process. By default it covers the devices that the process "
        "already uses. The process itself does not change: it still sees the same devices. The "
        "exit codes are those of 'berth run'.",
    .examples = "berth adopt 4711\n"
                "berth adopt --container 3f2a9c -n 2 --time 8h\n",
    .sets = adopt_sets,
    .operand = OPERAND_PROCESS,
    .run = run_adopt_verb,
};
