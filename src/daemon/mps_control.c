/* SPDX-License-Identifier: Apache-2.0
 *
 * The control daemon of one device, from state to state.
 */
#include "daemon/mps_control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "daemon/handover.h"
#include "daemon/keep.h"
#include "daemon/names.h"
#include "daemon/process.h"
#include "daemon/settle.h"
#include "daemon/variables.h"

/* How long one answer of it may take, and the pause between two questions. */
#define ANSWER_DEADLINE (2 * DURATION_SECOND)
#define ANSWER_PAUSE    (DURATION_SECOND / 10)

/* How long it may take to end when it is asked to, and what is left of it after SIGTERM. The
 * servers have less time than the control daemon, which ends them. */
#define QUIT_DEADLINE (3 * DURATION_SECOND)
#define TERM_DEADLINE (1 * DURATION_SECOND)
#define QUIT          "quit -t 2\n"

/* How often what is left is looked for: soon, and when it takes long. */
#define LOOK_SOON  (DURATION_SECOND / 50)
#define LOOK_LATER DURATION_SECOND

/* One that lived as long as the longest pause before it is started again did well. */
#define PAUSE_MAX (60 * DURATION_SECOND)

static void go_on_asking(struct control *control);
static void process_ended(struct watch *watch, uint32_t events);
static void is_due(struct timer *timer);

static void say(const struct control *control, const char *state, const char *reason)
{
    struct pool *pool = control->pool;
    const struct device *device = mps_device(control);

    log_begin(&pool->log, pool_now(pool), "mps");
    text_append(log_value(&pool->log, "state"), state);
    if (device != NULL)
        text_append(log_value(&pool->log, "device"), device_id_format(device->id).text);
    log_number(&pool->log, "uid", control->site.persona.uid);
    if (control->child.pid > 0)
        log_number(&pool->log, "pid", (uint64_t)control->child.pid);
    if (reason != NULL)
        text_append(log_value(&pool->log, "reason"), log_quote(reason).text);
    log_end(&pool->log);
}

static void keep(struct control *control, bool is_there)
{
    if (!is_there && !control->is_kept)
        return;
    control->is_kept = is_there;
    keep_mps(control->pool, mps_slot(control));
}

static void set_timer(struct control *control, int64_t after)
{
    struct loop *loop = &control->pool->loop;

    timer_set_at(loop, &control->timer, after == LOOP_NEVER ? LOOP_NEVER : loop_now(loop) + after);
}

static void stop_listening(struct control *control)
{
    if (control->line.descriptor >= 0)
        loop_remove(&control->pool->loop, &control->line);
    control->line.descriptor = -1;
}

static void stop_watching(struct control *control)
{
    if (control->process.descriptor >= 0)
        loop_remove(&control->pool->loop, &control->process);
    control->process.descriptor = -1;
    stop_listening(control);
}

/* Closes what is known of its process. */
static void forget_process(struct control *control)
{
    struct text words = {0};

    stop_watching(control);
    /* It may have ended just now. */
    mps_reap(&control->child, &words);
    text_finish(&words);
    mps_child_close(&control->child);
}

/* ---- Ending what is left ---- */

/* Nothing of it is there any more. */
static void be_gone(struct control *control)
{
    struct pool *pool = control->pool;
    uint32_t slot = mps_slot(control);

    control->state = MPS_NONE;
    set_timer(control, LOOP_NEVER);
    keep(control, false);
    mps_site_finish(&control->site);
    control->failures = 0;
    control->was_there = false;
    if (mps_device(control) == NULL)
        return;
    handover_done(pool, slot, HANDOVER_MPS);
    names_update(pool);
}

