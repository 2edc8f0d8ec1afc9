/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the model in situations whose outcome follows directly from docs/FAIRNESS.md.
 */
#include "support/unit.h"

#include "promises/model.h"

#include <string.h>

#include "support/random.h"
#include "support/units.h"

enum { ASKINGS = 16 };

/* Plain devices of one vendor, their leases and the queue. */
struct scene {
    struct plan plan;
    struct model model;
    struct asking askings[ASKINGS];
    size_t asking_count;
    uint64_t last_id;
};

static void scene_init(struct scene *scene, unsigned devices)
{
    *scene = (struct scene){.plan = {.planned = devices, .initial = devices, .hosts = 1}};
    scene->plan.rules.age_step = 1000;
    for (unsigned slot = 0; slot < devices; slot++)
        scene->plan.devices[slot] = (struct device_plan){
            .id = {VENDOR_NVIDIA, slot, DEVICE_NO_MIG},
            .memory = optional_number_of(80 * GIB),
        };
    model_init(&scene->model, &scene->plan);
}

static struct asking *ask(struct scene *scene, uint32_t devices)
{
    struct asking *asking = &scene->askings[scene->asking_count++];

    assert_true(scene->asking_count <= ASKINGS);
    *asking =
        (struct asking){.gpus = {.min = devices, .max = devices}, .replicas = 1, .uid = FIRST_UID};
    return asking;
}

static struct asking *ask_for(struct scene *scene, uint32_t devices, uint64_t time)
{
    struct asking *asking = ask(scene, devices);

    asking->time = optional_number_of(time);
    return asking;
}

static struct asking *ask_helper(struct scene *scene, uint32_t devices)
{
    struct asking *asking = ask(scene, devices);

    asking->opportunistic = true;
    return asking;
}

/* Adds a lease on these slots. `expires` is its time limit; TIME_NEVER: none. */
static struct model_lease *hold(struct scene *scene, const struct asking *asking, slot_set slots,
                                int64_t expires)
{
    struct model_lease *lease = &scene->model.leases[scene->model.lease_count++];

    *lease = (struct model_lease){
        .id = ++scene->last_id, .asking = asking, .expires = expires, .force_at = TIME_NEVER};
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
        if ((slots >> slot & 1) != 0)
            lease->slots[lease->slot_count++] = slot;
    }
    return lease;
}

static struct model_claim *wait_for(struct scene *scene, const struct asking *asking)
{
    struct model_claim *claim = &scene->model.claims[scene->model.claim_count++];

    *claim = (struct model_claim){.id = ++scene->last_id,
                                  .asking = asking,
                                  .arrived = scene->model.now,
                                  .deadline = TIME_NEVER};
    return claim;
}

/* Returns where a claim would be placed at that time, preferably on devices that are in use now. */
static slot_set choose_set(struct scene *scene, const struct model_claim *claim, int64_t at)
{
    uint32_t room[SLOTS_MAX];
    slot_set then = model_room_at(&scene->model, claim, at, room);
    struct occupancy now;
    slot_set set = 0;

    model_occupancy(&scene->model, 0, &(struct moment){.at = scene->model.now}, &now);
    for (int free_now = 0; free_now <= 1; free_now++) {
        for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
            if ((then >> slot & 1) != 0 && (now.slots[slot].tenants == 0) == free_now &&
                (uint32_t)__builtin_popcount(set) < claim->asking->gpus.min)
                set |= (slot_set)1 << slot;
        }
    }
    return set;
}

/* Gives the first of each group its reservation. All waiting claims count as blocked. */
static void reserve(struct scene *scene)
{
    static struct model_groups groups;
    const struct model_claim *order[CLAIMS_MAX];
    size_t count = model_order(&scene->model, 0, order);

    groups.count = 0;
    for (size_t i = 0; i < count; i++) {
        struct model_claim *claim = model_claim(&scene->model, order[i]->id);

        if (claim->asking->opportunistic || model_held_by_limit(&scene->model, 0, claim->asking))
            continue;
        claim->reserved = model_groups_add(&scene->model, &groups, claim);
        claim->start = model_start(&scene->model, claim);
        if (claim->start != TIME_NEVER)
            claim->set = choose_set(scene, claim, claim->start);
    }
}

