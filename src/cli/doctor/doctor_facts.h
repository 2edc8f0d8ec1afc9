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

#include "base/text/text.h"
#include "client/pool_address.h"
#include "model/machine/machine_report.h"
#include "spec/configuration/configuration.h"
#include "view/pool_view.h"

struct doctor_facts {
    char *sysroot; /* before each path of the machine; usually "" */

    const char *inventory; /* the file that the devices come from, as the user wrote it; NULL: they
                              come from the hardware. Borrowed */
    struct machine_report machine;
    struct berth_error probe_error; /* code 0: `machine` is set */
    int64_t probe_time;             /* how long the probe took, in nanoseconds */
    int64_t probe_deadline;

    struct pool_address address;
    struct berth_error address_error; /* code 0: `address` is set */
    struct berth_error daemon_error;  /* code 0: `view` is set */
    pid_t daemon_pid;                 /* 0: unknown */
    bool has_daemon_uid;
    uid_t daemon_uid;
    struct pool_view view;
    int64_t view_time; /* CLOCK_REALTIME when the view arrived */

    bool reads_own_configuration;   /* the user's, not the machine's */
    struct text configuration_path; /* empty: the pool reads no file */
    struct configuration configuration;
    struct berth_error configuration_error; /* code 0: the pool accepts it */
};

/* Gathers the facts. Never starts a daemon. Blocks for the deadline of the probe, and for a daemon
 * that does not answer. `inventory` is the value of --inventory; NULL: none. A wrong file or
 * environment is a fact. Fails with BERTH_ERROR_MEMORY, or _INVALID if `inventory` is empty. The
 * caller finishes the facts, also on failure. */
int doctor_facts_gather(struct doctor_facts *facts, const char *inventory,
                        struct berth_error *error);
/* Returns whether the pool's state is known: `address` and `view` are set. */
bool doctor_facts_has_view(const struct doctor_facts *facts);

/* Returns whether the user's own daemon does not run. It is started on demand, and ends only when
 * it has no leases. */
bool doctor_facts_is_startable(const struct doctor_facts *facts);

void doctor_facts_finish(struct doctor_facts *facts);

#endif
