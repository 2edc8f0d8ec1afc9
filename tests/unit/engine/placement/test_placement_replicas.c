/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement of several replicas: all at once or one by one, on exclusive or shared devices.
 */
#include "support/unit.h"

#include "engine/placement/placement.h"

#include "base/count.h"
#include "support/assert_error.h"
#include "support/engine/placement_cases.h"
#include "support/engine/placement_checks.h"
#include "support/failing_allocator.h"

#define FOUR "nvidia0,nvidia1,nvidia2,nvidia3"

static void set_replicas(struct placement_case *asked, uint32_t replicas,
                         enum scheduling scheduling)
{
    asked->request.replicas = replicas;
    asked->request.scheduling = scheduling;
}

/* Adds devices with room for `claims` claims that reserve 10 GiB each. */
static void set_room(struct placement_case *asked, const char *id, uint64_t claims)
{
    asked->request.sharing = SHARING_TIME_SLICE;
    asked->request.memory = optional_number_of(10 * GIB);
    machine_device(&asked->machine, id)->memory_total = optional_number_of(claims * 10 * GIB);
}

static void a_gang_is_placed_as_a_whole(void **state)
{
    static const enum scheduling together[] = {SCHEDULING_UNSAID, SCHEDULING_GANG,
                                               SCHEDULING_SPREAD};
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR);
    for (size_t i = 0; i < COUNT(together); i++) {
        set_replicas(&asked, 2, together[i]);
        set_count(&asked, 2, 2);
        bitset_clear(&asked.busy);
        check_answer(&asked, "now: nvidia0,nvidia1 | nvidia2,nvidia3");
        placement_case_mark(&asked, &asked.busy, "nvidia0");
        check_why(&asked, "not now", "needs 2 for each of 2 replicas, 3 free: 1 is busy");
        set_replicas(&asked, 3, together[i]);
        check_why(&asked, "never",
                  "requested 2 devices for each of 3 replicas, but this pool has only 4");
    }
    placement_case_finish(&asked);
}

static void a_gang_may_span_vendors_but_no_replica_does(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "amd0,nvidia0,amd1,nvidia1,nvidia2");
    set_replicas(&asked, 2, SCHEDULING_GANG);
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: amd0,amd1 | nvidia0,nvidia1");
    set_replicas(&asked, 5, SCHEDULING_GANG);
    set_count(&asked, 1, 1);
    check_answer(&asked, "now: amd0 | nvidia0 | amd1 | nvidia1 | nvidia2");
    set_replicas(&asked, 2, SCHEDULING_GANG);
    set_count(&asked, 3, 3);
    check_answer(&asked, "never");
    placement_case_finish(&asked);
}

static void an_elastic_gang_has_replicas_of_one_size(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR ",nvidia4");
    set_replicas(&asked, 2, SCHEDULING_GANG);
    set_count(&asked, 1, 4);
    check_answer(&asked, "now: nvidia0,nvidia1 | nvidia2,nvidia3");
    placement_case_mark(&asked, &asked.busy, "nvidia0,nvidia1");
    check_answer(&asked, "now: nvidia2 | nvidia3");
    placement_case_mark(&asked, &asked.busy, "nvidia2,nvidia3");
    check_answer(&asked, "not now");
    placement_case_finish(&asked);
}

static void best_effort_places_as_many_as_fit(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR);
    set_replicas(&asked, 2, SCHEDULING_BEST_EFFORT);
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: nvidia0,nvidia1 | nvidia2,nvidia3");
    placement_case_mark(&asked, &asked.busy, "nvidia1");
    check_why(&asked, "not now: nvidia0,nvidia2",
              "needs 2, 3 free: 1 is busy; enough for 1 of 2 replicas now");
    placement_case_mark(&asked, &asked.busy, FOUR);
    check_answer(&asked, "not now");
    placement_case_finish(&asked);
}

/* One after the other, all replicas can run. */
static void best_effort_needs_room_for_one(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR);
    set_replicas(&asked, REQUEST_COUNT_MAX, SCHEDULING_BEST_EFFORT);
    set_count(&asked, 3, 3);
    check_answer(&asked, "not now: nvidia0,nvidia1,nvidia2");
    set_count(&asked, 5, 5);
    check_answer(&asked, "never");
    placement_case_finish(&asked);
}

