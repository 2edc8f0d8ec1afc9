/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/devices/devices_scan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/masks/inherited_masks.h"

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
    devices_pool_finish(&scan->pool);
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
        scan->slots[i] = scan->pool.is_known ? devices_pool_slot(&scan->pool, devices->items[i].id)
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
    const struct device *known = devices_pool_device(pool, device->id);
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
            process->lease = devices_pool_lease(pool, process->pid);
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
        devices_pool_query(&scan->pool);
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
