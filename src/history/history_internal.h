/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the files of this component share.
 */
#ifndef HISTORY_HISTORY_INTERNAL_H
#define HISTORY_HISTORY_INTERNAL_H

#include "history/history.h"

/* Returns the end of the time for which the lease is known to be held. */
int64_t history_lease_last(const struct history_lease *lease, int64_t now);

/* Returns the query's current time. */
int64_t history_query_now(const struct history_query *query);

#endif
