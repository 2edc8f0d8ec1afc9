/* SPDX-License-Identifier: Apache-2.0
 *
 * Some accesses below /proc/PID can block for any time: while a process is inside execve(), the
 * kernel does not show its environment, its descriptors' names, its namespaces and its program. So
 * a reader of /proc publishes which process it touches. If the reader sleeps, its parent process
 * ends it and remembers the process. The next reader does not touch that process in the same way.
 *
 * The kernel's own figures never block: the names of descriptors (numbers), fdinfo, status, cgroup.
 */
#ifndef HARDWARE_PROC_PROC_WATCH_H
#define HARDWARE_PROC_PROC_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

struct avoided_process {
    uint64_t pid;
    bool wholly; /* not even the kernel's own figures are read, because they blocked, too */
};

/* Uids that belong to one user. */
struct avoided_user {
    uint32_t first;
    uint32_t last;
};

/* Processes of which only the kernel's own figures are read, and users for whose processes that
 * holds. */
struct avoided {
    bool everybody; /* holds for all users */
    struct {
        VECTOR_OF(struct avoided_process);
    } processes;
    struct {
        VECTOR_OF(struct avoided_user);
    } users;
};

void proc_watch_finish_avoided(struct avoided *avoided);

/* The touched process, as the reader and its parent share it: the pid in the low 32 bits (0: none),
 * and above them a number that changes with each access. */
typedef _Atomic uint64_t proc_touched;

struct proc_watch {
    proc_touched *touched;         /* NULL: not watched */
    const struct avoided *avoided; /* NULL: none */
};

/* Publishes that a process is touched from now on; 0: none. NULL is allowed. */
void proc_watch_touch(const struct proc_watch *watch, uint64_t pid);
void proc_watch_leave(const struct proc_watch *watch);

/* Returns the entry of a process to avoid; NULL: there is none. */
const struct avoided_process *proc_watch_find_avoided(const struct proc_watch *watch, uint64_t pid);

/* Returns whether the processes of some users are avoided. */
bool proc_watch_avoids_users(const struct proc_watch *watch);
bool proc_watch_avoids_user(const struct proc_watch *watch, uint32_t uid);

#endif
