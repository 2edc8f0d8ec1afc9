/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that fgd computes once from the expected requests. Its sums count millionths of
 * devices times the weights of requests. They are integers, so that equal nodes compare equal.
 */
#ifndef SIM_BASELINES_FGD_TABLES_H
#define SIM_BASELINES_FGD_TABLES_H

#include "model/policy.h"
#include "model/request.h"

/* An expected request for several devices. */
struct fgd_several {
    uint64_t cpus;
    uint32_t count;
    uint32_t share;
    uint64_t weight;
    const struct bitset *accepts; /* valid only while the tables are filled */
};

/* share_from has one entry for each value of a share without its lowest bits. */
enum { FGD_SHARE_BITS = 10 };

struct fgd_tables {
    uint64_t whole;     /* sum of all weights, below 2^31 */
    uint32_t *class_of; /* by slot: devices of one class fit the same requests */
    size_t class_count;
    uint64_t *cpus; /* the different amounts of CPUs in requests, rising */
    size_t cpus_count;
    uint32_t *shares; /* the different shares of one device in requests, rising */
    size_t shares_count;
    uint32_t share_from[(SHARE_WHOLE >> FGD_SHARE_BITS) + 1];
    uint64_t *alone;             /* weights of requests for one device: see fgd_tables_alone */
    struct fgd_several *several; /* by CPUs, rising */
    size_t several_count;
    uint64_t *together; /* weights of requests for several whole devices: see fgd_tables_together */
    uint32_t widest;    /* the most devices of one request */
    bool parts;         /* some requests want shares of several devices */
    bool *accepted;     /* by class and request for several devices: whether such a device fits */
    int64_t steps[100]; /* by score: the smallest fall of fragmentation for it */
};

/* The functions `prepare` and `forget` of the policy. */
int fgd_tables_prepare(const struct policy *policy, const struct policy_environment *around,
                       void **ret_tables);
void fgd_tables_forget(void *tables);

/* Return the number of amounts that are not above this one: a step. */
size_t fgd_tables_cpus(const struct fgd_tables *tables, uint64_t cpus);

static inline size_t fgd_tables_share(const struct fgd_tables *tables, uint32_t share)
{
    size_t step = tables->share_from[share >> FGD_SHARE_BITS];

    while (step < tables->shares_count && tables->shares[step] <= share)
        step++;
    return step;
}

/* Returns the cell with the weights of the requests for one device that a device of this class
 * fits. The node's free CPUs and the device's free share are given as steps. */
static inline uint64_t *fgd_tables_alone(const struct fgd_tables *tables, size_t class, size_t cpus,
                                         size_t share)
{
    return &tables->alone[(class * (tables->cpus_count + 1) + cpus) * (tables->shares_count + 1) +
                          share];
}

/* Returns the cell with the weights of the requests for several whole devices that `count` devices
 * of this class fit. */
static inline uint64_t *fgd_tables_together(const struct fgd_tables *tables, size_t class,
                                            size_t cpus, uint32_t count)
{
    size_t devices = count < tables->widest ? count : tables->widest;

    return &tables->together[(class * (tables->cpus_count + 1) + cpus) * (tables->widest + 1) +
                             devices];
}

/* Returns the score for this fall of fragmentation, which may be negative: 100 / (1 +
 * exp(-devices)), truncated to an integer. */
int64_t fgd_tables_score(const struct fgd_tables *tables, int64_t fall);

#endif
