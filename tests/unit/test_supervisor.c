/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor of berth-probe with vendors that do what hardware does on bad days. It runs in a
 * process of its own; the stage, on which the tests set what the vendors do, is memory that all
 * share.
 */
#include "support/unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "hardware/supervisor.h"
#include "probe/probe.h"

#define MILLISECOND INT64_C(1000000)

/* Enough for all that do not hang. */
#define SHORT (400 * MILLISECOND)

enum { NOBODY = -1 };

/* What one vendor does. */
struct act {
    atomic_int count;   /* devices, from index 0 */
    atomic_int missing; /* the index that is not there; NOBODY */
    atomic_int hangs;   /* reading this index */
    atomic_int crashes; /* so does this */
    atomic_int fails;   /* this fails in an ordinary way */
    atomic_int lies;    /* this says that it is another */
    atomic_bool list_hangs;
    atomic_bool list_crashes;
    atomic_bool list_fails;
    atomic_bool links_hang;
    atomic_int lists; /* how often it was listed */
    atomic_int reads;
    atomic_int links;
};

struct stage {
    struct act nvidia;
    struct act amd;
};

struct fixture {
    struct stage *stage;
    struct probe probe;
    pid_t supervisor;
};

static struct stage *stage; /* of the process */

/* ---- The vendors ---- */

static void hang(const atomic_bool *while_true, const atomic_int *while_index, int index)
{
    while (while_true != NULL ? atomic_load(while_true) : atomic_load(while_index) == index)
        usleep(1000);
}

static int list(struct act *act, enum vendor vendor, struct sight *sight, struct berth_error *error)
{
    atomic_fetch_add(&act->lists, 1);
    hang(&act->list_hangs, NULL, 0);
    if (atomic_load(&act->list_crashes))
        raise(SIGSEGV);
    if (atomic_load(&act->list_fails))
        return error_set(error, BERTH_ERROR_INVALID, "the driver is another version");
    for (int i = 0; i < atomic_load(&act->count); i++) {
        struct found *found;
        char *key;

        if (i == atomic_load(&act->missing))
            continue;
        found =
            found_list_add(&sight->found, (struct device_id){vendor, (uint32_t)i, DEVICE_NO_MIG});
        if (found == NULL || asprintf(&key, "%d", i) < 0)
            return error_set_memory(error);
        found->key = key;
        /* The later vendor has the lower addresses. */
        found->device->pci = (struct pci_address){
            .known = true, .bus = (uint8_t)(vendor == VENDOR_AMD ? 1 + i : 64 + i)};
    }
    return 0;
}

static int read_one(struct act *act, const struct found *wanted, struct sight *sight,
                    struct berth_error *error)
{
    int index = (int)wanted->device->id.index;
    struct device_id id = wanted->device->id;
    struct found *found;

    atomic_fetch_add(&act->reads, 1);
    hang(NULL, &act->hangs, index);
    if (index == atomic_load(&act->crashes))
        raise(SIGSEGV);
    if (index == atomic_load(&act->fails))
        return error_set(error, BERTH_ERROR_INVALID, "GPU is lost");
    if (index == atomic_load(&act->lies))
        id.index = 77;
    found = found_list_add(&sight->found, id);
    if (found == NULL)
        return error_set_memory(error);
    found->device->pci = wanted->device->pci;
    found->device->name = strdup("Test GPU");
    found->device->health = HEALTH_OK;
    found->device->load.utilization =
        figure_sampled(atomic_load(&act->reads), clock_read(CLOCK_REALTIME));
    device_process_need(&found->device->processes, (uint64_t)getppid());
    return 0;
}

static int nvidia_list(struct vendor_context *context, struct sight *sight,
                       struct berth_error *error)
{
    (void)context;
    return list(&stage->nvidia, VENDOR_NVIDIA, sight, error);
}

static int nvidia_read(struct vendor_context *context, const struct found *wanted,
                       struct sight *sight, struct berth_error *error)
{
    (void)context;
    return read_one(&stage->nvidia, wanted, sight, error);
}

