/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the MPS control daemon of a device has its pipes and its logs: the same rule for the daemon
 * that starts it and for the client that tells the command. Pure.
 */
#ifndef MODEL_MPS_DIRECTORIES_H
#define MODEL_MPS_DIRECTORIES_H

#include <stdbool.h>

#include "base/text/text.h"
#include "model/device_id.h"
#include "model/request.h"

/* What a lease that shares by MPS says about the directories; all is the caller's. */
struct mps_directory_source {
    const char *root;              /* the pool's own for the lease's user; never NULL */
    const struct request *request; /* its mps_pipe_dir and mps_log_dir count where they are set */
};

/* Whether no lease of the request has more than one device. Of the request alone, not of what was
 * granted: an elastic request, one for all devices and one of several replicas may come to more, so
 * they count as such also where a lease of theirs got one. */
bool mps_directories_single_device(const struct request *request);

/* Whether leases of the two requests have the same directories on every device they meet on, given
 * that they are one user's: only then can one control daemon serve both. */
bool mps_directories_are_same(const struct request *one, const struct request *other);

/* Appends the two directories of the device: ROOT/ID/pipe and ROOT/ID/log; or what the request
 * names, as it is where there is only one device, else with the device's id below it, as every
 * control daemon needs its own. A failed allocation is remembered by the texts. */
void mps_directories(const struct mps_directory_source *place, struct device_id id,
                     struct text *pipe, struct text *log);

/* The longest path that may stand before the name of a socket of MPS. */
#define MPS_DIRECTORY_MAX 88

#endif
