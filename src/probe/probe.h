/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of berth-probe. This helper program reads the hardware, so that a driver that hangs or
 * a library that crashes does not affect the calling process. Only one thread may use a probe at a
 * time.
 */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/machine/machine_report.h"
#include "probe/probe_channel.h"
#include "probe/probe_messages.h"

/* The deadline of a request, unless BERTH_PROBE_DEADLINE is set: 3 s. */
#define PROBE_DEADLINE_DEFAULT INT64_C(3000000000)
/* An answer may arrive this much later than its deadline. After that the probe counts as lost. */
#define PROBE_DEADLINE_GRACE INT64_C(500000000)

/* Zeroed memory is a probe that was never started. */
struct probe {
    struct probe_channel channel;
    bool is_open;
    uint64_t last_number; /* of the requests */
};

/* Starts the program: BERTH_PROBE if it is set, otherwise berth-probe where program_find() finds
 * it. It is not a child of this process. It exits when the probe is finished or this process ends.
 * Returns at once. Fails like spawn_detached(), or with BERTH_ERROR_IO. */
int probe_start(struct probe *probe, struct berth_error *error);

/* Executes the program with its end of the connection, which stays the caller's. */
typedef int probe_spawn_function(void *context, int socket, struct berth_error *error);

/* Does the same with another way to execute the program. */
int probe_start_with(struct probe *probe, probe_spawn_function *spawn, void *context,
                     struct berth_error *error);
/* Executes the program as probe_start() does. */
int probe_spawn_program(int socket, struct berth_error *error);

/* Closes the connection. Allowed if the probe was never started. */
void probe_finish(struct probe *probe);

/* Numbers the request and sends it. Fails with BERTH_ERROR_IO or _MEMORY; the caller must start the
 * probe again then. */
int probe_send(struct probe *probe, struct probe_request *request, struct berth_error *error);

/* Receives an answer, without blocking. Returns 1 with *ret_answer, whose report the caller
 * finishes; 0 if there is none yet; or BERTH_ERROR_IO, _SYNTAX or _MEMORY, and the caller must
 * start the probe again. Call it when the channel's descriptor is readable. */
int probe_receive(struct probe *probe, struct probe_answer *ret_answer, struct berth_error *error);

/* Sends the request and waits for its answer; starts the program if needed. The answer arrives by
 * the request's deadline (0: probe_deadline()), otherwise this fails a little later with
 * BERTH_ERROR_TIMED_OUT. Fails also like the functions above. On failure the probe is finished and
 * *ret_report is unchanged; on success the caller finishes the report. */
int probe_query(struct probe *probe, struct probe_request *request,
                struct machine_report *ret_report, struct berth_error *error);

/* Gets the deadline of a request: BERTH_PROBE_DEADLINE (a duration), or PROBE_DEADLINE_DEFAULT.
 * Fails with BERTH_ERROR_SYNTAX or _RANGE (10 ms to 10 min); *ret_deadline is unchanged then. */
int probe_deadline(int64_t *ret_deadline, struct berth_error *error);

/* Parses a deadline in the same way from a text. */
int probe_deadline_parse(const char *text, int64_t *ret_deadline, struct berth_error *error);

#endif
