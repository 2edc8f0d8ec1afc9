/* SPDX-License-Identifier: Apache-2.0 */
#include "view/load_history.h"

#include <berth/error.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int64_t load_history_step(const struct load_history *history, int64_t time)
{
    return time < 0 ? 0 : time / history->interval;
}

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

static int16_t *value_at(const struct load_history *history, const struct load_series *series,
                         int64_t step)
{
    return &series->values[(size_t)step % history->length];
}

/* Advances a series to a step. The values of the new steps are still unknown. */
static void advance_series(const struct load_history *history, struct load_series *series,
                           int64_t step)
{
    int64_t length = (int64_t)history->length;
    int64_t last = step - series->newest > length ? step - length : series->newest;

    for (int64_t i = last + 1; i <= step; i++)
        *value_at(history, series, i) = LOAD_HISTORY_UNKNOWN;
    if (step > series->newest)
        series->newest = step;
}

/* Returns the series of a device, which may be new, advanced to the step. Returns NULL when there
 * is no memory. */
static struct load_series *reach_step(struct load_history *history, struct device_id id,
                                      size_t hint, int64_t step)
{
    size_t place = find_series(history, id, hint);
    struct load_series *series;
    int16_t *values;

    if (place < history->count) {
        advance_series(history, &history->items[place], step);
        return &history->items[place];
    }
    values = calloc(history->length, sizeof(*values));
    series = values == NULL ? NULL : vector_append(history);
    if (series == NULL) {
        free(values);
        return NULL;
    }
    *series = (struct load_series){.id = id, .newest = step, .values = values};
    for (size_t i = 0; i < history->length; i++)
        values[i] = LOAD_HISTORY_UNKNOWN;
    return series;
}

/* Repeats the values of a step in the next one. */
static void repeat_step(struct load_history *history, int64_t step)
{
    struct load_series *series;

    vector_for_each (series, history) {
        if (series->newest != step)
            continue;
        advance_series(history, series, step + 1);
        *value_at(history, series, step + 1) = *value_at(history, series, step);
    }
}

static int16_t device_load(const struct device *device)
{
    const struct figure *figure = &device->load.utilization;

    if (!figure->known || device->old || figure->value < 0)
        return LOAD_HISTORY_UNKNOWN;
    return (int16_t)(figure->value > 1000 ? 1000 : figure->value);
}

/* Removes a series. The others keep their order. */
static void remove_series(struct load_history *history, size_t place)
{
    struct load_series *series = &history->items[place];

    free(series->values);
    history->count--;
    memmove(series, series + 1, (history->count - place) * sizeof(*series));
}

static bool has_device(const struct pool_view *view, struct device_id id)
{
    const struct slot_info *slot;

    vector_for_each (slot, &view->snapshot.slots) {
        if (device_id_equals(slot->device->id, id))
            return true;
    }
    return false;
}

int load_history_add(struct load_history *history, int64_t step, const struct pool_view *view)
{
    if (step - history->step == 2)
        repeat_step(history, history->step);
    if (step > history->step)
        history->step = step;
    for (size_t i = 0; i < view->snapshot.slots.count; i++) {
        const struct device *device = view->snapshot.slots.items[i].device;
        struct load_series *series = reach_step(history, device->id, i, history->step);

        if (series == NULL)
            return BERTH_ERROR_MEMORY;
        *value_at(history, series, history->step) = device_load(device);
    }
    for (size_t i = history->count; i-- > 0;) {
        if (step - history->items[i].newest >= (int64_t)history->length)
            remove_series(history, i);
    }
    return 0;
}

void load_history_add_samples(struct load_history *history, const struct pool_view *view)
{
    for (size_t i = history->count; history->count > view->snapshot.slots.count && i-- > 0;) {
        if (!has_device(view, history->items[i].id))
            remove_series(history, i);
    }
    for (size_t i = 0; i < view->snapshot.slots.count; i++) {
        const struct device *device = view->snapshot.slots.items[i].device;
        int64_t time = device->load.utilization.sampled_at;
        int16_t load = device_load(device);
        struct load_series *series;
        int64_t step;
        int16_t *value;

        /* The load in an inventory file is not a sample. */
        if (load == LOAD_HISTORY_UNKNOWN || time <= 0)
            continue;
        step = load_history_step(history, time);
        series = reach_step(history, device->id, i, step);
        if (series == NULL || series->newest - step >= (int64_t)history->length)
            continue;
        value = value_at(history, series, step);
        if (load > *value)
            *value = load;
    }
}

const struct load_series *load_history_find(const struct load_history *history, struct device_id id,
                                            size_t hint)
{
    size_t place = find_series(history, id, hint);

    return place < history->count ? &history->items[place] : NULL;
}

int load_history_value(const struct load_history *history, const struct load_series *series,
                       int64_t step)
{
    if (series == NULL || step < 0 || step > series->newest ||
        series->newest - step >= (int64_t)history->length)
        return LOAD_HISTORY_UNKNOWN;
    return *value_at(history, series, step);
}

void load_history_finish(struct load_history *history)
{
    struct load_series *series;

    vector_for_each (series, history)
        free(series->values);
    vector_finish(history);
    history->step = 0;
}
