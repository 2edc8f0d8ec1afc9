/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of a report's keys; a separate file, for programs that need only the names.
 */
#include "history/history.h"

const struct choice history_by_names[] = {
    {"user", HISTORY_BY_USER},
    {"name", HISTORY_BY_NAME},
    {"device", HISTORY_BY_DEVICE},
    {0},
};