/* Returns the result of a claim that is made now, and its possible slots. */
static int outcome(struct scene *scene, const struct asking *asking, slot_set *ret_allowed)
{
    struct model_claim claim = {.asking = asking, .arrived = scene->model.now};
    slot_set allowed = 0;
    uint32_t size;
    int found;

    reserve(scene);
    found = model_predict(&scene->model, &claim, &size, &allowed);
    if (ret_allowed != NULL)
        *ret_allowed = allowed;
    return found;
}

static void free_devices_are_granted(void **state)
{
    struct scene scene;
    slot_set allowed;

    (void)state;
    scene_init(&scene, 3);
    hold(&scene, ask(&scene, 1), 1 << 1, TIME_NEVER);
    assert_int_equal(outcome(&scene, ask(&scene, 2), &allowed), CLAIM_GRANTED);
    assert_int_equal(allowed, 1 << 0 | 1 << 2);
    assert_int_equal(outcome(&scene, ask(&scene, 3), NULL), CLAIM_WAITS);
    assert_int_equal(outcome(&scene, ask(&scene, 4), NULL), BERTH_ERROR_IMPOSSIBLE);
}

static void no_devices_is_an_answer(void **state)
{
    struct scene scene;

    (void)state;
    scene_init(&scene, 1);
    scene.model.devices[0].here = false;
    assert_int_equal(outcome(&scene, ask(&scene, 1), NULL), BERTH_ERROR_NO_DEVICE);
}

/* While a wide claim waits without a known start, narrow claims take no device that it accepts. */
static void the_head_blocks(void **state)
{
    struct scene scene;
    struct asking *elsewhere;

    (void)state;
    scene_init(&scene, 3);
    hold(&scene, ask(&scene, 1), 1 << 0, TIME_NEVER);
    ask(&scene, 2)->wanted = 1 << 0 | 1 << 1;
    wait_for(&scene, &scene.askings[1]);
    assert_int_equal(outcome(&scene, ask_for(&scene, 1, 1), NULL), CLAIM_GRANTED);
    elsewhere = ask(&scene, 1);
    elsewhere->wanted = 1 << 1;
    assert_int_equal(outcome(&scene, elsewhere, NULL), CLAIM_WAITS);
    elsewhere->wanted = 1 << 2;
    assert_int_equal(outcome(&scene, elsewhere, NULL), CLAIM_GRANTED);
}

/* The holder's limit gives the wide claim a start. Claims that end before it may go first. */
static void short_claims_go_first(void **state)
{
    struct scene scene;
    struct model_claim *wide;

    (void)state;
    scene_init(&scene, 2);
    hold(&scene, ask(&scene, 1), 1 << 0, 100);
    wide = wait_for(&scene, ask(&scene, 2));
    assert_int_equal(outcome(&scene, ask_for(&scene, 1, 100), NULL), CLAIM_GRANTED);
    assert_int_equal(wide->start, 100);
    assert_int_equal(outcome(&scene, ask_for(&scene, 1, 101), NULL), CLAIM_WAITS);
    assert_int_equal(outcome(&scene, ask(&scene, 1), NULL), CLAIM_WAITS);
}

/* With a known start, only the set is barred. Claims without a time limit get other free devices.
 */
static void only_the_set_is_barred(void **state)
{
    struct scene scene;
    struct model_claim *wide;
    slot_set allowed;

    (void)state;
    scene_init(&scene, 4);
    hold(&scene, ask(&scene, 2), 1 << 0 | 1 << 1, 100);
    hold(&scene, ask(&scene, 1), 1 << 2, TIME_NEVER);
    wide = wait_for(&scene, ask(&scene, 2));
    assert_int_equal(outcome(&scene, ask(&scene, 1), &allowed), CLAIM_GRANTED);
    assert_int_equal(wide->set, 1 << 0 | 1 << 1);
    assert_int_equal(allowed, 1 << 3);
}

