/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/stalled.h"

#include <berth/error.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct optional_number stalled_uid(uint64_t pid)
{
    struct stat status;
    char path[32];

    /* The directory itself belongs to the process's user, or to root if the process may not be
     * dumped. */
    snprintf(path, sizeof(path), "/proc/%llu", (unsigned long long)pid);
    return stat(path, &status) == 0 ? optional_number_of(status.st_uid)
                                    : (struct optional_number){0};
}

static struct stalled_entry *find_process(const struct stalled_list *list, uint64_t pid)
{
    struct stalled_entry *process;

    vector_for_each (process, list) {
        if (process->pid == pid)
            return process;
    }
    return NULL;
}

const struct stalled_entry *stalled_list_find(const struct stalled_list *list, uint64_t pid)
{
    return find_process(list, pid);
}

void stalled_list_add(struct stalled_list *list, uint64_t pid)
{
    struct stalled_entry *process = find_process(list, pid);
    int descriptor;

    if (process != NULL) {
        process->wholly = true;
        return;
    }
    descriptor = list->count < STALLED_MAX && pid <= INT32_MAX ? pidfd_open((pid_t)pid, 0) : -1;
    process = descriptor < 0 ? NULL : vector_append(list);
    if (process != NULL)
        *process =
            (struct stalled_entry){.pid = pid, .descriptor = descriptor, .uid = stalled_uid(pid)};
    else if (descriptor >= 0)
        close(descriptor);
}

static bool has_ended(int descriptor)
{
    struct pollfd ending = {.fd = descriptor, .events = POLLIN};

    return poll(&ending, 1, 0) > 0;
}

void stalled_read_ranges(struct subordinate_uids *ranges)
{
    const char *path = getenv("BERTH_SUBUID");

    subordinate_uids_refresh_ranges(ranges, path == NULL ? "/etc/subuid" : path);
}

void stalled_list_forget_ended(struct stalled_list *list)
{
    stalled_read_ranges(&list->subordinates);
    for (size_t i = list->count; i-- > 0;) {
        if (!has_ended(list->items[i].descriptor))
            continue;
        close(list->items[i].descriptor);
        list->items[i] = list->items[--list->count];
    }
}

void stalled_list_finish(struct stalled_list *list)
{
    struct stalled_entry *process;

    vector_for_each (process, list)
        close(process->descriptor);
    vector_finish(list);
    subordinate_uids_finish(&list->subordinates);
}

bool stalled_list_is_full_of(const struct stalled_list *list, uint32_t uid)
{
    const struct subordinate_uids *ranges = &list->subordinates;
    uint32_t user = subordinate_uids_owner(ranges, uid);
    const struct stalled_entry *process;
    size_t count = 0;

    vector_for_each (process, list)
        count += process->uid.known &&
                 subordinate_uids_owner(ranges, (uint32_t)process->uid.value) == user;
    return count > STALLED_OF_USER_MAX;
}

static int add_user(struct avoided *avoided, const struct subordinate_range *range, uint32_t uid)
{
    struct avoided_user *user;

    vector_for_each (user, &avoided->users) {
        if (uid >= user->first && uid <= user->last)
            return 0;
    }
    user = vector_append(&avoided->users);
    if (user == NULL)
        return BERTH_ERROR_MEMORY;
    user->first = range == NULL ? uid : range->first;
    user->last = range == NULL ? uid : range->last;
    return 0;
}

int stalled_list_avoid(const struct stalled_list *list, struct avoided *ret_avoided)
{
    const struct stalled_entry *process;

    vector_for_each (process, list) {
        struct avoided_process *avoided = vector_append(&ret_avoided->processes);

        if (avoided == NULL)
            return BERTH_ERROR_MEMORY;
        *avoided = (struct avoided_process){.pid = process->pid, .wholly = process->wholly};
        /* A process that may not be dumped looks like root's, whose others are not avoided. */
        if (process->uid.known && process->uid.value != 0 &&
            add_user(ret_avoided,
                     subordinate_uids_find(&list->subordinates, (uint32_t)process->uid.value),
                     (uint32_t)process->uid.value) < 0)
            return BERTH_ERROR_MEMORY;
    }
    ret_avoided->everybody = list->count >= STALLED_MAX;
    return 0;
}
