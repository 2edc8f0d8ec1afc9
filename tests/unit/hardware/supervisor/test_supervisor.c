/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hardware/supervised_vendors.h"

#include "base/count.h"

static void all_is_well(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report = look_well(fixture);

    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(report.listed, 1U << VENDOR_NVIDIA | 1U << VENDOR_AMD);
    assert_int_equal(report.problems.count, 0);
    /* Ordered by PCI address. */
    assert_string_equal(device_id_format(report.machine.devices.items[0].id).text, "amd0");
    assert_string_equal(device_id_format(report.machine.devices.items[2].id).text, "nvidia0");
    assert_well(&report, "nvidia3");
    assert_int_equal(report.machine.links.count, 3);
    assert_int_equal(report.machine.links.items[0].between[0], 2);
    assert_int_equal(report.machine.links.items[0].between[1], 3);
    assert_int_equal(report.machine.links.items[0].lanes, 4);
    machine_report_finish(&report);
}

static void processes_are_described(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report = look_well(fixture);
    const struct device_process_list *processes = &device_of(&report, "nvidia1")->processes;

    assert_int_equal(processes->count, 1);
    assert_int_equal(processes->items[0].pid, fixture->supervisor);
    assert_true(processes->items[0].uid.known);
    assert_int_equal(processes->items[0].uid.value, geteuid());
    assert_non_null(strstr(processes->items[0].command, "test-supervisor"));
    machine_report_finish(&report);
}

static void a_driver_cannot_attack_the_supervisor(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->nvidia.attacks = fixture->scripts->amd.attacks = true;
    report = look_well(fixture);
    assert_int_equal(fixture->scripts->nvidia.attempts, 4);
    assert_int_equal(fixture->scripts->amd.attempts, 2);
    assert_int_equal(fixture->scripts->nvidia.successes, 0);
    assert_int_equal(fixture->scripts->amd.successes, 0);
    assert_well(&report, "nvidia0");
    machine_report_finish(&report);
}

static void a_missing_filter_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report = look_well(fixture);

    assert_well(&report, "nvidia0");
    assert_problem(&report, "nvidia",
                   "read without a filter of system calls: cannot restrict system calls: ");
    assert_problem(&report, "amd", "read without a filter of system calls: ");
    assert_problem(&report, "processes", "read without capabilities and without a filter of ");
    assert_int_equal(report.problems.count, 3);
    machine_report_finish(&report);
    /* A vendor without devices is no problem. */
    fixture->scripts->amd.count = 0;
    report = look_well(fixture);
    assert_int_equal(report.problems.count, 2);
    machine_report_finish(&report);
}

static void the_least_memory_in_use_is_kept(void **state)
{
    static const int used[] = {7, 3, 9};
    static const uint64_t wanted[] = {7, 3, 3};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(used); i++) {
        struct machine_report report;

        fixture->scripts->nvidia.memory_used = used[i];
        report = look_well(fixture);
        assert_int_equal(device_of(&report, "nvidia0")->memory_idle.value >> 30, wanted[i]);
        machine_report_finish(&report);
    }
}

static void nobody_asks_for_processes(void **state)
{
    struct fixture *fixture = *state;
    struct probe_request request = {.deadline = 10000 * MILLISECOND, .without_processes = true};
    struct machine_report report;

    assert_int_equal(probe_query(&fixture->probe, &request, &report, NULL), 0);
    assert_int_equal(device_of(&report, "nvidia1")->processes.count, 0);
    machine_report_finish(&report);
}

static void a_hanging_device_costs_itself_only(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device;
    struct machine_report report;

    fixture->scripts->nvidia.hangs = 1;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 6);
    device = device_of(&report, "nvidia1");
    assert_int_equal(device->health, HEALTH_SICK);
    assert_string_equal(device->health_reason, "does not answer");
    assert_true(device->pci.known);
    assert_null(device->name);
    assert_false(device->old);
    assert_well(&report, "nvidia0");
    assert_well(&report, "nvidia2");
    assert_well(&report, "nvidia3");
    assert_well(&report, "amd1");
    assert_problem(&report, "nvidia", "nvidia1 (0000:41:00.0): does not answer");
    /* The other devices are linked. */
    assert_int_equal(report.machine.links.count, 2);
    machine_report_finish(&report);

    /* The next request does not wait for it, and once it answers it is well. */
    report = look_well(fixture);
    assert_int_equal(device_of(&report, "nvidia1")->health, HEALTH_SICK);
    machine_report_finish(&report);
    fixture->scripts->nvidia.hangs = NOBODY;
    for (int64_t until = clock_now() + 10000 * MILLISECOND;; machine_report_finish(&report)) {
        report = look_well(fixture);
        if (device_of(&report, "nvidia1")->health == HEALTH_OK)
            break;
        assert_true(clock_now() < until);
    }
    assert_well(&report, "nvidia1");
    assert_int_equal(report.problems.count, 0);
    machine_report_finish(&report);
}

