/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pool_json.h"

#include "base/text/choice.h"
#include "base/text/quantity.h"
#include "view/device_json.h"
#include "view/reason_text.h"
#include "view/view_facts.h"

static void write_unsigned(struct json *json, const char *key, uint64_t number)
{
    json_key(json, key);
    json_unsigned(json, number);
}

static void write_about(struct json *json, const struct pool_view *view)
{
    const struct pool_about *about = &view->about;
    const struct pool_snapshot *snapshot = &view->snapshot;

    json_object_begin(json);
    write_unsigned(json, "capacity", snapshot->capacity);
    write_unsigned(json, "pending", snapshot->pending);
    json_string_member(json, "socket", about->socket);
    json_string_member(json, "inventory", about->inventory);
    json_time_member(json, "time", true, snapshot->time);
    json_object_end(json);
}

/* Writes the time, or null when it is not known. */
static void write_start(struct json *json, int64_t started)
{
    json_time_member(json, "since", started != 0, started);
}

static void write_process(struct json *json, const struct device_process *process,
                          struct user_names *users)
{
    json_object_begin(json);
    write_unsigned(json, "pid", process->pid);
    json_string_member(json, "user", user_names_find_optional(users, process->uid));
    json_number_member(json, "uid", process->uid.known, process->uid.value);
    json_string_member(json, "command", process->command);
    json_string_member(json, "container", process->container);
    write_start(json, process->started);
    json_object_end(json);
}

/* Writes the slot's squatters if `squatters`, else the processes left over from ended leases. */
static void write_processes(struct json *json, const char *key, const struct pool_view *view,
                            const struct slot_info *slot, bool squatters, struct user_names *users)
{
    const struct device_process *process;

    json_key(json, key);
    json_array_begin(json);
    vector_for_each (process, &slot->device->processes) {
        if (squatters ? process->squats : view_is_leftover(view, slot, process))
            write_process(json, process, users);
    }
    json_array_end(json);
}

static void write_drain(struct json *json, const struct slot_info *slot, struct user_names *users)
{
    json_key(json, "drain");
    if (!view_is_drained(slot)) {
        json_null(json);
        return;
    }
    json_object_begin(json);
    json_string_member(json, "reason", slot->reason);
    json_string_member(json, "user", user_names_find_optional(users, slot->reason_uid));
    write_start(json, slot->reason_time);
    json_object_end(json);
}

static void write_name_holder(struct json *json, const struct slot_info *slot,
                              struct user_names *users)
{
    json_key(json, "name_held_by");
    if (!slot->name_pid.known) {
        json_null(json);
        return;
    }
    json_object_begin(json);
    json_number_member(json, "pid", true, slot->name_pid.value);
    json_number_member(json, "uid", slot->name_uid.known, slot->name_uid.value);
    json_string_member(json, "user", user_names_find_optional(users, slot->name_uid));
    json_object_end(json);
}

static void write_device(struct json *json, const struct pool_view *view, size_t slot, size_t *use,
                         struct user_names *users)
{
    const struct slot_info *item = &view->snapshot.slots.items[slot];
    size_t last = SIZE_MAX;
    bool leased = *use < view->uses.count && view->uses.items[*use].slot == slot;

    json_object_begin(json);
    device_json_write_members(json, item->device, optional_number_of(slot), true, users);
    json_bool_member(json, "leased", leased);
    json_string_member(json, "sharing",
                       leased ? choice_name(sharing_names, (int)item->sharing) : NULL);
    json_string_member(json, "state", choice_name(slot_state_names, (int)item->state));
    json_key(json, "leases");
    json_array_begin(json);
    for (; *use < view->uses.count && view->uses.items[*use].slot == slot; (*use)++) {
        size_t lease = view->uses.items[*use].lease;

        /* Replicas of one lease may share a device. */
        if (lease != last)
            json_unsigned(json, view->snapshot.leases.items[lease].id);
        last = lease;
    }
    json_array_end(json);
    write_processes(json, "squatters", view, item, true, users);
    write_processes(json, "lingering", view, item, false, users);
    write_drain(json, item, users);
    write_name_holder(json, item, users);
    json_object_end(json);
}

