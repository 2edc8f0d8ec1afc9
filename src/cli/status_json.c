/* SPDX-License-Identifier: Apache-2.0 */
#include "base/choice.h"
#include "base/quantity.h"
#include "cli/devices_output.h"
#include "cli/status_output.h"

static void write_unsigned(struct json *json, const char *key, uint64_t number)
{
    json_key(json, key);
    json_unsigned(json, number);
}

static void write_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

static void write_time(struct json *json, const char *key, struct optional_number time)
{
    json_string_member(json, key,
                       time.known ? quantity_format_time(status_time(time.value)).text : NULL);
}

static void write_pool(struct json *json, const struct status_picture *picture)
{
    const struct wire_message *about = &picture->view->about;
    const struct wire_message *look = &picture->view->look;

    json_object_begin(json);
    write_unsigned(json, "capacity", look->capacity);
    write_unsigned(json, "pending", look->pending);
    json_string_member(json, "socket",
                       about->socket != NULL ? about->socket : picture->address->socket);
    json_string_member(json, "inventory", about->inventory);
    json_string_member(json, "time", quantity_format_time(look->time).text);
    json_object_end(json);
}

/* null, where it is not known. */
static void write_start(struct json *json, int64_t started)
{
    json_string_member(json, "since", started == 0 ? NULL : quantity_format_time(started).text);
}

static void write_process(struct json *json, const struct device_process *process,
                          struct user_names *users)
{
    json_object_begin(json);
    write_unsigned(json, "pid", process->pid);
    json_string_member(json, "user", user_names_find_known(users, process->uid));
    json_number_member(json, "uid", process->uid.known, process->uid.value);
    json_string_member(json, "command", process->command);
    json_string_member(json, "container", process->container);
    write_start(json, process->started);
    json_object_end(json);
}

/* Those that squat, or else those that linger. */
static void write_processes(struct json *json, const char *key,
                            const struct status_picture *picture, const struct wire_slot *slot,
                            bool squatters)
{
    const struct device_process *process;

    json_key(json, key);
    json_array_begin(json);
    vector_for_each (process, &slot->device->processes) {
        if (squatters ? process->squats : status_lingers(picture->view, slot, process))
            write_process(json, process, picture->users);
    }
    json_array_end(json);
}

static void write_drain(struct json *json, const struct status_picture *picture,
                        const struct wire_slot *slot)
{
    json_key(json, "drain");
    if (!status_is_drained(slot)) {
        json_null(json);
        return;
    }
    json_object_begin(json);
    json_string_member(json, "reason", slot->reason);
    json_string_member(json, "user", user_names_find_known(picture->users, slot->reason_uid));
    write_start(json, slot->reason_time);
    json_object_end(json);
}

static void write_device(struct json *json, const struct status_picture *picture, size_t slot,
                         size_t *use)
{
    const struct pool_view *view = picture->view;
    const struct wire_slot *item = &view->look.slots.items[slot];
    size_t last = SIZE_MAX;
    bool leased = *use < view->uses.count && view->uses.items[*use].slot == slot;

    json_object_begin(json);
    devices_write_members(json, item->device, optional_number_of(slot), true, picture->users);
    write_bool(json, "leased", leased);
    json_string_member(json, "sharing",
                       leased ? choice_name(sharing_names, (int)item->sharing) : NULL);
    json_string_member(json, "state", choice_name(wire_state_names, (int)item->state));
    json_key(json, "leases");
    json_array_begin(json);
    for (; *use < view->uses.count && view->uses.items[*use].slot == slot; (*use)++) {
        size_t lease = view->uses.items[*use].lease;

        /* Replicas of one lease may share a device. */
        if (lease != last)
            json_unsigned(json, view->look.leases.items[lease].id);
        last = lease;
    }
    json_array_end(json);
    write_processes(json, "squatters", picture, item, true);
    write_processes(json, "lingering", picture, item, false);
    write_drain(json, picture, item);
    json_object_end(json);
}

/* Nanoseconds as seconds; null where they are not known. */
static void write_seconds(struct json *json, const char *key, struct optional_number duration)
{
    json_key(json, key);
    if (duration.known)
        json_decimal(json, status_time(duration.value) / (DURATION_SECOND / 1000), 3);
    else
        json_null(json);
}

