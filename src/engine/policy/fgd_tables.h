/* SPDX-License-Identifier: Apache-2.0
 *
 * What fgd works out once from the requests that are expected. What it adds up is counted in
 * millionths of devices, times the weights of requests: whole numbers, so that equals are equal.
 */
#ifndef ENGINE_POLICY_FGD_TABLES_H
#define ENGINE_POLICY_FGD_TABLES_H

#include "model/policy.h"
#include "model/request.h"

/* A request for several devices that is expected. */
struct fgd_several {
    uint64_t cpus;
    uint32_t count;
    uint32_t share;
    uint64_t weight;
    const struct bitset *accepts; /* only while the tables are made */
};

/* Shares are found from where those begin that are as long, but for so many bits. */
enum { FGD_SHARE_BITS = 10 };

struct fgd_tables {
    uint64_t whole;     /* the weights of all that is expected, below 2^31 */
    uint32_t *class_of; /* by slot: devices of one class do for the same requests */
    size_t class_count;
    uint64_t *cpus; /* that are wanted with devices, rising */
    size_t cpus_count;
    uint32_t *shares; /* the same of shares of one device */
    size_t shares_count;
    uint32_t share_from[(SHARE_WHOLE >> FGD_SHARE_BITS) + 1];
    uint64_t *alone;             /* weights of requests for one device: see fgd_tables_alone */
    struct fgd_several *several; /* by CPUs, rising */
    size_t several_count;
    uint64_t *together; /* weights of those that want whole ones: see fgd_tables_together */
    uint32_t widest;    /* of them */
    bool parts;         /* some of them want only parts of several devices */
    bool *accepted;     /* by class and request for several: whether such a device does */
    int64_t steps[100]; /* by score: the least by which fragmentation falls for it */
};

/* As `prepare` and `forget` of a policy. */
int fgd_tables_prepare(const struct policy *policy, const struct policy_environment *around,
                       void **ret_tables);
void fgd_tables_forget(void *tables);

/* How many of the amounts are not above this one: a step. */
size_t fgd_tables_cpus(const struct fgd_tables *tables, uint64_t cpus);

static inline size_t fgd_tables_share(const struct fgd_tables *tables, uint32_t share)
{
    size_t step = tables->share_from[share >> FGD_SHARE_BITS];

    while (step < tables->shares_count && tables->shares[step] <= share)
        step++;
    return step;
}

/* The weights of requests for one device that a device of this class does for, if there are so many
 * CPUs and so much is left of it, both as steps. */
static inline uint64_t *fgd_tables_alone(const struct fgd_tables *tables, size_t class, size_t cpus,
                                         size_t share)
{
    return &tables->alone[(class * (tables->cpus_count + 1) + cpus) * (tables->shares_count + 1) +
                          share];
}

/* The weights of requests for several whole devices that so many of this class do for. */
static inline uint64_t *fgd_tables_together(const struct fgd_tables *tables, size_t class,
                                            size_t cpus, uint32_t count)
{
    size_t devices = count < tables->widest ? count : tables->widest;

    return &tables->together[(class * (tables->cpus_count + 1) + cpus) * (tables->widest + 1) +
                             devices];
}

/* The score for that fall of fragmentation, which may be below 0: 100 / (1 + exp(-devices)), cut to
 * a whole number. */
int64_t fgd_tables_score(const struct fgd_tables *tables, int64_t fall);

#endif
