/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as an inventory file. An accepted one is complete and can be printed. A refused
 * one gets a message that names the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/devices/devices_output.h"
#include "spec/inventory.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char file_name[] = "fuzz.yaml";

static void walk_text(const char *text)
{
    require(text == NULL || utf8_is_valid(text, strlen(text)));
}

static void walk_figure(const struct figure *figure, int64_t max)
{
    if (figure->known)
        require(figure->value >= 0 && figure->value <= max &&
                figure->sampled_at == FIGURE_DECLARED);
}

static void walk_device(const struct device *device)
{
    struct device_id again;
    struct pci_address address;
    struct capability capability;
    char **node;

    require(device_id_parse(device_id_format(device->id).text, &again, NULL) == 0);
    require(device_id_equals(again, device->id));
    require(device->id.mig == DEVICE_NO_MIG || device->parent != NULL);
    walk_text(device->name);
    walk_text(device->uuid);
    walk_text(device->parent);
    walk_text(device->cpus);
    vector_for_each (node, &device->nodes)
        require(**node != '\0' && utf8_is_valid(*node, strlen(*node)));
    if (device->pci.known)
        require(pci_parse(pci_format(device->pci).text, &address, NULL) == 0 &&
                pci_compare(address, device->pci) == 0);
    if (device->cap.known)
        require(capability_parse(capability_format(device->cap).text, &capability, NULL) == 0 &&
                capability.major == device->cap.major && capability.minor == device->cap.minor);
    require(!device->tiles.known ||
            (device->id.vendor == VENDOR_INTEL && device->tiles.value >= 1 &&
             device->tiles.value <= DEVICE_TILES_MAX));
    walk_figure(&device->load.memory_free, INT64_MAX);
    walk_figure(&device->load.utilization, 1000);
    walk_figure(&device->load.temperature, 1000000);
    walk_figure(&device->load.power, 1000000000);
    if (device->memory_total.known && device->load.memory_free.known)
        require((uint64_t)device->load.memory_free.value <= device->memory_total.value);
}

static void walk(const struct machine *machine)
{
    const struct device *device;
    const struct link *link;

    vector_for_each (device, &machine->devices)
        walk_device(device);
    vector_for_each (link, &machine->links) {
        require(link->between[0] < link->between[1]);
        require(link->between[1] < machine->devices.count);
        require(choice_name(link_kind_names, (int)link->kind) != NULL);
        require(link->lanes == 0 || link_is_fabric(link->kind));
    }
}

static void show(const struct machine *machine, size_t width)
{
    const struct machine_report report = {.machine = *machine};
    struct user_names users = {0};
    const struct devices_picture picture = {
        .report = &report,
        .users = &users,
        .terminal = {.width = width, .unicode = width % 2 == 0},
    };
    struct text out = {0};

    devices_write_json(&picture, JSON_INDENTED, &out);
    require_lines(&out);
    require(out.bytes[0] == '{' && out.length > 2);
    require(strcmp(out.bytes + out.length - 2, "}\n") == 0);
    text_clear(&out);
    devices_write_table(&picture, &out);
    require_lines(&out);
    text_finish(&out);
    user_names_finish(&users);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine;
    int code = inventory_parse(file_name, (const char *)data, size, &machine, &error);

    if (code < 0) {
        require_message(&error, code);
        require(strncmp(error.message, file_name, strlen(file_name)) == 0);
        require(error.message[strlen(file_name)] == ':');
        return 0;
    }
    require(error.message[0] == '\0');
    walk(&machine);
    show(&machine, size % 120);
    machine_finish(&machine);
    return 0;
}
