/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/occupancy.h"

enum { IDLE_PARTS = 64 };

struct optional_number occupancy_memory_used(const struct device *device)
{
    const struct figure *available = &device->load.memory_free;

    if (!device->memory_total.known || !available->known || available->value < 0 ||
        (uint64_t)available->value > device->memory_total.value ||
        device->kind == DEVICE_KIND_INTEGRATED)
        return (struct optional_number){0};
    return optional_number_of(device->memory_total.value - (uint64_t)available->value);
}

void occupancy_note_idle(struct device *device, struct optional_number before)
{
    struct optional_number used = occupancy_memory_used(device);

    device->memory_idle = before;
    if (used.known && !device->old && (!before.known || used.value < before.value))
        device->memory_idle = used;
}

/* Returns how much of the memory is in use at most when nothing uses the device. */
static uint64_t idle_memory(const struct device *device)
{
    uint64_t limit = device->memory_total.value / IDLE_PARTS;

    if (limit < OCCUPANCY_IDLE_MAX)
        limit = OCCUPANCY_IDLE_MAX;
    return device->memory_idle.known && device->memory_idle.value < limit
               ? device->memory_idle.value
               : limit;
}

/* Adds up the memory of the listed processes. Returns false if it is unknown: only NVIDIA's driver
 * reports it reliably, and not always. */
static bool sum_listed_memory(const struct device *device, uint64_t *ret_sum)
{
    const struct device_process *process;
    uint64_t sum = 0;

    vector_for_each (process, &device->processes) {
        if (device->id.vendor != VENDOR_NVIDIA || !process->memory.known ||
            __builtin_add_overflow(sum, process->memory.value, &sum))
            return false;
    }
    *ret_sum = sum;
    return true;
}

bool occupancy_is_hidden(const struct device *device, uint64_t margin)
{
    struct optional_number used = occupancy_memory_used(device);
    uint64_t idle = idle_memory(device);
    uint64_t listed;

    if (margin == 0 || !used.known || device->load.memory_free.sampled_at == FIGURE_DECLARED ||
        device->old || device->asleep || !sum_listed_memory(device, &listed))
        return false;
    return used.value > idle && used.value - idle > listed && used.value - idle - listed > margin;
}
