/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads that claim from one pool in every way there is, and the count of who is where: a
 * device under an exclusive lease has one user.
 */
#ifndef TESTS_HAMMER_H
#define TESTS_HAMMER_H

#include <berth/berth.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "support/random.h"

enum { HAMMER_SLOTS = 8, HAMMER_REQUESTS = 5 };

struct hammer {
    struct berth_pool *pool;
    struct berth_request *requests[HAMMER_REQUESTS];
    atomic_int users[HAMMER_SLOTS];
    atomic_ulong turns;  /* leases that were had and given back */
    atomic_ulong wrongs; /* what must not be */
    atomic_bool ends;
    atomic_uint next_seed;
    struct berth_arbiter *arbiter;
};

static inline void hammer_check(struct hammer *hammer, bool good)
{
    if (!good)
        atomic_fetch_add(&hammer->wrongs, 1);
}

/* Uses the devices of a lease and gives it back. */
static inline void hammer_use(struct hammer *hammer, struct berth_lease lease)
{
    struct berth_lease_device devices[HAMMER_SLOTS];
    int count = berth_lease_devices(hammer->pool, lease, devices, HAMMER_SLOTS, NULL);

    hammer_check(hammer, count > 0);
    for (int i = 0; i < count; i++)
        hammer_check(hammer, atomic_fetch_add(&hammer->users[devices[i].slot], 1) == 0);
    for (int i = 0; i < count; i++)
        atomic_fetch_sub(&hammer->users[devices[i].slot], 1);
    hammer_check(hammer, berth_release(hammer->pool, lease, NULL) == 0);
    atomic_fetch_add(&hammer->turns, 1);
}

static inline void hammer_done(void *data, struct berth_ticket ticket, int code,
                               struct berth_lease lease)
{
    struct hammer *hammer = data;

    (void)ticket;
    hammer_check(hammer,
                 code == 0 || code == BERTH_ERROR_CANCELLED || code == BERTH_ERROR_TIMED_OUT);
    if (code == 0)
        hammer_use(hammer, lease);
}

static inline bool hammer_offer(void *data, struct berth_lease lease,
                                const struct berth_lease_device *device)
{
    (void)data;
    return (lease.id + device->slot) % 3 != 0;
}

static inline void hammer_take_back(void *data, struct berth_lease lease)
{
    struct hammer *hammer = data;

    hammer_use(hammer, lease);
}

/* One claim of a kind that the number says. */
static inline void hammer_once(struct hammer *hammer, uint64_t number)
{
    const struct berth_request *request = hammer->requests[number / 16 % HAMMER_REQUESTS];
    struct berth_claim_options options = {.size = sizeof(options), .data = hammer};
    struct berth_ticket ticket;
    struct berth_lease lease;
    int code;

    switch (number % 16) {
    case 0:
        code = berth_try_claim(hammer->pool, request, &lease, NULL);
        hammer_check(hammer, code == 0 || code == BERTH_ERROR_BUSY);
        break;
    case 1: /* gives up soon, or not */
        code = berth_claim(hammer->pool, request, (int64_t)(number % 100000), &lease, NULL);
        hammer_check(hammer, code == 0 || code == BERTH_ERROR_TIMED_OUT);
        break;
    case 2: /* cancels what it has just started */
        options.done = hammer_done;
        code = berth_claim_start(hammer->pool, request, &options, &ticket, NULL);
        hammer_check(hammer, code == 0);
        code = berth_cancel(hammer->pool, ticket, NULL);
        hammer_check(hammer, code == 0 || code == BERTH_ERROR_NOT_FOUND);
        return;
    case 3:
        options.done = hammer_done;
        options.timeout = (int64_t)(number % 200000);
        hammer_check(hammer,
                     berth_claim_start(hammer->pool, request, &options, &ticket, NULL) == 0);
        return;
    case 4: /* waits for its ticket in two goes */
        hammer_check(hammer, berth_claim_start(hammer->pool, request, NULL, &ticket, NULL) == 0);
        code = berth_claim_wait(hammer->pool, ticket, (int64_t)(number % 50000), &lease, NULL);
        if (code == BERTH_ERROR_BUSY)
            code = berth_claim_wait(hammer->pool, ticket, BERTH_FOR_EVER, &lease, NULL);
        hammer_check(hammer, code == 0);
        break;
    default:
        code = berth_claim(hammer->pool, request, BERTH_FOR_EVER, &lease, NULL);
        hammer_check(hammer, code == 0);
        break;
    }
    if (code == 0)
        hammer_use(hammer, lease);
}

static inline void *hammer_run(void *argument)
{
    struct hammer *hammer = argument;
    struct test_random random = {atomic_fetch_add(&hammer->next_seed, 1)};

    while (!atomic_load(&hammer->ends))
        hammer_once(hammer, test_random_next(&random) >> 8);
    return NULL;
}

/* Opens the pool and starts an arbiter. Returns whether that worked. */
static inline bool hammer_begin(struct hammer *hammer)
{
    static const char *const gpus[HAMMER_REQUESTS] = {NULL, "1", "2", "1-3", "8"};
    const struct berth_arbiter_options helper = {.size = sizeof(helper),
                                                 .offer = hammer_offer,
                                                 .take_back = hammer_take_back,
                                                 .data = hammer};
    struct berth_device devices[HAMMER_SLOTS];

    for (uint32_t i = 0; i < HAMMER_SLOTS; i++)
        devices[i] =
            (struct berth_device){.index = i, .mig = BERTH_NO_MIG, .memory = BERTH_UNKNOWN};
    if (berth_pool_open_devices(devices, HAMMER_SLOTS, NULL, &hammer->pool, NULL) < 0)
        return false;
    for (size_t i = 0; i < HAMMER_REQUESTS; i++) {
        if (gpus[i] == NULL)
            continue;
        if (berth_request_create(&hammer->requests[i], NULL) < 0 ||
            berth_request_set(hammer->requests[i], "gpus", gpus[i], NULL) < 0)
            return false;
    }
    return berth_arbiter_start(hammer->pool, &helper, &hammer->arbiter, NULL) == 0;
}

static inline void hammer_end(struct hammer *hammer)
{
    berth_arbiter_stop(hammer->arbiter);
    berth_pool_close(hammer->pool);
    for (size_t i = 0; i < HAMMER_REQUESTS; i++)
        berth_request_destroy(hammer->requests[i]);
}

#endif