/* A chain. */
static int nvidia_links(struct vendor_context *context, const struct found_list *devices,
                        struct sight *sight, struct berth_error *error)
{
    (void)context;
    atomic_fetch_add(&stage->nvidia.links, 1);
    hang(&stage->nvidia.links_hang, NULL, 0);
    for (size_t i = 1; i < devices->count; i++) {
        struct link *link = vector_append(&sight->links);

        if (link == NULL)
            return error_set_memory(error);
        *link = (struct link){.between = {i - 1, i}, .kind = LINK_NVLINK, .lanes = 4};
    }
    return 0;
}

static int amd_list(struct vendor_context *context, struct sight *sight, struct berth_error *error)
{
    (void)context;
    return list(&stage->amd, VENDOR_AMD, sight, error);
}

static int amd_read(struct vendor_context *context, const struct found *wanted, struct sight *sight,
                    struct berth_error *error)
{
    (void)context;
    return read_one(&stage->amd, wanted, sight, error);
}

static const struct vendor_table test_nvidia = {
    .vendor = VENDOR_NVIDIA,
    .lane = LANE_NVIDIA,
    .patience = 30 * MILLISECOND,
    .list = nvidia_list,
    .read = nvidia_read,
    .links = nvidia_links,
};

static const struct vendor_table test_amd = {
    .vendor = VENDOR_AMD,
    .lane = LANE_SYSFS,
    .patience = 30 * MILLISECOND,
    .list = amd_list,
    .read = amd_read,
};

static const struct vendor_table *const test_tables[] = {&test_nvidia, &test_amd, NULL};

/* ---- Setting up ---- */

static void act_init(struct act *act, int count)
{
    act->count = count;
    act->missing = act->hangs = act->crashes = act->fails = act->lies = NOBODY;
}

static void supervise(int socket)
{
    struct root root = {.prefix = strdup("")};
    int code;

    signal(SIGSEGV, SIG_DFL); /* which cmocka handles */
    code = supervisor_run(socket, &root, test_tables, NULL);

    root_finish(&root);
    _exit(code == 0 ? 0 : 1);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    int ends[2];

    assert_non_null(fixture);
    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(stage, MAP_FAILED);
    act_init(&stage->nvidia, 4);
    act_init(&stage->amd, 2);
    fixture->stage = stage;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fixture->supervisor = fork();
    assert_true(fixture->supervisor >= 0);
    if (fixture->supervisor == 0) {
        close(ends[0]);
        supervise(ends[1]);
    }
    close(ends[1]);
    channel_init(&fixture->probe.channel, ends[0]);
    fixture->probe.is_open = true;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    int status;

    probe_finish(&fixture->probe);
    if (fixture->supervisor > 0) {
        assert_int_equal(waitpid(fixture->supervisor, &status, 0), fixture->supervisor);
        assert_int_equal(status, 0);
    }
    munmap(fixture->stage, sizeof(*fixture->stage));
    free(fixture);
    return 0;
}

/* ---- Looking ---- */

static struct report look(struct fixture *fixture, int64_t deadline)
{
    struct probe_request request = {.deadline = (uint64_t)deadline};
    struct berth_error error = BERTH_ERROR_INIT;
    struct report report;
    int64_t began = clock_now();

    if (probe_look(&fixture->probe, &request, &report, &error) < 0)
        fail_msg("%s", error.message);
    /* Generous: the machine may have more to do. */
    if (clock_now() - began > deadline + 2000 * MILLISECOND)
        fail_msg("wanted an answer within %lld ms, found %lld ms",
                 (long long)(deadline / MILLISECOND),
                 (long long)((clock_now() - began) / MILLISECOND));
    return report;
}

/* One that has all the time it needs. */
static struct report look_well(struct fixture *fixture)
{
    return look(fixture, 60000 * MILLISECOND);
}

