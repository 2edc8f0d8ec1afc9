/* SPDX-License-Identifier: Apache-2.0
 *
 * The directories of pipes and logs of a device's MPS control daemon. berthd, which starts the
 * control daemon, and the client, which passes the directories to the command, use the same rule.
 * Pure functions.
 */
#ifndef MODEL_MPS_DIRECTORIES_H
#define MODEL_MPS_DIRECTORIES_H

#include <stdbool.h>

#include "base/text/text.h"
#include "model/machine/device_id.h"
#include "model/request.h"

/* The input for the directories of a lease that shares by MPS. The caller owns all of it. */
struct mps_directory_source {
    const char *root;              /* the pool's directory for the lease's user; never NULL */
    const struct request *request; /* its mps_pipe_dir and mps_log_dir win if they are set */
};

/* Returns whether every lease of the request has at most one device. It depends only on the
 * request, not on the granted devices: an elastic request, a request for all devices and a request
 * with several replicas can get more, so they return false even when one device was granted. */
bool mps_directories_single_device(const struct request *request);

/* Returns whether leases of the two requests, both of one user, have the same directories on every
 * device that they share. Only then can one control daemon serve both. */
bool mps_directories_are_same(const struct request *one, const struct request *other);

/* Appends the two directories of the device: ROOT/ID/pipe and ROOT/ID/log, or the request's own
 * directories. These are used as they are for a single device. Otherwise the device's id is
 * appended, because each control daemon needs its own directory. The texts remember a failed
 * allocation. */
void mps_directories(const struct mps_directory_source *place, struct device_id id,
                     struct text *pipe, struct text *log);

/* The maximum length of a directory with MPS's sockets, whose paths must fit into a socket
 * address. */
#define MPS_DIRECTORY_MAX 88

#endif
