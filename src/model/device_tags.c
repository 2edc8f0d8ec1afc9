/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device_tags.h"

#include "base/count.h"
#include "model/device.h"

_Static_assert(HEALTH_UNKNOWN == 0 && HEALTH_OK == 1 && HEALTH_SICK == 2,
               "kinds of health are part of the format");

static const struct tagged_field device_fields[] = {
    [DEVICE_TAG_ID] = {TAGGED_MEMBER(device, id, id), .required = true},
    [DEVICE_TAG_NAME] = {TAGGED_MEMBER(device, name, text), .most = DEVICE_TEXT_LONGEST},
    [DEVICE_TAG_UUID] = {TAGGED_MEMBER(device, uuid, text), .most = DEVICE_TEXT_LONGEST},
    [DEVICE_TAG_PARENT] = {TAGGED_MEMBER(device, parent, text), .most = DEVICE_TEXT_LONGEST},
    [DEVICE_TAG_CPUS] = {TAGGED_MEMBER(device, cpus, text), .most = DEVICE_TEXT_LONGEST},
    [DEVICE_TAG_PCI] = {TAGGED_MEMBER(device, pci, pci)},
    [DEVICE_TAG_MEMORY_TOTAL] = {TAGGED_MEMBER(device, memory_total, maybe), .most = UINT64_MAX},
    [DEVICE_TAG_NUMA] = {TAGGED_MEMBER(device, numa, maybe), .most = UINT64_MAX},
    [DEVICE_TAG_MINOR] = {TAGGED_MEMBER(device, minor, maybe), .most = UINT64_MAX},
    [DEVICE_TAG_CAP] = {TAGGED_MEMBER(device, cap, capability), .most = UINT32_MAX},
    [DEVICE_TAG_HEALTH] = {TAGGED_NUMBER(device, health, UINT32_MAX)},
    [DEVICE_TAG_PARTITIONED] = {TAGGED_NUMBER(device, partitioned, true)},
    [DEVICE_TAG_NODES] = {TAGGED_MEMBER(device, nodes, strings), .most = DEVICE_NODES_MOST},
    [DEVICE_TAG_MEMORY_FREE] = {TAGGED_MEMBER(device, load.memory_free, figure)},
    [DEVICE_TAG_UTILIZATION] = {TAGGED_MEMBER(device, load.utilization, figure)},
    [DEVICE_TAG_TEMPERATURE] = {TAGGED_MEMBER(device, load.temperature, figure)},
    [DEVICE_TAG_POWER] = {TAGGED_MEMBER(device, load.power, figure)},
};
_Static_assert(COUNT(device_fields) <= 64, "tags seen are bits of 64");

static struct tagged_digest device_tagged_digest;

const struct tagged_table device_tagged = {
    .digest = &device_tagged_digest,
    .fields = device_fields,
    .count = COUNT(device_fields),
    .size = sizeof(struct device),
};
