/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ways of claiming share.
 */
#ifndef LIBBERTH_LOCAL_LOCAL_CLAIM_H
#define LIBBERTH_LOCAL_LOCAL_CLAIM_H

#include <berth/berth.h>
#include <stdbool.h>
#include <stdint.h>

struct request_core;
struct claim_waiter;

/* Before a claim that may wait, or whose lease has a time limit: the keeper runs, and there is room
 * for telling of its end. Fails with BERTH_ERROR_CANCELLED (the pool closes), _NO_DEVICE or
 * _MEMORY. With the lock. */
int local_claim_prepare(struct berth_pool *pool, const struct request_core *core,
                        struct berth_error *error);
/* It came to nothing. */
void local_claim_unprepare(struct berth_pool *pool, const struct request_core *core);

/* Sets the error of a claim that ended so. Returns `code`. */
int local_claim_refuse(int code, int64_t timeout, struct berth_error *error);
int local_claim_refuse_closing(struct berth_error *error);

/* Sleeps until woken. Returns false when the deadline came first. */
bool local_claim_sleep(struct claim_waiter *waiter, int64_t deadline);

#endif
