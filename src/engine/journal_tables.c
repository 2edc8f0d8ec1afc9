/* SPDX-License-Identifier: Apache-2.0
 *
 * Which member goes by which tag.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/count.h"
#include "engine/event.h"
#include "engine/journal.h"
#include "engine/journal_fields.h"
#include "model/device.h"

/* The enums that are written: their values never change. The largest of each is the limit in the
 * tables below, to be moved when one is appended. */
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
_Static_assert(HEALTH_UNKNOWN == 0 && HEALTH_OK == 1 && HEALTH_SICK == 2,
               "kinds of health are part of the format");
_Static_assert(EVENT_COUNTERS == 15 && REFUSAL_PARENT_ENDED == 4 && BLOCK_ALL == 0x1F,
               "what events say is part of the format");

/* What every row says of a member. */
#define MEMBER(type, member, kind_name) \
    .name = #member, .kind = &journal_##kind_name, .offset = offsetof(struct type, member)
#define NUMBER(type, member, largest) \
    MEMBER(type, member, number), .size = sizeof(((struct type *)NULL)->member), .most = (largest)
#define COUNTED_BY(type, member)                   \
    .count_offset = offsetof(struct type, member), \
    .count_size = sizeof(((struct type *)NULL)->member)

static const struct journal_field request_fields[] = {
    [JOURNAL_REQUEST_LEAST] = {NUMBER(request, gpus.least, UINT32_MAX), .by_default = 1},
    [JOURNAL_REQUEST_MOST] = {NUMBER(request, gpus.most, UINT32_MAX), .by_default = 1},
    [JOURNAL_REQUEST_ALL] = {NUMBER(request, gpus.all, true)},
    [JOURNAL_REQUEST_REPLICAS] = {NUMBER(request, replicas, UINT32_MAX), .by_default = 1},
    [JOURNAL_REQUEST_WANTED] = {MEMBER(request, wanted, ids), .most = DEVICE_ID_LIST_MOST},
    [JOURNAL_REQUEST_AVOIDED] = {MEMBER(request, avoided, ids), .most = DEVICE_ID_LIST_MOST},
    [JOURNAL_REQUEST_VENDOR_RULE] = {NUMBER(request, vendor_rule, VENDOR_RULE_EXACT)},
    [JOURNAL_REQUEST_VENDOR] = {NUMBER(request, vendor, VENDOR_DRI)},
    [JOURNAL_REQUEST_MODEL] = {MEMBER(request, model, text), .most = REQUEST_TEXT_LONGEST},
    [JOURNAL_REQUEST_MIN_FREE] = {MEMBER(request, min_free, maybe), .most = UINT64_MAX},
    [JOURNAL_REQUEST_MIN_MEMORY] = {MEMBER(request, min_memory, maybe), .most = UINT64_MAX},
    [JOURNAL_REQUEST_MIN_CAP] = {MEMBER(request, min_cap, capability), .most = UINT32_MAX},
    [JOURNAL_REQUEST_SHARING] = {NUMBER(request, sharing, SHARING_TIME_SLICE)},
    [JOURNAL_REQUEST_SHARE] = {MEMBER(request, share, maybe), .most = UINT64_MAX},
    [JOURNAL_REQUEST_MEMORY] = {MEMBER(request, memory, maybe), .most = UINT64_MAX},
    [JOURNAL_REQUEST_SCHEDULING] = {NUMBER(request, scheduling, SCHEDULING_SPREAD)},
    [JOURNAL_REQUEST_PRIORITY] = {NUMBER(request, priority, PRIORITY_HIGH)},
    [JOURNAL_REQUEST_POLICY] = {MEMBER(request, policy, text), .most = REQUEST_TEXT_LONGEST},
    [JOURNAL_REQUEST_AFFINITY] = {MEMBER(request, affinity, text), .most = REQUEST_TEXT_LONGEST},
    [JOURNAL_REQUEST_OPPORTUNISTIC] = {NUMBER(request, opportunistic, true)},
    [JOURNAL_REQUEST_RANKS] = {NUMBER(request, ranks, true)},
    [JOURNAL_REQUEST_OR_CPU] = {NUMBER(request, or_cpu, true)},
    [JOURNAL_REQUEST_NONBLOCK] = {NUMBER(request, nonblock, true)},
    [JOURNAL_REQUEST_WAIT] = {MEMBER(request, wait, maybe), .most = UINT64_MAX},
    [JOURNAL_REQUEST_TIME] = {MEMBER(request, time, maybe), .most = UINT64_MAX},
    [JOURNAL_REQUEST_NAME] = {MEMBER(request, name, text), .most = REQUEST_TEXT_LONGEST},
    [JOURNAL_REQUEST_CPUS] = {MEMBER(request, cpus, maybe), .most = UINT64_MAX},
    [JOURNAL_REQUEST_HOST_MEMORY] = {MEMBER(request, host_memory, maybe), .most = UINT64_MAX},
};
_Static_assert(COUNT(request_fields) <= 64, "tags seen are bits of 64");

