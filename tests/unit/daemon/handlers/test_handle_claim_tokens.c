/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims within leases, claims that are sent again, and claims of one process.
 */
#include "support/unit.h"

#include "daemon/handlers/handle_claim.h"

#include <unistd.h>

#include "daemon/handlers/deferred_claims.h"
#include "daemon/leases/lease_ending.h"
#include "support/daemons/claim_messages.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"

/* ---- Leases within leases ---- */

static void claim_within(struct pool_stage *stage, const struct stage_client *client,
                         uint64_t parent)
{
    struct wire_message message = pool_stage_message(stage, NULL);

    message.parent = parent;
    send_message(stage, client, &message);
}

static void a_claim_may_be_within_a_lease_of_its_user(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    struct stage_client root = pool_stage_connect(stage, 0);
    struct job *outer;

    send_claim(stage, &client, "gpus=2");
    assert_sent(&client, WIRE_GRANTED);
    outer = job_of_id(pool, 1);
    claim_within(stage, &client, 1);
    assert_sent(&client, WIRE_GRANTED);
    assert_int_equal(job_of_id(pool, 2)->holder->parent, 1);
    claim_within(stage, &other, 1);
    assert_refused(&other, BERTH_ERROR_PERMISSION, "BERTH_LEASE: lease 1 belongs to another user");
    claim_within(stage, &root, 1);
    assert_sent(&root, WIRE_GRANTED);
    claim_within(stage, &client, 99);
    assert_refused(&client, BERTH_ERROR_NOT_FOUND,
                   "BERTH_LEASE: lease 99 does not exist, or it ends or has ended; unset it with: "
                   "unset BERTH_LEASE");
    outer->state = JOB_ENDING;
    claim_within(stage, &client, 1);
    assert_sent(&client, WIRE_REFUSED);
    outer->state = JOB_HELD;
    outer->unprepared = true;
    claim_within(stage, &client, 1);
    assert_sent(&client, WIRE_REFUSED);
    outer->unprepared = false;
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
    pool_stage_hang_up(stage, &root);
}

/* Nothing else limits leases within leases, so each counts as waiting until it ends. */
static void leases_within_leases_have_a_limit(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, NULL);

    stage->pool.rules.bounds.waiting = 2;
    send_claim(stage, &client, "gpus=4");
    assert_sent(&client, WIRE_GRANTED);
    claim_within(stage, &client, 1);
    claim_within(stage, &client, 1);
    assert_sent(&client, WIRE_GRANTED);
    assert_sent(&client, WIRE_GRANTED);
    message.parent = 1;
    send_message(stage, &client, &message);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_LIMIT);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* ---- Tokens ---- */

/* Sends a claim with the token `token`. */
static void send_token(struct pool_stage *stage, const struct stage_client *client, uint64_t token,
                       enum lease_hold hold)
{
    struct wire_message message = pool_stage_message(stage, "gpus=4");

    message.token[0] = message.token[1] = token;
    message.hold = hold;
    send_message(stage, client, &message);
}

static void a_client_that_reconnects_goes_on(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client first = pool_stage_connect(stage, STAGE_USER);
    struct stage_client second = pool_stage_connect(stage, STAGE_USER);

    send_token(stage, &first, 70, LEASE_HOLD_CONNECTION);
    send_token(stage, &first, 71, LEASE_HOLD_CONNECTION);
    assert_sent(&first, WIRE_GRANTED);
    assert_sent(&first, WIRE_WAITING);
    send_token(stage, &second, 70, LEASE_HOLD_CONNECTION);
    assert_sent(&second, WIRE_GRANTED);
    assert_no_message(&first);
    /* A waiting claim is refused to its former connection, which would wait for ever. */
    send_token(stage, &second, 71, LEASE_HOLD_CONNECTION);
    assert_sent(&second, WIRE_WAITING);
    assert_refused(&first, BERTH_ERROR_CANCELLED, "another connection has taken over this claim");
    assert_int_equal(pool->job_count, 2);
    assert_ptr_equal(job_of_id(pool, 2)->connection, second.connection);
    assert_contains(pool_stage_log(stage), "attached id=2 pid=");
    pool_stage_hang_up(stage, &first);
    assert_int_equal(pool->job_count, 2);
    pool_stage_hang_up(stage, &second);
}

/* The client missed the notice of its end, and the grant that is still being prepared. */
static void a_client_that_reconnects_learns_what_it_missed(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client first = pool_stage_connect(stage, STAGE_USER);
    struct stage_client second = pool_stage_connect(stage, STAGE_USER);

    send_token(stage, &first, 70, LEASE_HOLD_CONNECTION);
    assert_sent(&first, WIRE_GRANTED);
    lease_ending_begin(pool, job_of_id(pool, 1), LEASE_END_EXPIRED, STAGE_NOW + DURATION_SECOND);
    send_token(stage, &second, 70, LEASE_HOLD_CONNECTION);
    assert_sent(&second, WIRE_GRANTED);
    assert_sent(&second, WIRE_NOTICE);
    job_of_id(pool, 1)->unprepared = true;
    send_token(stage, &first, 70, LEASE_HOLD_CONNECTION);
    assert_sent(&first, WIRE_NOTICE); /* of before */
    assert_sent(&first, WIRE_WAITING);
    pool_stage_hang_up(stage, &first);
    pool_stage_hang_up(stage, &second);
}

