/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "hardware/proc/device_users.h"
#include "hardware/supervisor/stalled.h"
#include "hardware/supervisor/task_codec.h"
#include "probe/probe_channel.h"
#include "sandbox/sandbox.h"

enum { OUR_SOCKET = 3 };

struct worker {
    const struct sysroot *root;
    const struct vendor_table *const *tables;
    struct vendor_context contexts[VENDOR_DRI + 1];
    struct device_users *uses;
    struct ancestor_budget budget;
    struct subordinate_uids subordinates;
    proc_touched *touched;
    struct probe_channel channel;
    struct berth_error restriction; /* why it has no filter of system calls; code 0: it has one */
};

static const struct vendor_table *find_table(const struct worker *worker, enum vendor vendor)
{
    for (size_t i = 0; worker->tables[i] != NULL; i++) {
        if (worker->tables[i]->vendor == vendor)
            return worker->tables[i];
    }
    return NULL;
}

static int refuse_step(struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_INVALID, "cannot execute the step: unknown kind or vendor");
}

static int scan_processes(struct worker *worker, const struct step *step, struct findings *findings,
                          struct berth_error *error)
{
    const struct proc_watch watch = {.touched = worker->touched, .avoided = &step->avoided};
    int code = worker->uses != NULL ? 0 : device_users_create(&worker->uses, error);

    if (code == 0)
        code = device_users_scan(worker->uses, worker->root, &watch, findings, error);
    if (code < 0 || worker->restriction.code == 0)
        return code;
    code = machine_report_add_problem(&findings->problems, "processes",
                                      "read without capabilities and without a filter of system "
                                      "calls: %s",
                                      worker->restriction.message);
    return code < 0 ? error_set_memory(error) : 0;
}

/* Describes the process of the step's device and returns that device. */
static int describe_process(struct worker *worker, struct step *step, struct findings *findings,
                            struct berth_error *error)
{
    const struct proc_watch watch = {.touched = worker->touched};
    struct device *device = step->about.count == 1 ? step->about.items[0].device : NULL;
    int code;

    if (device == NULL || device->processes.count != 1)
        return refuse_step(error);
    stalled_read_ranges(&worker->subordinates);
    worker->budget.subordinates = &worker->subordinates;
    code = proc_describe_process(worker->root, &watch, &worker->budget, &device->processes.items[0],
                                 error);
    if (code < 0)
        return code;
    findings->found = step->about;
    step->about = (struct finding_list){0};
    return 0;
}

/* Lists the vendor's devices. Reports a missing filter as a problem, so that the administrator
 * knows that the vendor's code has more rights than it should. */
static int list_devices(struct worker *worker, const struct vendor_table *table,
                        struct vendor_context *context, struct step *step,
                        struct findings *findings, struct berth_error *error)
{
    int code = table->list(context, &step->about, findings, error);

    if (code < 0 || worker->restriction.code == 0 || findings->found.count == 0)
        return code;
    code = machine_report_add_problem(&findings->problems, vendor_name(table->vendor),
                                      "read without a filter of system calls: %s",
                                      worker->restriction.message);
    return code < 0 ? error_set_memory(error) : 0;
}

static int do_step(struct worker *worker, struct step *step, struct findings *findings,
                   struct berth_error *error)
{
    const struct vendor_table *table = find_table(worker, step->vendor);
    struct vendor_context *context = &worker->contexts[step->vendor];

    context->root = worker->root;
    if (step->kind == STEP_SCAN)
        return scan_processes(worker, step, findings, error);
    if (step->kind == STEP_DESCRIBE)
        return describe_process(worker, step, findings, error);
    if (table == NULL)
        return refuse_step(error);
    if (step->kind == STEP_LIST_CANDIDATES && table->list_candidates != NULL)
        return table->list_candidates(context, findings, error);
    if (step->kind == STEP_READ_CANDIDATE && table->read_candidate != NULL &&
        step->about.count == 1)
        return table->read_candidate(context, &step->about.items[0], findings, error);
    if (step->kind == STEP_LIST)
        return list_devices(worker, table, context, step, findings, error);
    if (step->kind == STEP_LINKS && table->links != NULL)
        return table->links(context, &step->about, findings, error);
    if (step->kind == STEP_READ && step->about.count == 1)
        return table->read(context, &step->about.items[0], findings, error);
    return refuse_step(error);
}

