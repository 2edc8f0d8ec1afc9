/* SPDX-License-Identifier: Apache-2.0
 *
 * The leases that claims for running processes get.
 */
#include "support/unit.h"

#include "daemon/handlers/handle_adopt.h"

#include <stdlib.h>

#include "daemon/leases/lease_ending.h"
#include "daemon/leases/squatter_watch.h"
#include "support/daemons/adoption_scene.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"

/* ---- The lease ---- */

/* Devices that the client may not see count, too, and those on which the process squatted. */
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

/* A process in a container may have no ancestor of the lease, but it carries the lease's mark. The
 * mark counts only for leases of the user who is responsible for the process. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
