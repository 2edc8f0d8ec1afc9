/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaying events, and dumping the state as events. (Every test with a world checks at its end
 * that its history can be restored.)
 */
#include "support/unit.h"

#include "base/count.h"
#include "support/engine/engine_history.h"

static void a_long_history_is_restored_from_its_events_at_every_step(void **state)
{
    struct world world;

    (void)state;
    history_init(&world);
    for (unsigned step = 0; history_step(&world, step); step++)
        world_check_replay(&world);
    world_finish(&world);
}

static void replay_one(void *engine, const struct engine_event *event)
{
    struct berth_error error = {0};

    if (engine_replay(engine, event, &error) != 0)
        fail_msg("%s", error.message);
}

static void an_engine_can_follow_another_event_by_event(void **state)
{
    struct world world;
    struct engine *twin;
    struct event_sink sink = {.notify = replay_one, .wanted = EVENT_ALL};

    (void)state;
    history_init(&world);
    for (unsigned step = 0; history_step(&world, step); step++)
        continue;
    twin = world_twin(&world); /* the twin has all devices from the beginning */
    world_finish(&world);
    history_init(&world);
    sink.context = twin;
    engine_set_sink(world.engine, &sink);
    for (unsigned step = 0; history_step(&world, step); step++)
        continue;
    engine_advance(twin, engine_now(world.engine));
    check_same_state(world.engine, twin);
    engine_destroy(twin);
    engine_destroy(world.engine);
    text_finish(&world.told);
    text_finish(&world.journal);
}

/* Executes the history, with the events up to a step replaced by the state at that step. */
static void restore_from_state_after(unsigned last)
{
    struct world world;
    struct text journal;
    struct engine *twin;

    history_init(&world);
    for (unsigned step = 0; step < last; step++)
        assert_true(history_step(&world, step));
    journal = engine_state(world.engine);
    text_clear(&world.journal);
    for (unsigned step = last; history_step(&world, step); step++)
        continue;
    text_append_bytes(&journal, world.journal.bytes, world.journal.length);
    twin = world_twin(&world);
    replay_bytes(twin, &journal);
    engine_advance(twin, engine_now(world.engine));
    check_same_state(world.engine, twin);
    engine_destroy(twin);
    text_finish(&journal);
    engine_destroy(world.engine);
    text_finish(&world.told);
    text_finish(&world.journal);
}

static void events_go_on_from_the_state_at_any_step(void **state)
{
    struct world world;
    unsigned steps = 0;

    (void)state;
    history_init(&world);
    while (history_step(&world, steps))
        steps++;
    world_finish(&world);
    assert_true(steps > 20);
    for (unsigned step = 0; step <= steps; step++)
        restore_from_state_after(step);
}

static void restored_requests_are_closed_for_those_who_are_gone(void **state)
{
    struct world world, restored = {0};
    const struct event_sink sink = {
        .notify = world_tell, .context = &restored, .wanted = EVENT_ALL};
    struct engine_request *used;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0");
    world_request(&world, "gpus=1 priority=low");
    used = world_request(&world, NULL);
    assert_int_equal(engine_claim(world.engine, used, TIME_NEVER, NULL, &lease, NULL),
                     CLAIM_GRANTED);
    restored.engine = world_twin(&world);
    replay_bytes(restored.engine, &world.journal);
    engine_set_sink(restored.engine, &sink);
    engine_close_restored(restored.engine);
    check_told(&restored, "forgotten 1\n");
    engine_close_restored(restored.engine);
    check_told(&restored, "");
    assert_int_equal(engine_release(restored.engine, lease, NULL), 0);
    check_told(&restored, "released lease 1\n"
                          "forgotten 2\n");
    world_finish(&restored);
    world_finish(&world);
}

