/* SPDX-License-Identifier: Apache-2.0
 *
 * How busy each device has been, in equal steps of time, as far back as a screen can show. Bounded,
 * however long it goes on. Zeroed memory is an empty history. Not for use by two threads at once.
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
    int64_t seen;                        /* the step in which the device was last there */
    int16_t values[LOAD_HISTORY_LENGTH]; /* thousandths, or LOAD_HISTORY_UNKNOWN; by step modulo
                                            length */
};

struct load_history {
    int64_t step; /* the newest */
    VECTOR_OF(struct load_series);
};

/* Takes down how busy the devices of a view are at a step, which is never before the last one; the
 * same step again replaces what was said of it. A single step that was left out counts as the one
 * before it; more are unknown. Devices that have been gone for the whole length are forgotten.
 * Fails with BERTH_ERROR_MEMORY. */
int top_history_add(struct load_history *history, int64_t step, const struct pool_view *view);

/* What is known of a device; NULL: nothing. It is looked for at place `hint` first, its slot say.
 * Good until the next note. */
const struct load_series *top_history_find(const struct load_history *history, struct device_id id,
                                           size_t hint);

/* How busy the device was, `back` steps before the newest; LOAD_HISTORY_UNKNOWN also for NULL. */
int top_history_value(const struct load_history *history, const struct load_series *series,
                      size_t back);

void top_history_finish(struct load_history *history);

#endif
