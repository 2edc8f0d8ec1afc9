/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns by which devices, leases and claims can be sorted.
 */
#ifndef VIEW_COLUMNS_H
#define VIEW_COLUMNS_H

#include "base/text/choice.h"

enum view_column {
    VIEW_COLUMN_NONE, /* the pool's order */
    VIEW_COLUMN_DEVICE,
    VIEW_COLUMN_MODEL,
    VIEW_COLUMN_LOAD,
    VIEW_COLUMN_MEMORY,
    VIEW_COLUMN_TEMPERATURE,
    VIEW_COLUMN_POWER,
    VIEW_COLUMN_STATE,
    VIEW_COLUMN_LEASE,
    VIEW_COLUMN_USER,
    VIEW_COLUMN_HELD,
    VIEW_COLUMN_LEFT,
    VIEW_COLUMN_JOB,
    VIEW_COLUMN_DEVICES,
    VIEW_COLUMN_IDLE,
    VIEW_COLUMN_QUEUE,
    VIEW_COLUMN_CLAIM,
    VIEW_COLUMN_WAITING,
    VIEW_COLUMN_STARTS,
};

/* device, model, ...: all columns except VIEW_COLUMN_NONE. */
extern const struct choice view_column_names[];

#endif
