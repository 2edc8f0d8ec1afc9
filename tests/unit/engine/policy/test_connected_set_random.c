/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the choice of connected devices with its definition, by trying every partition and every
 * choice of units.
 */
#include "support/engine/topology_graphs.h"

#include <stdbool.h>

#include "support/random.h"

/* The partition by its definition: a sequence of places; those above `count` are padding. */
struct definition {
    const struct graph *graph;
    const struct connected_question *question;
    uint8_t places[CONNECTED_MAX]; /* devices that count, in order */
    uint32_t count;
    uint32_t padded; /* the count with padding */
    uint32_t now[CONNECTED_MAX];
    bool used[CONNECTED_MAX];
    bool found;
    int64_t total;
    uint64_t chosen;
};

static uint64_t devices_in(const struct definition *definition, uint32_t from, uint32_t *padding)
{
    uint64_t set = 0;

    *padding = 0;
    for (uint32_t i = from; i < from + definition->question->wanted; i++) {
        if (definition->now[i] >= definition->count)
            ++*padding;
        else
            set |= bit(definition->places[definition->now[i]]);
    }
    return set;
}

static void look_at_partition(struct definition *definition)
{
    uint32_t wanted = definition->question->wanted;
    uint32_t all_padding = definition->padded - definition->count;
    uint64_t required = definition->question->required;
    int64_t total = 0;
    int64_t best = INT64_MIN;
    uint64_t chosen = 0;

    for (uint32_t from = 0; from < definition->padded; from += wanted) {
        uint32_t padding;
        uint64_t set = devices_in(definition, from, &padding);
        int64_t sum = sum_of(definition->graph, set);

        if (padding != 0 && padding != all_padding)
            return;
        total += sum;
        if (padding == 0 && (set & required) == required && sum > best) {
            best = sum;
            chosen = set;
        }
    }
    if (chosen == 0 || (definition->found && total <= definition->total))
        return;
    definition->found = true;
    definition->total = total;
    definition->chosen = chosen;
}

/* Tries every partition: a set starts with the lowest free place, then places ascend. */
static void each_partition(struct definition *definition, uint32_t at)
{
    bool first = at % definition->question->wanted == 0;

    if (at == definition->padded) {
        look_at_partition(definition);
        return;
    }
    for (uint32_t place = first ? 0 : definition->now[at - 1] + 1; place < definition->padded;
         place++) {
        if (definition->used[place])
            continue;
        definition->used[place] = true;
        definition->now[at] = place;
        each_partition(definition, at + 1);
        definition->used[place] = false;
        if (first)
            return;
    }
}

/* Avoided devices count only if the others are too few; then all the others are required. */
static void start_definition(struct definition *definition, const struct graph *graph,
                             struct connected_question *question)
{
    uint64_t plain = (question->candidates & ~question->avoided) | question->required;

    *definition = (struct definition){.graph = graph, .question = question};
    if (size_of(plain) < question->wanted)
        question->required = plain;
    else
        question->candidates = plain;
    for (uint32_t i = 0; i < graph->order_count; i++) {
        if ((question->candidates & bit(graph->order[i])) != 0)
            definition->places[definition->count++] = graph->order[i];
    }
    definition->padded =
        (definition->count + question->wanted - 1) / question->wanted * question->wanted;
}

static uint64_t partition_by_definition(const struct graph *graph,
                                        struct connected_question question)
{
    struct definition definition;

    start_definition(&definition, graph, &question);
    each_partition(&definition, 0);
    assert_true(definition.found);
    return definition.chosen;
}

/* Units in the order in which they are used up. */
struct use {
    const struct definition *definition;
    uint64_t free[CONNECTED_MAX];
    uint32_t count;
    bool found;
    int64_t best;
    uint32_t level;
    uint64_t chosen;
};

static uint32_t first_place(const struct definition *definition, uint64_t set)
{
    uint32_t place = 0;

    while ((set & bit(definition->places[place])) == 0)
        place++;
    return place;
}

static bool comes_first(const struct use *use, uint64_t one, uint64_t other)
{
    if (size_of(one) != size_of(other))
        return size_of(one) < size_of(other);
    return first_place(use->definition, one) < first_place(use->definition, other);
}

