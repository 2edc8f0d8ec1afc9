/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_reader/process_mark.h"

#include <string.h>
#include <time.h>

#include "base/system/namespaces.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"

/* Fields of /proc/PID/stat, and flags in one of them. */
enum { FLAGS_FIELD = 9, ENVIRONMENT_END_FIELD = 51 };
enum { FORKED_WITHOUT_EXEC = 0x00000040, KERNEL_THREAD = 0x00200000 };

/* A process that belongs to its runtime for longer waits for a later start. */
#define CONTAINER_START_MAX (5 * DURATION_SECOND)

/* Returns whether a process has an empty environment only because it is inside execve(). Kernel
 * threads and zombies have none at all. */
static bool is_starting(const struct proc_files *files, pid_t pid)
{
    struct text stat = {0};
    const char *fields = proc_files_stat(files, pid, &stat);
    bool is = fields != NULL && !process_stat_has_ended(fields) &&
              (process_stat_number(fields, FLAGS_FIELD) & KERNEL_THREAD) == 0 &&
              process_stat_number(fields, ENVIRONMENT_END_FIELD) == 0;

    text_finish(&stat);
    return is;
}

enum process_mark process_mark_read(const struct proc_files *files, pid_t pid, int *tries,
                                    struct text *environment, struct lease_mark *ret_mark)
{
    const struct timespec moment = {.tv_nsec = 20 * 1000};
    bool is_last = false;

    for (;;) {
        if (proc_files_read(files, pid, "environ", environment) < 0)
            return PROCESS_MARK_UNREADABLE;
        if (environment->length > 0)
            break;
        if (is_last)
            return PROCESS_MARK_UNREADABLE;
        /* It may have got an environment since. */
        is_last = !is_starting(files, pid);
        if (!is_last && *tries <= 0)
            return PROCESS_MARK_STARTING;
        if (!is_last) {
            --*tries;
            nanosleep(&moment, NULL);
        }
    }
    *ret_mark = lease_mark_read(environment->bytes, environment->length);
    return ret_mark->socket != NULL && ret_mark->lease != 0 ? PROCESS_MARK_FOUND
                                                            : PROCESS_MARK_NONE;
}

const char *process_mark_variable(const struct text *environment, const char *name)
{
    const char *end = environment->bytes + environment->length;
    size_t length = strlen(name);

    for (const char *entry = environment->bytes; entry < end; entry += strlen(entry) + 1) {
        if (strncmp(entry, name, length) == 0 && entry[length] == '=')
            return entry + length + 1;
    }
    return NULL;
}

bool process_mark_may_follow(const struct proc_files *files, pid_t pid, uint64_t since)
{
    struct text stat = {0};
    const char *fields = proc_files_stat(files, pid, &stat);
    bool may = fields != NULL && !process_stat_has_ended(fields) &&
               (process_stat_number(fields, FLAGS_FIELD) & FORKED_WITHOUT_EXEC) != 0 &&
               proc_files_started(fields) >= since &&
               process_stat_age(fields) < CONTAINER_START_MAX;

    text_finish(&stat);
    if (!may)
        return false;
    proc_files_touch(files, pid);
    may = namespace_pid_is_other(pid);
    proc_files_leave(files);
    return may;
}
