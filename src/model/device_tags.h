/* SPDX-License-Identifier: Apache-2.0
 *
 * A device as tagged fields (model/tagged.h).
 */
#ifndef MODEL_DEVICE_TAGS_H
#define MODEL_DEVICE_TAGS_H

#include "model/tagged.h"

/* Never renumber, only append. */
enum device_tag {
    DEVICE_TAG_ID = 1,           /* id; required */
    DEVICE_TAG_NAME = 2,         /* text */
    DEVICE_TAG_UUID = 3,         /* text */
    DEVICE_TAG_PARENT = 4,       /* text */
    DEVICE_TAG_CPUS = 5,         /* text */
    DEVICE_TAG_PCI = 6,          /* pci */
    DEVICE_TAG_MEMORY_TOTAL = 7, /* maybe: bytes */
    DEVICE_TAG_NUMA = 8,         /* maybe */
    DEVICE_TAG_MINOR = 9,        /* maybe */
    DEVICE_TAG_CAP = 10,         /* maybe: major * 65536 + minor */
    DEVICE_TAG_HEALTH = 11,      /* number: enum health; unknown ones are kept */
    DEVICE_TAG_PARTITIONED = 12, /* flag */
    DEVICE_TAG_NODES = 13,       /* strings */
    DEVICE_TAG_MEMORY_FREE = 14, /* figure: bytes */
    DEVICE_TAG_UTILIZATION = 15, /* figure: thousandths */
    DEVICE_TAG_TEMPERATURE = 16, /* figure: thousandths of a degree Celsius */
    DEVICE_TAG_POWER = 17,       /* figure: milliwatts */
};

#define DEVICE_TEXT_LONGEST 4096
#define DEVICE_NODES_MOST   256

/* struct device, but for its host; what it reads is to be finished with tagged_finish or
 * device_finish. */
extern const struct tagged_table device_tagged;

#endif
