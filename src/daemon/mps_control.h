/* SPDX-License-Identifier: Apache-2.0
 *
 * The control daemon of one device, for the files that make up mps.h.
 */
#ifndef DAEMON_MPS_CONTROL_H
#define DAEMON_MPS_CONTROL_H

#include "daemon/helpers.h"
#include "daemon/mps.h"

enum mps_state {
    MPS_NONE,
    MPS_STARTING, /* it runs, or is to, and does not answer yet */
    MPS_READY,
    MPS_QUITTING, /* it was asked to end */
    MPS_CLEARING, /* what is left of it is ended */
    MPS_PAUSING,  /* it could not be kept alive, and is tried again later */
};

/* Where it works, and for whom. */
struct mps_site {
    struct persona persona;
    char *pipe;
    char *log;
    bool is_pipe_given; /* the request names exactly this one, so nothing above it is made */
    bool is_log_given;
};

/* How it was started. */
struct mps_child {
    pid_t pid;   /* leads its session; 0: there is none */
    int process; /* pidfd */
    int output;  /* a file in memory with the first that it printed; -1: not ours to see */
    int line;    /* what lets it go on, and says why it could not; -1: likewise */
};

struct control {
    struct pool *pool;
    enum mps_state state;
    struct mps_site site;
    struct mps_child child;
    uint64_t started; /* of its process */
    struct watch process;
    struct watch line;     /* says when it has become the program */
    struct helper *helper; /* that asks it something */
    bool asks_to_quit;     /* what the helper says to it */
    bool is_stale;         /* the helper talks to the one before it */
    struct timer timer;    /* of the state */
    int64_t deadline;      /* likewise */
    int64_t ready_at;
    unsigned failures; /* one after the other */
    int signal;        /* that was sent last to what is left */
    char failure[64];  /* why it could not even be tried; "" */
    bool is_kept;      /* the journal knows of it */
    bool was_there;    /* it is of a daemon before us */
};

struct mps {
    struct control *controls; /* by slot */
    char *base;               /* the directory */
    bool may_become_others;
    int64_t start_deadline; /* until one answers */
    int64_t looked_at;      /* when `program` was looked for, in the loop's time; 0: never */
    char *program;          /* that is there; NULL: none */
    struct text fault;      /* why there is none */
};

/* ---- mps.c: all of them ---- */

uint32_t mps_slot(const struct control *control);
/* NULL: the slot has none, as it had for a daemon before us. */
const struct device *mps_device(const struct control *control);
void mps_site_finish(struct mps_site *site);

/* ---- mps_control.c: from state to state ---- */

/* Starts it at this site, which is taken over. */
void mps_start(struct control *control, struct mps_site *site);
/* Stops it; the device is blocked until it is gone. */
void mps_stop(struct control *control);
/* Watches that of a daemon before us, or ends what is left of it. */
void mps_take_over(struct control *control);
/* Lets it be, for a daemon after us. */
void mps_leave(struct control *control);
/* The answer to mps_ask, whose context is the control daemon. */
void mps_answered(void *context, const struct helper_end *end);

/* ---- mps_ask.c: talking to it ---- */

struct variables;

/* The environment of its program, however that is run. */
void mps_fill_environment(const struct control *control, struct variables *out);
/* Runs the control program with these words as its input. Where it cannot, there is no helper. */
void mps_ask(struct control *control, const char *words, int64_t deadline);

/* ---- mps_launch.c: the child ---- */

struct mps_launch {
    const char *program;
    const char *base; /* of the directories that are the pool's own */
    const struct mps_site *site;
    const struct string_list *environment;
};

/* Makes a child that will be the control daemon once it is let go: it may be written down before
 * anything of it is there. It leads a session and outlives us. Returns 0 or an errno. */
int mps_launch(const struct mps_launch *launch, struct mps_child *ret_child);
void mps_let_go(const struct mps_child *child);
/* Whether it has become the program, once `line` can be read. */
bool mps_has_begun(const struct mps_child *child);
/* Takes note of its end if it is ours to wait for, and says what became of it, in a few words. */
void mps_reap(const struct mps_child *child, struct text *out);
/* Appends the last line that it printed, or why it could not become the program, after ": ". */
void mps_append_words(const struct mps_child *child, struct text *out);
/* Ends one that was not let go. */
void mps_undo(struct mps_child *child);
/* Closes all that it has; the process goes on. */
void mps_child_close(struct mps_child *child);

/* ---- mps_processes.c: what is left of it ---- */

/* Sends the signal (0: none) to all processes of it and returns how many there are. */
size_t mps_signal_processes(const struct control *control, int number);

/* ---- mps_tenants.c: whom it is for ---- */

/* Whether anybody but the lease that is about to end (0: none) and those within it needs it. */
bool mps_has_tenants(const struct control *control, uint64_t leaving);
/* Whether anybody waits for it to answer. */
bool mps_has_waiting(const struct control *control);
/* It answers: tells whoever waited for it. */
void mps_tell_waiting(struct control *control);
/* It cannot be started: refuses whoever waited for it. */
void mps_refuse_waiting(struct control *control, const char *why);
/* The site that the tenants of the slot want; false: there are none, or no memory. */
bool mps_find_site(const struct control *control, struct mps_site *ret_site);
/* The control program; NULL: none, and mps->fault says why. */
const char *mps_program(struct pool *pool);

#endif
