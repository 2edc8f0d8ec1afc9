/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts that several checks of berth doctor need: a probe of the hardware, and the pool's
 * state.
 */
#ifndef CLI_DOCTOR_DOCTOR_FACTS_H
#define CLI_DOCTOR_DOCTOR_FACTS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/pool_address.h"
#include "model/machine/machine_report.h"
#include "view/pool_view.h"

struct doctor_facts {
    char *sysroot; /* before each path of the machine; usually "" */

    bool is_virtual; /* the devices come from an inventory file */
    struct machine_report machine;
    struct berth_error probe_error; /* code 0: `machine` is set */
    int64_t probe_time;             /* how long the probe took, in nanoseconds */
    int64_t probe_deadline;

    struct pool_address address;
    struct berth_error address_error; /* code 0: `address` is set */
    struct berth_error daemon_error;  /* code 0: `view` is set */
    pid_t daemon_pid;                 /* 0: unknown */
    struct pool_view view;
    int64_t view_time; /* CLOCK_REALTIME when the view arrived */
};

/* Gathers the facts. Never starts a daemon. Blocks for the deadline of the probe, and for a daemon
 * that does not answer. Fails with BERTH_ERROR_MEMORY, or if `inventory` (the value of --inventory;
 * NULL: none) or the environment is wrong. The caller finishes the facts, also on failure. */
int doctor_facts_gather(struct doctor_facts *facts, const char *inventory,
                        struct berth_error *error);
void doctor_facts_finish(struct doctor_facts *facts);

#endif
