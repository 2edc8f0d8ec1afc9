/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/proc_scan.h"

#include <string.h>

/* Clocks that are read one after the other differ by some nanoseconds. */
#define BUSY_TOLERANCE 1.05

/* A class of engines, and its use by the clients so far. */
struct share {
    const char *name;
    struct optional_number total_before; /* the engine's total cycles, as any client reports them */
    double busy;                         /* in thousandths */
};

struct shares {
    struct share items[FDINFO_ENGINES_MAX];
    size_t count;
};

/* Returns the position of the device's first engine in the scan. */
static size_t first_engine(const struct proc_scan *scan, size_t device)
{
    size_t from = 0, to = scan->engines.count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (scan->engines.items[middle].device < device)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Advances in a scan to this engine of this client; NULL if it is missing. Both scans have the same
 * order. */
static const struct use_engine *find_engine(const struct proc_scan *scan, size_t device,
                                            size_t *place, const struct use_engine *wanted)
{
    for (; *place < scan->engines.count; (*place)++) {
        const struct use_engine *engine = &scan->engines.items[*place];
        int order = (engine->client > wanted->client) - (engine->client < wanted->client);

        if (engine->device != device)
            return NULL;
        if (order == 0)
            order = strcmp(engine->engine.name, wanted->engine.name);
        if (order >= 0)
            return order == 0 ? engine : NULL;
    }
    return NULL;
}

/* Returns the engine's total cycles, as any client reports them; unknown if none does. */
static struct optional_number total_cycles_of(const struct proc_scan *scan, size_t device,
                                              const char *name)
{
    struct optional_number max = {0};

    for (size_t i = first_engine(scan, device);
         i < scan->engines.count && scan->engines.items[i].device == device; i++) {
        struct fdinfo_engine *engine = &scan->engines.items[i].engine;

        if (strcmp(engine->name, name) == 0 && engine->total_cycles.known &&
            (!max.known || engine->total_cycles.value > max.value))
            max = engine->total_cycles;
    }
    return max;
}

/* Keeps the larger value of a counter: the kernel's documentation allows it to go backwards for a
 * while. */
static void keep_monotonic(struct optional_number *now, struct optional_number before)
{
    if (now->known && before.known && before.value > now->value)
        now->value = before.value;
}

/* Computes the client's use of the class since the scan before, in thousandths of the capacity of
 * all its engines. A new client starts at zero. Returns false if the use cannot be computed. */
static bool measure_engine(struct use_engine *now, const struct use_engine *was, int64_t was_at,
                           struct optional_number total_was, double *ret_busy)
{
    static const struct fdinfo_engine nothing = {.busy = {.known = true},
                                                 .cycles = {.known = true}};
    const struct fdinfo_engine *before = was == NULL ? &nothing : &was->engine;
    struct fdinfo_engine *engine = &now->engine;
    double used, all;

    keep_monotonic(&engine->busy, before->busy);
    keep_monotonic(&engine->cycles, before->cycles);
    if (engine->busy.known) {
        if (!before->busy.known || now->read_at <= was_at)
            return false;
        used = (double)(engine->busy.value - before->busy.value);
        all = (double)(now->read_at - was_at);
    } else {
        if (was != NULL)
            total_was = before->total_cycles;
        if (!before->cycles.known || !total_was.known || !engine->total_cycles.known ||
            engine->total_cycles.value <= total_was.value)
            return false;
        used = (double)(engine->cycles.value - before->cycles.value);
        all = (double)(engine->total_cycles.value - total_was.value);
    }
    all *= (double)engine->capacity;
    *ret_busy = used * 1000 / all;
    /* A new client with more than this must have existed before without being seen. */
    return was != NULL || used <= all * BUSY_TOLERANCE;
}

/* Returns the class with this name, which is added if it is new. NULL: there are too many. */
static struct share *get_share(struct shares *shares, const char *name,
                               const struct proc_scan *before, size_t device_before)
{
    struct share *share = shares->items;

    for (; share < shares->items + shares->count; share++) {
        if (strcmp(share->name, name) == 0)
            return share;
    }
    if (shares->count == FDINFO_ENGINES_MAX)
        return NULL;
    shares->count++;
    share->name = name;
    share->total_before = total_cycles_of(before, device_before, name);
    return share;
}

static bool has_counter(const struct fdinfo_engine *engine)
{
    return engine->busy.known || (engine->cycles.known && engine->total_cycles.known);
}

bool proc_scan_utilization(struct proc_scan *now, size_t device, const struct proc_scan *before,
                           int64_t *ret_utilization)
{
    size_t device_before = proc_scan_find_device(before, &now->devices.items[device]);
    size_t place = first_engine(before, device_before);
    struct shares shares = {0};
    double max = 0;
    bool is_known = true;

    for (size_t i = first_engine(now, device);
         i < now->engines.count && now->engines.items[i].device == device; i++) {
        struct use_engine *engine = &now->engines.items[i];
        const struct use_engine *was = find_engine(before, device_before, &place, engine);
        struct share *share;
        double busy = 0;

        if (!has_counter(&engine->engine))
            continue;
        share = get_share(&shares, engine->engine.name, before, device_before);
        /* Continue after a failure, so that all counters are corrected. */
        is_known &= share != NULL &&
                    measure_engine(engine, was, was == NULL ? before->began_at : was->read_at,
                                   share->total_before, &busy);
        if (is_known)
            share->busy += busy;
    }
    for (size_t i = 0; i < shares.count; i++)
        max = shares.items[i].busy > max ? shares.items[i].busy : max;
    if (!is_known || shares.count == 0)
        return false;
    *ret_utilization = max >= 1000 ? 1000 : (int64_t)(max + 0.5);
    return true;
}
