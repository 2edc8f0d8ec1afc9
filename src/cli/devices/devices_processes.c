/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of processes: a line for each process on each device.
 */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/system/container.h"
#include "base/text/quantity.h"
#include "base/text/table.h"
#include "cli/devices/devices_output.h"

/* A command can have any length, so it comes last. */
static const struct table_column columns[] = {
    {.heading = "DEVICE", .priority = TABLE_ALWAYS},
    {.heading = "PID", .priority = TABLE_ALWAYS, .right = true},
    {.heading = "USER", .priority = 90, .min = 8, .hide_unknown = true},
    {.heading = "MEMORY", .priority = 85, .right = true, .hide_unknown = true},
    {.heading = "FOR", .priority = 60, .right = true, .hide_unknown = true},
    {.heading = "LEASE", .priority = 80, .right = true, .hide_unknown = true},
    {.heading = "CONTAINER", .priority = 50, .hide_unknown = true},
    {.heading = "COMMAND", .priority = 95, .min = 12, .hide_unknown = true},
};

/* The columns to show, depending on the processes. */
struct process_columns {
    bool any;
    bool lease;
    bool container;
};

static struct process_columns find_columns(const struct device_list *devices)
{
    struct process_columns columns_shown = {0};
    const struct device *device;
    const struct device_process *process;

    vector_for_each (device, devices) {
        vector_for_each (process, &device->processes) {
            columns_shown.any = true;
            columns_shown.lease |= process->lease != 0 || process->squats;
            columns_shown.container |= process->container != NULL;
        }
    }
    return columns_shown;
}

/* Adds an empty cell if the column is shown, or an unknown cell, which keeps the column hidden. */
static void add_empty(struct table *table, bool columns_shown)
{
    table_cell(table, columns_shown ? "" : NULL);
}

/* Adds how long the process has been running, in whole seconds. */
static void add_age(struct table *table, int64_t started, int64_t now)
{
    int64_t age;

    if (started == 0 || now < started || __builtin_sub_overflow(now, started, &age))
        table_cell(table, NULL);
    else
        table_cell(table, quantity_format_duration(age - age % DURATION_SECOND).text);
}

static void add_process(struct table *table, struct process_columns columns_shown,
                        const struct device *device, const struct device_process *process,
                        const struct devices_picture *picture)
{
    table_cell_styled(table, STYLE_STRONG, device_id_format(device->id).text);
    table_cell_format(table, "%llu", (unsigned long long)process->pid);
    table_cell(table, user_names_find_optional(picture->users, process->uid));
    table_cell(table,
               process->memory.known ? quantity_format_size(process->memory.value).text : NULL);
    add_age(table, process->started, picture->now);
    if (process->lease != 0)
        table_cell_format(table, "%llu", (unsigned long long)process->lease);
    else if (process->squats)
        table_cell_styled(table, STYLE_WARNING, "squats");
    else
        add_empty(table, columns_shown.lease);
    if (process->container != NULL)
        table_cell_format(table, "%.*s", container_shown_length(process->container),
                          process->container);
    else
        add_empty(table, columns_shown.container);
    table_cell(table, process->command);
}

void devices_write_processes(const struct devices_picture *picture, struct text *out)
{
    const struct device_list *devices = &picture->report->machine.devices;
    struct process_columns columns_shown = find_columns(devices);
    const struct device *device;
    const struct device_process *process;
    struct table table;

    if (!columns_shown.any)
        return;
    table_init(&table, columns, COUNT(columns));
    vector_for_each (device, devices) {
        vector_for_each (process, &device->processes)
            add_process(&table, columns_shown, device, process, picture);
    }
    text_append_char(out, '\n');
    if (table_print(&table, &picture->terminal, out) < 0)
        out->failed = true;
    table_finish(&table);
}
