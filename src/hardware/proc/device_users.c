/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/device_users.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "hardware/proc/proc_scan.h"

/* What is measured over less time is noise. */
#define ELAPSED_MIN (50 * DURATION_SECOND / 1000)

struct uses {
    struct look before; /* empty: there was none, or one that did not show everything */
    bool has_before;
};

int uses_create(struct uses **ret_uses, struct berth_error *error)
{
    struct uses *uses = calloc(1, sizeof(*uses));

    if (uses == NULL)
        return error_set_memory(error);
    *ret_uses = uses;
    return 0;
}

void uses_destroy(struct uses *uses)
{
    if (uses != NULL)
        look_finish(&uses->before);
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

/* `place` goes through the uses, which are in the order of devices and pids. */
static int add_processes(const struct look *look, size_t device, size_t *place,
                         struct device_process_list *processes)
{
    for (; *place < look->uses.count && look->uses.items[*place].device == device; (*place)++) {
        const struct use *use = &look->uses.items[*place];
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

/* Whether what happened since the scan before can be told. */
static bool is_measurable(const struct uses *uses, const struct look *look)
{
    return uses->has_before && look->is_whole &&
           look->began_at - uses->before.began_at >= ELAPSED_MIN;
}

static struct figure utilization_of(const struct uses *uses, struct look *look, size_t place)
{
    const struct used_device *device = &look->devices.items[place];
    int64_t value = 0;

    /* A device that nobody has open does nothing, and needs no counters to say so. */
    if (!is_measurable(uses, look) ||
        (device->is_open ? device->is_opaque || !look_busy(look, place, &uses->before, &value)
                         : device->is_elsewhere))
        return (struct figure){0};
    return figure_sampled(value, clock_read(CLOCK_REALTIME));
}

static int add_device(const struct uses *uses, struct look *look, size_t place, size_t *use,
                      struct sight *sight)
{
    struct used_device *used = &look->devices.items[place];
    struct device_id id = {VENDOR_DRI, (uint32_t)place, DEVICE_NO_MIG};
    struct found *found = found_list_add(&sight->found, id);

    if (found == NULL)
        return BERTH_ERROR_MEMORY;
    found->device->pci = used->pci;
    found->device->load.utilization = utilization_of(uses, look, place);
    if (used->path != NULL) {
        found->path = strdup(used->path);
        if (found->path == NULL)
            return BERTH_ERROR_MEMORY;
    }
    for (size_t i = 0; i < used->nodes.count; i++) {
        if (string_list_append(&found->device->nodes, used->nodes.items[i]) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return add_processes(look, place, use, &found->device->processes);
}

/* What the next scan measures from. Of two that follow each other too closely the first stays. */
static void keep(struct uses *uses, struct look *look)
{
    if (uses->has_before && look->is_whole && !is_measurable(uses, look)) {
        look_finish(look);
        return;
    }
    look_finish(&uses->before);
    uses->has_before = look->is_whole;
    if (look->is_whole)
        uses->before = *look;
    else
        look_finish(look);
}

int uses_scan(struct uses *uses, const struct root *root, struct sight *sight,
              struct berth_error *error)
{
    struct look look = {0};
    int code = look_take(&look, root, error);
    size_t use = 0;

    for (size_t i = 0; code == 0 && i < look.devices.count; i++) {
        if (add_device(uses, &look, i, &use, sight) < 0)
            code = error_set_memory(error);
    }
    if (code < 0)
        look_finish(&look);
    else
        keep(uses, &look);
    return code;
}
