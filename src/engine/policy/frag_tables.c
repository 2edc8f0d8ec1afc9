/* SPDX-License-Identifier: Apache-2.0
 *
 * The terms of `frag` (docs/PLACEMENT.md, "frag"). Each comment names the question that a term
 * answers.
 */
#include "engine/policy/frag_tables.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "model/request.h"

/* Prices: the worth of a part of a device if all expected requests for one device must be packed.
 *
 * frag_tables_find_prices() fills imaginary devices, each with the combination of requests that
 * pays best. The sizes just served get cheaper, in proportion to the part of their demand that was
 * served. So sizes that are hard to combine with others become expensive, and sizes that fill any
 * gap become cheap. The result is the mean over the second half of the fillings, when prices hardly
 * move. */

enum {
    FILLINGS = 500,
    PRICE_FALL = 16, /* a price falls by 1/PRICE_FALL when its whole demand is served */
    PARTS_OF_STEP = FRAG_PARTS / FRAG_PRICES,
};

/* The price of a whole device at the start. All prices are doubled when the best filling falls
 * below half of this price. */
#define PRICE_START (INT64_C(1) << 40)

struct price_search {
    int64_t expected[FRAG_PRICES + 1]; /* by size: number of requests */
    int64_t price[FRAG_PRICES + 1];
    int64_t sum[FRAG_PRICES + 1];  /* by size: sum of the prices in the second half */
    int64_t best[FRAG_PRICES + 1]; /* by steps left of a device: the best price */
    int last[FRAG_PRICES + 1];     /* the last size of that filling; 0: none */
    int sizes[FRAG_PRICES];        /* the expected sizes, rising */
    int size_count;
};

/* Finds the best price of each number of steps, and the filling that has it. */
static void find_best_filling(const struct price_search *prices, const int64_t *price,
                              int64_t *best, int *last)
{
    best[0] = 0;
    for (int left = 1; left <= FRAG_PRICES; left++) {
        best[left] = best[left - 1];
        if (last != NULL)
            last[left] = 0;
        for (int i = 0; i < prices->size_count && prices->sizes[i] <= left; i++) {
            int size = prices->sizes[i];

            if (best[left - size] + price[size] <= best[left])
                continue;
            best[left] = best[left - size] + price[size];
            if (last != NULL)
                last[left] = size;
        }
    }
}

/* Lowers the prices of the sizes in the best filling. */
static void lower_served_prices(struct price_search *prices)
{
    int64_t served[FRAG_PRICES + 1] = {0};
    int64_t times = INT64_MAX;

    for (int left = FRAG_PRICES; left > 0;) {
        int size = prices->last[left];

        served[size] += size > 0;
        left -= size > 0 ? size : 1;
    }
    /* Repeat the filling until the demand of one size is served. */
    for (int i = 0; i < prices->size_count; i++) {
        int size = prices->sizes[i];

        if (served[size] > prices->expected[size])
            served[size] = prices->expected[size];
        if (served[size] > 0 && prices->expected[size] / served[size] < times)
            times = prices->expected[size] / served[size];
    }
    times = times < 1 ? 1 : times;
    for (int i = 0; i < prices->size_count; i++) {
        int size = prices->sizes[i];

        prices->price[size] -=
            prices->price[size] / prices->expected[size] * times * served[size] / PRICE_FALL;
    }
}

static void init_prices(const int64_t *by_parts, struct price_search *ret_search)
{
    memset(ret_search, 0, sizeof(*ret_search));
    for (int parts = 1; parts <= FRAG_PARTS; parts++) {
        /* Round down, so that equal parts of a device fit together. */
        int step = parts < PARTS_OF_STEP ? 1 : parts / PARTS_OF_STEP;

        ret_search->expected[step] += by_parts[parts];
    }
    for (int size = 1; size <= FRAG_PRICES; size++) {
        if (ret_search->expected[size] == 0)
            continue;
        ret_search->sizes[ret_search->size_count++] = size;
        ret_search->price[size] = PRICE_START * size / FRAG_PRICES;
    }
}