static void what_was_known_of_a_hanging_device_is_old(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report = look_well(fixture);
    int64_t sampled = device_of(&report, "amd1")->load.utilization.sampled_at;
    const struct device *device;

    machine_report_finish(&report);
    fixture->scripts->amd.hangs = 1;
    report = look(fixture, SHORT);
    device = device_of(&report, "amd1");
    assert_true(device->old);
    assert_int_equal(device->health, HEALTH_SICK);
    assert_string_equal(device->name, "Test GPU");
    assert_int_equal(device->load.utilization.sampled_at, sampled);
    assert_well(&report, "amd0");
    machine_report_finish(&report);
}

static void many_devices_hang(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    /* The devices are listed first; then a hanging device does not delay the others. */
    fixture->scripts->amd.count = 8;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 12);
    machine_report_finish(&report);
    fixture->scripts->amd.hangs = 3;
    report = look(fixture, SHORT);
    for (int i = 0; i < 8; i++) {
        char id[16];

        snprintf(id, sizeof(id), "amd%d", i);
        if (i == 3)
            assert_int_equal(device_of(&report, id)->health, HEALTH_SICK);
        else
            assert_well(&report, id);
    }
    machine_report_finish(&report);
}

static void a_crash_costs_its_device_only(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->nvidia.crashes = 2;
    report = look_well(fixture);
    assert_int_equal(device_of(&report, "nvidia2")->health, HEALTH_SICK);
    assert_string_equal(device_of(&report, "nvidia2")->health_reason, "crashed (SIGSEGV)");
    assert_well(&report, "nvidia0");
    assert_well(&report, "nvidia1");
    assert_well(&report, "nvidia3");
    assert_problem(&report, "nvidia", "crashed (SIGSEGV)");
    machine_report_finish(&report);
}

static void a_crash_is_not_tried_again_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;
    int reads;

    fixture->scripts->nvidia.crashes = 0;
    fixture->scripts->nvidia.count = 1;
    report = look_well(fixture);
    machine_report_finish(&report);
    reads = fixture->scripts->nvidia.reads;
    report = look_well(fixture);
    assert_int_equal(fixture->scripts->nvidia.reads, reads);
    assert_int_equal(device_of(&report, "nvidia0")->health, HEALTH_SICK);
    machine_report_finish(&report);
}

static void a_failure_is_told_and_tried_again(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->nvidia.fails = 0;
    report = look_well(fixture);
    assert_string_equal(device_of(&report, "nvidia0")->health_reason, "GPU is lost");
    assert_problem(&report, "nvidia", "nvidia0 (0000:40:00.0): GPU is lost");
    machine_report_finish(&report);
    fixture->scripts->nvidia.fails = NOBODY;
    report = look_well(fixture);
    assert_well(&report, "nvidia0");
    machine_report_finish(&report);
}

static void another_device_for_an_answer_is_no_answer(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->amd.lies = 1;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(device_of(&report, "amd1")->health, HEALTH_SICK);
    assert_problem(&report, "amd", "invalid answer");
    machine_report_finish(&report);
}

static void a_list_that_hangs_costs_its_vendor_only(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->nvidia.list_hangs = true;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 2);
    assert_int_equal(report.listed, 1U << VENDOR_AMD);
    assert_well(&report, "amd0");
    assert_problem(&report, "nvidia", "cannot list the devices: does not answer");
    machine_report_finish(&report);
    fixture->scripts->nvidia.list_hangs = false;
    for (int64_t until = clock_now() + 10000 * MILLISECOND;; machine_report_finish(&report)) {
        report = look_well(fixture);
        if (report.machine.devices.count == 6)
            break;
        assert_true(clock_now() < until);
    }
    machine_report_finish(&report);
}