static void a_restored_engine_goes_on_like_the_first(void **state)
{
    struct world world, restored = {0};
    /* The openers of restored requests are gone and cannot close them. */
    struct event_sink sink = {
        .notify = world_tell,
        .context = &restored,
        .wanted = EVENT_ALL & ~EVENT_BIT(EVENT_FORGOTTEN),
    };
    struct world *both[] = {&world, &restored};

    (void)state;
    history_init(&world);
    for (unsigned step = 0; history_step(&world, step); step++)
        continue;
    restored.engine = world_twin(&world);
    replay_bytes(restored.engine, &world.journal);
    engine_advance(restored.engine, engine_now(world.engine));
    engine_set_sink(restored.engine, &sink);
    engine_resume(restored.engine);
    check_told(&restored, "");
    sink.context = &world;
    engine_set_sink(world.engine, &sink);
    world_forget(&world);
    for (size_t i = 0; i < 2; i++) {
        struct world *one = both[i];

        for (uint32_t slot = 0; slot < engine_machine(one->engine)->devices.count; slot++)
            engine_unblock(one->engine, slot, BLOCK_ALL);
        for (uint64_t id = 1; id < 60; id++)
            (void)engine_release(one->engine, id, NULL);
        engine_advance(one->engine, 100 * HOUR);
        for (uint64_t id = 1; id < 120; id++)
            (void)engine_vacated(one->engine, id, NULL);
    }
    assert_true(world.told.length > 0);
    check_told(&restored, text_string(&world.told));
    for (size_t i = 0; i < 2; i++) {
        engine_destroy(both[i]->engine);
        text_finish(&both[i]->told);
        text_finish(&both[i]->journal);
    }
}

static void replaying_tells_nobody(void **state)
{
    struct world world, other;

    (void)state;
    history_init(&world);
    for (unsigned step = 0; history_step(&world, step); step++)
        continue;
    other = (struct world){.engine = world_twin(&world)};
    engine_set_sink(other.engine, &(struct event_sink){world_tell, &other, EVENT_ALL, false});
    replay_bytes(other.engine, &world.journal);
    check_told(&other, "");
    engine_destroy(other.engine);
    world_finish(&world);
}

static void claims_held_by_a_limit_stay_so_when_it_is_set_before_resuming(void **state)
{
    struct world world;
    struct engine *twin;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    granted_to(&world, "uid=5");
    waits_with(&world, "uid=5");
    twin = world_twin(&world);
    replay_bytes(twin, &world.journal);
    assert_int_equal(engine_limit_user(twin, 5, SHARE_WHOLE, NULL), 0);
    engine_resume(twin);
    check_same_state(world.engine, twin);
    engine_destroy(twin);
    world_finish(&world);
}

static void resuming_grants_what_became_due_meanwhile(void **state)
{
    struct world world;
    struct engine *twin;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, NULL);
    twin = world_twin(&world);
    replay_bytes(twin, &world.journal);
    assert_int_equal(
        engine_replay(twin, &(struct engine_event){.type = EVENT_RELEASED, .lease = 1}, NULL), 0);
    assert_int_equal(engine_pending(twin), 1);
    engine_resume(twin);
    assert_int_equal(engine_pending(twin), 0);
    engine_destroy(twin);
    world_finish(&world);
}

/* ---- Events that contradict the state ---- */

/* Requests 1 to 4: one device, a shared one, all three, an opportunistic one. Lease 1 has slot 0,
 * lease 2 has 0.6 of slot 1, claim 3 wants all. */
static void crowd_init(struct world *world)
{
    world_init(world, "nvidia0,nvidia1,nvidia2");
    engine_advance(world->engine, 10);
    granted_to(world, NULL);
    granted_to(world, "sharing=time-slice share=600");
    waits_with(world, "gpus=3 priority=low");
    world_request(world, "opportunistic");
}

static const uint32_t slots[] = {0, 1, 2, 3};

