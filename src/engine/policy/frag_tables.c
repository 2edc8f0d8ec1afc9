/* SPDX-License-Identifier: Apache-2.0
 *
 * The terms of `frag`, each with the question that it answers.
 */
#include "engine/policy/frag_tables.h"

#include <berth/error.h>
#include <stdlib.h>

#include "engine/policy/frag_prices.h"
#include "model/request.h"

enum {
    DECAY = 200, /* what is left of a device is given up after this part of the requests passed */
    PRICES_WEIGHT = 6, /* of 8: how much prices count in what is usable, beside chance */
    WHOLE_WORTH = 16,  /* parts of a device that a whole node is worth more, for each device */
};

/* Holds every product of weights, counts and capacities. */
__extension__ typedef __int128 wide;

/* What is expected of devices, in all. */
struct demand {
    wide all;     /* parts of devices */
    wide several; /* of requests for several devices */
    int64_t requests;
    int64_t by_parts[FRAG_PARTS + 1]; /* of the requests for one device: how often each size, */
    int64_t sizes[FRAG_PARTS];        /* and which there are */
    size_t size_count;
};

/* Rounded down, so that a device has room for the equal parts that it was cut into. */
static int64_t parts_of(const struct policy_typical *typical)
{
    return typical->share < FRAG_MILLIONTHS ? 1 : typical->share / FRAG_MILLIONTHS;
}

static wide demand_of(const struct policy_typical *typical)
{
    return (wide)typical->weight * typical->count * parts_of(typical);
}

static void sum_demand(const struct policy_environment *around, struct demand *ret_demand)
{
    *ret_demand = (struct demand){0};
    for (size_t i = 0; i < around->typical_count; i++) {
        const struct policy_typical *typical = &around->typical[i];

        if (typical->count == 0)
            continue;
        ret_demand->requests += typical->weight;
        ret_demand->all += demand_of(typical);
        if (typical->count > 1)
            ret_demand->several += demand_of(typical);
        else
            ret_demand->by_parts[parts_of(typical)] += typical->weight;
    }
    /* Whoever wants nothing of the kind is taken to want a whole device now and then. */
    if (ret_demand->requests == 0 || ret_demand->all == ret_demand->several)
        ret_demand->by_parts[FRAG_PARTS] = 1;
    if (ret_demand->all == 0)
        ret_demand->all = 1;
    for (int64_t parts = 1; parts <= FRAG_PARTS; parts++) {
        if (ret_demand->by_parts[parts] > 0)
            ret_demand->sizes[ret_demand->size_count++] = parts;
    }
}

/* Whether anybody could ever lease the device. */
static bool is_leasable(const struct device *device)
{
    return !device->partitioned;
}

static int64_t count_leasable(const struct machine *machine)
{
    const struct device *device;
    int64_t count = 0;

    vector_for_each (device, &machine->devices)
        count += is_leasable(device);
    return count;
}

/* How much is each device wanted? Every request spreads what it wants evenly over the devices that
 * would do, so that those which only some models can serve weigh on these. `ret_pressure` is by
 * slot. */
static void find_pressure(const struct policy_environment *around, const struct demand *demand,
                          wide *ret_pressure)
{
    int64_t all = count_leasable(around->machine);
    size_t device_count = around->machine->devices.count;

    for (size_t i = 0; i < around->typical_count; i++) {
        const struct policy_typical *typical = &around->typical[i];
        int64_t capacity = (int64_t)bitset_count(typical->accepts);

        if (typical->count == 0 || capacity == 0)
            continue;
        for (size_t slot = bitset_next(typical->accepts, 0); slot < device_count;
             slot = bitset_next(typical->accepts, slot + 1))
            ret_pressure[slot] += demand_of(typical) * all * FRAG_SCARCITY / capacity;
    }
    for (size_t slot = 0; slot < device_count; slot++)
        ret_pressure[slot] /= demand->all;
}

/* A host is as scarce as its devices are on the mean. */
static int find_scarcity(const struct policy_environment *around, const struct demand *demand,
                         size_t host_count, struct frag_tables *tables)
{
    size_t device_count = around->machine->devices.count;
    wide *pressure = calloc(device_count + 1, sizeof(*pressure));
    wide *sums = calloc(host_count, sizeof(*sums));
    int32_t *counts = calloc(host_count, sizeof(*counts));
    int code = pressure == NULL || sums == NULL || counts == NULL ? BERTH_ERROR_MEMORY : 0;

    if (code == 0) {
        find_pressure(around, demand, pressure);
        for (size_t slot = 0; slot < device_count; slot++) {
            const struct device *device = &around->machine->devices.items[slot];

            if (!is_leasable(device))
                continue;
            sums[device->host] += pressure[slot];
            counts[device->host]++;
        }
        for (size_t host = 0; host < host_count; host++) {
            wide mean = counts[host] > 0 ? sums[host] / counts[host] : 0;

            tables->scarcity[host] = mean < 1 ? 1 : mean > INT32_MAX ? INT32_MAX : (int32_t)mean;
        }
    }
    free(pressure);
    free(sums);
    free(counts);
    return code;
}

