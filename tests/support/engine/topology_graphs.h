/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up graphs of devices, and requests for them.
 */
#ifndef TESTS_TOPOLOGY_GRAPHS_H
#define TESTS_TOPOLOGY_GRAPHS_H

#include "support/unit.h"

#include "engine/policy/connected_set.h"
#include "support/random.h"

struct graph {
    uint32_t count;
    int32_t values[CONNECTED_MAX * CONNECTED_MAX];
    uint8_t units[CONNECTED_MAX];
    uint8_t order[CONNECTED_MAX];
    uint32_t order_count;
};

static struct connected_scratch *scratch;

static inline int set_up(void **state)
{
    (void)state;
    scratch = connected_set_scratch_create(CONNECTED_MAX);
    return scratch == NULL ? -1 : 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    connected_set_scratch_destroy(scratch);
    return 0;
}

static inline uint64_t lowest(uint32_t count)
{
    return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static inline uint64_t bit(uint32_t device)
{
    return UINT64_C(1) << device;
}

static inline uint32_t size_of(uint64_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

static inline int32_t value_of(const struct graph *graph, uint32_t one, uint32_t other)
{
    return graph->values[one * graph->count + other];
}

static inline void set_value(struct graph *graph, uint32_t one, uint32_t other, int32_t value)
{
    graph->values[one * graph->count + other] = value;
    graph->values[other * graph->count + one] = value;
}

static inline int64_t sum_of(const struct graph *graph, uint64_t set)
{
    int64_t sum = 0;

    for (uint32_t one = 0; one < graph->count; one++) {
        for (uint32_t other = 0; other < one; other++) {
            if ((set & bit(one)) != 0 && (set & bit(other)) != 0)
                sum += value_of(graph, one, other);
        }
    }
    return sum;
}

static inline void start_graph(struct graph *graph, uint32_t count)
{
    *graph = (struct graph){.count = count, .order_count = count};
    for (uint32_t i = 0; i < count; i++)
        graph->order[i] = graph->units[i] = (uint8_t)i;
}

static inline struct connected_question question_of(const struct graph *graph,
                                                    enum connected_rule rule, uint32_t wanted)
{
    return (struct connected_question){
        .rule = rule,
        .count = graph->count,
        .values = graph->values,
        .units = graph->units,
        .candidates = lowest(graph->count),
        .order = graph->order,
        .wanted = wanted,
    };
}

static inline struct connected_answer ask(const struct connected_question *question)
{
    struct connected_answer answer;

    connected_set_choose(question, scratch, &answer);
    assert_int_equal(size_of(answer.chosen), question->wanted);
    assert_int_equal(answer.chosen & ~question->candidates, 0);
    assert_int_equal(question->required & ~answer.chosen, 0);
    assert_true(answer.steps <= connected_steps_max);
    return answer;
}

/* Makes a random graph. Few different values make ties, which must also be broken in the same way.
 */
static inline void make_graph(struct graph *graph, struct test_random *random, uint32_t count)
{
    uint64_t kinds = 1 + test_random_below(random, 6);

    start_graph(graph, count);
    for (uint32_t one = 0; one < count; one++) {
        uint32_t other = (uint32_t)test_random_below(random, one + 1);

        graph->units[one] = (uint8_t)test_random_below(random, 4);
        graph->order[one] = graph->order[other];
        graph->order[other] = (uint8_t)one;
        for (other = 0; other < one; other++)
            set_value(graph, one, other, (int32_t)test_random_below(random, kinds) * 10 - 20);
    }
}

static inline uint64_t some_of(struct test_random *random, uint64_t set, uint32_t max)
{
    uint64_t some = set & test_random_next(random);

    while (size_of(some) > max)
        some &= some - 1;
    return some;
}

#endif
