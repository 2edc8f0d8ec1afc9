/* SPDX-License-Identifier: Apache-2.0
 *
 * The control daemon of one device, from state to state. For mps.c.
 */
#ifndef DAEMON_MPS_MPS_CONTROL_H
#define DAEMON_MPS_MPS_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/loop.h"
#include "daemon/mps/mps.h"
#include "daemon/mps/mps_clearing.h"
#include "daemon/mps/mps_process.h"
#include "daemon/mps/mps_program.h"

enum mps_state {
    MPS_NONE,
    MPS_STARTING, /* it does not answer yet */
    MPS_READY,
    MPS_QUITTING, /* it was asked to end */
    MPS_CLEARING, /* its processes are being ended */
    MPS_PAUSING,  /* it died, and will be started again */
};

struct mps_control {
    const struct mps_settings *settings;
    const char *base; /* the directory for all users */
    struct mps_program *program;
    uint32_t slot;

    enum mps_state state;
    struct mps_site site;
    struct mps_process process;
    struct mps_clearing clearing;
    bool was_there; /* an earlier daemon started it */
    bool is_kept;   /* the journal has a record */

    struct helper *helper; /* that sends it a command; NULL: none */
    bool asks_to_quit;     /* the command is to quit */
    bool is_stale;         /* the helper began before its last start */
    struct timer ask_again;

    struct timer timeout; /* of the state */
    int64_t ready_at;
    unsigned failures; /* in a row */
    char failure[64];  /* why it could not be started; "" */
};

/* Initialises the control daemon of a slot that has none. */
void mps_control_init(struct mps_control *control, uint32_t slot,
                      const struct mps_settings *settings, const char *base,
                      struct mps_program *program);
/* Leaves it alone, for a later daemon. */
void mps_control_finish(struct mps_control *control);

/* Starts it. Takes the site. */
void mps_control_start(struct mps_control *control, struct mps_site *site);
/* Stops it; `leaving` and `gone` are called. */
void mps_control_stop(struct mps_control *control);
/* Watches the control daemon that an earlier daemon started, or ends its remaining processes. */
void mps_control_take_over(struct mps_control *control);

/* See mps_found() and mps_identified(). */
void mps_control_found(struct mps_control *control, bool is_gone);
void mps_control_identified(struct mps_control *control, uint64_t started);

/* Fills in its record. */
void mps_control_describe(const struct mps_control *control, struct mps_record *ret_record);

#endif
