/* SPDX-License-Identifier: Apache-2.0
 *
 * The utilization of each device in the last steps of time. Memory is bounded. Pure. A history
 * whose other members are zero is empty. Not thread-safe.
 */
#ifndef VIEW_LOAD_HISTORY_H
#define VIEW_LOAD_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "view/pool_view.h"

#define LOAD_HISTORY_UNKNOWN (-1)

struct load_series {
    struct device_id id;
    int64_t newest;  /* the last step that may have a value */
    int16_t *values; /* thousandths, or LOAD_HISTORY_UNKNOWN; by step modulo length */
};

struct load_history {
    size_t length;    /* number of steps that are kept; set by the caller */
    int64_t interval; /* the length of a step, nanoseconds; set by the caller */
    int64_t step;     /* the newest step of load_history_add() */
    VECTOR_OF(struct load_series);
};

/* Returns the step of a time; the first step for a negative time. */
int64_t load_history_step(const struct load_history *history, int64_t time);

/* Stores the utilization of the devices of a view at a step. Steps never go back; the same step
 * again replaces its values. A single missing step repeats the value before it; more are unknown.
 * Drops devices that have been gone for a whole length. Fails with BERTH_ERROR_MEMORY. */
int load_history_add(struct load_history *history, int64_t step, const struct pool_view *view);

/* Stores the utilization of the devices of a view at the steps of the samples. The highest sample
 * of a step counts, so that peaks stay visible; steps without samples are unknown. Devices without
 * samples are not kept. Drops devices that are gone. If memory runs out, a new device is not
 * kept. */
void load_history_add_samples(struct load_history *history, const struct pool_view *view);

/* Finds the values of a device; NULL: there are none. `hint` is the index to try first, such as the
 * slot. Valid until a view is added. */
const struct load_series *load_history_find(const struct load_history *history, struct device_id id,
                                            size_t hint);

/* Returns the utilization at a step, in thousandths, or LOAD_HISTORY_UNKNOWN. `series` may be
 * NULL. */
int load_history_value(const struct load_history *history, const struct load_series *series,
                       int64_t step);

/* Frees the values. The history is empty then, with the same length and interval. */
void load_history_finish(struct load_history *history);

#endif