/* The test fills in a later time. */
static const struct engine_event misfits[] = {
    {.type = (enum event_type)0},
    {.type = EVENT_TYPES},
    {.type = (enum event_type)99},
    {.type = EVENT_REQUEST, .request = 9},
    {.type = EVENT_FORGOTTEN, .request = 9},
    {.type = EVENT_FORGOTTEN, .request = 1},
    {.type = EVENT_QUEUED, .request = 9, .claim = 9},
    {.type = EVENT_QUEUED, .request = 1, .claim = 3},
    {.type = EVENT_QUEUED, .request = 1, .claim = 1},
    {.type = EVENT_QUEUED, .request = 1, .claim = 0},
    {.type = EVENT_REFUSED, .claim = 9, .reason = REFUSAL_CANCELLED},
    {.type = EVENT_REFUSED, .claim = 1, .reason = REFUSAL_CANCELLED},
    {.type = EVENT_NOTICE, .lease = 9},
    {.type = EVENT_REVOKED, .lease = 9},
    {.type = EVENT_EXPIRED, .lease = 9},
    {.type = EVENT_DRAINING, .lease = 3},
    {.type = EVENT_RELEASED, .lease = 0},
    {.type = EVENT_EXTENDED, .lease = 9, .expires = 99},
    {.type = EVENT_DEVICE, .slot = 3, .present = true},
    {.type = EVENT_PICKED, .lease = 9, .request = 9, .slots = slots, .slot_count = 1},
    {.type = EVENT_PICKED, .lease = 9, .request = 1, .slots = slots, .slot_count = 4},
    {.type = EVENT_SLOT, .slot = 3},
    {.type = EVENT_SLOT, .slot = 2, .lease = 9},
    {.type = EVENT_RETURNED, .lease = 9, .claim = 9, .request = 1},
    {.type = EVENT_RETURNED, .lease = 1, .claim = 1, .request = 2},
    {.type = EVENT_RETURNED, .lease = 1, .claim = 9, .request = 1},
    {.type = EVENT_RETURNED, .lease = 1, .claim = 3, .request = 1},
};

/* Leases that contradict the state, on slots[first] and the following. */
static const struct {
    uint64_t lease;
    uint64_t claim;
    uint64_t request;
    uint32_t first;
    uint32_t count;
    uint32_t replicas;
    bool waited;
} misfit_leases[] = {
    {.lease = 9, .request = 9, .first = 2, .count = 1, .replicas = 1},
    {.lease = 1, .request = 1, .first = 2, .count = 1, .replicas = 1},
    {.lease = 3, .request = 1, .first = 2, .count = 1, .replicas = 1},
    {.lease = 0, .request = 1, .first = 2, .count = 1, .replicas = 1},
    {.lease = 9, .request = 1, .first = 2, .count = 1, .replicas = 1, .waited = true, .claim = 8},
    {.lease = 9, .request = 1, .first = 2, .count = 1, .replicas = 1, .waited = true, .claim = 3},
    {.lease = 9, .request = 1, .first = 0, .count = 1, .replicas = 1},
    {.lease = 9, .request = 1, .first = 1, .count = 1, .replicas = 1},
    {.lease = 9, .request = 1, .first = 3, .count = 1, .replicas = 1},
    {.lease = 9, .request = 1, .first = 2, .count = 0, .replicas = 1},
    {.lease = 9, .request = 1, .first = 2, .count = 1, .replicas = 0},
    {.lease = 9, .request = 1, .first = 2, .count = 1, .replicas = 2},
    {.lease = 9, .request = 2, .first = 0, .count = 1, .replicas = 1},
    {.lease = 9, .request = 2, .first = 1, .count = 1, .replicas = 1},
};

/* Checks that the event is refused and nothing changes. */
#define check_misfit(world, event)                                                               \
    do {                                                                                         \
        struct text before_ = engine_state((world)->engine);                                     \
        struct text after_;                                                                      \
        struct berth_error error_ = {0};                                                         \
        assert_int_equal(engine_replay((world)->engine, (event), &error_), BERTH_ERROR_INVALID); \
        assert_true(error_.message[0] != '\0');                                                  \
        after_ = engine_state((world)->engine);                                                  \
        assert_int_equal(before_.length, after_.length);                                         \
        assert_memory_equal(before_.bytes, after_.bytes, before_.length);                        \
        text_finish(&before_);                                                                   \
        text_finish(&after_);                                                                    \
    } while (0)

static void events_that_do_not_fit_change_nothing(void **state)
{
    struct world world;

    (void)state;
    crowd_init(&world);
    for (size_t i = 0; i < COUNT(misfits); i++) {
        struct engine_event event = misfits[i];

        event.time = 2 * HOUR;
        event.expires = event.expires == 0 ? TIME_NEVER : event.expires;
        check_misfit(&world, &event);
        assert_int_equal(claim_in(&world, 3).class_now, PRIORITY_LOW);
    }
    world_finish(&world);
}

