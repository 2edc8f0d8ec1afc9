/* SPDX-License-Identifier: Apache-2.0
 *
 * Which member goes by which tag.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/count.h"
#include "codec/request_tags.h"
#include "engine/event.h"
#include "engine/journal/journal.h"
#include "engine/journal/journal_tables.h"
#include "model/device.h"

/* The enums that are written: their values never change. The largest of each is the limit in the
 * tables below, to be moved when one is appended. */
_Static_assert(HEALTH_UNKNOWN == 0 && HEALTH_OK == 1 && HEALTH_SICK == 2,
               "kinds of health are part of the format");
_Static_assert(EVENT_RETURNED == 16 && REFUSAL_PARENT_ENDED == 4 && BLOCK_ALL == 0x1F,
               "what events say is part of the format");

static const struct tagged_field party_fields[] = {
    [JOURNAL_PARTY_UID] = {TAGGED_NUMBER(party, uid, UINT32_MAX)},
    [JOURNAL_PARTY_GROUPS] = {TAGGED_MEMBER(party, groups, list), .max = JOURNAL_GROUPS_MAX,
                              TAGGED_COUNTED_BY(party, group_count)},
    [JOURNAL_PARTY_MASK] = {TAGGED_MEMBER(party, mask, maybe_ids), .max = DEVICE_ID_LIST_MAX},
    [JOURNAL_PARTY_PARENT] = {TAGGED_NUMBER(party, parent, UINT64_MAX)},
};
_Static_assert(COUNT(party_fields) <= 64, "tags seen are bits of 64");

static struct tagged_digest party_table_digest;

static const struct tagged_table party_table = {
    .digest = &party_table_digest,
    .fields = party_fields,
    .count = COUNT(party_fields),
    .size = sizeof(struct party),
};

static const struct tagged_field event_fields[] = {
    [JOURNAL_CLAIM] = {TAGGED_NUMBER(engine_event, claim, UINT64_MAX)},
    [JOURNAL_LEASE] = {TAGGED_NUMBER(engine_event, lease, UINT64_MAX)},
    [JOURNAL_REQUEST] = {TAGGED_NUMBER(engine_event, request, UINT64_MAX)},
    [JOURNAL_WHAT] = {TAGGED_MEMBER(engine_event, what, inner), .inner = &request_tagged},
    [JOURNAL_PARTY] = {TAGGED_MEMBER(engine_event, party, inner), .inner = &party_table},
    [JOURNAL_SLOTS] = {TAGGED_MEMBER(engine_event, slots, list), .max = JOURNAL_SLOTS_MAX,
                       TAGGED_COUNTED_BY(engine_event, slot_count)},
    [JOURNAL_REPLICAS] = {TAGGED_NUMBER(engine_event, replicas, UINT32_MAX), .default_value = 1,
                          .default_types = EVENT_BIT(EVENT_GRANTED)},
    [JOURNAL_EXPIRES] = {TAGGED_NUMBER(engine_event, expires, UINT64_MAX),
                         .default_value = TIME_NEVER,
                         .default_types = EVENT_BIT(EVENT_GRANTED) | EVENT_BIT(EVENT_NOTICE) |
                                          EVENT_BIT(EVENT_EXTENDED)},
    [JOURNAL_DEADLINE] = {TAGGED_NUMBER(engine_event, deadline, UINT64_MAX),
                          .default_value = TIME_NEVER,
                          .default_types = EVENT_BIT(EVENT_QUEUED) | EVENT_BIT(EVENT_RETURNED)},
    [JOURNAL_REASON] = {TAGGED_NUMBER(engine_event, reason, REFUSAL_PARENT_ENDED)},
    [JOURNAL_SLOT] = {TAGGED_NUMBER(engine_event, slot, UINT32_MAX)},
    [JOURNAL_BLOCKS] = {TAGGED_NUMBER(engine_event, blocks, BLOCK_ALL)},
    [JOURNAL_HEALTH] = {TAGGED_NUMBER(engine_event, health, HEALTH_SICK)},
    [JOURNAL_PRESENT] = {TAGGED_NUMBER(engine_event, present, true)},
    [JOURNAL_WAITED] = {TAGGED_NUMBER(engine_event, waited, true), .default_value = true,
                        .default_types = EVENT_BIT(EVENT_GRANTED)},
    [JOURNAL_STAMP] = {TAGGED_NUMBER(engine_event, stamp, UINT64_MAX)},
    [JOURNAL_SERVED] = {TAGGED_NUMBER(engine_event, served, UINT64_MAX)},
    [JOURNAL_AFFINITY] = {TAGGED_NUMBER(engine_event, affinity, UINT64_MAX)},
    [JOURNAL_SHARE] = {TAGGED_NUMBER(engine_event, share, SHARE_WHOLE)},
};
_Static_assert(COUNT(event_fields) <= 64, "tags seen are bits of 64");

static struct tagged_digest journal_event_table_digest;

const struct tagged_table journal_event_table = {
    .digest = &journal_event_table_digest,
    .fields = event_fields,
    .count = COUNT(event_fields),
    .size = sizeof(struct engine_event),
};
