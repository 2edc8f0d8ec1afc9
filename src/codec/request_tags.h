/* SPDX-License-Identifier: Apache-2.0
 *
 * A request as tagged fields (codec/tagged.h).
 */
#ifndef CODEC_REQUEST_TAGS_H
#define CODEC_REQUEST_TAGS_H

#include "codec/tagged.h"

/* Never renumber, only append. */
enum request_tag {
    REQUEST_TAG_GPUS_MIN = 1,       /* number; 1 by default */
    REQUEST_TAG_GPUS_MAX = 2,       /* number; 1 by default */
    REQUEST_TAG_ALL = 3,            /* flag */
    REQUEST_TAG_REPLICAS = 4,       /* number; 1 by default */
    REQUEST_TAG_WANTED = 5,         /* ids */
    REQUEST_TAG_AVOIDED = 6,        /* ids */
    REQUEST_TAG_VENDOR_RULE = 7,    /* number: enum vendor_rule */
    REQUEST_TAG_VENDOR = 8,         /* number: enum vendor */
    REQUEST_TAG_MODEL = 9,          /* text */
    REQUEST_TAG_MIN_FREE = 10,      /* maybe */
    REQUEST_TAG_MIN_MEMORY = 11,    /* maybe */
    REQUEST_TAG_MIN_CAP = 12,       /* maybe: major * 65536 + minor */
    REQUEST_TAG_SHARING = 13,       /* number: enum sharing */
    REQUEST_TAG_SHARE = 14,         /* maybe */
    REQUEST_TAG_MEMORY = 15,        /* maybe */
    REQUEST_TAG_SCHEDULING = 16,    /* number: enum scheduling */
    REQUEST_TAG_PRIORITY = 17,      /* number: enum priority */
    REQUEST_TAG_POLICY = 18,        /* text */
    REQUEST_TAG_AFFINITY = 19,      /* text */
    REQUEST_TAG_OPPORTUNISTIC = 20, /* flag */
    REQUEST_TAG_RANKS = 21,         /* flag */
    REQUEST_TAG_OR_CPU = 22,        /* flag */
    REQUEST_TAG_NONBLOCK = 23,      /* flag */
    REQUEST_TAG_WAIT = 24,          /* maybe */
    REQUEST_TAG_TIME = 25,          /* maybe */
    REQUEST_TAG_NAME = 26,          /* text */
    REQUEST_TAG_CPUS = 27,          /* maybe */
    REQUEST_TAG_HOST_MEMORY = 28,   /* maybe */
    REQUEST_TAG_MPS_PIPE_DIR = 29,  /* text */
    REQUEST_TAG_MPS_LOG_DIR = 30,   /* text */
};

/* struct request. The caller finishes a decoded request with tagged_finish or request_finish. */
extern const struct tagged_table request_tagged;

#endif
