/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor_self_test.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/bitset.h"
#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "cli/connect.h"
#include "cli/doctor/doctor_holder.h"
#include "cli/machine_source.h"
#include "launch/masks/inherited_masks.h"
#include "view/pool_view_fetch.h"
#include "view/view_facts.h"

/* The time until the driver lists the process. The daemon asks it every second while a client
 * looks. */
#define LISTED_TIMEOUT (5 * DURATION_SECOND)
#define LISTED_PAUSE   (DURATION_SECOND / 5)
/* The time until the device is free: the grace before SIGKILL, and a probe. */
#define FREE_TIMEOUT (30 * DURATION_SECOND)
#define FREE_PAUSE   (DURATION_SECOND / 200)

/* The device under test, and its holder. */
struct device_test {
    struct doctor_report *report;
    const struct doctor_facts *facts;
    const struct device *device;
    struct device_id_text name;
    struct pool_connection connection;
    struct machine_source source;
    struct doctor_holder holder;
    struct optional_number memory_before; /* used, in bytes */
};

/* Adds a line about the device. */
#define ADD(test, name_of_test, state, ...)                      \
    do {                                                         \
        (test)->report->check = (name_of_test);                  \
        doctor_report_add((test)->report, (state), __VA_ARGS__); \
    } while (0)

static void pause_for(int64_t time)
{
    nanosleep(&(struct timespec){.tv_nsec = time}, NULL);
}

/* Probes the hardware, and finds the device. The caller finishes *ret_report. */
static const struct device *probe_device(struct device_test *test,
                                         struct machine_report *ret_report)
{
    const struct device *device;

    *ret_report = (struct machine_report){0};
    if (machine_source_scan(&test->source, ret_report, NULL) < 0)
        return NULL;
    vector_for_each (device, &ret_report->machine.devices) {
        if (device_id_equals(device->id, test->device->id))
            return device;
    }
    return NULL;
}

static struct optional_number probe_memory(struct device_test *test)
{
    struct machine_report report;
    const struct device *device = probe_device(test, &report);
    struct optional_number used = {0};

    if (device != NULL)
        used = view_memory_used(device);
    machine_report_finish(&report);
    return used;
}

/* Starts the holder, as any user's command gets a lease. */
static bool test_lease(struct device_test *test)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t began = clock_now();
    int code = doctor_holder_start(&test->holder, test->device->id, &error);

    if (code < 0) {
        /* Another claim may have taken the device since is_free(). */
        ADD(test, "lease", code == BERTH_ERROR_BUSY ? DOCTOR_NOT_POSSIBLE : DOCTOR_FAILED, "%s: %s",
            test->name.text, error.message);
        return false;
    }
    ADD(test, "lease", DOCTOR_PASSED, "%s: lease %" PRIu64 " was granted and used after %s",
        test->name.text, test->holder.lease, quantity_format_duration(clock_now() - began).text);
    return true;
}

/* Within the lease, the vendor's library must show the leased device and no other. */
static void test_masks(struct device_test *test)
{
    const struct device *device;
    size_t others = 0;

    if (test->holder.nothing != NULL) {
        ADD(test, "masks", DOCTOR_NOT_POSSIBLE, "%s: %s", test->name.text, test->holder.nothing);
        return;
    }
    if (!doctor_holder_shows(&test->holder, test->device->id)) {
        ADD(test, "masks", DOCTOR_FAILED, "%s: the vendor's library does not show it",
            test->name.text);
        return;
    }
    vector_for_each (device, &test->facts->machine.machine.devices) {
        if (device_id_equals(device->id, test->device->id) || device->partitioned)
            continue;
        others++;
        if (doctor_holder_shows(&test->holder, device->id)) {
            ADD(test, "masks", DOCTOR_FAILED, "%s: the vendor's library shows %s too",
                test->name.text, device_id_format(device->id).text);
            return;
        }
    }
    if (others == 0)
        ADD(test, "masks", DOCTOR_NOT_POSSIBLE, "%s: there is no other device to hide",
            test->name.text);
    else
        ADD(test, "masks", DOCTOR_PASSED, "%s: %zu other device%s hidden", test->name.text, others,
            others == 1 ? " is" : "s are");
}

