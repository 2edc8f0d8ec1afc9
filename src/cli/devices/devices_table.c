/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "cli/devices/devices_output.h"
#include "view/view_facts.h"

/* If the terminal is too narrow, the columns that change least are dropped first. */
static const struct table_column columns[] = {
    {.heading = "ID", .priority = TABLE_ALWAYS},
    {.heading = "MODEL", .priority = 90, .min = 20},
    {.heading = "MEMORY", .priority = 86, .right = true, .hide_unknown = true},
    {.heading = "UTIL", .priority = 84, .right = true, .hide_unknown = true},
    {.heading = "TEMP", .priority = 50, .right = true, .hide_unknown = true},
    {.heading = "POWER", .priority = 45, .right = true, .hide_unknown = true},
    {.heading = "CLOCK", .priority = 15, .right = true, .hide_unknown = true},
    {.heading = "CAP", .priority = 40, .right = true, .hide_unknown = true},
    {.heading = "NUMA", .priority = 30, .right = true, .hide_unknown = true},
    {.heading = "PCI", .priority = 20, .hide_unknown = true},
    {.heading = "HEALTH", .priority = 88, .hide_unknown = true},
    {.heading = "NOTE", .priority = 87, .min = 24, .hide_unknown = true},
};

/* Adds a figure, rounded to whole units. `unit` is the figure's value for one unit. */
static void add_figure(struct table *table, const struct figure *figure, int64_t unit,
                       const char *suffix)
{
    if (figure->known)
        table_cell_format(
            table, "%lld%s",
            (long long)(figure->value / unit) + (figure->value % unit >= unit / 2 ? 1 : 0), suffix);
    else
        table_cell(table, NULL);
}

static void add_number(struct table *table, struct optional_number number)
{
    if (number.known)
        table_cell_format(table, "%llu", (unsigned long long)number.value);
    else
        table_cell(table, NULL);
}

/* Appends the age of the values of a device. */
static void append_age(const struct device *device, int64_t now, struct text *note)
{
    int64_t sampled_at, age;

    if (!load_sampled_at(&device->load, &sampled_at) ||
        __builtin_sub_overflow(now, sampled_at, &age) || age < DURATION_SECOND)
        text_append(note, "old values");
    else
        text_append_format(note, "values from %s ago",
                           quantity_format_duration(age - age % DURATION_SECOND).text);
}

static void append_separator(struct text *note)
{
    if (note->length > 0)
        text_append(note, ", ");
}

/* Appends the remarks about a device, the most important first. */
static void write_note(const struct device *device, int64_t now, struct text *note)
{
    if (device->health == HEALTH_SICK && device->health_reason != NULL)
        text_append(note, device->health_reason);
    if (device->old) {
        append_separator(note);
        append_age(device, now, note);
    }
    if (device->asleep) {
        append_separator(note);
        text_append(note, "asleep");
    }
    if (device->partitioned) {
        append_separator(note);
        text_append(note, "partitioned");
    }
    if (device->kind == DEVICE_KIND_INTEGRATED) {
        append_separator(note);
        text_append(note, "integrated");
    }
}

static void add_note(struct table *table, const struct device *device, int64_t now, bool shown)
{
    enum style style = device->health == HEALTH_SICK || device->old ? STYLE_WARNING : STYLE_FAINT;
    struct text note = {0};

    write_note(device, now, &note);
    table->failed |= text_failed(&note);
    table_cell_styled(table, style, shown ? text_string(&note) : NULL);
    text_finish(&note);
}

static bool has_note(const struct device *device)
{
    return (device->health == HEALTH_SICK && device->health_reason != NULL) || device->old ||
           device->asleep || device->partitioned || device->kind == DEVICE_KIND_INTEGRATED;
}

static void add_device(struct table *table, const struct devices_picture *picture,
                       const struct device *device, bool has_notes, bool beside)
{
    const struct load *load = &device->load;

    table_cell_styled(table, STYLE_STRONG, device_id_format(device->id).text);
    table_cell(table, view_device_model(device));
    view_add_memory_cell(table, device, beside);
    add_figure(table, &load->utilization, 10, "%");
    add_figure(table, &load->temperature, 1000, "C");
    add_figure(table, &load->power, 1000, "W");
    add_figure(table, &load->frequency, 1000000, "MHz");
    table_cell(table, device->cap.known ? capability_format(device->cap).text : NULL);
    add_number(table, device->numa);
    table_cell(table, device->pci.known ? pci_format(device->pci).text : NULL);
    table_cell_styled(table, device->health == HEALTH_SICK ? STYLE_BAD : STYLE_GOOD,
                      choice_name(health_names, (int)device->health));
    add_note(table, device, picture->now, has_notes);
}

void devices_write_table(const struct devices_picture *picture, struct text *out)
{
    const struct machine *machine = &picture->report->machine;
    const struct device *device;
    bool has_notes = false;
    bool beside = false; /* the used memory of some device is known */
    struct table table;

    vector_for_each (device, &machine->devices) {
        has_notes |= has_note(device);
        beside |= view_memory_used(device).known;
    }
    table_init(&table, columns, COUNT(columns));
    vector_for_each (device, &machine->devices)
        add_device(&table, picture, device, has_notes, beside);
    if (table_print(&table, &picture->terminal, out) < 0)
        out->failed = true;
    table_finish(&table);
    devices_write_processes(picture, out);
    devices_write_links(machine, &picture->terminal, out);
}
