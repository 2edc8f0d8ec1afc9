/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts programs with rights that the daemon itself does not keep. The daemon forks the launcher
 * when it starts, and then gives these rights up; the launcher keeps them. The launcher runs only
 * the functions of a table that is fixed before the fork, so an attacker that controls the daemon
 * later cannot make it run anything else. The functions check the orders that the daemon sends.
 *
 * A daemon without such rights, and one of root, has no launcher process. It runs the functions in
 * children of its own. All functions here belong to the daemon's thread.
 */
#ifndef DAEMON_CORE_LAUNCHER_H
#define DAEMON_CORE_LAUNCHER_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/quantity.h"

struct string_list;
struct text;

/* The programs that the launcher can run. */
enum launcher_program {
    LAUNCHER_READER,
    LAUNCHER_PROBE,
    LAUNCHER_MPS_CONTROL,
    LAUNCHER_MPS_QUERY,
    LAUNCHER_PROGRAMS
};

enum { LAUNCHER_DESCRIPTORS_MAX = 3, LAUNCHER_BYTES_MAX = 32 * 1024 };

/* How long the daemon waits for the launcher, which only forks. */
#define LAUNCHER_TIMEOUT DURATION_SECOND

/* An order, as the function gets it. */
struct launcher_work {
    const char *bytes; /* from the daemon */
    size_t length;
    int descriptors[LAUNCHER_DESCRIPTORS_MAX];
    size_t descriptor_count;
    pid_t daemon;        /* the daemon's pid, which is the parent of a child */
    const void *context; /* of the entry */
};

/* One of the two functions. */
struct launcher_entry {
    /* Executes a program in a new child of the daemon. Returns if it cannot; the child then exits
     * with 127. */
    void (*run)(const struct launcher_work *work);
    /* Starts, within the launcher, a program that is not a child of the daemon or the launcher.
     * Must not block for long. */
    void (*start)(const struct launcher_work *work);
    const void *context; /* must stay valid */
};

struct launcher {
    const struct launcher_entry *entries; /* LAUNCHER_PROGRAMS of them */
    int socket;                           /* to the launcher's process; -1: there is none */
    pid_t pid;                            /* likewise */
    uint32_t last_number;                 /* of the orders */
};

/* Initialises a launcher without a process. */
void launcher_init(struct launcher *launcher, const struct launcher_entry *entries);

/* Forks the launcher's process, which calls `prepare` (0 or an errno) and then waits for orders. It
 * ends when the daemon closes the socket or ends. `socket` becomes readable when the launcher has
 * ended. Blocks until `prepare` has returned. Fails with BERTH_ERROR_IO or _PERMISSION. */
int launcher_begin(struct launcher *launcher, int (*prepare)(void *context), void *context,
                   struct berth_error *error);
/* Ends the launcher's process, if there is one. */
void launcher_finish(struct launcher *launcher);

/* Returns whether the launcher's process has ended. The caller asks when `socket` is readable. */
bool launcher_has_ended(const struct launcher *launcher);

/* Returns whether the launcher is a process of its own. */
static inline bool launcher_is_separate(const struct launcher *launcher)
{
    return launcher->socket >= 0;
}

/* Runs a program as a child of the daemon: its pid, and a pidfd that the caller closes. The caller
 * keeps its descriptors. Waits for the fork, LAUNCHER_TIMEOUT at most. Returns 0 or an errno. */
int launcher_fork(struct launcher *launcher, enum launcher_program program,
                  const struct text *bytes, const int *descriptors, size_t count, pid_t *ret_pid,
                  int *ret_process);

/* Starts a program that is not a child of the daemon or the launcher. Only for a separate launcher.
 * Does not wait: the caller sees on its descriptors whether the program has started. Returns 0 or
 * an errno. */
int launcher_start(struct launcher *launcher, enum launcher_program program, const int *descriptors,
                   size_t count);

/* ---- The bytes of an order: words that end with a zero byte ---- */

void launcher_append_word(struct text *bytes, const char *word);
void launcher_append_number(struct text *bytes, uint64_t number);
/* Returns 0; or EINVAL if the last word has no end, or ENOMEM. The caller finishes the list. */
int launcher_read_words(const struct launcher_work *work, struct string_list *words);

#endif
