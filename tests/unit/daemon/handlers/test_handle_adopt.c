/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims for processes that run already, until the reader has described the process.
 */
#include "support/unit.h"

#include "daemon/handlers/handle_adopt.h"

#include <unistd.h>

#include "support/daemons/adoption_scene.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"

/* ---- Before the reader is asked ---- */

static void some_claims_are_no_adoptions(void **state)
{
    struct scene *scene = *state;
    static const char text[] = "cannot adopt with several replicas or inside another lease";
    struct wire_message message = adoption(scene, NULL);

    message.hold = LEASE_HOLD_CONNECTION;
    send_message(scene, &scene->owner, &message);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text);
    message = adoption(scene, "replicas=2");
    send_message(scene, &scene->owner, &message);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text);
    message = adoption(scene, NULL);
    message.parent = 1;
    send_message(scene, &scene->owner, &message);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text);
    message = (struct wire_message){.type = WIRE_CLAIM,
                                    .number = 3,
                                    .token = {9, 9},
                                    .hold = LEASE_HOLD_PROCESS,
                                    .pid = scene->child};
    send_message(scene, &scene->owner, &message);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text);
    assert_int_equal(scene->stage->pool.readers->asked, 0);
}

/* A stranger must not make a reader touch a process of another user, which may stall it. */
static void a_strangers_process_is_not_touched(void **state)
{
    struct scene *scene = *state;
    struct pool_stage *stage = scene->stage;
    struct stage_client stranger = pool_stage_connect(stage, geteuid() + 100000);
    struct wire_message message = adoption(scene, NULL);
    struct text wanted = {0};

    text_append_format(&wanted, "cannot adopt process %d: it belongs to another user",
                       (int)scene->child);
    send_message(scene, &stranger, &message);
    assert_refused(&stranger, BERTH_ERROR_PERMISSION, text_string(&wanted));
    assert_int_equal(stage->pool.readers->asked, 0);
    assert_int_equal(stranger.connection->quota->waiting, 0);
    text_finish(&wanted);
    pool_stage_hang_up(stage, &stranger);
}

static void a_process_must_be_there(void **state)
{
    struct scene *scene = *state;
    struct wire_message message = adoption(scene, NULL);

    message.pid = -5;
    send_message(scene, &scene->owner, &message);
    assert_refused(&scene->owner, BERTH_ERROR_NOT_FOUND,
                   "cannot adopt process -5: no such process");
    /* The daemon itself is no process of a user. */
    message = adoption(scene, NULL);
    message.pid = getpid();
    send_message(scene, &scene->owner, &message);
    assert_sent(&scene->owner, WIRE_REFUSED);
    assert_int_equal(scene->stage->pool.readers->asked, 0);
}

/* The process's user pays for the question, and the client's quota counts the message. */
static void the_question_has_its_price(void **state)
{
    struct scene *scene = *state;
    struct pool_stage *stage = scene->stage;
    struct subordinate_range *range = vector_append(&stage->pool.accounts.ranges);
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    uint32_t *admin = vector_append(&stage->pool.rules.admins.users);
    const struct reader_query *query;
    struct wire_message message = adoption(scene, NULL);
    struct reader_answer facts = {0};

    assert_true(range != NULL && admin != NULL);
    *admin = STAGE_USER;
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = STAGE_OTHER};
    send_message(scene, &client, &message);
    query = played_readers_query(stage->pool.readers, READER_DESCRIBE);
    assert_int_equal(query->uid, geteuid());
    assert_int_equal(query->request.pids.count, 1);
    assert_int_equal(query->request.pids.items[0], scene->child);
    assert_false(query->request.identity_only);
    assert_int_equal(client.connection->quota->waiting, 1);
    assert_int_equal(client.connection->quota->waiting_bytes, 3 * 1024);
    describe(scene, &facts);
    answer(scene, &facts);
    assert_int_equal(client.connection->quota->waiting_bytes, 0);
    stage->pool.rules.bounds.waiting = 0;
    message = adoption(scene, NULL);
    message.pid = scene->child;
    send_message(scene, &client, &message);
    assert_sent(&client, WIRE_GRANTED); /* of the first one */
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_LIMIT);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* ---- Descriptions by the reader ---- */

