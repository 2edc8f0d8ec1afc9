/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that are left of some leases of one user, as berth-reader finds them: they carry
 * the mark of a lease (model/lease_mark.h) and this pool's socket in the environment that they were
 * started with, or descend from such a process. Only processes of the lease's user count, whose
 * real uid is the user's own or one of the subordinate uids: the user could have signalled all of
 * them. This is checked again before each signal (signal_right.h). A process that wipes its
 * environment and leaves its parents is not found.
 *
 * A process inside exec is undecided: its mark cannot be read yet. It is watched for a few seconds.
 * It delays the report for a moment only, because any process of the user can stay inside exec, and
 * the driver lists a process that uses a device. The start of a container delays the report for
 * longer: for up to seconds it has a process without a mark, although the lease's command started
 * it, and then it uses the lease's devices at once.
 */
#ifndef DAEMON_PROCESSES_LEFTOVERS_H
#define DAEMON_PROCESSES_LEFTOVERS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/optional.h"
#include "base/vector.h"
#include "daemon/core/loop.h"
#include "daemon/processes/foreign_processes.h"
#include "daemon/processes/reader_pool.h"
#include "daemon/processes/spared_processes.h"

struct leftovers;

struct id_list {
    VECTOR_OF(uint64_t);
};

/* The pointers are borrowed for the call, except the first four and `ranges`, which must stay
 * valid. */
struct leftovers_settings {
    struct loop *loop;
    struct reader_pool *readers;
    struct spared_processes *spared;
    struct foreign_processes *foreign; /* for processes of other users; NULL: none */
    const char *socket;
    uint32_t uid;
    uint32_t account;                      /* the user that pays for the searches */
    const struct subordinate_uids *ranges; /* NULL: none */
    const struct id_list *leases;
    uint64_t since;         /* older processes do not matter, in ns of CLOCK_BOOTTIME; 0: unknown */
    pid_t holder;           /* of the lease; 0: none */
    pid_t session;          /* of the holder; 0: unknown */
    pid_t root;             /* a leftover even without a mark; 0: none */
    bool containers_matter; /* a container that is just starting may join a lease */
};

struct leftovers_events {
    /* The look that leftovers_look() asked for is over. `is_gone`: no process is left, except
     * undecided ones, which leftovers_count() counts. */
    void (*looked)(void *context, bool is_gone, struct optional_number exit_code);
    /* The last process has ended, and a further look found no other, except undecided ones. While
     * there are undecided ones, this is called after each look at them. */
    void (*gone)(void *context);
    /* The daemon spent this processor time on the processes, in nanoseconds. */
    void (*spent)(void *context, int64_t time);
    void *context;
};

/* A process that is left. */
struct leftover_process {
    pid_t pid;
    struct optional_number uid;
    int64_t since;     /* the loop's time when it was found */
    int64_t killed_at; /* likewise, when it got SIGKILL; 0: it did not */
    bool is_undecided; /* inside exec: its mark cannot be read yet */
    bool is_container; /* it may be a container that is just starting */
};

/* Creates leftovers, without a look. Returns NULL without memory. */
struct leftovers *leftovers_new(const struct leftovers_settings *settings,
                                const struct leftovers_events *events);

/* Replaces the events. */
void leftovers_set_events(struct leftovers *leftovers, const struct leftovers_events *events);

/* Stops watching and frees them. Allowed within the events. NULL is fine. */
void leftovers_free(struct leftovers *leftovers);

/* Asks for a look, whose end events.looked reports. If another look runs, this one follows it, and
 * both share one report. `wants_exit_code`: the report has the exit code of the holder, which has
 * ended and whose pidfd the caller has. */
void leftovers_look(struct leftovers *leftovers, bool wants_exit_code);

/* Signals all processes, and those that the first look will find, which begins now if none was
 * asked for. SIGKILL is also sent to all processes that are found later. */
void leftovers_signal(struct leftovers *leftovers, int number);

/* The process `root` of the settings has ended: its number may become another process's. */
void leftovers_root_ended(struct leftovers *leftovers);

/* Spares the process that asked for the end: it does not count as left, and is killed at `at`, the
 * loop's time. */
void leftovers_spare(struct leftovers *leftovers, pid_t pid, int64_t at);

/* Returns whether a look has ended. NULL: no. */
bool leftovers_has_answer(const struct leftovers *leftovers);

/* Returns how many processes are known. */
size_t leftovers_count(const struct leftovers *leftovers);

/* Calls `call` for each process that is known. */
void leftovers_each(const struct leftovers *leftovers,
                    void (*call)(void *context, const struct leftover_process *process),
                    void *context);

#endif
