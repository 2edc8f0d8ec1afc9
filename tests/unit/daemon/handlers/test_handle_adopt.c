/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims for processes that run already. The processes are real; the test plays the readers of
 * /proc and the report of the hardware.
 */
#include "support/unit.h"

#include "daemon/handlers/handle_adopt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/pidfd.h"
#include "daemon/handlers/deferred_claims.h"
#include "daemon/handlers/handle.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/squatter_watch.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"

/* A stage with two devices and a process that is to be adopted. */
struct scene {
    struct pool_stage *stage;
    struct stage_client owner; /* may decide about everything */
    pid_t child;
};

static void forget_client(struct pool *pool, struct connection *connection)
{
    list_for_each (link, &connection->watchers)
        watcher_free(container_of(link, struct watcher, in_connection));
    deferred_claims_forget(pool, connection);
    job_detach_all(connection);
}

static int begin(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    scene->stage = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = pool_stage_all, .part_count = POOL_STAGE_ALL});
    scene->stage->closed = forget_client;
    scene->stage->pool.handlers.retry_adoption = handle_adopt_again;
    scene->owner = pool_stage_connect(scene->stage, STAGE_OWNER);
    scene->child = waiting_child_start();
    *state = scene;
    return 0;
}

static int end(void **state)
{
    struct scene *scene = *state;

    pool_stage_hang_up(scene->stage, &scene->owner);
    waiting_child_end(scene->child);
    pool_stage_free(scene->stage);
    free(scene);
    return 0;
}

/* Sends a claim for the process, and finishes the message. */
static void send_message(struct scene *scene, const struct stage_client *client,
                         struct wire_message *message)
{
    scene->stage->pool.clients.packet_length = 3 * 1024;
    handle_message(client->connection, message);
    engine_events_settle(&scene->stage->pool);
    wire_message_finish(message);
}

static struct wire_message adoption(struct scene *scene, const char *words)
{
    struct wire_message message = pool_stage_message(scene->stage, words);

    message.hold = LEASE_HOLD_PROCESS;
    message.pid = scene->child;
    return message;
}

static void adopt(struct scene *scene, const char *words)
{
    struct wire_message message = adoption(scene, words);

    send_message(scene, &scene->owner, &message);
}

/* Claims the devices that the process uses. */
static void adopt_present(struct scene *scene)
{
    struct wire_message message = adoption(scene, NULL);

    message.present = true;
    send_message(scene, &scene->owner, &message);
}

/* The process as the reader describes it, of STAGE_USER. */
static struct reader_process *describe(struct scene *scene, struct reader_answer *answer)
{
    struct reader_process *process = played_readers_add(answer, scene->child, READER_FOUND);

    process->uid = optional_number_of(STAGE_USER);
    process->gid = optional_number_of(STAGE_USER);
    process->started = 77 * DURATION_SECOND;
    return process;
}

static void answer(struct scene *scene, struct reader_answer *facts)
{
    struct pool *pool = &scene->stage->pool;

    played_readers_answer(played_readers_query(pool->readers, READER_DESCRIBE), facts);
}

static void answer_plainly(struct scene *scene)
{
    struct reader_answer facts = {0};

    describe(scene, &facts);
    answer(scene, &facts);
}

/* Puts the process, or another one, on a device. */
static void put_on(struct scene *scene, uint32_t slot, pid_t pid)
{
    put_process(scene->stage->pool.engine, slot,
                &(struct device_process){.pid = (uint64_t)pid,
                                         .uid = optional_number_of(STAGE_USER),
                                         .command = (char *)"train"});
}

/* ---- Before the reader is asked ---- */

