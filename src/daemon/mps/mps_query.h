/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of the control program of MPS, and the program run as a client, which sends a
 * control daemon a command.
 */
#ifndef DAEMON_MPS_MPS_QUERY_H
#define DAEMON_MPS_MPS_QUERY_H

#include <stdint.h>

#include "daemon/core/runner.h"
#include "daemon/mps/mps_launch.h"

struct child_environment;
struct device;

/* The control daemon that the program is for. */
struct mps_target {
    const struct mps_site *site;
    const struct device *device; /* NULL: the pool does not have the device any more */
    const char *socket;          /* of the pool */
};

/* Adds the variables that the program needs, as a control daemon and as a client. */
void mps_query_fill_environment(const struct mps_target *target, struct child_environment *out);

struct mps_query {
    struct launcher *launcher;
    const char *program;
    struct mps_target target;
    const char *words; /* the command, with its newline; must stay valid */
    int64_t deadline;
    void (*answered)(void *context, const struct runner_end *end);
    void *context;
};

/* Runs the program as the control daemon's user. It waits up to 1 s for the control daemon's
 * socket. Returns NULL without memory. */
struct helper *mps_query_start(struct runner *runner, const struct mps_query *query);
/* The launcher's entry for it, whose context is a struct mps_rules; NULL: no rules. */
void mps_query_run(const struct launcher_work *work);

#endif
