/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/lost_leases.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "daemon/leases/handover.h"
#include "daemon/mps/mps.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"
#include "support/engine/machines.h"

enum { LOST = 4711 };

/* Returns the slots that are blocked, as bits. */
static unsigned blocked(struct pool_stage *stage)
{
    unsigned bits = 0;

    for (uint32_t slot = 0; slot < 4; slot++) {
        struct slot_view view;

        engine_get_slot(stage->pool.engine, slot, &view);
        bits |= (view.blocks & BLOCK_DIRTY) != 0 ? 1U << slot : 0;
    }
    return bits;
}

static void begin_search(struct pool_stage *stage)
{
    lost_leases_note(&stage->pool, true);
    lost_leases_begin(&stage->pool);
    assert_int_equal(blocked(stage), 0xF);
}

static void add_lost(struct reader_answer *answer, pid_t pid, uint64_t lease, const char *devices)
{
    struct reader_process *process = played_readers_add(answer, pid, READER_FOUND);

    process->uid = optional_number_of(STAGE_USER);
    process->lease = lease;
    process->devices = devices == NULL ? NULL : copy_of(devices);
}

/* Answers the question for marked processes. */
static void answer_marked(struct pool_stage *stage, struct reader_answer *answer)
{
    played_readers_answer(played_readers_query(stage->pool.readers, READER_MARKED), answer);
}

/* Answers twice that one process has the mark of a lease. */
static void answer_one(struct pool_stage *stage, pid_t pid, uint64_t lease, const char *devices)
{
    for (int i = 0; i < LOST_LEASES_ANSWERS; i++) {
        struct reader_answer answer = {0};

        add_lost(&answer, pid, lease, devices);
        answer_marked(stage, &answer);
        if (i + 1 < LOST_LEASES_ANSWERS)
            pool_stage_go_on(stage, LOST_LEASES_EVERY);
    }
}

static void answer_nothing(struct pool_stage *stage)
{
    struct reader_answer nothing = {0};

    answer_marked(stage, &nothing);
}

static bool has_no_process(struct pool_stage *stage)
{
    struct problem_list problems = {0};
    bool is_empty;

    lost_leases_describe(&stage->pool, 16, &problems);
    is_empty = problems.count == 0;
    machine_report_finish_problems(&problems);
    return is_empty;
}

static void assert_described(struct pool_stage *stage, const char *words)
{
    struct problem_list problems = {0};

    lost_leases_describe(&stage->pool, 16, &problems);
    assert_int_equal(problems.count, 1);
    assert_string_equal(problems.items[0].backend, "journal");
    assert_contains(problems.items[0].message, words);
    machine_report_finish_problems(&problems);
    lost_leases_describe(&stage->pool, 0, &problems);
    assert_int_equal(problems.count, 0);
}

static void whole_journals_need_no_search(void **state)
{
    struct pool_stage *stage = *state;

    lost_leases_begin(&stage->pool);
    assert_int_equal(blocked(stage), 0);
    assert_true(played_readers_are_idle(stage->pool.readers));
    assert_true(has_no_process(stage));
    assert_false(lost_leases_are_sought(&stage->pool));
}

/* A process may become the lease's program at the moment of the first question. */
static void nothing_is_granted_before_the_second_answer(void **state)
{
    struct pool_stage *stage = *state;
    const struct reader_query *query;

    begin_search(stage);
    query = played_readers_query(stage->pool.readers, READER_MARKED);
    assert_int_equal(query->uid, STAGE_OWNER);
    assert_string_equal(query->request.socket, STAGE_SOCKET);
    assert_described(stage, "no device is granted before berth-reader has found");
    answer_nothing(stage);
    assert_int_equal(blocked(stage), 0xF);
    pool_stage_go_on(stage, LOST_LEASES_EVERY);
    answer_nothing(stage);
    assert_int_equal(blocked(stage), 0);
    assert_false(lost_leases_are_sought(&stage->pool));
    assert_true(has_no_process(stage));
    assert_contains(pool_stage_log(stage), "lost what=over\n");
}

static void devices_of_lost_leases_stay_blocked(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();

    begin_search(stage);
    answer_one(stage, child, LOST, "nvidia1,nvidia3");
    assert_int_equal(blocked(stage), 0xA);
    assert_described(stage, " (uid 1000) has the mark of lease 4711, which the journal does not "
                            "have: \"nvidia1,nvidia3\" cannot be granted before it ends");
    assert_contains(pool_stage_log(stage), " uid=1000 devices=\"nvidia1,nvidia3\"\n");
    pool_stage_go_on(stage, DURATION_MINUTE);
    assert_true(played_readers_are_idle(stage->pool.readers));
    assert_int_equal(blocked(stage), 0xA);
    waiting_child_end(child);
}

static bool has_asked(struct pool_stage *stage)
{
    return !played_readers_are_idle(stage->pool.readers);
}