/* Probes until the driver lists the holder's process, or for LISTED_TIMEOUT. */
static bool is_listed(struct device_test *test)
{
    int64_t until = clock_after(clock_now(), LISTED_TIMEOUT);
    bool listed = false;

    while (!listed && clock_now() < until) {
        struct machine_report report;
        const struct device *device = probe_device(test, &report);

        listed = device != NULL &&
                 device_process_find(&device->processes, (uint64_t)test->holder.pid) != NULL;
        machine_report_finish(&report);
        if (!listed)
            pause_for(LISTED_PAUSE);
    }
    return listed;
}

/* Returns the process of the holder in the pool's view; NULL: the pool does not list it. */
static const struct device_process *find_in_view(const struct device_test *test,
                                                 const struct pool_view *view)
{
    const struct slot_info *slot;

    vector_for_each (slot, &view->snapshot.slots) {
        if (device_id_equals(slot->device->id, test->device->id))
            return device_process_find(&slot->device->processes, (uint64_t)test->holder.pid);
    }
    return NULL;
}

/* Fetches views until the pool assigns the holder's process to its lease. */
static bool is_assigned(struct device_test *test)
{
    int64_t until = clock_after(clock_now(), LISTED_TIMEOUT);
    bool assigned = false;

    while (!assigned && clock_now() < until) {
        const struct device_process *process;
        struct pool_view view;

        if (pool_view_fetch_retrying(&test->connection.session, &view, NULL) < 0)
            return false;
        process = find_in_view(test, &view);
        assigned = process != NULL && process->lease == test->holder.lease && !process->squats;
        pool_view_finish(&view);
        if (!assigned)
            pause_for(LISTED_PAUSE);
    }
    return assigned;
}

static void test_processes(struct device_test *test)
{
    const char *name = test->name.text;
    const char *reason = test->holder.nothing != NULL ? test->holder.nothing : test->holder.failed;

    if (reason != NULL) {
        ADD(test, "process", DOCTOR_NOT_POSSIBLE, "%s: %s", name, reason);
        ADD(test, "assignment", DOCTOR_NOT_POSSIBLE, "%s: %s", name, reason);
        return;
    }
    if (!is_listed(test)) {
        ADD(test, "process", DOCTOR_FAILED, "%s: the driver does not list process %ld", name,
            (long)test->holder.pid);
        doctor_report_advise(test->report, "in a container, share the host's pid namespace; "
                                           "otherwise see berth devices --json");
        ADD(test, "assignment", DOCTOR_NOT_POSSIBLE, "%s: the driver does not list the process",
            name);
        return;
    }
    ADD(test, "process", DOCTOR_PASSED, "%s: the driver lists process %ld", name,
        (long)test->holder.pid);
    if (is_assigned(test))
        ADD(test, "assignment", DOCTOR_PASSED, "%s: the pool assigns it to lease %" PRIu64, name,
            test->holder.lease);
    else
        ADD(test, "assignment", DOCTOR_FAILED, "%s: the pool does not assign it to lease %" PRIu64,
            name, test->holder.lease);
}

/* A context needs memory, so the used memory must grow. */
static void test_memory(struct device_test *test)
{
    struct optional_number now = probe_memory(test);
    const char *name = test->name.text;

    if (!test->memory_before.known || !now.known)
        ADD(test, "memory", DOCTOR_NOT_POSSIBLE, "%s: the driver does not tell the used memory",
            name);
    else if (test->holder.nothing != NULL || test->holder.failed != NULL)
        ADD(test, "memory", DOCTOR_NOT_POSSIBLE, "%s: there is no context that uses memory", name);
    else if (now.value > test->memory_before.value)
        ADD(test, "memory", DOCTOR_PASSED, "%s: a context uses %s", name,
            quantity_format_size(now.value - test->memory_before.value).text);
    else
        ADD(test, "memory", DOCTOR_FAILED, "%s: %s are used with a context, %s without", name,
            quantity_format_size(now.value).text,
            quantity_format_size(test->memory_before.value).text);
}

