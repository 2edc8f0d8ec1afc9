/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks of GPUs from strangers. The input is lines, each a mask as NAME=VALUE.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "launch/mask.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *id;
    const char *uuid;
} devices[] = {
    {"nvidia0", "GPU-aaaa-1111"},
    {"nvidia0.1", "MIG-bbbb-2222"},
    {"nvidia0.2", "MIG-bbbb-3333"},
    {"nvidia3", "GPU-aaaa-4444"},
    {"amd2", "GPU-2f00"},
    {"amd0", NULL},
    {"amd1", "GPU-2f01"},
    {"intel0", NULL},
    {"intel1", NULL},
    {"dri0", NULL},
};

/* With and without nvidia's, on which the meaning of CUDA's mask depends. */
static struct machine make_machine(bool has_nvidia)
{
    struct machine machine = {0};

    for (size_t i = has_nvidia ? 0 : 4; i < COUNT(devices); i++) {
        struct device *device = vector_append(&machine.devices);

        require(device != NULL);
        require(device_id_parse(devices[i].id, &device->id, NULL) == 0);
        device->uuid = devices[i].uuid == NULL ? NULL : strdup(devices[i].uuid);
    }
    return machine;
}

static void check(const struct string_list *masks, bool has_nvidia)
{
    struct machine machine = make_machine(has_nvidia);
    struct device_id_list ids = {0};
    size_t last = 0;
    bool has_mask;

    require(mask_resolve(masks, &machine, &ids, &has_mask, NULL) == 0);
    require(has_mask || ids.count == 0);
    /* Each once, in the machine's order. */
    for (size_t i = 0; i < ids.count; i++) {
        size_t slot = device_list_find(&machine.devices, ids.items[i]);

        require(slot < machine.devices.count && (i == 0 || slot > last));
        last = slot;
    }
    /* No mask hides what has none. */
    require(!has_mask || (ids.count > 0 && last == machine.devices.count - 1));
    vector_finish(&ids);
    machine_finish(&machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines = calloc(1, size + 1);
    struct string_list given = {0}, masks = {0};
    char *rest = lines;

    require(lines != NULL);
    if (size > 0)
        memcpy(lines, data, size);
    while (rest != NULL)
        require(string_list_append(&given, strsep(&rest, "\n")) == 0);
    check(&given, true);
    check(&given, false);
    require(vector_append(&given) != NULL);
    require(mask_collect(given.items, &masks, NULL) == 0);
    check(&masks, true);
    string_list_finish(&masks);
    string_list_finish(&given);
    free(lines);
    return 0;
}
