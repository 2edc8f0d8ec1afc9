/* SPDX-License-Identifier: Apache-2.0 */
#include "web/events.h"

#include "base/text/choice.h"
#include "base/text/json.h"
#include "base/text/quantity.h"
#include "view/device_json.h"
#include "view/pool_json.h"
#include "view/view_facts.h"

static const struct choice state_names[] = {
    {"live", FOLLOWER_LIVE},
    {"silent", FOLLOWER_SILENT},
    {"gone", FOLLOWER_GONE},
    {0},
};

/* Begins an event. JSON escapes line breaks, so the data is one line. */
static void begin_event(struct json *json, const char *name, const char *schema, struct text *out)
{
    text_append(out, "event: ");
    text_append(out, name);
    text_append(out, "\ndata: ");
    json_start(json, out, JSON_COMPACT);
    json_object_begin(json);
    if (schema != NULL)
        json_string_member(json, "schema", schema);
}

static void end_event(struct json *json)
{
    json_object_end(json);
    json_finish(json);
    text_append_char(json->text, '\n');
}

/* Returns the view with the first EVENTS_CLAIMS_MAX claims of its queue. */
static struct pool_view queue_front(const struct pool_view *view)
{
    struct pool_view front = *view;

    if (front.snapshot.claims.count > EVENTS_CLAIMS_MAX)
        front.snapshot.claims.count = EVENTS_CLAIMS_MAX;
    return front;
}

/* Writes the values of one device, the oldest first. `step` is the last. */
static void write_series(struct json *json, const struct load_history *history,
                         const struct load_series *series, int64_t step)
{
    json_object_begin(json);
    json_string_member(json, "id", device_id_format(series->id).text);
    json_key(json, "utilization");
    json_array_begin(json);
    for (size_t back = history->length; back-- > 0;) {
        int value = load_history_value(history, series, step - (int64_t)back);

        if (value == LOAD_HISTORY_UNKNOWN)
            json_null(json);
        else
            json_decimal(json, value, 3);
    }
    json_array_end(json);
    json_object_end(json);
}

static void write_recent(struct json *json, const struct load_history *recent, int64_t now)
{
    int64_t step = load_history_step(recent, now);
    const struct load_series *series;

    json_object_begin(json);
    json_key(json, "every_s");
    json_unsigned(json, (uint64_t)(recent->interval / DURATION_SECOND));
    json_time_member(json, "until", true, step * recent->interval);
    json_key(json, "devices");
    json_array_begin(json);
    vector_for_each (series, recent)
        write_series(json, recent, series, step);
    json_array_end(json);
    json_object_end(json);
}

void events_write_hello(const struct pool_view *view, const struct load_history *recent,
                        enum follower_state state, struct user_names *users, struct text *out)
{
    struct pool_view front = queue_front(view);
    struct json json;

    begin_event(&json, "hello", "berth.hello/1", out);
    json_string_member(&json, "version", BERTH_VERSION);
    json_time_member(&json, "time", true, view->snapshot.time);
    pool_json_write_members(&json, &front, users);
    json_key(&json, "recent");
    write_recent(&json, recent, view->snapshot.time);
    json_string_member(&json, "state", choice_name(state_names, (int)state));
    end_event(&json);
}

static void write_device_load(struct json *json, const struct slot_info *slot, bool leased)
{
    const struct device *device = slot->device;
    const struct load *load = &device->load;
    struct optional_number used = view_memory_used(device);
    int64_t sampled_at = 0;
    bool is_sampled = load_sampled_at(load, &sampled_at);

    json_object_begin(json);
    json_string_member(json, "id", device_id_format(device->id).text);
    json_bool_member(json, "leased", leased);
    json_string_member(json, "state", choice_name(slot_state_names, (int)slot->state));
    device_json_write_figure(json, "utilization", &load->utilization, DEVICE_JSON_DECIMALS);
    json_number_member(json, "memory_used", used.known, used.value);
    json_number_member(json, "memory_total", device->memory_total.known,
                       device->memory_total.value);
    device_json_write_figure(json, "temperature_c", &load->temperature, DEVICE_JSON_DECIMALS);
    device_json_write_figure(json, "power_w", &load->power, DEVICE_JSON_DECIMALS);
    json_time_member(json, "sampled_at", is_sampled, sampled_at);
    json_string_member(json, "health", choice_name(health_names, (int)device->health));
    json_bool_member(json, "asleep", device->asleep);
    json_bool_member(json, "old", device->old);
    json_object_end(json);
}

