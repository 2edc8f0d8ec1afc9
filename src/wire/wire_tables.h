/* SPDX-License-Identifier: Apache-2.0
 *
 * The tags of messages. Only src/wire includes this header.
 */
#ifndef WIRE_WIRE_TABLES_H
#define WIRE_WIRE_TABLES_H

#include <stdint.h>

#include "codec/tagged.h"
#include "wire/wire.h"

/* The fields of a message. Never renumber, only append. */
enum wire_tag {
    WIRE_TAG_ID = 1,            /* number */
    WIRE_TAG_PARENT = 2,        /* number */
    WIRE_TAG_TOKEN_HIGH = 3,    /* number */
    WIRE_TAG_TOKEN_LOW = 4,     /* number */
    WIRE_TAG_REQUEST = 5,       /* fields: enum request_tag */
    WIRE_TAG_HOLD = 6,          /* number: enum lease_hold */
    WIRE_TAG_RESUME = 7,        /* flag */
    WIRE_TAG_MASKS = 8,         /* strings */
    WIRE_TAG_COMMAND = 9,       /* text */
    WIRE_TAG_INVENTORY = 10,    /* text */
    WIRE_TAG_DURATION = 11,     /* number: nanoseconds */
    WIRE_TAG_SECTION = 12,      /* number: enum wire_section */
    WIRE_TAG_AFTER = 13,        /* number */
    WIRE_TAG_ERROR = 14,        /* number: a berth_error_code without its sign */
    WIRE_TAG_TEXT = 15,         /* text */
    WIRE_TAG_POSITION = 16,     /* number */
    WIRE_TAG_ESTIMATE = 17,     /* maybe: nanoseconds from now */
    WIRE_TAG_DEVICES = 18,      /* items: enum device_tag */
    WIRE_TAG_REPLICAS = 19,     /* number */
    WIRE_TAG_MORE = 20,         /* flag */
    WIRE_TAG_GRANTED = 21,      /* number: nanoseconds since 1970 UTC */
    WIRE_TAG_EXPIRES = 22,      /* maybe: nanoseconds since 1970 UTC */
    WIRE_TAG_VENDORS = 23,      /* number: a set of 1 << enum vendor */
    WIRE_TAG_SOCKET = 24,       /* text */
    WIRE_TAG_POOL = 25,         /* text */
    WIRE_TAG_VERSION_TEXT = 26, /* text */
    WIRE_TAG_PID = 27,          /* number */
    WIRE_TAG_FORCE_AT = 28,     /* number: nanoseconds since 1970 UTC */
    WIRE_TAG_END = 29,          /* number: enum lease_end */
    WIRE_TAG_EXIT_CODE = 30,    /* maybe: 0 to 255 */
    WIRE_TAG_CAPACITY = 31,     /* number */
    WIRE_TAG_PENDING = 32,      /* number */
    WIRE_TAG_TIME = 33,         /* number: nanoseconds since 1970 UTC */
    WIRE_TAG_SLOTS = 34,        /* items: enum wire_slot_tag */
    WIRE_TAG_LEASES = 35,       /* items: enum wire_lease_tag */
    WIRE_TAG_CLAIMS = 36,       /* items: enum wire_claim_tag */
    WIRE_TAG_PROBLEMS = 37,     /* items: enum problem_tag */
    WIRE_TAG_DEVICE_IDS = 38,   /* ids */
    WIRE_TAG_STARTED = 39,      /* number: clock ticks since boot */
    WIRE_TAG_PRESENT = 40,      /* flag */
    WIRE_TAG_STAY = 41,         /* flag */
    WIRE_TAG_MPS_ROOT = 42,     /* text */
    WIRE_TAG_EPOCH = 43,        /* number */
    WIRE_TAG_KINDS = 44,        /* number: a set of enum wire_news */
    WIRE_TAG_SECTIONS = 45,     /* number: a set of 1 << enum wire_section */
    WIRE_TAG_HISTORY = 46,      /* text */
    WIRE_TAG_ENDED = 47,        /* items: enum wire_ended_tag */
    WIRE_TAG_LOST = 48,         /* number */
    WIRE_TAG_TALLY = 49,        /* fields: enum wire_tally_tag */
};

enum wire_slot_tag {
    WIRE_SLOT_DEVICE = 1,       /* fields: enum device_tag; required */
    WIRE_SLOT_STATE = 2,        /* number: enum slot_state */
    WIRE_SLOT_SHARING = 3,      /* number: enum sharing */
    WIRE_SLOT_TENANTS = 4,      /* number */
    WIRE_SLOT_SHARE_USED = 5,   /* number: millionths */
    WIRE_SLOT_MEMORY_USED = 6,  /* number: bytes */
    WIRE_SLOT_BLOCKS = 7,       /* number: a set of enum slot_block */
    WIRE_SLOT_REASON = 8,       /* text */
    WIRE_SLOT_REASON_UID = 9,   /* maybe */
    WIRE_SLOT_REASON_TIME = 10, /* number: nanoseconds since 1970 UTC */
    WIRE_SLOT_NAME_UID = 11,    /* maybe */
    WIRE_SLOT_NAME_PID = 12,    /* maybe */
};

