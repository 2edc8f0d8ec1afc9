/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/devices/devices_scan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "launch/masks/inherited_masks.h"
#include "view/pool_view_fetch.h"

/* How long to wait for the pool, in nanoseconds. */
#define POOL_TIMEOUT DURATION_SECOND

/* The maximum number of ancestors to search: more than any real process has. */
enum { ANCESTORS_MAX = 256 };

/* After a timeout, the pool is not queried again for this long. */
static const int64_t silence = 10 * DURATION_SECOND;

static void close_session(struct devices_pool *pool)
{
    if (!pool->is_connected)
        return;
    session_close(&pool->session);
    pool_address_finish(&pool->address);
    pool->is_connected = false;
}

static void forget_view(struct devices_pool *pool)
{
    if (pool->is_known)
        pool_view_finish(&pool->view);
    pool->view = (struct pool_view){0};
    vector_finish(&pool->holders);
    pool->is_known = false;
}

static void finish_pool(struct devices_pool *pool)
{
    forget_view(pool);
    close_session(pool);
}

static bool connect_pool(struct devices_pool *pool)
{
    if (pool->is_connected)
        return true;
    if (pool_address_find(NULL, &pool->address, NULL) < 0)
        return false;
    if (session_open_with_timeout(&pool->session, &pool->address, DIAL_ONLY, POOL_TIMEOUT, NULL) <
        0) {
        pool_address_finish(&pool->address);
        return false;
    }
    pool->is_connected = true;
    return true;
}

static int compare_holders(const void *one, const void *other)
{
    const struct devices_pool_holder *a = one;
    const struct devices_pool_holder *b = other;

    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return (a->lease > b->lease) - (a->lease < b->lease);
}

/* Fills `holders` from the view. Returns 0 or BERTH_ERROR_MEMORY. */
static int index_holders(struct devices_pool *pool)
{
    const struct lease_info *lease;

    vector_for_each (lease, &pool->view.snapshot.leases) {
        struct devices_pool_holder *holder;

        if (lease->pid <= 0)
            continue;
        holder = vector_append(&pool->holders);
        if (holder == NULL)
            return BERTH_ERROR_MEMORY;
        *holder = (struct devices_pool_holder){.pid = lease->pid, .lease = lease->id};
    }
    if (pool->holders.count > 0)
        qsort(pool->holders.items, pool->holders.count, sizeof(*pool->holders.items),
              compare_holders);
    return 0;
}

/* Fetches the view. Fails if the pool has an inventory: its devices are others, even with equal
 * ids. */
static bool fetch_view(struct devices_pool *pool)
{
    if (pool_view_fetch_within(&pool->session, POOL_TIMEOUT, &pool->view, NULL) < 0)
        return false;
    pool->is_known = true;
    return pool->view.about.inventory == NULL && index_holders(pool) == 0;
}

/* Adds a problem if the pool's daemon is connected but has not answered. If memory runs out, it is
 * not listed. */
static void list_silence(const struct devices_pool *pool, struct problem_list *problems)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (!pool->is_connected || pool->session.socket < 0)
        return;
    session_explain_silence(&pool->session, &error);
    machine_report_add_problem(problems, "pool", "%s", error.message);
}

/* Queries the pool. Blocks for at most about twice POOL_TIMEOUT. After a failure, `is_known` is
 * false, and `problems` says so if the daemon does not answer. */
static void query_pool(struct devices_pool *pool, struct problem_list *problems)
{
    int64_t began = clock_now();

    forget_view(pool);
    if (began < pool->silent_until)
        return;
    if (connect_pool(pool) && fetch_view(pool))
        return;
    forget_view(pool);
    if (clock_now() - began >= POOL_TIMEOUT) {
        list_silence(pool, problems);
        pool->silent_until = clock_now() + silence;
    }
    close_session(pool);
}

/* Returns the slot of a device in the pool; unknown if the pool does not have it. */
static struct optional_number find_pool_slot(const struct devices_pool *pool, struct device_id id)
{
    const struct slot_info *slot;

    vector_for_each (slot, &pool->view.snapshot.slots) {
        if (device_id_equals(slot->device->id, id))
            return optional_number_of((uint64_t)(slot - pool->view.snapshot.slots.items));
    }
    return (struct optional_number){0};
}

