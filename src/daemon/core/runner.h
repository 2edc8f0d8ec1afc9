/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs programs from the daemon's loop without ever waiting for one. Each program has a session of
 * its own and gets only its arguments, a few variables and /dev/null. The runner reads the output
 * and keeps the last line. At the deadline it kills the program with all of its process group.
 */
#ifndef DAEMON_CORE_RUNNER_H
#define DAEMON_CORE_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/become_user.h"
#include "daemon/core/launcher.h"

struct loop;
struct string_list;
struct text;

/* The most helpers that run at once, and the most of those that have low priority. */
enum { HELPERS_MAX = 16, HELPERS_LOW_PRIORITY_MAX = 4 };

enum runner_outcome {
    HELPER_EXITED,      /* number: its exit code */
    HELPER_KILLED,      /* number: the signal */
    HELPER_LATE,        /* number: 0 */
    HELPER_NOT_STARTED, /* number: an errno */
};

struct runner_end {
    enum runner_outcome outcome;
    int number;
    int64_t deadline;      /* from the order */
    const char *last_line; /* of the output, inert; "" if there is none */
    struct text *output;   /* the begin of the output as it is, up to output_max bytes */
};

struct runner_order {
    const struct string_list *words;       /* the program's absolute path, and its arguments */
    const char *last_word;                 /* one more argument; NULL: none */
    const struct string_list *environment; /* NAME=VALUE, besides PATH; NULL: none */
    int64_t deadline;                      /* nanoseconds from the start of the program */
    bool is_low_priority;                  /* its end is not urgent: others start first */
    bool may_signal;                       /* gets CAP_KILL, if the daemon has it */
    size_t output_max;                     /* bytes of the output that are kept; 0: none */
    const char *input;                     /* less than a page; NULL: none */

    /* The launcher starts the program as this user (daemon/core/child.h). */
    struct launcher *launcher; /* NULL: the daemon starts it */
    enum launcher_program program;
    struct user_identity persona;
    const char *awaited; /* a file whose creation the start waits for, at most 1 s; NULL: none */

    /* Reports the end, from the loop and never from within runner_start(). The helper is freed
     * afterwards. After HELPER_LATE, processes of the helper may still exist. */
    void (*done)(void *context, const struct runner_end *end);
    void *context;
};

struct runner;
struct helper;

/* Creates a runner; `loop` must outlive it. Returns NULL if memory runs out. */
struct runner *runner_create(struct loop *loop);
/* Kills all helpers without reporting their ends. NULL is allowed. */
void runner_destroy(struct runner *runner);

/* Returns whether a helper runs or waits. */
bool runner_is_busy(const struct runner *runner);

/* Queues the program; helpers start in the order of these calls. Copies everything except `input`,
 * which must stay valid. Returns NULL if memory runs out. Does not block. */
struct helper *runner_start(struct runner *runner, const struct runner_order *order);

/* Kills the helper or removes it from the queue; `done` reports HELPER_KILLED. */
void runner_kill(struct helper *helper);

bool runner_succeeded(const struct runner_end *end);

/* Appends a description of the end: "exit code 1: out of memory", "no end within 30s". */
void runner_describe_end(const struct runner_end *end, struct text *out);

#endif