/* The end of the process asks again: it may have left others. */
static void the_last_process_frees_the_device(void **state)
{
    struct pool_stage *stage = *state;
    struct reader_answer left = {0};
    pid_t first = waiting_child_start();
    pid_t second = waiting_child_start();

    begin_search(stage);
    answer_one(stage, first, LOST, "nvidia0");
    assert_int_equal(blocked(stage), 1);
    waiting_child_end(first);
    pool_stage_run(stage, has_asked);
    add_lost(&left, second, LOST, "nvidia0");
    answer_marked(stage, &left);
    assert_int_equal(blocked(stage), 1);
    waiting_child_end(second);
    pool_stage_run(stage, has_asked);
    answer_nothing(stage);
    assert_int_equal(blocked(stage), 0);
    assert_false(lost_leases_are_sought(&stage->pool));
}

static void processes_of_known_leases_do_not_count(void **state)
{
    struct pool_stage *stage = *state;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});

    begin_search(stage);
    answer_one(stage, getpid(), job->by_id.id, "nvidia0");
    assert_int_equal(blocked(stage), 0);
}

/* They have devices that the journal gives to no lease of theirs: the record that names the devices
 * was damaged. */
static void processes_with_other_devices_than_their_lease_count(void **state)
{
    struct pool_stage *stage = *state;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});

    begin_search(stage);
    answer_one(stage, getpid(), job->by_id.id, "nvidia0,nvidia2");
    assert_int_equal(blocked(stage), 4);
}

static void processes_that_name_no_devices_may_have_any(void **state)
{
    struct pool_stage *stage = *state;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});

    begin_search(stage);
    answer_one(stage, getpid(), job->by_id.id, NULL);
    assert_int_equal(blocked(stage), 0);
    begin_search(stage);
    answer_one(stage, getpid(), LOST, "nonsense,");
    assert_int_equal(blocked(stage), 0xF);
}

static void leases_without_devices_block_none(void **state)
{
    struct pool_stage *stage = *state;

    begin_search(stage);
    answer_one(stage, getpid(), LOST, "");
    assert_int_equal(blocked(stage), 0);
}

static void control_daemons_of_mps_count(void **state)
{
    struct pool_stage *stage = *state;

    begin_search(stage);
    answer_one(stage, getpid(), mps_mark(2), NULL);
    assert_int_equal(blocked(stage), 4);
}

/* The record of the grant was lost, so the claim seems to wait. */
static void claims_of_running_commands_are_cancelled(void **state)
{
    struct pool_stage *stage = *state;
    begin_search(stage);
    pool_stage_claim(stage, &(struct stage_claim){0});
    answer_one(stage, getpid(), 1, "nvidia0");
    assert_null(job_of_id(&stage->pool, 1));
    assert_int_equal(blocked(stage), 1);
}

/* A mark can be forged. */
static void claims_of_others_are_not_cancelled(void **state)
{
    struct pool_stage *stage = *state;
    struct reader_answer answer = {0};

    begin_search(stage);
    pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OTHER});
    add_lost(&answer, getpid(), 1, "nvidia0");
    answer_marked(stage, &answer);
    assert_int_equal(job_of_id(&stage->pool, 1)->state, JOB_WAITING);
}

/* A process that stalled a reader is not looked at: a user can make as many as they like. */
static void stalled_processes_do_not_count(void **state)
{
    struct pool_stage *stage = *state;

    begin_search(stage);
    for (int i = 0; i < LOST_LEASES_ANSWERS; i++) {
        struct reader_answer answer = {0};

        played_readers_add(&answer, getpid(), READER_STALLED);
        answer_marked(stage, &answer);
        pool_stage_go_on(stage, LOST_LEASES_EVERY);
    }
    assert_int_equal(blocked(stage), 0);
}

/* Without an answer the devices stay blocked, and the readers are asked again. */
static void readers_that_cannot_say_are_asked_again(void **state)
{
    struct pool_stage *stage = *state;

    begin_search(stage);
    for (int i = 0; i < 3; i++) {
        answer_marked(stage, NULL);
        assert_int_equal(blocked(stage), 0xF);
        assert_true(played_readers_are_idle(stage->pool.readers));
        pool_stage_go_on(stage, LOST_LEASES_EVERY);
    }
    answer_nothing(stage);
    stage->pool.readers->has_no_memory = true;
    pool_stage_go_on(stage, 3 * LOST_LEASES_EVERY);
    assert_int_equal(blocked(stage), 0xF);
    stage->pool.readers->has_no_memory = false;
    pool_stage_go_on(stage, LOST_LEASES_EVERY);
    answer_nothing(stage);
    assert_int_equal(blocked(stage), 0);
}

static void partial_answers_are_none(void **state)
{
    struct pool_stage *stage = *state;

    begin_search(stage);
    for (int i = 0; i < 3; i++) {
        struct reader_answer partial = {.partial = true};

        add_lost(&partial, getpid(), LOST, "nvidia1");
        answer_marked(stage, &partial);
        assert_int_equal(blocked(stage), 0xF);
        pool_stage_go_on(stage, LOST_LEASES_PARTIAL_EVERY);
    }
    answer_one(stage, getpid(), LOST, "nvidia1");
    assert_int_equal(blocked(stage), 2);
}