enum wire_lease_tag {
    WIRE_LEASE_ID = 1,             /* number */
    WIRE_LEASE_PARENT = 2,         /* number */
    WIRE_LEASE_UID = 3,            /* number */
    WIRE_LEASE_PID = 4,            /* number */
    WIRE_LEASE_NAME = 5,           /* text */
    WIRE_LEASE_COMMAND = 6,        /* text */
    WIRE_LEASE_DEVICES = 7,        /* ids */
    WIRE_LEASE_REPLICAS = 8,       /* number; 1 by default */
    WIRE_LEASE_SHARE = 9,          /* number: millionths; the whole device by default */
    WIRE_LEASE_MEMORY = 10,        /* maybe: bytes */
    WIRE_LEASE_SHARING = 11,       /* number: enum sharing */
    WIRE_LEASE_PRIORITY = 12,      /* number: enum priority */
    WIRE_LEASE_OPPORTUNISTIC = 13, /* flag */
    WIRE_LEASE_DRAINING = 14,      /* flag */
    WIRE_LEASE_GRANTED = 15,       /* number: nanoseconds since 1970 UTC */
    WIRE_LEASE_SINCE = 16,         /* number: nanoseconds since 1970 UTC */
    WIRE_LEASE_EXPIRES = 17,       /* maybe: nanoseconds since 1970 UTC */
    WIRE_LEASE_FORCE_AT = 18,      /* maybe: nanoseconds since 1970 UTC */
    WIRE_LEASE_END = 19,           /* number: enum lease_end */
    WIRE_LEASE_IDLE = 20,          /* maybe: nanoseconds */
    WIRE_LEASE_IDLE_WARNED = 21,   /* flag */
    WIRE_LEASE_ADOPTED = 22,       /* flag */
    WIRE_LEASE_PREPARING = 23,     /* flag */
    WIRE_LEASE_JUDGED_TIME = 24,   /* number: nanoseconds */
    WIRE_LEASE_IDLE_TIME = 25,     /* number: nanoseconds */
};

enum wire_ended_tag {
    WIRE_ENDED_LEASE = 1,     /* fields: enum wire_lease_tag; required */
    WIRE_ENDED_END = 2,       /* number: enum lease_end */
    WIRE_ENDED_TIME = 3,      /* number: nanoseconds since 1970 UTC */
    WIRE_ENDED_EXIT_CODE = 4, /* maybe: 0 to 255 */
};

enum wire_tally_tag {
    WIRE_TALLY_GRANTED = 1,    /* number */
    WIRE_TALLY_IMPOSSIBLE = 2, /* number */
    WIRE_TALLY_REFUSED = 3,    /* number */
    WIRE_TALLY_BUSY = 4,       /* number */
    WIRE_TALLY_TIMED_OUT = 5,  /* number */
    WIRE_TALLY_CANCELLED = 6,  /* number */
    WIRE_TALLY_WAITED = 7,     /* fields: enum wire_histogram_tag */
    WIRE_TALLY_HELD = 8,       /* fields: enum wire_histogram_tag */
};

enum wire_histogram_tag {
    WIRE_HISTOGRAM_SUM = 1,   /* number: nanoseconds */
    WIRE_HISTOGRAM_COUNT = 2, /* number; the next counts have the next tags */
};

enum wire_claim_tag {
    WIRE_CLAIM_ID = 1,             /* number */
    WIRE_CLAIM_PARENT = 2,         /* number */
    WIRE_CLAIM_UID = 3,            /* number */
    WIRE_CLAIM_PID = 4,            /* number */
    WIRE_CLAIM_POSITION = 5,       /* number */
    WIRE_CLAIM_NAME = 6,           /* text */
    WIRE_CLAIM_COMMAND = 7,        /* text */
    WIRE_CLAIM_REQUEST = 8,        /* text */
    WIRE_CLAIM_SINCE = 9,          /* number: nanoseconds since 1970 UTC */
    WIRE_CLAIM_WHY = 10,           /* text */
    WIRE_CLAIM_ESTIMATE = 11,      /* maybe: nanoseconds from now */
    WIRE_CLAIM_PRIORITY = 12,      /* number: enum priority */
    WIRE_CLAIM_OPPORTUNISTIC = 13, /* flag */
};

/* struct wire_message without type and number. */
extern const struct tagged_table wire_tagged;

/* Returns the tags that a type uses: bits 1 << enum wire_tag; none for an unknown type. */
uint64_t wire_tables_type_tags(enum wire_type type);

#endif