static void some_claims_are_no_adoptions(void **state)
{
    struct scene *scene = *state;
    static const char text[] =
        "cannot adopt a process with several replicas or inside another lease";
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

/* ---- What the reader says ---- */

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

/* A process of a user namespace belongs to the namespace's owner, as whom the kernel lets do
 * anything to it. */
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

/* ---- The lease ---- */

/* Whatever the client may see, and although the process squatted there. */
static void a_process_gets_the_devices_that_it_uses(void **state)
{
    struct scene *scene = *state;
    struct pool *pool = &scene->stage->pool;
    struct wire_message message = adoption(scene, NULL);
    char **mask = vector_append(&message.masks);
    struct lease_view lease;
    struct slot_view slot;
    const struct job *job;

    assert_non_null(mask);
    *mask = copy_of("CUDA_VISIBLE_DEVICES=0");
    message.present = true;
    put_on(scene, 1, scene->child);
    squatter_watch_judge_all(pool);
    engine_get_slot(pool->engine, 1, &slot);
    assert_int_equal(slot.blocks, BLOCK_SQUATTED);
    send_message(scene, &scene->owner, &message);
    pool->device_locks->updated = 0;
    answer_plainly(scene);
    engine_get_slot(pool->engine, 1, &slot);
    assert_int_equal(slot.blocks, 0);
    assert_int_equal(pool->device_locks->updated, 1);
    assert_message(&scene->owner, WIRE_GRANTED, &message);
    assert_int_equal(message.devices.count, 1);
    assert_int_equal(message.devices.items[0].id.index, 1);
    wire_message_finish(&message);
    job = job_of_id(pool, 1);
    assert_true(job->adopted);
    assert_int_equal(job->holder->uid, STAGE_USER);
    assert_int_equal(job->holder->pid, scene->child);
    assert_int_equal(job->holder->began, 77 * DURATION_SECOND);
    assert_true(job->guard->process.descriptor >= 0);
    assert_true(engine_get_lease(pool->engine, job->by_lease.id, &lease));
    assert_int_equal(engine_request_what(lease.request)->wanted.count, 1);
    assert_int_equal(engine_request_what(lease.request)->wanted.items[0].index, 1);
    /* Its process has a lease by now. */
    assert_int_equal(engine_device_processes(pool->engine, 1)->items[0].lease, 1);
    assert_contains(pool_stage_journal(scene->stage), "job 1 uid 1000 pid ");
}

/* Processes that descend from it, or are in the container that began with it, go with it. */
static void what_belongs_to_the_process_goes_with_it(void **state)
{
    struct scene *scene = *state;
    struct pool *pool = &scene->stage->pool;
    const uint32_t ancestors[] = {(uint32_t)scene->child, 1};
    struct reader_answer facts = {0};
    struct wire_message message;

    put_process(pool->engine, 0,
                &(struct device_process){.pid = 999998,
                                         .uid = optional_number_of(STAGE_USER),
                                         .ancestors = ancestors,
                                         .ancestor_count = 2});
    put_process(pool->engine, 1,
                &(struct device_process){.pid = 999999,
                                         .uid = optional_number_of(STAGE_USER),
                                         .container = (char *)"docker-12"});
    adopt_present(scene);
    describe(scene, &facts)->container = copy_of("docker-12");
    answer(scene, &facts);
    assert_message(&scene->owner, WIRE_GRANTED, &message);
    assert_int_equal(message.devices.count, 2);
    wire_message_finish(&message);
    assert_string_equal(job_of_id(pool, 1)->guard->container, "docker-12");
}

/* A stranger cannot pass for a part of the container by a name alone. */
static void a_strangers_container_does_not_go_with_it(void **state)
{
    struct scene *scene = *state;
    struct pool *pool = &scene->stage->pool;
    struct reader_answer facts = {0};
    struct wire_message message;

    put_on(scene, 0, scene->child);
    put_process(pool->engine, 1,
                &(struct device_process){.pid = 999999,
                                         .uid = optional_number_of(STAGE_OTHER),
                                         .container = (char *)"docker-12"});
    adopt_present(scene);
    describe(scene, &facts)->container = copy_of("docker-12");
    answer(scene, &facts);
    assert_message(&scene->owner, WIRE_GRANTED, &message);
    assert_int_equal(message.devices.count, 1);
    wire_message_finish(&message);
}

static void a_process_without_devices_asks_for_some(void **state)
{
    struct scene *scene = *state;
    struct text wanted = {0};

    text_append_format(&wanted, "process %d uses no device; request some, for example with -n 1",
                       (int)scene->child);
    adopt_present(scene);
    answer_plainly(scene);
    assert_refused(&scene->owner, BERTH_ERROR_NOT_FOUND, text_string(&wanted));
    text_finish(&wanted);
    adopt(scene, "gpus=2");
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_GRANTED);
    /* Without a free device it waits in the queue as any claim. */
    scene->stage->pool.readers->asked = 0;
    waiting_child_end(scene->child);
    scene->child = waiting_child_start();
    adopt(scene, "gpus=1");
    scene->stage->pool.clients.packet_length = 9; /* of another message */
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_WAITING);
    assert_int_equal(job_of_id(&scene->stage->pool, 2)->state, JOB_WAITING);
    assert_int_equal(job_of_id(&scene->stage->pool, 2)->kib, 3);
}