/* Writes nanoseconds as seconds, or null when they are not known. */
static void write_seconds(struct json *json, const char *key, struct optional_number duration)
{
    json_key(json, key);
    if (duration.known)
        json_decimal(json, view_time_from_wire(duration.value) / (DURATION_SECOND / 1000), 3);
    else
        json_null(json);
}

static void write_lease_devices(struct json *json, const struct lease_info *lease)
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

/* Returns the priority's name; the default is normal. */
static const char *priority_name(enum priority priority)
{
    return choice_name(priority_names,
                       (int)(priority == PRIORITY_UNSAID ? PRIORITY_NORMAL : priority));
}

void pool_json_write_lease(struct json *json, const struct lease_info *lease,
                           struct user_names *users)
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
    json_bool_member(json, "opportunistic", lease->opportunistic);
    json_time_member(json, "claimed_at", true, lease->since);
    json_time_member(json, "granted_at", true, lease->granted);
    json_time_member(json, "expires_at", lease->expires.known,
                     view_time_from_wire(lease->expires.value));
    write_seconds(json, "idle_s", lease->idle);
    json_bool_member(json, "idle_warned", lease->idle_warned);
    json_bool_member(json, "adopted", lease->adopted);
    json_bool_member(json, "preparing", lease->preparing);
    json_bool_member(json, "draining", lease->draining);
    json_string_member(json, "ending", lease->end != 0 ? pool_info_describe_end(lease->end) : NULL);
    json_time_member(json, "force_at", lease->force_at.known,
                     view_time_from_wire(lease->force_at.value));
    json_number_member(json, "parent", lease->parent != 0, lease->parent);
    json_object_end(json);
}

static void write_claim(struct json *json, const struct claim_info *claim, struct user_names *users)
{
    struct text why = {0};

    if (claim->why != NULL)
        reason_text_append(&why, claim->why, users);
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
    json_bool_member(json, "opportunistic", claim->opportunistic);
    json_time_member(json, "since", true, claim->since);
    json_string_member(json, "why", claim->why == NULL ? NULL : text_string(&why));
    write_seconds(json, "estimate_s", claim->estimate);
    json_number_member(json, "parent", claim->parent != 0, claim->parent);
    json_object_end(json);
    json->text->failed |= why.failed;
    text_finish(&why);
}

void pool_json_write_devices(struct json *json, const struct pool_view *view,
                             struct user_names *users)
{
    size_t use = 0;

    json_array_begin(json);
    for (size_t slot = 0; slot < view->snapshot.slots.count; slot++)
        write_device(json, view, slot, &use, users);
    json_array_end(json);
}

static void write_leases(struct json *json, const struct pool_view *view, struct user_names *users)
{
    const struct lease_info *lease;

    json_array_begin(json);
    vector_for_each (lease, &view->snapshot.leases)
        pool_json_write_lease(json, lease, users);
    json_array_end(json);
}

void pool_json_write_queue(struct json *json, const struct pool_view *view,
                           struct user_names *users)
{
    const struct claim_info *claim;

    json_array_begin(json);
    vector_for_each (claim, &view->snapshot.claims)
        write_claim(json, claim, users);
    json_array_end(json);
}

void pool_json_write_problems(struct json *json, const struct pool_view *view)
{
    const struct problem *problem;

    json_array_begin(json);
    vector_for_each (problem, &view->snapshot.problems) {
        json_object_begin(json);
        json_string_member(json, "backend", problem->backend);
        json_string_member(json, "message", problem->message);
        json_object_end(json);
    }
    json_array_end(json);
}

void pool_json_write_members(struct json *json, const struct pool_view *view,
                             struct user_names *users)
{
    json_key(json, "pool");
    write_about(json, view);
    json_key(json, "devices");
    pool_json_write_devices(json, view, users);
    json_key(json, "leases");
    write_leases(json, view, users);
    json_key(json, "queue");
    pool_json_write_queue(json, view, users);
    json_key(json, "problems");
    pool_json_write_problems(json, view);
}

void pool_json_write(const struct pool_view *view, struct user_names *users,
                     enum json_layout layout, struct text *out)
{
    struct json json;

    json_start(&json, out, layout);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.status/1");
    pool_json_write_members(&json, view, users);
    json_object_end(&json);
    json_finish(&json);
}
