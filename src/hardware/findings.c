/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/findings.h"

#include <stdlib.h>

struct found *found_list_add(struct found_list *list, struct device_id id)
{
    struct device *device = calloc(1, sizeof(*device));
    struct found *found = device == NULL ? NULL : vector_append(list);

    if (found == NULL) {
        free(device);
        return NULL;
    }
    device->id = id;
    found->device = device;
    return found;
}

void found_list_finish(struct found_list *list)
{
    struct found *found;

    vector_for_each (found, list) {
        if (found->device != NULL)
            device_finish(found->device);
        free(found->device);
        free(found->key);
        free(found->path);
    }
    vector_finish(list);
}

void sight_finish(struct sight *sight)
{
    found_list_finish(&sight->found);
    vector_finish(&sight->links);
    problem_list_finish(&sight->problems);
}
