/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/claim_await.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/run/waiting_line.h"

/* The waiting line and the notification share one listener of the claim. */
struct listeners {
    struct claim_listener line;
    struct notify notify;
    const struct client_claim *claim;
};

static int handle_waiting(void *context, const struct wire_message *waiting,
                          struct berth_error *error)
{
    struct listeners *listeners = context;
    const struct claim_listener *line = &listeners->line;

    notify_waiting(&listeners->notify, listeners->claim, waiting);
    return line->waiting == NULL ? 0 : line->waiting(line->context, waiting, error);
}

int claim_await(struct client_claim *claim, struct session *session,
                const struct claim_await_options *how, struct berth_error *error)
{
    struct listeners listeners = {.claim = claim};
    struct claim_listener listener = {.context = &listeners, .waiting = handle_waiting};
    struct waiting_line line = {0};
    int code = notify_init(&listeners.notify, &how->notify, claim->question.request->name, error);

    if (code < 0)
        return code;
    if (!how->quiet || how->verbose)
        waiting_line_init(&line, how->verbose);
    listeners.line = waiting_line_listener(&line);
    listener.pause = listeners.line.pause;
    if (listener.pause == 0)
        listener.pause = notify_pause(&listeners.notify);
    code = claim_wait(claim, session, &listener, error);
    waiting_line_finish(&line);
    if (code == 0)
        notify_granted(&listeners.notify, claim);
    return code;
}

void claim_await_print_grant(const struct client_claim *claim)
{
    const struct device *device;

    fprintf(stderr, "berth: lease %" PRIu64 ":", claim->id);
    vector_for_each (device, &claim->grant.devices)
        fprintf(stderr, " %s", device_id_format(device->id).text);
    fprintf(stderr, "\n");
}
