/* SPDX-License-Identifier: Apache-2.0
 *
 * What fgd works out once from the requests that are expected. What it adds up is counted in
 * millionths of devices, times the weights of requests: whole numbers, so that equals are equal.
 */
#ifndef ENGINE_POLICY_FGD_TABLES_H
#define ENGINE_POLICY_FGD_TABLES_H

#include "model/policy.h"

/* A request for several devices that is expected. */
struct fgd_several {
    uint64_t cpus;
    uint32_t count;
    uint32_t share;
    uint64_t weight;
    const struct bitset *accepts; /* only while the tables are made */
};

struct fgd_tables {
    uint64_t whole;     /* the weights of all that is expected, below 2^31 */
    uint32_t *class_of; /* by slot: devices of one class do for the same requests */
    size_t class_count;
    uint64_t *cpus; /* that are wanted with one device, rising */
    size_t cpus_count;
    uint32_t *shares; /* the same of shares */
    size_t shares_count;
    uint64_t *weights; /* of requests for one device: by class, CPUs and share, each from none on */
    struct fgd_several *several; /* by CPUs, rising */
    size_t several_count;
    bool *accepted;     /* by class and request for several: whether such a device does */
    int64_t steps[100]; /* from 1 on: the least by which fragmentation falls for that score */
};

/* As `prepare` and `forget` of a policy. */
int fgd_tables_prepare(const struct policy *policy, const struct policy_surroundings *around,
                       void **ret_tables);
void fgd_tables_forget(void *tables);

/* How many of the amounts are not above this one. */
size_t fgd_tables_cpus(const struct fgd_tables *tables, uint64_t cpus);
size_t fgd_tables_share(const struct fgd_tables *tables, uint32_t share);

/* Where the weights of requests for one device are that a device of this class does for, as far as
 * they want no more than the first so many amounts of CPUs and of shares. */
static inline size_t fgd_tables_place(const struct fgd_tables *tables, size_t class, size_t cpus,
                                      size_t share)
{
    return (class * (tables->cpus_count + 1) + cpus) * (tables->shares_count + 1) + share;
}

/* The score for that fall of fragmentation, which may be below 0: 100 / (1 + exp(-devices)), cut to
 * a whole number. */
int64_t fgd_tables_score(const struct fgd_tables *tables, int64_t fall);

#endif
