/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool whose journal the next daemon reads. One stage writes it, another one reads it.
 */
#ifndef TESTS_RESTORED_POOLS_H
#define TESTS_RESTORED_POOLS_H

#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/leases/journal_write.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/restore.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/played_recorder.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/temporary_directory.h"

struct place {
    struct pool_stage *before; /* writes the journal */
    struct pool_stage *after;  /* reads it; NULL: not yet */
    void *directory;
    char path[512];
};

static inline struct pool_stage *make_stage(const struct place *place)
{
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = pool_stage_all, .part_count = POOL_STAGE_ALL});

    stage->pool.journal_path = copy_of(place->path);
    return stage;
}

static inline int begin(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    assert_int_equal(temporary_directory_enter(&place->directory), 0);
    snprintf(place->path, sizeof(place->path), "%s/berth.journal", (char *)place->directory);
    place->before = make_stage(place);
    *state = place;
    return 0;
}

static inline int end(void **state)
{
    struct place *place = *state;
    int result;

    pool_stage_free(place->before);
    if (place->after != NULL)
        pool_stage_free(place->after);
    result = temporary_directory_leave(&place->directory);
    free(place);
    return result;
}

/* Writes all that the first daemon knows. */
static inline void write_journal(const struct place *place)
{
    assert_int_equal(journal_write_checkpoint(&place->before->pool, NULL), 0);
}

/* Starts the second daemon, up to the reading of its journal. */
static inline int start_again(struct place *place, struct berth_error *error)
{
    struct pool *pool;

    if (place->after != NULL)
        pool_stage_free(place->after);
    place->after = make_stage(place);
    pool = &place->after->pool;
    pool->journaling = false;
    /* Both times differ from those of the first daemon, as after a restart. */
    pool->clock.offset += 77 * DURATION_SECOND;
    return restore_read(pool, error);
}

static inline struct pool *read_again(struct place *place)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (start_again(place, &error) < 0)
        fail_msg("%s", error.message);
    return &place->after->pool;
}

/* Starts the second daemon as far as its clients may come back. */
static inline struct pool *restore(struct place *place)
{
    struct pool *pool = read_again(place);
    struct subordinate_range *range = vector_append(&pool->accounts.ranges);

    /* The test's children may be the user's. */
    assert_non_null(range);
    *range = (struct subordinate_range){.owner = STAGE_USER, .first = geteuid(), .last = geteuid()};
    pool->journaling = true;
    engine_pause(pool->engine);
    lost_leases_begin(pool);
    assert_int_equal(restore_holders(pool, NULL), 0);
    engine_resume(pool->engine);
    engine_close_restored(pool->engine);
    engine_events_settle(pool);
    return pool;
}

static inline struct job *claim(const struct place *place, const char *words, enum lease_hold hold,
                                pid_t pid)
{
    return pool_stage_claim(
        place->before,
        &(struct stage_claim){.words = words, .hold = hold, .pid = pid, .command = "train"});
}

#define AT_PLACE(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
