/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/supervise_internal.h"

#include <berth/error.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/system/process_stat.h"

struct process {
    pid_t pid;
    pid_t parent;
};

struct process_list {
    VECTOR_OF(struct process);
};

bool launch_pid_list_has(const struct pid_list *list, pid_t pid)
{
    const pid_t *member;

    vector_for_each (member, list) {
        if (*member == pid)
            return true;
    }
    return false;
}

void launch_pid_list_remove(struct pid_list *list, pid_t pid)
{
    pid_t *member;

    vector_for_each (member, list) {
        if (*member == pid) {
            *member = list->items[--list->count];
            return;
        }
    }
}

/* Lists all processes. Fails with BERTH_ERROR_MEMORY or _IO; keeps those listed so far. */
static int list_processes(struct process_list *processes)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    int code = 0;

    if (directory == NULL)
        return BERTH_ERROR_IO;
    while (code == 0 && (entry = readdir(directory)) != NULL) {
        pid_t pid;
        pid_t parent;
        struct process *process;

        pid = (pid_t)strtol(entry->d_name, NULL, 10);
        parent = pid > 0 ? process_stat_parent(pid) : 0;
        if (parent == 0)
            continue;
        process = vector_append(processes);
        if (process == NULL)
            code = BERTH_ERROR_MEMORY;
        else
            *process = (struct process){pid, parent};
    }
    closedir(directory);
    return code;
}

/* A process known to be a descendant. While its pidfd is open and the process alive, no other
 * process can have its pid. */
struct verified_process {
    pid_t pid;
    int descriptor; /* -1: this process itself */
};

static bool is_same_process(const struct verified_process *known)
{
    return known->descriptor < 0 || pidfd_send_signal(known->descriptor, 0, NULL, 0) == 0;
}

/* Opens a pidfd of a process that was listed as a child of `parent`, if it still is one. If the
 * parent died, the process may have become a child of this process. Returns -1 on failure. */
static int open_child(const struct verified_process *parent, pid_t pid)
{
    struct verified_process child = {pid, pidfd_open(pid, 0)};
    pid_t now;

    if (child.descriptor < 0)
        return -1;
    now = process_stat_parent(pid);
    if (is_same_process(&child) &&
        (now == getpid() || (now == parent->pid && is_same_process(parent))))
        return child.descriptor;
    close(child.descriptor);
    return -1;
}

struct signal_round {
    const struct process_list *processes;
    const struct pid_list *spared; /* children of this process */
    int signal;
    size_t count;
};

/* Signals the descendants of `parent`. Parents come first, so that they do not react to the end of
 * their children. */
static void signal_below(struct signal_round *round, const struct verified_process *parent)
{
    const struct process *process;

    vector_for_each (process, round->processes) {
        struct verified_process child = {process->pid, -1};

        if (process->parent != parent->pid)
            continue;
        if (parent->descriptor < 0 && launch_pid_list_has(round->spared, process->pid))
            continue;
        child.descriptor = open_child(parent, process->pid);
        if (child.descriptor < 0)
            continue;
        round->count++;
        if (round->signal != 0)
            pidfd_send_signal(child.descriptor, round->signal, NULL, 0);
        signal_below(round, &child);
        close(child.descriptor);
    }
}

size_t descendants_signal(int signal, const struct pid_list *spared)
{
    struct process_list processes = {0};
    struct signal_round round = {.processes = &processes, .spared = spared, .signal = signal};
    const struct verified_process self = {getpid(), -1};

    /* On failure, signal at least the processes that were listed. */
    list_processes(&processes);
    signal_below(&round, &self);
    vector_finish(&processes);
    return round.count;
}

int descendants_list_children(struct pid_list *children)
{
    struct process_list processes = {0};
    const struct process *process;
    pid_t self = getpid();
    int code = list_processes(&processes);

    vector_for_each (process, &processes) {
        pid_t *place;

        if (code < 0 || process->parent != self)
            continue;
        place = vector_append(children);
        if (place == NULL)
            code = BERTH_ERROR_MEMORY;
        else
            *place = process->pid;
    }
    vector_finish(&processes);
    return code;
}
