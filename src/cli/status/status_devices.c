/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of devices and their leases: one line for each device, and one for each further lease
 * on it. A lease of several devices is named in each line, so that every line can be read alone.
 */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "base/text/table.h"
#include "cli/status/status_output.h"

/* Columns of any length come last. If the terminal is too narrow, columns with a low priority are
 * dropped first. */
static const struct table_column columns[] = {
    {.heading = "DEVICE", .priority = TABLE_ALWAYS},
    {.heading = "MODEL", .priority = 74, .min = 10, .hide_unknown = true},
    {.heading = "MEMORY", .priority = 70, .right = true, .hide_unknown = true},
    {.heading = "UTIL", .priority = 72, .right = true, .hide_unknown = true},
    {.heading = "STATE", .priority = TABLE_ALWAYS},
    {.heading = "LEASE", .priority = 92, .right = true, .hide_unknown = true},
    {.heading = "USER", .priority = 95, .min = 8, .hide_unknown = true},
    {.heading = "HELD", .priority = 80, .right = true, .hide_unknown = true},
    {.heading = "LEFT", .priority = 85, .right = true, .hide_unknown = true},
    {.heading = "SHARE", .priority = 76, .hide_unknown = true},
    {.heading = "REPLICA", .priority = 50, .right = true, .hide_unknown = true},
    {.heading = "NOTE", .priority = 88, .min = 12, .hide_unknown = true},
    {.heading = "JOB", .priority = 90, .min = 10, .hide_unknown = true},
};

/* The columns that have a value in some row. In all other columns each cell is unknown, which hides
 * the column. */
struct device_columns {
    bool model;
    bool memory;
    bool used;
    bool utilization;
    bool holder;
    bool share;
    bool replica;
    bool left;
    bool note;
};

