/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement/filter.h"

#include <string.h>

#include "base/count.h"

const struct filter_terms filter_default_terms = {
    .time_slice_tenants = 4,
    .mps_tenants = 8,
    .share = SHARE_WHOLE,
};

static const struct {
    enum filter_verdict verdict;
    const char *one;
    const char *many;
} reasons[] = {
    {FILTER_PARTITIONED, "is split into partitions", "are split into partitions"},
    {FILTER_NOT_WANTED, "is not named in the request", "are not named in the request"},
    {FILTER_VENDOR, "has another vendor", "have another vendor"},
    {FILTER_MODEL, "is another model", "are other models"},
    {FILTER_MEMORY, "has too little or unknown memory", "have too little or unknown memory"},
    {FILTER_CAPABILITY, "has a lower or unknown compute capability",
     "have a lower or unknown compute capability"},
    {FILTER_NO_MPS, "does not support MPS", "do not support MPS"},
    {FILTER_TOO_SMALL_TO_SHARE, "has less memory than requested, or an unknown amount",
     "have less memory than requested, or an unknown amount"},
    {FILTER_MASKED, "is hidden by the inherited mask", "are hidden by the inherited mask"},
    {FILTER_GONE, "is gone", "are gone"},
    {FILTER_OUTSIDE, "is outside the lease", "are outside the lease"},
    {FILTER_RESERVED, "is reserved for others", "are reserved for others"},
    {FILTER_SICK, "is sick", "are sick"},
    {FILTER_LOW_ON_MEMORY, "has too little or unknown free memory",
     "have too little or unknown free memory"},
    {FILTER_BUSY, "is busy", "are busy"},
    {FILTER_SHARED_OUT, "has too small a share left", "have too small a share left"},
    {FILTER_TENANTS, "is at its tenant limit", "are at their tenant limit"},
    {FILTER_MEMORY_TAKEN, "has too little unreserved memory", "have too little unreserved memory"},
    {FILTER_OTHER_USER, "runs MPS for another user", "run MPS for other users"},
    {FILTER_OTHER_MPS, "runs MPS in another directory", "run MPS in other directories"},
    {FILTER_SQUATTED, "is used without a lease", "are used without a lease"},
    {FILTER_DIRTY, "is not cleaned up yet", "are not cleaned up yet"},
    {FILTER_DRAINED, "is drained", "are drained"},
    {FILTER_ELSEWHERE, "is held by another pool", "are held by another pool"},
    {FILTER_ASLEEP, "is asleep", "are asleep"},
    {FILTER_KEPT, "is kept for earlier claims", "are kept for earlier claims"},
};

/* Returns whether the name contains the text, ignoring case. */
static bool has_text(const char *name, const char *text, size_t length)
{
    for (; *name != '\0'; name++) {
        if (strncasecmp(name, text, length) == 0)
            return true;
    }
    return length == 0;
}

/* Returns whether the device's name contains one of the request's models ("A|B"). */
static bool is_model(const struct request *request, const struct device *device)
{
    const char *model = request->model;

    if (model == NULL)
        return true;
    if (device->name == NULL)
        return false;
    for (;;) {
        size_t length = strcspn(model, "|");

        if (has_text(device->name, model, length))
            return true;
        if (model[length] == '\0')
            return false;
        model += length + 1;
    }
}

bool filter_has_free(const struct request *request, const struct device *device)
{
    const struct figure *free_memory = &device->load.memory_free;

    return !request->min_free.known || (free_memory->known && free_memory->value >= 0 &&
                                        (uint64_t)free_memory->value >= request->min_free.value);
}

/* Returns whether the requested free memory could ever be free. */
static bool could_have_free(const struct request *request, const struct device *device,
                            const struct filter_terms *terms)
{
    struct optional_number bound = filter_memory_bound(request, device, terms);

    return !request->min_free.known || !bound.known || bound.value >= request->min_free.value;
}

