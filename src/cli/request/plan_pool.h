/* SPDX-License-Identifier: Apache-2.0
 *
 * The live pool behind a plan: its devices, leases and queue, and its verdict on the request.
 */
#ifndef CLI_REQUEST_PLAN_POOL_H
#define CLI_REQUEST_PLAN_POOL_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/bitset.h"
#include "engine/placement/placement.h"
#include "model/machine/machine.h"
#include "spec/request_options.h"
#include "view/pool_view.h"

/* Zeroed memory is a pool without a daemon. */
struct plan_pool {
    bool live;                    /* a daemon answers; otherwise all other members are zero */
    struct pool_view view;        /* plan_pool_find() may move its devices into the machine */
    size_t *slots;                /* by slot of the machine: the slot in the view */
    struct bitset busy;           /* over the slots of the machine */
    enum filter_verdict *reasons; /* by slot of the machine: why it is busy */
    uint32_t *left;               /* by slot of the machine: free share in millionths */
    uint64_t parent;              /* the lease that this process runs in; 0: none */
    int verdict;                  /* 0: granted at once; else the code of the refusal */
    struct berth_error refusal;
};

/* Queries whether the pool would grant the request at once. Starts no daemon. `machine` holds the
 * devices of an inventory (`is_virtual`) or of the hardware. They are replaced with the pool's
 * devices that the request may see (masks of the environment, enclosing lease), with the links and
 * hosts that `machine` had. If no daemon runs for the user's own pool, *ret_pool is not live, and
 * `machine` only loses hardware that the masks hide. The caller finishes *ret_pool, which is
 * untouched on failure, and the machine in any case. Fails as connect_open() and
 * pool_view_fetch_retrying(). */
int plan_pool_find(const struct request_options *options, struct machine *machine, bool is_virtual,
                   struct plan_pool *ret_pool, struct berth_error *error);
void plan_pool_finish(struct plan_pool *pool);

/* Adds the pool's verdict to the placement: `now` is true only if the pool would grant the request
 * at once, and `why` names the holders of blocking devices. A failed allocation is recorded in
 * `why`. */
void plan_pool_explain(const struct plan_pool *pool, const struct placement_question *question,
                       struct placement *placement);

#endif
