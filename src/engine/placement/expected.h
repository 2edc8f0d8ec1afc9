/* SPDX-License-Identifier: Apache-2.0
 *
 * The expected requests, for which policies prepare tables.
 */
#ifndef ENGINE_PLACEMENT_EXPECTED_H
#define ENGINE_PLACEMENT_EXPECTED_H

#include "base/bitset.h"
#include "base/vector.h"
#include "engine/placement/filter.h"
#include "model/machine/machine.h"
#include "model/policy.h"
#include "model/request.h"

/* One kind of expected request. */
struct expected_request {
    struct request what;
    uint32_t weight;
    struct bitset accepts; /* set by expected_prepare_tables() */
};

struct expected_list {
    VECTOR_OF(struct expected_request);
};

/* Appends a copy. Returns 0 or BERTH_ERROR_MEMORY. */
int expected_append(struct expected_list *list, const struct request *what, uint32_t weight);
/* Appends the default: 1/8, 1/4 and 1/2 of a device; 1, 2, 4 and 8 whole devices; all equally
 * often. Returns 0 or BERTH_ERROR_MEMORY. */
int expected_append_defaults(struct expected_list *list);
void expected_list_finish(struct expected_list *list);

/* Prepares the tables of a policy, which must have `prepare`. `gone` has the slots without a
 * device; NULL: none. The caller frees the tables by the policy's `forget`. Returns 0 or
 * BERTH_ERROR_MEMORY. */
int expected_prepare_tables(const struct policy *policy, const struct machine *machine,
                            struct expected_list *list, const struct filter_terms *terms,
                            const struct bitset *gone, void **ret_tables);

#endif
