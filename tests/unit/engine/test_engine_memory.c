/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine without memory: a call that fails changes nothing, and due grants happen later.
 */
#include "support/unit.h"

#include "support/engine/engine_history.h"
#include "support/failing_allocator.h"

static bool same_bytes(const struct text *one, const struct text *other)
{
    return one->length == other->length && memcmp(one->bytes, other->bytes, one->length) == 0;
}

/* Checks that the engine is in this state, and finishes the state. */
static void check_state(const struct engine *engine, struct text *wanted)
{
    struct text found = engine_state(engine);

    if (!same_bytes(wanted, &found)) {
        struct text wanted_words = describe_bytes(wanted);
        struct text found_words = describe_bytes(&found);

        assert_string_equal(text_string(&found_words), text_string(&wanted_words));
        fail_msg("the states differ, but their descriptions are equal");
    }
    text_finish(&found);
    text_finish(wanted);
}

/* Checks that a call without memory returned the right error and changed nothing. */
static void check_failed(const struct world *world, const struct berth_error *error,
                         struct text *before)
{
    assert_int_equal(error->code, BERTH_ERROR_MEMORY);
    assert_string_equal(error->message, "out of memory");
    check_state(world->engine, before);
}

/* The steps of a row: a claim compiles its request first. */
enum turn { OPENING, DOING, TURNS };

/* Compiles the request of a row; in its step the n-th allocation fails. Returns whether one
 * failed. */
static bool open_without(struct world *world, const struct history_row *row, unsigned long n,
                         struct engine_request **ret_request)
{
    struct text before = engine_state(world->engine);
    struct berth_error error = {0};
    struct world_asking asking;
    bool refused = false;
    int code;

    asking_init(&asking, row->words);
    if (n > 0)
        failing_allocator_start(n);
    code =
        engine_request_open(world->engine, &asking.what, asking.party, NULL, ret_request, &error);
    refused = failing_allocator_stop() && n > 0;
    if (code == BERTH_ERROR_MEMORY) {
        check_failed(world, &error, &before);
        code =
            engine_request_open(world->engine, &asking.what, asking.party, NULL, ret_request, NULL);
    } else {
        text_finish(&before);
    }
    assert_int_not_equal(code, BERTH_ERROR_MEMORY);
    asking_finish(&asking);
    return refused;
}

static int use_or_do(struct world *world, const struct history_row *row,
                     struct engine_request *request, struct berth_error *error)
{
    return request != NULL ? history_use(world, row, request, error)
                           : history_do(world, row, error);
}

/* Executes the action of a row in the same way. */
static bool do_without(struct world *world, const struct history_row *row, unsigned long n,
                       struct engine_request *request)
{
    struct text before = engine_state(world->engine);
    struct berth_error error = {0};
    bool refused;
    int code;

    failing_allocator_start(n);
    code = use_or_do(world, row, request, &error);
    refused = failing_allocator_stop();
    if (code == BERTH_ERROR_MEMORY) {
        check_failed(world, &error, &before);
        code = use_or_do(world, row, request, NULL);
        assert_int_not_equal(code, BERTH_ERROR_MEMORY);
    } else {
        text_finish(&before);
    }
    return refused;
}

/* Executes a row; in one of its steps the n-th allocation fails. Returns whether one failed. */
static bool row_without(struct world *world, const struct history_row *row, enum turn turn,
                        unsigned long n)
{
    struct engine_request *request = NULL;
    bool refused = false;

    if (history_is_claim(row)) {
        refused = open_without(world, row, turn == OPENING ? n : 0, &request);
        if (request != NULL && turn == DOING)
            refused = do_without(world, row, n, request);
        else if (request != NULL)
            (void)history_use(world, row, request, NULL);
        if (request != NULL && row->kind != HISTORY_KEEP)
            engine_request_close(world->engine, request);
    } else if (turn == DOING) {
        refused = do_without(world, row, n, NULL);
    } else {
        (void)history_do(world, row, NULL);
    }
    return refused;
}

static void world_end(struct world *world)
{
    engine_destroy(world->engine);
    text_finish(&world->told);
    text_finish(&world->journal);
}

