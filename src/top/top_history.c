/* SPDX-License-Identifier: Apache-2.0 */
#include "top/top_history.h"

#include <berth/error.h>

/* Returns the index of a device's series; the count if there is none. */
static size_t find_series(const struct load_history *history, struct device_id id, size_t hint)
{
    if (hint < history->count && device_id_equals(history->items[hint].id, id))
        return hint;
    for (size_t i = 0; i < history->count; i++) {
        if (device_id_equals(history->items[i].id, id))
            return i;
    }
    return history->count;
}

static struct load_series *find_or_add_series(struct load_history *history, struct device_id id,
                                              size_t hint)
{
    size_t place = find_series(history, id, hint);
    struct load_series *series;

    if (place < history->count)
        return &history->items[place];
    series = vector_append(history);
    if (series == NULL)
        return NULL;
    series->id = id;
    for (size_t i = 0; i < LOAD_HISTORY_LENGTH; i++)
        series->values[i] = LOAD_HISTORY_UNKNOWN;
    return series;
}

static int16_t *value_at(struct load_series *series, int64_t step)
{
    return &series->values[step % LOAD_HISTORY_LENGTH];
}

/* Advances to a step. Its values are still unknown. */
static void advance_to_step(struct load_history *history, int64_t step)
{
    int64_t from = history->step;
    struct load_series *series;

    vector_for_each (series, history) {
        int16_t last = *value_at(series, from);
        int64_t first = step - from > LOAD_HISTORY_LENGTH ? step - LOAD_HISTORY_LENGTH : from;

        for (int64_t i = first + 1; i <= step; i++)
            *value_at(series, i) = LOAD_HISTORY_UNKNOWN;
        if (step - from == 2)
            *value_at(series, from + 1) = last;
    }
    history->step = step;
}

static void drop_gone_devices(struct load_history *history)
{
    size_t kept = 0;

    for (size_t i = 0; i < history->count; i++) {
        if (history->step - history->items[i].seen < LOAD_HISTORY_LENGTH)
            history->items[kept++] = history->items[i];
    }
    history->count = kept;
}

static int16_t device_load(const struct device *device)
{
    const struct figure *figure = &device->load.utilization;

    if (!figure->known || device->old || figure->value < 0)
        return LOAD_HISTORY_UNKNOWN;
    return (int16_t)(figure->value > 1000 ? 1000 : figure->value);
}

int top_history_add(struct load_history *history, int64_t step, const struct pool_view *view)
{
    if (step > history->step)
        advance_to_step(history, step);
    for (size_t i = 0; i < view->snapshot.slots.count; i++) {
        const struct device *device = view->snapshot.slots.items[i].device;
        struct load_series *series = find_or_add_series(history, device->id, i);

        if (series == NULL)
            return BERTH_ERROR_MEMORY;
        series->seen = history->step;
        *value_at(series, history->step) = device_load(device);
    }
    drop_gone_devices(history);
    return 0;
}

const struct load_series *top_history_find(const struct load_history *history, struct device_id id,
                                           size_t hint)
{
    size_t place = find_series(history, id, hint);

    return place < history->count ? &history->items[place] : NULL;
}

int top_history_value(const struct load_history *history, const struct load_series *series,
                      size_t back)
{
    if (series == NULL || back >= LOAD_HISTORY_LENGTH || history->step < (int64_t)back)
        return LOAD_HISTORY_UNKNOWN;
    return series->values[(history->step - (int64_t)back) % LOAD_HISTORY_LENGTH];
}

void top_history_finish(struct load_history *history)
{
    vector_finish(history);
    *history = (struct load_history){0};
}