enum filter_verdict filter_facts(const struct request *request, const struct device *device,
                                 const struct filter_terms *terms)
{
    if (device->partitioned)
        return FILTER_PARTITIONED;
    if (request->wanted.count > 0 && !device_id_list_has(&request->wanted, device->id))
        return FILTER_NOT_WANTED;
    if (request->vendor_rule == VENDOR_RULE_EXACT && request->vendor != device->id.vendor)
        return FILTER_VENDOR;
    if (!is_model(request, device))
        return FILTER_MODEL;
    if (request->min_memory.known &&
        (!device->memory_total.known || device->memory_total.value < request->min_memory.value))
        return FILTER_MEMORY;
    if (!could_have_free(request, device, terms))
        return FILTER_MEMORY;
    if (request->min_cap.known && !capability_is_at_least(device->cap, request->min_cap))
        return FILTER_CAPABILITY;
    if (request->sharing == SHARING_MPS && device->id.vendor != VENDOR_NVIDIA)
        return FILTER_NO_MPS;
    if (filter_tenants(request, device, terms) == 0)
        return FILTER_TOO_SMALL_TO_SHARE;
    return FILTER_PASSES;
}

bool filter_is_alike(const struct request *request, const struct device *one,
                     const struct device *other)
{
    if (request->wanted.count > 0 || one->partitioned != other->partitioned ||
        one->id.vendor != other->id.vendor ||
        !optional_equals(one->memory_total, other->memory_total))
        return false;
    if (request->min_cap.known &&
        (one->cap.known != other->cap.known || one->cap.major != other->cap.major ||
         one->cap.minor != other->cap.minor))
        return false;
    if (request->model == NULL)
        return true;
    return one->name != NULL && other->name != NULL && strcmp(one->name, other->name) == 0;
}

enum filter_verdict filter_device(const struct request *request, const struct device *device,
                                  const struct filter_terms *terms)
{
    enum filter_verdict verdict = filter_facts(request, device, terms);

    if (verdict != FILTER_PASSES)
        return verdict;
    if (device->health == HEALTH_SICK)
        return FILTER_SICK;
    if (!filter_has_free(request, device))
        return FILTER_LOW_ON_MEMORY;
    return FILTER_PASSES;
}

bool filter_may_change(enum filter_verdict verdict)
{
    return verdict >= FILTER_SICK;
}

const char *filter_reason(enum filter_verdict verdict)
{
    for (size_t i = 0; i < COUNT(reasons); i++) {
        if (reasons[i].verdict == verdict)
            return reasons[i].one;
    }
    return NULL;
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

static uint32_t tenants_max(const struct request *request, const struct filter_terms *terms)
{
    return request->sharing == SHARING_MPS ? terms->mps_tenants : terms->time_slice_tenants;
}

bool filter_shares_evenly(const struct request *request)
{
    return request->sharing != SHARING_EXCLUSIVE && !request->share.known;
}

uint32_t filter_share(const struct request *request, const struct filter_terms *terms)
{
    uint32_t even;

    if (request->sharing == SHARING_EXCLUSIVE)
        return terms->share;
    even = terms->share / tenants_max(request, terms);
    return request->share.known ? (uint32_t)request->share.value : even > 0 ? even : 1;
}

uint64_t filter_memory(const struct request *request)
{
    if (request->sharing == SHARING_EXCLUSIVE)
        return 0;
    if (request->memory.known)
        return request->memory.value;
    return request->min_free.known ? request->min_free.value : 0;
}

uint64_t filter_fitting(const struct request *request, uint64_t left)
{
    uint64_t each = filter_memory(request);
    uint64_t found =
        request->min_free.known && request->min_free.value > each ? request->min_free.value : each;

    if (left < found)
        return 0;
    return each == 0 ? UINT64_MAX : 1 + (left - found) / each;
}

struct optional_number filter_memory_bound(const struct request *request,
                                           const struct device *device,
                                           const struct filter_terms *terms)
{
    /* Within a lease that reserved no memory, requests cannot reserve any either, and the device
     * bounds the free memory that they ask for (FAIRNESS.md section 11). */
    if (!terms->memory.known || (terms->memory.value == 0 && !request->memory.known))
        return device->memory_total;
    return terms->memory;
}

uint32_t filter_tenants(const struct request *request, const struct device *device,
                        const struct filter_terms *terms)
{
    uint64_t tenants = tenants_max(request, terms);
    struct optional_number bound = filter_memory_bound(request, device, terms);
    uint64_t fitting = bound.known ? filter_fitting(request, bound.value) : UINT64_MAX;

    if (request->sharing == SHARING_EXCLUSIVE)
        return 1;
    if (terms->share / filter_share(request, terms) < tenants)
        tenants = terms->share / filter_share(request, terms);
    if (request->memory.known && !bound.known)
        return 0;
    return (uint32_t)(fitting < tenants ? fitting : tenants);
}
