/* SPDX-License-Identifier: Apache-2.0
 *
 * Small machines for tests, made up device by device.
 */
#ifndef TESTS_MACHINES_H
#define TESTS_MACHINES_H

#include "support/unit.h"

#include <string.h>

#include "model/machine/machine.h"
#include "support/units.h"

/* Returns the id that this text names. The test fails if it names none. */
static inline struct device_id id_of(const char *string)
{
    struct device_id id = {0};

    assert_int_equal(device_id_parse(string, &id, NULL), 0);
    return id;
}

/* Adds a device with only an id. The pointer is valid until the next device is added. */
static inline struct device *machine_add(struct machine *machine, struct device_id id)
{
    struct device *device = vector_append(&machine->devices);

    assert_non_null(device);
    device->id = id;
    return device;
}

/* Adds such devices for a comma-separated list of ids; "" adds none. */
static inline void machine_add_ids(struct machine *machine, const char *ids)
{
    struct device_id_list list = {0};
    const struct device_id *id;

    if (*ids == '\0')
        return;
    assert_int_equal(device_id_list_parse(&list, ids, NULL), 0);
    vector_for_each (id, &list)
        machine_add(machine, *id);
    vector_finish(&list);
}

/* Returns the device with this id, which must exist. */
static inline struct device *machine_device(struct machine *machine, const char *id)
{
    size_t slot = device_list_find(&machine->devices, id_of(id));

    assert_true(slot < machine->devices.count);
    return &machine->devices.items[slot];
}

/* Returns a copy of the text. The caller, or the struct that owns it, frees it. */
static inline char *copy_of(const char *string)
{
    char *copy = strdup(string);

    assert_non_null(copy);
    return copy;
}

#endif
