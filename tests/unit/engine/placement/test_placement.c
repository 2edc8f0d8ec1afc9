/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "engine/placement/placement.h"

#include "support/engine/placement_cases.h"
#include "support/engine/placement_checks.h"

static void without_a_device_there_is_an_immediate_answer(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "");
    check_why(&asked, "never", "this pool has no devices");
    asked.request.gpus.all = true;
    check_why(&asked, "never", "this pool has no devices");
    placement_case_finish(&asked);
}

static void the_lowest_slots_come_first(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia5,nvidia0,nvidia2,nvidia1");
    check_why(&asked, "now: nvidia5",
              "4 of 4 devices fit and are free; first takes the lowest slots");
    set_count(&asked, 3, 3);
    check_answer(&asked, "now: nvidia5,nvidia0,nvidia2");
    set_count(&asked, 4, 4);
    check_answer(&asked, "now: nvidia5,nvidia0,nvidia2,nvidia1");
    set_count(&asked, 5, 5);
    check_why(&asked, "never", "requested 5 devices, but this pool has only 4");
    placement_case_finish(&asked);
}

static void one_device_is_spoken_of_as_one(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "amd0");
    check_why(&asked, "now: amd0", "1 of 1 device fits and is free; first takes the lowest slots");
    set_count(&asked, 2, 2);
    check_why(&asked, "never", "requested 2 devices, but this pool has only 1");
    placement_case_finish(&asked);
}

static void busy_devices_are_waited_for(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,nvidia2");
    placement_case_mark(&asked, &asked.busy, "nvidia0");
    set_count(&asked, 2, 2);
    check_why(&asked, "now: nvidia1,nvidia2",
              "2 of 3 devices fit and are free: 1 is busy; first takes the lowest slots");
    set_count(&asked, 3, 3);
    check_why(&asked, "not now", "needs 3, 2 free: 1 is busy");
    placement_case_mark(&asked, &asked.busy, "nvidia1,nvidia2");
    set_count(&asked, 1, 1);
    check_why(&asked, "not now", "needs 1: 3 are busy");
    placement_case_finish(&asked);
}

static void sick_and_full_devices_are_waited_for(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1");
    machine_device(&asked.machine, "nvidia0")->health = HEALTH_SICK;
    check_answer(&asked, "now: nvidia1");
    asked.request.min_free = optional_number_of(GIB);
    check_why(&asked, "not now", "needs 1: 1 is sick, 1 has too little or unknown free memory");
    machine_device(&asked.machine, "nvidia1")->load.memory_free = load_figure_sampled(GIB, 1);
    check_answer(&asked, "now: nvidia1");
    /* One reason is enough: a sick device that is busy counts once. */
    placement_case_mark(&asked, &asked.busy, "nvidia0,nvidia1");
    check_why(&asked, "not now", "needs 1: 1 is sick, 1 is busy");
    placement_case_finish(&asked);
}

static void fixed_facts_are_never_waited_for(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,amd0");
    machine_device(&asked.machine, "nvidia0")->memory_total = optional_number_of(40 * GIB);
    placement_case_mark(&asked, &asked.busy, "nvidia0,nvidia1,amd0");
    asked.request.min_memory = optional_number_of(80 * GIB);
    check_why(&asked, "never",
              "requested 1 device, at least 80 GiB of memory, but none of 3 devices is suitable: 3 "
              "have too little or unknown memory");
    asked.request.min_memory = optional_number_of(40 * GIB);
    check_why(&asked, "not now", "needs 1: 1 is busy, 2 have too little or unknown memory");
    set_count(&asked, 2, 2);
    check_answer(&asked, "never");
    placement_case_finish(&asked);
}

static void a_partitioned_device_is_never_chosen(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia0.0,nvidia0.1");
    machine_device(&asked.machine, "nvidia0")->partitioned = true;
    set_count(&asked, 2, 2);
    check_why(&asked, "now: nvidia0.0,nvidia0.1",
              "2 of 3 devices fit and are free: 1 is split into partitions; first takes the "
              "lowest slots");
    set_count(&asked, 3, 3);
    check_answer(&asked, "never");
    asked.request.gpus.all = true;
    check_answer(&asked, "now: nvidia0.0,nvidia0.1");
    set_count(&asked, 1, 1);
    placement_case_mark(&asked, &asked.must, "nvidia0");
    check_why(&asked, "never",
              "requested 1 device with nvidia0, but only 2 of 3 devices are suitable: 1 is split "
              "into partitions");
    placement_case_finish(&asked);
}

