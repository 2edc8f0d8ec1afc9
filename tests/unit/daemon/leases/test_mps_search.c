/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for the processes of an MPS control daemon that an earlier daemon has started, with
 * played readers.
 */
#include "support/unit.h"

#include "daemon/leases/mps_search.h"

#include <signal.h>
#include <unistd.h>

#include "daemon/journal/journal_records.h"
#include "daemon/leases/mps_events.h"
#include "daemon/mps/mps.h"
#include "daemon/processes/leftovers.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"

enum { SLOT = 2, STARTED = 4711 };

/* Restores the record of a control daemon of the test's user, and asks about its process. */
static struct reader_query *resume(struct pool_stage *stage, pid_t pid)
{
    const struct kept_mps record = {
        .slot = SLOT,
        .is_there = true,
        .uid = geteuid(),
        .gid = geteuid(),
        .pid = (uint32_t)pid,
        .started = STARTED,
        .pipe = (char *)"/p",
        .log = (char *)"/l",
    };

    assert_int_equal(mps_events_restore(&stage->pool, &record, NULL), 0);
    mps_resume(stage->pool.mps);
    return played_readers_query(stage->pool.readers, READER_DESCRIBE);
}

/* Answers that the process started at this time, in clock ticks; 0: it is gone. */
static void identify(struct reader_query *query, pid_t pid, enum reader_state state,
                     uint64_t started)
{
    uint64_t tick = (uint64_t)DURATION_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);
    struct reader_answer answer = {0};

    played_readers_add(&answer, pid, state)->started = started * tick;
    played_readers_answer(query, &answer);
}

static struct mps_record find_record(const struct pool_stage *stage)
{
    struct mps_record record = {0};

    assert_true(mps_find_record(stage->pool.mps, SLOT, &record));
    return record;
}

static void the_process_is_asked_about_alone(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    struct reader_query *query = resume(stage, child);

    assert_int_equal(query->uid, geteuid());
    assert_true(query->request.identity_only);
    assert_int_equal(query->request.pids.count, 1);
    assert_int_equal(query->request.pids.items[0], child);
    identify(query, child, READER_FOUND, STARTED);
    assert_true(played_readers_are_idle(stage->pool.readers));
    assert_true(mps_is_present(stage->pool.mps, SLOT));
    assert_int_equal(find_record(stage).started, STARTED);
    waiting_child_end(child);
}

/* A process that cannot be asked may still be the control daemon: nothing is ended or started. */
static void a_stalled_process_decides_nothing(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();

    identify(resume(stage, child), child, READER_STALLED, 0);
    assert_true(played_readers_are_idle(stage->pool.readers));
    assert_true(mps_is_present(stage->pool.mps, SLOT));
    assert_int_equal(find_record(stage).started, STARTED);
    waiting_child_end(child);
}

/* The pid is another process's now: the search goes by the mark, and not from that process. */
static struct reader_query *search(struct pool_stage *stage, pid_t other)
{
    struct reader_query *query;

    identify(resume(stage, other), other, READER_FOUND, STARTED + 1);
    query = played_readers_query(stage->pool.readers, READER_LEFTOVERS);
    assert_int_equal(query->uid, geteuid());
    assert_int_equal(query->request.uid, geteuid());
    assert_string_equal(query->request.socket, STAGE_SOCKET);
    assert_int_equal(query->request.leases.count, 1);
    assert_int_equal(query->request.leases.items[0].id, mps_mark(SLOT));
    assert_int_equal(query->request.root_pid, 0);
    return query;
}

static void another_process_has_the_pid(void **state)
{
    struct pool_stage *stage = *state;
    pid_t other = waiting_child_start();
    struct reader_query *query = search(stage, other);
    struct reader_answer nothing = {0};

    assert_true(mps_is_ending(stage->pool.mps, SLOT));
    played_readers_answer(query, &nothing);
    assert_false(mps_is_present(stage->pool.mps, SLOT));
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
    waiting_child_end(other);
}

static void count_process(void *context, const struct leftover_process *process)
{
    (void)process;
    ++*(int *)context;
}

static int count_found(const struct pool_stage *stage)
{
    int count = 0;

    mps_search_each(&stage->pool, SLOT, count_process, &count);
    return count;
}

static bool is_found_one_gone(struct pool_stage *stage)
{
    return count_found(stage) == 0;
}

/* Processes that are found get SIGTERM, and their end is waited for. */
static void what_is_found_is_ended(void **state)
{
    struct pool_stage *stage = *state;
    struct reader_answer answer = {0};
    pid_t other = waiting_child_start();
    pid_t found = waiting_child_start();
    struct reader_query *query = search(stage, other);

    assert_int_equal(count_found(stage), 0);
    played_readers_add(&answer, found, READER_OURS);
    played_readers_answer(query, &answer);
    assert_int_equal(count_found(stage), 1);
    assert_int_equal(waiting_child_await(found), SIGTERM);
    pool_stage_run(stage, is_found_one_gone);
    assert_true(mps_is_present(stage->pool.mps, SLOT));
    played_readers_say_nothing_left(stage->pool.readers);
    assert_false(mps_is_present(stage->pool.mps, SLOT));
    waiting_child_end(other);
}

/* Ends with a search and a question out. */
static void the_end_gives_up_what_is_asked(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();

    resume(stage, child);
    mps_search_forget(&stage->pool, SLOT);
    assert_true(played_readers_are_idle(stage->pool.readers));
    assert_true(mps_search_begin(&stage->pool, SLOT, geteuid(), child));
    assert_int_equal(played_readers_query(stage->pool.readers, READER_LEFTOVERS)->request.root_pid,
                     child);
    waiting_child_end(child);
}

static void without_memory_there_is_no_search(void **state)
{
    struct pool_stage *stage = *state;

    stage->pool.readers->has_no_memory = true;
    mps_search_identify(&stage->pool, SLOT, geteuid(), 77);
    assert_true(played_readers_are_idle(stage->pool.readers));
    mps_search_forget(&stage->pool, SLOT);
}

static int begin(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){
        .parts = pool_stage_all, .part_count = POOL_STAGE_ALL, .is_live = true});
    return 0;
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_process_is_asked_about_alone), TEST(a_stalled_process_decides_nothing),
        TEST(another_process_has_the_pid),      TEST(what_is_found_is_ended),
        TEST(the_end_gives_up_what_is_asked),   TEST(without_memory_there_is_no_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
