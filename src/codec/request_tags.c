/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/request_tags.h"

#include "base/count.h"
#include "model/request.h"

/* The values of encoded enums never change. The largest value of each enum is the limit in the
 * table below; raise it when a value is appended. */
_Static_assert(VENDOR_NVIDIA == 0 && VENDOR_AMD == 1 && VENDOR_INTEL == 2 && VENDOR_APPLE == 3 &&
                   VENDOR_DRI == 4,
               "vendors are part of the format");
_Static_assert(VENDOR_RULE_ONE == 0 && VENDOR_RULE_MIXED == 1 && VENDOR_RULE_EXACT == 2,
               "vendor rules are part of the format");
_Static_assert(SHARING_EXCLUSIVE == 0 && SHARING_MPS == 1 && SHARING_TIME_SLICE == 2,
               "kinds of sharing are part of the format");
_Static_assert(SCHEDULING_UNSAID == 0 && SCHEDULING_BEST_EFFORT == 1 && SCHEDULING_GANG == 2 &&
                   SCHEDULING_SPREAD == 3,
               "kinds of scheduling are part of the format");
_Static_assert(PRIORITY_UNSAID == 0 && PRIORITY_LOW == 1 && PRIORITY_NORMAL == 2 &&
                   PRIORITY_HIGH == 3,
               "priorities are part of the format");

static const struct tagged_field request_fields[] = {
    [REQUEST_TAG_GPUS_MIN] = {TAGGED_NUMBER(request, gpus.min, UINT32_MAX), .default_value = 1},
    [REQUEST_TAG_GPUS_MAX] = {TAGGED_NUMBER(request, gpus.max, UINT32_MAX), .default_value = 1},
    [REQUEST_TAG_ALL] = {TAGGED_NUMBER(request, gpus.all, true)},
    [REQUEST_TAG_REPLICAS] = {TAGGED_NUMBER(request, replicas, UINT32_MAX), .default_value = 1},
    [REQUEST_TAG_WANTED] = {TAGGED_MEMBER(request, wanted, ids), .max = DEVICE_ID_LIST_MAX},
    [REQUEST_TAG_AVOIDED] = {TAGGED_MEMBER(request, avoided, ids), .max = DEVICE_ID_LIST_MAX},
    [REQUEST_TAG_VENDOR_RULE] = {TAGGED_NUMBER(request, vendor_rule, VENDOR_RULE_EXACT)},
    [REQUEST_TAG_VENDOR] = {TAGGED_NUMBER(request, vendor, VENDOR_DRI)},
    [REQUEST_TAG_MODEL] = {TAGGED_MEMBER(request, model, text), .max = REQUEST_TEXT_MAX},
    [REQUEST_TAG_MIN_FREE] = {TAGGED_MEMBER(request, min_free, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_MIN_MEMORY] = {TAGGED_MEMBER(request, min_memory, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_MIN_CAP] = {TAGGED_MEMBER(request, min_cap, capability), .max = UINT32_MAX},
    [REQUEST_TAG_SHARING] = {TAGGED_NUMBER(request, sharing, SHARING_TIME_SLICE)},
    [REQUEST_TAG_SHARE] = {TAGGED_MEMBER(request, share, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_MEMORY] = {TAGGED_MEMBER(request, memory, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_SCHEDULING] = {TAGGED_NUMBER(request, scheduling, SCHEDULING_SPREAD)},
    [REQUEST_TAG_PRIORITY] = {TAGGED_NUMBER(request, priority, PRIORITY_HIGH)},
    [REQUEST_TAG_POLICY] = {TAGGED_MEMBER(request, policy, text), .max = REQUEST_TEXT_MAX},
    [REQUEST_TAG_AFFINITY] = {TAGGED_MEMBER(request, affinity, text), .max = REQUEST_TEXT_MAX},
    [REQUEST_TAG_OPPORTUNISTIC] = {TAGGED_NUMBER(request, opportunistic, true)},
    [REQUEST_TAG_RANKS] = {TAGGED_NUMBER(request, ranks, true)},
    [REQUEST_TAG_OR_CPU] = {TAGGED_NUMBER(request, or_cpu, true)},
    [REQUEST_TAG_NONBLOCK] = {TAGGED_NUMBER(request, nonblock, true)},
    [REQUEST_TAG_WAIT] = {TAGGED_MEMBER(request, wait, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_TIME] = {TAGGED_MEMBER(request, time, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_NAME] = {TAGGED_MEMBER(request, name, text), .max = REQUEST_TEXT_MAX},
    [REQUEST_TAG_CPUS] = {TAGGED_MEMBER(request, cpus, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_HOST_MEMORY] = {TAGGED_MEMBER(request, host_memory, maybe), .max = UINT64_MAX},
    [REQUEST_TAG_MPS_PIPE_DIR] = {TAGGED_MEMBER(request, mps_pipe_dir, text),
                                  .max = REQUEST_TEXT_MAX},
    [REQUEST_TAG_MPS_LOG_DIR] = {TAGGED_MEMBER(request, mps_log_dir, text),
                                 .max = REQUEST_TEXT_MAX},
};
_Static_assert(COUNT(request_fields) <= 64, "tags seen are bits of 64");

const struct tagged_table request_tagged = TAGGED_TABLE(request, request_fields);
