/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of connected devices against its own definition: every partition, and every way to use
 * up GPUs, looked at one by one.
 */
#include "support/unit.h"

#include "engine/topology.h"

#include <berth/error.h>
#include <stdbool.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/random.h"

struct graph {
    uint32_t count;
    int32_t values[TOPOLOGY_MOST * TOPOLOGY_MOST];
    uint8_t units[TOPOLOGY_MOST];
    uint8_t order[TOPOLOGY_MOST];
    uint32_t order_count;
};

static struct topology_scratch *scratch;

static int set_up(void **state)
{
    (void)state;
    scratch = topology_scratch_create(TOPOLOGY_MOST);
    return scratch == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    topology_scratch_destroy(scratch);
    return 0;
}

static uint64_t lowest(uint32_t count)
{
    return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static uint64_t bit(uint32_t device)
{
    return UINT64_C(1) << device;
}

static uint32_t size_of(uint64_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

static int32_t value_of(const struct graph *graph, uint32_t one, uint32_t other)
{
    return graph->values[one * graph->count + other];
}

static void set_value(struct graph *graph, uint32_t one, uint32_t other, int32_t value)
{
    graph->values[one * graph->count + other] = value;
    graph->values[other * graph->count + one] = value;
}

static int64_t sum_of(const struct graph *graph, uint64_t set)
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

static void start_graph(struct graph *graph, uint32_t count)
{
    *graph = (struct graph){.count = count, .order_count = count};
    for (uint32_t i = 0; i < count; i++)
        graph->order[i] = graph->units[i] = (uint8_t)i;
}

static struct topology_question question_of(const struct graph *graph, enum topology_rule rule,
                                            uint32_t wanted)
{
    return (struct topology_question){
        .rule = rule,
        .count = graph->count,
        .values = graph->values,
        .units = graph->units,
        .candidates = lowest(graph->count),
        .order = graph->order,
        .wanted = wanted,
    };
}

static struct topology_answer ask(const struct topology_question *question)
{
    struct topology_answer answer;

    topology_choose(question, scratch, &answer);
    assert_int_equal(size_of(answer.chosen), question->wanted);
    assert_int_equal(answer.chosen & ~question->candidates, 0);
    assert_int_equal(question->required & ~answer.chosen, 0);
    assert_true(answer.steps <= topology_steps_most);
    return answer;
}

/* ---- By definition ---- */

/* Sequences of places; those past the count are padding. */
struct definition {
    const struct graph *graph;
    const struct topology_question *question;
    uint8_t places[TOPOLOGY_MOST]; /* devices that count, in order */
    uint32_t count;
    uint32_t padded; /* the count with padding */
    uint32_t now[TOPOLOGY_MOST];
    bool used[TOPOLOGY_MOST];
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

/* Puts the lowest place that is left first into each set, and rising ones after it. */
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

/* As few avoided devices as can be: they count only where the others are too few, which are then
 * all required. */
static void start_definition(struct definition *definition, const struct graph *graph,
                             struct topology_question *question)
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
                                        struct topology_question question)
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
    uint64_t free[TOPOLOGY_MOST];
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

    for (uint32_t unit = 0; unit < TOPOLOGY_MOST; unit++) {
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

static uint64_t fill_by_definition(const struct graph *graph, struct topology_question question)
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

/* ---- Against it ---- */

/* Few different values make ties, which are to be broken in the same way too. */
static void make_graph(struct graph *graph, struct test_random *random, uint32_t count)
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

static uint64_t some_of(struct test_random *random, uint64_t set, uint32_t most)
{
    uint64_t some = set & test_random_next(random);

    while (size_of(some) > most)
        some &= some - 1;
    return some;
}

/* The order has candidates only. */
static void keep_candidates(struct graph *graph, uint64_t candidates)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < graph->count; i++) {
        if ((candidates & bit(graph->order[i])) != 0)
            graph->order[kept++] = graph->order[i];
    }
    graph->order_count = kept;
}

static void check_random(enum topology_rule rule, uint64_t seed, uint32_t rounds,
                         uint64_t (*definition)(const struct graph *, struct topology_question))
{
    struct test_random random = {seed};

    for (uint32_t round = 0; round < rounds; round++) {
        struct topology_question question;
        struct topology_answer answer;
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
            fail_msg("round %u: wanted %#lx, found %#lx", round,
                     (unsigned long)definition(&graph, question), (unsigned long)answer.chosen);
    }
}

static void the_best_partition_is_found(void **state)
{
    (void)state;
    check_random(TOPOLOGY_PARTITION, 1, 3000, partition_by_definition);
}

static void the_best_way_to_use_gpus_up_is_found(void **state)
{
    (void)state;
    check_random(TOPOLOGY_FILL, 2, 3000, fill_by_definition);
}

/* ---- Many devices ---- */

static void shuffle(struct test_random *random, uint8_t *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t other = (uint32_t)test_random_below(random, i + 1);
        uint8_t kept = items[i];

        items[i] = items[other];
        items[other] = kept;
    }
}

