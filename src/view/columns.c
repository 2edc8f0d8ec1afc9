/* SPDX-License-Identifier: Apache-2.0 */
#include "view/columns.h"

#include <stddef.h>

const struct choice view_column_names[] = {
    {"device", VIEW_COLUMN_DEVICE},
    {"model", VIEW_COLUMN_MODEL},
    {"load", VIEW_COLUMN_LOAD},
    {"memory", VIEW_COLUMN_MEMORY},
    {"temperature", VIEW_COLUMN_TEMPERATURE},
    {"power", VIEW_COLUMN_POWER},
    {"state", VIEW_COLUMN_STATE},
    {"lease", VIEW_COLUMN_LEASE},
    {"user", VIEW_COLUMN_USER},
    {"held", VIEW_COLUMN_HELD},
    {"left", VIEW_COLUMN_LEFT},
    {"job", VIEW_COLUMN_JOB},
    {"devices", VIEW_COLUMN_DEVICES},
    {"idle", VIEW_COLUMN_IDLE},
    {"queue", VIEW_COLUMN_QUEUE},
    {"claim", VIEW_COLUMN_CLAIM},
    {"waiting", VIEW_COLUMN_WAITING},
    {"starts", VIEW_COLUMN_STARTS},
    {NULL, 0},
};