static bool same_name(const char *one, const char *other)
{
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* Returns whether add_note() has a note for the lease. */
static bool has_note(const struct lease_info *lease)
{
    return lease->end != 0 || lease->draining || lease->opportunistic || lease->adopted ||
           view_is_idle(lease);
}

static struct device_columns find_columns(const struct pool_view *view)
{
    struct device_columns shown = {0};
    const struct slot_info *first = view->snapshot.slots.items;
    const struct slot_info *slot;
    const struct pool_use *use;

    vector_for_each (slot, &view->snapshot.slots) {
        shown.model |= !same_name(slot->device->name, first->device->name);
        shown.memory |= slot->device->memory_total.known;
        shown.used |= view_memory_used(slot->device).known;
        shown.utilization |= slot->device->load.utilization.known;
        shown.note |= view_device_note(slot) != NULL;
    }
    vector_for_each (use, &view->uses) {
        const struct lease_info *lease = &view->snapshot.leases.items[use->lease];

        shown.holder = true;
        shown.share |= lease->sharing != SHARING_EXCLUSIVE;
        shown.replica |= lease->replicas > 1;
        shown.left |= lease->expires.known;
        shown.note |= has_note(lease);
    }
    return shown;
}

/* Adds an empty cell if the column is shown, or an unknown cell, which keeps the column hidden. */
static void add_empty(struct table *table, bool shown)
{
    table_cell(table, shown ? "" : NULL);
}

static void add_utilization(struct table *table, const struct figure *figure)
{
    if (figure->known)
        table_cell_format(table, "%lld%%", (long long)(figure->value + 5) / 10);
    else
        table_cell(table, NULL);
}

/* Adds the state. A shared device shows how it is shared. */
static void add_state(struct table *table, const struct slot_info *slot, bool preparing)
{
    if (slot->device->partitioned)
        table_cell_styled(table, STYLE_FAINT, "partitioned");
    else if (preparing)
        table_cell(table, "preparing");
    else if (slot->state == SLOT_STATE_SHARED && slot->sharing != SHARING_EXCLUSIVE)
        table_cell(table, choice_name(sharing_names, (int)slot->sharing));
    else
        table_cell_styled(table, view_state_style(slot->state),
                          choice_name(slot_state_names, (int)slot->state));
}

/* Adds the columns about the device. `preparing` means that the prolog runs for its first lease. */
static void add_device(struct table *table, const struct device_columns *shown,
                       const struct slot_info *slot, bool preparing)
{
    const struct device *device = slot->device;

    table_cell_styled(table, STYLE_STRONG, device_id_format(device->id).text);
    table_cell(table, shown->model ? view_device_model(device) : NULL);
    view_add_memory_cell(table, device, shown->used);
    add_utilization(table, &device->load.utilization);
    add_state(table, slot, preparing);
}

/* Adds the columns about the device for its further leases. */
static void add_device_again(struct table *table, const struct device_columns *shown,
                             const struct slot_info *slot)
{
    table_cell_styled(table, STYLE_FAINT, device_id_format(slot->device->id).text);
    add_empty(table, shown->model);
    add_empty(table, shown->memory);
    add_empty(table, shown->utilization);
    table_cell(table, "");
}

static void add_lease_id(struct table *table, const struct lease_info *lease)
{
    if (lease->parent != 0)
        table_cell_format(table, "%llu in %llu", (unsigned long long)lease->id,
                          (unsigned long long)lease->parent);
    else
        table_cell_format(table, "%llu", (unsigned long long)lease->id);
}

/* Adds the share, and the memory that is reserved: "0.25, 8 GiB". */
static void add_share(struct table *table, bool shown, const struct lease_info *lease)
{
    struct quantity_text share = quantity_format_decimal(lease->share, SHARE_DECIMALS);

    if (!shown || lease->sharing == SHARING_EXCLUSIVE)
        add_empty(table, shown);
    else if (lease->memory.known)
        table_cell_format(table, "%s, %s", share.text,
                          quantity_format_size(lease->memory.value).text);
    else
        table_cell(table, share.text);
}

/* Adds a note such as "adopted, idle 45m". */
static void add_lease_note(struct table *table, const struct lease_info *lease)
{
    const char *kind = "";
    struct quantity_text idle = {.text = ""};
    bool is_long = lease->idle_warned && view_is_idle(lease);
    char note[64];

    if (lease->opportunistic)
        kind = lease->adopted ? "adopted, opportunistic" : "opportunistic";
    else if (lease->adopted)
        kind = "adopted";
    if (view_is_idle(lease))
        idle = view_format_duration(0, view_time_from_wire(lease->idle.value));
    snprintf(note, sizeof(note), "%s%s%s%s", kind,
             *kind != '\0' && idle.text[0] != '\0' ? ", " : "", idle.text[0] != '\0' ? "idle " : "",
             idle.text);
    table_cell_styled(table, is_long ? STYLE_WARNING : STYLE_FAINT, note);
}

static void add_note(struct table *table, bool shown, const struct lease_info *lease,
                     const struct slot_info *slot)
{
    if (lease->end != 0)
        table_cell_format(table, "ending: %s", pool_info_describe_end(lease->end));
    else if (lease->draining)
        table_cell_styled(table, STYLE_WARNING, "ended, processes still run");
    else if (has_note(lease))
        add_lease_note(table, lease);
    else if (view_device_note(slot) != NULL)
        table_cell_styled(table, STYLE_WARNING, view_device_note(slot));
    else
        add_empty(table, shown);
}

static void add_replica(struct table *table, bool shown, const struct lease_info *lease,
                        uint32_t number)
{
    size_t count = lease->devices.count;

    if (shown && lease->replicas > 1 && count >= lease->replicas && count % lease->replicas == 0)
        table_cell_format(table, "%zu/%u", number / (count / lease->replicas) + 1, lease->replicas);
    else
        add_empty(table, shown);
}

static void add_left(struct table *table, bool shown, const struct lease_info *lease, int64_t now)
{
    int64_t left;

    if (!lease->expires.known) {
        add_empty(table, shown);
        return;
    }
    left = view_time_between(now, view_time_from_wire(lease->expires.value));
    table_cell_styled(table, left < 5 * DURATION_MINUTE ? STYLE_WARNING : STYLE_PLAIN,
                      view_format_duration(0, left).text);
}

static void add_holder(struct table *table, const struct device_columns *shown,
                       const struct status_picture *picture, const struct pool_use *use)
{
    const struct lease_info *lease = &picture->view->snapshot.leases.items[use->lease];
    const char *job = lease->name != NULL ? lease->name : lease->command;
    int64_t now = picture->now;

    add_lease_id(table, lease);
    table_cell(table, user_names_find(picture->users, lease->uid));
    table_cell(table, view_format_duration(lease->granted, now).text);
    add_left(table, shown->left, lease, now);
    add_share(table, shown->share, lease);
    add_replica(table, shown->replica, lease, use->number);
    add_note(table, shown->note, lease, &picture->view->snapshot.slots.items[use->slot]);
    table_cell(table, job == NULL && lease->pid == 0 ? "(reserved)" : job);
}

static void add_no_holder(struct table *table, const struct device_columns *shown,
                          const struct slot_info *slot)
{
    const char *note = view_device_note(slot);

    add_empty(table, shown->holder);
    add_empty(table, shown->holder);
    add_empty(table, shown->holder);
    add_empty(table, shown->left);
    add_empty(table, shown->share);
    add_empty(table, shown->replica);
    table_cell(table, note == NULL && shown->note ? "" : note);
    add_empty(table, shown->holder);
}

void status_write_devices(const struct status_picture *picture, struct text *out)
{
    const struct pool_view *view = picture->view;
    struct device_columns shown = find_columns(view);
    size_t use = 0;
    struct table table;

    if (view->snapshot.slots.count == 0)
        return;
    table_init(&table, columns, COUNT(columns));
    for (size_t i = 0; i < view->snapshot.slots.count; i++) {
        const struct slot_info *slot = &view->snapshot.slots.items[i];
        bool first = true;

        for (; use < view->uses.count && view->uses.items[use].slot == i; use++) {
            if (first)
                add_device(&table, &shown, slot,
                           view->snapshot.leases.items[view->uses.items[use].lease].preparing);
            else
                add_device_again(&table, &shown, slot);
            add_holder(&table, &shown, picture, &view->uses.items[use]);
            first = false;
        }
        if (first) {
            add_device(&table, &shown, slot, false);
            add_no_holder(&table, &shown, slot);
        }
    }
    if (table_print(&table, &picture->terminal, out) < 0)
        out->failed = true;
    table_finish(&table);
}
