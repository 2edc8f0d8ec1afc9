/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/spared_processes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct spared_process {
    struct watch watch; /* pidfd */
    struct timer timer;
    struct list_link in_list;
    struct spared_processes *processes;
    struct signal_right right;
    pid_t pid;
};

void spared_processes_init(struct spared_processes *processes, struct loop *loop)
{
    processes->loop = loop;
    list_init(&processes->list);
}

static void forget_process(struct spared_process *spared)
{
    loop_remove(spared->processes->loop, &spared->watch);
    loop_set_timer(spared->processes->loop, &spared->timer, LOOP_NEVER);
    close(spared->watch.descriptor);
    list_remove(&spared->in_list);
    free(spared);
}

/* Leaves a process alone that has become another user's. */
static void kill_process(const struct signal_right *right, pid_t pid, int descriptor)
{
    uint32_t uid;

    signal_right_use(right, pid, descriptor, SIGKILL, &uid);
}

void spared_processes_finish(struct spared_processes *processes)
{
    list_for_each (link, &processes->list) {
        struct spared_process *spared = container_of(link, struct spared_process, in_list);

        kill_process(&spared->right, spared->pid, spared->watch.descriptor);
        forget_process(spared);
    }
}

static void process_ended(struct watch *watch, uint32_t events)
{
    (void)events;
    forget_process(container_of(watch, struct spared_process, watch));
}

static void process_is_due(struct timer *timer)
{
    struct spared_process *spared = container_of(timer, struct spared_process, timer);

    kill_process(&spared->right, spared->pid, spared->watch.descriptor);
    forget_process(spared);
}

void spared_processes_add(struct spared_processes *processes, const struct signal_right *right,
                          pid_t pid, int descriptor, int64_t at)
{
    struct spared_process *spared = calloc(1, sizeof(*spared));

    if (spared == NULL) {
        kill_process(right, pid, descriptor);
        close(descriptor);
        return;
    }
    *spared = (struct spared_process){
        .watch = {.descriptor = descriptor, .ready = process_ended},
        .timer = {.fire = process_is_due},
        .processes = processes,
        .right = *right,
        .pid = pid,
    };
    if (loop_add(processes->loop, &spared->watch, EPOLLIN, NULL) < 0) {
        kill_process(right, pid, descriptor);
        close(descriptor);
        free(spared);
        return;
    }
    list_append(&processes->list, &spared->in_list);
    loop_set_timer(processes->loop, &spared->timer, at);
}

bool spared_processes_has(const struct spared_processes *processes, pid_t pid)
{
    list_for_each (link, &processes->list) {
        if (container_of(link, struct spared_process, in_list)->pid == pid)
            return true;
    }
    return false;
}