static const struct device *device_of(const struct report *report, const char *id)
{
    struct device_id wanted;

    assert_int_equal(device_id_parse(id, &wanted, NULL), 0);
    for (size_t i = 0; i < report->machine.devices.count; i++) {
        if (device_id_equals(report->machine.devices.items[i].id, wanted))
            return &report->machine.devices.items[i];
    }
    fail_msg("wanted %s, found none", id);
    return NULL;
}

static void assert_well(const struct report *report, const char *id)
{
    const struct device *device = device_of(report, id);

    assert_int_equal(device->health, HEALTH_OK);
    assert_string_equal(device->name, "Test GPU");
    assert_false(device->old);
    assert_true(device->load.utilization.known);
}

static void assert_problem(const struct report *report, const char *backend, const char *words)
{
    const struct problem *problem;

    vector_for_each (problem, &report->problems) {
        if (strcmp(problem->backend, backend) == 0 && strstr(problem->message, words) != NULL)
            return;
    }
    vector_for_each (problem, &report->problems)
        print_message("%s: %s\n", problem->backend, problem->message);
    fail_msg("wanted a problem of %s with '%s', found none", backend, words);
}

/* ---- Tests ---- */

static void all_is_well(void **state)
{
    struct fixture *fixture = *state;
    struct report report = look_well(fixture);

    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(report.listed, 1U << VENDOR_NVIDIA | 1U << VENDOR_AMD);
    assert_int_equal(report.problems.count, 0);
    /* By PCI address. */
    assert_string_equal(device_id_format(report.machine.devices.items[0].id).text, "amd0");
    assert_string_equal(device_id_format(report.machine.devices.items[2].id).text, "nvidia0");
    assert_well(&report, "nvidia3");
    assert_int_equal(report.machine.links.count, 3);
    assert_int_equal(report.machine.links.items[0].between[0], 2);
    assert_int_equal(report.machine.links.items[0].between[1], 3);
    assert_int_equal(report.machine.links.items[0].lanes, 4);
    report_finish(&report);
}

static void processes_are_described(void **state)
{
    struct fixture *fixture = *state;
    struct report report = look_well(fixture);
    const struct device_process_list *processes = &device_of(&report, "nvidia1")->processes;

    assert_int_equal(processes->count, 1);
    assert_int_equal(processes->items[0].pid, fixture->supervisor);
    assert_true(processes->items[0].uid.known);
    assert_int_equal(processes->items[0].uid.value, geteuid());
    assert_non_null(strstr(processes->items[0].command, "test-supervisor"));
    report_finish(&report);
}

static void nobody_asks_for_processes(void **state)
{
    struct fixture *fixture = *state;
    struct probe_request request = {.deadline = 10000 * MILLISECOND, .without_processes = true};
    struct report report;

    assert_int_equal(probe_look(&fixture->probe, &request, &report, NULL), 0);
    assert_int_equal(device_of(&report, "nvidia1")->processes.count, 0);
    report_finish(&report);
}

static void a_hanging_device_costs_itself_only(void **state)
{
    struct fixture *fixture = *state;
    const struct device *device;
    struct report report;

    fixture->stage->nvidia.hangs = 1;
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
    /* The others are linked all the same. */
    assert_int_equal(report.machine.links.count, 2);
    report_finish(&report);

    /* It is not waited for again, and once it answers it is well. */
    report = look_well(fixture);
    assert_int_equal(device_of(&report, "nvidia1")->health, HEALTH_SICK);
    report_finish(&report);
    fixture->stage->nvidia.hangs = NOBODY;
    for (int64_t until = clock_now() + 10000 * MILLISECOND;; report_finish(&report)) {
        report = look_well(fixture);
        if (device_of(&report, "nvidia1")->health == HEALTH_OK)
            break;
        assert_true(clock_now() < until);
    }
    assert_well(&report, "nvidia1");
    assert_int_equal(report.problems.count, 0);
    report_finish(&report);
}