/* Returns whether the pool can grant the device. */
static bool is_free(struct device_test *test)
{
    const struct slot_info *slot;
    struct pool_view view;
    bool free = false;

    if (pool_view_fetch_retrying(&test->connection.session, &view, NULL) < 0)
        return false;
    vector_for_each (slot, &view.snapshot.slots)
        free |= device_id_equals(slot->device->id, test->device->id) &&
                pool_info_state_is_free(slot->state);
    pool_view_finish(&view);
    return free;
}

/* Kills the holder with SIGKILL: the pool must end the lease and grant the device again. */
static void test_release(struct device_test *test)
{
    const char *name = test->name.text;
    int64_t began = clock_now();

    kill(test->holder.child, SIGKILL);
    while (!is_free(test)) {
        if (clock_now() - began > FREE_TIMEOUT) {
            ADD(test, "release", DOCTOR_FAILED, "%s: not free %s after its holder was killed", name,
                quantity_format_duration(FREE_TIMEOUT).text);
            doctor_report_advise(test->report, "see berth status");
            return;
        }
        pause_for(FREE_PAUSE);
    }
    ADD(test, "release", DOCTOR_PASSED, "%s: free %s after its holder was killed", name,
        quantity_format_duration(clock_now() - began).text);
}

static void run_tests(struct device_test *test)
{
    test->memory_before = probe_memory(test);
    if (test_lease(test)) {
        test_masks(test);
        test_processes(test);
        test_memory(test);
        test_release(test);
    }
    doctor_holder_finish(&test->holder);
}

/* Tests one device, unless it is hidden or in use. */
static void test_device(struct device_test *test, const struct device *device, bool is_visible)
{
    test->device = device;
    test->name = device_id_format(device->id);
    if (device->partitioned)
        return;
    if (!is_visible)
        ADD(test, "lease", DOCTOR_NOT_POSSIBLE, "%s: this shell's masks hide it", test->name.text);
    else if (is_free(test))
        run_tests(test);
    else
        ADD(test, "lease", DOCTOR_NOT_POSSIBLE, "%s: it is not free", test->name.text);
}

/* Finds the devices that the masks of the environment leave, as a set of slots. */
static int find_visible(const struct machine *machine, struct bitset *ret_visible,
                        struct berth_error *error)
{
    struct string_list masks;
    int code = inherited_masks_collect(environ, &masks, error);

    if (code < 0)
        return code;
    code = inherited_masks_find_visible(&masks, machine, ret_visible, error);
    string_list_finish(&masks);
    return code;
}

static void test_devices(const struct doctor_facts *facts, struct doctor_report *report)
{
    struct device_test test = {.report = report, .facts = facts};
    const struct device_list *devices = &facts->machine.machine.devices;
    struct berth_error error = BERTH_ERROR_INIT;
    struct bitset visible = {0};
    const struct device *device;

    if (find_visible(&facts->machine.machine, &visible, &error) < 0 ||
        machine_source_open(&test.source, NULL, NULL, &error) < 0 ||
        connect_open(&test.connection, NULL, &error) < 0) {
        ADD(&test, "lease", DOCTOR_FAILED, "%s", error.message);
    } else {
        vector_for_each (device, devices)
            test_device(&test, device, bitset_has(&visible, (size_t)(device - devices->items)));
        connect_close(&test.connection);
    }
    machine_source_close(&test.source);
    bitset_finish(&visible);
}

void doctor_self_test_run(const struct doctor_facts *facts, struct doctor_report *report)
{
    static const char *const tests[] = {"lease",      "masks",  "process",
                                        "assignment", "memory", "release"};

    const char *lease = getenv("BERTH_LEASE");

    if (facts->inventory == NULL && facts->machine.machine.devices.count > 0) {
        report->check = "lease";
        if (lease != NULL && *lease != '\0')
            doctor_report_add(report, DOCTOR_NOT_POSSIBLE,
                              "this shell runs in lease %s: use another shell", lease);
        else
            test_devices(facts, report);
        return;
    }
    for (size_t i = 0; i < COUNT(tests); i++) {
        report->check = tests[i];
        if (facts->probe_error.code != 0)
            doctor_report_add(report, DOCTOR_NOT_POSSIBLE, "%s", facts->probe_error.message);
        else
            doctor_report_add(report, DOCTOR_NOT_POSSIBLE, "no GPU here%s",
                              facts->inventory != NULL ? ": the devices come from an inventory file"
                                                       : "");
    }
}