/* A claim that accepts devices of two groups joins them. */
static void groups_become_one(void **state)
{
    struct scene scene;
    struct asking *asking;
    slot_set allowed;

    (void)state;
    scene_init(&scene, 6);
    hold(&scene, ask(&scene, 2), 1 << 0 | 1 << 1, 100);
    hold(&scene, ask(&scene, 1), 1 << 2, TIME_NEVER);
    asking = ask(&scene, 1);
    asking->wanted = 1 << 0 | 1 << 3;
    asking->gpus.min = asking->gpus.max = 2;
    wait_for(&scene, asking); /* starts at 100 */
    asking = ask(&scene, 1);
    asking->wanted = 1 << 2;
    wait_for(&scene, asking); /* no start */
    /* Slots 4 and 5 are free, and no group accepts them. */
    asking = ask(&scene, 1);
    assert_int_equal(outcome(&scene, asking, &allowed), CLAIM_GRANTED);
    assert_int_equal(allowed, 1 << 4 | 1 << 5);
    /* A third claim accepts devices of both groups and slot 4, so slot 4 is barred too. */
    ask(&scene, 3)->wanted = 1 << 0 | 1 << 2 | 1 << 4;
    wait_for(&scene, &scene.askings[5]);
    assert_int_equal(outcome(&scene, asking, &allowed), CLAIM_GRANTED);
    assert_int_equal(allowed, 1 << 5);
    assert_true(scene.model.claims[0].reserved && scene.model.claims[1].reserved);
    assert_false(scene.model.claims[2].reserved);
}

static void a_higher_class_comes_earlier(void **state)
{
    struct scene scene;
    struct asking *high;

    (void)state;
    scene_init(&scene, 2);
    hold(&scene, ask(&scene, 1), 1 << 0, TIME_NEVER);
    wait_for(&scene, ask(&scene, 2));
    high = ask(&scene, 1);
    assert_int_equal(outcome(&scene, high, NULL), CLAIM_WAITS);
    high->priority = PRIORITY_HIGH;
    assert_int_equal(outcome(&scene, high, NULL), CLAIM_GRANTED);
}

static void waiting_raises_the_class(void **state)
{
    struct scene scene;
    struct asking *high;
    struct model_claim *old;

    (void)state;
    scene_init(&scene, 2);
    hold(&scene, ask(&scene, 1), 1 << 0, TIME_NEVER);
    old = wait_for(&scene, ask(&scene, 2));
    high = ask(&scene, 1);
    high->priority = PRIORITY_HIGH;
    scene.model.now = 999;
    assert_int_equal(model_class(&scene.model, old), PRIORITY_NORMAL);
    assert_int_equal(outcome(&scene, high, NULL), CLAIM_GRANTED);
    scene.model.now = 1000;
    assert_int_equal(model_class(&scene.model, old), PRIORITY_HIGH);
    assert_int_equal(outcome(&scene, high, NULL), CLAIM_WAITS);
    scene.model.now = 5000;
    assert_int_equal(model_class(&scene.model, old), PRIORITY_HIGH);
}

static void helpers_take_what_nobody_wants(void **state)
{
    struct scene scene;
    slot_set allowed;

    (void)state;
    scene_init(&scene, 3);
    hold(&scene, ask(&scene, 1), 1 << 0, 100);
    ask(&scene, 2)->wanted = 1 << 0 | 1 << 1;
    wait_for(&scene, &scene.askings[1]);
    assert_int_equal(outcome(&scene, ask_helper(&scene, 1), &allowed), CLAIM_GRANTED);
    assert_int_equal(allowed, 1 << 2);
    assert_int_equal(outcome(&scene, ask_helper(&scene, 2), NULL), CLAIM_WAITS);
}

/* In a reservation, the devices of opportunistic leases count as free. So do those of leases past
 * their limit, unless they overstay. */
static void helpers_do_not_move_a_start(void **state)
{
    struct scene scene;
    struct model_claim *claim;

    (void)state;
    scene_init(&scene, 2);
    hold(&scene, ask_helper(&scene, 1), 1 << 0, TIME_NEVER);
    hold(&scene, ask(&scene, 1), 1 << 1, 70);
    claim = wait_for(&scene, ask(&scene, 2));
    assert_int_equal(model_start(&scene.model, claim), 70);
    scene.model.leases[0].state = LEASE_DRAINING;
    assert_int_equal(model_start(&scene.model, claim), 70);
    scene.model.leases[1].state = LEASE_DRAINING;
    assert_int_equal(model_start(&scene.model, claim), 70);
    scene.model.leases[1].state = LEASE_EXPIRED;
    scene.model.rules.grace = 10;
    scene.model.now = 89;
    assert_int_equal(model_start(&scene.model, claim), 89);
    scene.model.now = 90;
    assert_int_equal(model_start(&scene.model, claim), TIME_NEVER);
}

