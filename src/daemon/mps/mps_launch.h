/* SPDX-License-Identifier: Apache-2.0
 *
 * The child process that becomes a control daemon of MPS. It is created first, so that the journal
 * can record its pid, and it executes the program only after mps_let_go().
 */
#ifndef DAEMON_MPS_MPS_LAUNCH_H
#define DAEMON_MPS_MPS_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "daemon/core/launcher.h"
#include "daemon/mps/mps_site.h"

/* The process of a control daemon. */
struct mps_child {
    pid_t pid;   /* leads its session; 0: there is none */
    int process; /* pidfd */
    int output;  /* a file in memory with the begin of its output; -1: an earlier daemon has it */
    int line;    /* a socket that lets it go on and has the reason of a failure; -1: likewise */
};

struct mps_launch {
    struct launcher *launcher;
    const char *program;
    const char *base; /* the pool's directory for all users */
    const struct mps_site *site;
    const struct string_list *environment;
};

/* Makes a child that executes the control program after mps_let_go(). It leads a session and
 * outlives the daemon. Returns 0 or an errno. */
int mps_launch(const struct mps_launch *launch, struct mps_child *ret_child);
/* The launcher's entry for it, whose context is a struct mps_rules; NULL: no rules. */
void mps_launch_run(const struct launcher_work *work);
/* Lets the child execute the program. */
void mps_let_go(const struct mps_child *child);
/* Returns whether it has executed the program, once `line` can be read. */
bool mps_has_begun(const struct mps_child *child);
/* Reaps the process if it is a child of this process, and appends how it ended, in a few words. */
void mps_reap(const struct mps_child *child, struct text *out);
/* Appends the last line of its output, or why it could not execute the program, after ": ". */
void mps_append_words(const struct mps_child *child, struct text *out);
/* Ends a child that was not let go. */
void mps_undo(struct mps_child *child);
/* Closes its descriptors; the process goes on. */
void mps_child_close(struct mps_child *child);

#endif