/* Waits until a packet can be sent or received. */
static void wait_for_channel(struct worker *worker)
{
    struct pollfd waiting = {
        .fd = worker->channel.descriptor,
        .events = POLLIN | (probe_channel_has_unsent(&worker->channel) ? POLLOUT : 0),
    };

    poll(&waiting, 1, -1);
    if ((waiting.revents & POLLOUT) != 0 && probe_channel_flush(&worker->channel) < 0)
        _exit(EXIT_FAILURE);
}

static void send_result(struct worker *worker, struct step_result *result)
{
    struct text packet = {0};
    int code = task_codec_encode_result(result, &packet);

    /* Replace a result that exceeds the limits of the format by a failure. */
    if (code == BERTH_ERROR_INVALID) {
        findings_finish(&result->findings);
        result->code = code;
        free(result->message);
        result->message = strdup("gave values out of range");
        text_clear(&packet);
        code = task_codec_encode_result(result, &packet);
    }
    if (code < 0 || probe_channel_send(&worker->channel, packet.bytes, packet.length) < 0)
        _exit(EXIT_FAILURE);
    text_finish(&packet);
    task_codec_finish_result(result);
}

static void run_steps(struct worker *worker)
{
    for (;;) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct step_result result = {0};
        const unsigned char *bytes;
        struct step step;
        size_t length;
        int code = probe_channel_receive(&worker->channel, &bytes, &length);

        if (code == 0) {
            wait_for_channel(worker);
            continue;
        }
        if (code < 0 || task_codec_decode_step(bytes, length, &step, NULL) < 0)
            return;
        result.code = do_step(worker, &step, &result.findings, &error);
        if (result.code < 0)
            result.message = strdup(error.message);
        send_result(worker, &result);
        task_codec_finish_step(&step);
    }
}

/* Frees everything, so that the leak checker finds real leaks only. */
static void finish_worker(struct worker *worker)
{
    for (size_t i = 0; worker->tables[i] != NULL; i++) {
        const struct vendor_table *table = worker->tables[i];
        struct vendor_context *context = &worker->contexts[table->vendor];

        context->root = worker->root;
        if (table->close != NULL && context->own != NULL)
            table->close(context);
    }
    device_users_destroy(worker->uses);
    vector_finish(&worker->budget);
    subordinate_uids_finish(&worker->subordinates);
    probe_channel_finish(&worker->channel);
}

/* Closes all files except the socket. While a driver blocks this process, copies of the
 * supervisor's other sockets would hide the supervisor's end from their peers. */
static void close_other_files(int socket)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* The socket may have one of the numbers that are replaced below. */
    socket = fcntl(socket, F_DUPFD_CLOEXEC, OUR_SOCKET + 1);
    if (nothing < 0 || socket < 0)
        _exit(EXIT_FAILURE);
    for (int i = 0; i < OUR_SOCKET; i++)
        dup2(nothing, i);
    if (dup2(socket, OUR_SOCKET) < 0)
        _exit(EXIT_FAILURE);
    close_range(OUR_SOCKET + 1, ~0U, 0);
}

bool worker_reads_proc(unsigned lane)
{
    return lane == LANE_PROCESSES || lane == LANE_DESCRIPTIONS;
}

/* Restricts the worker before it loads a library or parses a file. If the kernel refuses the
 * filter, the worker continues without capabilities and reports the problem. Giving up would not be
 * safer, because the devices would be used all the same. */
static void restrict_worker(struct worker *worker, unsigned lane)
{
    sandbox_enter(worker_reads_proc(lane) ? SANDBOX_PROC : SANDBOX_DRIVER, &worker->restriction);
}

static void become_worker(struct worker *worker, unsigned lane, int socket, pid_t supervisor)
{
    const struct rlimit no_core = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(EXIT_FAILURE);
    setrlimit(RLIMIT_CORE, &no_core);
    close_other_files(socket);
    restrict_worker(worker, lane);
    probe_channel_init(&worker->channel, OUR_SOCKET);
    run_steps(worker);
    finish_worker(worker);
    exit(EXIT_SUCCESS);
}

int worker_start(const struct sysroot *root, const struct vendor_table *const *tables,
                 unsigned lane, proc_touched *touched, int *ret_socket)
{
    struct worker worker = {
        .root = root,
        .tables = tables,
        .touched = touched,
        .restriction = BERTH_ERROR_INIT,
    };
    pid_t supervisor = getpid();
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        become_worker(&worker, lane, ends[1], supervisor);
    close(ends[1]);
    if (pid < 0) {
        int number = errno;

        close(ends[0]);
        return -number;
    }
    *ret_socket = ends[0];
    return pid;
}
