/* SPDX-License-Identifier: Apache-2.0
 *
 * One event of each type, as the engine makes it, and random events.
 */
#ifndef TESTS_SAMPLE_EVENTS_H
#define TESTS_SAMPLE_EVENTS_H

#include "support/unit.h"

#include "engine/event.h"
#include "support/random.h"
#include "support/spec/requests.h"

enum { SAMPLE_ITEMS = 8 };

/* An event with all that it points to. It must not be moved. */
struct sample {
    struct engine_event event;
    struct request what;
    struct party party;
    struct device_id_list mask;
    uint32_t groups[SAMPLE_ITEMS];
    uint32_t slots[SAMPLE_ITEMS];
};

static inline void sample_finish(struct sample *sample)
{
    request_finish(&sample->what);
    vector_finish(&sample->mask);
}

/* 2026-01-02T03:04:05.678Z */
#define SAMPLE_TIME INT64_C(1767323045678000000)

/* By type: an event with ordinary values in all members that the type has. */
static const struct engine_event sample_events[EVENT_TYPES] = {
    [EVENT_REQUEST] = {.request = 2},
    [EVENT_FORGOTTEN] = {.request = 2},
    [EVENT_QUEUED] = {.claim = 3, .request = 2, .deadline = TIME_NEVER},
    [EVENT_GRANTED] = {.claim = 3,
                       .lease = 7,
                       .request = 2,
                       .slot_count = 1,
                       .replicas = 1,
                       .expires = TIME_NEVER,
                       .waited = true},
    [EVENT_REFUSED] = {.claim = 3, .reason = REFUSAL_TIMED_OUT},
    [EVENT_NOTICE] = {.lease = 7, .expires = SAMPLE_TIME + 10},
    [EVENT_REVOKED] = {.lease = 7},
    [EVENT_EXPIRED] = {.lease = 7},
    [EVENT_DRAINING] = {.lease = 7},
    [EVENT_RELEASED] = {.lease = 7},
    [EVENT_EXTENDED] = {.lease = 7, .expires = TIME_NEVER},
    [EVENT_DEVICE] = {.slot = 4,
                      .blocks = BLOCK_DIRTY | BLOCK_ASLEEP,
                      .health = 2,
                      .present = true},
    [EVENT_PICKED] = {.lease = 9, .slot_count = 2},
    [EVENT_SLOT] = {.slot = 4, .stamp = 5, .served = 6, .affinity = UINT64_MAX},
    [EVENT_COUNTERS] = {.lease = 99, .request = 12},
    [EVENT_RETURNED] = {.claim = 3, .lease = 7, .request = 2, .deadline = TIME_NEVER},
};

/* Makes an event of this type. Its request has every member set. The caller finishes it. */
static inline void sample_of(enum event_type type, struct sample *ret_sample)
{
    *ret_sample = (struct sample){
        .event = sample_events[type],
        .groups = {100, UINT32_MAX},
        .slots = {0, 1, 2, 3, 4, 5, 6, 7},
    };
    request_init(&ret_sample->what);
    ret_sample->event.type = type;
    ret_sample->event.time = SAMPLE_TIME;
    if (ret_sample->event.slot_count > 0)
        ret_sample->event.slots = ret_sample->slots;
    if (type != EVENT_REQUEST)
        return;
    request_fill(&ret_sample->what);
    assert_int_equal(device_id_list_parse(&ret_sample->mask, "amd0,nvidia1.2", NULL), 0);
    ret_sample->party = (struct party){
        .uid = 1000,
        .groups = ret_sample->groups,
        .group_count = 2,
        .mask = &ret_sample->mask,
        .parent = 6,
    };
    ret_sample->event.what = &ret_sample->what;
    ret_sample->event.party = &ret_sample->party;
}

static inline int64_t random_time(struct test_random *random)
{
    switch (test_random_below(random, 4)) {
    case 0:
        return 0;
    case 1:
        return TIME_NEVER;
    default:
        return (int64_t)test_random_any_length(random);
    }
}

static inline void random_party(struct test_random *random, struct sample *sample)
{
    random_ids(random, &sample->mask);
    sample->party = (struct party){
        .uid = (uint32_t)test_random_any_length(random),
        .groups = sample->groups,
        .group_count = test_random_below(random, SAMPLE_ITEMS + 1),
        .mask = test_random_below(random, 2) == 0 ? NULL : &sample->mask,
        .parent = test_random_any_length(random),
    };
}

/* Makes an event of a random type with random members, also members that its type does not have.
 * The caller finishes it. */
static inline void sample_randomise(struct sample *ret_sample, struct test_random *random)
{
    uint64_t bits = test_random_next(random);

    *ret_sample = (struct sample){
        .event =
            {
                .type = (enum event_type)(1 + test_random_below(random, EVENT_TYPES - 1)),
                .time = (int64_t)test_random_next(random),
                .claim = test_random_any_length(random),
                .lease = test_random_any_length(random),
                .request = test_random_any_length(random),
                .what = (bits & 1) != 0 ? &ret_sample->what : NULL,
                .party = (bits & 2) != 0 ? &ret_sample->party : NULL,
                .slots = ret_sample->slots,
                .slot_count = (uint32_t)test_random_below(random, SAMPLE_ITEMS + 1),
                .replicas = random_count(random),
                .expires = random_time(random),
                .deadline = random_time(random),
                .reason = (enum refusal)test_random_below(random, REFUSAL_PARENT_ENDED + 1),
                .slot = (uint32_t)test_random_any_length(random),
                .blocks = (uint32_t)test_random_below(random, BLOCK_ALL + 1),
                .health = (uint8_t)test_random_below(random, 3),
                .present = (bits & 4) != 0,
                .waited = (bits & 8) != 0,
                .stamp = test_random_any_length(random),
                .served = test_random_any_length(random),
                .affinity = test_random_any_length(random),
                .share = (uint32_t)test_random_below(random, SHARE_WHOLE + 1),
            },
    };
    for (size_t i = 0; i < SAMPLE_ITEMS; i++) {
        ret_sample->groups[i] = (uint32_t)test_random_any_length(random);
        ret_sample->slots[i] = (uint32_t)test_random_any_length(random);
    }
    request_randomise(&ret_sample->what, random);
    random_party(random, ret_sample);
}

#endif
