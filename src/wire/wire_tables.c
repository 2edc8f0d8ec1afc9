/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire_tables.h"

#include "base/count.h"
#include "codec/device_tags.h"
#include "codec/request_tags.h"
#include "wire/wire.h"

/* Enums that the daemon sends and clients only show (state, end, sharing, priority) may have any
 * value, because a newer daemon may add values. Enums that the daemon acts on (hold, those of the
 * request) must be known. */
_Static_assert(SLOT_STATE_GONE == 9 && LEASE_END_IDLE == 10 && LEASE_HOLD_NOTHING == 2 &&
                   WIRE_SECTION_QUEUE == 3 && WIRE_FOLLOW == 13 && WIRE_NEWS == 74 &&
                   SLOT_BLOCK_ELSEWHERE == 8 && WIRE_NEWS_ALL == 15 && HISTOGRAM_BUCKETS == 13,
               "the values of these enums are part of the format");

static const struct tagged_field slot_fields[] = {
    [WIRE_SLOT_DEVICE] = {TAGGED_MEMBER(slot_info, device, inner), .required = true,
                          .inner = &device_tagged},
    [WIRE_SLOT_STATE] = {TAGGED_NUMBER(slot_info, state, UINT32_MAX)},
    [WIRE_SLOT_SHARING] = {TAGGED_NUMBER(slot_info, sharing, UINT32_MAX)},
    [WIRE_SLOT_TENANTS] = {TAGGED_NUMBER(slot_info, tenants, UINT32_MAX)},
    [WIRE_SLOT_SHARE_USED] = {TAGGED_NUMBER(slot_info, share_used, UINT32_MAX)},
    [WIRE_SLOT_MEMORY_USED] = {TAGGED_NUMBER(slot_info, memory_used, UINT64_MAX)},
    [WIRE_SLOT_BLOCKS] = {TAGGED_NUMBER(slot_info, blocks, UINT32_MAX)},
    [WIRE_SLOT_REASON] = {TAGGED_MEMBER(slot_info, reason, words), .max = WIRE_TEXT_MAX},
    [WIRE_SLOT_REASON_UID] = {TAGGED_MEMBER(slot_info, reason_uid, maybe), .max = UINT32_MAX},
    [WIRE_SLOT_REASON_TIME] = {TAGGED_NUMBER(slot_info, reason_time, UINT64_MAX)},
    [WIRE_SLOT_NAME_UID] = {TAGGED_MEMBER(slot_info, name_uid, maybe), .max = UINT32_MAX},
    [WIRE_SLOT_NAME_PID] = {TAGGED_MEMBER(slot_info, name_pid, maybe), .max = INT32_MAX},
};
_Static_assert(COUNT(slot_fields) <= 64, "tags seen are bits of 64");

static const struct tagged_table slot_table = TAGGED_TABLE(slot_info, slot_fields);

