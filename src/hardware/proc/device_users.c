/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/device_users.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "hardware/proc/proc_scan.h"

/* A measurement over less time is noise. */
#define ELAPSED_MIN (50 * DURATION_SECOND / 1000)

struct device_users {
    struct proc_scan before; /* empty: there was no scan, or it did not show all processes */
    bool has_before;
};

int device_users_create(struct device_users **ret_uses, struct berth_error *error)
{
    struct device_users *uses = calloc(1, sizeof(*uses));

    if (uses == NULL)
        return error_set_memory(error);
    *ret_uses = uses;
    return 0;
}

void device_users_destroy(struct device_users *uses)
{
    if (uses != NULL)
        proc_scan_finish(&uses->before);
    free(uses);
}

static void add_memory(struct device_process *process, const struct use *use)
{
    if (!use->counts || !use->memory.known)
        return;
    process->memory.known = true;
    if (__builtin_add_overflow(process->memory.value, use->memory.value, &process->memory.value))
        process->memory.value = UINT64_MAX;
}

/* Adds the device's processes. `place` advances through the uses, which are ordered by device and
 * pid. */
static int add_processes(const struct proc_scan *scan, size_t device, size_t *place,
                         struct device_process_list *processes)
{
    for (; *place < scan->uses.count && scan->uses.items[*place].device == device; (*place)++) {
        const struct use *use = &scan->uses.items[*place];
        struct device_process *last =
            processes->count == 0 ? NULL : &processes->items[processes->count - 1];

        if (last == NULL || last->pid != use->pid) {
            if (processes->count == DEVICE_PROCESSES_MAX)
                continue;
            last = vector_append(processes);
            if (last == NULL)
                return BERTH_ERROR_MEMORY;
            last->pid = use->pid;
            last->draws = !use->computes;
        }
        add_memory(last, use);
    }
    return 0;
}

/* Returns whether the utilization since the previous scan can be computed. */
static bool is_measurable(const struct device_users *uses, const struct proc_scan *scan)
{
    return uses->has_before && scan->is_whole &&
           scan->began_at - uses->before.began_at >= ELAPSED_MIN;
}

static struct figure utilization_of(const struct device_users *uses, struct proc_scan *scan,
                                    size_t place)
{
    const struct used_device *device = &scan->devices.items[place];
    int64_t value = 0;

    /* A device that no process has open is idle; this needs no counters. */
    if (!is_measurable(uses, scan) ||
        (device->is_open
             ? device->is_opaque || !proc_scan_utilization(scan, place, &uses->before, &value)
             : device->is_elsewhere))
        return (struct figure){0};
    return load_figure_sampled(value, clock_read(CLOCK_REALTIME));
}

static int add_device(const struct device_users *uses, struct proc_scan *scan, size_t place,
                      size_t *use, struct findings *findings)
{
    struct used_device *used = &scan->devices.items[place];
    struct device_id id = {VENDOR_DRI, (uint32_t)place, DEVICE_NO_MIG};
    struct device_finding *found = finding_list_add(&findings->found, id);

    if (found == NULL)
        return BERTH_ERROR_MEMORY;
    found->device->pci = used->pci;
    found->device->load.utilization = utilization_of(uses, scan, place);
    if (used->path != NULL) {
        found->path = strdup(used->path);
        if (found->path == NULL)
            return BERTH_ERROR_MEMORY;
    }
    for (size_t i = 0; i < used->nodes.count; i++) {
        if (string_list_append(&found->device->nodes, used->nodes.items[i]) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return add_processes(scan, place, use, &found->device->processes);
}

/* Keeps the scan for the next measurement. If two scans follow too closely, keeps the first one. */
static void keep_scan(struct device_users *uses, struct proc_scan *scan)
{
    if (uses->has_before && scan->is_whole && !is_measurable(uses, scan)) {
        proc_scan_finish(scan);
        return;
    }
    proc_scan_finish(&uses->before);
    uses->has_before = scan->is_whole;
    if (scan->is_whole)
        uses->before = *scan;
    else
        proc_scan_finish(scan);
}

int device_users_scan(struct device_users *uses, const struct sysroot *root,
                      const struct proc_watch *watch, struct findings *findings,
                      struct berth_error *error)
{
    struct proc_scan scan = {0};
    int code = proc_scan_run(&scan, root, watch, error);
    size_t use = 0;

    for (size_t i = 0; code == 0 && i < scan.devices.count; i++) {
        if (add_device(uses, &scan, i, &use, findings) < 0)
            code = error_set_memory(error);
    }
    if (code < 0)
        proc_scan_finish(&scan);
    else
        keep_scan(uses, &scan);
    return code;
}
