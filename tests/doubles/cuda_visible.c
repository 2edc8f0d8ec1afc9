/* SPDX-License-Identifier: Apache-2.0 */
#include "doubles/cuda_visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Units in some order. */
struct list {
    unsigned count;
    unsigned items[MACHINE_UNITS];
};

static int compare_pci(const struct machine_unit *one, const struct machine_unit *other)
{
    for (unsigned i = 0; i < 4; i++) {
        if (one->pci[i] != other->pci[i])
            return one->pci[i] < other->pci[i] ? -1 : 1;
    }
    return 0;
}

/* Lists all GPUs in CUDA's order. */
static void list_gpus(const struct machine *machine, struct list *list)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    unsigned fastest = 0;

    for (unsigned i = 0; i < machine->count; i++) {
        unsigned place = list->count;

        if (machine->units[i].is_instance)
            continue;
        while (place > 0 &&
               compare_pci(&machine->units[i], &machine->units[list->items[place - 1]]) < 0) {
            list->items[place] = list->items[place - 1];
            place--;
        }
        list->items[place] = i;
        list->count++;
    }
    if (order != NULL && strcmp(order, "PCI_BUS_ID") == 0)
        return;
    for (unsigned i = 1; i < list->count; i++) {
        if (machine->units[list->items[i]].speed > machine->units[list->items[fastest]].speed)
            fastest = i;
    }
    for (; fastest > 0; fastest--) {
        unsigned unit = list->items[fastest];

        list->items[fastest] = list->items[fastest - 1];
        list->items[fastest - 1] = unit;
    }
}

/* Returns the GPU's first instance, or the GPU if it has none: CUDA cannot compute on a GPU that
 * has instances. */
static unsigned first_instance(const struct machine *machine, unsigned gpu)
{
    return machine->units[gpu].has_instances ? gpu + 1 : gpu;
}

static bool has_uuid(const struct machine *machine, unsigned unit, const char *entry)
{
    const struct machine_unit *gpu = &machine->units[machine->units[unit].gpu];
    char older[96];

    if (strncmp(machine->units[unit].uuid, entry, strlen(entry)) == 0)
        return true;
    snprintf(older, sizeof(older), "MIG-%s/%u/%u", gpu->uuid, machine->units[unit].gpu_instance,
             machine->units[unit].compute_instance);
    return machine->units[unit].is_instance && strcmp(older, entry) == 0;
}

enum { NAMES_NOTHING = -1, NAMES_SEVERAL = -2 };

/* Returns the unit that an entry names. */
static int find_entry(const struct machine *machine, const struct list *gpus, const char *entry,
                      const char *prefix)
{
    int found = NAMES_NOTHING;
    char *end;
    long number;

    if (prefix == NULL) {
        number = strtol(entry, &end, 10);
        return end == entry || number < 0 || number >= (long)gpus->count
                   ? NAMES_NOTHING
                   : (int)first_instance(machine, gpus->items[number]);
    }
    if (strncmp(entry, prefix, strlen(prefix)) != 0)
        return NAMES_NOTHING;
    for (unsigned i = 0; i < machine->count; i++) {
        if (has_uuid(machine, i, entry)) {
            if (found >= 0)
                return NAMES_SEVERAL;
            found = (int)i;
        }
    }
    return found < 0 ? found : (int)first_instance(machine, (unsigned)found);
}

static bool holds(const struct list *list, unsigned unit)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (list->items[i] == unit)
            return true;
    }
    return false;
}

static void list_named(const struct machine *machine, const struct list *gpus, const char *names,
                       struct list *list)
{
    const char *prefix = strncmp(names, "GPU-", 4) == 0   ? "GPU-"
                         : strncmp(names, "MIG-", 4) == 0 ? "MIG-"
                                                          : NULL;
    char *copy = strdup(names);
    char *rest = copy;
    char *entry;

    if (copy == NULL)
        abort();
    while ((entry = strsep(&rest, ",")) != NULL) {
        int unit = find_entry(machine, gpus, entry + strspn(entry, " "), prefix);

        if (unit == NAMES_NOTHING)
            break;
        if (unit == NAMES_SEVERAL || holds(list, (unsigned)unit)) {
            list->count = 0;
            break;
        }
        list->items[list->count++] = (unsigned)unit;
    }
    free(copy);
}

/* Lists all GPUs. A GPU with instances is shown as its first instance, or with many_instances as
 * all of them. */
static void list_all(const struct machine *machine, const struct list *gpus, struct list *list)
{
    for (unsigned i = 0; i < gpus->count; i++) {
        unsigned unit = first_instance(machine, gpus->items[i]);

        list->items[list->count++] = unit++;
        while (machine->many_instances && unit < machine->count &&
               machine->units[unit].is_instance && machine->units[unit - 1].is_instance)
            list->items[list->count++] = unit++;
    }
}

void visible_choose(struct machine *machine)
{
    const char *names = getenv("CUDA_VISIBLE_DEVICES");
    struct list gpus = {0};
    struct list list = {0};

    list_gpus(machine, &gpus);
    if (names == NULL)
        list_all(machine, &gpus, &list);
    else
        list_named(machine, &gpus, names, &list);
    for (unsigned i = 0; i < list.count && !machine->many_instances; i++) {
        if (machine->units[list.items[i]].is_instance)
            list = (struct list){.count = 1, .items = {list.items[i]}};
    }
    machine->shown = list.count;
    memcpy(machine->order, list.items, sizeof(machine->order));
}