static const struct tagged_field lease_fields[] = {
    [WIRE_LEASE_ID] = {TAGGED_NUMBER(lease_info, id, UINT64_MAX)},
    [WIRE_LEASE_PARENT] = {TAGGED_NUMBER(lease_info, parent, UINT64_MAX)},
    [WIRE_LEASE_UID] = {TAGGED_NUMBER(lease_info, uid, UINT32_MAX)},
    [WIRE_LEASE_PID] = {TAGGED_NUMBER(lease_info, pid, INT32_MAX)},
    [WIRE_LEASE_NAME] = {TAGGED_MEMBER(lease_info, name, words), .max = WIRE_TEXT_MAX},
    [WIRE_LEASE_COMMAND] = {TAGGED_MEMBER(lease_info, command, words), .max = WIRE_TEXT_MAX},
    [WIRE_LEASE_DEVICES] = {TAGGED_MEMBER(lease_info, devices, ids), .max = DEVICE_ID_LIST_MAX},
    [WIRE_LEASE_REPLICAS] = {TAGGED_NUMBER(lease_info, replicas, UINT32_MAX), .default_value = 1},
    [WIRE_LEASE_SHARE] = {TAGGED_NUMBER(lease_info, share, UINT32_MAX),
                          .default_value = SHARE_WHOLE},
    [WIRE_LEASE_MEMORY] = {TAGGED_MEMBER(lease_info, memory, maybe), .max = UINT64_MAX},
    [WIRE_LEASE_SHARING] = {TAGGED_NUMBER(lease_info, sharing, UINT32_MAX)},
    [WIRE_LEASE_PRIORITY] = {TAGGED_NUMBER(lease_info, priority, UINT32_MAX)},
    [WIRE_LEASE_OPPORTUNISTIC] = {TAGGED_NUMBER(lease_info, opportunistic, true)},
    [WIRE_LEASE_DRAINING] = {TAGGED_NUMBER(lease_info, draining, true)},
    [WIRE_LEASE_GRANTED] = {TAGGED_NUMBER(lease_info, granted, UINT64_MAX)},
    [WIRE_LEASE_SINCE] = {TAGGED_NUMBER(lease_info, since, UINT64_MAX)},
    [WIRE_LEASE_EXPIRES] = {TAGGED_MEMBER(lease_info, expires, maybe), .max = UINT64_MAX},
    [WIRE_LEASE_FORCE_AT] = {TAGGED_MEMBER(lease_info, force_at, maybe), .max = UINT64_MAX},
    [WIRE_LEASE_END] = {TAGGED_NUMBER(lease_info, end, UINT32_MAX)},
    [WIRE_LEASE_IDLE] = {TAGGED_MEMBER(lease_info, idle, maybe), .max = UINT64_MAX},
    [WIRE_LEASE_IDLE_WARNED] = {TAGGED_NUMBER(lease_info, idle_warned, true)},
    [WIRE_LEASE_ADOPTED] = {TAGGED_NUMBER(lease_info, adopted, true)},
    [WIRE_LEASE_PREPARING] = {TAGGED_NUMBER(lease_info, preparing, true)},
    [WIRE_LEASE_JUDGED_TIME] = {TAGGED_NUMBER(lease_info, judged_time, UINT64_MAX)},
    [WIRE_LEASE_IDLE_TIME] = {TAGGED_NUMBER(lease_info, idle_time, UINT64_MAX)},
};
_Static_assert(COUNT(lease_fields) <= 64, "tags seen are bits of 64");

static const struct tagged_table lease_table = TAGGED_TABLE(lease_info, lease_fields);

static const struct tagged_field claim_fields[] = {
    [WIRE_CLAIM_ID] = {TAGGED_NUMBER(claim_info, id, UINT64_MAX)},
    [WIRE_CLAIM_PARENT] = {TAGGED_NUMBER(claim_info, parent, UINT64_MAX)},
    [WIRE_CLAIM_UID] = {TAGGED_NUMBER(claim_info, uid, UINT32_MAX)},
    [WIRE_CLAIM_PID] = {TAGGED_NUMBER(claim_info, pid, INT32_MAX)},
    [WIRE_CLAIM_POSITION] = {TAGGED_NUMBER(claim_info, position, UINT32_MAX)},
    [WIRE_CLAIM_NAME] = {TAGGED_MEMBER(claim_info, name, words), .max = WIRE_TEXT_MAX},
    [WIRE_CLAIM_COMMAND] = {TAGGED_MEMBER(claim_info, command, words), .max = WIRE_TEXT_MAX},
    [WIRE_CLAIM_REQUEST] = {TAGGED_MEMBER(claim_info, request, words), .max = WIRE_TEXT_MAX},
    [WIRE_CLAIM_SINCE] = {TAGGED_NUMBER(claim_info, since, UINT64_MAX)},
    [WIRE_CLAIM_WHY] = {TAGGED_MEMBER(claim_info, why, words), .max = WIRE_TEXT_MAX},
    [WIRE_CLAIM_ESTIMATE] = {TAGGED_MEMBER(claim_info, estimate, maybe), .max = UINT64_MAX},
    [WIRE_CLAIM_PRIORITY] = {TAGGED_NUMBER(claim_info, priority, UINT32_MAX)},
    [WIRE_CLAIM_OPPORTUNISTIC] = {TAGGED_NUMBER(claim_info, opportunistic, true)},
};
_Static_assert(COUNT(claim_fields) <= 64, "tags seen are bits of 64");

static const struct tagged_table claim_table = TAGGED_TABLE(claim_info, claim_fields);

static const struct tagged_field ended_fields[] = {
    [WIRE_ENDED_LEASE] = {TAGGED_MEMBER(ended_lease, lease, inner), .required = true,
                          .inner = &lease_table},
    [WIRE_ENDED_END] = {TAGGED_NUMBER(ended_lease, end, UINT32_MAX)},
    [WIRE_ENDED_TIME] = {TAGGED_NUMBER(ended_lease, time, UINT64_MAX)},
    [WIRE_ENDED_EXIT_CODE] = {TAGGED_MEMBER(ended_lease, exit_code, maybe), .max = UINT8_MAX},
};

