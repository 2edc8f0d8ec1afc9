/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of connected devices by hand-made cases, and its limit of steps.
 */
#include "support/engine/topology_graphs.h"

#include <berth/error.h>
#include <stdbool.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/random.h"

static void shuffle(struct test_random *random, uint8_t *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t other = (uint32_t)test_random_below(random, i + 1);
        uint8_t kept = items[i];

        items[i] = items[other];
        items[other] = kept;
    }
}

/* Builds islands of well-connected devices, with the devices in random order. */
static void make_islands(struct graph *graph, struct test_random *random, uint32_t count,
                         uint32_t size)
{
    start_graph(graph, count);
    for (uint32_t i = 0; i < count; i++)
        graph->units[i] = (uint8_t)(i / size);
    shuffle(random, graph->units, count);
    for (uint32_t one = 0; one < count; one++) {
        for (uint32_t other = 0; other < one; other++)
            set_value(graph, one, other, graph->units[one] == graph->units[other] ? 1200 : 10);
    }
}

static bool is_in_one_island(const struct graph *graph, uint64_t set)
{
    uint8_t island = graph->units[__builtin_ctzll(set)];

    for (uint32_t i = 0; i < graph->count; i++) {
        if ((set & bit(i)) != 0 && graph->units[i] != island)
            return false;
    }
    return true;
}

static void islands_stay_whole(void **state)
{
    static const uint32_t sizes[] = {2, 4, 8, 16, 32};
    struct test_random random = {3};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (uint32_t wanted = 2; wanted <= sizes[i]; wanted++) {
            struct connected_question question;
            struct connected_answer answer;
            struct graph graph;

            make_islands(&graph, &random, 64, sizes[i]);
            question = question_of(&graph, CONNECTED_PARTITION, wanted);
            answer = ask(&question);
            assert_true(is_in_one_island(&graph, answer.chosen));
            if (sizes[i] % wanted == 0)
                assert_true(answer.proven);
        }
    }
}

static void equals_go_in_order(void **state)
{
    struct graph graph;

    (void)state;
    for (uint32_t count = 2; count <= 64; count++) {
        start_graph(&graph, count);
        for (uint32_t one = 0; one < count; one++) {
            for (uint32_t other = 0; other < one; other++)
                set_value(&graph, one, other, 610);
        }
        for (uint32_t wanted = 1; wanted <= count; wanted++) {
            for (int rule = CONNECTED_PARTITION; rule <= CONNECTED_FILL; rule++) {
                struct connected_question question =
                    question_of(&graph, (enum connected_rule)rule, wanted);
                struct connected_answer answer = ask(&question);

                assert_int_equal(answer.chosen, lowest(wanted));
                assert_true(answer.proven);
            }
        }
    }
}

/* Required devices are in one set with other devices of their island. */
static void required_devices_draw_their_neighbours(void **state)
{
    struct test_random random = {4};

    (void)state;
    for (uint32_t round = 0; round < 100; round++) {
        struct connected_question question;
        struct connected_answer answer;
        struct graph graph;
        uint32_t required = (uint32_t)test_random_below(&random, 64);

        make_islands(&graph, &random, 64, 8);
        question = question_of(&graph, CONNECTED_PARTITION, 8);
        question.required = bit(required);
        answer = ask(&question);
        assert_true(is_in_one_island(&graph, answer.chosen));
        assert_int_equal(graph.units[__builtin_ctzll(answer.chosen)], graph.units[required]);
    }
}

static void avoided_devices_come_last(void **state)
{
    struct test_random random = {5};

    (void)state;
    for (uint32_t round = 0; round < 100; round++) {
        struct connected_question question;
        struct connected_answer answer;
        struct graph graph;
        uint32_t plain;
        uint32_t expected;

        make_graph(&graph, &random, 20 + (uint32_t)test_random_below(&random, 45));
        question = question_of(&graph, (enum connected_rule)(round % 2),
                               1 + (uint32_t)test_random_below(&random, graph.count));
        question.avoided = some_of(&random, question.candidates, 64);
        plain = size_of(question.candidates & ~question.avoided);
        expected = question.wanted > plain ? question.wanted - plain : 0;
        answer = ask(&question);
        assert_int_equal(size_of(answer.chosen & question.avoided), expected);
    }
}

/* The limit of steps holds for any values, and the same question has the same answer. */
static void any_request_takes_bounded_steps(void **state)
{
    struct test_random random = {6};

    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        struct connected_question question;
        struct connected_answer answer;
        struct graph graph;

        make_graph(&graph, &random, 17 + (uint32_t)test_random_below(&random, 48));
        for (uint32_t i = 0; i < graph.count && round % 4 < 2; i++)
            graph.units[i] = (uint8_t)i;
        question = question_of(&graph, (enum connected_rule)(round % 2),
                               1 + (uint32_t)test_random_below(&random, graph.count));
        if (round % 3 == 0)
            question.required = some_of(&random, question.candidates, question.wanted / 2);
        answer = ask(&question);
        assert_int_equal(answer.value, sum_of(&graph, answer.chosen));
        assert_int_equal(ask(&question).chosen, answer.chosen);
    }
}

/* Up to sixteen devices the answer is always proven. */
static void the_largest_exact_question_takes_bounded_steps(void **state)
{
    struct test_random random = {7};

    (void)state;
    for (uint32_t wanted = 2; wanted < CONNECTED_EXACT_MAX; wanted++) {
        struct connected_question question;
        struct graph graph;

        make_graph(&graph, &random, CONNECTED_EXACT_MAX);
        question = question_of(&graph, CONNECTED_PARTITION, wanted);
        assert_true(ask(&question).proven);
    }
}

static int make_scratch(void *context)
{
    struct connected_scratch *made = connected_set_scratch_create(8);

    (void)context;
    if (made == NULL)
        return BERTH_ERROR_MEMORY;
    connected_set_scratch_destroy(made);
    return 0;
}

static void no_memory_is_no_scratch(void **state)
{
    (void)state;
    assert_int_equal(failing_allocator_try_all(make_scratch, NULL), 3);
    connected_set_scratch_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(islands_stay_whole),
        cmocka_unit_test(equals_go_in_order),
        cmocka_unit_test(required_devices_draw_their_neighbours),
        cmocka_unit_test(avoided_devices_come_last),
        cmocka_unit_test(any_request_takes_bounded_steps),
        cmocka_unit_test(the_largest_exact_question_takes_bounded_steps),
        cmocka_unit_test(no_memory_is_no_scratch),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
