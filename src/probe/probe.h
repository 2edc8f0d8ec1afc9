/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of berth-probe, the helper program that looks at the hardware so that a driver which
 * hangs or a library that crashes never does so to us. A probe is used by one thread at a time.
 */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/machine_report.h"
#include "probe/probe_channel.h"
#include "probe/probe_messages.h"

/* The time that a look may take unless BERTH_PROBE_DEADLINE says otherwise: 3 s. */
#define PROBE_DEADLINE_DEFAULT INT64_C(3000000000)
/* How much later than its deadline an answer may come before the probe counts as lost. */
#define PROBE_DEADLINE_GRACE INT64_C(500000000)

/* Zeroed memory is no probe: it was never started. */
struct probe {
    struct probe_channel channel;
    bool is_open;
    uint64_t last_number; /* of the requests */
};

/* Starts the program: BERTH_PROBE if it is set, else berth-probe as program_find finds it. It is no
 * child of ours and ends by itself when the probe is finished or we are gone. Returns at once.
 * Fails as spawn_detached, or with BERTH_ERROR_IO. */
int probe_start(struct probe *probe, struct berth_error *error);

/* Lets go of it; fine when it was never started. */
void probe_finish(struct probe *probe);

/* Asks; numbers the request. Fails with BERTH_ERROR_IO or _MEMORY: it is to be started anew. */
int probe_send(struct probe *probe, struct probe_request *request, struct berth_error *error);

/* An answer that has come: returns 1 with *ret_answer, whose report the caller finishes; 0 when
 * there is none yet; BERTH_ERROR_IO, _SYNTAX or _MEMORY: it is to be started anew. To be called
 * when the channel's descriptor is readable. */
int probe_receive(struct probe *probe, struct probe_answer *ret_answer, struct berth_error *error);

/* Asks and waits for that answer, starting the program when it is not there. The answer comes by
 * the request's deadline (0: probe_deadline), or this fails shortly after with
 * BERTH_ERROR_TIMED_OUT; also fails as those above. The probe is finished then. The caller finishes
 * *ret_report, untouched on failure. */
int probe_query(struct probe *probe, struct probe_request *request,
                struct machine_report *ret_report, struct berth_error *error);

/* How long a look may take: BERTH_PROBE_DEADLINE (a duration), or PROBE_DEADLINE_DEFAULT. Fails
 * with BERTH_ERROR_SYNTAX or _RANGE (wanted 10 ms to 10 min); *ret_deadline is untouched then. */
int probe_deadline(int64_t *ret_deadline, struct berth_error *error);

/* The same of a text. */
int probe_deadline_parse(const char *text, int64_t *ret_deadline, struct berth_error *error);

#endif