/* The former client may have died before it showed the warning. */
static void a_client_that_reconnects_is_warned_again(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client first = pool_stage_connect(stage, STAGE_USER);
    struct stage_client second = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, "time=100s");

    message.token[0] = message.token[1] = 70;
    send_message(stage, &first, &message);
    pool_stage_go_on(stage, 75 * DURATION_SECOND);
    assert_sent(&first, WIRE_GRANTED);
    assert_sent(&first, WIRE_WARNING);
    send_token(stage, &second, 70, LEASE_HOLD_CONNECTION);
    pool_stage_go_on(stage, 0);
    assert_sent(&second, WIRE_GRANTED);
    assert_sent(&second, WIRE_WARNING);
    pool_stage_hang_up(stage, &first);
    pool_stage_hang_up(stage, &second);
}

/* A token is no secret: only the same user and process may use it. */
static void a_strangers_token_is_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client stranger = pool_stage_connect(stage, STAGE_OTHER);
    struct stage_client root = pool_stage_connect(stage, 0);

    send_token(stage, &client, 70, LEASE_HOLD_PROCESS);
    assert_sent(&client, WIRE_GRANTED);
    send_token(stage, &stranger, 70, LEASE_HOLD_PROCESS);
    assert_refused(&stranger, BERTH_ERROR_INVALID, "cannot claim: another client uses this token");
    send_token(stage, &root, 70, LEASE_HOLD_PROCESS);
    assert_sent(&root, WIRE_REFUSED);
    job_of_id(pool, 1)->holder->pid = 1;
    send_token(stage, &client, 70, LEASE_HOLD_PROCESS);
    assert_sent(&client, WIRE_REFUSED);
    /* An adopted process's lease has other clients: those that may decide about it. */
    job_of_id(pool, 1)->adopted = true;
    send_token(stage, &root, 70, LEASE_HOLD_PROCESS);
    assert_sent(&root, WIRE_GRANTED);
    send_token(stage, &stranger, 70, LEASE_HOLD_PROCESS);
    assert_sent(&stranger, WIRE_REFUSED);
    job_of_id(pool, 1)->holder->pid = getpid();
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &stranger);
    pool_stage_hang_up(stage, &root);
}

/* A client that comes back waits for nothing that a new claim waits for. */
static void a_known_token_is_not_deferred(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    send_token(stage, &client, 70, LEASE_HOLD_CONNECTION);
    assert_sent(&client, WIRE_GRANTED);
    pool->device_locks->are_unsettled = true;
    send_token(stage, &client, 70, LEASE_HOLD_CONNECTION);
    assert_sent(&client, WIRE_GRANTED);
    send_token(stage, &client, 71, LEASE_HOLD_CONNECTION);
    assert_no_message(&client);
    deferred_claims_forget(pool, NULL);
    pool_stage_hang_up(stage, &client);
}

/* ---- Holders and preparation ---- */

/* Ten thousand claims of one process need not have its command line ten thousand times. */
static void claims_of_one_process_share_its_holder(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    send_claim(stage, &client, NULL);
    send_claim(stage, &client, NULL);
    assert_ptr_equal(job_of_id(pool, 1)->holder, job_of_id(pool, 2)->holder);
    message = pool_stage_message(stage, NULL);
    message.command = copy_of("train");
    send_message(stage, &client, &message);
    assert_ptr_not_equal(job_of_id(pool, 3)->holder, job_of_id(pool, 2)->holder);
    message = pool_stage_message(stage, NULL);
    message.command = copy_of("train");
    send_message(stage, &client, &message);
    assert_ptr_equal(job_of_id(pool, 4)->holder, job_of_id(pool, 3)->holder);
    message = pool_stage_message(stage, NULL);
    message.command = copy_of("eval");
    send_message(stage, &client, &message);
    assert_ptr_not_equal(job_of_id(pool, 5)->holder, job_of_id(pool, 4)->holder);
    message = pool_stage_message(stage, NULL);
    message.command = copy_of("eval");
    message.request->wait = optional_number_of(5);
    send_message(stage, &client, &message);
    assert_ptr_not_equal(job_of_id(pool, 6)->holder, job_of_id(pool, 5)->holder);
    pool_stage_hang_up(stage, &client);
}

static void a_prolog_must_run_first(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    char **word = vector_append(&pool->rules.prolog.argv);

    assert_non_null(word);
    *word = copy_of("/bin/true");
    send_claim(stage, &client, "gpus=4");
    assert_sent(&client, WIRE_WAITING);
    assert_true(job_of_id(pool, 1)->unprepared);
    send_claim(stage, &client, "gpus=4");
    assert_true(job_of_id(pool, 2)->unprepared);
    /* A lease within a lease is on its devices, which are prepared. */
    job_of_id(pool, 1)->unprepared = false;
    claim_within(stage, &client, 1);
    assert_false(job_of_id(pool, 3)->unprepared);
    pool_stage_hang_up(stage, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_claim_may_be_within_a_lease_of_its_user),
        ON_STAGE(leases_within_leases_have_a_limit),
        ON_STAGE(a_client_that_reconnects_goes_on),
        ON_STAGE(a_client_that_reconnects_learns_what_it_missed),
        ON_STAGE(a_client_that_reconnects_is_warned_again),
        ON_STAGE(a_strangers_token_is_refused),
        ON_STAGE(a_known_token_is_not_deferred),
        ON_STAGE(claims_of_one_process_share_its_holder),
        ON_STAGE(a_prolog_must_run_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
