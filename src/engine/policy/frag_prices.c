/* SPDX-License-Identifier: Apache-2.0
 *
 * Imaginary devices are filled, each with the combination of requests that pays best. What was just
 * served gets cheaper, in proportion to how much of its demand that was: so the sizes that are hard
 * to place beside others end up dear, and those that fill any gap cheap. The prices are means over
 * the second half of the fillings, when they no longer move much.
 */
#include "engine/policy/frag_prices.h"

#include <stdbool.h>
#include <string.h>

enum {
    FILLINGS = 500,
    STEP = 16,    /* a price falls by 1/STEP where all of its demand is served */
    PARTS = 1000, /* of a device, in which sizes are given */
    PARTS_OF_STEP = PARTS / FRAG_PRICES, /* of those that are priced */
};

/* A price is 2^40 for a device at first, and is doubled when all have fallen below half of that. */
#define PRICE_AT_FIRST (INT64_C(1) << 40)

struct price_search {
    int64_t expected[FRAG_PRICES + 1]; /* by size: how often */
    int64_t price[FRAG_PRICES + 1];
    int64_t sum[FRAG_PRICES + 1];  /* of the prices that counted */
    int64_t best[FRAG_PRICES + 1]; /* by what is left of a device: what it can fetch, */
    int last[FRAG_PRICES + 1];     /* and the size that is taken last for that; 0: none */
    int sizes[FRAG_PRICES];        /* that are expected */
    int size_count;
};

/* What each rest of a device can fetch at these prices. */
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

/* Lowers the prices of what the best filling serves. */
static void lower_served_prices(struct price_search *prices)
{
    int64_t served[FRAG_PRICES + 1] = {0};
    int64_t times = INT64_MAX;

    for (int left = FRAG_PRICES; left > 0;) {
        int size = prices->last[left];

        served[size] += size > 0;
        left -= size > 0 ? size : 1;
    }
    /* As many such devices as serve all of one size. */
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
            prices->price[size] / prices->expected[size] * times * served[size] / STEP;
    }
}

/* Rounded down, so that a device has room for the equal parts that it was cut into. */
static int step_of(int parts)
{
    return parts < PARTS_OF_STEP ? 1 : parts / PARTS_OF_STEP;
}

static void init_prices(const int64_t *by_parts, struct price_search *ret_search)
{
    memset(ret_search, 0, sizeof(*ret_search));
    for (int parts = 1; parts <= PARTS; parts++)
        ret_search->expected[step_of(parts)] += by_parts[parts];
    for (int size = 1; size <= FRAG_PRICES; size++) {
        if (ret_search->expected[size] == 0)
            continue;
        ret_search->sizes[ret_search->size_count++] = size;
        ret_search->price[size] = PRICE_AT_FIRST * size / FRAG_PRICES;
    }
}

/* Goes through the fillings. */
static void iterate_prices(struct price_search *prices)
{
    for (int filling = 0; filling < FILLINGS;) {
        find_best_filling(prices, prices->price, prices->best, prices->last);
        if (prices->best[FRAG_PRICES] < PRICE_AT_FIRST / 2) {
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

void frag_prices_find(const int64_t *by_parts, int64_t *ret_prices)
{
    struct price_search prices;

    init_prices(by_parts, &prices);
    memset(ret_prices, 0, (FRAG_PRICES + 1) * sizeof(*ret_prices));
    if (prices.size_count == 0)
        return;
    iterate_prices(&prices);
    find_best_filling(&prices, prices.sum, ret_prices, NULL);
    for (int left = 1; left < FRAG_PRICES; left++)
        ret_prices[left] = ret_prices[left] * FRAG_PRICE / ret_prices[FRAG_PRICES];
    ret_prices[FRAG_PRICES] = FRAG_PRICE;
}
