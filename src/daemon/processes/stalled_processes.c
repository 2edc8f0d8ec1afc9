/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/stalled_processes.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/core/pidfd.h"
#include "reader/reader_messages.h"

struct remembered_process {
    struct watch watch; /* pidfd */
    struct list_link in_list;
    struct stalled_processes *processes;
    struct stalled_process process;
};

static const struct stalled_process *process_of(const struct list_link *link)
{
    return &container_of(link, const struct remembered_process, in_list)->process;
}

void stalled_processes_init(struct stalled_processes *processes, struct loop *loop,
                            void (*ended)(void *context), void *context)
{
    *processes = (struct stalled_processes){.loop = loop, .ended = ended, .context = context};
    list_init(&processes->list);
}

static void forget_process(struct remembered_process *remembered)
{
    loop_remove(remembered->processes->loop, &remembered->watch);
    close(remembered->watch.descriptor);
    list_remove(&remembered->in_list);
    free(remembered);
}

void stalled_processes_finish(struct stalled_processes *processes)
{
    list_for_each (link, &processes->list)
        forget_process(container_of(link, struct remembered_process, in_list));
}

static void process_ended(struct watch *watch, uint32_t events)
{
    struct remembered_process *remembered = container_of(watch, struct remembered_process, watch);
    struct stalled_processes *processes = remembered->processes;

    (void)events;
    forget_process(remembered);
    processes->ended(processes->context);
}

const struct stalled_process *stalled_processes_add(struct stalled_processes *processes, pid_t pid,
                                                    int descriptor, uint32_t account)
{
    struct remembered_process *remembered = calloc(1, sizeof(*remembered));
    uint32_t owner;

    if (remembered == NULL) {
        close(descriptor);
        return NULL;
    }
    *remembered = (struct remembered_process){
        .watch = {.descriptor = descriptor, .ready = process_ended},
        .processes = processes,
        .process = {.pid = pid, .account = account, .since = loop_now(processes->loop)},
    };
    if (loop_add(processes->loop, &remembered->watch, EPOLLIN, NULL) < 0) {
        close(descriptor);
        free(remembered);
        return NULL;
    }
    if (pidfd_find_user(descriptor, pid, &owner))
        remembered->process.owner = optional_number_of(owner);
    list_append(&processes->list, &remembered->in_list);
    return &remembered->process;
}

bool stalled_processes_has(const struct stalled_processes *processes, pid_t pid)
{
    list_for_each (link, &processes->list) {
        if (process_of(link)->pid == pid)
            return true;
    }
    return false;
}

size_t stalled_processes_count(const struct stalled_processes *processes, uint32_t account)
{
    size_t count = 0;

    list_for_each (link, &processes->list)
        count += process_of(link)->account == account;
    return count;
}

void stalled_processes_list(const struct stalled_processes *processes,
                            struct reader_numbers *ret_pids)
{
    ret_pids->count = 0;
    list_for_each (link, &processes->list) {
        uint32_t *place = ret_pids->count >= READER_NUMBERS_MAX ? NULL : vector_append(ret_pids);

        /* A process that could not be added may stall a reader once more. */
        if (place == NULL)
            return;
        *place = (uint32_t)process_of(link)->pid;
    }
}

void stalled_processes_each(const struct stalled_processes *processes,
                            void (*call)(void *context, const struct stalled_process *process),
                            void *context)
{
    list_for_each (link, &processes->list)
        call(context, process_of(link));
}