static void the_request_must_fit_what_it_uses(void **state)
{
    struct scene *scene = *state;
    struct text wanted = {0};

    put_on(scene, 0, scene->child);
    adopt(scene, "gpus=2");
    answer_plainly(scene);
    text_append_format(&wanted, "requested 2 devices, but process %d already uses 1",
                       (int)scene->child);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text_string(&wanted));
    adopt(scene, "gpus=1 device=nvidia1");
    answer_plainly(scene);
    text_clear(&wanted);
    text_append_format(&wanted, "process %d already uses nvidia0, which was not requested",
                       (int)scene->child);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text_string(&wanted));
    put_on(scene, 1, scene->child);
    adopt(scene, "gpus=1");
    answer_plainly(scene);
    text_clear(&wanted);
    text_append_format(&wanted, "requested 1 devices, but process %d already uses 2",
                       (int)scene->child);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text_string(&wanted));
    text_finish(&wanted);
    adopt(scene, "gpus=1-2");
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_GRANTED);
}

/* A client that holds a lease by its connection is not under that lease itself. */
static void a_lease_of_a_connection_is_not_the_processs(void **state)
{
    struct scene *scene = *state;

    pool_stage_claim(scene->stage, &(struct stage_claim){.pid = scene->child});
    adopt(scene, NULL);
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_GRANTED);
}

/* ---- Leases that are there already ---- */

static void assert_has_lease(struct scene *scene, uint64_t lease)
{
    struct text wanted = {0};

    text_append_format(&wanted, "cannot adopt process %d: it already has lease %llu",
                       (int)scene->child, (unsigned long long)lease);
    assert_refused(&scene->owner, BERTH_ERROR_INVALID, text_string(&wanted));
    text_finish(&wanted);
}

static void a_process_with_a_lease_is_not_adopted_again(void **state)
{
    struct scene *scene = *state;
    struct pool_stage *stage = scene->stage;
    struct job *job = pool_stage_claim(
        stage, &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .pid = scene->child});
    struct reader_answer facts = {0};
    struct reader_process *process;
    uint32_t *ancestor;

    adopt(scene, NULL);
    answer_plainly(scene);
    assert_has_lease(scene, 1);
    /* It descends from the holder. */
    job->holder->pid = 4711;
    adopt(scene, NULL);
    process = describe(scene, &facts);
    for (uint32_t pid = 4710; pid <= 4711; pid++) {
        ancestor = vector_append(&process->ancestors);
        assert_non_null(ancestor);
        *ancestor = pid;
    }
    answer(scene, &facts);
    assert_has_lease(scene, 1);
    /* It was seen on the lease's device. */
    put_process(stage->pool.engine, 0,
                &(struct device_process){.pid = (uint64_t)scene->child, .lease = 1});
    adopt(scene, NULL);
    answer_plainly(scene);
    assert_has_lease(scene, 1);
}

/* A process in a container may be nobody's child, but carries its lease. What it says counts only
 * for leases of the user who answers for it. */
static void a_process_that_carries_a_lease_is_not_adopted(void **state)
{
    struct scene *scene = *state;
    struct pool_stage *stage = scene->stage;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.pid = 4711});
    struct reader_answer facts = {0};
    struct reader_process *process;

    adopt(scene, NULL);
    process = describe(scene, &facts);
    process->lease = 1;
    process->socket = copy_of(STAGE_SOCKET);
    answer(scene, &facts);
    assert_has_lease(scene, 1);
    /* Another pool's lease of the same number. */
    adopt(scene, NULL);
    facts = (struct reader_answer){0};
    process = describe(scene, &facts);
    process->lease = 1;
    process->socket = copy_of("/run/other/berth.sock");
    answer(scene, &facts);
    assert_sent(&scene->owner, WIRE_GRANTED);
    lease_ending_done(&stage->pool, job_of_id(&stage->pool, 2));
    engine_events_settle(&stage->pool);
    assert_sent(&scene->owner, WIRE_NOTICE);
    /* Another user's lease. */
    job->holder->uid = STAGE_OTHER;
    adopt(scene, NULL);
    facts = (struct reader_answer){0};
    process = describe(scene, &facts);
    process->lease = 1;
    process->socket = copy_of(STAGE_SOCKET);
    answer(scene, &facts);
    assert_sent(&scene->owner, WIRE_GRANTED);
    job->holder->uid = STAGE_USER;
}

