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

/* The id that this text means; the test fails when it means none. */
static inline struct device_id id_of(const char *string)
{
    struct device_id id = {0};

    assert_int_equal(device_id_parse(string, &id, NULL), 0);
    return id;
}

/* Adds a device of which only the id is known; good until the next one is added. */
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

/* The device with this id, which must be there. */
static inline struct device *machine_device(struct machine *machine, const char *id)
{
    size_t slot = device_list_find(&machine->devices, id_of(id));

    assert_true(slot < machine->devices.count);
    return &machine->devices.items[slot];
}

/* A copy that the caller, or what it is put into, frees. */
static inline char *copy_of(const char *string)
{
    char *copy = strdup(string);

    assert_non_null(copy);
    return copy;
}

#endif
