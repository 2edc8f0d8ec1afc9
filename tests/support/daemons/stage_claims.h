/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of clients on a stage, and the ends of their leases.
 */
#ifndef TESTS_STAGE_CLAIMS_H
#define TESTS_STAGE_CLAIMS_H

#include "support/unit.h"

#include "daemon/leases/engine_events.h"
#include "daemon/leases/lease_ending.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/played_recorder.h"
#include "support/daemons/pool_stage.h"

static inline struct job *claim(struct pool_stage *stage, const struct stage_client *client,
                                const char *words)
{
    return pool_stage_claim(
        stage, &(struct stage_claim){.words = words, .connection = client->connection});
}

/* Ends a lease that a claim waits for. */
static inline void end_lease(struct pool *pool, struct job *job)
{
    job->end = LEASE_END_RELEASED;
    lease_ending_done(pool, job);
    engine_events_settle(pool);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)

#endif
