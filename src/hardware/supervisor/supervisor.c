/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "hardware/supervisor/supervisor_internal.h"
#include "probe/probe_channel.h"
#include "probe/probe_messages.h"

enum { WATCHED_MAX = 128 };

/* Maximum time before the deadline that is reserved for building the report, in nanoseconds. */
#define MARGIN_MAX INT64_C(150000000)

struct probe_supervisor {
    struct task_flow flow;
    struct probe_channel client;
    bool has_request; /* a request was received and not answered yet */
    int64_t until;    /* when it is answered with the facts known by then */
};

/* ---- Requests ---- */

static void start_request(struct probe_supervisor *supervisor)
{
    int64_t deadline = (int64_t)supervisor->flow.request.deadline;
    int64_t margin = deadline / 10 < MARGIN_MAX ? deadline / 10 : MARGIN_MAX;

    supervisor->has_request = true;
    supervisor->until = clock_after(supervisor->flow.now, deadline - margin);
    task_flow_start_request(&supervisor->flow);
}

static int answer_request(struct probe_supervisor *supervisor)
{
    struct probe_request *request = &supervisor->flow.request;
    struct probe_answer answer = {.number = request->number};
    struct text packet = {0};
    int code = build_report(&supervisor->flow.cache, request->without_processes, &answer.report);

    if (code == 0)
        code = probe_answer_encode(&answer, &packet);
    if (code == 0)
        code = probe_channel_send(&supervisor->client, packet.bytes, packet.length);
    machine_report_finish(&answer.report);
    text_finish(&packet);
    vector_finish(&request->only);
    supervisor->has_request = false;
    return code;
}

/* Answers as soon as all tasks have ended, or at the deadline. */
static int answer_when_ready(struct probe_supervisor *supervisor)
{
    if (!supervisor->has_request ||
        (supervisor->flow.now < supervisor->until && !task_flow_is_done(&supervisor->flow)))
        return 0;
    return answer_request(supervisor);
}

/* Receives the next request, unless one is being answered. Returns 0, or a code when the client is
 * gone. */
static int receive_request(struct probe_supervisor *supervisor)
{
    const unsigned char *bytes = NULL;
    size_t length = 0;
    int code = probe_channel_flush(&supervisor->client);

    if (code < 0 || supervisor->has_request)
        return code;
    code = probe_channel_receive(&supervisor->client, &bytes, &length);
    if (code <= 0)
        return code;
    code = probe_request_decode(bytes, length, &supervisor->flow.request, NULL);
    if (code == 0)
        start_request(supervisor);
    return code;
}

/* ---- The loop ---- */

/* Waits for requests, results and timeouts. Returns whether the client is gone. */
static bool wait_for_events(struct probe_supervisor *supervisor)
{
    struct pollfd waiting[WATCHED_MAX];
    int64_t next = workers_next_time(&supervisor->flow.workers);
    int64_t left;
    size_t count;

    if (supervisor->has_request && supervisor->until < next)
        next = supervisor->until;
    left = next == INT64_MAX ? -1 : next - clock_now();
    /* While a request is being answered, only a closed connection matters. */
    waiting[0] = (struct pollfd){
        .fd = supervisor->client.descriptor,
        .events = POLLRDHUP | (supervisor->has_request ? 0 : POLLIN) |
                  (probe_channel_has_unsent(&supervisor->client) ? POLLOUT : 0),
    };
    count = workers_fill_pollfds(&supervisor->flow.workers, waiting + 1, WATCHED_MAX - 1);
    if (count > WATCHED_MAX - 1)
        count = WATCHED_MAX - 1;
    poll(waiting, 1 + count,
         next == INT64_MAX ? -1
         : left <= 0       ? 0
                           : (int)((left + 999999) / 1000000));
    return (waiting[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static int serve_requests(struct probe_supervisor *supervisor)
{
    for (;;) {
        bool requested;
        int code;

        supervisor->flow.now = clock_now();
        code = receive_request(supervisor);
        if (code < 0)
            return code;
        requested = supervisor->has_request;
        task_flow_run(&supervisor->flow);
        code = supervisor->flow.lost ? BERTH_ERROR_MEMORY : answer_when_ready(supervisor);
        if (code < 0)
            return code;
        /* The next request may have arrived together with this one. */
        if (requested && !supervisor->has_request)
            continue;
        if (wait_for_events(supervisor))
            return BERTH_ERROR_IO;
    }
}

int supervisor_run(int socket, const struct sysroot *root, const struct vendor_table *const *tables,
                   struct berth_error *error)
{
    struct probe_supervisor supervisor = {0};
    int code;

    task_flow_init(&supervisor.flow, root, tables);
    probe_channel_init(&supervisor.client, socket);
    code = serve_requests(&supervisor);
    task_flow_finish(&supervisor.flow);
    probe_channel_finish(&supervisor.client);
    /* A closed connection is the normal end. */
    if (code == BERTH_ERROR_IO)
        return 0;
    return code == BERTH_ERROR_MEMORY
               ? error_set_memory(error)
               : error_set(error, code, "cannot read a request: its format is invalid");
}