static void an_elastic_request_takes_what_is_free(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,nvidia2,nvidia3");
    set_count(&asked, 2, 3);
    check_answer(&asked, "now: nvidia0,nvidia1,nvidia2");
    placement_case_mark(&asked, &asked.busy, "nvidia1,nvidia3");
    check_answer(&asked, "now: nvidia0,nvidia2");
    placement_case_mark(&asked, &asked.busy, "nvidia0");
    check_why(&asked, "not now", "needs 2, 1 free: 3 are busy");
    set_count(&asked, 1, REQUEST_COUNT_MAX);
    check_answer(&asked, "now: nvidia2");
    set_count(&asked, 5, REQUEST_COUNT_MAX);
    check_answer(&asked, "never");
    placement_case_finish(&asked);
}

static void a_replica_never_mixes_vendors_unless_it_may(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "intel0,nvidia0,amd0,nvidia1");
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: nvidia0,nvidia1");
    set_count(&asked, 3, 3);
    check_why(&asked, "never",
              "requested 3 devices, but all devices of a replica must have one vendor, unless "
              "vendor is any");
    set_count(&asked, 1, 4);
    check_answer(&asked, "now: nvidia0,nvidia1");
    asked.request.vendor_rule = VENDOR_RULE_MIXED;
    check_answer(&asked, "now: intel0,nvidia0,amd0,nvidia1");
    set_count(&asked, 3, 3);
    check_answer(&asked, "now: intel0,nvidia0,amd0");
    set_count(&asked, 5, 5);
    check_why(&asked, "never", "requested 5 devices, vendors may mix, but this pool has only 4");
    asked.request.vendor_rule = VENDOR_RULE_EXACT;
    asked.request.vendor = VENDOR_AMD;
    set_count(&asked, 1, 1);
    check_answer(&asked, "now: amd0");
    placement_case_finish(&asked);
}

/* The hint about vendors appears only if it would help. */
static void mixing_is_hinted_at_where_it_helps(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,amd0");
    set_count(&asked, 2, 2);
    check_why(&asked, "never",
              "requested 2 devices, but all devices of a replica must have one vendor, unless "
              "vendor is any");
    placement_case_finish(&asked);
    placement_case_init(&asked, "nvidia0,nvidia1,amd0,amd1");
    placement_case_mark(&asked, &asked.busy, "nvidia0,amd0");
    set_count(&asked, 2, 2);
    check_why(&asked, "not now",
              "needs 2, 2 free: 2 are busy; all devices of a replica must have one vendor, unless "
              "vendor is any");
    placement_case_mark(&asked, &asked.busy, "nvidia1");
    check_why(&asked, "not now", "needs 2, 1 free: 3 are busy");
    placement_case_mark(&asked, &asked.busy, "amd1");
    set_count(&asked, 1, 1);
    check_why(&asked, "not now", "needs 1: 4 are busy");
    set_count(&asked, 5, 5);
    check_why(&asked, "never", "requested 5 devices, but this pool has only 4");
    placement_case_finish(&asked);
}

static void all_is_every_device_of_the_largest_vendor(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "intel0,nvidia0,amd0,nvidia1");
    asked.request.gpus = (struct device_count){.all = true};
    check_answer(&asked, "now: nvidia0,nvidia1");
    /* "all" means all devices, not only free ones. */
    placement_case_mark(&asked, &asked.busy, "nvidia1");
    check_why(&asked, "not now", "needs all devices, 1 free: 1 is busy");
    bitset_clear(&asked.busy);
    machine_device(&asked.machine, "nvidia0")->health = HEALTH_SICK;
    check_answer(&asked, "not now");
    /* A device that never fits is not one of them. */
    machine_device(&asked.machine, "nvidia0")->partitioned = true;
    check_answer(&asked, "now: intel0");
    asked.request.vendor_rule = VENDOR_RULE_MIXED;
    check_answer(&asked, "now: intel0,amd0,nvidia1");
    placement_case_mark(&asked, &asked.busy, "amd0");
    check_answer(&asked, "not now");
    asked.request.model = copy_of("H100");
    check_why(&asked, "never",
              "requested all devices, vendors may mix, model H100, but none of 4 devices is "
              "suitable: 1 is split into partitions, 3 are other models");
    placement_case_finish(&asked);
}

static void of_equal_vendors_all_means_the_lowest(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "amd0,nvidia0,nvidia1,amd1");
    asked.request.gpus.all = true;
    check_answer(&asked, "now: amd0,amd1");
    /* Busy devices do not change the meaning of "all". */
    placement_case_mark(&asked, &asked.busy, "amd1");
    check_answer(&asked, "not now");
    placement_case_mark(&asked, &asked.must, "nvidia0");
    check_answer(&asked, "never");
    placement_case_finish(&asked);
}