static void iterate_prices(struct price_search *prices)
{
    for (int filling = 0; filling < FILLINGS;) {
        find_best_filling(prices, prices->price, prices->best, prices->last);
        if (prices->best[FRAG_PRICES] < PRICE_START / 2) {
            for (int i = 0; i < prices->size_count; i++)
                prices->price[prices->sizes[i]] *= 2;
            continue;
        }
        for (int i = 0; i < prices->size_count && filling >= FILLINGS / 2; i++) {
            int size = prices->sizes[i];

            prices->sum[size] +=
                (prices->price[size] >> 10) * 1024 / (prices->best[FRAG_PRICES] >> 20);
        }
        lower_served_prices(prices);
        filling++;
    }
}

void frag_tables_find_prices(const int64_t *by_parts, int64_t *ret_prices)
{
    struct price_search prices;

    init_prices(by_parts, &prices);
    memset(ret_prices, 0, (FRAG_PRICES + 1) * sizeof(*ret_prices));
    if (prices.size_count == 0)
        return;
    iterate_prices(&prices);
    find_best_filling(&prices, prices.sum, ret_prices, NULL);
    for (int left = 1; left < FRAG_PRICES; left++)
        ret_prices[left] = ret_prices[left] * FRAG_PRICE_WHOLE / ret_prices[FRAG_PRICES];
    ret_prices[FRAG_PRICES] = FRAG_PRICE_WHOLE;
}

enum {
    DECAY = 200,       /* the rest of a device is given up after about this many requests */
    PRICES_WEIGHT = 6, /* of 8: the weight of prices in `usable`; the rest is chance */
    WHOLE_WORTH = 16,  /* extra worth of an empty node for each device, in parts of a device */
};

/* Wide enough for every product of weights, counts and capacities. */
__extension__ typedef __int128 wide;

/* The sum of all expected requests. */
struct demand {
    wide all;     /* parts of devices */
    wide several; /* the same, requests for several devices only */
    int64_t requests;
    int64_t by_parts[FRAG_PARTS + 1]; /* requests for one device, by size */
    int64_t sizes[FRAG_PARTS];        /* the sizes among them, rising */
    size_t size_count;
};

/* Returns a share in parts. Rounds down, so that equal parts of a device fit together. */
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
    /* Without requests for one device, expect one for a whole device. */
    if (ret_demand->requests == 0 || ret_demand->all == ret_demand->several)
        ret_demand->by_parts[FRAG_PARTS] = 1;
    if (ret_demand->all == 0)
        ret_demand->all = 1;
    for (int64_t parts = 1; parts <= FRAG_PARTS; parts++) {
        if (ret_demand->by_parts[parts] > 0)
            ret_demand->sizes[ret_demand->size_count++] = parts;
    }
}

/* Returns whether the device can ever be leased. */
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

/* Scarcity: how much demand is there for each device? A request spreads its demand evenly over the
 * devices that fit it, so requests that only some models fit weigh on these. `ret_pressure` is by
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

/* Sets the scarcity of each host: the mean pressure on its devices. */
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

/* Usable: how much of the rest of a device will be used? By chance: requests arrive as often as
 * expected, the first that fits takes its part, and after too many that do not fit, the rest is
 * given up. By price: the worth of the rest if all expected requests must be packed well. */
static void find_usable(const struct demand *demand, struct frag_tables *tables)
{
    int64_t decay = demand->requests > 0 ? demand->requests : 1;
    int64_t prices[FRAG_PRICES + 1];
    wide by_chance[FRAG_PARTS + 1] = {0};

    frag_tables_find_prices(demand->by_parts, prices);
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
        wide price =
            by_chance[FRAG_PARTS] * prices[left * FRAG_PRICES / FRAG_PARTS] / FRAG_PRICE_WHOLE;

        tables->usable[left] =
            (int32_t)(((8 - PRICES_WEIGHT) * by_chance[left] + PRICES_WEIGHT * price) / 8);
    }
}

/* Adds one kind of request to the bands. A band with enough CPUs for each device serves it fully, a
 * band with fewer CPUs serves it in proportion. */
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

/* Served: which part of the demand can a device with so many CPUs serve? */
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

/* Returns the CPUs of a node, averaged over all devices. */
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