static const struct journal_table request_table = {
    .fields = request_fields,
    .count = COUNT(request_fields),
    .size = sizeof(struct request),
};

static const struct journal_field party_fields[] = {
    [JOURNAL_PARTY_UID] = {NUMBER(party, uid, UINT32_MAX)},
    [JOURNAL_PARTY_GROUPS] = {MEMBER(party, groups, list), .most = JOURNAL_GROUPS_MOST,
                              COUNTED_BY(party, group_count)},
    [JOURNAL_PARTY_MASK] = {MEMBER(party, mask, maybe_ids), .most = DEVICE_ID_LIST_MOST},
    [JOURNAL_PARTY_PARENT] = {NUMBER(party, parent, UINT64_MAX)},
};
_Static_assert(COUNT(party_fields) <= 64, "tags seen are bits of 64");

static const struct journal_table party_table = {
    .fields = party_fields,
    .count = COUNT(party_fields),
    .size = sizeof(struct party),
};

static const struct journal_field event_fields[] = {
    [JOURNAL_CLAIM] = {NUMBER(engine_event, claim, UINT64_MAX)},
    [JOURNAL_LEASE] = {NUMBER(engine_event, lease, UINT64_MAX)},
    [JOURNAL_REQUEST] = {NUMBER(engine_event, request, UINT64_MAX)},
    [JOURNAL_WHAT] = {MEMBER(engine_event, what, inner), .inner = &request_table},
    [JOURNAL_PARTY] = {MEMBER(engine_event, party, inner), .inner = &party_table},
    [JOURNAL_SLOTS] = {MEMBER(engine_event, slots, list), .most = JOURNAL_SLOTS_MOST,
                       COUNTED_BY(engine_event, slot_count)},
    [JOURNAL_REPLICAS] = {NUMBER(engine_event, replicas, UINT32_MAX), .by_default = 1,
                          .default_types = EVENT_BIT(EVENT_GRANTED)},
    [JOURNAL_EXPIRES] = {NUMBER(engine_event, expires, UINT64_MAX), .by_default = TIME_NEVER,
                         .default_types = EVENT_BIT(EVENT_GRANTED) | EVENT_BIT(EVENT_NOTICE) |
                                          EVENT_BIT(EVENT_EXTENDED)},
    [JOURNAL_DEADLINE] = {NUMBER(engine_event, deadline, UINT64_MAX), .by_default = TIME_NEVER,
                          .default_types = EVENT_BIT(EVENT_QUEUED)},
    [JOURNAL_REASON] = {NUMBER(engine_event, reason, REFUSAL_PARENT_ENDED)},
    [JOURNAL_SLOT] = {NUMBER(engine_event, slot, UINT32_MAX)},
    [JOURNAL_BLOCKS] = {NUMBER(engine_event, blocks, BLOCK_ALL)},
    [JOURNAL_HEALTH] = {NUMBER(engine_event, health, HEALTH_SICK)},
    [JOURNAL_PRESENT] = {NUMBER(engine_event, present, true)},
    [JOURNAL_WAITED] = {NUMBER(engine_event, waited, true), .by_default = true,
                        .default_types = EVENT_BIT(EVENT_GRANTED)},
    [JOURNAL_STAMP] = {NUMBER(engine_event, stamp, UINT64_MAX)},
    [JOURNAL_SERVED] = {NUMBER(engine_event, served, UINT64_MAX)},
    [JOURNAL_AFFINITY] = {NUMBER(engine_event, affinity, UINT64_MAX)},
};
_Static_assert(COUNT(event_fields) <= 64, "tags seen are bits of 64");

const struct journal_table journal_event_table = {
    .fields = event_fields,
    .count = COUNT(event_fields),
    .size = sizeof(struct engine_event),
};
