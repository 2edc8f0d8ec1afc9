/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/typical_pods.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* The percentage of pods to cover. */
enum { COVERED = 95 };

static int larger_first(uint64_t one, uint64_t other)
{
    return (one < other) - (one > other);
}

/* Compares all but memory; larger first. */
static int compare_wanted(const void *one, const void *other)
{
    const struct trace_kind *kind = one;
    const struct trace_kind *next = other;
    int order = larger_first(kind->cpus, next->cpus);

    if (order == 0)
        order = larger_first(kind->part, next->part);
    if (order == 0)
        order = larger_first(kind->gpus, next->gpus);
    return order != 0 ? order : strcmp(next->models, kind->models);
}

static int compare_frequency(const void *one, const void *other)
{
    const struct trace_kind *kind = one;
    const struct trace_kind *next = other;
    int order = larger_first(kind->pods, next->pods);

    return order != 0 ? order : compare_wanted(one, other);
}

/* Merges kinds that differ only in memory. */
static void merge_kinds(struct typical_pods *typical)
{
    size_t merged = 0;

    qsort(typical->items, typical->count, sizeof(*typical->items), compare_wanted);
    for (size_t i = 1; i < typical->count; i++) {
        if (compare_wanted(&typical->items[merged], &typical->items[i]) == 0)
            typical->items[merged].pods += typical->items[i].pods;
        else
            typical->items[++merged] = typical->items[i];
    }
    typical->count = merged + 1;
}

int typical_pods_find(const struct pod_trace *trace, struct typical_pods *ret_typical,
                      struct berth_error *error)
{
    struct typical_pods typical = {0};

    if (vector_reserve(&typical, trace->kinds.count) < 0)
        return error_set_memory(error);
    for (size_t i = 0; i < trace->kinds.count; i++) {
        typical.items[i] = trace->kinds.items[i];
        typical.items[i].memory = 0;
    }
    typical.count = trace->kinds.count;
    merge_kinds(&typical);
    qsort(typical.items, typical.count, sizeof(*typical.items), compare_frequency);
    for (size_t i = 0; i < typical.count; i++) {
        if (typical.pods * 100 >= trace->pods.count * (uint64_t)COVERED)
            typical.count = i;
        else
            typical.pods += typical.items[i].pods;
    }
    *ret_typical = typical;
    return 0;
}

void typical_pods_finish(struct typical_pods *typical)
{
    vector_finish(typical);
    *typical = (struct typical_pods){0};
}