/* Islands of so many devices, well connected within; where each device is is left to chance. */
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
            struct topology_question question;
            struct topology_answer answer;
            struct graph graph;

            make_islands(&graph, &random, 64, sizes[i]);
            question = question_of(&graph, TOPOLOGY_PARTITION, wanted);
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
            for (int rule = TOPOLOGY_PARTITION; rule <= TOPOLOGY_FILL; rule++) {
                struct topology_question question =
                    question_of(&graph, (enum topology_rule)rule, wanted);
                struct topology_answer answer = ask(&question);

                assert_int_equal(answer.chosen, lowest(wanted));
                assert_true(answer.proven);
            }
        }
    }
}

/* The required ones are in one set with others of their island as far as these go. */
static void required_devices_draw_their_neighbours(void **state)
{
    struct test_random random = {4};

    (void)state;
    for (uint32_t round = 0; round < 100; round++) {
        struct topology_question question;
        struct topology_answer answer;
        struct graph graph;
        uint32_t required = (uint32_t)test_random_below(&random, 64);

        make_islands(&graph, &random, 64, 8);
        question = question_of(&graph, TOPOLOGY_PARTITION, 8);
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
        struct topology_question question;
        struct topology_answer answer;
        struct graph graph;
        uint32_t plain;
        uint32_t expected;

        make_graph(&graph, &random, 20 + (uint32_t)test_random_below(&random, 45));
        question = question_of(&graph, (enum topology_rule)(round % 2),
                               1 + (uint32_t)test_random_below(&random, graph.count));
        question.avoided = some_of(&random, question.candidates, 64);
        plain = size_of(question.candidates & ~question.avoided);
        expected = question.wanted > plain ? question.wanted - plain : 0;
        answer = ask(&question);
        assert_int_equal(size_of(answer.chosen & question.avoided), expected);
    }
}

/* However the values are, and asked again it says the same. */
static void any_request_takes_bounded_steps(void **state)
{
    struct test_random random = {6};

    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        struct topology_question question;
        struct topology_answer answer;
        struct graph graph;

        make_graph(&graph, &random, 17 + (uint32_t)test_random_below(&random, 48));
        for (uint32_t i = 0; i < graph.count && round % 4 < 2; i++)
            graph.units[i] = (uint8_t)i;
        question = question_of(&graph, (enum topology_rule)(round % 2),
                               1 + (uint32_t)test_random_below(&random, graph.count));
        if (round % 3 == 0)
            question.required = some_of(&random, question.candidates, question.wanted / 2);
        answer = ask(&question);
        assert_int_equal(answer.value, sum_of(&graph, answer.chosen));
        assert_int_equal(ask(&question).chosen, answer.chosen);
    }
}

/* Sixteen devices are the most that are looked at to the letter, whatever is wanted of them. */
static void the_largest_exact_question_takes_bounded_steps(void **state)
{
    struct test_random random = {7};

    (void)state;
    for (uint32_t wanted = 2; wanted < TOPOLOGY_EXACT_MOST; wanted++) {
        struct topology_question question;
        struct graph graph;

        make_graph(&graph, &random, TOPOLOGY_EXACT_MOST);
        question = question_of(&graph, TOPOLOGY_PARTITION, wanted);
        assert_true(ask(&question).proven);
    }
}

static int make_scratch(void *context)
{
    struct topology_scratch *made = topology_scratch_create(8);

    (void)context;
    if (made == NULL)
        return BERTH_ERROR_MEMORY;
    topology_scratch_destroy(made);
    return 0;
}

static void no_memory_is_no_scratch(void **state)
{
    (void)state;
    assert_int_equal(failing_allocator_try_all(make_scratch, NULL), 3);
    topology_scratch_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_partition_is_found),
        cmocka_unit_test(the_best_way_to_use_gpus_up_is_found),
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
