/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/machine.h"

#include <stdint.h>

#include "base/error.h"

void machine_finish(struct machine *machine)
{
    struct host *host;

    device_list_finish(&machine->devices);
    vector_finish(&machine->links);
    vector_for_each (host, &machine->hosts)
        free(host->name);
    vector_finish(&machine->hosts);
}

/* Keeps the links between the remaining devices; `places` has the new slot of each old slot. */
static void keep_links(struct machine *machine, const size_t *places)
{
    size_t kept = 0;

    for (size_t i = 0; i < machine->links.count; i++) {
        struct link link = machine->links.items[i];

        if (places[link.between[0]] == SIZE_MAX || places[link.between[1]] == SIZE_MAX)
            continue;
        link.between[0] = places[link.between[0]];
        link.between[1] = places[link.between[1]];
        machine->links.items[kept++] = link;
    }
    machine->links.count = kept;
}

int machine_keep(struct machine *machine, const struct bitset *kept, size_t *slots,
                 struct berth_error *error)
{
    size_t *places = calloc(machine->devices.count + 1, sizeof(*places));
    size_t count = 0;

    if (places == NULL)
        return error_set_memory(error);
    for (size_t slot = 0; slot < machine->devices.count; slot++) {
        struct device *device = &machine->devices.items[slot];

        places[slot] = SIZE_MAX;
        if (!bitset_has(kept, slot)) {
            device_finish(device);
            continue;
        }
        places[slot] = count;
        if (slots != NULL)
            slots[count] = slot;
        machine->devices.items[count++] = *device;
    }
    machine->devices.count = count;
    keep_links(machine, places);
    free(places);
    return 0;
}
