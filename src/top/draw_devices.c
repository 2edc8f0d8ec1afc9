/* SPDX-License-Identifier: Apache-2.0
 *
 * The pane of devices: one line for each device, and one for each further lease on it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "top/draw_internal.h"

static const struct pane_column columns[] = {
    {{.heading = "DEVICE", .priority = TABLE_ALWAYS}, VIEW_COLUMN_DEVICE},
    {{.heading = "MODEL", .priority = 40, .min = 8, .hide_unknown = true}, VIEW_COLUMN_MODEL},
    {{.heading = "LOAD", .priority = 90, .right = true, .hide_unknown = true}, VIEW_COLUMN_LOAD},
    {{.heading = "HISTORY", .priority = 58, .hide_unknown = true}, VIEW_COLUMN_NONE},
    {{.heading = "MEMORY", .priority = 84, .right = true, .hide_unknown = true},
     VIEW_COLUMN_MEMORY},
    {{.heading = "TEMP", .priority = 60, .right = true, .hide_unknown = true},
     VIEW_COLUMN_TEMPERATURE},
    {{.heading = "POWER", .priority = 55, .right = true, .hide_unknown = true}, VIEW_COLUMN_POWER},
    {{.heading = "STATE", .priority = TABLE_ALWAYS}, VIEW_COLUMN_STATE},
    {{.heading = "LEASE", .priority = 62, .right = true, .hide_unknown = true}, VIEW_COLUMN_LEASE},
    {{.heading = "USER", .priority = 92, .min = 5, .hide_unknown = true}, VIEW_COLUMN_USER},
    {{.heading = "HELD", .priority = 70, .right = true, .hide_unknown = true}, VIEW_COLUMN_HELD},
    {{.heading = "LEFT", .priority = 72, .right = true, .hide_unknown = true}, VIEW_COLUMN_LEFT},
    {{.heading = "SHARE", .priority = 45, .hide_unknown = true}, VIEW_COLUMN_NONE},
    {{.heading = "JOB", .priority = 86, .min = 12, .hide_unknown = true}, VIEW_COLUMN_JOB},
};

/* Wide enough for "62.6/80 GiB". */
enum { MEMORY_WORDS = 12 };

/* The widths of the meters in columns. */
struct meters {
    size_t load;
    size_t history;
    size_t memory;
};

static struct meters meter_widths(size_t width)
{
    static const struct {
        size_t from;
        struct meters meters;
    } rows[] = {
        {200, {16, 40, 16}}, {165, {10, 20, 10}}, {130, {10, 16, 0}},
        {110, {8, 12, 0}},   {92, {5, 8, 0}},     {76, {5, 0, 0}},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (width >= rows[i].from)
            return rows[i].meters;
    }
    return (struct meters){0};
}

/* Adds a cell with the text, or an unknown one if it is empty. Finishes the text. */
static void add_text(struct table *table, enum style style, struct text *text)
{
    table->failed |= text_failed(text);
    table_cell_styled(table, style, text->length == 0 ? NULL : text_string(text));
    text_finish(text);
}

static void add_load(struct table *table, const struct device *device, size_t room)
{
    const struct figure *load = &device->load.utilization;
    struct text cell = {0};
    char words[32];

    if (load->known && load->value >= 0) {
        snprintf(words, sizeof(words), "%3lld%%", (long long)(load->value + 5) / 10);
        draw_append_bar(&cell, room, optional_number_of((uint64_t)load->value), words);
    }
    add_text(table, device->old ? STYLE_FAINT : STYLE_GOOD, &cell);
}

static void add_history(struct table *table, const struct top_picture *picture, size_t slot,
                        size_t room, bool unicode)
{
    struct text cell = {0};

    if (room > 0 && picture->view->snapshot.slots.items[slot].device->load.utilization.known)
        draw_append_spark(&cell, picture, slot, room, unicode);
    add_text(table, STYLE_GOOD, &cell);
}

static void add_memory(struct table *table, const struct device *device,
                       const struct pane_facts *facts, size_t room)
{
    struct optional_number used = view_memory_used(device);
    struct optional_number thousandths = {.known = used.known};
    struct text words = {0};
    struct text cell = {0};

    if (device->memory_total.known) {
        view_append_memory(&cell, device, facts->memory);
        /* Align the bars. */
        if (room > 0 && cell.length < MEMORY_WORDS)
            text_append_repeated(&words, ' ', MEMORY_WORDS - cell.length);
        text_append(&words, text_string(&cell));
        text_clear(&cell);
        if (used.known && device->memory_total.value > 0)
            thousandths.value =
                (uint64_t)((double)used.value / (double)device->memory_total.value * 1000);
        draw_append_bar(&cell, room, thousandths, text_string(&words));
    }
    cell.failed |= words.failed;
    text_finish(&words);
    add_text(table, STYLE_PLAIN, &cell);
}

/* Adds a figure, which counts thousandths of a unit, in whole units. */
static void add_figure(struct table *table, const struct figure *figure, const char *unit)
{
    if (figure->known)
        table_cell_format(table, "%lld%s", (long long)(figure->value + 500) / 1000, unit);
    else
        table_cell(table, NULL);
}

