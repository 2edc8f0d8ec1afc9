/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/foreign_processes.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct watched_process {
    struct watch watch; /* pidfd */
    struct list_link in_list;
    struct foreign_processes *processes;
    struct foreign_process process;
};

void foreign_processes_init(struct foreign_processes *processes, struct loop *loop)
{
    *processes = (struct foreign_processes){.loop = loop};
    list_init(&processes->list);
}

static void forget_process(struct watched_process *watched)
{
    loop_remove(watched->processes->loop, &watched->watch);
    close(watched->watch.descriptor);
    list_remove(&watched->in_list);
    watched->processes->count--;
    free(watched);
}

void foreign_processes_finish(struct foreign_processes *processes)
{
    list_for_each (link, &processes->list)
        forget_process(container_of(link, struct watched_process, in_list));
}

static void process_ended(struct watch *watch, uint32_t events)
{
    (void)events;
    forget_process(container_of(watch, struct watched_process, watch));
}

static bool has_room(const struct foreign_processes *processes,
                     const struct foreign_process *process)
{
    size_t of_user = 0;

    list_for_each (link, &processes->list) {
        const struct watched_process *other = container_of(link, struct watched_process, in_list);

        if (other->process.pid == process->pid)
            return false;
        of_user += other->process.uid == process->uid;
    }
    return processes->count < FOREIGN_PROCESSES_MAX && of_user < FOREIGN_PROCESSES_OF_USER_MAX;
}

void foreign_processes_add(struct foreign_processes *processes,
                           const struct foreign_process *process, int descriptor)
{
    struct watched_process *watched =
        has_room(processes, process) ? malloc(sizeof(*watched)) : NULL;

    if (watched == NULL) {
        close(descriptor);
        return;
    }
    *watched = (struct watched_process){
        .watch = {.descriptor = descriptor, .ready = process_ended},
        .processes = processes,
        .process = *process,
    };
    if (loop_add(processes->loop, &watched->watch, EPOLLIN, NULL) < 0) {
        close(descriptor);
        free(watched);
        return;
    }
    list_append(&processes->list, &watched->in_list);
    processes->count++;
}

void foreign_processes_each(const struct foreign_processes *processes,
                            void (*call)(void *context, const struct foreign_process *process),
                            void *context)
{
    list_for_each (link, &processes->list)
        call(context, &container_of(link, struct watched_process, in_list)->process);
}
