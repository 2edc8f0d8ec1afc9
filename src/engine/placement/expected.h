/* SPDX-License-Identifier: Apache-2.0
 *
 * What kinds of requests are expected, and what policies work out from them and from facts that
 * stay.
 */
#ifndef ENGINE_PLACEMENT_EXPECTED_H
#define ENGINE_PLACEMENT_EXPECTED_H

#include "base/bitset.h"
#include "base/vector.h"
#include "engine/placement/filter.h"
#include "model/machine.h"
#include "model/policy.h"
#include "model/request.h"

/* A kind of request that is expected. */
struct expected_request {
    struct request what;
    uint32_t weight;
    struct bitset accepts; /* worked out for a policy */
};

struct expected_list {
    VECTOR_OF(struct expected_request);
};

/* Appends a copy. Returns 0 or BERTH_ERROR_MEMORY. */
int expected_append(struct expected_list *list, const struct request *what, uint32_t weight);
/* Appends what is expected when nobody says anything else: 1/8, 1/4 and 1/2 of a device; 1, 2, 4
 * and 8 whole ones; each as often as the others. Returns 0 or BERTH_ERROR_MEMORY. */
int expected_append_defaults(struct expected_list *list);
void expected_list_finish(struct expected_list *list);

/* Has the policy, which must be one that prepares, work out its tables. `gone` has the slots that
 * are not there; NULL: all are. Returns 0 or BERTH_ERROR_MEMORY. */
int expected_prepare_tables(const struct policy *policy, const struct machine *machine,
                            struct expected_list *list, const struct filter_terms *terms,
                            const struct bitset *gone, void **ret_tables);

#endif
