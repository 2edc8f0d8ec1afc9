/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that let other claims start, or must not. Random histories (tests/promises) found these.
 */
#include "support/unit.h"

#include "engine/engine.h"

#include "engine/journal/journal.h"
#include "support/engine/engines.h"

/* Opens a request for this user, makes a claim, and closes the request. */
static uint64_t claim_by(struct world *world, uint32_t uid, const char *words, int wanted)
{
    struct engine_request *request = world_request_by(world, words, &(struct party){.uid = uid});
    uint64_t id = 0;

    assert_int_equal(engine_claim(world->engine, request, TIME_NEVER, NULL, &id, NULL), wanted);
    engine_request_close(world->engine, request);
    world_forget(world);
    return id;
}

/* A claim whose user reaches the limit by another grant bars nothing any more. */
static void a_limit_that_is_reached_frees_others(void **state)
{
    struct engine_request *request;
    struct world world;
    uint64_t id;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    assert_int_equal(engine_limit_user(world.engine, 1, 3 * UINT64_C(1000000), NULL), 0);
    claim_by(&world, 2, "time=100", CLAIM_GRANTED);
    claim_by(&world, 1, "gpus=3", CLAIM_WAITS);
    claim_by(&world, 2, NULL, CLAIM_WAITS);
    request = world_request_by(&world, "time=10", &(struct party){.uid = 1});
    assert_int_equal(engine_claim(world.engine, request, TIME_NEVER, NULL, &id, NULL),
                     CLAIM_GRANTED);
    check_told(&world, "request 4\n"
                       "granted lease 4: slots 1\n"
                       "granted lease 5 of claim 3: slots 2\n");
    world_finish(&world);
}

/* A claim that comes first takes the reservation of another claim, which then bars less. */
static void a_reservation_that_is_lost_bars_nothing(void **state)
{
    struct engine_request *request;
    struct world world;
    uint64_t id;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    claim_by(&world, 1, "time=100 device=nvidia0", CLAIM_GRANTED);
    claim_by(&world, 1, "gpus=2", CLAIM_WAITS);
    claim_by(&world, 1, "device=nvidia1", CLAIM_WAITS);
    request = world_request(&world, "priority=high device=nvidia0");
    assert_int_equal(engine_claim(world.engine, request, TIME_NEVER, NULL, &id, NULL), CLAIM_WAITS);
    check_told(&world, "request 4\n"
                       "queued claim 4\n"
                       "granted lease 5 of claim 3: slots 1\n");
    world_finish(&world);
}

/* The end of a lease that overstays is unknown: a reservation that depends on it moves. */
static void overstaying_moves_a_reservation(void **state)
{
    struct engine_settings settings = {.grace = 5};
    struct world world;
    uint64_t first;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1,nvidia2", &settings);
    first = claim_by(&world, 1, "time=50 device=nvidia0", CLAIM_GRANTED);
    claim_by(&world, 1, "time=300 device=nvidia1", CLAIM_GRANTED);
    claim_by(&world, 1, "gpus=2", CLAIM_WAITS);
    claim_by(&world, 1, "time=70", CLAIM_WAITS);
    assert_int_equal(engine_drain_lease(world.engine, first, NULL), 0);
    engine_advance(world.engine, 59);
    check_told(&world, "draining lease 1\n");
    engine_advance(world.engine, 60);
    check_told(&world, "granted lease 5 of claim 4: slots 2\n");
    world_finish(&world);
}

/* A claim that waits for opportunistic leases also keeps the free devices of its set. */
static void helpers_give_way_once(void **state)
{
    struct world world;
    uint64_t wide, late;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    claim_by(&world, 1, "opportunistic", CLAIM_GRANTED);
    claim_by(&world, 1, "opportunistic", CLAIM_GRANTED);
    one = world_request(&world, "gpus=3");
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, NULL, &wide, NULL), CLAIM_WAITS);
    check_told(&world, "request 3\n"
                       "queued claim 3\n"
                       "notice lease 2\n");
    one = world_request(&world, NULL);
    assert_int_equal(engine_try(world.engine, one, &late, NULL), CLAIM_WAITS);
    world_forget(&world);
    assert_int_equal(engine_vacated(world.engine, 2, NULL), 0);
    check_told(&world, "released lease 2\n"
                       "forgotten 2\n"
                       "granted lease 4 of claim 3: slots 1,2,3\n");
    world_finish(&world);
}

/* Memory reserved within a lease that reserved none could exceed the device's memory. */
static void no_memory_is_given_on_that_was_not_reserved(void **state)
{
    struct machine machine = {0};
    struct engine_request *request;
    struct world world;
    uint64_t parent;

    (void)state;
    machine_add(&machine, id_of("nvidia0"))->memory_total = optional_number_of(16 * GIB);
    world_init_with(&world, &machine, NULL);
    parent = claim_by(&world, 1, "sharing=time-slice share=500", CLAIM_GRANTED);
    request = world_request_by(&world, "sharing=time-slice memory=4096",
                               &(struct party){.uid = 1, .parent = parent});
    assert_int_equal(engine_would_grant(world.engine, request, NULL), BERTH_ERROR_IMPOSSIBLE);
    request =
        world_request_by(&world, "sharing=time-slice", &(struct party){.uid = 1, .parent = parent});
    assert_int_equal(engine_would_grant(world.engine, request, NULL), CLAIM_GRANTED);
    world_finish(&world);
}