/* A claim that a limit holds waits, and blocks no other claim. */
static void limits_hold_only_their_own(void **state)
{
    struct scene scene;
    struct asking *other;

    (void)state;
    scene_init(&scene, 3);
    scene.model.user_limits[0] = 2 * SHARE_WHOLE;
    hold(&scene, ask(&scene, 1), 1 << 0, TIME_NEVER);
    assert_int_equal(outcome(&scene, ask(&scene, 2), NULL), CLAIM_WAITS);
    assert_int_equal(outcome(&scene, ask(&scene, 3), NULL), BERTH_ERROR_IMPOSSIBLE);
    wait_for(&scene, &scene.askings[1]);
    other = ask(&scene, 2);
    other->uid = FIRST_UID + 1;
    assert_int_equal(outcome(&scene, other, NULL), CLAIM_GRANTED);
    other->groups[other->group_count++] = 1;
    scene.model.group_limits[0] = SHARE_WHOLE;
    assert_int_equal(outcome(&scene, other, NULL), BERTH_ERROR_IMPOSSIBLE);
}

static struct asking *ask_slice(struct scene *scene, uint64_t memory, uint64_t min_free)
{
    struct asking *asking = ask(scene, 1);

    asking->sharing = SHARING_TIME_SLICE;
    asking->memory = (struct optional_number){memory > 0, memory * GIB};
    asking->min_free = (struct optional_number){min_free > 0, min_free * GIB};
    return asking;
}

/* The example of docs/FAIRNESS.md, section 9, and tenants beside one that reserved no memory. */
static void what_is_reserved_counts(void **state)
{
    struct scene scene;

    (void)state;
    scene_init(&scene, 1);
    scene.model.devices[0].free_known = true;
    scene.model.devices[0].free = 80 * GIB;
    hold(&scene, ask_slice(&scene, 60, 0), 1, TIME_NEVER);
    assert_int_equal(outcome(&scene, ask_slice(&scene, 0, 30), NULL), CLAIM_WAITS);
    assert_int_equal(outcome(&scene, ask_slice(&scene, 0, 20), NULL), CLAIM_GRANTED);
    scene.model.devices[0].free = 15 * GIB;
    assert_int_equal(outcome(&scene, ask_slice(&scene, 0, 20), NULL), CLAIM_WAITS);
    assert_int_equal(outcome(&scene, ask_slice(&scene, 20, 0), NULL), CLAIM_GRANTED);
    hold(&scene, ask_slice(&scene, 0, 0), 1, TIME_NEVER);
    assert_int_equal(outcome(&scene, ask_slice(&scene, 1, 0), NULL), CLAIM_WAITS);
    scene.model.devices[0].free = 65 * GIB;
    assert_int_equal(outcome(&scene, ask_slice(&scene, 6, 0), NULL), CLAIM_WAITS);
    assert_int_equal(outcome(&scene, ask_slice(&scene, 5, 0), NULL), CLAIM_GRANTED);
    scene.model.devices[0].free_known = false;
    assert_int_equal(outcome(&scene, ask_slice(&scene, 20, 0), NULL), CLAIM_GRANTED);
}

static void mps_is_of_one_user_in_one_place(void **state)
{
    struct scene scene;
    struct asking *mps;

    (void)state;
    scene_init(&scene, 1);
    mps = ask(&scene, 1);
    mps->sharing = SHARING_MPS;
    mps->pipe = 1;
    hold(&scene, mps, 1, TIME_NEVER);
    mps = ask(&scene, 1);
    *mps = scene.askings[0];
    assert_int_equal(outcome(&scene, mps, NULL), CLAIM_GRANTED);
    mps->uid++;
    assert_int_equal(outcome(&scene, mps, NULL), CLAIM_WAITS);
    mps->uid--;
    mps->pipe = 2;
    assert_int_equal(outcome(&scene, mps, NULL), CLAIM_WAITS);
    mps->pipe = 1;
    mps->log = 1;
    assert_int_equal(outcome(&scene, mps, NULL), CLAIM_WAITS);
    mps->log = 0;
    mps->replicas = 2;
    assert_int_equal(outcome(&scene, mps, NULL), CLAIM_WAITS);
}