static void devices_stay_while_their_list_fails(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report = look_well(fixture);

    machine_report_finish(&report);
    fixture->scripts->nvidia.list_fails = true;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(report.listed, 1U << VENDOR_AMD);
    assert_well(&report, "nvidia1");
    assert_problem(&report, "nvidia", "the driver is another version");
    machine_report_finish(&report);
    fixture->scripts->nvidia.list_fails = false;
    fixture->scripts->nvidia.list_hangs = true;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 6);
    assert_well(&report, "nvidia1");
    machine_report_finish(&report);
}

static void a_list_that_crashes_is_named(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->nvidia.list_crashes = true;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 2);
    assert_problem(&report, "nvidia", "crashed (SIGSEGV)");
    machine_report_finish(&report);
}

static bool has_address(const struct machine_report *report, const char *id)
{
    return device_of(report, id)->pci.known;
}

static void a_hanging_candidate_costs_its_own_facts_only(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->amd.count = 4;
    fixture->scripts->amd.candidate_hangs = 1;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 8);
    assert_int_equal(report.listed, 1U << VENDOR_NVIDIA | 1U << VENDOR_AMD);
    assert_false(has_address(&report, "amd1"));
    assert_true(has_address(&report, "amd0") && has_address(&report, "amd2") &&
                has_address(&report, "amd3"));
    assert_well(&report, "amd0");
    assert_well(&report, "amd3");
    machine_report_finish(&report);

    /* The next request does not wait for it, and once it answers its device has an address. */
    report = look_well(fixture);
    assert_false(has_address(&report, "amd1"));
    machine_report_finish(&report);
    fixture->scripts->amd.candidate_hangs = NOBODY;
    for (int64_t until = clock_now() + 10000 * MILLISECOND;; machine_report_finish(&report)) {
        report = look_well(fixture);
        if (has_address(&report, "amd1"))
            break;
        assert_true(clock_now() < until);
    }
    assert_well(&report, "amd1");
    assert_int_equal(report.problems.count, 0);
    machine_report_finish(&report);
}

static void a_candidate_that_hangs_later_keeps_its_facts(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report = look_well(fixture);

    machine_report_finish(&report);
    fixture->scripts->amd.candidate_hangs = 0;
    report = look(fixture, SHORT);
    assert_true(has_address(&report, "amd0"));
    assert_well(&report, "amd0");
    assert_well(&report, "amd1");
    machine_report_finish(&report);
}

/* The devices are first listed without the candidate, and again in the same request. */
static void a_slow_candidate_is_in_the_report(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->amd.candidate_slow = 1;
    report = look_well(fixture);
    assert_true(fixture->scripts->amd.lists > 1);
    assert_true(has_address(&report, "amd1"));
    assert_well(&report, "amd1");
    assert_int_equal(report.problems.count, 0);
    machine_report_finish(&report);
}

static void candidates_that_cannot_be_listed_cost_their_vendor_only(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->amd.candidates_hang = true;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 4);
    assert_int_equal(report.listed, 1U << VENDOR_NVIDIA);
    assert_well(&report, "nvidia0");
    assert_problem(&report, "amd", "does not answer");
    machine_report_finish(&report);
}

static void links_that_hang_leave_the_devices(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->nvidia.links_hang = true;
    report = look(fixture, SHORT);
    assert_well(&report, "nvidia0");
    assert_int_equal(report.machine.links.count, 0);
    assert_problem(&report, "nvidia", "cannot find the links of the devices");
    machine_report_finish(&report);
}

/* Sends a request and returns how often the links were read. */
static int links_asked(struct fixture *fixture)
{
    int before = fixture->scripts->nvidia.links;
    struct machine_report report = look_well(fixture);

    machine_report_finish(&report);
    return fixture->scripts->nvidia.links - before;
}

static void links_are_asked_for_when_devices_change(void **state)
{
    enum { TRIES = 20 };
    struct fixture *fixture = *state;
    struct machine_report report;
    int before, asked, tries = 0;

    assert_true(links_asked(fixture) >= 1);
    /* On a slow machine a device may be late, and its links are read again. */
    do {
        asked = links_asked(fixture);
    } while (asked > 0 && ++tries < TRIES);
    assert_int_equal(asked, 0);
    before = fixture->scripts->nvidia.links;
    fixture->scripts->nvidia.missing = 3;
    report = look_well(fixture);
    assert_true(fixture->scripts->nvidia.links > before);
    assert_int_equal(report.machine.links.count, 2);
    machine_report_finish(&report);
}