static const struct tagged_table ended_table = TAGGED_TABLE(ended_lease, ended_fields);

#define HISTOGRAM_COUNT(i) \
    [WIRE_HISTOGRAM_COUNT + (i)] = {TAGGED_NUMBER(duration_histogram, counts[i], UINT64_MAX)}

static const struct tagged_field histogram_fields[] = {
    [WIRE_HISTOGRAM_SUM] = {TAGGED_NUMBER(duration_histogram, sum, UINT64_MAX)},
    HISTOGRAM_COUNT(0),
    HISTOGRAM_COUNT(1),
    HISTOGRAM_COUNT(2),
    HISTOGRAM_COUNT(3),
    HISTOGRAM_COUNT(4),
    HISTOGRAM_COUNT(5),
    HISTOGRAM_COUNT(6),
    HISTOGRAM_COUNT(7),
    HISTOGRAM_COUNT(8),
    HISTOGRAM_COUNT(9),
    HISTOGRAM_COUNT(10),
    HISTOGRAM_COUNT(11),
    HISTOGRAM_COUNT(12),
};
_Static_assert(COUNT(histogram_fields) == WIRE_HISTOGRAM_COUNT + HISTOGRAM_BUCKETS,
               "each bucket needs a tag");

static const struct tagged_table histogram_table =
    TAGGED_TABLE(duration_histogram, histogram_fields);

static const struct tagged_field tally_fields[] = {
    [WIRE_TALLY_GRANTED] = {TAGGED_NUMBER(pool_tally, granted, UINT64_MAX)},
    [WIRE_TALLY_IMPOSSIBLE] = {TAGGED_NUMBER(pool_tally, impossible, UINT64_MAX)},
    [WIRE_TALLY_REFUSED] = {TAGGED_NUMBER(pool_tally, refused, UINT64_MAX)},
    [WIRE_TALLY_BUSY] = {TAGGED_NUMBER(pool_tally, busy, UINT64_MAX)},
    [WIRE_TALLY_TIMED_OUT] = {TAGGED_NUMBER(pool_tally, timed_out, UINT64_MAX)},
    [WIRE_TALLY_CANCELLED] = {TAGGED_NUMBER(pool_tally, cancelled, UINT64_MAX)},
    [WIRE_TALLY_WAITED] = {TAGGED_MEMBER(pool_tally, waited, inner), .inner = &histogram_table},
    [WIRE_TALLY_HELD] = {TAGGED_MEMBER(pool_tally, held, inner), .inner = &histogram_table},
};

static const struct tagged_table tally_table = TAGGED_TABLE(pool_tally, tally_fields);

/* A member of a struct within the message, whose name is not part of the field's name. */
#define NESTED_MEMBER(within, member, kind_name)  \
    .name = #member, .kind = &tagged_##kind_name, \
    .offset = offsetof(struct wire_message, within.member)
#define NESTED_NUMBER(within, member, largest) \
    NESTED_MEMBER(within, member, number),     \
        .size = sizeof(((struct wire_message *)NULL)->within.member), .max = (largest)