static void shares_fill_a_device(void **state)
{
    struct scene scene;
    struct asking *half;
    struct asking *mps;

    (void)state;
    scene_init(&scene, 1);
    half = ask(&scene, 1);
    half->sharing = SHARING_TIME_SLICE;
    half->share = optional_number_of(500000);
    hold(&scene, half, 1, TIME_NEVER);
    assert_int_equal(outcome(&scene, half, NULL), CLAIM_GRANTED);
    assert_int_equal(outcome(&scene, ask(&scene, 1), NULL), CLAIM_WAITS);
    mps = ask(&scene, 1);
    mps->sharing = SHARING_MPS;
    assert_int_equal(outcome(&scene, mps, NULL), CLAIM_WAITS);
    hold(&scene, half, 1, TIME_NEVER);
    assert_int_equal(outcome(&scene, half, NULL), CLAIM_WAITS);
    half->replicas = 2;
    half->gpus.min = half->gpus.max = 2;
    assert_int_equal(outcome(&scene, half, NULL), BERTH_ERROR_IMPOSSIBLE);
}

static void leases_have_devices_within(void **state)
{
    struct scene scene;
    struct model_claim inner = {0};
    slot_set allowed;
    uint32_t size;

    (void)state;
    scene_init(&scene, 4);
    hold(&scene, ask(&scene, 2), 1 << 1 | 1 << 2, TIME_NEVER);
    inner.scope = scene.model.leases[0].id;
    inner.asking = ask(&scene, 1);
    assert_int_equal(model_predict(&scene.model, &inner, &size, &allowed), CLAIM_GRANTED);
    assert_int_equal(allowed, 1 << 1 | 1 << 2);
    hold(&scene, inner.asking, 1 << 1, TIME_NEVER)->scope = inner.scope;
    assert_int_equal(model_predict(&scene.model, &inner, &size, &allowed), CLAIM_GRANTED);
    assert_int_equal(allowed, 1 << 2);
    inner.asking = ask(&scene, 3);
    assert_int_equal(model_predict(&scene.model, &inner, &size, &allowed), BERTH_ERROR_IMPOSSIBLE);
}

/* ---- Counting replicas, compared with trying everything ---- */

/* Returns whether `replicas` more replicas of this size fit, by trying every set for each. */
static bool fits_by_trying(const struct model *model, const struct asking *asking, slot_set slots,
                           const uint32_t room[SLOTS_MAX], uint32_t size, uint32_t replicas)
{
    if (replicas == 0)
        return true;
    for (slot_set set = 1; set < (slot_set)1 << model->plan->planned; set++) {
        uint32_t left[SLOTS_MAX];
        bool good = (set & ~slots) == 0 && (uint32_t)__builtin_popcount(set) == size;
        unsigned lowest = (unsigned)__builtin_ctz(set);

        memcpy(left, room, sizeof(left));
        for (unsigned slot = 0; slot < model->plan->planned && good; slot++) {
            if ((set >> slot & 1) != 0)
                good = left[slot]-- > 0 && model_may_be_together(model, asking, lowest, slot);
        }
        if (good && fits_by_trying(model, asking, slots, left, size, replicas - 1))
            return true;
    }
    return false;
}