static void gather_units(struct use *use)
{
    const struct definition *definition = use->definition;

    for (uint32_t unit = 0; unit < CONNECTED_MAX; unit++) {
        uint64_t set = 0;

        for (uint32_t i = 0; i < definition->count; i++) {
            uint8_t device = definition->places[i];

            if (definition->graph->units[device] == unit &&
                (definition->question->required & bit(device)) == 0)
                set |= bit(device);
        }
        if (set == 0)
            continue;
        use->free[use->count++] = set;
        for (uint32_t i = use->count - 1; i > 0 && comes_first(use, use->free[i], use->free[i - 1]);
             i--) {
            uint64_t kept = use->free[i];

            use->free[i] = use->free[i - 1];
            use->free[i - 1] = kept;
        }
    }
}

static void each_use(struct use *use, uint32_t from, uint32_t depth, uint64_t chosen)
{
    const struct definition *definition = use->definition;
    uint32_t wanted = definition->question->wanted;

    for (uint32_t unit = from; unit < use->count; unit++) {
        uint64_t with = chosen;

        for (uint32_t i = 0; i < definition->count && size_of(with) < wanted; i++) {
            if ((use->free[unit] & bit(definition->places[i])) != 0)
                with |= bit(definition->places[i]);
        }
        if (size_of(with) < wanted) {
            each_use(use, unit + 1, depth + 1, with);
        } else if (depth == use->level) {
            int64_t sum = sum_of(definition->graph, with);

            if (!use->found || sum > use->best) {
                use->found = true;
                use->best = sum;
                use->chosen = with;
            }
        }
    }
}

static uint64_t fill_by_definition(const struct graph *graph, struct connected_question question)
{
    struct definition definition;
    struct use use = {.definition = &definition};

    start_definition(&definition, graph, &question);
    if (size_of(question.required) == question.wanted)
        return question.required;
    gather_units(&use);
    for (use.level = 1; use.level <= use.count; use.level++)
        each_use(&use, 0, 1, question.required);
    assert_true(use.found);
    return use.chosen;
}

/* The order contains only candidates. */
static void keep_candidates(struct graph *graph, uint64_t candidates)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < graph->count; i++) {
        if ((candidates & bit(graph->order[i])) != 0)
            graph->order[kept++] = graph->order[i];
    }
    graph->order_count = kept;
}

static void check_random(enum connected_rule rule, uint64_t seed, uint32_t rounds,
                         uint64_t (*definition)(const struct graph *, struct connected_question))
{
    struct test_random random = {seed};

    for (uint32_t round = 0; round < rounds; round++) {
        struct connected_question question;
        struct connected_answer answer;
        struct graph graph;
        uint32_t wanted;

        make_graph(&graph, &random, 2 + (uint32_t)test_random_below(&random, 8));
        wanted = 1 + (uint32_t)test_random_below(&random, graph.count);
        question = question_of(&graph, rule, wanted);
        while (round % 2 == 1) {
            question.candidates = lowest(graph.count) & test_random_next(&random);
            if (size_of(question.candidates) >= wanted)
                break;
        }
        if (round % 3 == 1)
            question.required = some_of(&random, question.candidates, wanted);
        if (round % 5 == 1)
            question.avoided = some_of(&random, question.candidates, graph.count);
        keep_candidates(&graph, question.candidates);
        answer = ask(&question);
        assert_true(answer.proven);
        assert_int_equal(answer.value, sum_of(&graph, answer.chosen));
        if (answer.chosen != definition(&graph, question))
            fail_msg("round %u: expected %#lx, got %#lx", round,
                     (unsigned long)definition(&graph, question), (unsigned long)answer.chosen);
    }
}

static void the_best_partition_is_found(void **state)
{
    (void)state;
    check_random(CONNECTED_PARTITION, 1, 3000, partition_by_definition);
}

static void the_best_way_to_use_gpus_up_is_found(void **state)
{
    (void)state;
    check_random(CONNECTED_FILL, 2, 3000, fill_by_definition);
}

/* ---- Many devices ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_partition_is_found),
        cmocka_unit_test(the_best_way_to_use_gpus_up_is_found),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
