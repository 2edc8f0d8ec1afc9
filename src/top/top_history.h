/* SPDX-License-Identifier: Apache-2.0
 *
 * The utilization of each device in equal steps of time, as far back as a screen can show. Memory
 * is bounded. Zeroed memory is an empty history. Not thread-safe.
 */
#ifndef TOP_TOP_HISTORY_H
#define TOP_TOP_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "view/pool_view.h"

#define LOAD_HISTORY_LENGTH  600
#define LOAD_HISTORY_UNKNOWN (-1)

struct load_series {
    struct device_id id;
    int64_t seen;                        /* the last step with this device */
    int16_t values[LOAD_HISTORY_LENGTH]; /* thousandths, or LOAD_HISTORY_UNKNOWN; by step modulo
                                            length */
};

struct load_history {
    int64_t step; /* the newest step */
    VECTOR_OF(struct load_series);
};

/* Stores the utilization of the devices of a view at a step. Steps never go back; the same step
 * again replaces its values. A single missing step repeats the value before it; more are unknown.
 * Drops devices that have been gone for LOAD_HISTORY_LENGTH steps. Fails with
 * BERTH_ERROR_MEMORY. */
int top_history_add(struct load_history *history, int64_t step, const struct pool_view *view);

/* Finds the values of a device; NULL: there are none. `hint` is the index to try first, such as the
 * slot. Valid until the next top_history_add(). */
const struct load_series *top_history_find(const struct load_history *history, struct device_id id,
                                           size_t hint);

/* Returns the utilization `back` steps before the newest, in thousandths, or LOAD_HISTORY_UNKNOWN.
 * `series` may be NULL. */
int top_history_value(const struct load_history *history, const struct load_series *series,
                      size_t back);

void top_history_finish(struct load_history *history);

#endif
