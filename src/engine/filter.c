/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/filter.h"

#include <string.h>

#include "base/count.h"

/* Tenants on one device at most, unless configured otherwise. */
enum { TENANTS_TIME_SLICE = 4, TENANTS_MPS = 8 };

static const struct {
    enum filter_verdict verdict;
    const char *one;
    const char *many;
} reasons[] = {
    {FILTER_PARTITIONED, "is leased by its partitions", "are leased by their partitions"},
    {FILTER_NOT_WANTED, "is not among the wanted", "are not among the wanted"},
    {FILTER_VENDOR, "is another vendor's", "are another vendor's"},
    {FILTER_MODEL, "is another model", "are other models"},
    {FILTER_MEMORY, "has less memory or an unknown amount",
     "have less memory or an unknown amount"},
    {FILTER_CAPABILITY, "has a lower or unknown capability", "have a lower or unknown capability"},
    {FILTER_NO_MPS, "cannot be shared by mps", "cannot be shared by mps"},
    {FILTER_TOO_SMALL_TO_SHARE, "has less memory than is to be reserved, or an unknown amount",
     "have less memory than is to be reserved, or an unknown amount"},
    {FILTER_SICK, "is sick", "are sick"},
    {FILTER_LOW_ON_MEMORY, "has too little free memory or an unknown amount",
     "have too little free memory or an unknown amount"},
    {FILTER_BUSY, "is busy", "are busy"},
};

static bool has_at_least(struct optional_number figure, struct optional_number least)
{
    return !least.known || (figure.known && figure.value >= least.value);
}

static bool is_model(const struct request *request, const struct device *device)
{
    return request->model == NULL ||
           (device->name != NULL && strcasestr(device->name, request->model) != NULL);
}

static bool has_free(const struct request *request, const struct device *device)
{
    const struct figure *free_memory = &device->load.memory_free;

    return !request->min_free.known || (free_memory->known && free_memory->value >= 0 &&
                                        (uint64_t)free_memory->value >= request->min_free.value);
}

/* Reasons that stand whatever happens: fixed facts against the request. */
static enum filter_verdict judge_facts(const struct request *request, const struct device *device)
{
    if (device->partitioned)
        return FILTER_PARTITIONED;
    if (request->wanted.count > 0 && !device_id_list_has(&request->wanted, device->id))
        return FILTER_NOT_WANTED;
    if (request->vendor_rule == VENDOR_RULE_EXACT && request->vendor != device->id.vendor)
        return FILTER_VENDOR;
    if (!is_model(request, device))
        return FILTER_MODEL;
    if (!has_at_least(device->memory_total, request->min_memory))
        return FILTER_MEMORY;
    if (device->memory_total.known && request->min_free.known &&
        device->memory_total.value < request->min_free.value)
        return FILTER_MEMORY;
    if (request->min_cap.known && !capability_is_at_least(device->cap, request->min_cap))
        return FILTER_CAPABILITY;
    if (request->sharing == SHARING_MPS && device->id.vendor != VENDOR_NVIDIA)
        return FILTER_NO_MPS;
    if (filter_tenants(request, device) == 0)
        return FILTER_TOO_SMALL_TO_SHARE;
    return FILTER_PASSES;
}

enum filter_verdict filter_device(const struct request *request, const struct device *device)
{
    enum filter_verdict verdict = judge_facts(request, device);

    if (verdict != FILTER_PASSES)
        return verdict;
    if (device->health == HEALTH_SICK)
        return FILTER_SICK;
    if (!has_free(request, device))
        return FILTER_LOW_ON_MEMORY;
    return FILTER_PASSES;
}

bool filter_may_change(enum filter_verdict verdict)
{
    return verdict == FILTER_SICK || verdict == FILTER_LOW_ON_MEMORY || verdict == FILTER_BUSY;
}

void filter_describe(const size_t *counts, struct text *out)
{
    const char *separator = "";

    for (size_t i = 0; i < COUNT(reasons); i++) {
        size_t count = counts[reasons[i].verdict];

        if (count == 0)
            continue;
        text_append_format(out, "%s%zu %s", separator, count,
                           count == 1 ? reasons[i].one : reasons[i].many);
        separator = ", ";
    }
}

uint32_t filter_tenants(const struct request *request, const struct device *device)
{
    uint64_t tenants = request->sharing == SHARING_MPS ? TENANTS_MPS : TENANTS_TIME_SLICE;

    if (request->sharing == SHARING_EXCLUSIVE)
        return 1;
    if (request->share.known && SHARE_WHOLE / request->share.value < tenants)
        tenants = SHARE_WHOLE / request->share.value;
    if (!request->memory.known)
        return (uint32_t)tenants;
    if (!device->memory_total.known)
        return 0;
    if (device->memory_total.value / request->memory.value < tenants)
        tenants = device->memory_total.value / request->memory.value;
    return (uint32_t)tenants;
}
