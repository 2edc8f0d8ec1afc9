/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of durations, in nanoseconds.
 */
#ifndef SIM_DURATIONS_H
#define SIM_DURATIONS_H

#include <stddef.h>
#include <stdint.h>

/* Sorts in ascending order. */
void durations_sort(int64_t *durations, size_t count);

/* Returns a percentile of `count` sorted durations, by nearest rank. `count` and `percent` must be
 * above 0. */
int64_t durations_percentile(const int64_t *sorted, size_t count, size_t percent);

#endif
