/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory the tenants of a device leave, and which tenants one MPS control daemon serves.
 */
#include "promises/model.h"

uint64_t asking_memory(const struct asking *asking)
{
    if (asking->sharing == SHARING_EXCLUSIVE)
        return 0;
    if (asking->memory.known)
        return asking->memory.value;
    return asking->min_free.known ? asking->min_free.value : 0;
}

/* Counts how many tenants fit, admitted one by one. */
static uint32_t count_tenants(const struct asking *asking, uint64_t size, uint64_t beside)
{
    uint64_t each = asking_memory(asking);
    uint64_t free_wanted = asking->min_free.known ? asking->min_free.value : 0;
    uint32_t tenants = 0;

    while (tenants < LEASES_MAX && beside <= size && size - beside >= each &&
           size - beside >= free_wanted) {
        beside += each;
        tenants++;
    }
    return tenants;
}

uint32_t model_memory_room(const struct asking *asking, struct optional_number size,
                           uint64_t beside)
{
    if (asking_memory(asking) == 0 || (!size.known && !asking->memory.known))
        return UINT32_MAX;
    return size.known ? count_tenants(asking, size.value, beside) : 0;
}

uint32_t model_sample_room(const struct model_device *device, const struct asking *asking,
                           const struct occupancy *occupancy, unsigned slot)
{
    bool total_known = device->plan->memory.known;

    if (asking_memory(asking) == 0 || !device->free_known ||
        (total_known && occupancy->slots[slot].open == 0))
        return UINT32_MAX;
    return count_tenants(asking, device->free, occupancy->slots[slot].memory);
}

/* Returns whether the MPS directories are used directly, without a subdirectory for each device. */
static bool is_used_as_it_is(const struct asking *asking)
{
    return !asking->gpus.all && asking->gpus.max == 1 && asking->replicas == 1;
}

bool model_is_one_mps(const struct asking *one, const struct asking *other)
{
    if (one->uid != other->uid || one->pipe != other->pipe || one->log != other->log)
        return false;
    return (one->pipe == 0 && one->log == 0) || is_used_as_it_is(one) == is_used_as_it_is(other);
}
