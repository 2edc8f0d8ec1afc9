/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/quantity.h"
#include "cli/devices_output.h"

/* Figures are kept in thousandths. */
enum { FIGURE_DECIMALS = 3 };

static void write_string(struct json *json, const char *key, const char *string)
{
    json_key(json, key);
    json_string(json, string);
}

static void write_number(struct json *json, const char *key, struct optional_number number)
{
    json_key(json, key);
    if (number.known)
        json_unsigned(json, number.value);
    else
        json_null(json);
}

static void write_figure(struct json *json, const char *key, const struct figure *figure,
                         unsigned decimals)
{
    json_key(json, key);
    if (figure->known)
        json_decimal(json, figure->value, decimals);
    else
        json_null(json);
}

static void write_load(struct json *json, const struct device *device)
{
    const struct load *load = &device->load;
    int64_t sampled_at;

    write_figure(json, "utilization", &load->utilization, FIGURE_DECIMALS);
    write_figure(json, "temperature_c", &load->temperature, FIGURE_DECIMALS);
    write_figure(json, "power_w", &load->power, FIGURE_DECIMALS);
    write_string(json, "health", choice_name(health_names, (int)device->health));
    if (load_sampled_at(load, &sampled_at))
        write_string(json, "sampled_at", quantity_format_time(sampled_at).text);
    else
        write_string(json, "sampled_at", NULL);
}

void devices_write_members(struct json *json, const struct device *device, size_t slot)
{
    char **node;

    write_string(json, "id", device_id_format(device->id).text);
    write_number(json, "slot", optional_number_of(slot));
    write_string(json, "vendor", vendor_name(device->id.vendor));
    write_number(json, "index", optional_number_of(device->id.index));
    write_string(json, "name", device->name);
    write_string(json, "uuid", device->uuid);
    write_string(json, "pci", device->pci.known ? pci_format(device->pci).text : NULL);
    write_string(json, "parent", device->parent);
    write_number(json, "memory_total", device->memory_total);
    write_figure(json, "memory_free", &device->load.memory_free, 0);
    write_string(json, "cap", device->cap.known ? capability_format(device->cap).text : NULL);
    write_number(json, "numa", device->numa);
    write_string(json, "cpus", device->cpus);
    write_load(json, device);
    json_key(json, "nodes");
    json_array_begin(json);
    vector_for_each (node, &device->nodes)
        json_string(json, *node);
    json_array_end(json);
    json_key(json, "processes");
    json_array_begin(json);
    json_array_end(json);
}

static void write_device(struct json *json, const struct device *device, size_t slot)
{
    json_object_begin(json);
    devices_write_members(json, device, slot);
    json_object_end(json);
}

static void write_link(struct json *json, const struct machine *machine, const struct link *link)
{
    json_object_begin(json);
    json_key(json, "between");
    json_array_begin(json);
    for (size_t i = 0; i < 2; i++)
        json_string(json, device_id_format(machine->devices.items[link->between[i]].id).text);
    json_array_end(json);
    write_string(json, "kind", choice_name(link_kind_names, (int)link->kind));
    write_number(json, "lanes",
                 (struct optional_number){.known = link->lanes > 0, .value = link->lanes});
    json_object_end(json);
}

void devices_write_json(const struct machine *machine, struct text *out)
{
    const struct link *link;
    struct json json;

    json_start(&json, out, JSON_INDENTED);
    json_object_begin(&json);
    write_string(&json, "schema", "berth.devices/1");
    json_key(&json, "devices");
    json_array_begin(&json);
    for (size_t slot = 0; slot < machine->devices.count; slot++)
        write_device(&json, &machine->devices.items[slot], slot);
    json_array_end(&json);
    json_key(&json, "links");
    json_array_begin(&json);
    vector_for_each (link, &machine->links)
        write_link(&json, machine, link);
    json_array_end(&json);
    json_key(&json, "problems");
    json_array_begin(&json);
    json_array_end(&json);
    json_object_end(&json);
    json_finish(&json);
}