static void what_is_next_is_never_in_the_past(void **state)
{
    struct engine_settings settings = {.age_step = 100};
    struct machine machine = {0};
    struct world world;
    uint64_t waiting;

    (void)state;
    machine_add_ids(&machine, "nvidia0");
    world_init_with(&world, &machine, &settings);
    claim_by(&world, 1, NULL, CLAIM_GRANTED);
    waiting = claim_by(&world, 1, NULL, CLAIM_WAITS);
    assert_int_equal(engine_next_time(world.engine), 100);
    assert_int_equal(engine_cancel(world.engine, waiting, NULL), 0);
    engine_advance(world.engine, 500);
    claim_by(&world, 1, "opportunistic", CLAIM_WAITS);
    assert_int_equal(engine_next_time(world.engine), TIME_NEVER);
    world_finish(&world);
}

/* Setting a limit checks all requests again, each with its own rule for vendors. */
static void limits_do_not_mix_vendors(void **state)
{
    struct request mixed_request;
    struct engine_request *pair, *mixed;
    struct world world;
    uint64_t id;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,amd2");
    pair = world_request(&world, "gpus=2");
    request_init(&mixed_request);
    mixed_request.vendor_rule = VENDOR_RULE_MIXED;
    assert_int_equal(engine_request_open(world.engine, &mixed_request, NULL, NULL, &mixed, NULL),
                     0);
    assert_int_equal(engine_limit_user(world.engine, 77, 1000000, NULL), 0);
    claim_by(&world, 1, "device=nvidia0", CLAIM_GRANTED);
    assert_int_equal(engine_try(world.engine, pair, &id, NULL), CLAIM_WAITS);
    world_finish(&world);
}

/* Leases from before the limit count until they end. */
static void limits_count_what_was_there(void **state)
{
    struct world world;
    uint64_t early;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    early = claim_by(&world, 1, NULL, CLAIM_GRANTED);
    assert_int_equal(engine_limit_user(world.engine, 1, 1000000, NULL), 0);
    claim_by(&world, 1, NULL, CLAIM_WAITS);
    assert_int_equal(engine_release(world.engine, early, NULL), 0);
    check_told(&world, "released lease 1\n"
                       "forgotten 1\n"
                       "granted lease 3 of claim 2: slots 0\n");
    world_finish(&world);
}

static void tell_bytes(void *context, const struct engine_event *event)
{
    assert_int_equal(journal_encode(event, context), 0);
}

static void dump_bytes(const struct engine *engine, struct text *out)
{
    assert_int_equal(engine_dump(engine, &(struct event_sink){tell_bytes, out, EVENT_ALL, false}),
                     0);
}

/* Makes a claim within a lease, and releases it. */
static void come_and_go(struct world *world, uint64_t parent)
{
    struct engine_request *request =
        world_request_by(world, NULL, &(struct party){.parent = parent});
    uint64_t lease;

    assert_int_equal(engine_try(world->engine, request, &lease, NULL), CLAIM_GRANTED);
    assert_int_equal(engine_release(world->engine, lease, NULL), 0);
    engine_request_close(world->engine, request);
}

/* The state does not depend on the order of claims within leases that have ended. */
static void leases_that_were_claimed_within_are_restored(void **state)
{
    struct world world, again;
    struct text was = {0};
    struct text is = {0};
    size_t at = 0;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    world_init(&again, "nvidia0,nvidia1");
    claim_by(&world, 1, NULL, CLAIM_GRANTED);
    claim_by(&world, 1, NULL, CLAIM_GRANTED);
    come_and_go(&world, 2);
    come_and_go(&world, 1);
    dump_bytes(world.engine, &was);
    while (at < was.length) {
        struct journal_record record = {0};
        size_t used = 0;

        assert_int_equal(journal_decode(was.bytes + at, was.length - at, &record, &used, NULL),
                         JOURNAL_COMPLETE);
        assert_int_equal(engine_replay(again.engine, &record.event, NULL), 0);
        journal_record_finish(&record);
        at += used;
    }
    dump_bytes(again.engine, &is);
    assert_int_equal(is.length, was.length);
    assert_memory_equal(is.bytes, was.bytes, was.length);
    text_finish(&was);
    text_finish(&is);
    world_finish(&world);
    world_finish(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_is_reached_frees_others),
        cmocka_unit_test(a_reservation_that_is_lost_bars_nothing),
        cmocka_unit_test(overstaying_moves_a_reservation),
        cmocka_unit_test(helpers_give_way_once),
        cmocka_unit_test(no_memory_is_given_on_that_was_not_reserved),
        cmocka_unit_test(what_is_next_is_never_in_the_past),
        cmocka_unit_test(limits_do_not_mix_vendors),
        cmocka_unit_test(limits_count_what_was_there),
        cmocka_unit_test(leases_that_were_claimed_within_are_restored),
    };

    return cmocka_run_group_tests_name("engine_changes", tests, NULL, NULL);
}
