/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the MPS control daemon of a device has its pipes and its logs: the same rule for the daemon
 * that starts it and for the client that tells the command. Pure.
 */
#ifndef MODEL_MPS_H
#define MODEL_MPS_H

#include <stdbool.h>

#include "base/text.h"
#include "model/device_id.h"
#include "model/request.h"

/* What a lease that shares by MPS says about the directories; all is the caller's. */
struct mps_place {
    const char *root;              /* the pool's own for the lease's user; never NULL */
    const struct request *request; /* its mps_pipe_dir and mps_log_dir count where they are set */
    bool only_one;                 /* the lease has one device in all */
};

/* Appends the two directories of the device: ROOT/ID/pipe and ROOT/ID/log; or what the request
 * names, as it is for a lease of one device, else with the device's id below it, as every control
 * daemon needs its own. A failed allocation is remembered by the texts. */
void mps_directories(const struct mps_place *place, struct device_id id, struct text *pipe,
                     struct text *log);

/* The longest path that may stand before the name of a socket of MPS. */
#define MPS_DIRECTORY_LONGEST 88

#endif
