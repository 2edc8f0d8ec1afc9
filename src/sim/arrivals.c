/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/arrivals.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void shuffle_items(struct sim_random *random, uint32_t *items, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = sim_random_below(random, i);
        uint32_t item = items[i - 1];

        items[i - 1] = items[other];
        items[other] = item;
    }
}

/* Appends the pods of the trace, shuffled. */
static int shuffle_pods(const struct pod_trace *trace, struct sim_random *random,
                        struct arrivals *arrivals)
{
    if (vector_reserve(arrivals, trace->pods.count) < 0)
        return BERTH_ERROR_MEMORY;
    memcpy(arrivals->items, trace->pods.items, trace->pods.count * sizeof(*arrivals->items));
    arrivals->count = trace->pods.count;
    shuffle_items(random, arrivals->items, arrivals->count);
    return 0;
}

/* Cuts the arrivals at the demand, or draws more until it is reached. */
static int fill_demand(const struct pod_trace *trace, struct sim_random *random, uint64_t demand,
                       struct arrivals *arrivals)
{
    uint64_t wanted = 0;

    for (size_t i = 0; wanted < demand; i++) {
        if (i == arrivals->count) {
            uint32_t *added = vector_append(arrivals);

            if (added == NULL)
                return BERTH_ERROR_MEMORY;
            *added = trace->pods.items[sim_random_below(random, trace->pods.count)];
        }
        wanted += pod_trace_demand(&trace->kinds.items[arrivals->items[i]]);
        if (wanted >= demand)
            arrivals->count = i + 1;
    }
    return 0;
}

static int order_nodes(const struct pod_trace *trace, struct sim_random *random,
                       struct arrivals *arrivals)
{
    arrivals->order = calloc(trace->nodes.count, sizeof(*arrivals->order));
    if (arrivals->order == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < trace->nodes.count; i++)
        arrivals->order[i] = (uint32_t)i;
    shuffle_items(random, arrivals->order, trace->nodes.count);
    return 0;
}

int arrivals_draw(const struct pod_trace *trace, uint64_t seed, uint64_t demand,
                  struct arrivals *ret_arrivals, struct berth_error *error)
{
    struct sim_random random = {seed};
    struct arrivals arrivals = {0};
    int code = shuffle_pods(trace, &random, &arrivals);

    if (code == 0)
        code = fill_demand(trace, &random, demand, &arrivals);
    if (code == 0)
        code = order_nodes(trace, &random, &arrivals);
    if (code < 0) {
        arrivals_finish(&arrivals);
        return error_set_memory(error);
    }
    *ret_arrivals = arrivals;
    return 0;
}

void arrivals_finish(struct arrivals *arrivals)
{
    free(arrivals->order);
    vector_finish(arrivals);
    *arrivals = (struct arrivals){0};
}
