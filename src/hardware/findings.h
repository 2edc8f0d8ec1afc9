/* SPDX-License-Identifier: Apache-2.0
 *
 * What a look at some part of the hardware came to.
 */
#ifndef HARDWARE_FINDINGS_H
#define HARDWARE_FINDINGS_H

#include <berth/error.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "model/device.h"
#include "model/link.h"
#include "model/machine_report.h"

/* A device, and how its vendor finds it again. */
struct device_finding {
    struct device *device; /* its id at least */
    char *key;             /* names it to its vendor's `read`; NULL: it is not read by itself */
    char *path;            /* its directory in sysfs, resolved: /sys/devices/...; NULL: unknown */
};

struct finding_list {
    VECTOR_OF(struct device_finding);
};

/* Adds a device with this id, of which nothing else is known. NULL: no memory. */
struct device_finding *finding_list_add(struct finding_list *list, struct device_id id);
void finding_list_finish(struct finding_list *list);

struct findings {
    struct finding_list found;
    struct link_list links; /* between places in the list that was asked about */
    struct problem_list problems;
};

void findings_finish(struct findings *findings);

#endif