/* How much of what is left of a device will be used? By chance: requests come as often as expected,
 * the first that fits takes its part, and when too many have passed the rest is given up. By price:
 * what a part is worth when all that is expected has to be packed well. */
static void find_usable(const struct demand *demand, struct frag_tables *tables)
{
    int64_t decay = demand->requests > 0 ? demand->requests : 1; /* of DECAY for each */
    int64_t prices[FRAG_PRICES + 1];
    wide by_chance[FRAG_PARTS + 1] = {0};

    frag_prices_find(demand->by_parts, prices);
    for (int64_t left = 1; left <= FRAG_PARTS; left++) {
        wide fitting = decay;
        wide used = 0;

        for (size_t i = 0; i < demand->size_count && demand->sizes[i] <= left; i++) {
            int64_t parts = demand->sizes[i];

            fitting += demand->by_parts[parts] * DECAY;
            used += demand->by_parts[parts] * (FRAG_UNIT * parts + by_chance[left - parts]);
        }
        by_chance[left] = used * DECAY / fitting;
    }
    for (int64_t left = 0; left <= FRAG_PARTS; left++) {
        wide price = by_chance[FRAG_PARTS] * prices[left * FRAG_PRICES / FRAG_PARTS] / FRAG_PRICE;

        tables->usable[left] =
            (int32_t)(((8 - PRICES_WEIGHT) * by_chance[left] + PRICES_WEIGHT * price) / 8);
    }
}

/* Adds what one kind of request is to the bands: all of it is served where there are as many CPUs
 * for each device as it wants, and in proportion where there are fewer. */
static void add_to_bands(const struct policy_typical *typical, const struct demand *demand,
                         struct frag_tables *tables)
{
    int64_t parts = typical->count * parts_of(typical);
    wide cpus = typical->cpus < FRAG_CPUS_MAX ? typical->cpus : FRAG_CPUS_MAX;
    int64_t weight = (int64_t)((demand_of(typical) << FRAG_FRACTION) / demand->all);
    int64_t wanted = (int64_t)((FRAG_BANDS_OF_CPU * cpus + parts - 1) / parts);

    for (int64_t band = 0; band < FRAG_BANDS; band++) {
        if (wanted <= band)
            tables->bands[band].usable += weight;
        else
            tables->bands[band].cpus += weight * FRAG_BANDS_OF_CPU * FRAG_UNIT / wanted;
    }
}

/* Which part of the demand does a device serve that has so many CPUs? */
static void find_bands(const struct policy_environment *around, const struct demand *demand,
                       struct frag_tables *tables)
{
    for (int64_t band = 0; band < FRAG_BANDS && demand->requests == 0; band++)
        tables->bands[band].usable = 1 << FRAG_FRACTION;
    for (size_t i = 0; i < around->typical_count; i++) {
        if (around->typical[i].count > 0)
            add_to_bands(&around->typical[i], demand, tables);
    }
}

/* The CPUs of a node, on the mean of all devices. */
static int64_t find_common_cpus(const struct machine *machine)
{
    const struct device *device;
    wide sum = 0;
    int64_t count = 0;

    vector_for_each (device, &machine->devices) {
        const struct host *host =
            machine->hosts.count > 0 ? &machine->hosts.items[device->host] : NULL;

        if (host == NULL || !host->cpus.known || !is_leasable(device))
            continue;
        sum += host->cpus.value < FRAG_CPUS_MAX ? host->cpus.value : FRAG_CPUS_MAX;
        count++;
    }
    return count == 0 || sum < count ? FRAG_CPUS_MAX : (int64_t)(sum / count);
}

int frag_tables_create(const struct policy_environment *around, struct frag_tables **ret_tables)
{
    size_t host_count = around->machine->hosts.count > 0 ? around->machine->hosts.count : 1;
    struct frag_tables *tables =
        calloc(1, sizeof(*tables) + host_count * sizeof(*tables->scarcity));
    struct demand demand;

    if (tables == NULL)
        return BERTH_ERROR_MEMORY;
    sum_demand(around, &demand);
    if (find_scarcity(around, &demand, host_count, tables) < 0) {
        frag_tables_destroy(tables);
        return BERTH_ERROR_MEMORY;
    }
    find_usable(&demand, tables);
    find_bands(around, &demand, tables);
    tables->common_cpus = find_common_cpus(around->machine);
    tables->whole = (int64_t)(WHOLE_WORTH * FRAG_UNIT * (demand.all + demand.several) / demand.all);
    *ret_tables = tables;
    return 0;
}

void frag_tables_destroy(struct frag_tables *tables)
{
    free(tables);
}
