/* SPDX-License-Identifier: Apache-2.0
 *
 * MPS control daemons: one for each device that is shared by MPS, there exactly as long as the
 * device has tenants. It runs as the tenants' user, who is one and the same, and with none of our
 * rights. Before it answers, no holder is told of a lease that needs it; before it has ended with
 * all of its processes, its device is not granted on. It outlives us: clients would die with it.
 */
#ifndef DAEMON_MPS_H
#define DAEMON_MPS_H

#include "daemon/pool.h"

struct kept_mps;

/* The directory beside the socket that has one for each user: model/mps_directories.h says what is
 * below. */
#define MPS_BASE "mps"

/* The variable of the daemon's own environment that names the control program. */
#define MPS_CONTROL_VARIABLE "BERTH_MPS_CONTROL"

/* The one that says how long it may take to answer. */
#define MPS_DEADLINE_VARIABLE "BERTH_MPS_DEADLINE"

/* Fails with BERTH_ERROR_SYNTAX or _RANGE (a wrong variable) or _MEMORY. */
int mps_init(struct pool *pool, struct berth_error *error);
/* Those that run go on. */
void mps_finish(struct pool *pool);

/* Whether leases by MPS can be served for this user; one that is not shared by MPS is fine. Fails
 * with BERTH_ERROR_IMPOSSIBLE. */
int mps_check(struct pool *pool, const struct request *request, uint32_t uid,
              struct berth_error *error);

/* A lease was granted, and its holder is to be told: sees to it that all of its control daemons
 * answer. Returns whether that takes a while; settle_told is called then when they do, or the claim
 * is refused. */
bool mps_prepare(struct pool *pool, struct job *job);

/* A lease is about to leave its devices: control daemons without another tenant are stopped, and
 * their devices blocked until they are gone. */
void mps_end(struct pool *pool, const struct job *job);

/* Whether any control daemon is there. */
bool mps_is_busy(const struct pool *pool);

/* Appends the directory of a user's control daemons, for whoever holds such a lease. */
void mps_append_root(const struct pool *pool, uint32_t uid, struct text *out);

/* What the journal knows of a control daemon; takes the texts over. */
void mps_restore(struct pool *pool, struct kept_mps *kept);
/* All of the journal is read: those that live are watched again. The engine is paused. */
void mps_restored(struct pool *pool);
/* It is known who lives: control daemons without tenants are stopped, missing ones started. */
void mps_review(struct pool *pool);

/* The control daemon of the slot, for the journal; false: there is none. The texts are borrowed. */
bool mps_kept(const struct pool *pool, uint32_t slot, struct kept_mps *ret_kept);

#endif
