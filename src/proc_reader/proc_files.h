/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads facts of processes from the kernel, and shows the parent program which process it touches
 * meanwhile. Every access below /proc/PID is made here, between proc_files_touch() and
 * proc_files_leave(), because such an access may never return.
 *
 * A process is opened as a pidfd first. A fact is the process's only if it has not ended after the
 * fact was read, because its number may be given out again.
 */
#ifndef PROC_READER_PROC_FILES_H
#define PROC_READER_PROC_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/text.h"

struct proc_files {
    int directory;              /* /proc */
    _Atomic uint64_t *progress; /* shared with the parent program (reader_touch()) */
    bool is_old_kernel;         /* does not use PIDFD_GET_INFO */

    /* Opens a process, as proc_files_open() does. NULL: pidfd_open(). For tests with a directory
     * that is not /proc. */
    int (*open_process)(const struct proc_files *files, pid_t pid);
};

/* Publishes that a process is touched from now on; 0: none is, but the program makes progress. */
void proc_files_touch(const struct proc_files *files, pid_t pid);
void proc_files_leave(const struct proc_files *files);

/* Returns a pidfd, or -1 with errno: ESRCH, EINVAL or ENOENT if there is no such process, or if the
 * number is a thread's. Never blocks. */
int proc_files_open(const struct proc_files *files, pid_t pid);

/* Returns whether the process has ended. Never blocks. */
bool proc_files_has_ended(int process);

/* Finds the real uid. On a kernel without PIDFD_GET_INFO, it is the effective one, and root's for a
 * process that may not be dumped. Never blocks. Returns false when the process is gone. */
bool proc_files_uid(const struct proc_files *files, int process, pid_t pid, uint32_t *ret_uid);

/* Returns a number that the kernel gives to this process only, or 0 on an old kernel. */
uint64_t proc_files_identity(const struct proc_files *files, int process);

/* Returns the parent's pid, or 0. Never blocks: on a kernel without PIDFD_GET_INFO it reads
 * /proc/PID/status, which the kernel shows during execve(), too. So this is the only fact that may
 * be read for processes of all users. */
pid_t proc_files_parent(const struct proc_files *files, int process, pid_t pid);

/* Reads a file below /proc/PID, at most 1 MiB of it. Replaces the text. Returns 0, or -1 when the
 * process is gone, or the file may not be read, or there is no memory. May block. */
int proc_files_read(const struct proc_files *files, pid_t pid, const char *name, struct text *out);

/* Reads /proc/PID/stat. Returns its fields for process_stat_number() and its siblings, which are
 * valid until the text changes, or NULL. May block. */
const char *proc_files_stat(const struct proc_files *files, pid_t pid, struct text *out);

/* Returns the time of the start in ns since boot, from the fields of /proc/PID/stat. */
uint64_t proc_files_started(const char *fields);

/* Returns whether the process has no program, as kernel threads and zombies, and this process may
 * know it. May block. */
bool proc_files_has_no_program(const struct proc_files *files, pid_t pid);

/* Reads a file of /proc itself in the same way. Does not block. */
int proc_files_read_common(const struct proc_files *files, const char *name, struct text *out);

#endif