static const struct tagged_field message_fields[] = {
    [WIRE_TAG_ID] = {TAGGED_NUMBER(wire_message, id, UINT64_MAX)},
    [WIRE_TAG_PARENT] = {TAGGED_NUMBER(wire_message, parent, UINT64_MAX)},
    [WIRE_TAG_TOKEN_HIGH] = {TAGGED_NUMBER(wire_message, token[0], UINT64_MAX)},
    [WIRE_TAG_TOKEN_LOW] = {TAGGED_NUMBER(wire_message, token[1], UINT64_MAX)},
    [WIRE_TAG_REQUEST] = {TAGGED_MEMBER(wire_message, request, inner), .inner = &request_tagged},
    [WIRE_TAG_HOLD] = {TAGGED_NUMBER(wire_message, hold, LEASE_HOLD_NOTHING)},
    [WIRE_TAG_RESUME] = {TAGGED_NUMBER(wire_message, resume, true)},
    [WIRE_TAG_MASKS] = {TAGGED_MEMBER(wire_message, masks, strings), .max = WIRE_MASKS_MAX},
    [WIRE_TAG_COMMAND] = {TAGGED_MEMBER(wire_message, command, words), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_INVENTORY] = {NESTED_MEMBER(about, inventory, text), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_DURATION] = {TAGGED_NUMBER(wire_message, duration, UINT64_MAX)},
    [WIRE_TAG_SECTION] = {TAGGED_NUMBER(wire_message, section, UINT32_MAX)},
    [WIRE_TAG_AFTER] = {TAGGED_NUMBER(wire_message, after, UINT64_MAX)},
    [WIRE_TAG_ERROR] = {TAGGED_NUMBER(wire_message, error, UINT32_MAX)},
    [WIRE_TAG_TEXT] = {TAGGED_MEMBER(wire_message, text, words), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_POSITION] = {TAGGED_NUMBER(wire_message, position, UINT32_MAX)},
    [WIRE_TAG_ESTIMATE] = {TAGGED_MEMBER(wire_message, estimate, maybe), .max = UINT64_MAX},
    [WIRE_TAG_DEVICES] = {TAGGED_MEMBER(wire_message, devices, items), .max = WIRE_GRANT_DEVICES,
                          .inner = &device_tagged},
    [WIRE_TAG_REPLICAS] = {TAGGED_NUMBER(wire_message, replicas, UINT32_MAX)},
    [WIRE_TAG_MORE] = {TAGGED_NUMBER(wire_message, more, true)},
    [WIRE_TAG_GRANTED] = {TAGGED_NUMBER(wire_message, granted, UINT64_MAX)},
    [WIRE_TAG_EXPIRES] = {TAGGED_MEMBER(wire_message, expires, maybe), .max = UINT64_MAX},
    [WIRE_TAG_VENDORS] = {TAGGED_NUMBER(wire_message, vendors, UINT32_MAX)},
    [WIRE_TAG_SOCKET] = {NESTED_MEMBER(about, socket, text), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_POOL] = {NESTED_MEMBER(about, pool, text), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_VERSION_TEXT] = {NESTED_MEMBER(about, version_text, words), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_PID] = {TAGGED_NUMBER(wire_message, pid, INT32_MAX)},
    [WIRE_TAG_FORCE_AT] = {TAGGED_NUMBER(wire_message, force_at, UINT64_MAX)},
    [WIRE_TAG_END] = {TAGGED_NUMBER(wire_message, end, UINT32_MAX)},
    [WIRE_TAG_EXIT_CODE] = {TAGGED_MEMBER(wire_message, exit_code, maybe), .max = UINT8_MAX},
    [WIRE_TAG_CAPACITY] = {NESTED_NUMBER(snapshot, capacity, UINT32_MAX)},
    [WIRE_TAG_PENDING] = {NESTED_NUMBER(snapshot, pending, UINT32_MAX)},
    [WIRE_TAG_TIME] = {NESTED_NUMBER(snapshot, time, UINT64_MAX)},
    [WIRE_TAG_SLOTS] = {NESTED_MEMBER(snapshot, slots, items), .max = WIRE_PAGE_ITEMS,
                        .inner = &slot_table},
    [WIRE_TAG_LEASES] = {NESTED_MEMBER(snapshot, leases, items), .max = WIRE_PAGE_ITEMS,
                         .inner = &lease_table},
    [WIRE_TAG_CLAIMS] = {NESTED_MEMBER(snapshot, claims, items), .max = WIRE_PAGE_ITEMS,
                         .inner = &claim_table},
    [WIRE_TAG_PROBLEMS] = {NESTED_MEMBER(snapshot, problems, items), .max = PROBLEMS_MAX,
                           .inner = &problem_tagged},
    [WIRE_TAG_DEVICE_IDS] = {TAGGED_MEMBER(wire_message, device_ids, ids),
                             .max = DEVICE_ID_LIST_MAX},
    [WIRE_TAG_STARTED] = {TAGGED_NUMBER(wire_message, started, UINT64_MAX)},
    [WIRE_TAG_PRESENT] = {TAGGED_NUMBER(wire_message, present, true)},
    [WIRE_TAG_STAY] = {TAGGED_NUMBER(wire_message, stay, true)},
    [WIRE_TAG_MPS_ROOT] = {TAGGED_MEMBER(wire_message, mps_root, text), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_EPOCH] = {TAGGED_NUMBER(wire_message, epoch, UINT64_MAX)},
    [WIRE_TAG_KINDS] = {TAGGED_NUMBER(wire_message, kinds, UINT32_MAX)},
    [WIRE_TAG_SECTIONS] = {TAGGED_NUMBER(wire_message, sections, UINT32_MAX)},
    [WIRE_TAG_HISTORY] = {NESTED_MEMBER(about, history, text), .max = WIRE_TEXT_MAX},
    [WIRE_TAG_ENDED] = {TAGGED_MEMBER(wire_message, ended, items), .max = WIRE_PAGE_ITEMS,
                        .inner = &ended_table},
    [WIRE_TAG_LOST] = {TAGGED_NUMBER(wire_message, lost, UINT64_MAX)},
    [WIRE_TAG_TALLY] = {TAGGED_MEMBER(wire_message, tally, inner), .inner = &tally_table},
};
_Static_assert(COUNT(message_fields) <= 64, "tags seen are bits of 64");