static void leases_that_do_not_fit_change_nothing(void **state)
{
    struct world world;

    (void)state;
    crowd_init(&world);
    for (size_t i = 0; i < COUNT(misfit_leases); i++) {
        struct engine_event event = {
            .type = EVENT_GRANTED,
            .time = 2 * HOUR,
            .lease = misfit_leases[i].lease,
            .claim = misfit_leases[i].claim,
            .request = misfit_leases[i].request,
            .slots = slots + misfit_leases[i].first,
            .slot_count = misfit_leases[i].count,
            .replicas = misfit_leases[i].replicas,
            .waited = misfit_leases[i].waited,
            .expires = TIME_NEVER,
        };

        check_misfit(&world, &event);
    }
    world_finish(&world);
}

static void requests_that_do_not_fit_change_nothing(void **state)
{
    struct request what;
    struct party party = {.parent = 9};
    struct engine_event event = {.type = EVENT_REQUEST, .time = 2 * HOUR, .what = &what};
    struct world world;

    (void)state;
    crowd_init(&world);
    request_init(&what);
    event.request = 1;
    check_misfit(&world, &event); /* request 1 exists already */
    event.request = 9;
    event.party = &party;
    check_misfit(&world, &event); /* lease 9 does not exist */
    event.party = NULL;
    what.replicas = 0;
    check_misfit(&world, &event); /* the request contradicts itself */
    request_finish(&what);
    world_finish(&world);
}

/* Policies for comparison were moved to sim. Older journals may name them. */
static void a_request_by_an_unknown_policy_is_restored_with_the_default(void **state)
{
    static const char *const names[] = {"random",  "dotprod", "clustering", "packing",
                                        "bestfit", "fgd",     "unheard-of"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct request what;
        struct world world;
        struct engine *twin;
        struct lease_view view;

        request_init(&what);
        what.policy = copy_of(names[i]);
        world_init(&world, "nvidia0,nvidia1");
        twin = world_twin(&world);
        replay_one(twin,
                   &(struct engine_event){.type = EVENT_REQUEST, .request = 1, .what = &what});
        replay_one(twin,
                   &(struct engine_event){
                       .type = EVENT_QUEUED, .claim = 1, .request = 1, .deadline = TIME_NEVER});
        engine_resume(twin);
        assert_true(engine_get_lease(twin, 2, &view));
        assert_int_equal(view.slots[0], 0);
        assert_string_equal(engine_request_what(view.request)->policy, names[i]);
        engine_destroy(twin);
        request_finish(&what);
        world_finish(&world);
    }
}

static void an_event_from_before_all_time_does_not_fit(void **state)
{
    struct world world;

    (void)state;
    crowd_init(&world);
    check_misfit(&world, &((struct engine_event){.type = EVENT_QUEUED,
                                                 .time = INT64_MIN,
                                                 .claim = 9,
                                                 .request = 1,
                                                 .deadline = TIME_NEVER}));
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_history_is_restored_from_its_events_at_every_step),
        cmocka_unit_test(an_engine_can_follow_another_event_by_event),
        cmocka_unit_test(events_go_on_from_the_state_at_any_step),
        cmocka_unit_test(restored_requests_are_closed_for_those_who_are_gone),
        cmocka_unit_test(a_restored_engine_goes_on_like_the_first),
        cmocka_unit_test(replaying_tells_nobody),
        cmocka_unit_test(claims_held_by_a_limit_stay_so_when_it_is_set_before_resuming),
        cmocka_unit_test(resuming_grants_what_became_due_meanwhile),
        cmocka_unit_test(events_that_do_not_fit_change_nothing),
        cmocka_unit_test(leases_that_do_not_fit_change_nothing),
        cmocka_unit_test(requests_that_do_not_fit_change_nothing),
        cmocka_unit_test(a_request_by_an_unknown_policy_is_restored_with_the_default),
        cmocka_unit_test(an_event_from_before_all_time_does_not_fit),
    };

    return cmocka_run_group_tests_name("engine_replay", tests, NULL, NULL);
}
