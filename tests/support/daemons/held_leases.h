/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases with real processes as holders; the test plays the readers of /proc.
 */
#ifndef TESTS_HELD_LEASES_H
#define TESTS_HELD_LEASES_H

#include "support/unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/pidfd.h"
#include "daemon/leases/lease_ending.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"

static inline int begin_live(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){
        .parts = pool_stage_all, .part_count = POOL_STAGE_ALL, .is_live = true});
    return 0;
}

/* A lease of the test's user that this process holds. */
static inline struct job *hold(struct pool_stage *stage, pid_t pid)
{
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){
                                                  .hold = LEASE_HOLD_PROCESS,
                                                  .pid = pid,
                                                  .uid = geteuid(),
                                                  .is_root = geteuid() == 0,
                                              });

    assert_true(lease_ending_watch(&stage->pool, job, pidfd_open_process(pid)));
    return job;
}

static inline struct job *hold_by_connection(struct pool_stage *stage,
                                             const struct stage_client *client)
{
    return pool_stage_claim(stage, &(struct stage_claim){.connection = client->connection});
}

/* Answers the oldest search: these processes are left, each with its state. */
static inline void answer_search(struct pool *pool, const pid_t *left, size_t count,
                                 enum reader_state found)
{
    struct reader_answer answer = {0};

    for (size_t i = 0; i < count; i++)
        played_readers_add(&answer, left[i], found)->uid = optional_number_of(STAGE_USER);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &answer);
}

static inline struct reader_request *search_of(const struct pool *pool)
{
    return &played_readers_query(pool->readers, READER_LEFTOVERS)->request;
}

static inline void assert_runs(pid_t child)
{
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
}

static inline bool is_taken(const struct pool *pool, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    return view.taken;
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)
#define LIVE(test)     cmocka_unit_test_setup_teardown(test, begin_live, pool_stage_end)

#endif
