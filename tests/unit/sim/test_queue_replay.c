/* SPDX-License-Identifier: Apache-2.0
 *
 * How long jobs wait, on small traces computed by hand.
 */
#include "support/unit.h"

#include "sim/queue_replay.h"

#include "base/count.h"
#include "base/text/quantity.h"
#include "engine/policy/policies.h"

/* A job, with its arrival and duration in seconds. */
struct line {
    int64_t arrival;
    int64_t duration;
    uint32_t gpus;
};

static struct job_list jobs_of(const struct line *lines, size_t count)
{
    struct job_list jobs = {0};

    for (size_t i = 0; i < count; i++) {
        struct trace_job *job = vector_append(&jobs);

        assert_non_null(job);
        *job = (struct trace_job){.arrival = lines[i].arrival * DURATION_SECOND,
                                  .duration = lines[i].duration * DURATION_SECOND,
                                  .gpus = lines[i].gpus,
                                  .line = (uint32_t)i + 2};
    }
    return jobs;
}

static void check_same(const struct queue_outcome *one, const struct queue_outcome *other)
{
    assert_int_equal(one->jobs, other->jobs);
    assert_int_equal(one->wait_mean, other->wait_mean);
    assert_int_equal(one->wait_p50, other->wait_p50);
    assert_int_equal(one->wait_p99, other->wait_p99);
    assert_int_equal(one->wait_max, other->wait_max);
    assert_int_equal(one->longest, other->longest);
    assert_int_equal(one->broken_reservations, other->broken_reservations);
    assert_int_equal(one->promised, other->promised);
    assert_int_equal(one->utilization, other->utilization);
}

static struct queue_outcome replay(const struct line *lines, size_t count,
                                   struct queue_settings settings)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct job_list jobs = jobs_of(lines, count);
    struct queue_outcome outcome;
    struct queue_outcome again;

    assert_int_equal(queue_replay("jobs.csv", &jobs, &settings, &outcome, &error), 0);
    assert_int_equal(queue_replay("jobs.csv", &jobs, &settings, &again, &error), 0);
    check_same(&outcome, &again);
    assert_int_equal(outcome.jobs, count);
    vector_finish(&jobs);
    return outcome;
}

/* Waits in seconds. */
#define check_waits(outcome, mean, longest)                                       \
    do {                                                                          \
        assert_int_equal((outcome).wait_mean, (int64_t)((mean)*1e9));             \
        assert_int_equal((outcome).wait_max, (int64_t)(longest)*DURATION_SECOND); \
    } while (0)

/* A holds two of four GPUs; B wants all four, C is short enough to be backfilled before B, D is
 * not. */
static const struct line passing[] = {{0, 100, 2}, {1, 50, 4}, {2, 98, 1}, {3, 200, 1}};

static struct queue_outcome pass(enum queue_order order, enum queue_estimate estimate)
{
    return replay(passing, COUNT(passing),
                  (struct queue_settings){
                      .nodes = 1, .gpus_per_node = 4, .order = order, .estimate = estimate});
}

/* The waits are: A 0, B 99 (it starts at 100), C 0, D 147 (it starts at 150, when B ends). */
static void who_ends_before_the_start_passes(void **state)
{
    struct queue_outcome outcome = pass(QUEUE_EASY, QUEUE_EXACT);

    (void)state;
    check_waits(outcome, (99 + 147) / 4.0, 147);
    assert_int_equal(outcome.longest, 3);
    assert_int_equal(outcome.wait_p50, 0);
    assert_int_equal(outcome.wait_p99, 147 * DURATION_SECOND);
    /* B is promised a start at 100 s, and D, when B has started, at 150 s. */
    assert_int_equal(outcome.promised, 2);
    assert_int_equal(outcome.broken_reservations, 0);
    /* 200 + 200 + 98 + 200 of 4 GPUs for 350 s. */
    assert_int_equal(outcome.utilization, (uint32_t)(698e6 / 1400));
}

/* Without time limits there is no backfill: C waits for 148 s and D for 147 s. */
static void nobody_passes_without_limits(void **state)
{
    struct queue_outcome outcome = pass(QUEUE_FIFO, QUEUE_EXACT);

    (void)state;
    check_waits(outcome, (99 + 148 + 147) / 4.0, 148);
    assert_int_equal(outcome.promised, 0);
    /* The estimate makes no difference. */
    check_waits(pass(QUEUE_FIFO, QUEUE_UNDER), (99 + 148 + 147) / 4.0, 148);
}

/* Limits are three times too long, so B is promised a start at 300 s, when D would still run. All
 * jobs end early, and no job starts later than with correct limits. */
static void limits_may_be_too_long(void **state)
{
    struct queue_outcome outcome = pass(QUEUE_EASY, QUEUE_OVER3);

    (void)state;
    check_waits(outcome, (99 + 147) / 4.0, 147);
    assert_int_equal(outcome.broken_reservations, 0);
}

/* Waits are in parentheses. A is stopped at 50, where B starts (49): C would end at 51, so it must
 * wait. B is stopped at 75, where C (73), D (72) and the rest of A (25) start. The rest of B is
 * promised a start at 175. C is stopped at 124 and continues at once, because its rest ends at 173;
 * A ends at 125. D is stopped at 175: the rest of B starts (100), and the rest of D when B ends, at
 * 200 (25). */
static void limits_may_be_too_short(void **state)
{
    struct queue_outcome outcome = pass(QUEUE_EASY, QUEUE_UNDER);

    (void)state;
    check_waits(outcome, (25 + 149 + 73 + 97) / 4.0, 149);
    assert_int_equal(outcome.longest, 1);
    assert_int_equal(outcome.broken_reservations, 0);
}

