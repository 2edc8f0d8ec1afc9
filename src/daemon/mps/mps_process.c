/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_process.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/text/text.h"
#include "daemon/core/child_environment.h"
#include "daemon/core/pidfd.h"

static int start_watch(struct mps_process *process, struct watch *watch, int descriptor)
{
    watch->descriptor = descriptor;
    if (loop_add(process->loop, watch, EPOLLIN, NULL) == 0)
        return 0;
    watch->descriptor = -1;
    return ENOMEM;
}

static void stop_watch(struct mps_process *process, struct watch *watch)
{
    if (watch->descriptor >= 0)
        loop_remove(process->loop, watch);
    watch->descriptor = -1;
}

static void stop_watches(struct mps_process *process)
{
    stop_watch(process, &process->end);
    stop_watch(process, &process->line);
}

void mps_process_init(struct mps_process *process, struct loop *loop)
{
    *process = (struct mps_process){
        .loop = loop,
        .child = {.process = -1, .output = -1, .line = -1},
        .end.descriptor = -1,
        .line.descriptor = -1,
    };
}

static int launch_child(struct mps_process *process, const struct mps_process_order *order)
{
    struct child_environment variables = {0};
    int number = ENOMEM;

    child_environment_add(&variables, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    mps_query_fill_environment(&order->target, &variables);
    child_environment_add_number(&variables, "BERTH_LEASE", order->mark);
    if (!variables.failed)
        number = mps_launch(
            &(struct mps_launch){
                .launcher = order->launcher,
                .program = order->program,
                .base = order->base,
                .site = order->target.site,
                .environment = &variables.list,
            },
            &process->child);
    string_list_finish(&variables.list);
    return number;
}

int mps_process_make(struct mps_process *process, const struct mps_process_order *order)
{
    int number = launch_child(process, order);

    if (number != 0)
        return number;
    process->started = 0;
    process->is_unconfirmed = false;
    number = start_watch(process, &process->end, process->child.process);
    if (number == 0)
        number = start_watch(process, &process->line, process->child.line);
    if (number != 0)
        mps_process_undo(process);
    return number;
}

void mps_process_let_go(struct mps_process *process)
{
    mps_let_go(&process->child);
}

void mps_process_undo(struct mps_process *process)
{
    stop_watches(process);
    mps_undo(&process->child);
}

bool mps_process_take_over(struct mps_process *process)
{
    process->child.process = pidfd_open_process(process->child.pid);
    process->is_unconfirmed = true;
    return process->child.process >= 0 &&
           start_watch(process, &process->end, process->child.process) == 0;
}

bool mps_process_confirm(struct mps_process *process, uint64_t started)
{
    bool is_other = process->is_unconfirmed &&
                    (started == 0 || (process->started != 0 && process->started != started));

    /* After the end of a confirmed process, the start may be another one's. */
    if (process->end.descriptor < 0 || (started == 0 && !is_other))
        return true;
    if (is_other) {
        stop_watches(process);
        return false;
    }
    process->is_unconfirmed = false;
    process->started = started;
    return true;
}

bool mps_process_has_begun(struct mps_process *process)
{
    stop_watch(process, &process->line);
    return mps_has_begun(&process->child);
}

void mps_process_ended(struct mps_process *process, struct text *out)
{
    stop_watch(process, &process->end);
    mps_reap(&process->child, out);
    mps_append_words(&process->child, out);
}

bool mps_process_is_running(const struct mps_process *process)
{
    return process->end.descriptor >= 0 && !process->is_unconfirmed &&
           !pidfd_has_ended(process->child.process);
}

void mps_process_forget(struct mps_process *process)
{
    struct text end = {0};

    stop_watches(process);
    /* It may have ended just now. */
    mps_reap(&process->child, &end);
    text_finish(&end);
    mps_child_close(&process->child);
}
