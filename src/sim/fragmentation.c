/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fragmentation.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/placement/filter.h"

#define SHARE_UNIT (SHARE_WHOLE / TRACE_WHOLE)

struct fragmentation_host {
    uint64_t cpus;  /* thousandths left */
    uint64_t part;  /* its part of the total */
    uint32_t first; /* first slot */
    uint32_t count; /* devices, in consecutive slots */
    uint32_t model; /* row of `accepts` */
    bool changed;
};

/* Returns the free thousandths of the host's devices, and fills in `left` by device. */
static uint64_t measure_free(const struct engine *engine, const struct fragmentation_host *host,
                             uint32_t *left)
{
    uint64_t free = 0;

    for (uint32_t i = 0; i < host->count; i++) {
        struct slot_view view;

        engine_get_slot(engine, host->first + i, &view);
        left[i] = (SHARE_WHOLE - view.share_used) / SHARE_UNIT;
        free += left[i];
    }
    return free;
}

/* Returns the free thousandths that one typical pod can use; 0: it does not fit. */
static uint64_t usable_by_kind(const struct trace_kind *kind, const struct fragmentation_host *host,
                               const uint32_t *left)
{
    uint64_t sum = 0;
    uint32_t fitting = 0;

    if (kind->gpus == 0 || kind->cpus > host->cpus)
        return 0;
    for (uint32_t i = 0; i < host->count; i++) {
        bool fits = left[i] >= kind->part;

        fitting += fits;
        sum += fits ? left[i] : 0;
    }
    return fitting >= kind->gpus ? sum : 0;
}

/* Returns the host's part of the total. */
static uint64_t measure_host(const struct fragmentation *fragmentation,
                             const struct fragmentation_host *host)
{
    const struct typical_pods *typical = fragmentation->typical;
    const bool *accepts = fragmentation->accepts + host->model * typical->count;
    uint32_t *left = fragmentation->left;
    uint64_t free = measure_free(fragmentation->engine, host, left);
    uint64_t part = free * typical->pods;

    if (free == 0)
        return 0;
    for (size_t i = 0; i < typical->count; i++) {
        const struct trace_kind *kind = &typical->items[i];

        if (accepts[i])
            part -= usable_by_kind(kind, host, left) * kind->pods;
    }
    return part;
}

/* Returns the number of the device's model. */
static int find_model(struct fragmentation *fragmentation, const struct device *device,
                      uint32_t *ret_model)
{
    const struct device **model;

    vector_for_each (model, &fragmentation->models) {
        const char *name = (*model)->name;

        *ret_model = (uint32_t)(model - fragmentation->models.items);
        if (name == device->name ||
            (name != NULL && device->name != NULL && strcmp(name, device->name) == 0))
            return 0;
    }
    *ret_model = (uint32_t)fragmentation->models.count;
    model = vector_append(&fragmentation->models);
    if (model == NULL)
        return BERTH_ERROR_MEMORY;
    *model = device;
    return 0;
}

static int add_devices(struct fragmentation *fragmentation, const struct machine *machine)
{
    for (uint32_t slot = 0; slot < machine->devices.count; slot++) {
        const struct device *device = &machine->devices.items[slot];
        struct fragmentation_host *host = &fragmentation->hosts[device->host];

        if (host->count++ > 0)
            continue;
        host->first = slot;
        if (find_model(fragmentation, device, &host->model) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* Finds the models that a typical pod accepts, by the engine's filter. */
static int find_accepted_models(struct fragmentation *fragmentation, size_t kind,
                                struct berth_error *error)
{
    const struct typical_pods *typical = fragmentation->typical;
    const struct filter_terms terms = {.time_slice_tenants = TRACE_WHOLE, .share = SHARE_WHOLE};
    struct request request;
    int code = pod_trace_build_request(&typical->items[kind], &request, error);

    if (code < 0)
        return code;
    for (size_t i = 0; i < fragmentation->models.count; i++)
        fragmentation->accepts[i * typical->count + kind] =
            filter_facts(&request, fragmentation->models.items[i], &terms) == FILTER_PASSES;
    request_finish(&request);
    return 0;
}

static int fill_tables(struct fragmentation *fragmentation, struct berth_error *error)
{
    const struct machine *machine = engine_machine(fragmentation->engine);
    size_t kinds = fragmentation->typical->count;
    int code = 0;

    fragmentation->hosts = calloc(machine->hosts.count, sizeof(*fragmentation->hosts));
    if (fragmentation->hosts == NULL || add_devices(fragmentation, machine) < 0 ||
        vector_reserve(&fragmentation->changed, machine->hosts.count) < 0)
        return error_set_memory(error);
    fragmentation->accepts =
        calloc(fragmentation->models.count * kinds, sizeof(*fragmentation->accepts));
    fragmentation->left = calloc(TRACE_GPUS_MAX, sizeof(*fragmentation->left));
    if (fragmentation->accepts == NULL || fragmentation->left == NULL)
        return error_set_memory(error);
    for (size_t i = 0; i < kinds && code == 0; i++) {
        if (fragmentation->typical->items[i].gpus > 0)
            code = find_accepted_models(fragmentation, i, error);
    }
    for (uint32_t i = 0; i < machine->hosts.count; i++) {
        fragmentation->hosts[i].cpus = machine->hosts.items[i].cpus.value;
        fragmentation_changed(fragmentation, i, 0);
    }
    return code;
}

int fragmentation_init(const struct engine *engine, const struct typical_pods *typical,
                       struct fragmentation *ret_fragmentation, struct berth_error *error)
{
    struct fragmentation fragmentation = {.engine = engine, .typical = typical};
    int code = fill_tables(&fragmentation, error);

    if (code < 0) {
        fragmentation_finish(&fragmentation);
        return code;
    }
    *ret_fragmentation = fragmentation;
    return 0;
}

void fragmentation_finish(struct fragmentation *fragmentation)
{
    free(fragmentation->hosts);
    free(fragmentation->accepts);
    free(fragmentation->left);
    vector_finish(&fragmentation->models);
    vector_finish(&fragmentation->changed);
    *fragmentation = (struct fragmentation){0};
}

void fragmentation_changed(struct fragmentation *fragmentation, uint32_t host, uint64_t cpus)
{
    struct fragmentation_host *changed = &fragmentation->hosts[host];

    changed->cpus -= cpus;
    if (changed->changed)
        return;
    changed->changed = true;
    /* Memory for every host is reserved. */
    fragmentation->changed.items[fragmentation->changed.count++] = host;
}

double fragmentation_measure(struct fragmentation *fragmentation)
{
    uint32_t *changed;

    vector_for_each (changed, &fragmentation->changed) {
        struct fragmentation_host *host = &fragmentation->hosts[*changed];

        fragmentation->total -= host->part;
        host->part = measure_host(fragmentation, host);
        fragmentation->total += host->part;
        host->changed = false;
    }
    fragmentation->changed.count = 0;
    return (double)fragmentation->total / (double)fragmentation->typical->pods;
}
