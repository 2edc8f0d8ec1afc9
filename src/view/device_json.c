/* SPDX-License-Identifier: Apache-2.0 */
#include "view/device_json.h"

#include "base/text/choice.h"

static void write_number(struct json *json, const char *key, struct optional_number number)
{
    json_number_member(json, key, number.known, number.value);
}

void device_json_write_figure(struct json *json, const char *key, const struct figure *figure,
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
    int64_t sampled_at = 0;
    bool is_sampled = load_sampled_at(load, &sampled_at);

    device_json_write_figure(json, "utilization", &load->utilization, DEVICE_JSON_DECIMALS);
    device_json_write_figure(json, "temperature_c", &load->temperature, DEVICE_JSON_DECIMALS);
    device_json_write_figure(json, "power_w", &load->power, DEVICE_JSON_DECIMALS);
    device_json_write_figure(json, "frequency_hz", &load->frequency, 0);
    json_string_member(json, "health", choice_name(health_names, (int)device->health));
    json_string_member(json, "health_reason", device->health_reason);
    json_bool_member(json, "asleep", device->asleep);
    json_bool_member(json, "old", device->old);
    json_time_member(json, "sampled_at", is_sampled, sampled_at);
}

static void write_process(struct json *json, const struct device_process *process, bool pool_says,
                          struct user_names *users)
{
    struct optional_number lease = {.known = process->lease != 0, .value = process->lease};

    json_object_begin(json);
    write_number(json, "pid", optional_number_of(process->pid));
    json_string_member(json, "user", user_names_find_optional(users, process->uid));
    json_string_member(json, "command", process->command);
    write_number(json, "memory", process->memory);
    write_number(json, "lease", lease);
    json_string_member(json, "container", process->container);
    write_number(json, "uid", process->uid);
    json_time_member(json, "since", process->started != 0, process->started);
    if (pool_says)
        json_bool_member(json, "squats", process->squats);
    else
        json_string_member(json, "squats", NULL);
    json_object_end(json);
}

static void write_lists(struct json *json, const struct device *device, bool pool_says,
                        struct user_names *users)
{
    const struct device_process *process;
    char **node;

    json_key(json, "nodes");
    json_array_begin(json);
    vector_for_each (node, &device->nodes)
        json_string(json, *node);
    json_array_end(json);
    json_key(json, "processes");
    json_array_begin(json);
    vector_for_each (process, &device->processes)
        write_process(json, process, pool_says, users);
    json_array_end(json);
}

void device_json_write_members(struct json *json, const struct device *device,
                               struct optional_number slot, bool pool_says,
                               struct user_names *users)
{
    json_string_member(json, "id", device_id_format(device->id).text);
    write_number(json, "slot", slot);
    json_string_member(json, "vendor", vendor_name(device->id.vendor));
    write_number(json, "index", optional_number_of(device->id.index));
    json_string_member(json, "name", device->name);
    json_string_member(json, "kind", choice_name(device_kind_names, (int)device->kind));
    json_string_member(json, "uuid", device->uuid);
    json_string_member(json, "pci", device->pci.known ? pci_format(device->pci).text : NULL);
    json_string_member(json, "parent", device->parent);
    write_number(json, "memory_total", device->memory_total);
    device_json_write_figure(json, "memory_free", &device->load.memory_free, 0);
    json_string_member(json, "cap", device->cap.known ? capability_format(device->cap).text : NULL);
    write_number(json, "numa", device->numa);
    json_string_member(json, "cpus", device->cpus);
    write_number(json, "tiles", device->tiles);
    write_load(json, device);
    write_lists(json, device, pool_says, users);
}
