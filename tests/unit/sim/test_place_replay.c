/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the replay of berth sim place.
 */
#include "support/unit.h"

#include "sim/place_replay.h"

#include <string.h>

#include "base/count.h"
#include "engine/engine.h"
#include "sim/arrivals.h"
#include "sim/fragmentation.h"
#include "sim/place_report.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"
#include "support/traces.h"

/* The published values of splitmix64. */
static void random_numbers_are_those_of_splitmix64(void **state)
{
    static const uint64_t wanted[] = {
        UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821),
    };
    struct sim_random random = {1234567};

    (void)state;
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_true(sim_random_next(&random) == wanted[i]);
}

static void draws_are_even(void **state)
{
    enum { LIMIT = 7, DRAWS = 70000 };
    struct sim_random random = {1};
    unsigned counts[LIMIT] = {0};

    (void)state;
    for (unsigned i = 0; i < DRAWS; i++)
        counts[sim_random_below(&random, LIMIT)]++;
    for (unsigned i = 0; i < LIMIT; i++)
        assert_in_range(counts[i], DRAWS / LIMIT - 500, DRAWS / LIMIT + 500);
    assert_int_equal(sim_random_below(&random, 1), 0);
}

static uint64_t demand_of(const struct pod_trace *trace, const struct arrivals *arrivals,
                          size_t count)
{
    uint64_t demand = 0;

    for (size_t i = 0; i < count; i++)
        demand += pod_trace_demand(&trace->kinds.items[arrivals->items[i]]);
    return demand;
}

/* A hundred pods of different kinds, each with a part of a GPU. */
static struct pod_trace hundred_pods(void)
{
    struct text rows = {0};
    struct pod_trace trace;

    for (unsigned i = 1; i <= 100; i++)
        text_append_format(&rows, "p,1,1,1,%u,\n", i);
    trace = trace_of("a,1,1,4,\nb,1,1,4,\nc,1,1,4,\n", text_string(&rows), 1);
    text_finish(&rows);
    return trace;
}

static void every_pod_arrives_before_any_comes_again(void **state)
{
    struct pod_trace trace = hundred_pods();
    struct arrivals arrivals;
    bool seen[100] = {false};
    bool moved = false;

    (void)state;
    assert_int_equal(arrivals_draw(&trace, 1, 12000, &arrivals, NULL), 0);
    assert_true(arrivals.count > 100);
    for (uint32_t i = 0; i < 100; i++) {
        assert_false(seen[arrivals.items[i]]);
        seen[arrivals.items[i]] = true;
        moved |= arrivals.items[i] != i;
    }
    assert_true(moved);
    assert_true(demand_of(&trace, &arrivals, arrivals.count) >= 12000);
    assert_true(demand_of(&trace, &arrivals, arrivals.count - 1) < 12000);
    arrivals_finish(&arrivals);
    pod_trace_finish(&trace);
}

static void arrivals_end_with_the_demand(void **state)
{
    struct pod_trace trace = hundred_pods();
    struct arrivals arrivals;

    (void)state;
    assert_int_equal(arrivals_draw(&trace, 1, 2000, &arrivals, NULL), 0);
    assert_true(arrivals.count < 100);
    assert_true(demand_of(&trace, &arrivals, arrivals.count) >= 2000);
    assert_true(demand_of(&trace, &arrivals, arrivals.count - 1) < 2000);
    arrivals_finish(&arrivals);
    pod_trace_finish(&trace);
}

static void arrivals_go_by_the_seed(void **state)
{
    struct pod_trace trace = hundred_pods();
    struct arrivals one;
    struct arrivals again;
    struct arrivals other;
    uint32_t nodes = 0;

    (void)state;
    assert_int_equal(arrivals_draw(&trace, 1, 8000, &one, NULL), 0);
    assert_int_equal(arrivals_draw(&trace, 1, 8000, &again, NULL), 0);
    assert_int_equal(arrivals_draw(&trace, 2, 8000, &other, NULL), 0);
    assert_int_equal(one.count, again.count);
    assert_memory_equal(one.items, again.items, one.count * sizeof(*one.items));
    assert_memory_equal(one.order, again.order, 3 * sizeof(*one.order));
    assert_memory_not_equal(one.items, other.items, 50 * sizeof(*one.items));
    for (size_t i = 0; i < 3; i++)
        nodes |= 1U << one.order[i];
    assert_int_equal(nodes, 7);
    arrivals_finish(&one);
    arrivals_finish(&again);
    arrivals_finish(&other);
    pod_trace_finish(&trace);
}