/* ---- Devices of other leases ---- */

/* Another lease is on a device that the process uses: the adoption waits for its end. */
static void an_adoption_waits_for_the_lease_in_its_way(void **state)
{
    struct scene *scene = *state;
    struct pool *pool = &scene->stage->pool;
    struct job *job = pool_stage_claim(
        scene->stage, &(struct stage_claim){.words = "device=nvidia0", .uid = STAGE_OTHER});
    struct wire_message message;

    put_on(scene, 0, scene->child);
    adopt_present(scene);
    answer_plainly(scene);
    assert_message(&scene->owner, WIRE_WAITING, &message);
    assert_int_equal(message.id, 0);
    assert_contains(message.text, "nvidia0");
    wire_message_finish(&message);
    assert_int_equal(scene->owner.connection->watcher_count, 1);
    job->end = LEASE_END_RELEASED;
    lease_ending_done(pool, job);
    pool->tests_again = 0;
    engine_events_settle(pool);
    assert_sent(&scene->owner, WIRE_GRANTED);
    assert_int_equal(scene->owner.connection->watcher_count, 0);
    assert_true(played_readers_are_idle(pool->readers));
}

static void an_adoption_waits_as_long_as_it_may(void **state)
{
    struct scene *scene = *state;
    struct pool *pool = &scene->stage->pool;
    struct wire_message message = adoption(scene, NULL);

    pool_stage_claim(scene->stage,
                     &(struct stage_claim){.words = "device=nvidia0", .uid = STAGE_OTHER});
    put_on(scene, 0, scene->child);
    message.present = true;
    message.request->nonblock = true;
    send_message(scene, &scene->owner, &message);
    answer_plainly(scene);
    assert_message(&scene->owner, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_BUSY);
    assert_contains(message.text, "nvidia0");
    wire_message_finish(&message);
    message = adoption(scene, NULL);
    message.present = true;
    message.request->wait = optional_number_of(5 * DURATION_SECOND);
    send_message(scene, &scene->owner, &message);
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_WAITING);
    assert_int_equal(pool->test_timer.at, STAGE_LOOP_NOW + 5 * DURATION_SECOND);
    loop_set_timer(&pool->loop, &pool->test_timer, LOOP_NEVER);
    pool_stage_go_on(scene->stage, 5 * DURATION_SECOND);
    pool->tests_again = 0;
    pool->changed = true;
    engine_events_settle(pool);
    assert_message(&scene->owner, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_TIMED_OUT);
    wire_message_finish(&message);
    assert_int_equal(scene->owner.connection->watcher_count, 0);
}

/* The process ended while its adoption waited. */
static void an_adoption_of_an_ended_process_is_refused(void **state)
{
    struct scene *scene = *state;
    struct pool *pool = &scene->stage->pool;
    struct wire_message message;

    pool_stage_claim(scene->stage,
                     &(struct stage_claim){.words = "device=nvidia0", .uid = STAGE_OTHER});
    put_on(scene, 0, scene->child);
    adopt_present(scene);
    answer_plainly(scene);
    assert_sent(&scene->owner, WIRE_WAITING);
    waiting_child_end(scene->child);
    pool->tests_again = 0;
    pool->changed = true;
    engine_events_settle(pool);
    assert_message(&scene->owner, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_NOT_FOUND);
    wire_message_finish(&message);
    scene->child = waiting_child_start();
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

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, begin, end)

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
        IN_SCENE(a_process_gets_the_devices_that_it_uses),
        IN_SCENE(what_belongs_to_the_process_goes_with_it),
        IN_SCENE(a_strangers_container_does_not_go_with_it),
        IN_SCENE(a_process_without_devices_asks_for_some),
        IN_SCENE(the_request_must_fit_what_it_uses),
        IN_SCENE(a_lease_of_a_connection_is_not_the_processs),
        IN_SCENE(a_process_with_a_lease_is_not_adopted_again),
        IN_SCENE(a_process_that_carries_a_lease_is_not_adopted),
        IN_SCENE(an_adoption_waits_for_the_lease_in_its_way),
        IN_SCENE(an_adoption_waits_as_long_as_it_may),
        IN_SCENE(an_adoption_of_an_ended_process_is_refused),
        IN_SCENE(a_client_that_hangs_up_forgets_its_question),
        IN_SCENE(without_a_reader_the_claim_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