void events_write_load(const struct pool_view *view, struct text *out)
{
    struct json json;
    size_t use = 0;

    begin_event(&json, "load", "berth.load/1", out);
    json_time_member(&json, "time", true, view->snapshot.time);
    json_key(&json, "devices");
    json_array_begin(&json);
    for (size_t slot = 0; slot < view->snapshot.slots.count; slot++) {
        bool leased = use < view->uses.count && view->uses.items[use].slot == slot;

        write_device_load(&json, &view->snapshot.slots.items[slot], leased);
        while (use < view->uses.count && view->uses.items[use].slot == slot)
            use++;
    }
    json_array_end(&json);
    end_event(&json);
}

void events_write_devices(const struct pool_view *view, struct user_names *users, struct text *out)
{
    struct json json;

    begin_event(&json, "devices", "berth.devices-event/1", out);
    json_key(&json, "devices");
    pool_json_write_devices(&json, view, users);
    json_key(&json, "problems");
    pool_json_write_problems(&json, view);
    end_event(&json);
}

static void write_lease(const char *what, const struct lease_info *lease,
                        const struct ended_lease *ended, struct user_names *users, struct text *out)
{
    struct json json;

    begin_event(&json, "lease", "berth.lease/1", out);
    json_string_member(&json, "what", what);
    json_key(&json, "lease");
    pool_json_write_lease(&json, lease, users);
    json_string_member(&json, "end",
                       ended != NULL ? choice_name(lease_end_names, (int)ended->end) : NULL);
    json_time_member(&json, "ended_at", ended != NULL, ended != NULL ? ended->time : 0);
    json_number_member(&json, "exit_code", ended != NULL && ended->exit_code.known,
                       ended != NULL ? ended->exit_code.value : 0);
    end_event(&json);
}

void events_write_lease(const char *what, const struct lease_info *lease, struct user_names *users,
                        struct text *out)
{
    write_lease(what, lease, NULL, users, out);
}

void events_write_ended(const struct ended_lease *ended, struct user_names *users, struct text *out)
{
    const char *what = "released";

    if (ended->end == LEASE_END_EXPIRED)
        what = "expired";
    else if (ended->end == LEASE_END_REVOKED || ended->end == LEASE_END_STOPPED ||
             ended->end == LEASE_END_IDLE)
        what = "revoked";
    write_lease(what, ended->lease, ended, users, out);
}

void events_write_queue(const struct pool_view *view, struct user_names *users, struct text *out)
{
    struct pool_view front = queue_front(view);
    struct json json;

    begin_event(&json, "queue", "berth.queue/1", out);
    json_number_member(&json, "pending", true, view->snapshot.pending);
    json_key(&json, "queue");
    pool_json_write_queue(&json, &front, users);
    end_event(&json);
}

void events_write_state(enum follower_state state, int64_t since, const char *reason,
                        struct text *out)
{
    struct json json;

    begin_event(&json, "state", "berth.state/1", out);
    json_string_member(&json, "state", choice_name(state_names, (int)state));
    json_time_member(&json, "since", true, since);
    json_string_member(&json, "reason", reason);
    end_event(&json);
}

void events_write_tick(int64_t now, struct text *out)
{
    struct json json;

    begin_event(&json, "tick", NULL, out);
    json_time_member(&json, "time", true, now);
    end_event(&json);
}