static void links_are_asked_for_again_when_a_slow_device_answers_meanwhile(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->nvidia.slow = 1;
    report = look_well(fixture);
    assert_well(&report, "nvidia1");
    assert_true(fixture->scripts->nvidia.links > 1);
    assert_int_equal(report.machine.links.count, 3);
    assert_int_equal(report.problems.count, 0);
    machine_report_finish(&report);
}

static void devices_come_and_go(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report = look_well(fixture);

    machine_report_finish(&report);
    fixture->scripts->nvidia.missing = 0;
    fixture->scripts->amd.count = 3;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 6);
    assert_well(&report, "amd2");
    assert_well(&report, "nvidia1");
    assert_int_equal(report.problems.count, 0);
    machine_report_finish(&report);
    fixture->scripts->nvidia.missing = NOBODY;
    report = look_well(fixture);
    assert_well(&report, "nvidia0");
    machine_report_finish(&report);
}

static void a_device_that_goes_while_it_hangs_is_forgotten(void **state)
{
    struct fixture *fixture = *state;
    struct machine_report report;

    fixture->scripts->amd.hangs = 1;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 6);
    machine_report_finish(&report);
    fixture->scripts->amd.missing = 1;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 5);
    assert_int_equal(report.problems.count, 0);
    machine_report_finish(&report);
}

static void only_some_are_looked_at(void **state)
{
    struct fixture *fixture = *state;
    struct probe_request request = {.deadline = 10000 * MILLISECOND};
    struct machine_report report = look_well(fixture);
    int lists = fixture->scripts->nvidia.lists;
    int reads = fixture->scripts->nvidia.reads + fixture->scripts->amd.reads;

    machine_report_finish(&report);
    assert_int_equal(device_id_list_parse(&request.only, "nvidia2,amd0", NULL), 0);
    assert_int_equal(probe_query(&fixture->probe, &request, &report, NULL), 0);
    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(fixture->scripts->nvidia.reads + fixture->scripts->amd.reads, reads + 2);
    assert_int_equal(fixture->scripts->nvidia.lists, lists);
    machine_report_finish(&report);
    vector_finish(&request.only);
}

static void it_ends_with_whoever_asks(void **state)
{
    struct fixture *fixture = *state;
    struct probe_request request = {.deadline = 60000 * MILLISECOND};
    int status;

    fixture->scripts->amd.hangs = 0;
    assert_int_equal(probe_send(&fixture->probe, &request, NULL), 0);
    probe_finish(&fixture->probe);
    assert_int_equal(waitpid(fixture->supervisor, &status, 0), fixture->supervisor);
    assert_int_equal(status, 0);
    fixture->supervisor = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_is_well),
        TEST(processes_are_described),
        TEST(a_driver_cannot_attack_the_supervisor),
        cmocka_unit_test_setup_teardown(a_missing_filter_is_told, set_up_without_filters,
                                        tear_down),
        TEST(the_least_memory_in_use_is_kept),
        TEST(nobody_asks_for_processes),
        TEST(a_hanging_device_costs_itself_only),
        TEST(what_was_known_of_a_hanging_device_is_old),
        TEST(many_devices_hang),
        TEST(a_crash_costs_its_device_only),
        TEST(a_crash_is_not_tried_again_at_once),
        TEST(a_failure_is_told_and_tried_again),
        TEST(another_device_for_an_answer_is_no_answer),
        TEST(a_list_that_hangs_costs_its_vendor_only),
        TEST(devices_stay_while_their_list_fails),
        TEST(a_list_that_crashes_is_named),
        TEST(a_hanging_candidate_costs_its_own_facts_only),
        TEST(a_candidate_that_hangs_later_keeps_its_facts),
        TEST(a_slow_candidate_is_in_the_report),
        TEST(candidates_that_cannot_be_listed_cost_their_vendor_only),
        TEST(links_that_hang_leave_the_devices),
        TEST(links_are_asked_for_when_devices_change),
        TEST(links_are_asked_for_again_when_a_slow_device_answers_meanwhile),
        TEST(devices_come_and_go),
        TEST(a_device_that_goes_while_it_hangs_is_forgotten),
        TEST(only_some_are_looked_at),
        TEST(it_ends_with_whoever_asks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