/* How long to wait before it is started again: not at all the first time, then longer each time. */
static int64_t pause_after(unsigned failures)
{
    int64_t pause = failures < 2 ? 0 : DURATION_SECOND;

    for (unsigned i = 2; i < failures && pause < PAUSE_MAX; i++)
        pause *= 2;
    return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

/* All of it has ended: it begins anew where somebody needs it. */
static void be_cleared(struct control *control)
{
    struct mps_site site;

    say(control, "stopped", NULL);
    forget_process(control);
    if (!mps_has_tenants(control, 0)) {
        be_gone(control);
        return;
    }
    if (mps_find_site(control, &site)) {
        if (site.persona.uid == control->site.persona.uid && site.persona.gid == PERSONA_NO_GROUP)
            site.persona.gid = control->site.persona.gid;
        mps_site_finish(&control->site);
        control->site = site;
    }
    if (mps_device(control) != NULL)
        handover_done(control->pool, mps_slot(control), HANDOVER_MPS);
    control->state = MPS_PAUSING;
    keep(control, true);
    set_timer(control, mps_has_waiting(control) ? 0 : pause_after(control->failures));
}

static void look_for_rest(struct control *control)
{
    bool is_late = loop_now(&control->pool->loop) >= control->deadline;
    bool is_first = control->signal == 0;

    if (is_first || is_late)
        control->signal = is_first ? SIGTERM : SIGKILL;
    if (mps_signal_processes(control, is_first || is_late ? control->signal : 0) == 0) {
        be_cleared(control);
        return;
    }
    /* What a driver holds may take for ever. */
    set_timer(control, loop_now(&control->pool->loop) > control->deadline + TERM_DEADLINE
                           ? LOOK_LATER
                           : LOOK_SOON);
}

/* To be looked for from the loop, when whoever leaves has left. */
static void clear_soon(struct control *control)
{
    control->state = MPS_CLEARING;
    control->signal = 0;
    control->deadline = loop_now(&control->pool->loop) + TERM_DEADLINE;
    set_timer(control, 0);
}

static void clear(struct control *control)
{
    clear_soon(control);
    look_for_rest(control);
}

static void ask_to_quit(struct control *control)
{
    control->state = MPS_QUITTING;
    set_timer(control, QUIT_DEADLINE);
    /* What it is being asked comes first. */
    control->asks_to_quit = control->helper == NULL;
    if (!control->asks_to_quit)
        return;
    mps_ask(control, QUIT, QUIT_DEADLINE);
    /* Without the program nobody can ask. */
    if (control->helper == NULL)
        set_timer(control, 0);
}

void mps_stop(struct control *control)
{
    if (mps_device(control) != NULL)
        handover_need(control->pool, mps_slot(control), HANDOVER_MPS);
    switch (control->state) {
    case MPS_PAUSING:
        be_gone(control);
        break;
    case MPS_STARTING:
        say(control, "stopping", NULL);
        /* It has nothing to end in an orderly way yet. */
        if (control->was_there)
            ask_to_quit(control);
        else
            clear_soon(control);
        break;
    case MPS_READY:
        say(control, "stopping", NULL);
        ask_to_quit(control);
        break;
    default:
        break;
    }
}

/* ---- Starting ---- */

static void be_failed(struct control *control, const char *why)
{
    say(control, "failed", why);
    control->failures++;
    /* Whoever is refused may be the last that needed it. */
    control->state = MPS_CLEARING;
    mps_refuse_waiting(control, why);
    clear(control);
}

static void be_ready(struct control *control)
{
    control->state = MPS_READY;
    control->ready_at = loop_now(&control->pool->loop);
    set_timer(control, LOOP_NEVER);
    say(control, "ready", NULL);
    mps_tell_waiting(control);
    /* The last of them may have gone by that. */
    if (control->state == MPS_READY && !mps_has_tenants(control, 0))
        mps_stop(control);
}

/* It has become the program, or could not, which its end says. */
static void has_begun(struct watch *watch, uint32_t events)
{
    struct control *control = container_of(watch, struct control, line);

    (void)events;
    stop_listening(control);
    /* Not before: another one in its place would answer. */
    if (control->state == MPS_STARTING && mps_has_begun(&control->child))
        go_on_asking(control);
    pool_settle(control->pool);
}

static int watch_process(struct control *control)
{
    control->process = (struct watch){
        .descriptor = control->child.process,
        .ready = process_ended,
    };
    if (loop_add(&control->pool->loop, &control->process, EPOLLIN, NULL) == 0)
        return 0;
    control->process.descriptor = -1;
    return -1;
}

static int watch_line(struct control *control)
{
    control->line = (struct watch){.descriptor = control->child.line, .ready = has_begun};
    if (loop_add(&control->pool->loop, &control->line, EPOLLIN, NULL) == 0)
        return 0;
    control->line.descriptor = -1;
    return -1;
}

/* Makes the process, writes it down, and lets it go. Returns 0 or an errno. */
static int launch(struct control *control)
{
    struct pool *pool = control->pool;
    const char *program = mps_program(pool);
    struct variables variables = {0};
    int number = ENOENT;

    variables_add(&variables, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    mps_fill_environment(control, &variables);
    if (program != NULL)
        number = variables.failed ? ENOMEM
                                  : mps_launch(
                                        &(struct mps_launch){
                                            .program = program,
                                            .base = pool->mps->base,
                                            .site = &control->site,
                                            .environment = &variables.list,
                                        },
                                        &control->child);
    string_list_finish(&variables.list);
    if (number != 0)
        return number;
    control->started = process_stat_started(control->child.pid);
    if (watch_process(control) < 0 || watch_line(control) < 0) {
        stop_watching(control);
        mps_undo(&control->child);
        return ENOMEM;
    }
    keep(control, true);
    /* What is not written down would be nobody's if we died now. */
    if (journal_file_is_behind(&pool->journal)) {
        stop_watching(control);
        mps_undo(&control->child);
        return ENOSPC;
    }
    mps_let_go(&control->child);
    return 0;
}

static void start(struct control *control)
{
    struct pool *pool = control->pool;
    int number;

    control->timer.fire = is_due;
    control->state = MPS_STARTING;
    control->was_there = false;
    control->failure[0] = '\0';
    control->is_stale = control->helper != NULL;
    control->deadline = loop_now(&pool->loop) + pool->mps->start_deadline;
    number = launch(control);
    if (number != 0) {
        /* Told from the loop: whoever needs it is not refused from within. */
        snprintf(control->failure, sizeof(control->failure), "%s", strerror(number));
        set_timer(control, 0);
        return;
    }
    say(control, "starting", NULL);
    set_timer(control, pool->mps->start_deadline);
}

void mps_start(struct control *control, struct mps_site *site)
{
    mps_site_finish(&control->site);
    control->site = *site;
    *site = (struct mps_site){0};
    start(control);
}

/* ---- What happens ---- */

/* It does not answer (yet). */
static void go_on_asking(struct control *control)
{
    struct text why = {0};

    if (control->failure[0] != '\0') {
        be_failed(control, control->failure);
        return;
    }
    if (loop_now(&control->pool->loop) < control->deadline) {
        mps_ask(control, "get_server_list\n", ANSWER_DEADLINE);
        if (control->helper == NULL)
            set_timer(control, ANSWER_PAUSE);
        else
            set_timer(control, control->deadline - loop_now(&control->pool->loop));
        return;
    }
    text_append_format(&why, "no answer within %s",
                       quantity_format_duration(control->pool->mps->start_deadline).text);
    mps_append_words(&control->child, &why);
    be_failed(control, text_string(&why));
    text_finish(&why);
}

static void is_due(struct timer *timer)
{
    struct control *control = container_of(timer, struct control, timer);

    switch (control->state) {
    case MPS_STARTING:
        go_on_asking(control);
        break;
    case MPS_QUITTING:
        say(control, "late", NULL);
        clear(control);
        break;
    case MPS_CLEARING:
        look_for_rest(control);
        break;
    case MPS_PAUSING:
        start(control);
        break;
    default:
        break;
    }
    pool_settle(control->pool);
}

/* It is starting, and somebody has answered. */
static void take_answer(struct control *control, bool is_good)
{
    if (is_good && !process_has_ended(control->child.process))
        be_ready(control);
    else if (control->line.descriptor < 0)
        set_timer(control, ANSWER_PAUSE);
}

void mps_answered(void *context, const struct helper_end *end)
{
    struct control *control = context;
    bool is_good = helper_succeeded(end) && !control->is_stale;

    control->helper = NULL;
    control->is_stale = false;
    if (control->state == MPS_STARTING)
        take_answer(control, is_good);
    else if (control->state == MPS_QUITTING && !control->asks_to_quit)
        ask_to_quit(control);
    else if (control->state == MPS_QUITTING && !is_good)
        clear(control);
    pool_settle(control->pool);
}

/* It ended by itself while it was needed. */
static void be_dead(struct control *control, const char *why)
{
    int64_t lived = loop_now(&control->pool->loop) - control->ready_at;

    say(control, "died", why);
    control->failures = lived >= PAUSE_MAX ? 1 : control->failures + 1;
    clear(control);
}

static void process_ended(struct watch *watch, uint32_t events)
{
    struct control *control = container_of(watch, struct control, process);
    struct text why = {0};

    (void)events;
    loop_remove(&control->pool->loop, &control->process);
    control->process.descriptor = -1;
    mps_reap(&control->child, &why);
    mps_append_words(&control->child, &why);
    switch (control->state) {
    case MPS_STARTING:
        be_failed(control, text_string(&why));
        break;
    case MPS_READY:
        be_dead(control, text_string(&why));
        break;
    case MPS_QUITTING:
        clear(control);
        break;
    case MPS_CLEARING:
        look_for_rest(control);
        break;
    default:
        break;
    }
    text_finish(&why);
    pool_settle(control->pool);
}

/* ---- Of a daemon before us ---- */

void mps_take_over(struct control *control)
{
    control->timer.fire = is_due;
    control->child.process = process_open(control->child.pid, control->started);
    if (control->child.process < 0 || watch_process(control) < 0) {
        clear(control);
        return;
    }
    /* Whether it was ever seen to answer is not known. */
    say(control, "restored", NULL);
    control->state = MPS_STARTING;
    control->deadline = loop_now(&control->pool->loop) + control->pool->mps->start_deadline;
    go_on_asking(control);
}

void mps_leave(struct control *control)
{
    set_timer(control, LOOP_NEVER);
    forget_process(control);
}
