/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that `frag` computes once from the machine and the expected requests. All numbers are
 * integers.
 */
#ifndef ENGINE_POLICY_FRAG_TABLES_H
#define ENGINE_POLICY_FRAG_TABLES_H

#include <stdint.h>

#include "model/policy.h"

enum {
    FRAG_PARTS = 1000,      /* parts of a device */
    FRAG_MILLIONTHS = 1000, /* millionths of a device in a part */
    FRAG_UNIT = 16,         /* units of `usable` in a part */
    FRAG_BANDS = 1024,      /* bands of CPUs for each usable device; the last has no upper end */
    FRAG_BANDS_OF_CPU = 16, /* bands in a CPU */
    FRAG_FRACTION = 16,     /* fraction bits of a band's factors */
    FRAG_SCARCITY = 1024,   /* the mean scarcity */
    FRAG_RATIO = 1024,      /* the ratio of a node with the usual number of CPUs */
    FRAG_RATIO_MAX = 8192,
    FRAG_CPUS_MAX = 1 << 24,    /* thousandths of a CPU */
    FRAG_PRICES = 200,          /* steps of a device that are priced */
    FRAG_PRICE_WHOLE = 1 << 20, /* the price of a whole device */
};

/* The factors of a band: usable x served = usable x `usable` + CPUs x `cpus`. */
struct frag_band {
    int64_t usable;
    int64_t cpus;
};

struct frag_tables {
    int32_t usable[FRAG_PARTS + 1]; /* by parts left of a device: the amount that expected requests
                                       will use, in FRAG_UNIT */
    struct frag_band bands[FRAG_BANDS];
    int64_t whole;       /* the extra worth of an empty node, for each device */
    int64_t common_cpus; /* thousandths of CPUs of a node, averaged over all devices; above 0 */
    int32_t scarcity[];  /* by host, relative to FRAG_SCARCITY */
};

/* Creates the tables, which the caller destroys. Returns 0 or BERTH_ERROR_MEMORY. */
int frag_tables_create(const struct policy_environment *around, struct frag_tables **ret_tables);
void frag_tables_destroy(struct frag_tables *tables);

/* Finds the price of each number of steps of a device, from 0 to FRAG_PRICES: its worth if all
 * expected requests for one device must be packed. `by_parts` has the number of these requests for
 * each size from 1 to FRAG_PARTS. All prices are 0 if it has none. */
void frag_tables_find_prices(const int64_t *by_parts, int64_t *ret_prices);

#endif
