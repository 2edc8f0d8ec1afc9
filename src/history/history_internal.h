/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this room do for each other.
 */
#ifndef HISTORY_HISTORY_INTERNAL_H
#define HISTORY_HISTORY_INTERNAL_H

#include "history/history.h"

/* The end of the time for which a lease is known to be held, so far. */
int64_t history_lease_last(const struct history_lease *lease, int64_t now);

/* What `now` is for this question. */
int64_t history_query_now(const struct history_query *query);

#endif
