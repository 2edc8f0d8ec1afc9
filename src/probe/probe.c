/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/probe.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/program.h"
#include "base/system/spawn_detached.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "model/helper_variables.h"

enum { DEADLINE_MIN = 10 * 1000 * 1000 };
#define DEADLINE_MAX INT64_C(600000000000)

int probe_deadline_parse(const char *text, int64_t *ret_deadline, struct berth_error *error)
{
    int64_t deadline;
    int code = quantity_parse_duration(text, &deadline, error);

    if (code < 0)
        return code;
    if (deadline < DEADLINE_MIN || deadline > DEADLINE_MAX)
        return error_set(error, BERTH_ERROR_RANGE, "expected 10ms to 10m, got %s",
                         quote(text).text);
    *ret_deadline = deadline;
    return 0;
}

int probe_deadline(int64_t *ret_deadline, struct berth_error *error)
{
    const char *given = getenv("BERTH_PROBE_DEADLINE");
    int code;

    if (given == NULL || *given == '\0') {
        *ret_deadline = PROBE_DEADLINE_DEFAULT;
        return 0;
    }
    code = probe_deadline_parse(given, ret_deadline, error);
    return code < 0 ? error_wrap(error, code, "BERTH_PROBE_DEADLINE") : 0;
}

int probe_spawn_program(int socket, struct berth_error *error)
{
    static char *arguments[] = {(char *)"berth-probe", NULL};
    const char *named = getenv("BERTH_PROBE");
    char found[PATH_MAX];
    struct detached_program detached = {
        .program = named,
        .arguments = arguments,
        .input = socket,
        .output = -1,
        .log = -1,
        .listening = -1,
        .dropped = helper_variables_dropped,
        .paths = helper_variables_paths,
    };

    if (named == NULL || *named == '\0') {
        program_find("berth-probe", found, sizeof(found));
        detached.program = found;
    } else if (*named != '/' && realpath(named, found) != NULL) {
        detached.program = found; /* the program starts in another directory */
    }
    return spawn_detached(&detached, error);
}

static int spawn_here(void *context, int socket, struct berth_error *error)
{
    (void)context;
    return probe_spawn_program(socket, error);
}

int probe_start_with(struct probe *probe, probe_spawn_function *spawn, void *context,
                     struct berth_error *error)
{
    int ends[2];
    int code;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set_errno(error, errno, "cannot create a socket pair");
    code = spawn(context, ends[1], error);
    close(ends[1]);
    if (code < 0) {
        close(ends[0]);
        return code;
    }
    probe_channel_init(&probe->channel, ends[0]);
    probe->is_open = true;
    return 0;
}

int probe_start(struct probe *probe, struct berth_error *error)
{
    return probe_start_with(probe, spawn_here, NULL, error);
}

void probe_finish(struct probe *probe)
{
    if (probe->is_open) {
        /* Closing is not enough: a child that was forked meanwhile may have a copy of the
         * descriptor. */
        shutdown(probe->channel.descriptor, SHUT_RDWR);
        probe_channel_finish(&probe->channel);
    }
    probe->is_open = false;
}

static int set_ended_error(struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_IO, "cannot read the hardware: berth-probe has ended");
}

int probe_send(struct probe *probe, struct probe_request *request, struct berth_error *error)
{
    struct text packet = {0};
    int code;

    request->number = ++probe->last_number;
    code = probe_request_encode(request, &packet);
    if (code == 0)
        code = probe_channel_send(&probe->channel, packet.bytes, packet.length);
    text_finish(&packet);
    return code == 0                    ? 0
           : code == BERTH_ERROR_MEMORY ? error_set_memory(error)
                                        : set_ended_error(error);
}

int probe_receive(struct probe *probe, struct probe_answer *ret_answer, struct berth_error *error)
{
    const unsigned char *bytes;
    size_t length;
    int code = probe_channel_receive(&probe->channel, &bytes, &length);

    if (code == 1) {
        code = probe_answer_decode(bytes, length, ret_answer, error);
        return code < 0 ? error_wrap(error, code, "berth-probe") : 1;
    }
    if (code == BERTH_ERROR_MEMORY)
        error_set_memory(error);
    else if (code < 0)
        set_ended_error(error);
    return code;
}

/* Waits for the answer with this number. Earlier answers belong to abandoned requests. */
static int wait_for_answer(struct probe *probe, uint64_t number, int64_t until,
                           struct machine_report *ret_report, struct berth_error *error)
{
    for (;;) {
        struct pollfd waiting = {
            .fd = probe->channel.descriptor,
            .events = POLLIN | (probe_channel_has_unsent(&probe->channel) ? POLLOUT : 0),
        };
        struct probe_answer answer;
        int64_t left = until - clock_now();
        int code = probe_receive(probe, &answer, error);

        if (code < 0)
            return code;
        if (code == 1 && answer.number == number) {
            *ret_report = answer.report;
            return 0;
        }
        if (code == 1) {
            machine_report_finish(&answer.report);
            if (left > 0)
                continue;
        }
        if (left <= 0)
            return error_set(error, BERTH_ERROR_TIMED_OUT,
                             "cannot read the hardware: berth-probe does not answer in time");
        poll(&waiting, 1, (int)((left + 999999) / 1000000));
        if ((waiting.revents & POLLOUT) != 0 && probe_channel_flush(&probe->channel) < 0)
            return set_ended_error(error);
    }
}

int probe_query(struct probe *probe, struct probe_request *request,
                struct machine_report *ret_report, struct berth_error *error)
{
    int64_t deadline = (int64_t)request->deadline;
    int code = deadline != 0 ? 0 : probe_deadline(&deadline, error);

    request->deadline = (uint64_t)deadline;
    if (code == 0 && !probe->is_open)
        code = probe_start(probe, error);
    if (code < 0)
        return code;
    code = probe_send(probe, request, error);
    if (code == 0)
        code = wait_for_answer(probe, request->number,
                               clock_now() + deadline + PROBE_DEADLINE_GRACE, ret_report, error);
    if (code < 0)
        probe_finish(probe);
    return code;
}