const struct tagged_table wire_tagged = TAGGED_TABLE(wire_message, message_fields);

#define TAG(name) (UINT64_C(1) << WIRE_TAG_##name)

/* The fields that each type uses, as docs/PROTOCOL.md lists them. */
static const uint64_t type_tags[] = {
    [WIRE_HELLO] = 0,
    [WIRE_CLAIM] = TAG(TOKEN_HIGH) | TAG(TOKEN_LOW) | TAG(REQUEST) | TAG(HOLD) | TAG(PARENT) |
                   TAG(MASKS) | TAG(COMMAND) | TAG(INVENTORY) | TAG(RESUME) | TAG(PID) |
                   TAG(STARTED) | TAG(PRESENT),
    [WIRE_RELEASE] = TAG(ID) | TAG(EXIT_CODE),
    [WIRE_CANCEL] = TAG(ID),
    [WIRE_STOP] = TAG(ID),
    [WIRE_EXTEND] = TAG(ID) | TAG(DURATION),
    [WIRE_EXPLAIN] = TAG(ID),
    [WIRE_WATCH] = TAG(ID),
    [WIRE_TEST] = TAG(REQUEST) | TAG(PARENT) | TAG(MASKS) | TAG(INVENTORY),
    [WIRE_LOOK] = TAG(SECTION) | TAG(AFTER) | TAG(SECTIONS),
    [WIRE_DRAIN] = TAG(DEVICE_IDS) | TAG(TEXT),
    [WIRE_UNDRAIN] = TAG(DEVICE_IDS),
    [WIRE_FOLLOW] = TAG(EPOCH) | TAG(AFTER) | TAG(ID) | TAG(KINDS) | TAG(DURATION),
    [WIRE_POOL] = TAG(POOL) | TAG(SOCKET) | TAG(INVENTORY) | TAG(VERSION_TEXT) | TAG(PID) |
                  TAG(CAPACITY) | TAG(PENDING) | TAG(TIME) | TAG(EPOCH) | TAG(HISTORY),
    [WIRE_WAITING] = TAG(ID) | TAG(POSITION) | TAG(TEXT) | TAG(ESTIMATE) | TAG(PENDING),
    [WIRE_GRANTED] = TAG(ID) | TAG(DEVICES) | TAG(REPLICAS) | TAG(GRANTED) | TAG(EXPIRES) |
                     TAG(VENDORS) | TAG(SOCKET) | TAG(POOL) | TAG(MORE) | TAG(STAY) | TAG(MPS_ROOT),
    [WIRE_REFUSED] = TAG(ERROR) | TAG(TEXT),
    [WIRE_DONE] = TAG(ID) | TAG(EXPIRES),
    [WIRE_PAGE] = TAG(CAPACITY) | TAG(PENDING) | TAG(TIME) | TAG(SOCKET) | TAG(INVENTORY) |
                  TAG(SLOTS) | TAG(LEASES) | TAG(CLAIMS) | TAG(PROBLEMS) | TAG(TALLY) |
                  TAG(SECTION) | TAG(AFTER),
    [WIRE_NOTICE] = TAG(ID) | TAG(END) | TAG(FORCE_AT) | TAG(DURATION),
    [WIRE_ENDED] = TAG(ID) | TAG(END) | TAG(EXIT_CODE),
    [WIRE_CLOSING] = TAG(ERROR) | TAG(TEXT),
    [WIRE_WARNING] = TAG(ID) | TAG(END) | TAG(DURATION),
    [WIRE_NEWS] = TAG(EPOCH) | TAG(AFTER) | TAG(ID) | TAG(KINDS) | TAG(ENDED) | TAG(LOST) |
                  TAG(MORE) | TAG(TALLY) | TAG(TIME) | TAG(CAPACITY) | TAG(PENDING),
};

uint64_t wire_tables_type_tags(enum wire_type type)
{
    return (size_t)type < COUNT(type_tags) ? type_tags[type] : 0;
}
