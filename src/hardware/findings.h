/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of listing or reading a part of the hardware.
 */
#ifndef HARDWARE_FINDINGS_H
#define HARDWARE_FINDINGS_H

#include <berth/error.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "model/machine/device.h"
#include "model/machine/link.h"
#include "model/machine/machine_report.h"

/* A device, and the key by which its vendor finds it again. */
struct device_finding {
    struct device *device; /* has at least its id */
    char *key;  /* identifies it to its vendor's `read`; NULL: it is not read on its own */
    char *path; /* its resolved directory in sysfs: /sys/devices/...; NULL: unknown */
};

struct finding_list {
    VECTOR_OF(struct device_finding);
};

/* Adds a device with this id and no other facts. Returns NULL if memory ran out. */
struct device_finding *finding_list_add(struct finding_list *list, struct device_id id);
void finding_list_finish(struct finding_list *list);

struct findings {
    struct finding_list found;
    struct link_list links; /* between positions in the list of devices that the step got */
    struct problem_list problems;
};

void findings_finish(struct findings *findings);

#endif