static void add_state(struct table *table, const struct slot_info *slot,
                      const struct lease_info *lease)
{
    if (slot->device->partitioned)
        table_cell_styled(table, STYLE_FAINT, "partitioned");
    else if (lease != NULL && lease->preparing)
        table_cell(table, "preparing");
    else if (slot->state == SLOT_STATE_SHARED && slot->sharing != SHARING_EXCLUSIVE)
        table_cell(table, choice_name(sharing_names, (int)slot->sharing));
    else
        table_cell_styled(table, view_state_style(slot->state),
                          choice_name(slot_state_names, (int)slot->state));
}

/* Appends "bob: python x.py (pid 77)". */
static void append_process(struct text *out, const struct device_process *process,
                           struct user_names *users)
{
    const char *user = user_names_find_optional(users, process->uid);

    text_append_format(out, "%s: %s (pid %" PRIu64 ")", user == NULL ? "unknown user" : user,
                       process->command == NULL ? "unknown command" : process->command,
                       process->pid);
}

static void append_squatters(struct text *out, const struct top_picture *picture,
                             const struct slot_info *slot)
{
    const struct device_process *process;
    size_t count = 0;

    vector_for_each (process, &slot->device->processes) {
        if (!process->squats)
            continue;
        if (count++ == 0)
            append_process(out, process, picture->users);
    }
    if (count > 1)
        text_append_format(out, " and %zu more", count - 1);
    if (count > 0 && slot->state != SLOT_STATE_SQUATTED)
        text_append(out, ", without a lease");
}

static void append_lingering(struct text *out, const struct top_picture *picture,
                             const struct slot_info *slot)
{
    const struct device_process *process;

    vector_for_each (process, &slot->device->processes) {
        if (!view_is_leftover(picture->view, slot, process))
            continue;
        append_process(out, process, picture->users);
        text_append(out, " still runs after its lease");
        return;
    }
}

/* Appends "fan is loud (drained by root 2h5m ago)". */
static void append_drain(struct text *out, const struct top_picture *picture,
                         const struct slot_info *slot, bool leased)
{
    const char *user = user_names_find_optional(picture->users, slot->reason_uid);

    if (slot->reason != NULL)
        text_append_format(out, "%s (", slot->reason);
    text_append(out, leased ? "will be drained" : "drained");
    if (slot->reason_time != 0)
        text_append_format(out, " by %s %s ago", user == NULL ? "the pool" : user,
                           view_format_duration(slot->reason_time, picture->now).text);
    if (slot->reason != NULL)
        text_append_char(out, ')');
}

void draw_append_device_note(struct text *out, const struct top_picture *picture,
                             const struct slot_info *slot, bool leased)
{
    if (view_is_squatted(slot))
        append_squatters(out, picture, slot);
    else if (view_is_drained(slot))
        append_drain(out, picture, slot, leased);
    else if (!view_append_hidden_use(out, slot) && view_device_note(slot) != NULL)
        text_append(out, view_device_note(slot));
    else
        append_lingering(out, picture, slot);
}

/* Appends the device's note if this is the device's first row and has a lease, or none, as `leased`
 * says. */
static void append_device_note(struct text *out, const struct top_picture *picture,
                               const struct top_row *row, bool leased)
{
    if (!row->continuation && leased == (row->lease != TOP_NOTHING))
        draw_append_device_note(out, picture, &picture->view->snapshot.slots.items[row->slot],
                                leased);
}

static void append_note(struct text *out, const struct top_picture *picture,
                        const struct top_row *row)
{
    append_device_note(out, picture, row, false);
}

static void add_holder(struct table *table, const struct top_picture *picture,
                       const struct top_row *row, const struct lease_info *lease,
                       const struct pane_facts *facts)
{
    struct text note = {0};

    append_device_note(&note, picture, row, true);
    table->failed |= text_failed(&note);
    draw_add_lease_id(table, lease, facts);
    draw_add_user(table, lease, picture->users, facts);
    draw_add_held(table, lease, picture->now, facts);
    draw_add_left(table, lease, picture->now, facts);
    draw_add_share(table, lease, facts);
    draw_add_job(table, lease, note.length > 0 ? text_string(&note) : NULL, facts);
    text_finish(&note);
}

static void add_row(struct table *table, const struct top_picture *picture,
                    const struct top_row *row, const struct pane_facts *facts)
{
    const struct pool_snapshot *snapshot = &picture->view->snapshot;
    const struct slot_info *slot = &snapshot->slots.items[row->slot];
    const struct lease_info *lease =
        row->lease == TOP_NOTHING ? NULL : &snapshot->leases.items[row->lease];
    struct meters meters = meter_widths(facts->width);

    if (row->continuation) {
        table_cell_styled(table, STYLE_FAINT, facts->unicode ? "  └" : "  +");
        for (int i = 0; i < 7; i++)
            table_cell(table, "");
    } else {
        table_cell_styled(table, STYLE_STRONG, device_id_format(slot->device->id).text);
        table_cell(table, view_device_model(slot->device));
        add_load(table, slot->device, meters.load);
        add_history(table, picture, row->slot, meters.history, facts->unicode);
        add_memory(table, slot->device, facts, meters.memory);
        add_figure(table, &slot->device->load.temperature, facts->unicode ? "°C" : "C");
        add_figure(table, &slot->device->load.power, "W");
        add_state(table, slot, lease);
    }
    add_holder(table, picture, row, lease, facts);
}

const struct pane_kind pane_devices = {
    .title = "Devices",
    .nothing = "no devices",
    .columns = columns,
    .column_count = COUNT(columns),
    .add = add_row,
    .append_note = append_note,
    .note_after = "STATE",
};
