/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/durations.h"

#include <stdlib.h>

static int compare_durations(const void *one, const void *other)
{
    int64_t duration = *(const int64_t *)one;
    int64_t next = *(const int64_t *)other;

    return (duration > next) - (duration < next);
}

void durations_sort(int64_t *durations, size_t count)
{
    qsort(durations, count, sizeof(*durations), compare_durations);
}

int64_t durations_percentile(const int64_t *sorted, size_t count, size_t percent)
{
    return sorted[(count * percent + 99) / 100 - 1];
}
