/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/count.h"
#include "base/quantity.h"
#include "base/table.h"
#include "cli/devices_output.h"

static const struct table_column columns[] = {
    {.heading = "ID", .priority = TABLE_ALWAYS},
    {.heading = "MODEL", .priority = 90, .least = 12},
    {.heading = "MEMORY", .priority = 80, .right = true, .hide_unknown = true},
    {.heading = "FREE", .priority = 85, .right = true, .hide_unknown = true},
    {.heading = "UTIL", .priority = 84, .right = true, .hide_unknown = true},
    {.heading = "TEMP", .priority = 50, .right = true, .hide_unknown = true},
    {.heading = "POWER", .priority = 45, .right = true, .hide_unknown = true},
    {.heading = "CAP", .priority = 40, .right = true, .hide_unknown = true},
    {.heading = "NUMA", .priority = 30, .right = true, .hide_unknown = true},
    {.heading = "PCI", .priority = 20, .hide_unknown = true},
    {.heading = "HEALTH", .priority = 88, .hide_unknown = true},
    {.heading = "NOTE", .priority = 60, .least = 12, .hide_unknown = true},
};

static void add_size(struct table *table, bool known, uint64_t bytes)
{
    table_cell(table, known ? quantity_format_size(bytes).text : NULL);
}

/* A figure in thousandths, shown in whole units. */
static void add_figure(struct table *table, const struct figure *figure, int64_t unit,
                       const char *suffix)
{
    if (figure->known)
        table_cell_format(table, "%lld%s", (long long)((figure->value + unit / 2) / unit), suffix);
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

static void add_device(struct table *table, const struct device *device)
{
    const struct load *load = &device->load;

    table_cell_styled(table, STYLE_STRONG, device_id_format(device->id).text);
    table_cell(table, device->name);
    add_size(table, device->memory_total.known, device->memory_total.value);
    add_size(table, load->memory_free.known, (uint64_t)load->memory_free.value);
    add_figure(table, &load->utilization, 10, "%");
    add_figure(table, &load->temperature, 1000, "C");
    add_figure(table, &load->power, 1000, "W");
    table_cell(table, device->cap.known ? capability_format(device->cap).text : NULL);
    add_number(table, device->numa);
    table_cell(table, device->pci.known ? pci_format(device->pci).text : NULL);
    table_cell_styled(table, device->health == HEALTH_SICK ? STYLE_BAD : STYLE_GOOD,
                      choice_name(health_names, (int)device->health));
    table_cell(table, device->partitioned ? "leased by its partitions" : NULL);
}

void devices_write_table(const struct machine *machine, const struct terminal *terminal,
                         struct text *out)
{
    const struct device *device;
    struct table table;

    table_init(&table, columns, COUNT(columns));
    vector_for_each (device, &machine->devices)
        add_device(&table, device);
    if (table_print(&table, terminal, out) < 0)
        out->failed = true;
    table_finish(&table);
    links_write_matrix(machine, terminal, out);
}
