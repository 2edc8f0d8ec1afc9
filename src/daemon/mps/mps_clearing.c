/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_clearing.h"

#include <signal.h>

#include "daemon/core/pidfd.h"

/* The time from SIGTERM to SIGKILL, and the pause before another search for want of memory. */
#define TERM_TIMEOUT (1 * DURATION_SECOND)
#define SEARCH_PAUSE DURATION_SECOND

static void set_timer(struct mps_clearing *clearing, int64_t after)
{
    struct loop *loop = clearing->settings->loop;

    loop_set_timer(loop, &clearing->timer,
                   after == LOOP_NEVER ? LOOP_NEVER : loop_now(loop) + after);
}

static void signal_processes(const struct mps_clearing *clearing, int number)
{
    const struct mps_events *events = &clearing->settings->events;

    events->signal(events->context, clearing->slot, number);
}

static void start_search(struct mps_clearing *clearing)
{
    const struct mps_events *events = &clearing->settings->events;

    clearing->is_searching = events->search(
        events->context, clearing->slot, clearing->uid,
        mps_process_is_running(clearing->process) ? clearing->process->child.pid : 0);
    set_timer(clearing, clearing->is_searching ? LOOP_NEVER : SEARCH_PAUSE);
}

static void handle_timer(struct timer *timer)
{
    struct mps_clearing *clearing = container_of(timer, struct mps_clearing, timer);

    if (clearing->is_searching)
        signal_processes(clearing, SIGKILL);
    else
        start_search(clearing);
}

void mps_clearing_init(struct mps_clearing *clearing, const struct mps_settings *settings,
                       uint32_t slot, const struct mps_process *process,
                       void (*cleared)(struct mps_clearing *clearing))
{
    *clearing = (struct mps_clearing){
        .settings = settings,
        .slot = slot,
        .process = process,
        .cleared = cleared,
        .timer = {.fire = handle_timer, .skips_suspend = true},
    };
}

void mps_clearing_begin_soon(struct mps_clearing *clearing, uint32_t uid)
{
    mps_clearing_stop(clearing);
    clearing->uid = uid;
    set_timer(clearing, 0);
}

void mps_clearing_begin(struct mps_clearing *clearing, uint32_t uid)
{
    mps_clearing_begin_soon(clearing, uid);
    start_search(clearing);
}

void mps_clearing_stop(struct mps_clearing *clearing)
{
    const struct mps_events *events = &clearing->settings->events;

    events->forget(events->context, clearing->slot);
    set_timer(clearing, LOOP_NEVER);
    clearing->is_searching = clearing->is_rest_gone = false;
}

static void finish_clearing(struct mps_clearing *clearing)
{
    mps_clearing_stop(clearing);
    clearing->cleared(clearing);
}

void mps_clearing_found(struct mps_clearing *clearing, bool is_gone)
{
    clearing->is_rest_gone = is_gone;
    if (!is_gone) {
        signal_processes(clearing, SIGTERM);
        set_timer(clearing, TERM_TIMEOUT);
    } else if (!mps_process_is_running(clearing->process)) {
        finish_clearing(clearing);
    } else {
        /* The search does not find a process that has not become the user yet. */
        pidfd_signal(clearing->process->child.process, SIGKILL);
    }
}

void mps_clearing_process_ended(struct mps_clearing *clearing)
{
    if (clearing->is_rest_gone)
        finish_clearing(clearing);
}