static void what_was_known_of_a_hanging_device_is_old(void **state)
{
    struct fixture *fixture = *state;
    struct report report = look_well(fixture);
    int64_t sampled = device_of(&report, "amd1")->load.utilization.sampled_at;
    const struct device *device;

    report_finish(&report);
    fixture->stage->amd.hangs = 1;
    report = look(fixture, SHORT);
    device = device_of(&report, "amd1");
    assert_true(device->old);
    assert_int_equal(device->health, HEALTH_SICK);
    assert_string_equal(device->name, "Test GPU");
    assert_int_equal(device->load.utilization.sampled_at, sampled);
    assert_well(&report, "amd0");
    report_finish(&report);
}

static void many_devices_hang(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    /* Every device of amd: the list comes first, then each is waited for beside the others. */
    fixture->stage->amd.count = 8;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 12);
    report_finish(&report);
    fixture->stage->amd.hangs = 3;
    report = look(fixture, SHORT);
    for (int i = 0; i < 8; i++) {
        char id[16];

        snprintf(id, sizeof(id), "amd%d", i);
        if (i == 3)
            assert_int_equal(device_of(&report, id)->health, HEALTH_SICK);
        else
            assert_well(&report, id);
    }
    report_finish(&report);
}

static void a_crash_costs_its_device_only(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    fixture->stage->nvidia.crashes = 2;
    report = look_well(fixture);
    assert_int_equal(device_of(&report, "nvidia2")->health, HEALTH_SICK);
    assert_string_equal(device_of(&report, "nvidia2")->health_reason, "crashed (SIGSEGV)");
    assert_well(&report, "nvidia0");
    assert_well(&report, "nvidia1");
    assert_well(&report, "nvidia3");
    assert_problem(&report, "nvidia", "crashed (SIGSEGV)");
    report_finish(&report);
}

static void a_crash_is_not_tried_again_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct report report;
    int reads;

    fixture->stage->nvidia.crashes = 0;
    fixture->stage->nvidia.count = 1;
    report = look_well(fixture);
    report_finish(&report);
    reads = fixture->stage->nvidia.reads;
    report = look_well(fixture);
    assert_int_equal(fixture->stage->nvidia.reads, reads);
    assert_int_equal(device_of(&report, "nvidia0")->health, HEALTH_SICK);
    report_finish(&report);
}

static void a_failure_is_told_and_tried_again(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    fixture->stage->nvidia.fails = 0;
    report = look_well(fixture);
    assert_string_equal(device_of(&report, "nvidia0")->health_reason, "GPU is lost");
    assert_problem(&report, "nvidia", "nvidia0 (0000:40:00.0): GPU is lost");
    report_finish(&report);
    fixture->stage->nvidia.fails = NOBODY;
    report = look_well(fixture);
    assert_well(&report, "nvidia0");
    report_finish(&report);
}

static void another_device_for_an_answer_is_no_answer(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    fixture->stage->amd.lies = 1;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(device_of(&report, "amd1")->health, HEALTH_SICK);
    assert_problem(&report, "amd", "makes no sense");
    report_finish(&report);
}

static void a_list_that_hangs_costs_its_vendor_only(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    fixture->stage->nvidia.list_hangs = true;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 2);
    assert_int_equal(report.listed, 1U << VENDOR_AMD);
    assert_well(&report, "amd0");
    assert_problem(&report, "nvidia", "wanted its devices, found: does not answer");
    report_finish(&report);
    fixture->stage->nvidia.list_hangs = false;
    for (int64_t until = clock_now() + 10000 * MILLISECOND;; report_finish(&report)) {
        report = look_well(fixture);
        if (report.machine.devices.count == 6)
            break;
        assert_true(clock_now() < until);
    }
    report_finish(&report);
}

static void devices_stay_while_their_list_fails(void **state)
{
    struct fixture *fixture = *state;
    struct report report = look_well(fixture);

    report_finish(&report);
    fixture->stage->nvidia.list_fails = true;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(report.listed, 1U << VENDOR_AMD);
    assert_well(&report, "nvidia1");
    assert_problem(&report, "nvidia", "the driver is another version");
    report_finish(&report);
    fixture->stage->nvidia.list_fails = false;
    fixture->stage->nvidia.list_hangs = true;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 6);
    assert_well(&report, "nvidia1");
    report_finish(&report);
}

