/* SPDX-License-Identifier: Apache-2.0
 *
 * The real berth-reader, and questions for it. READER_PROGRAM names the program.
 */
#ifndef TESTS_READER_WORLD_H
#define TESTS_READER_WORLD_H

#include "support/unit.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "reader/reader.h"

/* The socket in the marks; runs of the test beside each other have different ones. */
static inline const char *pool_socket(void)
{
    static char path[64];
    static pid_t owner;

    if (owner == 0) {
        owner = getpid();
        snprintf(path, sizeof(path), "/run/test-%d/berth.sock", (int)owner);
    }
    return path;
}

enum { LEASE = 4711, SOMEBODY = 71001, SUBORDINATE = 300000 };

static inline void assert_works(int code, const struct berth_error *error)
{
    if (code != 0)
        fail_msg("%s", error->message);
}

struct reader_world {
    struct reader reader;
    bool is_old;           /* uses no queries of new kernels */
    int64_t stall_timeout; /* after which a process counts as one that stalls the reader */
    unsigned stalls;       /* so far */
};

static inline int64_t in_time(void)
{
    return clock_now() + 20 * DURATION_SECOND;
}

static inline void reader_world_restart(struct reader_world *world)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(setenv("BERTH_READER", READER_PROGRAM, 1), 0);
    if (world->is_old)
        assert_int_equal(setenv("BERTH_READER_OLD_KERNEL", "1", 1), 0);
    assert_works(reader_start(&world->reader, &error), &error);
    unsetenv("BERTH_READER_OLD_KERNEL");
}

static inline int reader_world_begin(void **state, bool is_old)
{
    struct reader_world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    world->is_old = is_old;
    world->stall_timeout = 3 * DURATION_SECOND;
    reader_world_restart(world);
    *state = world;
    return 0;
}

static inline int reader_world_start(void **state)
{
    return reader_world_begin(state, false);
}

static inline int reader_world_start_old(void **state)
{
    return reader_world_begin(state, true);
}

static inline int reader_world_finish(void **state)
{
    struct reader_world *world = *state;

    reader_finish(&world->reader);
    free(world);
    return 0;
}

/* A request for what is left of the test's lease. */
static inline struct reader_request ask_leftovers(uid_t uid)
{
    struct reader_request request = {
        .question = READER_LEFTOVERS, .uid = uid, .socket = strdup(pool_socket())};
    struct reader_lease *lease = vector_append(&request.leases);

    assert_true(lease != NULL && request.socket != NULL);
    lease->id = LEASE;
    return request;
}

static inline void add_number(struct reader_numbers *list, uint32_t number)
{
    uint32_t *place = vector_append(list);

    assert_non_null(place);
    *place = number;
}

/* Waits for the answer until one process suspends the reader for too long. A reader that only waits
 * for a CPU is not suspended. Returns whether the answer is there. */
static inline bool await_answer(struct reader_world *world, struct reader_answer *ret_answer,
                                struct reader_touch *touch)
{
    int64_t since = clock_now();
    int64_t until = in_time();
    int code;

    *touch = reader_touch(&world->reader);
    for (;;) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct pollfd waiting = {.fd = world->reader.descriptor, .events = POLLIN};
        struct reader_touch now;

        code = reader_receive(&world->reader, ret_answer, &error);
        if (code != 0)
            break;
        assert_true(clock_now() < until);
        poll(&waiting, 1, 10);
        now = reader_touch(&world->reader);
        if (now.pid == 0 || now.count != touch->count)
            since = clock_now();
        *touch = now;
        if (clock_now() - since >= world->stall_timeout &&
            reader_activity(&world->reader) == READER_SUSPENDED)
            return false;
    }
    assert_int_equal(code, 1);
    return true;
}

/* Asks, as a daemon does: a reader that a process stalls is killed, and another one is asked, which
 * leaves that process alone. Other tests on this machine may have such processes. */
static inline struct reader_answer query_reader(struct reader_world *world,
                                                struct reader_request *request)
{
    struct reader_answer answer;
    struct reader_touch touch;

    for (;;) {
        struct berth_error error = BERTH_ERROR_INIT;

        assert_works(reader_send(&world->reader, request, &error), &error);
        if (await_answer(world, &answer, &touch))
            return answer;
        add_number(&request->stalled, (uint32_t)touch.pid);
        world->stalls++;
        reader_finish(&world->reader);
        reader_world_restart(world);
    }
}

static inline bool has_later(const struct reader_answer *answer)
{
    const struct reader_process *process;

    vector_for_each (process, &answer->processes) {
        if (process->state == READER_LATER || process->state == READER_CONTAINER)
            return true;
    }
    return false;
}

/* Asks until no process is just becoming a program, and frees the request. */
static inline struct reader_answer query_decided(struct reader_world *world,
                                                 struct reader_request *request)
{
    struct reader_answer answer = query_reader(world, request);

    while (has_later(&answer)) {
        reader_answer_finish(&answer);
        poll(NULL, 0, 1);
        answer = query_reader(world, request);
    }
    reader_request_finish(request);
    return answer;
}

static inline const struct reader_process *find_process(const struct reader_answer *answer,
                                                        pid_t pid)
{
    const struct reader_process *process;

    vector_for_each (process, &answer->processes) {
        if (process->pid == (uint32_t)pid)
            return process;
    }
    return NULL;
}

static inline size_t count_left(struct reader_world *world, uid_t uid)
{
    struct reader_request request = ask_leftovers(uid);
    struct reader_answer answer = query_decided(world, &request);
    size_t count = answer.processes.count;

    reader_answer_finish(&answer);
    return count;
}

static inline void skip_unless_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("skipped: only root can start processes of others\n");
    skip();
}

#define WITH_BOTH_KERNELS(test)                                                            \
    {#test, test, reader_world_start, reader_world_finish, NULL},                          \
    {                                                                                      \
#test " on an old kernel", test, reader_world_start_old, reader_world_finish, NULL \
    }

#endif
