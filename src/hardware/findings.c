/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/findings.h"

#include <stdlib.h>

struct device_finding *finding_list_add(struct finding_list *list, struct device_id id)
{
    struct device *device = calloc(1, sizeof(*device));
    struct device_finding *found = device == NULL ? NULL : vector_append(list);

    if (found == NULL) {
        free(device);
        return NULL;
    }
    device->id = id;
    found->device = device;
    return found;
}

void finding_list_finish(struct finding_list *list)
{
    struct device_finding *found;

    vector_for_each (found, list) {
        if (found->device != NULL)
            device_finish(found->device);
        free(found->device);
        free(found->key);
        free(found->path);
    }
    vector_finish(list);
}

void findings_finish(struct findings *findings)
{
    finding_list_finish(&findings->found);
    vector_finish(&findings->links);
    machine_report_finish_problems(&findings->problems);
}