static void counting_agrees_with_trying(void **state)
{
    struct test_random random = {7};
    struct scene scene;
    unsigned good = 0;

    (void)state;
    scene_init(&scene, 5);
    for (unsigned round = 0; round < 3000; round++) {
        struct asking asking = {.replicas = 1 + (uint32_t)test_random_below(&random, 3)};
        slot_set slots = (slot_set)test_random_below(&random, 32);
        uint32_t size = 1 + (uint32_t)test_random_below(&random, 3);
        uint32_t room[SLOTS_MAX] = {0};
        bool wanted;

        if (test_random_below(&random, 3) == 0)
            asking.vendor_rule = VENDOR_RULE_MIXED;
        for (unsigned slot = 0; slot < 5; slot++) {
            struct device_plan *device = &scene.plan.devices[slot];

            room[slot] = (uint32_t)test_random_below(&random, 4);
            device->id.vendor = (enum vendor)test_random_below(&random, 2);
            device->host = (uint32_t)test_random_below(&random, 2) & (uint32_t)round;
        }
        wanted = fits_by_trying(&scene.model, &asking, slots, room, size, asking.replicas);
        assert_int_equal(model_fits(&scene.model, &asking, slots, room, size), wanted);
        good += wanted;
    }
    assert_in_range(good, 300, 2700);
}

static void reserved_devices_are_for_some(void **state)
{
    struct scene scene;
    struct asking *asking;

    (void)state;
    scene_init(&scene, 2);
    asking = ask(&scene, 1);
    scene.model.devices[0].reserved = true;
    scene.model.devices[0].people = (struct people){.users = 2, .groups = 4};
    assert_int_equal(model_accepts(&scene.model, 0, asking), 2);
    asking->groups[asking->group_count++] = 3;
    assert_int_equal(model_accepts(&scene.model, 0, asking), 3);
    asking->group_count = 0;
    asking->uid = FIRST_UID + 1;
    assert_int_equal(model_accepts(&scene.model, 0, asking), 3);
}

static void gifts_need_only_room_beside_leases(void **state)
{
    struct scene scene;
    struct asking *two;

    (void)state;
    scene_init(&scene, 3);
    two = ask(&scene, 2);
    scene.model.devices[0].blocks = BLOCK_SQUATTED;
    wait_for(&scene, ask(&scene, 3));
    hold(&scene, ask(&scene, 1), 4, TIME_NEVER);
    assert_int_equal(model_judge_gift(&scene.model, 0, two, 3), 0);
    assert_int_equal(model_judge_gift(&scene.model, 0, two, 6), BERTH_ERROR_BUSY);
    assert_int_equal(model_judge_gift(&scene.model, 0, two, 1), BERTH_ERROR_INVALID);
    assert_int_equal(model_judge_gift(&scene.model, 0, two, 9), BERTH_ERROR_INVALID);
    scene.plan.devices[1].id.vendor = VENDOR_AMD;
    assert_int_equal(model_judge_gift(&scene.model, 0, two, 3), BERTH_ERROR_INVALID);
}

static void an_even_share_is_that_of_its_time(void **state)
{
    struct scene scene;
    struct asking *before;

    (void)state;
    scene_init(&scene, 1);
    before = ask(&scene, 1);
    before->sharing = SHARING_TIME_SLICE;
    before->number = 1;
    model_make(&scene.model, 0, before);
    scene.model.rules.time_slice_tenants = 2;
    assert_int_equal(asking_share(&scene.model, 0, before), SHARE_WHOLE / 4);
    before->number = 2;
    assert_int_equal(asking_share(&scene.model, 0, before), SHARE_WHOLE / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_devices_are_granted),
        cmocka_unit_test(no_devices_is_an_answer),
        cmocka_unit_test(the_head_blocks),
        cmocka_unit_test(short_claims_go_first),
        cmocka_unit_test(only_the_set_is_barred),
        cmocka_unit_test(groups_become_one),
        cmocka_unit_test(a_higher_class_comes_earlier),
        cmocka_unit_test(waiting_raises_the_class),
        cmocka_unit_test(helpers_take_what_nobody_wants),
        cmocka_unit_test(helpers_do_not_move_a_start),
        cmocka_unit_test(limits_hold_only_their_own),
        cmocka_unit_test(what_is_reserved_counts),
        cmocka_unit_test(mps_is_of_one_user_in_one_place),
        cmocka_unit_test(shares_fill_a_device),
        cmocka_unit_test(leases_have_devices_within),
        cmocka_unit_test(counting_agrees_with_trying),
        cmocka_unit_test(reserved_devices_are_for_some),
        cmocka_unit_test(gifts_need_only_room_beside_leases),
        cmocka_unit_test(an_even_share_is_that_of_its_time),
    };

    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
