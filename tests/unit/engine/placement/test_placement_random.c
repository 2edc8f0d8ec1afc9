/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares placement_find() with an exhaustive search, on small random machines and requests.
 */
#include "support/unit.h"

#include "engine/placement/placement.h"

#include <string.h>

#include "engine/placement/filter.h"
#include "support/engine/placement_cases.h"
#include "support/random.h"
#include "support/steps.h"

enum { SLOTS = 6, REPLICAS = 3 };

/* A case as numbers: a set of slots is a mask. */
struct view {
    size_t count;
    enum vendor vendors[SLOTS];
    unsigned room[SLOTS]; /* claims that an empty device carries */
    unsigned possible;    /* devices that pass the filters, or may pass later */
    unsigned available;   /* devices that pass the filters now and are free */
    unsigned avoided;
    unsigned must;
    unsigned min;
    unsigned max;
    unsigned replicas;
    bool mixed;
    bool ordered; /* the policy is `first`, so there is exactly one right answer */
    bool alone;   /* each replica is its own claim */
    bool spread;  /* each replica prefers a place without other replicas */
};

static unsigned size_of(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

static unsigned vendor_set(const struct view *view, enum vendor vendor)
{
    unsigned set = 0;

    for (size_t slot = 0; slot < view->count; slot++)
        set |= view->vendors[slot] == vendor ? 1U << slot : 0;
    return set;
}

/* "all" is every device of the largest group that may fit; of equal groups the one with the lowest
 * slot. */
static void resolve_all(struct view *view)
{
    unsigned best = view->mixed ? view->possible : 0;

    for (size_t slot = 0; slot < view->count && !view->mixed; slot++) {
        unsigned group = vendor_set(view, view->vendors[slot]) & view->possible;

        if (size_of(group) > size_of(best) ||
            (size_of(group) == size_of(best) && (group & -group) < (best & -best)))
            best = group;
    }
    view->possible &= best;
    view->available &= best;
    view->min = view->max = best == 0 ? 1 : size_of(best);
}

static struct view view_of(const struct placement_case *asked)
{
    const struct request *request = &asked->request;
    struct view view = {
        .count = asked->machine.devices.count,
        .min = request->gpus.min,
        .max = request->gpus.max,
        .replicas = request->replicas,
        .mixed = request->vendor_rule == VENDOR_RULE_MIXED,
        .spread = request->scheduling == SCHEDULING_SPREAD,
        .alone = request->replicas > 1 && request->scheduling == SCHEDULING_BEST_EFFORT,
    };

    for (size_t slot = 0; slot < view.count; slot++) {
        const struct device *device = &asked->machine.devices.items[slot];
        enum filter_verdict verdict = filter_device(request, device, &filter_default_terms);
        unsigned bit = 1U << slot;

        view.vendors[slot] = device->id.vendor;
        view.room[slot] = filter_tenants(request, device, &filter_default_terms);
        view.possible |= verdict == FILTER_PASSES || filter_may_change(verdict) ? bit : 0;
        view.available |= verdict == FILTER_PASSES && !bitset_has(&asked->busy, slot) ? bit : 0;
        view.avoided |= device_id_list_has(&request->avoided, device->id) ? bit : 0;
        view.must |= bitset_has(&asked->must, slot) ? bit : 0;
    }
    if (request->gpus.all)
        resolve_all(&view);
    return view;
}

/* Returns whether one replica may have this set. */
static bool is_replica(const struct view *view, unsigned set, unsigned min, unsigned max)
{
    size_t lowest = set == 0 ? 0 : (size_t)__builtin_ctz(set);

    return size_of(set) >= min && size_of(set) <= max &&
           (view->mixed || (set & ~vendor_set(view, view->vendors[lowest])) == 0);
}

/* Takes the room of one claim from each device. Returns false if a device has none. */
static bool take_room(unsigned room[SLOTS], unsigned set)
{
    for (size_t slot = 0; slot < SLOTS; slot++) {
        if ((set >> slot & 1) != 0 && room[slot]-- == 0)
            return false;
    }
    return true;
}

/* Returns whether so many replicas of one size fit on `from` at once and cover `must`. Replicas are
 * equal, so only sets from `first` up are tried. */
static bool fits(const struct view *view, const unsigned room[SLOTS], unsigned from,
                 unsigned replicas, unsigned size, unsigned must, unsigned first)
{
    if (replicas == 0)
        return must == 0;
    for (unsigned set = first; set < 1U << view->count; set++) {
        unsigned left[SLOTS];

        memcpy(left, room, sizeof(left));
        if ((set & ~from) == 0 && is_replica(view, set, size, size) && take_room(left, set) &&
            fits(view, left, from, replicas - 1, size, must & ~set, set))
            return true;
    }
    return false;
}

/* Returns the largest size at which all replicas fit at once; 0: none. */
static unsigned largest_size(const struct view *view, unsigned from)
{
    for (unsigned size = view->max; size >= view->min; size--) {
        if (size <= view->count &&
            fits(view, view->room, from, view->replicas, size, view->must, 1))
            return size;
    }
    return 0;
}

/* Returns whether so many claims, one after the other on an empty machine, can cover `must`. */
static bool claims_cover(const struct view *view, unsigned claims, unsigned must)
{
    for (unsigned set = 1; set < 1U << view->count && claims > 0; set++) {
        if ((set & ~view->possible) == 0 && is_replica(view, set, view->min, view->max) &&
            ((must & ~set) == 0 || claims_cover(view, claims - 1, must & ~set)))
            return true;
    }
    return false;
}

/* Returns the set that the policy `first` prefers: the fewest avoided devices, then the lowest
 * slots; 0: none. */
static unsigned preferred(const struct view *view, const unsigned room[SLOTS], unsigned size)
{
    unsigned must = view->replicas == 1 ? view->must : 0;
    unsigned best = 0;

    for (unsigned set = 1; set < 1U << view->count; set++) {
        unsigned left[SLOTS];
        unsigned differing = set ^ best;

        memcpy(left, room, sizeof(left));
        if ((set & ~view->available) != 0 || (must & ~set) != 0 ||
            !is_replica(view, set, size, size) || !take_room(left, set))
            continue;
        if (best == 0 || size_of(set & view->avoided) < size_of(best & view->avoided) ||
            (size_of(set & view->avoided) == size_of(best & view->avoided) &&
             (differing & -differing & set) != 0))
            best = set;
    }
    return best;
}

/* Serves replicas one after the other, each as large as possible within two bounds. Returns how
 * many were served. */
static unsigned serve(const struct view *view, unsigned min, unsigned max, unsigned sets[REPLICAS])
{
    unsigned room[SLOTS];
    unsigned served = 0;

    memcpy(room, view->room, sizeof(room));
    while (served < view->replicas) {
        unsigned set = 0;

        for (unsigned size = max; size >= min && set == 0; size--)
            set = preferred(view, room, size);
        if (set == 0)
            break;
        take_room(room, set);
        sets[served++] = set;
    }
    return served;
}

/* Reads the replicas of an answer as sets. Returns what is wrong with them, or NULL. */
static const char *read_answer(const struct view *view, const struct placement *placement,
                               unsigned sets[REPLICAS])
{
    const size_t *slot = placement->slots.items;
    unsigned room[SLOTS];
    unsigned chosen = 0;
    size_t total = 0;

    memcpy(room, view->room, sizeof(room));
    if (placement->replicas > view->replicas || placement->sizes.count != placement->replicas)
        return "the number of replicas is wrong";
    for (size_t i = 0; i < placement->replicas; i++) {
        sets[i] = 0;
        total += placement->sizes.items[i];
        if (total > placement->slots.count)
            return "there are fewer slots than the sum of the sizes";
        for (size_t rest = placement->sizes.items[i]; rest > 0; rest--, slot++) {
            if (*slot >= view->count || sets[i] >> *slot != 0)
                return "the slots of a replica are not in ascending order";
            sets[i] |= 1U << *slot;
        }
        if (!is_replica(view, sets[i], view->min, view->max))
            return "a replica has the wrong size or mixes vendors";
        if ((sets[i] & ~view->available) != 0)
            return "a replica has a device that is unsuitable or busy";
        if (!take_room(room, sets[i]))
            return "a device has too many tenants";
        chosen |= sets[i];
    }
    if (total != placement->slots.count)
        return "there are more slots than the sum of the sizes";
    if (placement->replicas > 0 && (view->must & ~chosen) != 0)
        return "a required device is not among the chosen";
    return NULL;
}

/* Compares with serving the replicas one after the other, if that serves them all. */
static const char *compare_sets(const struct view *view, const struct placement *placement,
                                const unsigned sets[REPLICAS], unsigned min, unsigned max)
{
    unsigned wanted[REPLICAS];
    unsigned served;

    if (!view->ordered || ((view->must != 0 || view->spread) && view->replicas > 1))
        return NULL;
    served = serve(view, min, max, wanted);
    if (view->alone && served != placement->replicas)
        return "best effort serves another number of replicas";
    if (served != placement->replicas)
        return NULL;
    return memcmp(sets, wanted, served * sizeof(*wanted)) == 0 ? NULL : "other devices come first";
}

static const char *judge_gang(const struct view *view, const struct placement *placement,
                              const unsigned sets[REPLICAS])
{
    unsigned size = largest_size(view, view->available);

    if (placement->satisfiable != (largest_size(view, view->possible) > 0))
        return "satisfiable is wrong";
    if (placement->now != (size > 0))
        return "now is wrong";
    if (placement->replicas != (placement->now ? view->replicas : 0))
        return "a gang got only a part of its replicas";
    for (size_t i = 0; i < placement->replicas; i++) {
        if (placement->sizes.items[i] != size)
            return "the size is not the largest";
    }
    return placement->now ? compare_sets(view, placement, sets, size, size) : NULL;
}

static const char *judge_claims(const struct view *view, const struct placement *placement,
                                const unsigned sets[REPLICAS])
{
    if (placement->satisfiable != claims_cover(view, view->replicas, view->must))
        return "satisfiable is wrong";
    if (placement->now != (placement->replicas == view->replicas))
        return "now is wrong";
    if (placement->replicas > 0 && !placement->satisfiable)
        return "an impossible request is granted";
    return compare_sets(view, placement, sets, view->min, view->max);
}

/* Returns what is wrong with an answer, or NULL. */
static const char *judge(const struct placement_case *asked, const struct policy *policy,
                         const struct placement *placement)
{
    struct view view = view_of(asked);
    unsigned sets[REPLICAS] = {0};
    const char *complaint = read_answer(&view, placement, sets);

    view.ordered = policy == &policy_first;
    if (complaint == NULL &&
        (placement->why.length == 0 || strchr(text_string(&placement->why), '\n') != NULL))
        complaint = "why is not one line";
    if (complaint != NULL)
        return complaint;
    return view.alone ? judge_claims(&view, placement, sets) : judge_gang(&view, placement, sets);
}

static bool one_in(struct test_random *random, uint64_t times)
{
    return test_random_below(random, times) == 0;
}

static void add_device(struct test_random *random, struct machine *machine, uint32_t index)
{
    static const char *const names[] = {"NVIDIA A100", "AMD Instinct", "NVIDIA H100"};
    static const uint64_t sizes[] = {24 * GIB, 40 * GIB, 80 * GIB};
    struct device *device =
        machine_add(machine, (struct device_id){(enum vendor)test_random_below(random, 3), index,
                                                DEVICE_NO_MIG});

    /* Mostly two vendors, because more would make groups tiny. */
    if (device->id.vendor == VENDOR_INTEL && !one_in(random, 3))
        device->id.vendor = VENDOR_NVIDIA;
    if (!one_in(random, 6))
        device->name = copy_of(names[test_random_below(random, 3)]);
    if (!one_in(random, 8))
        device->memory_total = optional_number_of(sizes[test_random_below(random, 3)]);
    if (!one_in(random, 5))
        device->load.memory_free = load_figure_declared(
            (int64_t)test_random_below(random, (device->memory_total.value | 1) + 1));
    if (!one_in(random, 5))
        device->cap = (struct capability){true, (uint16_t)(7 + test_random_below(random, 3)), 0};
    device->health = (enum health)test_random_below(random, 3);
    if (device->health == HEALTH_SICK && one_in(random, 2))
        device->health = HEALTH_OK;
    device->partitioned = one_in(random, 12);
}

static void choose_filters(struct test_random *random, struct request *request)
{
    request->vendor_rule = (enum vendor_rule)test_random_below(random, 3);
    if (request->vendor_rule == VENDOR_RULE_EXACT && one_in(random, 2))
        request->vendor_rule = VENDOR_RULE_ONE;
    request->vendor = (enum vendor)test_random_below(random, 3);
    if (one_in(random, 10))
        request->model = copy_of(one_in(random, 2) ? "nvidia" : "100");
    if (one_in(random, 8))
        request->min_free = optional_number_of(test_random_below(random, 30) * GIB);
    if (one_in(random, 8))
        request->min_memory = optional_number_of(40 * GIB);
    if (one_in(random, 10))
        request->min_cap = (struct capability){true, 8, 0};
}

static void choose_sharing(struct test_random *random, struct request *request)
{
    if (one_in(random, 2))
        return;
    request->sharing = one_in(random, 4) ? SHARING_MPS : SHARING_TIME_SLICE;
    if (one_in(random, 2))
        request->share = optional_number_of(SHARE_WHOLE / (1 + test_random_below(random, 4)));
    /* Sizes that make devices have room for 1, 2 or more claims. */
    if (one_in(random, 2))
        request->memory = optional_number_of((10 + test_random_below(random, 15)) * GIB);
}

static void choose_request(struct test_random *random, struct request *request)
{
    do {
        request_finish(request);
        request->gpus.all = one_in(random, 8);
        request->gpus.min = 1 + (uint32_t)test_random_below(random, 3);
        request->gpus.max = request->gpus.min;
        if (one_in(random, 2))
            request->gpus.max += (uint32_t)test_random_below(random, 4);
        request->replicas = 1 + (uint32_t)test_random_below(random, REPLICAS);
        request->scheduling = (enum scheduling)test_random_below(random, 4);
        request->ranks = one_in(random, 4);
        choose_filters(random, request);
        choose_sharing(random, request);
    } while (request_validate(request, NULL) < 0);
}

static void add_id(struct device_id_list *list, struct device_id id)
{
    struct device_id *place = vector_append(list);

    assert_non_null(place);
    *place = id;
}

static void make_question(struct test_random *random, struct placement_case *asked)
{
    size_t count = test_random_below(random, SLOTS + 1);
    bool has_wanted = one_in(random, 8);
    bool has_avoided = one_in(random, 3);
    bool has_must = one_in(random, 3);
    uint64_t must_one_in = 1 + test_random_below(random, 4);

    *asked = (struct placement_case){0};
    choose_request(random, &asked->request);
    assert_int_equal(bitset_init(&asked->busy, count), 0);
    assert_int_equal(bitset_init(&asked->must, count), 0);
    for (size_t slot = 0; slot < count; slot++) {
        struct device_id id;

        add_device(random, &asked->machine, (uint32_t)slot);
        id = asked->machine.devices.items[slot].id;
        if (has_wanted && !one_in(random, 4))
            add_id(&asked->request.wanted, id);
        if (has_avoided && one_in(random, 2))
            add_id(&asked->request.avoided, id);
        if (has_must && one_in(random, must_one_in))
            bitset_add(&asked->must, slot);
        if (one_in(random, 5))
            bitset_add(&asked->busy, slot);
    }
}

static bool same_answer(const struct placement *one, const struct placement *other)
{
    return one->satisfiable == other->satisfiable && one->now == other->now &&
           one->replicas == other->replicas && one->slots.count == other->slots.count &&
           (one->slots.count == 0 || memcmp(one->slots.items, other->slots.items,
                                            one->slots.count * sizeof(*one->slots.items)) == 0) &&
           strcmp(text_string(&one->why), text_string(&other->why)) == 0;
}

/* Counts each kind of answer, to check that all occur. */
struct tally {
    unsigned long now;
    unsigned long later;
    unsigned long never;
    unsigned long partly;
};

static void count_answer(struct tally *tally, const struct placement *placement)
{
    tally->now += placement->now;
    tally->later += placement->satisfiable && !placement->now;
    tally->never += !placement->satisfiable;
    tally->partly += placement->replicas > 0 && !placement->now;
}

/* Places the request twice, and checks the answer. */
static void check_question(struct placement_case *asked, const struct policy *policy,
                           unsigned long step, struct tally *tally)
{
    struct placement placement;
    struct placement again;
    const char *complaint;

    assert_int_equal(placement_case_ask_policy(asked, policy, &placement, NULL), 0);
    assert_int_equal(placement_case_ask_policy(asked, policy, &again, NULL), 0);
    complaint = judge(asked, policy, &placement);
    if (complaint == NULL && !same_answer(&placement, &again))
        complaint = "the same request has two answers";
    if (complaint != NULL)
        fail_msg("step %lu, policy %s: %s; why: %s", step, policy->name, complaint,
                 text_string(&placement.why));
    count_answer(tally, &placement);
    placement_finish(&placement);
    placement_finish(&again);
}

static void answers_agree_with_trying_everything(void **state)
{
    unsigned long steps = test_steps(60000);
    struct test_random random = {15};
    struct tally tally = {0};

    (void)state;
    for (unsigned long step = 0; step < steps; step++) {
        struct placement_case asked;

        make_question(&random, &asked);
        check_question(&asked, &policy_first, step, &tally);
        placement_case_finish(&asked);
    }
    assert_true(tally.now >= steps / 10 && tally.later >= steps / 20);
    assert_true(tally.never >= steps / 20 && tally.partly >= steps / 200);
}

static void add_links(struct test_random *random, struct machine *machine)
{
    for (uint32_t one = 0; one < machine->devices.count; one++) {
        for (uint32_t other = one + 1; other < machine->devices.count; other++) {
            enum link_kind kind = (enum link_kind)test_random_below(random, LINK_SYS + 1);
            struct link *link;

            if (one_in(random, 3))
                continue;
            link = vector_append(&machine->links);
            assert_non_null(link);
            *link = (struct link){.between = {one, other}, .kind = kind};
            if (link_is_fabric(kind))
                link->lanes = 1 + (uint32_t)test_random_below(random, 12);
        }
    }
}

/* Every policy finds a solution exactly when one exists, also on machines with links. */
static void every_policy_finds_a_way_when_there_is_one(void **state)
{
    unsigned long steps = test_steps(40000);
    struct test_random random = {16};
    struct tally tally = {0};
    size_t policy_count = 0;

    (void)state;
    while (policies[policy_count] != NULL)
        policy_count++;
    for (unsigned long step = 0; step < steps; step++) {
        struct placement_case asked;

        make_question(&random, &asked);
        add_links(&random, &asked.machine);
        check_question(&asked, policies[test_random_below(&random, policy_count)], step, &tally);
        placement_case_finish(&asked);
    }
    assert_true(tally.now >= steps / 10 && tally.later >= steps / 20 && tally.never >= steps / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_agree_with_trying_everything),
        cmocka_unit_test(every_policy_finds_a_way_when_there_is_one),
    };

    return cmocka_run_group_tests_name("placement_random", tests, NULL, NULL);
}