static void required_devices_are_among_the_chosen(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,amd0,nvidia2");
    placement_case_mark(&asked, &asked.must, "nvidia2");
    check_answer(&asked, "now: nvidia2");
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: nvidia0,nvidia2");
    placement_case_mark(&asked, &asked.busy, "nvidia2");
    check_why(&asked, "not now",
              "needs 2 with nvidia2, 3 free: 1 is busy; all devices of a replica must have one "
              "vendor, unless vendor is any");
    bitset_clear(&asked.busy);
    placement_case_mark(&asked, &asked.must, "amd0");
    check_why(&asked, "never",
              "requested 2 devices with amd0,nvidia2, but all devices of a replica must have one "
              "vendor, unless vendor is any");
    asked.request.vendor_rule = VENDOR_RULE_MIXED;
    check_answer(&asked, "now: amd0,nvidia2");
    placement_case_mark(&asked, &asked.must, "nvidia1");
    check_why(
        &asked, "never",
        "requested 2 devices, vendors may mix with nvidia1,amd0,nvidia2, but that names 3 devices");
    placement_case_finish(&asked);
}

static void required_devices_stretch_an_elastic_request(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,nvidia2,nvidia3");
    set_count(&asked, 1, 3);
    placement_case_mark(&asked, &asked.must, "nvidia2,nvidia3");
    check_answer(&asked, "now: nvidia0,nvidia2,nvidia3");
    placement_case_mark(&asked, &asked.busy, "nvidia0,nvidia1");
    check_answer(&asked, "now: nvidia2,nvidia3");
    placement_case_mark(&asked, &asked.busy, "nvidia2");
    check_answer(&asked, "not now");
    placement_case_mark(&asked, &asked.must, "nvidia0,nvidia1");
    check_answer(&asked, "never");
    set_count(&asked, 1, 4);
    check_answer(&asked, "not now");
    placement_case_finish(&asked);
}

static void avoided_devices_come_last(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,nvidia2");
    avoid(&asked, "nvidia0,nvidia1");
    check_answer(&asked, "now: nvidia2");
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: nvidia0,nvidia2");
    placement_case_mark(&asked, &asked.must, "nvidia1");
    check_answer(&asked, "now: nvidia1,nvidia2");
    set_count(&asked, 1, 3);
    check_answer(&asked, "now: nvidia0,nvidia1,nvidia2");
    placement_case_finish(&asked);
}

/* Avoided devices come last, even if the others have another vendor. */
static void another_vendor_will_do_before_an_avoided_device(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,nvidia1,amd0,amd1,intel0,intel1");
    avoid(&asked, "nvidia0,nvidia1,amd0");
    check_answer(&asked, "now: amd1");
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: intel0,intel1");
    placement_case_mark(&asked, &asked.busy, "intel1");
    check_answer(&asked, "now: amd0,amd1");
    placement_case_mark(&asked, &asked.busy, "amd0");
    check_answer(&asked, "now: nvidia0,nvidia1");
    placement_case_finish(&asked);
}

static void equal_vendors_are_taken_from_the_lowest_slot_that_is_taken(void **state)
{
    struct placement_case asked;

    (void)state;
    placement_case_init(&asked, "nvidia0,amd0,amd1,nvidia1,nvidia2");
    avoid(&asked, "nvidia0");
    set_count(&asked, 2, 2);
    check_answer(&asked, "now: amd0,amd1");
    request_finish(&asked.request);
    asked.request.replicas = 3;
    check_answer(&asked, "now: nvidia0 | amd0 | amd1");
    placement_case_finish(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_device_there_is_an_immediate_answer),
        cmocka_unit_test(the_lowest_slots_come_first),
        cmocka_unit_test(one_device_is_spoken_of_as_one),
        cmocka_unit_test(busy_devices_are_waited_for),
        cmocka_unit_test(sick_and_full_devices_are_waited_for),
        cmocka_unit_test(fixed_facts_are_never_waited_for),
        cmocka_unit_test(a_partitioned_device_is_never_chosen),
        cmocka_unit_test(an_elastic_request_takes_what_is_free),
        cmocka_unit_test(a_replica_never_mixes_vendors_unless_it_may),
        cmocka_unit_test(mixing_is_hinted_at_where_it_helps),
        cmocka_unit_test(all_is_every_device_of_the_largest_vendor),
        cmocka_unit_test(of_equal_vendors_all_means_the_lowest),
        cmocka_unit_test(required_devices_are_among_the_chosen),
        cmocka_unit_test(required_devices_stretch_an_elastic_request),
        cmocka_unit_test(avoided_devices_come_last),
        cmocka_unit_test(another_vendor_will_do_before_an_avoided_device),
        cmocka_unit_test(equal_vendors_are_taken_from_the_lowest_slot_that_is_taken),
    };

    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