/* 95 % of 20 pods are 19. Kinds that differ only in memory are merged. */
static void usual_kinds_cover_nineteen_of_twenty(void **state)
{
    struct text rows = {0};
    struct typical_pods typical;
    struct pod_trace trace;

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        text_append_format(&rows, "p,1000,%u,1,1000,\n", i + 1);
    for (unsigned i = 0; i < 8; i++)
        text_append(&rows, "q,500,1,0,0,\n");
    text_append(&rows, "r,7,1,1,500,T4\ns,9,1,1,500,T4\n");
    trace = trace_of("a,1,1,4,\n", text_string(&rows), 1);
    assert_int_equal(typical_pods_find(&trace, &typical, NULL), 0);
    assert_int_equal(typical.count, 3);
    assert_int_equal(typical.pods, 19);
    assert_int_equal(typical.items[0].pods, 10);
    assert_int_equal(typical.items[0].gpus, 1);
    assert_int_equal(typical.items[0].memory, 0);
    assert_int_equal(typical.items[1].pods, 8);
    assert_int_equal(typical.items[1].gpus, 0);
    /* Of equally frequent kinds the larger comes first. */
    assert_int_equal(typical.items[2].cpus, 9);
    typical_pods_finish(&typical);
    pod_trace_finish(&trace);
    text_finish(&rows);
}

/* An engine of a trace, and its fragmentation. */
struct measured {
    struct pod_trace trace;
    struct typical_pods typical;
    struct engine *engine;
    struct fragmentation fragmentation;
};

static void set_up(struct measured *measured, const char *nodes, const char *pods)
{
    struct machine machine;

    measured->trace = trace_of(nodes, pods, 1);
    assert_int_equal(typical_pods_find(&measured->trace, &measured->typical, NULL), 0);
    assert_int_equal(pod_trace_build_machine(&measured->trace, NULL, &machine, NULL), 0);
    assert_int_equal(engine_create(&machine, NULL, &measured->engine, NULL), 0);
    assert_int_equal(
        fragmentation_init(measured->engine, &measured->typical, &measured->fragmentation, NULL),
        0);
}

static void tear_down(struct measured *measured)
{
    fragmentation_finish(&measured->fragmentation);
    engine_destroy(measured->engine);
    typical_pods_finish(&measured->typical);
    pod_trace_finish(&measured->trace);
}

static void check_measure(struct measured *measured, double wanted)
{
    double found = fragmentation_measure(&measured->fragmentation);

    assert_true(found > wanted - 1e-6 && found < wanted + 1e-6);
}

/* Takes a part of the lowest GPU with room, and CPUs of its host. */
static void take_part(struct measured *measured, uint32_t part, uint64_t cpus)
{
    const struct trace_kind kind = {.gpus = 1, .part = part, .cpus = cpus, .models = (char *)""};
    struct engine_request *opened;
    struct request request;
    struct lease_view view;
    uint64_t lease;
    uint32_t host;

    assert_int_equal(pod_trace_build_request(&kind, &request, NULL), 0);
    assert_int_equal(
        engine_request_open(measured->engine, &request, &(struct party){0}, NULL, &opened, NULL),
        0);
    assert_int_equal(engine_try(measured->engine, opened, &lease, NULL), CLAIM_GRANTED);
    assert_true(engine_get_lease(measured->engine, lease, &view));
    host = engine_machine(measured->engine)->devices.items[view.slots[0]].host;
    fragmentation_changed(&measured->fragmentation, host, cpus);
    engine_request_close(measured->engine, opened);
    request_finish(&request);
}

/* Half of the typical pods want a whole GPU and 2 CPUs, a quarter half a GPU of model T4, a quarter
 * no GPU. The node has two V100. */
static void fragmentation_by_hand(void **state)
{
    struct measured measured;

    (void)state;
    set_up(&measured, "a,4000,8,2,V100\n",
           "p,2000,1,1,1000,\nq,2000,1,1,1000,\nr,1000,1,1,500,T4\ns,1000,1,0,0,\n");
    /* All 2000 are free; the second half of the pods cannot use them. */
    check_measure(&measured, 1000);
    take_part(&measured, 300, 1000);
    /* The first half of the pods cannot use 700 of 1700; the others cannot use any. */
    check_measure(&measured, 0.5 * 700 + 0.5 * 1700);
    take_part(&measured, 700, 500);
    check_measure(&measured, 0.5 * 1000);
    take_part(&measured, 100, 600);
    /* 1.9 CPUs are left: too few for every pod. */
    check_measure(&measured, 900);
    check_measure(&measured, 900);
    tear_down(&measured);
}

static void fragmentation_of_pods_with_several_gpus(void **state)
{
    struct measured measured;

    (void)state;
    set_up(&measured, "a,8000,8,2,\nb,8000,8,4,\n", "p,1000,1,4,1000,\n");
    check_measure(&measured, 2000);
    /* Node a is the first. */
    take_part(&measured, 1000, 0);
    check_measure(&measured, 1000);
    take_part(&measured, 1000, 0);
    check_measure(&measured, 0);
    take_part(&measured, 400, 0);
    check_measure(&measured, 3600);
    tear_down(&measured);
}