static void a_process_without_an_answer_is_busy(void **state)
{
    struct scene *scene = *state;
    struct reader_answer facts = {0};
    struct wire_message message;

    adopt(scene, NULL);
    answer(scene, NULL);
    assert_message(&scene->owner, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_BUSY);
    assert_contains(message.text, "it does not answer (it may be in the middle of an exec)");
    wire_message_finish(&message);
    adopt(scene, NULL);
    played_readers_add(&facts, scene->child, READER_STALLED);
    answer(scene, &facts);
    assert_message(&scene->owner, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_BUSY);
    wire_message_finish(&message);
    assert_int_equal(scene->stage->pool.job_count, 0);
}

static void a_process_that_is_gone_is_not_adopted(void **state)
{
    struct scene *scene = *state;
    struct reader_answer facts = {0};
    struct wire_message message;

    adopt(scene, NULL);
    played_readers_add(&facts, scene->child, READER_GONE);
    answer(scene, &facts);
    assert_message(&scene->owner, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_NOT_FOUND);
    wire_message_finish(&message);
    /* The number belongs to another process by now: the client named the start of its own. */
    message = adoption(scene, NULL);
    message.started = 12345;
    send_message(scene, &scene->owner, &message);
    answer_plainly(scene);
    assert_message(&scene->owner, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_NOT_FOUND);
    wire_message_finish(&message);
    message = adoption(scene, NULL);
    message.started = 77 * (uint64_t)sysconf(_SC_CLK_TCK);
    send_message(scene, &scene->owner, &message);
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_GRANTED);
}

/* The kernel lets the owner of a user namespace do anything to the processes in it, so they belong
 * to the owner. */
static void the_owner_of_a_namespace_answers_for_it(void **state)
{
    struct scene *scene = *state;
    struct pool_stage *stage = scene->stage;
    struct reader_answer facts = {0};

    adopt(scene, NULL);
    describe(scene, &facts)->owner = optional_number_of(STAGE_OTHER);
    answer(scene, &facts);
    assert_sent(&scene->owner, WIRE_GRANTED);
    assert_int_equal(job_of_id(&stage->pool, 1)->holder->uid, STAGE_OTHER);
}

/* The process has become another user's program since the kernel was asked for its user. */
static void the_readers_word_on_the_user_counts_too(void **state)
{
    struct scene *scene = *state;
    struct pool_stage *stage = scene->stage;
    struct subordinate_range *range = vector_append(&stage->pool.accounts.ranges);
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = adoption(scene, NULL);
    struct reader_answer facts = {0};

    assert_non_null(range);
    *range = (struct subordinate_range){.first = geteuid(), .last = geteuid(), .owner = STAGE_USER};
    send_message(scene, &client, &message);
    describe(scene, &facts)->uid = optional_number_of(geteuid() + 100000);
    answer(scene, &facts);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_PERMISSION);
    wire_message_finish(&message);
    assert_int_equal(stage->pool.job_count, 0);
    pool_stage_hang_up(stage, &client);
}

/* ---- Clients that hang up, and a lack of memory ---- */

static void a_client_that_hangs_up_forgets_its_question(void **state)
{
    struct scene *scene = *state;
    struct pool_stage *stage = scene->stage;
    struct stage_client other = pool_stage_connect(stage, STAGE_OWNER);
    struct wire_message message = adoption(scene, NULL);

    adopt(scene, NULL);
    send_message(scene, &other, &message);
    pool_stage_hang_up(stage, &other);
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_GRANTED);
    assert_true(played_readers_are_idle(stage->pool.readers));
    assert_true(list_is_empty(&stage->pool.adoptions));
}

static void without_a_reader_the_claim_is_refused(void **state)
{
    struct scene *scene = *state;

    scene->stage->pool.readers->has_no_memory = true;
    adopt(scene, NULL);
    assert_refused(&scene->owner, BERTH_ERROR_MEMORY, "out of memory");
    assert_true(list_is_empty(&scene->stage->pool.adoptions));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(some_claims_are_no_adoptions),
        IN_SCENE(a_strangers_process_is_not_touched),
        IN_SCENE(a_process_must_be_there),
        IN_SCENE(the_question_has_its_price),
        IN_SCENE(a_process_without_an_answer_is_busy),
        IN_SCENE(a_process_that_is_gone_is_not_adopted),
        IN_SCENE(the_owner_of_a_namespace_answers_for_it),
        IN_SCENE(the_readers_word_on_the_user_counts_too),
        IN_SCENE(a_client_that_hangs_up_forgets_its_question),
        IN_SCENE(without_a_reader_the_claim_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
