/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that the daemon runs from its loop, without ever waiting for one: each in a session of
 * its own, with nothing of ours but its words, a few variables and /dev/null. What it prints is
 * read, and the last line kept. At its deadline it is killed with all of its process group.
 */
#ifndef DAEMON_HELPERS_H
#define DAEMON_HELPERS_H

#include "daemon/persona.h"
#include "daemon/pool.h"

/* How many run at once, and how many of them may be such that others can wait for. */
enum { HELPERS_MAX = 16, HELPERS_PATIENT_MAX = 4 };

enum helper_outcome {
    HELPER_EXITED,      /* number: its exit code */
    HELPER_KILLED,      /* number: the signal */
    HELPER_LATE,        /* number: 0 */
    HELPER_NOT_STARTED, /* number: an errno */
};

struct helper_end {
    enum helper_outcome outcome;
    int number;
    int64_t deadline;      /* that it had */
    const char *last_line; /* that it printed, inert; "" when there is none */
};

struct helper_order {
    const struct string_list *words;       /* the program, by its whole path, and its arguments */
    const char *last_word;                 /* one more argument; NULL: none */
    const struct string_list *environment; /* NAME=VALUE, beside PATH */
    int64_t deadline;                      /* how long it may take once it has started */
    bool is_patient;                       /* nobody waits for it: others go first */
    const struct persona *persona;         /* whom it is run as; NULL: as us */
    const char *input;                     /* what it reads, a few words; NULL: nothing */
    const char *awaited; /* a file that it is not begun without, for a second; NULL: none */
    /* It is over; called from the loop, never from within helper_start. The helper is gone then,
     * and the pool is not settled. Processes that it left may be there yet after HELPER_LATE. */
    void (*done)(void *context, const struct helper_end *end);
    void *context;
};

struct helper;

int helpers_init(struct pool *pool, struct berth_error *error);
/* Kills those that run; nobody is told. */
void helpers_finish(struct pool *pool);

/* Whether any runs or waits for its turn. */
bool helpers_are_busy(const struct pool *pool);

/* Runs the program when it is its turn: in the order in which they came. Everything is copied, but
 * for `input`, which stays. NULL: no memory. */
struct helper *helper_start(struct pool *pool, const struct helper_order *order);

/* Kills it, or takes it out of the queue; `done` is called as if somebody else had killed it. */
void helper_kill(struct helper *helper);

bool helper_succeeded(const struct helper_end *end);

/* Says what came of it: "exit code 1: out of memory", "no end within 30s". */
void helper_describe(const struct helper_end *end, struct text *out);

#endif
