/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims for a process that runs already. The process is real; the test plays the readers of
 * /proc and the report of the hardware.
 */
#ifndef TESTS_ADOPTION_SCENE_H
#define TESTS_ADOPTION_SCENE_H

#include "support/unit.h"

#include <stdlib.h>

#include "daemon/handlers/deferred_claims.h"
#include "daemon/handlers/handle.h"
#include "daemon/handlers/handle_adopt.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"

/* A stage with two devices and the process to adopt. */
struct scene {
    struct pool_stage *stage;
    struct stage_client owner; /* may decide about everything */
    pid_t child;
};

static inline void forget_client(struct pool *pool, struct connection *connection)
{
    list_for_each (link, &connection->watchers)
        watcher_free(container_of(link, struct watcher, in_connection));
    deferred_claims_forget(pool, connection);
    job_detach_all(connection);
}

static inline int begin(void **state)
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

static inline int end(void **state)
{
    struct scene *scene = *state;

    pool_stage_hang_up(scene->stage, &scene->owner);
    waiting_child_end(scene->child);
    pool_stage_free(scene->stage);
    free(scene);
    return 0;
}

/* Sends a claim for the process, and finishes the message. */
static inline void send_message(struct scene *scene, const struct stage_client *client,
                                struct wire_message *message)
{
    scene->stage->pool.clients.packet_length = 3 * 1024;
    handle_message(client->connection, message);
    engine_events_settle(&scene->stage->pool);
    wire_message_finish(message);
}

static inline struct wire_message adoption(struct scene *scene, const char *words)
{
    struct wire_message message = pool_stage_message(scene->stage, words);

    message.hold = LEASE_HOLD_PROCESS;
    message.pid = scene->child;
    return message;
}

static inline void adopt(struct scene *scene, const char *words)
{
    struct wire_message message = adoption(scene, words);

    send_message(scene, &scene->owner, &message);
}

/* Claims the devices that the process uses. */
static inline void adopt_present(struct scene *scene)
{
    struct wire_message message = adoption(scene, NULL);

    message.present = true;
    send_message(scene, &scene->owner, &message);
}

/* The process as the reader describes it, of STAGE_USER. */
static inline struct reader_process *describe(struct scene *scene, struct reader_answer *answer)
{
    struct reader_process *process = played_readers_add(answer, scene->child, READER_FOUND);

    process->uid = optional_number_of(STAGE_USER);
    process->gid = optional_number_of(STAGE_USER);
    process->started = 77 * DURATION_SECOND;
    return process;
}

static inline void answer(struct scene *scene, struct reader_answer *facts)
{
    struct pool *pool = &scene->stage->pool;

    played_readers_answer(played_readers_query(pool->readers, READER_DESCRIBE), facts);
}

static inline void answer_plainly(struct scene *scene)
{
    struct reader_answer facts = {0};

    describe(scene, &facts);
    answer(scene, &facts);
}

/* Puts the process, or another one, on a device. */
static inline void put_on(struct scene *scene, uint32_t slot, pid_t pid)
{
    put_process(scene->stage->pool.engine, slot,
                &(struct device_process){.pid = (uint64_t)pid,
                                         .uid = optional_number_of(STAGE_USER),
                                         .command = (char *)"train"});
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