static struct place_settings settings_of(const struct pod_trace *trace,
                                         const struct typical_pods *typical)
{
    return (struct place_settings){
        .trace = trace,
        .typical = typical,
        .policy = "first",
        .seed = 1,
        .tune = 1500,
    };
}

static void count_progress(void *context, size_t done, size_t of)
{
    size_t *told = context;

    assert_true(done < of);
    ++*told;
}

static void a_replay_by_hand(void **state)
{
    struct pod_trace trace = trace_of("a,8000,9,2,\n", "p,1000,1,1,1000,\n", 1);
    struct place_settings settings;
    struct typical_pods typical;
    struct place_run run;
    size_t told = 0;
    int64_t value = 7;

    (void)state;
    assert_int_equal(typical_pods_find(&trace, &typical, NULL), 0);
    settings = settings_of(&trace, &typical);
    settings.progress = count_progress;
    settings.context = &told;
    assert_int_equal(place_replay_run(&settings, &run, NULL), 0);
    assert_int_equal(told, 1);
    assert_int_equal(run.decisions, 3);
    assert_int_equal(run.failed, 1);
    assert_true(place_replay_allocated(&run, 50, &value) && value == 500000);
    assert_true(place_replay_allocated(&run, 100, &value) && value == 1000000);
    assert_true(place_replay_allocated(&run, 150, &value) && value == 1000000);
    assert_true(place_replay_fragmented(&run, 100, &value) && value == 0);
    value = 7;
    assert_false(place_replay_allocated(&run, 60, &value));
    assert_int_equal(value, 7);
    assert_true(run.decision_p50 <= run.decision_p99 && run.decision_p99 <= run.decision_max);
    assert_true(run.took >= run.decision_max);
    typical_pods_finish(&typical);
    pod_trace_finish(&trace);
}

static void an_unknown_policy_is_refused(void **state)
{
    struct pod_trace trace = trace_of("a,8000,9,2,\n", "p,1000,1,1,1000,\n", 1);
    struct berth_error error = BERTH_ERROR_INIT;
    struct place_settings settings;
    struct typical_pods typical;
    struct place_run run;

    (void)state;
    assert_int_equal(typical_pods_find(&trace, &typical, NULL), 0);
    settings = settings_of(&trace, &typical);
    settings.policy = "fist";
    assert_int_equal(place_replay_run(&settings, &run, &error), BERTH_ERROR_INVALID);
    assert_non_null(strstr(error.message, "got 'fist'"));
    typical_pods_finish(&typical);
    pod_trace_finish(&trace);
}

static int attempt_replay(void *context)
{
    const struct pod_trace *trace = context;
    struct place_settings settings;
    struct typical_pods typical;
    struct place_run run;
    int code = typical_pods_find(trace, &typical, NULL);

    if (code < 0)
        return code;
    settings = settings_of(trace, &typical);
    code = place_replay_run(&settings, &run, NULL);
    typical_pods_finish(&typical);
    return code;
}

static void without_memory_a_replay_fails(void **state)
{
    struct pod_trace trace = trace_of("a,8000,9,2,T4\nb,8000,9,1,\n",
                                      "p,1000,1,1,1000,\nq,1,1,1,500,T4\nr,1,1,0,0,\n", 1);

    (void)state;
    assert_true(failing_allocator_try_all(attempt_replay, &trace) > 20);
    pod_trace_finish(&trace);
}

/* A mean counts only the runs that have a value. */
static void means_leave_out_what_is_unknown(void **state)
{
    static struct place_run runs[3];
    const struct place_series series = {.items = runs, .count = 3};
    int64_t mean = 7;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        runs[i].capacity = 10000;
    runs[0].samples[60] = (struct place_sample){.count = 2, .allocated = 11000};
    runs[2].samples[60] = (struct place_sample){.count = 1, .allocated = 5999};
    assert_true(place_report_mean(&series, place_replay_allocated, 60, &mean));
    assert_int_equal(mean, 574950);
    mean = 7;
    assert_false(place_report_mean(&series, place_replay_allocated, 61, &mean));
    assert_int_equal(mean, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_are_those_of_splitmix64),
        cmocka_unit_test(draws_are_even),
        cmocka_unit_test(every_pod_arrives_before_any_comes_again),
        cmocka_unit_test(arrivals_end_with_the_demand),
        cmocka_unit_test(arrivals_go_by_the_seed),
        cmocka_unit_test(usual_kinds_cover_nineteen_of_twenty),
        cmocka_unit_test(fragmentation_by_hand),
        cmocka_unit_test(fragmentation_of_pods_with_several_gpus),
        cmocka_unit_test(a_replay_by_hand),
        cmocka_unit_test(an_unknown_policy_is_refused),
        cmocka_unit_test(without_memory_a_replay_fails),
        cmocka_unit_test(means_leave_out_what_is_unknown),
    };

    return cmocka_run_group_tests_name("sim_protocol", tests, temporary_directory_enter,
                                       temporary_directory_leave);
}
