/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends the processes of a control daemon: they are searched for, get SIGTERM, and SIGKILL if they
 * still run after a second.
 */
#ifndef DAEMON_MPS_MPS_CLEARING_H
#define DAEMON_MPS_MPS_CLEARING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/loop.h"
#include "daemon/mps/mps.h"
#include "daemon/mps/mps_process.h"

struct mps_clearing {
    const struct mps_settings *settings;
    uint32_t slot;
    const struct mps_process *process; /* of the control daemon */
    /* None of the processes is left. From the loop. */
    void (*cleared)(struct mps_clearing *clearing);

    uint32_t uid;
    bool is_searching;
    bool is_rest_gone; /* no other process was found, or all of them have ended */
    struct timer timer;
};

/* Initialises it; `settings` and `process` must stay valid. */
void mps_clearing_init(struct mps_clearing *clearing, const struct mps_settings *settings,
                       uint32_t slot, const struct mps_process *process,
                       void (*cleared)(struct mps_clearing *clearing));

/* Searches for the processes of this user at once. */
void mps_clearing_begin(struct mps_clearing *clearing, uint32_t uid);
/* The same in the next turn of the loop. */
void mps_clearing_begin_soon(struct mps_clearing *clearing, uint32_t uid);
/* Gives up. */
void mps_clearing_stop(struct mps_clearing *clearing);

/* The search has ended, or the found processes have (mps_found()). */
void mps_clearing_found(struct mps_clearing *clearing, bool is_gone);
/* The control daemon's own process has ended. */
void mps_clearing_process_ended(struct mps_clearing *clearing);

#endif
