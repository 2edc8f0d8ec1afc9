/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/handlers/handle.h"

#include <string.h>

#include "daemon/handlers/deferred_claims.h"
#include "support/daemons/pool_stage.h"

/* Passes an empty message of this type on. */
static void handle_type(const struct stage_client *client, int type)
{
    struct wire_message message = {.type = (enum wire_type)type, .number = 9};

    handle_message(client->connection, &message);
    wire_message_finish(&message);
}

static void each_message_has_its_handler(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    static const struct {
        int type;
        const char *answer; /* the message's text; NULL: another answer */
        int wanted;         /* type */
    } rows[] = {
        {WIRE_HELLO, NULL, WIRE_POOL},
        {WIRE_CLAIM, "cannot claim: the message has no token", WIRE_REFUSED},
        {WIRE_RELEASE, "cannot end lease 0: no claim or lease has this id", WIRE_REFUSED},
        {WIRE_CANCEL, "cannot cancel claim 0: no claim or lease has this id", WIRE_REFUSED},
        {WIRE_STOP, "cannot end lease 0: no claim or lease has this id", WIRE_REFUSED},
        {WIRE_EXTEND, "cannot extend lease 0: no claim or lease has this id", WIRE_REFUSED},
        {WIRE_EXPLAIN, "cannot explain claim 0: no waiting claim has this id", WIRE_REFUSED},
        {WIRE_WATCH, "cannot wait for the end of 0: no claim or lease has this id", WIRE_REFUSED},
        {WIRE_TEST, "cannot claim: the message has no request", WIRE_REFUSED},
        {WIRE_LOOK, NULL, WIRE_PAGE},
        {WIRE_DRAIN, "only root, the pool's owner and its admins may drain devices", WIRE_REFUSED},
        {WIRE_UNDRAIN, "only root, the pool's owner and its admins may drain devices",
         WIRE_REFUSED},
        {WIRE_FOLLOW,
         "unknown kind of notification in the set 0; the client may be newer than the daemon",
         WIRE_REFUSED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_message message;

        handle_type(&client, rows[i].type);
        assert_message(&client, rows[i].wanted, &message);
        assert_int_equal(message.number, 9);
        if (rows[i].answer != NULL)
            assert_string_equal(message.text, rows[i].answer);
        wire_message_finish(&message);
        assert_no_message(&client);
    }
    pool_stage_hang_up(stage, &client);
}

/* STOP ends leases, CANCEL claims. */
static void the_end_of_a_claim_is_not_that_of_a_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = {.type = WIRE_STOP, .number = 9};

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4", .uid = STAGE_OTHER});
    message.id = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"})->by_id.id;
    handle_message(client.connection, &message);
    assert_refused(&client, BERTH_ERROR_INVALID,
                   "cannot end lease 2: it still waits; use 'berth cancel 2'");
    message.type = WIRE_CANCEL;
    handle_message(client.connection, &message);
    assert_sent(&client, WIRE_DONE);
    pool_stage_hang_up(stage, &client);
}

/* The daemon's own messages, and those of a newer client, are no requests. */
static void unknown_messages_are_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    static const int types[] = {0, WIRE_FOLLOW + 1, WIRE_POOL, WIRE_NEWS, 200, 255};

    for (size_t i = 0; i < COUNT(types); i++) {
        struct wire_message message;

        handle_type(&client, types[i]);
        assert_message(&client, WIRE_REFUSED, &message);
        assert_int_equal(-(int)message.error, BERTH_ERROR_INVALID);
        assert_contains(message.text, "the client may be newer than the daemon");
        wire_message_finish(&message);
    }
    pool_stage_hang_up(stage, &client);
}

/* Only answers about free devices wait for the searches of ended leases. */
static void messages_about_devices_wait_for_searches(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    static const struct {
        int type;
        bool waits;
    } rows[] = {
        {WIRE_HELLO, false}, {WIRE_WATCH, false}, {WIRE_CANCEL, false}, {WIRE_FOLLOW, false},
        {WIRE_LOOK, true},   {WIRE_CLAIM, true},  {WIRE_EXPLAIN, true}, {WIRE_TEST, true},
    };
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.hold = LEASE_HOLD_NOTHING});

    /* A search of the user's own lease is out. */
    job->state = JOB_LOOKING;
    job_lease_watch(pool, job)->look_number = ++pool->look_count;
    list_append(&pool->looks, &job->guard->in_looks);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_message message;

        handle_type(&client, rows[i].type);
        assert_int_equal(pool_stage_receive(&client, &message), !rows[i].waits);
        if (!rows[i].waits)
            wire_message_finish(&message);
    }
    deferred_claims_forget(pool, NULL);
    pool_stage_hang_up(stage, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_message_has_its_handler, pool_stage_begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(the_end_of_a_claim_is_not_that_of_a_lease, pool_stage_begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(unknown_messages_are_refused, pool_stage_begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(messages_about_devices_wait_for_searches, pool_stage_begin,
                                        pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