static void best_effort_makes_each_replica_as_large_as_it_can_be(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR);
    set_replicas(&asked, 2, SCHEDULING_BEST_EFFORT);
    set_count(&asked, 1, 3);
    check_answer(&asked, "now: nvidia0,nvidia1,nvidia2 | nvidia3");
    set_count(&asked, 1, 4);
    check_answer(&asked, "not now: " FOUR);
    set_replicas(&asked, 3, SCHEDULING_BEST_EFFORT);
    set_count(&asked, 2, 3);
    check_answer(&asked, "not now: nvidia0,nvidia1,nvidia2");
    placement_case_finish(&asked);
}

static void required_devices_are_spread_over_replicas(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR ",amd0,amd1");
    set_count(&asked, 2, 2);
    placement_case_mark(&asked, &asked.must, "nvidia3,amd1");
    check_answer(&asked, "never");
    set_replicas(&asked, 2, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0,nvidia3 | amd0,amd1");
    set_replicas(&asked, 3, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0,nvidia3 | amd0,amd1 | nvidia1,nvidia2");
    placement_case_mark(&asked, &asked.must, "nvidia1,nvidia2");
    check_answer(&asked, "now: nvidia1,nvidia2 | nvidia0,nvidia3 | amd0,amd1");
    set_replicas(&asked, 2, SCHEDULING_GANG);
    check_answer(&asked, "never");
    placement_case_finish(&asked);
}

static void best_effort_needs_claims_enough_for_the_required(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,nvidia2,amd0,amd1");
    set_count(&asked, 2, 2);
    placement_case_mark(&asked, &asked.must, "nvidia2,amd1");
    set_replicas(&asked, 2, SCHEDULING_BEST_EFFORT);
    check_answer(&asked, "now: nvidia0,nvidia2 | amd0,amd1");
    /* Three nvidia devices take two claims one after the other, and amd a third. */
    placement_case_mark(&asked, &asked.must, "nvidia0,nvidia1");
    check_answer(&asked, "never");
    set_replicas(&asked, 3, SCHEDULING_BEST_EFFORT);
    check_answer(&asked, "not now");
    set_replicas(&asked, 2, SCHEDULING_BEST_EFFORT);
    set_count(&asked, 1, 3);
    check_answer(&asked, "now: nvidia0,nvidia1,nvidia2 | amd0,amd1");
    placement_case_mark(&asked, &asked.busy, "amd1");
    check_answer(&asked, "not now");
    placement_case_finish(&asked);
}

static void shared_devices_carry_several_replicas(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1");
    asked.request.sharing = SHARING_TIME_SLICE;
    asked.request.share = optional_number_of(SHARE_WHOLE / 2);
    set_replicas(&asked, 3, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0 | nvidia0 | nvidia1");
    set_replicas(&asked, 5, SCHEDULING_GANG);
    check_why(&asked, "never",
              "requested 1 device for each of 5 replicas, shared by time-slice, share 0.5, but "
              "this pool has room for only 4");
    placement_case_mark(&asked, &asked.busy, "nvidia0");
    set_replicas(&asked, 3, SCHEDULING_GANG);
    check_why(&asked, "not now", "needs 1 for each of 3 replicas, room for 2: 1 is busy");
    asked.request.share = optional_number_of(SHARE_WHOLE);
    set_replicas(&asked, 2, SCHEDULING_GANG);
    check_why(&asked, "not now", "needs 1 for each of 2 replicas, room for 1: 1 is busy");
    asked.request.share.known = false;
    set_replicas(&asked, 4, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia1 | nvidia1 | nvidia1 | nvidia1");
    placement_case_finish(&asked);
}

static void a_replica_never_has_a_shared_device_twice(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1");
    asked.request.sharing = SHARING_TIME_SLICE;
    set_count(&asked, 2, 4);
    check_answer(&asked, "now: nvidia0,nvidia1");
    set_count(&asked, 3, 3);
    check_answer(&asked, "never");
    asked.request.sharing = SHARING_MPS;
    asked.request.ranks = true;
    set_replicas(&asked, 2, SCHEDULING_GANG);
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: nvidia0,nvidia1 | nvidia0,nvidia1");
    placement_case_finish(&asked);
}

/* Taking the lowest slots first would leave only nvidia2. */
static void roomy_devices_are_not_left_over(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,nvidia2");
    set_room(&asked, "nvidia0", 1);
    set_room(&asked, "nvidia1", 1);
    set_room(&asked, "nvidia2", 2);
    set_count(&asked, 2, 2);
    set_replicas(&asked, 2, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0,nvidia2 | nvidia1,nvidia2");
    set_count(&asked, 1, 2);
    check_answer(&asked, "now: nvidia0,nvidia2 | nvidia1,nvidia2");
    set_replicas(&asked, 3, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0 | nvidia1 | nvidia2");
    /* Required devices may be in different replicas. */
    placement_case_mark(&asked, &asked.must, "nvidia0,nvidia1");
    set_count(&asked, 2, 2);
    set_replicas(&asked, 2, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0,nvidia2 | nvidia1,nvidia2");
    placement_case_finish(&asked);
}

/* All devices of the last replica are required, although a roomier device is left. */
static void required_devices_may_fill_a_replica(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR ",nvidia4");
    for (size_t slot = 0; slot < 5; slot++)
        set_room(&asked, device_id_format(asked.machine.devices.items[slot].id).text,
                 slot < 4 ? 1 : 4);
    placement_case_mark(&asked, &asked.must, FOUR);
    set_count(&asked, 2, 2);
    set_replicas(&asked, 3, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0,nvidia4 | nvidia1,nvidia4 | nvidia2,nvidia3");
    placement_case_finish(&asked);
}

/* Required devices of a later vendor get the replicas that they need. */
static void every_vendor_keeps_what_its_required_devices_need(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,nvidia2,amd0,amd1,amd2");
    set_room(&asked, "nvidia0", 1);
    set_room(&asked, "nvidia1", 1);
    set_room(&asked, "nvidia2", 4);
    set_room(&asked, "amd0", 1);
    set_room(&asked, "amd1", 1);
    set_room(&asked, "amd2", 2);
    set_count(&asked, 2, 2);
    placement_case_mark(&asked, &asked.must, "nvidia0,nvidia1,amd0,amd1");
    set_replicas(&asked, 4, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0,nvidia2 | nvidia1,nvidia2 | amd0,amd2 | amd1,amd2");
    set_replicas(&asked, 5, SCHEDULING_GANG);
    check_answer(&asked, "never");
    placement_case_finish(&asked);
}

static void huge_numbers_are_answered_at_once(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR);
    set_replicas(&asked, REQUEST_COUNT_MAX, SCHEDULING_GANG);
    set_count(&asked, 1, REQUEST_COUNT_MAX);
    check_answer(&asked, "never");
    set_count(&asked, REQUEST_COUNT_MAX, REQUEST_COUNT_MAX);
    check_answer(&asked, "never");
    asked.request.sharing = SHARING_TIME_SLICE;
    set_count(&asked, 2, REQUEST_COUNT_MAX);
    check_answer(&asked, "never");
    set_replicas(&asked, 1, SCHEDULING_GANG);
    check_answer(&asked, "now: " FOUR);
    placement_case_finish(&asked);
}

/* A policy that takes the highest slots, and checks its question. */
static int choose_highest(const struct policy *policy, const struct policy_question *asked,
                          struct bitset *ret_chosen)
{
    size_t slot = asked->machine->devices.count;

    (void)policy;
    assert_true(bitset_is_empty(ret_chosen));
    assert_true(bitset_is_subset(asked->required, asked->candidates));
    assert_in_range(asked->count, bitset_count(asked->required), bitset_count(asked->candidates));
    bitset_copy(ret_chosen, asked->required);
    while (slot-- > 0 && bitset_count(ret_chosen) < asked->count) {
        if (bitset_has(asked->candidates, slot))
            bitset_add(ret_chosen, slot);
    }
    return 0;
}

static int choose_nothing(const struct policy *policy, const struct policy_question *asked,
                          struct bitset *ret_chosen)
{
    (void)policy;
    (void)asked;
    (void)ret_chosen;
    return BERTH_ERROR_MEMORY;
}

static void the_policy_chooses(void **state)
{
    static const struct policy highest = {
        .name = "highest", .summary = "the highest slots", .choose = choose_highest};
    struct placement_case asked;
    struct text found = {0};
    struct placement placement;

    (void)state;
    placement_case_init(&asked, FOUR);
    set_replicas(&asked, 2, SCHEDULING_GANG);
    set_room(&asked, "nvidia0", 2);
    set_room(&asked, "nvidia1", 1);
    set_room(&asked, "nvidia2", 1);
    set_count(&asked, 2, 2);
    assert_int_equal(placement_case_ask_policy(&asked, &highest, &placement, NULL), 0);
    placement_case_write(&asked, &placement, &found);
    /* With disjoint pairs one device would be left over, so nvidia0 is in both. */
    assert_string_equal(text_string(&found), "now: nvidia0,nvidia2 | nvidia0,nvidia1");
    assert_string_equal(text_string(&placement.why),
                        "3 of 4 devices fit and have room: 1 has less memory than requested, or an "
                        "unknown amount; highest takes the highest slots");
    text_finish(&found);
    placement_finish(&placement);
    placement_case_finish(&asked);
}

static void a_failing_policy_is_out_of_memory(void **state)
{
    static const struct policy broken = {
        .name = "broken", .summary = "nothing", .choose = choose_nothing};
    struct berth_error error = BERTH_ERROR_INIT;
    struct placement_case asked;
    struct placement placement = {.replicas = 4711};

    (void)state;
    placement_case_init(&asked, FOUR);
    assert_fails(placement_case_ask_policy(&asked, &broken, &placement, &error), BERTH_ERROR_MEMORY,
                 &error, "out of memory");
    assert_int_equal(placement.replicas, 4711);
    placement_case_finish(&asked);
}

static int ask(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct placement placement = {.replicas = 4711};
    int code = placement_case_ask(context, &placement, &error);

    if (code == 0) {
        placement_finish(&placement);
        assert_null(placement.slots.items);
        assert_null(placement.sizes.items);
        assert_string_equal(text_string(&placement.why), "");
        placement_finish(&placement);
        return 0;
    }
    assert_string_equal(error.message, "out of memory");
    assert_int_equal(placement.replicas, 4711);
    return code;
}

static void out_of_memory_is_reported(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR ",amd0");
    set_count(&asked, 1, 2);
    assert_true(failing_allocator_try_all(ask, &asked) >= 10);
    set_replicas(&asked, 4, SCHEDULING_BEST_EFFORT);
    placement_case_mark(&asked, &asked.busy, "nvidia1");
    assert_true(failing_allocator_try_all(ask, &asked) >= 10);
    placement_case_finish(&asked);
}

/* Only the second algorithm finds a solution, with more slots than the first tried. */
static void out_of_memory_is_reported_where_devices_are_shared(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, FOUR ",nvidia4,nvidia5");
    for (size_t slot = 0; slot < 6; slot++)
        set_room(&asked, device_id_format(asked.machine.devices.items[slot].id).text,
                 slot < 4 ? 1 : 4);
    set_count(&asked, 3, 3);
    set_replicas(&asked, 4, SCHEDULING_GANG);
    check_answer(&asked, "now: nvidia0,nvidia4,nvidia5 | nvidia1,nvidia4,nvidia5 | "
                         "nvidia2,nvidia4,nvidia5 | nvidia3,nvidia4,nvidia5");
    assert_true(failing_allocator_try_all(ask, &asked) >= 10);
    placement_case_finish(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gang_is_placed_as_a_whole),
        cmocka_unit_test(a_gang_may_span_vendors_but_no_replica_does),
        cmocka_unit_test(an_elastic_gang_has_replicas_of_one_size),
        cmocka_unit_test(best_effort_places_as_many_as_fit),
        cmocka_unit_test(best_effort_needs_room_for_one),
        cmocka_unit_test(best_effort_makes_each_replica_as_large_as_it_can_be),
        cmocka_unit_test(required_devices_are_spread_over_replicas),
        cmocka_unit_test(best_effort_needs_claims_enough_for_the_required),
        cmocka_unit_test(shared_devices_carry_several_replicas),
        cmocka_unit_test(a_replica_never_has_a_shared_device_twice),
        cmocka_unit_test(roomy_devices_are_not_left_over),
        cmocka_unit_test(required_devices_may_fill_a_replica),
        cmocka_unit_test(every_vendor_keeps_what_its_required_devices_need),
        cmocka_unit_test(huge_numbers_are_answered_at_once),
        cmocka_unit_test(the_policy_chooses),
        cmocka_unit_test(a_failing_policy_is_out_of_memory),
        cmocka_unit_test(out_of_memory_is_reported),
        cmocka_unit_test(out_of_memory_is_reported_where_devices_are_shared),
    };

    return cmocka_run_group_tests_name("placement_replicas", tests, NULL, NULL);
}
