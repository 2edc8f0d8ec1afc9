/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool that a plan is made for, as it is now: what is taken, by whom, and who goes first.
 */
#ifndef CLI_PLAN_POOL_H
#define CLI_PLAN_POOL_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/bitset.h"
#include "engine/placement/placement.h"
#include "model/machine.h"
#include "spec/request_options.h"
#include "view/pool_view.h"

/* Zeroed memory is a pool where nobody listens. */
struct plan_pool {
    bool live;                    /* somebody listens; the rest counts only then */
    struct pool_view view;        /* its devices may have moved into the machine */
    size_t *slots;                /* by the machine's slots: the view's */
    struct bitset busy;           /* over the machine's slots */
    enum filter_verdict *reasons; /* why each of them is */
    uint32_t *left;               /* likewise: millionths that nobody has; NULL without a pool */
    uint64_t parent;              /* the lease that we are within; 0: none */
    int verdict;                  /* 0: it would be granted at once; else the code of the refusal */
    struct berth_error refusal;
};

/* Looks at the pool, without starting one, and asks it whether it would grant the request at once.
 * `machine`, an inventory's devices (`is_virtual`) or the hardware, becomes the pool's own: those
 * that the request may see, by the masks of the environment and the lease that we are within, with
 * the links and hosts that they had before. Nobody listens at the user's own pool: *ret_pool is not
 * live and `machine` is as it was, but for hardware that the masks hide. The caller finishes
 * *ret_pool, which is untouched on failure, and the machine in any case. Fails as connect_open and
 * pool_view_fetch_retrying. */
int plan_pool_find(const struct request_options *options, struct machine *machine, bool is_virtual,
                   struct plan_pool *ret_pool, struct berth_error *error);
void plan_pool_finish(struct plan_pool *pool);

/* Puts what the pool says into the answer: `now` holds only if the pool would grant the request at
 * once, and `why` tells who holds what is in the way. A failed allocation is remembered by `why`.
 */
void plan_pool_explain(const struct plan_pool *pool, const struct placement_question *question,
                       struct placement *placement);

#endif