/* Executes the history up to a step, without a sink, so that only the engine allocates. */
static void history_up_to(struct world *world, unsigned last)
{
    history_init(world);
    engine_set_sink(world->engine, &(struct event_sink){0});
    for (unsigned step = 0; step < last; step++)
        assert_true(history_step(world, step));
}

/* Checks that a step without memory has the same result as with memory, at the latest after the
 * engine retried, and that all later steps do. Returns whether an allocation failed. */
static bool check_step(unsigned step, enum turn turn, unsigned long n)
{
    struct world world, other;
    struct text wanted;
    bool refused;

    history_up_to(&world, step);
    refused = row_without(&world, &history_rows[step], turn, n);
    engine_advance(world.engine, engine_now(world.engine));
    history_up_to(&other, step + 1);
    wanted = engine_state(other.engine);
    check_state(world.engine, &wanted);
    for (unsigned next = step + 1; history_step(&other, next); next++)
        assert_true(history_step(&world, next));
    check_same_state(world.engine, other.engine);
    world_end(&world);
    world_end(&other);
    return refused;
}

static void every_step_of_a_long_history_survives_without_memory(void **state)
{
    unsigned long failures = 0;

    (void)state;
    for (unsigned step = 0; history_rows[step].kind != HISTORY_END; step++) {
        for (unsigned turn = 0; turn < TURNS; turn++) {
            unsigned long n = 1;

            while (check_step(step, (enum turn)turn, n))
                n++;
            failures += n - 1;
        }
    }
    assert_true(failures > 100);
}

static int attempt_create(void *context)
{
    struct machine *machine = context;
    struct engine *engine = NULL;
    struct berth_error error = {0};
    int code = engine_create(machine, &history_settings, &engine, &error);

    if (code < 0) {
        assert_null(engine);
        assert_int_equal(error.code, code);
        assert_int_equal(machine->devices.count, 6); /* the caller still owns it */
        return code;
    }
    assert_int_equal(machine->devices.count, 0);
    engine_destroy(engine);
    return 0;
}

static void an_engine_is_made_whole_or_not_at_all(void **state)
{
    struct machine machine = {0};

    (void)state;
    history_machine(&machine);
    assert_true(failing_allocator_try_all(attempt_create, &machine) > 20);
}

static void every_event_is_replayed_whole_or_not_at_all(void **state)
{
    struct world world;
    struct engine *twin;
    size_t used;

    (void)state;
    history_init(&world);
    for (unsigned step = 0; history_step(&world, step); step++)
        continue;
    twin = world_twin(&world);
    for (size_t at = 0; at < world.journal.length; at += used) {
        struct journal_record record = {0};
        struct berth_error error = {0};
        int code = BERTH_ERROR_MEMORY;

        assert_int_equal(journal_decode(world.journal.bytes + at, world.journal.length - at,
                                        &record, &used, NULL),
                         JOURNAL_COMPLETE);
        for (unsigned long n = 1; code == BERTH_ERROR_MEMORY; n++) {
            struct text before = engine_state(twin);

            failing_allocator_start(n);
            code = engine_replay(twin, &record.event, &error);
            (void)failing_allocator_stop();
            if (code == BERTH_ERROR_MEMORY)
                check_state(twin, &before);
            else
                text_finish(&before);
        }
        assert_int_equal(code, 0);
        journal_record_finish(&record);
    }
    engine_resume(twin);
    engine_advance(twin, engine_now(world.engine));
    check_same_state(world.engine, twin);
    engine_destroy(twin);
    world_finish(&world);
}

static void count(void *context, const struct engine_event *event)
{
    (void)event;
    ++*(size_t *)context;
}

static int attempt_dump(void *context)
{
    size_t events = 0;
    struct event_sink sink = {.notify = count, .context = &events, .wanted = EVENT_ALL};
    int code = engine_dump(context, &sink);

    assert_true(code == 0 ? events > 10 : events == 0);
    return code;
}

