/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads that claim from one pool in every way. They count the users of each device, which
 * must be one at a time, because all leases are exclusive.
 */
#ifndef TESTS_MANY_CLAIMERS_H
#define TESTS_MANY_CLAIMERS_H

#include <berth/berth.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "support/random.h"

enum { CLAIMERS_SLOTS = 8, CLAIMERS_REQUESTS = 5 };

struct claimers {
    struct berth_pool *pool;
    struct berth_request *requests[CLAIMERS_REQUESTS];
    atomic_int users[CLAIMERS_SLOTS];
    atomic_ulong turns;  /* leases that were granted and released */
    atomic_ulong wrongs; /* failed checks */
    atomic_bool ends;
    atomic_uint next_seed;
    struct berth_arbiter *arbiter;
};

static inline void claimers_check(struct claimers *claimers, bool good)
{
    if (!good)
        atomic_fetch_add(&claimers->wrongs, 1);
}

/* Uses the devices of a lease and gives it back. */
static inline void claimers_use(struct claimers *claimers, struct berth_lease lease)
{
    struct berth_lease_device devices[CLAIMERS_SLOTS];
    int count = berth_lease_devices(claimers->pool, lease, devices, CLAIMERS_SLOTS, NULL);

    claimers_check(claimers, count > 0);
    for (int i = 0; i < count; i++)
        claimers_check(claimers, atomic_fetch_add(&claimers->users[devices[i].slot], 1) == 0);
    for (int i = 0; i < count; i++)
        atomic_fetch_sub(&claimers->users[devices[i].slot], 1);
    claimers_check(claimers, berth_release(claimers->pool, lease, NULL) == 0);
    atomic_fetch_add(&claimers->turns, 1);
}

static inline void claimers_done(void *data, struct berth_ticket ticket, int code,
                                 struct berth_lease lease)
{
    struct claimers *claimers = data;

    (void)ticket;
    claimers_check(claimers,
                   code == 0 || code == BERTH_ERROR_CANCELLED || code == BERTH_ERROR_TIMED_OUT);
    if (code == 0)
        claimers_use(claimers, lease);
}

static inline bool claimers_offer(void *data, struct berth_lease lease,
                                  const struct berth_lease_device *device)
{
    (void)data;
    return (lease.id + device->slot) % 3 != 0;
}

static inline void claimers_take_back(void *data, struct berth_lease lease)
{
    struct claimers *claimers = data;

    claimers_use(claimers, lease);
}

/* Makes one claim. The number decides which kind. */
static inline void claimers_once(struct claimers *claimers, uint64_t number)
{
    const struct berth_request *request = claimers->requests[number / 16 % CLAIMERS_REQUESTS];
    struct berth_claim_options options = {.size = sizeof(options), .data = claimers};
    struct berth_ticket ticket;
    struct berth_lease lease;
    int code;

    switch (number % 16) {
    case 0:
        code = berth_try_claim(claimers->pool, request, &lease, NULL);
        claimers_check(claimers, code == 0 || code == BERTH_ERROR_BUSY);
        break;
    case 1: /* may time out */
        code = berth_claim(claimers->pool, request, (int64_t)(number % 100000), &lease, NULL);
        claimers_check(claimers, code == 0 || code == BERTH_ERROR_TIMED_OUT);
        break;
    case 2: /* cancels the claim that it has just started */
        options.done = claimers_done;
        code = berth_claim_start(claimers->pool, request, &options, &ticket, NULL);
        claimers_check(claimers, code == 0);
        code = berth_cancel(claimers->pool, ticket, NULL);
        claimers_check(claimers, code == 0 || code == BERTH_ERROR_NOT_FOUND);
        return;
    case 3:
        options.done = claimers_done;
        options.timeout = (int64_t)(number % 200000);
        claimers_check(claimers,
                       berth_claim_start(claimers->pool, request, &options, &ticket, NULL) == 0);
        return;
    case 4: /* may wait for its ticket a second time */
        claimers_check(claimers,
                       berth_claim_start(claimers->pool, request, NULL, &ticket, NULL) == 0);
        code = berth_claim_wait(claimers->pool, ticket, (int64_t)(number % 50000), &lease, NULL);
        if (code == BERTH_ERROR_BUSY)
            code = berth_claim_wait(claimers->pool, ticket, BERTH_FOR_EVER, &lease, NULL);
        claimers_check(claimers, code == 0);
        break;
    default:
        code = berth_claim(claimers->pool, request, BERTH_FOR_EVER, &lease, NULL);
        claimers_check(claimers, code == 0);
        break;
    }
    if (code == 0)
        claimers_use(claimers, lease);
}

static inline void *claimers_run(void *argument)
{
    struct claimers *claimers = argument;
    struct test_random random = {atomic_fetch_add(&claimers->next_seed, 1)};

    while (!atomic_load(&claimers->ends))
        claimers_once(claimers, test_random_next(&random) >> 8);
    return NULL;
}

/* Opens the pool and starts an arbiter. Returns whether both succeeded. */
static inline bool claimers_begin(struct claimers *claimers)
{
    static const char *const gpus[CLAIMERS_REQUESTS] = {NULL, "1", "2", "1-3", "8"};
    const struct berth_arbiter_options helper = {.size = sizeof(helper),
                                                 .offer = claimers_offer,
                                                 .take_back = claimers_take_back,
                                                 .data = claimers};
    struct berth_device devices[CLAIMERS_SLOTS];

    for (uint32_t i = 0; i < CLAIMERS_SLOTS; i++)
        devices[i] =
            (struct berth_device){.index = i, .mig = BERTH_NO_MIG, .memory = BERTH_UNKNOWN};
    if (berth_pool_open_devices(devices, CLAIMERS_SLOTS, NULL, &claimers->pool, NULL) < 0)
        return false;
    for (size_t i = 0; i < CLAIMERS_REQUESTS; i++) {
        if (gpus[i] == NULL)
            continue;
        if (berth_request_create(&claimers->requests[i], NULL) < 0 ||
            berth_request_set(claimers->requests[i], "gpus", gpus[i], NULL) < 0)
            return false;
    }
    return berth_arbiter_start(claimers->pool, &helper, &claimers->arbiter, NULL) == 0;
}

static inline void claimers_end(struct claimers *claimers)
{
    berth_arbiter_stop(claimers->arbiter);
    berth_pool_close(claimers->pool);
    for (size_t i = 0; i < CLAIMERS_REQUESTS; i++)
        berth_request_destroy(claimers->requests[i]);
}

#endif
