/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers that all kinds of claims share.
 */
#ifndef LIBBERTH_LOCAL_LOCAL_CLAIM_H
#define LIBBERTH_LOCAL_LOCAL_CLAIM_H

#include <berth/berth.h>
#include <stdbool.h>
#include <stdint.h>

struct request_core;
struct claim_waiter;

/* Prepares a claim that may wait, or whose lease has a time limit: starts the timer thread and
 * reserves room for the notification of its end. Fails with BERTH_ERROR_CANCELLED (the pool
 * closes), _NO_DEVICE or _MEMORY. Called with the lock. */
int local_claim_prepare(struct berth_pool *pool, const struct request_core *core,
                        struct berth_error *error);
/* Undoes local_claim_prepare when no claim was queued or granted. */
void local_claim_unprepare(struct berth_pool *pool, const struct request_core *core);

/* Sets the error of a claim that ended with `code`. Returns `code`. */
int local_claim_refuse(int code, int64_t timeout, struct berth_error *error);
int local_claim_refuse_closing(struct berth_error *error);

/* Sleeps until woken. Returns false if the deadline came first. */
bool local_claim_sleep(struct claim_waiter *waiter, int64_t deadline);

#endif
