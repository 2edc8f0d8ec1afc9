/* SPDX-License-Identifier: Apache-2.0
 *
 * What `frag` works out once from the machine and from the requests that are expected. Whole
 * numbers throughout.
 */
#ifndef ENGINE_POLICY_FRAG_TABLES_H
#define ENGINE_POLICY_FRAG_TABLES_H

#include <stdint.h>

#include "model/policy.h"

enum {
    FRAG_PARTS = 1000,      /* of a device, */
    FRAG_MILLIONTHS = 1000, /* each of so many millionths of it */
    FRAG_UNIT = 16,         /* of what is usable: as many to a part */
    FRAG_BANDS = 1024,      /* of CPUs for each usable device; the last: plenty */
    FRAG_BANDS_OF_CPU = 16, /* as many to a CPU */
    FRAG_FRACTION = 16,     /* bits behind the point of a band's factors */
    FRAG_SCARCITY = 1024,   /* of a device that is wanted as much as the mean */
    FRAG_RATIO = 1024,      /* of CPUs to those that a node usually has: 1 */
    FRAG_RATIO_MAX = 8192,
    FRAG_CPUS_MAX = 1 << 24, /* thousandths of a CPU */
};

/* In a band: usable x served = (usable x one factor + CPUs x the other). */
struct frag_band {
    int64_t usable;
    int64_t cpus;
};

struct frag_tables {
    int32_t usable[FRAG_PARTS + 1]; /* by the parts that are left of a device: what expected
                                       requests will use of them, in FRAG_UNIT */
    struct frag_band bands[FRAG_BANDS];
    int64_t whole;       /* what it is worth that none of a node's devices is used, for each */
    int64_t common_cpus; /* thousandths that a node has, on the mean of all devices; above 0 */
    int32_t scarcity[];  /* by host: how much its devices are wanted; FRAG_SCARCITY: as the mean */
};

/* Returns 0 or BERTH_ERROR_MEMORY. */
int frag_tables_create(const struct policy_environment *around, struct frag_tables **ret_tables);
void frag_tables_destroy(struct frag_tables *tables);

#endif