static void the_state_is_told_whole_or_not_at_all(void **state)
{
    struct world world;

    (void)state;
    history_up_to(&world, 20);
    assert_true(failing_allocator_try_all(attempt_dump, world.engine) > 1);
    world_end(&world);
}

static void a_limit_is_set_or_not(void **state)
{
    struct berth_error error = {0};
    struct world world;
    struct text before;

    (void)state;
    history_up_to(&world, 20);
    before = engine_state(world.engine);
    failing_allocator_start(1);
    assert_int_equal(engine_limit_user(world.engine, 1, 0, &error), BERTH_ERROR_MEMORY);
    assert_int_equal(engine_limit_group(world.engine, 1, 0, NULL), BERTH_ERROR_MEMORY);
    assert_true(failing_allocator_stop());
    check_failed(&world, &error, &before);
    world_end(&world);
}

/* Ten devices, one of them leased, and a claim for all, whose lease needs an allocated list. */
static void world_init_ten(struct world *world)
{
    world_init(world, "nvidia0,nvidia1,nvidia2,nvidia3,nvidia4,nvidia5,nvidia6,nvidia7,nvidia8,"
                      "nvidia9");
    granted_to(world, NULL);
    waits_with(world, "gpus=10");
    engine_set_sink(world->engine, &(struct event_sink){0});
}

static void a_grant_that_lacked_memory_is_tried_again_soon(void **state)
{
    struct world world;

    (void)state;
    world_init_ten(&world);
    engine_advance(world.engine, 5);
    failing_allocator_start(1);
    released(&world, 1);
    assert_true(failing_allocator_stop());
    check_pending(&world, 1);
    check_next_time(&world, 5 + SECOND / 100);
    engine_advance(world.engine, 5 + SECOND / 100);
    check_pending(&world, 0);
    assert_int_equal(lease_in(&world, 3).slot_count, 10);
    check_next_time(&world, TIME_NEVER);
    world_end(&world);
}

static void it_is_tried_again_until_there_is_memory(void **state)
{
    struct world world;

    (void)state;
    world_init_ten(&world);
    failing_allocator_start(1);
    released(&world, 1);
    engine_advance(world.engine, SECOND);
    assert_true(failing_allocator_stop());
    check_pending(&world, 1);
    check_next_time(&world, SECOND + SECOND / 100);
    engine_advance(world.engine, 2 * SECOND);
    check_pending(&world, 0);
    world_end(&world);
}

static void a_request_that_lacked_memory_is_judged_again_soon(void **state)
{
    struct machine machine = {0};
    struct world world;
    uint64_t claim;

    (void)state;
    for (uint32_t i = 0; i < 140; i++)
        machine_add(&machine, (struct device_id){VENDOR_NVIDIA, i, DEVICE_NO_MIG});
    world_init_with(&world, &machine, NULL);
    engine_set_sink(world.engine, &(struct event_sink){0});
    granted_to(&world, "gpus=40");
    /* A comparison of this many devices needs memory. */
    claim = waits_with(&world, "gpus=65 replicas=2 policy=weighted");
    failing_allocator_start(1);
    engine_device_gone(world.engine, 139);
    assert_true(failing_allocator_stop());
    check_pending(&world, 1);
    check_next_time(&world, SECOND / 100);
    engine_advance(world.engine, SECOND / 100);
    check_next_time(&world, HOUR);
    released(&world, 1);
    assert_int_equal(lease_in(&world, claim + 1).slot_count, 130);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_of_a_long_history_survives_without_memory),
        cmocka_unit_test(an_engine_is_made_whole_or_not_at_all),
        cmocka_unit_test(every_event_is_replayed_whole_or_not_at_all),
        cmocka_unit_test(the_state_is_told_whole_or_not_at_all),
        cmocka_unit_test(a_limit_is_set_or_not),
        cmocka_unit_test(a_grant_that_lacked_memory_is_tried_again_soon),
        cmocka_unit_test(it_is_tried_again_until_there_is_memory),
        cmocka_unit_test(a_request_that_lacked_memory_is_judged_again_soon),
    };

    return cmocka_run_group_tests_name("engine_memory", tests, NULL, NULL);
}
