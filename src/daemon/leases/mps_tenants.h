/* SPDX-License-Identifier: Apache-2.0
 *
 * The tenants of MPS control daemons (mps/mps.h): the leases that share a device by MPS. A holder
 * is notified of its lease when the control daemons of all its devices answer. After its last
 * tenant a device is blocked until the control daemon has ended.
 *
 * A lease of an adopted process is no tenant: the process began without the variables that lead to
 * the control daemon.
 */
#ifndef DAEMON_LEASES_MPS_TENANTS_H
#define DAEMON_LEASES_MPS_TENANTS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct job;
struct mps_site;
struct pool;
struct request;

/* Checks whether a lease by MPS can be served for this user; accepts any other request. Fails with
 * BERTH_ERROR_IMPOSSIBLE. */
int mps_tenants_check(struct pool *pool, const struct request *request, uint32_t uid,
                      struct berth_error *error);

/* Starts the control daemons that a granted lease needs. Returns whether its holder must wait:
 * engine_events_notify_holder() is called again when one of them answers, or the claim is refused.
 */
bool mps_tenants_prepare(struct pool *pool, struct job *job);

/* Stops the control daemons that have no tenant but this lease, which is about to leave its
 * devices. Must be called before the engine ends or returns the lease. */
void mps_tenants_leave(struct pool *pool, const struct job *job);
/* Returns whether the lease, which is over, must keep its devices until their control daemons have
 * ended, so that the user's limit counts these devices. mps_tenants_gone() ends it then. */
bool mps_tenants_must_keep(const struct pool *pool, struct job *job);
/* A control daemon has ended: ends the leases that were kept for it. The caller settles the pool.
 */
void mps_tenants_gone(struct pool *pool);

/* After a restart, when the leases are known: stops control daemons without tenants, and starts
 * missing ones. */
void mps_tenants_review(struct pool *pool);

/* Returns whether the slot has a tenant besides the lease `leaving` and those within it; 0: none
 * leaves. */
bool mps_tenants_has(const struct pool *pool, uint32_t slot, uint64_t leaving);
/* Returns whether the holder of a tenant waits for the slot's control daemon. */
bool mps_tenants_is_awaited(const struct pool *pool, uint32_t slot);
/* Makes the site that the tenants need; the caller finishes it. Returns false if there are none, or
 * no memory. */
bool mps_tenants_find_site(const struct pool *pool, uint32_t slot, struct mps_site *ret_site);

/* Notifies the holders that wait for the slot. */
void mps_tenants_notify(struct pool *pool, uint32_t slot);
/* Refuses the claims whose holders wait for the slot. */
void mps_tenants_refuse(struct pool *pool, uint32_t slot, const char *why);

#endif