/* Returns the pool's copy of the device; NULL: the pool does not have it. */
static const struct device *find_pool_device(const struct devices_pool *pool, struct device_id id)
{
    struct optional_number slot = find_pool_slot(pool, id);

    return slot.known ? pool->view.snapshot.slots.items[slot.value].device : NULL;
}

/* Returns the youngest lease that the process itself holds; 0: none. */
static uint64_t find_held_lease(const struct devices_pool *pool, pid_t pid)
{
    size_t low = 0;
    size_t high = pool->holders.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (pool->holders.items[middle].pid <= pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && pool->holders.items[low - 1].pid == pid ? pool->holders.items[low - 1].lease
                                                              : 0;
}

/* Returns the lease of a process of this machine: the youngest lease that the process holds, or
 * else that of its nearest ancestor with one; 0: none. */
static uint64_t find_nearest_lease(const struct devices_pool *pool, uint64_t pid)
{
    pid_t ancestor = pid <= INT_MAX ? (pid_t)pid : 0;
    uint64_t lease = 0;

    if (pool->holders.count == 0)
        return 0;
    for (int i = 0; lease == 0 && ancestor > 0 && i < ANCESTORS_MAX; i++) {
        lease = find_held_lease(pool, ancestor);
        ancestor = process_stat_parent(ancestor);
    }
    return lease;
}

int devices_scan_open(struct devices_scan *scan, const char *inventory, const char *deadline,
                      struct berth_error *error)
{
    struct devices_scan opened = {0};
    int code = machine_source_open(&opened.source, inventory, deadline, error);

    if (code == 0 && !opened.source.is_virtual)
        code = inherited_masks_collect(environ, &opened.masks, error);
    if (code < 0)
        machine_source_close(&opened.source);
    else
        *scan = opened;
    return code;
}

static void forget_report(struct devices_scan *scan)
{
    machine_report_finish(&scan->report);
    free(scan->slots);
    scan->slots = NULL;
    scan->has_report = false;
}

void devices_scan_close(struct devices_scan *scan)
{
    forget_report(scan);
    machine_source_close(&scan->source);
    finish_pool(&scan->pool);
    string_list_finish(&scan->masks);
    text_finish(&scan->hidden_by);
}

/* Fills in the slots: the pool's if the pool is known, else the positions in the report. */
static int find_slots(struct devices_scan *scan, struct berth_error *error)
{
    const struct device_list *devices = &scan->report.machine.devices;

    scan->slots = calloc(devices->count + 1, sizeof(*scan->slots));
    if (scan->slots == NULL)
        return error_set_memory(error);
    for (size_t i = 0; i < devices->count; i++)
        scan->slots[i] = scan->pool.is_known ? find_pool_slot(&scan->pool, devices->items[i].id)
                                             : optional_number_of(i);
    return 0;
}

/* Returns whether this is a recorded machine, whose processes do not run here. */
static bool is_recorded(void)
{
    const char *root = getenv("BERTH_SYSROOT");

    return root != NULL && *root != '\0';
}

/* Adds the pool's facts about the processes of a device. */
static void add_pool_facts(const struct devices_pool *pool, struct device *device)
{
    const struct device *known = find_pool_device(pool, device->id);
    struct device_process *process;

    vector_for_each (process, &device->processes) {
        const struct device_process *there =
            known == NULL ? NULL : device_process_find(&known->processes, process->pid);

        if (there != NULL) {
            process->started = there->started != 0 ? there->started : process->started;
            process->lease = there->lease != 0 ? there->lease : process->lease;
            process->squats = there->squats;
        }
        if (process->lease == 0 && !is_recorded())
            process->lease = find_nearest_lease(pool, process->pid);
    }
}

static void find_leases(struct devices_scan *scan)
{
    struct device *device;

    if (!scan->pool.is_known)
        return;
    vector_for_each (device, &scan->report.machine.devices)
        add_pool_facts(&scan->pool, device);
}

/* Finds the devices that one mask alone leaves visible. */
static int find_visible_by(const struct devices_scan *scan, const char *mask,
                           struct bitset *ret_visible, struct berth_error *error)
{
    struct string_list alone = {0};
    char *const *entry;
    int code = 0;

    vector_for_each (entry, &scan->masks) {
        if (code == 0 && (*entry == mask || inherited_masks_is_setting(*entry)))
            code = string_list_append(&alone, *entry);
    }
    code = code < 0
               ? error_set_memory(error)
               : inherited_masks_find_visible(&alone, &scan->report.machine, ret_visible, error);
    string_list_finish(&alone);
    return code;
}

/* Lists the masks that hide a device on their own. If there is none, or with `all`, lists all
 * masks. */
static int name_masks(struct devices_scan *scan, bool all, struct berth_error *error)
{
    const struct machine *machine = &scan->report.machine;
    char **mask;

    text_clear(&scan->hidden_by);
    vector_for_each (mask, &scan->masks) {
        struct bitset visible;
        bool hides;
        int code;

        if (inherited_masks_is_setting(*mask))
            continue;
        code = find_visible_by(scan, *mask, &visible, error);
        if (code < 0)
            return code;
        hides = all || bitset_count(&visible) < machine->devices.count;
        bitset_finish(&visible);
        if (!hides)
            continue;
        text_append(&scan->hidden_by, scan->hidden_by.length > 0 ? ", " : "");
        text_append_bytes(&scan->hidden_by, *mask, strcspn(*mask, "="));
    }
    if (scan->hidden_by.length == 0 && !all && !text_failed(&scan->hidden_by))
        return name_masks(scan, true, error);
    return text_failed(&scan->hidden_by) ? error_set_memory(error) : 0;
}

/* Keeps the visible devices and their slots. */
static int keep_visible(struct devices_scan *scan, const struct bitset *visible,
                        struct berth_error *error)
{
    struct machine *machine = &scan->report.machine;
    size_t *places = calloc(machine->devices.count, sizeof(*places));
    int code;

    if (places == NULL)
        return error_set_memory(error);
    code = machine_keep(machine, visible, places, error);
    for (size_t i = 0; code == 0 && i < machine->devices.count; i++)
        scan->slots[i] = scan->slots[places[i]];
    free(places);
    return code;
}

/* Removes hidden devices from the report. */
static int hide_masked_devices(struct devices_scan *scan, struct berth_error *error)
{
    struct machine *machine = &scan->report.machine;
    struct bitset visible;
    int code = inherited_masks_find_visible(&scan->masks, machine, &visible, error);

    if (code < 0)
        return code;
    scan->hidden = machine->devices.count - bitset_count(&visible);
    if (scan->hidden > 0)
        code = name_masks(scan, false, error);
    if (code == 0 && scan->hidden > 0)
        code = keep_visible(scan, &visible, error);
    bitset_finish(&visible);
    return code;
}

int devices_scan_update(struct devices_scan *scan, struct berth_error *error)
{
    struct machine_report report;
    int code;

    if (scan->source.is_virtual && scan->has_report)
        return 0;
    code = machine_source_scan(&scan->source, &report, error);
    if (code < 0)
        return code;
    forget_report(scan);
    scan->report = report;
    scan->has_report = true;
    if (!scan->source.is_virtual)
        query_pool(&scan->pool, &scan->report.problems);
    code = find_slots(scan, error);
    if (code == 0)
        find_leases(scan);
    if (code == 0)
        code = hide_masked_devices(scan, error);
    return code;
}

void devices_scan_mark_stale(struct devices_scan *scan, const struct berth_error *reason)
{
    struct device *device;

    vector_for_each (device, &scan->report.machine.devices)
        device->old = true;
    /* If memory runs out, this problem is not listed. */
    machine_report_add_problem(&scan->report.problems, "probe", "%s", reason->message);
}

void devices_scan_write_hidden(const struct devices_scan *scan, struct text *out)
{
    if (scan->hidden == 1)
        text_append_format(out, "1 device is hidden by %s", text_string(&scan->hidden_by));
    else if (scan->hidden > 1)
        text_append_format(out, "%zu devices are hidden by %s", scan->hidden,
                           text_string(&scan->hidden_by));
}
