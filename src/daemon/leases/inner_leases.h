/* SPDX-License-Identifier: Apache-2.0
 *
 * The leases and claims within a lease.
 */
#ifndef DAEMON_LEASES_INNER_LEASES_H
#define DAEMON_LEASES_INNER_LEASES_H

struct id_list;
struct job;
struct pool;

/* Adds the ids of the job's lease and of its inner leases. The caller finishes the list, also on
 * failure. Returns 0 or BERTH_ERROR_MEMORY. */
int inner_leases_collect(const struct pool *pool, const struct job *job,
                         struct id_list *ret_leases);

/* Cancels the claims within a lease that is ending. An inner lease that started now would have to
 * be ended, too. */
void inner_leases_cancel_claims(struct pool *pool, const struct job *job);

#endif
