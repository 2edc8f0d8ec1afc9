/* SPDX-License-Identifier: Apache-2.0
 *
 * An index of the existing processes by user, so that a question about one user costs nothing for
 * the processes of others.
 *
 * The kernel gives out process ids in sequence, so a refresh asks only for the numbers that were
 * given out since the last one. /proc lists its processes in the order of their numbers, so this
 * costs nothing for processes that have ended since. While there is no question, the index is
 * refreshed once a second, more often while many numbers are given out, and less often at rest.
 *
 * A full sweep through /proc is needed at the start, when the numbers may have started again, and
 * from time to time to forget processes that have ended. Except the first one, sweeps run in steps,
 * while there is no question.
 *
 * A process of root may still become a user's, for example at a login. So it is looked up again
 * until it is PROC_INDEX_SETTLED old.
 */
#ifndef PROC_READER_PROC_INDEX_H
#define PROC_READER_PROC_INDEX_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id_map.h"
#include "base/list.h"
#include "proc_reader/proc_files.h"

#define PROC_INDEX_SETTLED INT64_C(2000000000)

/* All processes of one uid: first those that are unmarked, then the others in the order in which
 * they joined. */
struct proc_user {
    struct id_link by_uid;
    struct list_link in_index;
    struct list processes;
};

struct proc_entry {
    struct id_link by_pid;
    struct list_link in_user;
    struct list_link in_unsettled; /* only root's processes that are not settled */
    struct proc_user *user;
    uint64_t identity; /* the kernel gives it to one process only; 0: unknown, on an old kernel */
    uint64_t listed;   /* the inode that /proc's list named for it last; 0: unknown */
    int64_t seen;      /* first; CLOCK_BOOTTIME. The process started before that */
    int64_t joined;    /* its user */
    uint32_t sweep;

    /* For the questions. */
    bool is_unmarked;  /* carries no mark of a lease, and will not get one */
    bool is_leftover;  /* of the leases of question `reported` */
    uint64_t reported; /* the number of the last question whose answer has it */
    uint64_t round;    /* which found `parent` */
    pid_t parent;
};

struct proc_index {
    const struct proc_files *files;
    struct id_map entries;
    struct id_map users_by_uid;
    struct list users;
    struct list unsettled; /* the one that was seen first comes first */
    size_t count;
    struct text text;

    /* The process ids that were looked at. A number is given out shortly before its process can be
     * found, so the numbers from `checked` to `newest` are looked at again. */
    pid_t checked;
    pid_t pending; /* becomes `checked` some time after `pending_at` */
    pid_t newest;
    int64_t checked_at; /* numbers after `checked` were given out later; CLOCK_BOOTTIME */
    int64_t pending_at;
    int64_t refreshed_at;
    int64_t pause;  /* from a refresh to the next one without a question */
    uint64_t forks; /* of the machine since its boot: counted, and then estimated by the numbers */
    pid_t pid_max;
    long offset; /* of a process's place in the list of /proc from its number; 0: unknown */

    /* The sweep. */
    DIR *directory;      /* NULL: none runs */
    uint32_t sweep;      /* its number */
    bool is_stale;       /* the numbers have gone round: the entries' processes may be others */
    pid_t newest_before; /* a sweep of a stale index began */
    int64_t sweep_began;
    int64_t swept_at;
    size_t count_swept;
};

/* Makes an empty index, which is filled by the first refresh. Returns 0 or BERTH_ERROR_MEMORY. */
int proc_index_init(struct proc_index *index, const struct proc_files *files);
void proc_index_finish(struct proc_index *index);

/* Learns about all processes that exist now. `settles_root`: looks again at young processes of
 * root, which may be another user's by now. Returns 0, BERTH_ERROR_MEMORY or _IO. */
int proc_index_refresh(struct proc_index *index, bool settles_root);

/* Does a part of the work that is due while there is no question. Returns when it should be called
 * again, in ms for poll(): 0 at once, -1 not before the next question. */
int proc_index_work(struct proc_index *index);

/* Returns the entry of a process, or NULL. */
struct proc_entry *proc_index_find(const struct proc_index *index, pid_t pid);

/* Puts a process, opened as a pidfd, into the index or updates its uid. Returns 0, or
 * BERTH_ERROR_MEMORY. Afterwards proc_index_find() finds it unless it is gone. An earlier entry
 * with this number may be freed. */
int proc_index_set(struct proc_index *index, int process, pid_t pid);

/* Notes that the process carries no mark of a lease, and will not get one. */
void proc_index_set_unmarked(struct proc_entry *entry);

/* Removes and frees the entry. */
void proc_index_remove(struct proc_index *index, struct proc_entry *entry);

#endif
