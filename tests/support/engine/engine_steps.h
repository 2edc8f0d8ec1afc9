/* SPDX-License-Identifier: Apache-2.0
 *
 * One short line for each step of an engine: claims, leases and their events. These are macros, so
 * that a failure names the caller's line.
 */
#ifndef TESTS_ENGINE_STEPS_H
#define TESTS_ENGINE_STEPS_H

#include "support/unit.h"

#include "support/engine/engines.h"

#define SECOND INT64_C(1000000000)
#define HOUR   (3600 * SECOND)

static inline uint64_t steps_claim(struct world *world, struct engine_request *request,
                                   int64_t deadline, int wanted, const char *file, int line)
{
    struct berth_error error = {0};
    uint64_t id = 0;
    int code = engine_would_grant(world->engine, request, &error);

    world->in_steps = true;
    if (code < 0)
        print_error("%s\n", error.message);
    /* engine_would_grant() must predict the result. */
    _assert_int_equal((uintmax_t)code, (uintmax_t)wanted, file, line);
    _assert_int_equal((uintmax_t)engine_claim(world->engine, request, deadline, NULL, &id, &error),
                      (uintmax_t)wanted, file, line);
    return id;
}

/* Claims, which must be granted at once. Returns the lease's id. */
#define granted(world, request) \
    steps_claim((world), (request), TIME_NEVER, CLAIM_GRANTED, __FILE__, __LINE__)
/* Claims, which must wait. Returns the claim's id. */
#define waits(world, request) \
    steps_claim((world), (request), TIME_NEVER, CLAIM_WAITS, __FILE__, __LINE__)
#define waits_until(world, request, deadline) \
    steps_claim((world), (request), (deadline), CLAIM_WAITS, __FILE__, __LINE__)
/* The same for a request in words that is used only once. */
#define granted_to(world, words) granted((world), world_request((world), (words)))
#define waits_with(world, words) waits((world), world_request((world), (words)))

#define released(world, lease)  assert_int_equal(engine_release((world)->engine, (lease), NULL), 0)
#define vacated(world, lease)   assert_int_equal(engine_vacated((world)->engine, (lease), NULL), 0)
#define cancelled(world, claim) assert_int_equal(engine_cancel((world)->engine, (claim), NULL), 0)

#define check_pending(world, wanted)   assert_int_equal(engine_pending((world)->engine), (wanted))
#define check_next_time(world, wanted) assert_int_equal(engine_next_time((world)->engine), (wanted))

/* Checks that each way to claim with the request fails with this code and message. */
#define check_refused(world, request, wanted_code, wanted_message)                                 \
    do {                                                                                           \
        struct engine_request *request_ = (request);                                               \
        struct berth_error error_ = {0};                                                           \
        uint64_t id_ = 77;                                                                         \
        assert_int_equal(engine_claim((world)->engine, request_, TIME_NEVER, NULL, &id_, &error_), \
                         wanted_code);                                                             \
        assert_string_equal(error_.message, wanted_message);                                       \
        assert_int_equal(engine_try((world)->engine, request_, &id_, &error_), wanted_code);       \
        assert_string_equal(error_.message, wanted_message);                                       \
        assert_int_equal(engine_would_grant((world)->engine, request_, &error_), wanted_code);     \
        assert_int_equal(id_, 77);                                                                 \
    } while (0)

#define check_impossible(world, words, message) \
    check_refused((world), world_request((world), (words)), BERTH_ERROR_IMPOSSIBLE, (message))

/* Returns the view of a lease, which must exist. */
static inline struct lease_view lease_in(const struct world *world, uint64_t lease)
{
    struct lease_view view;

    assert_true(engine_get_lease(world->engine, lease, &view));
    return view;
}

static inline struct claim_view claim_in(const struct world *world, uint64_t claim)
{
    struct claim_view view;

    assert_true(engine_get_claim(world->engine, claim, &view));
    return view;
}

static inline struct slot_view slot_in(const struct world *world, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(world->engine, slot, &view);
    return view;
}

static inline void steps_write_claim(void *context, const struct claim_view *view)
{
    struct text *out = context;

    text_append_format(out, "%s%llu", out->length == 0 ? "" : " ", (unsigned long long)view->id);
}

/* Checks that these claims wait, in this order: "3 5 4". */
#define check_waiting(world, wanted)                                  \
    do {                                                              \
        struct text ids_ = {0};                                       \
        engine_each_claim((world)->engine, steps_write_claim, &ids_); \
        assert_string_equal(text_string(&ids_), wanted);              \
        text_finish(&ids_);                                           \
    } while (0)

/* Checks that the claim has a reservation of these slots ("0,3") from this time on. */
#define check_reserved(world, claim, wanted, wanted_start)                              \
    do {                                                                                \
        struct bitset slots_;                                                           \
        struct text words_ = {0};                                                       \
        int64_t start_ = 0;                                                             \
        assert_int_equal(bitset_init(&slots_, engine_slots_max((world)->engine)), 0);   \
        assert_true(engine_reservation((world)->engine, (claim), &slots_, &start_));    \
        bitset_for_each (slot_, &slots_)                                                \
            text_append_format(&words_, "%s%zu", words_.length == 0 ? "" : ",", slot_); \
        assert_string_equal(text_string(&words_), wanted);                              \
        assert_int_equal(start_, (wanted_start));                                       \
        text_finish(&words_);                                                           \
        bitset_finish(&slots_);                                                         \
    } while (0)

#define check_not_reserved(world, claim)                                              \
    do {                                                                              \
        struct bitset slots_;                                                         \
        int64_t start_ = 0;                                                           \
        assert_int_equal(bitset_init(&slots_, engine_slots_max((world)->engine)), 0); \
        assert_false(engine_reservation((world)->engine, (claim), &slots_, &start_)); \
        bitset_finish(&slots_);                                                       \
    } while (0)

/* Limit the devices of a user or a group, in thousandths. No event contains limits. */
static inline void limit_user(struct world *world, uint32_t uid, uint64_t thousandths)
{
    world->has_limits = true;
    assert_int_equal(engine_limit_user(world->engine, uid, thousandths * 1000, NULL), 0);
}

static inline void limit_group(struct world *world, uint32_t group, uint64_t thousandths)
{
    world->has_limits = true;
    assert_int_equal(engine_limit_group(world->engine, group, thousandths * 1000, NULL), 0);
}

#endif
