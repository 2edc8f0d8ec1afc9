/* SPDX-License-Identifier: Apache-2.0 */
#include "web/recent_loads.h"

static uint64_t step_of(int64_t time)
{
    return time < 0 ? 0 : (uint64_t)(time / RECENT_INTERVAL);
}

static struct recent_device *find_device(struct recent_loads *recent, struct device_id id)
{
    struct recent_device *device;

    vector_for_each (device, recent) {
        if (device_id_equals(device->id, id))
            return device;
    }
    return NULL;
}

static void forget_steps(struct recent_device *device, uint64_t step)
{
    uint64_t first = device->last + 1;

    if (step > device->last + RECENT_STEPS)
        first = step - RECENT_STEPS + 1;
    for (uint64_t i = first; i <= step; i++)
        device->utilization[i % RECENT_STEPS] = RECENT_UNKNOWN;
    device->last = step;
}

static struct recent_device *add_device(struct recent_loads *recent, struct device_id id,
                                        uint64_t step)
{
    struct recent_device *device = vector_append(recent);

    if (device == NULL)
        return NULL;
    device->id = id;
    device->last = step;
    for (unsigned i = 0; i < RECENT_STEPS; i++)
        device->utilization[i] = RECENT_UNKNOWN;
    return device;
}

/* Adds the sample of a device. The highest sample of a step counts, so that peaks stay visible. */
static void note_device(struct recent_loads *recent, const struct device *device)
{
    const struct figure *utilization = &device->load.utilization;
    struct recent_device *known;
    int32_t *place;
    uint64_t step;

    /* The load in an inventory file is not a sample. */
    if (!utilization->known || device->old || utilization->sampled_at <= 0)
        return;
    step = step_of(utilization->sampled_at);
    known = find_device(recent, device->id);
    if (known == NULL)
        known = add_device(recent, device->id, step);
    if (known == NULL || step + RECENT_STEPS <= known->last)
        return;
    if (step > known->last)
        forget_steps(known, step);
    place = &known->utilization[step % RECENT_STEPS];
    if (utilization->value > *place)
        *place = utilization->value > 1000 ? 1000 : (int32_t)utilization->value;
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

void recent_loads_add(struct recent_loads *recent, const struct pool_view *view)
{
    const struct slot_info *slot;
    size_t kept = 0;

    if (recent->count > view->snapshot.slots.count) {
        for (size_t i = 0; i < recent->count; i++) {
            if (has_device(view, recent->items[i].id))
                recent->items[kept++] = recent->items[i];
        }
        recent->count = kept;
    }
    vector_for_each (slot, &view->snapshot.slots)
        note_device(recent, slot->device);
}

/* Writes one device. `step` is the newest step to show. */
static void write_device(const struct recent_device *device, uint64_t step, struct json *json)
{
    json_object_begin(json);
    json_string_member(json, "id", device_id_format(device->id).text);
    json_key(json, "utilization");
    json_array_begin(json);
    for (uint64_t i = RECENT_STEPS; i-- > 0;) {
        int32_t value = RECENT_UNKNOWN;

        if (step >= i && step - i <= device->last && step - i + RECENT_STEPS > device->last)
            value = device->utilization[(step - i) % RECENT_STEPS];
        if (value == RECENT_UNKNOWN)
            json_null(json);
        else
            json_decimal(json, value, 3);
    }
    json_array_end(json);
    json_object_end(json);
}

void recent_loads_write(const struct recent_loads *recent, int64_t now, struct json *json)
{
    const struct recent_device *device;
    uint64_t step = step_of(now);

    json_object_begin(json);
    json_key(json, "every_s");
    json_unsigned(json, RECENT_INTERVAL / DURATION_SECOND);
    json_string_member(json, "until", quantity_format_time((int64_t)step * RECENT_INTERVAL).text);
    json_key(json, "devices");
    json_array_begin(json);
    vector_for_each (device, recent)
        write_device(device, step, json);
    json_array_end(json);
    json_object_end(json);
}

void recent_loads_finish(struct recent_loads *recent)
{
    vector_finish(recent);
}
