/* SPDX-License-Identifier: Apache-2.0
 *
 * A stage for the coordinator and the handlers (src/daemon/leases and above): a struct pool with an
 * engine on made-up devices, a time that the test sets, and only those parts that the test names.
 * Nothing is started and nothing is written to a path: the clients are ends of socket pairs, the
 * journal and the log are in memory, and no name of a device is taken.
 */
#ifndef TESTS_POOL_STAGE_H
#define TESTS_POOL_STAGE_H

#include "support/unit.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/pool.h"
#include "engine/engine.h"
#include "wire/wire.h"

/* Users: the owner of the pool and two others. */
enum { STAGE_OWNER = 500, STAGE_USER = 1000, STAGE_OTHER = 1001 };

/* The loop's time at the start, and the pool's time then, which differs. */
#define STAGE_LOOP_NOW (1000 * DURATION_SECOND)
#define STAGE_OFFSET   (1000000 * DURATION_SECOND)
#define STAGE_NOW      (STAGE_LOOP_NOW + STAGE_OFFSET)

#define STAGE_SOCKET "/run/stage/berth.sock"

struct pool_stage_settings {
    const char *devices;           /* "nvidia0,amd1"; NULL: nvidia0 to nvidia3 */
    const struct pool_part *parts; /* besides jobs, in their order */
    size_t part_count;
    bool is_own;      /* a user's own pool */
    bool is_hardware; /* the devices are no inventory's */
    uint32_t slots;   /* maximum of devices; 0: the engine's default */
    bool is_live;     /* the loop's time is the real one, for pool_stage_run() */
};

struct pool_stage {
    struct pool pool;
    const struct pool_part *parts;
    size_t part_count;
    size_t started; /* parts */
    struct text log;
    struct text journal;
    size_t log_read;     /* bytes of the log that were read */
    size_t journal_read; /* likewise */
    uint64_t tokens;     /* given to claims */
    uint64_t numbers;    /* given to messages */

    /* Calls of pool->handlers, and a result. */
    int continued;       /* calls of continue_claims */
    int retried;         /* calls of retry_adoption */
    bool retry_succeeds; /* its result */
    /* Called when a connection closes; NULL: its jobs go on, and its watchers are freed. */
    void (*closed)(struct pool *pool, struct connection *connection);
};

/* All parts of the coordinator, with a recorder that never starts. */
extern const struct pool_part pool_stage_all[];
enum { POOL_STAGE_ALL = 2 };

/* Makes a stage. The test fails without one. */
struct pool_stage *pool_stage_make(const struct pool_stage_settings *settings);
void pool_stage_free(struct pool_stage *stage);

/* Set-up and tear-down functions for cmocka: a stage with all parts and four devices. */
int pool_stage_begin(void **state);
int pool_stage_end(void **state);

/* ---- Time ---- */

/* Goes on to the loop's time `time`. On the way, timers fire and the engine acts when they are due.
 */
void pool_stage_go_to(struct pool_stage *stage, int64_t time);
void pool_stage_go_on(struct pool_stage *stage, int64_t duration);

/* Runs the loop of a live stage until the condition holds. The test fails after 20 s. */
void pool_stage_run(struct pool_stage *stage, bool (*is_done)(struct pool_stage *stage));

/* ---- Clients ---- */

struct stage_client {
    int end; /* the client's end of the connection */
    struct connection *connection;
};

/* Connects a client of this user, whose process is the test. */
struct stage_client pool_stage_connect(struct pool_stage *stage, uint32_t uid);
/* Closes the client's end; the daemon's end is closed at the end of the turn. */
void pool_stage_hang_up(struct pool_stage *stage, struct stage_client *client);
/* Ends a turn of the loop for the clients. */
void pool_stage_end_turn(struct pool_stage *stage);

/* Receives the next message of the daemon. Returns false if there is none. The caller finishes it.
 */
bool pool_stage_receive(const struct stage_client *client, struct wire_message *ret_message);

/* Macros, so that the report names the caller's line. */
#define assert_no_message(client)                                      \
    do {                                                               \
        struct wire_message message_;                                  \
        if (pool_stage_receive((client), &message_))                   \
            fail_msg("got message %s", wire_type_name(message_.type)); \
    } while (0)
#define assert_message(client, wanted_type, message)                                       \
    do {                                                                                   \
        if (!pool_stage_receive((client), (message)))                                      \
            fail_msg("got no message, expected %s", wire_type_name(wanted_type));          \
        assert_string_equal(wire_type_name((message)->type), wire_type_name(wanted_type)); \
    } while (0)
/* The next message has this type; nothing else of it matters. */
#define assert_sent(client, wanted_type)                    \
    do {                                                    \
        struct wire_message message_;                       \
        assert_message((client), (wanted_type), &message_); \
        wire_message_finish(&message_);                     \
    } while (0)
#define assert_refused(client, wanted_code, wanted_text)       \
    do {                                                       \
        struct wire_message message_;                          \
        assert_message((client), WIRE_REFUSED, &message_);     \
        assert_string_equal(message_.text, (wanted_text));     \
        assert_int_equal(-(int)message_.error, (wanted_code)); \
        wire_message_finish(&message_);                        \
    } while (0)

/* ---- Claims ---- */

struct stage_claim {
    const char
        *words;   /* "gpus=2 time=10s", as support/engine/engines.h has them; NULL: one device */
    uint32_t uid; /* 0: STAGE_USER */
    bool is_root; /* uid 0 */
    pid_t pid;    /* 0: the test's */
    enum lease_hold hold;
    uint64_t parent; /* id */
    const char *command;
    struct connection *connection; /* NULL: not connected */
};

/* Claims, as CLAIM does, but starts nothing: the job waits or is JOB_HELD. */
struct job *pool_stage_claim(struct pool_stage *stage, const struct stage_claim *claim);

/* Drops all references to cached requests that the test still has. */
void pool_stage_release_requests(struct pool_stage *stage);

/* Fills in a message that claims, with a token of its own; the caller finishes it. */
struct wire_message pool_stage_message(struct pool_stage *stage, const char *words);

/* ---- The log and the journal ---- */

/* Returns the log's lines since the last call, without their times; valid until the next call. */
const char *pool_stage_log(struct pool_stage *stage);

/* Returns the journal's records since the last call, one line for each; valid until the next call.
 */
const char *pool_stage_journal(struct pool_stage *stage);

#define assert_contains(text, part)                                         \
    do {                                                                    \
        const char *text_ = (text);                                         \
        if (strstr(text_, (part)) == NULL)                                  \
            fail_msg("expected a text with '%s', got:\n%s", (part), text_); \
    } while (0)
#define assert_contains_not(text, part)                                        \
    do {                                                                       \
        const char *text_ = (text);                                            \
        if (strstr(text_, (part)) != NULL)                                     \
            fail_msg("expected a text without '%s', got:\n%s", (part), text_); \
    } while (0)

#endif