/* Every job that fits starts, so B waits until D ends, at 203, although it was promised a start at
 * 100. */
static void who_fits_starts_when_jobs_are_skipped(void **state)
{
    struct queue_outcome outcome = pass(QUEUE_SKIP, QUEUE_EXACT);

    (void)state;
    check_waits(outcome, 202 / 4.0, 202);
    assert_int_equal(outcome.promised, 1);
    assert_int_equal(outcome.broken_reservations, 1);
}

/* When A ends, the shortest of the three waiting jobs starts first. */
static void the_shortest_start_first(void **state)
{
    static const struct line lines[] = {{0, 100, 4}, {1, 50, 4}, {2, 10, 4}, {3, 30, 4}};
    struct queue_outcome outcome =
        replay(lines, COUNT(lines),
               (struct queue_settings){.nodes = 1, .gpus_per_node = 4, .order = QUEUE_SJF});

    (void)state;
    /* The third job starts at 100, the fourth at 110, and the second at 140. */
    check_waits(outcome, (139 + 98 + 107) / 4.0, 139);
}

/* Two nodes of two: a gang of four is two replicas, and starts when both nodes are empty. */
static void a_gang_waits_for_whole_nodes(void **state)
{
    static const struct line lines[] = {{0, 10, 2}, {1, 100, 1}, {2, 5, 4}, {3, 50, 1}, {4, 98, 2}};
    struct queue_outcome outcome =
        replay(lines, COUNT(lines),
               (struct queue_settings){.nodes = 2, .gpus_per_node = 2, .order = QUEUE_EASY});

    (void)state;
    /* The gang starts at 101 (waits 99). The fourth job is backfilled on the device beside the
     * second job. The fifth is too long for that, although a node is empty from 10 on: it starts
     * after the gang, at 106 (waits 102). */
    check_waits(outcome, (99 + 102) / 5.0, 102);
    assert_int_equal(outcome.broken_reservations, 0);
}

/* Twelve GPUs on nodes of eight are two replicas of six: two are left on each node. */
static void what_is_no_multiple_of_a_node_has_equal_parts(void **state)
{
    static const struct line lines[] = {{0, 10, 12}, {1, 10, 2}, {2, 10, 2}, {3, 10, 1}};
    struct queue_outcome outcome =
        replay(lines, COUNT(lines),
               (struct queue_settings){.nodes = 2, .gpus_per_node = 8, .order = QUEUE_EASY});

    (void)state;
    check_waits(outcome, 7 / 4.0, 7);
}

/* Of equally full nodes, pack takes the one whose busy time grows the least. So the gang gets a
 * whole node sooner. */
static void what_ends_together_goes_together(void **state)
{
    static const struct line lines[] = {{0, 10, 3}, {0, 100, 3}, {1, 98, 1}, {2, 10, 4}};
    struct queue_settings settings = {.nodes = 2, .gpus_per_node = 4, .order = QUEUE_EASY};
    struct queue_outcome outcome;

    (void)state;
    settings.policy = &policy_first;
    outcome = replay(lines, COUNT(lines), settings);
    check_waits(outcome, 97 / 4.0, 97);
    settings.policy = &policy_pack;
    outcome = replay(lines, COUNT(lines), settings);
    check_waits(outcome, 8 / 4.0, 8);
}

static void a_job_that_no_cluster_of_this_size_could_run_is_refused(void **state)
{
    static const struct line lines[] = {{0, 10, 1}, {1, 10, 17}};
    struct queue_settings settings = {.nodes = 2, .gpus_per_node = 8};
    struct job_list jobs = jobs_of(lines, COUNT(lines));

    (void)state;
    for (int order = QUEUE_FIFO; order <= QUEUE_SJF; order++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct queue_outcome outcome = {.jobs = 77};

        settings.order = (enum queue_order)order;
        assert_int_equal(queue_replay("jobs.csv", &jobs, &settings, &outcome, &error),
                         BERTH_ERROR_INVALID);
        assert_string_equal(error.message, "jobs.csv:3: expected a job that fits on 2 nodes of 8 "
                                           "GPUs, got one with 17 GPUs");
        assert_int_equal(outcome.jobs, 77);
    }
    vector_finish(&jobs);
}

struct told {
    size_t last;
    size_t ends; /* how often all jobs had ended */
};

static void note_progress(void *context, size_t ended, size_t all)
{
    struct told *told = context;

    assert_true(ended == 0 || ended >= told->last);
    assert_true(ended <= all);
    told->last = ended;
    told->ends += ended == all;
}

static void progress_is_told(void **state)
{
    struct told told = {0};

    (void)state;
    replay(passing, COUNT(passing),
           (struct queue_settings){
               .nodes = 1, .gpus_per_node = 4, .progress = note_progress, .context = &told});
    assert_int_equal(told.ends, 2); /* it is replayed twice */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_ends_before_the_start_passes),
        cmocka_unit_test(nobody_passes_without_limits),
        cmocka_unit_test(limits_may_be_too_long),
        cmocka_unit_test(limits_may_be_too_short),
        cmocka_unit_test(who_fits_starts_when_jobs_are_skipped),
        cmocka_unit_test(the_shortest_start_first),
        cmocka_unit_test(a_gang_waits_for_whole_nodes),
        cmocka_unit_test(what_is_no_multiple_of_a_node_has_equal_parts),
        cmocka_unit_test(what_ends_together_goes_together),
        cmocka_unit_test(a_job_that_no_cluster_of_this_size_could_run_is_refused),
        cmocka_unit_test(progress_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