static void write_lease_devices(struct json *json, const struct wire_lease *lease)
{
    const struct device_id *id;

    json_key(json, "devices");
    json_array_begin(json);
    vector_for_each (id, &lease->devices) {
        json_object_begin(json);
        json_string_member(json, "id", device_id_format(*id).text);
        json_key(json, "share");
        json_decimal(json, lease->sharing == SHARING_EXCLUSIVE ? SHARE_WHOLE : lease->share,
                     SHARE_DECIMALS);
        json_number_member(json, "memory", lease->memory.known, lease->memory.value);
        json_object_end(json);
    }
    json_array_end(json);
}

/* Unsaid is normal. */
static const char *priority_name(enum priority priority)
{
    return choice_name(priority_names,
                       (int)(priority == PRIORITY_UNSAID ? PRIORITY_NORMAL : priority));
}

static void write_lease(struct json *json, const struct wire_lease *lease, struct user_names *users)
{
    json_object_begin(json);
    write_unsigned(json, "id", lease->id);
    json_string_member(json, "name", lease->name);
    json_string_member(json, "user", user_names_find(users, lease->uid));
    write_unsigned(json, "uid", lease->uid);
    json_number_member(json, "pid", lease->pid > 0, (uint64_t)lease->pid);
    json_string_member(json, "command", lease->command);
    write_lease_devices(json, lease);
    write_unsigned(json, "replicas", lease->replicas);
    json_string_member(json, "sharing", choice_name(sharing_names, (int)lease->sharing));
    json_string_member(json, "priority", priority_name(lease->priority));
    write_bool(json, "opportunistic", lease->opportunistic);
    json_string_member(json, "claimed_at", quantity_format_time(lease->since).text);
    json_string_member(json, "granted_at", quantity_format_time(lease->granted).text);
    write_time(json, "expires_at", lease->expires);
    write_seconds(json, "idle_s", lease->idle);
    write_bool(json, "idle_warned", lease->idle_warned);
    write_bool(json, "adopted", lease->adopted);
    write_bool(json, "preparing", lease->preparing);
    write_bool(json, "draining", lease->draining);
    json_string_member(json, "ending", lease->end != 0 ? wire_end_describe(lease->end) : NULL);
    write_time(json, "force_at", lease->force_at);
    json_number_member(json, "parent", lease->parent != 0, lease->parent);
    json_object_end(json);
}

static void write_claim(struct json *json, const struct wire_claim *claim, struct user_names *users)
{
    json_object_begin(json);
    write_unsigned(json, "id", claim->id);
    write_unsigned(json, "position", claim->position);
    json_string_member(json, "name", claim->name);
    json_string_member(json, "user", user_names_find(users, claim->uid));
    write_unsigned(json, "uid", claim->uid);
    json_number_member(json, "pid", claim->pid > 0, (uint64_t)claim->pid);
    json_string_member(json, "command", claim->command);
    json_string_member(json, "request", claim->request);
    json_string_member(json, "priority", priority_name(claim->priority));
    write_bool(json, "opportunistic", claim->opportunistic);
    json_string_member(json, "since", quantity_format_time(claim->since).text);
    json_string_member(json, "why", claim->why);
    write_seconds(json, "estimate_s", claim->estimate);
    json_number_member(json, "parent", claim->parent != 0, claim->parent);
    json_object_end(json);
}

void status_write_json(const struct status_picture *picture, enum json_layout layout,
                       struct text *out)
{
    const struct wire_message *look = &picture->view->look;
    const struct wire_lease *lease;
    const struct wire_claim *claim;
    const struct problem *problem;
    size_t use = 0;
    struct json json;

    json_start(&json, out, layout);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.status/1");
    json_key(&json, "pool");
    write_pool(&json, picture);
    json_key(&json, "devices");
    json_array_begin(&json);
    for (size_t slot = 0; slot < look->slots.count; slot++)
        write_device(&json, picture, slot, &use);
    json_array_end(&json);
    json_key(&json, "leases");
    json_array_begin(&json);
    vector_for_each (lease, &look->leases)
        write_lease(&json, lease, picture->users);
    json_array_end(&json);
    json_key(&json, "queue");
    json_array_begin(&json);
    vector_for_each (claim, &look->claims)
        write_claim(&json, claim, picture->users);
    json_array_end(&json);
    json_key(&json, "problems");
    json_array_begin(&json);
    vector_for_each (problem, &look->problems) {
        json_object_begin(&json);
        json_string_member(&json, "backend", problem->backend);
        json_string_member(&json, "message", problem->message);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_finish(&json);
}