static void a_list_that_crashes_is_named(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    fixture->stage->nvidia.list_crashes = true;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 2);
    assert_problem(&report, "nvidia", "crashed (SIGSEGV)");
    report_finish(&report);
}

static void links_that_hang_leave_the_devices(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    fixture->stage->nvidia.links_hang = true;
    report = look(fixture, SHORT);
    assert_well(&report, "nvidia0");
    assert_int_equal(report.machine.links.count, 0);
    assert_problem(&report, "nvidia", "wanted the links of its devices");
    report_finish(&report);
}

static void links_are_asked_for_when_devices_change(void **state)
{
    struct fixture *fixture = *state;
    struct report report = look_well(fixture);

    report_finish(&report);
    report = look_well(fixture);
    assert_int_equal(fixture->stage->nvidia.links, 1);
    report_finish(&report);
    fixture->stage->nvidia.missing = 3;
    report = look_well(fixture);
    assert_int_equal(fixture->stage->nvidia.links, 2);
    assert_int_equal(report.machine.links.count, 2);
    report_finish(&report);
}

static void devices_come_and_go(void **state)
{
    struct fixture *fixture = *state;
    struct report report = look_well(fixture);

    report_finish(&report);
    fixture->stage->nvidia.missing = 0;
    fixture->stage->amd.count = 3;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 6);
    assert_well(&report, "amd2");
    assert_well(&report, "nvidia1");
    assert_int_equal(report.problems.count, 0);
    report_finish(&report);
    fixture->stage->nvidia.missing = NOBODY;
    report = look_well(fixture);
    assert_well(&report, "nvidia0");
    report_finish(&report);
}

static void a_device_that_goes_while_it_hangs_is_forgotten(void **state)
{
    struct fixture *fixture = *state;
    struct report report;

    fixture->stage->amd.hangs = 1;
    report = look(fixture, SHORT);
    assert_int_equal(report.machine.devices.count, 6);
    report_finish(&report);
    fixture->stage->amd.missing = 1;
    report = look_well(fixture);
    assert_int_equal(report.machine.devices.count, 5);
    assert_int_equal(report.problems.count, 0);
    report_finish(&report);
}

static void only_some_are_looked_at(void **state)
{
    struct fixture *fixture = *state;
    struct probe_request request = {.deadline = 10000 * MILLISECOND};
    struct report report = look_well(fixture);
    int lists = fixture->stage->nvidia.lists;
    int reads = fixture->stage->nvidia.reads + fixture->stage->amd.reads;

    report_finish(&report);
    assert_int_equal(device_id_list_parse(&request.only, "nvidia2,amd0", NULL), 0);
    assert_int_equal(probe_look(&fixture->probe, &request, &report, NULL), 0);
    assert_int_equal(report.machine.devices.count, 6);
    assert_int_equal(fixture->stage->nvidia.reads + fixture->stage->amd.reads, reads + 2);
    assert_int_equal(fixture->stage->nvidia.lists, lists);
    report_finish(&report);
    vector_finish(&request.only);
}

static void it_ends_with_whoever_asks(void **state)
{
    struct fixture *fixture = *state;
    struct probe_request request = {.deadline = 60000 * MILLISECOND};
    int status;

    fixture->stage->amd.hangs = 0;
    assert_int_equal(probe_ask(&fixture->probe, &request, NULL), 0);
    probe_finish(&fixture->probe);
    assert_int_equal(waitpid(fixture->supervisor, &status, 0), fixture->supervisor);
    assert_int_equal(status, 0);
    fixture->supervisor = 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_is_well),
        TEST(processes_are_described),
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
        TEST(links_that_hang_leave_the_devices),
        TEST(links_are_asked_for_when_devices_change),
        TEST(devices_come_and_go),
        TEST(a_device_that_goes_while_it_hangs_is_forgotten),
        TEST(only_some_are_looked_at),
        TEST(it_ends_with_whoever_asks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
