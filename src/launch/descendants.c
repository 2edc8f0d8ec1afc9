/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/descendants.h"

#include <berth/error.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { STAT_SIZE = 256 }; /* more than the beginning of a stat file up to the parent takes */

struct process {
    pid_t pid;
    pid_t parent;
};

struct process_list {
    VECTOR_OF(struct process);
};

bool pid_list_has(const struct pid_list *list, pid_t pid)
{
    const pid_t *member;

    vector_for_each (member, list) {
        if (*member == pid)
            return true;
    }
    return false;
}

void pid_list_remove(struct pid_list *list, pid_t pid)
{
    pid_t *member;

    vector_for_each (member, list) {
        if (*member == pid) {
            *member = list->items[--list->count];
            return;
        }
    }
}

/* The parent of a process; 0 when it is gone. */
static pid_t parent_of(const char *pid)
{
    char path[sizeof("/proc//stat") + 16];
    char content[STAT_SIZE];
    const char *name_end;
    ssize_t length;
    int parent;
    int file;

    snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    length = read(file, content, sizeof(content) - 1);
    close(file);
    if (length <= 0)
        return 0;
    content[length] = '\0';
    /* pid (name) state parent ...; the name may hold anything. */
    name_end = strrchr(content, ')');
    return name_end != NULL && sscanf(name_end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static pid_t parent_of_pid(pid_t pid)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)pid);
    return parent_of(text);
}

/* Lists all processes, as far as there is memory for them. Fails with BERTH_ERROR_MEMORY or _IO. */
static int list_processes(struct process_list *processes)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    int code = 0;

    if (directory == NULL)
        return BERTH_ERROR_IO;
    while (code == 0 && (entry = readdir(directory)) != NULL) {
        pid_t parent;
        struct process *process;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        parent = parent_of(entry->d_name);
        if (parent == 0)
            continue;
        process = vector_append(processes);
        if (process == NULL)
            code = BERTH_ERROR_MEMORY;
        else
            *process = (struct process){atoi(entry->d_name), parent};
    }
    closedir(directory);
    return code;
}

/* A process that is known to be below us. While the descriptor is open and answers, the number is
 * still its own. */
struct known {
    pid_t pid;
    int descriptor; /* -1: this process itself */
};

static bool is_still(const struct known *known)
{
    return known->descriptor < 0 || pidfd_send_signal(known->descriptor, 0, NULL, 0) == 0;
}

/* Makes the process, which was seen to be a child of `parent`, known, if it still is; it may have
 * become ours when its parent died. Returns a descriptor, or -1. */
static int open_child(const struct known *parent, pid_t pid)
{
    struct known child = {pid, pidfd_open(pid, 0)};
    pid_t now;

    if (child.descriptor < 0)
        return -1;
    now = parent_of_pid(pid);
    if (is_still(&child) && (now == getpid() || (now == parent->pid && is_still(parent))))
        return child.descriptor;
    close(child.descriptor);
    return -1;
}

struct round {
    const struct process_list *processes;
    const struct pid_list *spared; /* children of ours */
    int signal;
    size_t count;
};

/* Signals what is below `parent`. Parents come before their children, so that they do not mind
 * their children's end. */
static void signal_below(struct round *round, const struct known *parent)
{
    const struct process *process;

    vector_for_each (process, round->processes) {
        struct known child = {process->pid, -1};

        if (process->parent != parent->pid)
            continue;
        if (parent->descriptor < 0 && pid_list_has(round->spared, process->pid))
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
    struct round round = {.processes = &processes, .spared = spared, .signal = signal};
    const struct known self = {getpid(), -1};

    /* What could be listed is signalled, whatever went wrong after it. */
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