/* Many processes share few descriptors. */
static void many_processes_are_not_all_watched(void **state)
{
    struct pool_stage *stage = *state;
    struct problem_list problems = {0};
    static pid_t children[LOST_LEASES_WATCHED_MAX + 1];

    for (size_t i = 0; i < COUNT(children); i++)
        children[i] = waiting_child_start();
    begin_search(stage);
    for (int n = 0; n < LOST_LEASES_ANSWERS; n++) {
        struct reader_answer answer = {0};

        for (size_t i = 0; i < COUNT(children); i++)
            add_lost(&answer, children[i], LOST + i,
                     i == LOST_LEASES_WATCHED_MAX ? "nvidia3" : "nvidia0");
        answer_marked(stage, &answer);
        pool_stage_go_on(stage, LOST_LEASES_EVERY);
    }
    assert_int_equal(blocked(stage), 9);
    lost_leases_describe(&stage->pool, 1000, &problems);
    assert_int_equal(problems.count, LOST_LEASES_WATCHED_MAX);
    machine_report_finish_problems(&problems);
    for (size_t i = 0; i < COUNT(children); i++)
        waiting_child_end(children[i]);
}

/* A process that has no descriptor cannot be watched, so it is looked for from time to time. */
static void processes_without_descriptors_are_looked_for_again(void **state)
{
    struct pool_stage *stage = *state;

    begin_search(stage);
    for (int i = 0; i < LOST_LEASES_ANSWERS; i++) {
        struct reader_answer answer = {0};

        add_lost(&answer, getpid(), LOST, "nvidia1");
        close(answer.processes.items[0].descriptor);
        answer.processes.items[0].descriptor = -1;
        answer_marked(stage, &answer);
        pool_stage_go_on(stage, LOST_LEASES_EVERY);
    }
    assert_int_equal(blocked(stage), 2);
    assert_true(played_readers_are_idle(stage->pool.readers));
    pool_stage_go_on(stage, LOST_LEASES_PARTIAL_EVERY);
    answer_nothing(stage);
    assert_int_equal(blocked(stage), 0);
}

static void administrators_can_put_devices_into_service(void **state)
{
    struct pool_stage *stage = *state;

    lost_leases_release(&stage->pool, 0);
    begin_search(stage);
    lost_leases_release(&stage->pool, 2);
    assert_int_equal(blocked(stage), 0xB);
    answer_one(stage, getpid(), LOST, "nvidia1,nvidia2");
    assert_int_equal(blocked(stage), 2);
    lost_leases_release(&stage->pool, 1);
    assert_int_equal(blocked(stage), 0);
}

/* The driver may know processes that carry no mark. */
static void the_hardware_is_looked_at_first(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    lost_leases_reported(pool);
    assert_int_equal(probe_poll_create(&pool->probe_poll, &(struct probe_poll_settings){0}, NULL),
                     0);
    begin_search(stage);
    answer_nothing(stage);
    pool_stage_go_on(stage, LOST_LEASES_EVERY);
    answer_nothing(stage);
    assert_int_equal(blocked(stage), 0xF);
    assert_described(stage, "before there is a report of the hardware");
    /* A lost probe reports nothing. */
    handover_unanswered(pool);
    assert_int_equal(blocked(stage), 0xF);
    lost_leases_reported(pool);
    assert_int_equal(blocked(stage), 0);
    probe_poll_destroy(pool->probe_poll);
    pool->probe_poll = NULL;
}

/* The next daemon goes on with the search. */
static void the_journal_tells_how_far_the_search_is(void **state)
{
    struct pool_stage *stage = *state;

    begin_search(stage);
    pool_stage_journal(stage);
    answer_nothing(stage);
    assert_contains_not(pool_stage_journal(stage), "135");
    pool_stage_go_on(stage, LOST_LEASES_EVERY);
    answer_nothing(stage);
    assert_contains(pool_stage_journal(stage), "135");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pool_stage_begin, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_journals_need_no_search),
        TEST(nothing_is_granted_before_the_second_answer),
        TEST(devices_of_lost_leases_stay_blocked),
        TEST(the_last_process_frees_the_device),
        TEST(processes_of_known_leases_do_not_count),
        TEST(processes_with_other_devices_than_their_lease_count),
        TEST(processes_that_name_no_devices_may_have_any),
        TEST(leases_without_devices_block_none),
        TEST(control_daemons_of_mps_count),
        TEST(claims_of_running_commands_are_cancelled),
        TEST(claims_of_others_are_not_cancelled),
        TEST(stalled_processes_do_not_count),
        TEST(readers_that_cannot_say_are_asked_again),
        TEST(partial_answers_are_none),
        TEST(many_processes_are_not_all_watched),
        TEST(processes_without_descriptors_are_looked_for_again),
        TEST(administrators_can_put_devices_into_service),
        TEST(the_hardware_is_looked_at_first),
        TEST(the_journal_tells_how_far_the_search_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
