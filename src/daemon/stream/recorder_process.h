/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs berth-recorder, a program that follows the pool's event stream and writes past leases to the
 * history file. The daemon itself touches no file of the history and never waits for the recorder,
 * so a disk that hangs stops only the recorder.
 *
 * The first lease starts the recorder. After its end it is started again, with growing pauses. Its
 * faults are problems of the pool.
 *
 * Nothing here blocks. All functions belong to the loop's thread.
 */
#ifndef DAEMON_STREAM_RECORDER_PROCESS_H
#define DAEMON_STREAM_RECORDER_PROCESS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "daemon/core/log.h"
#include "daemon/core/loop.h"
#include "daemon/core/pool_clock.h"

struct problem_list;
struct recorder_process;

/* The first and the longest pause before a restart, the lifetime after which the next pause is the
 * first one again, and the default of recorder_process_settings.timeout. */
#define RECORDER_RESTART_FIRST (DURATION_SECOND / 10)
#define RECORDER_RESTART_LAST  (60 * DURATION_SECOND)
#define RECORDER_GOOD_LIFE     (10 * DURATION_SECOND)
#define RECORDER_TIMEOUT       (30 * DURATION_SECOND)

/* The recorder's settings. */
struct recorder_order {
    const char *file;    /* NULL: no history is kept */
    int64_t keep;        /* a lease is deleted this long after its end */
    uint64_t size;       /* maximum of the file, in bytes */
    bool shows_commands; /* the file has the leases' whole command lines */
};

/* Callbacks must not call recorder_process_destroy(). */
struct recorder_process_events {
    void *context;

    /* Opens the recorder's connection to the pool and takes the descriptor, a socket that does not
     * block. Returns false without memory; then the descriptor is still the caller's. */
    bool (*connect)(void *context, int descriptor);
    /* Shuts that connection down, if it is still open; recorder_process_hung_up() is called later.
     */
    void (*disconnect)(void *context);
    /* The recorder has written the first `count` leases that have ended since the start. */
    void (*written)(void *context, uint64_t count);
    /* The result of recorder_process_problems() has changed. */
    void (*problems_changed)(void *context);
};

struct recorder_process_settings {
    struct loop *loop;
    struct log *log;
    const struct pool_clock *clock;
    const char *program;   /* absolute path */
    const char *pool_name; /* part of each lease's id in the history */
    bool is_own;           /* the pool is a user's own: only the user may read the file */
    int64_t timeout;       /* from an answer to the next question, before a problem is reported */
    struct recorder_process_events events;
};

/* Returns the pause before a restart after this many failures in a row. */
int64_t recorder_process_restart_after(unsigned failures);

/* Creates it without starting a process. The pointers of the settings must stay valid, except for
 * the texts, which are copied, as are those of the order. Fails with BERTH_ERROR_MEMORY. */
int recorder_process_create(struct recorder_process **ret_recorder,
                            const struct recorder_process_settings *settings,
                            const struct recorder_order *order, struct berth_error *error);
/* Leaves a running recorder alone: it writes the rest when its connection is closed. Accepts NULL.
 */
void recorder_process_destroy(struct recorder_process *recorder);

/* Changes the recorder's settings, and restarts it if it runs. Without memory nothing changes. */
void recorder_process_set_order(struct recorder_process *recorder,
                                const struct recorder_order *order);

/* Returns the history file; NULL: no history is kept. */
const char *recorder_process_file(const struct recorder_process *recorder);

/* Starts the recorder soon, because there is a lease. Cheap after the first call. */
void recorder_process_want(struct recorder_process *recorder);

/* The recorder has asked for news. */
void recorder_process_asked(struct recorder_process *recorder);
/* The recorder's question was answered. */
void recorder_process_answered(struct recorder_process *recorder);
/* The recorder's connection was closed. */
void recorder_process_hung_up(struct recorder_process *recorder);

/* Returns the recorder's faults, valid until the next turn of the loop. */
const struct problem_list *recorder_process_problems(const struct recorder_process *recorder);

#endif
