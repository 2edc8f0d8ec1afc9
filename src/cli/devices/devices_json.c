/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json.h"
#include "base/text/quantity.h"
#include "cli/devices/devices_output.h"
#include "view/device_json.h"

static void write_devices(struct json *json, const struct devices_picture *picture)
{
    const struct device_list *devices = &picture->report->machine.devices;

    json_array_begin(json);
    for (size_t i = 0; i < devices->count; i++) {
        json_object_begin(json);
        device_json_write_members(json, &devices->items[i],
                                  picture->slots != NULL ? picture->slots[i]
                                                         : optional_number_of(i),
                                  picture->pool_says, picture->users);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_link(struct json *json, const struct machine *machine, const struct link *link)
{
    json_object_begin(json);
    json_key(json, "between");
    json_array_begin(json);
    for (size_t i = 0; i < 2; i++)
        json_string(json, device_id_format(machine->devices.items[link->between[i]].id).text);
    json_array_end(json);
    json_string_member(json, "kind", choice_name(link_kind_names, (int)link->kind));
    json_number_member(json, "lanes", link->lanes > 0, link->lanes);
    json_object_end(json);
}

static void write_problems(struct json *json, const struct problem_list *problems)
{
    const struct problem *problem;

    json_array_begin(json);
    vector_for_each (problem, problems) {
        json_object_begin(json);
        json_string_member(json, "backend", problem->backend);
        json_string_member(json, "message", problem->message);
        json_object_end(json);
    }
    json_array_end(json);
}

void devices_write_json(const struct devices_picture *picture, enum json_layout layout,
                        struct text *out)
{
    const struct machine *machine = &picture->report->machine;
    const struct link *link;
    struct json json;

    json_start(&json, out, layout);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.devices/1");
    json_key(&json, "devices");
    write_devices(&json, picture);
    json_key(&json, "links");
    json_array_begin(&json);
    vector_for_each (link, &machine->links)
        write_link(&json, machine, link);
    json_array_end(&json);
    json_key(&json, "problems");
    write_problems(&json, &picture->report->problems);
    json_object_end(&json);
    json_finish(&json);
}
