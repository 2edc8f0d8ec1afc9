/* SPDX-License-Identifier: Apache-2.0
 *
 * A device as tagged fields (codec/tagged.h).
 */
#ifndef CODEC_DEVICE_TAGS_H
#define CODEC_DEVICE_TAGS_H

#include "codec/tagged.h"

/* Never renumber, only append. */
enum device_tag {
    DEVICE_TAG_ID = 1,               /* id; required */
    DEVICE_TAG_NAME = 2,             /* text */
    DEVICE_TAG_UUID = 3,             /* text */
    DEVICE_TAG_PARENT = 4,           /* text */
    DEVICE_TAG_CPUS = 5,             /* text */
    DEVICE_TAG_PCI = 6,              /* pci */
    DEVICE_TAG_MEMORY_TOTAL = 7,     /* maybe: bytes */
    DEVICE_TAG_NUMA = 8,             /* maybe */
    DEVICE_TAG_MINOR = 9,            /* maybe */
    DEVICE_TAG_CAP = 10,             /* maybe: major * 65536 + minor */
    DEVICE_TAG_HEALTH = 11,          /* number: enum health; unknown ones are kept */
    DEVICE_TAG_PARTITIONED = 12,     /* flag */
    DEVICE_TAG_NODES = 13,           /* strings */
    DEVICE_TAG_MEMORY_FREE = 14,     /* figure: bytes */
    DEVICE_TAG_UTILIZATION = 15,     /* figure: thousandths */
    DEVICE_TAG_TEMPERATURE = 16,     /* figure: thousandths of a degree Celsius */
    DEVICE_TAG_POWER = 17,           /* figure: milliwatts */
    DEVICE_TAG_HEALTH_REASON = 18,   /* text, cut */
    DEVICE_TAG_ASLEEP = 19,          /* flag */
    DEVICE_TAG_OLD = 20,             /* flag */
    DEVICE_TAG_KIND = 21,            /* number: enum device_kind; unknown ones are kept */
    DEVICE_TAG_FREQUENCY = 22,       /* figure: hertz */
    DEVICE_TAG_PROCESSES = 23,       /* items: enum process_tag */
    DEVICE_TAG_TILES = 24,           /* maybe */
    DEVICE_TAG_ORDINAL = 25,         /* maybe; only of leased devices */
    DEVICE_TAG_FIRST_TILE = 26,      /* maybe; only of leased devices */
    DEVICE_TAG_MEMORY_IDLE = 27,     /* maybe: bytes */
    DEVICE_TAG_HIDES_PROCESSES = 28, /* flag */
};

/* The tags of a process that uses a device. Never renumber, only append. */
enum process_tag {
    PROCESS_TAG_PID = 1,          /* number */
    PROCESS_TAG_UID = 2,          /* maybe */
    PROCESS_TAG_MEMORY = 3,       /* maybe: bytes */
    PROCESS_TAG_COMMAND = 4,      /* text, cut */
    PROCESS_TAG_CONTAINER = 5,    /* text, cut */
    PROCESS_TAG_LEASE = 6,        /* number */
    PROCESS_TAG_STARTED = 7,      /* number: nanoseconds since 1970 UTC */
    PROCESS_TAG_DRAWS = 8,        /* flag */
    PROCESS_TAG_SQUATS = 9,       /* flag */
    PROCESS_TAG_SAID_LEASE = 10,  /* number; only from the probe */
    PROCESS_TAG_SAID_SOCKET = 11, /* text; only from the probe */
    PROCESS_TAG_OWNER = 12,       /* maybe; only from the probe */
    PROCESS_TAG_UNDECIDED = 13,   /* flag */
    PROCESS_TAG_ANCESTORS = 14,   /* list: pids; only from the probe */
};

/* The tags of a link between two devices of a list. Never renumber, only append. */
enum link_tag {
    LINK_TAG_ONE = 1,   /* number: an index into the list */
    LINK_TAG_OTHER = 2, /* number */
    LINK_TAG_KIND = 3,  /* number: enum link_kind; unknown ones are refused */
    LINK_TAG_LANES = 4, /* number */
};

/* The tags of a problem in a report. Never renumber, only append. */
enum problem_tag {
    PROBLEM_TAG_BACKEND = 1, /* text, cut; required */
    PROBLEM_TAG_MESSAGE = 2, /* text, cut; required */
};

#define DEVICE_TEXT_MAX  4096
#define PROCESS_TEXT_MAX 1024
#define DEVICE_NODES_MAX 256

/* struct device without its host. The caller finishes a decoded device with tagged_finish or
 * device_finish. */
extern const struct tagged_table device_tagged;

/* struct link. */
extern const struct tagged_table link_tagged;

/* struct problem. */
extern const struct tagged_table problem_tagged;

#endif
