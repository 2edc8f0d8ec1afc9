/* SPDX-License-Identifier: Apache-2.0
 *
 * By what sums are made; a file of its own for those who only need the names.
 */
#include "history/history.h"

const struct choice history_by_names[] = {
    {"user", HISTORY_BY_USER},
    {"name", HISTORY_BY_NAME},
    {"device", HISTORY_BY_DEVICE},
    {0},
};
