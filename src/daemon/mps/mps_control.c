/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "daemon/core/pidfd.h"
#include "daemon/core/runner.h"
#include "daemon/mps/mps_query.h"
#include "model/machine/device.h"

/* How long the answer to a command may take, and the pause between two questions. */
#define ANSWER_TIMEOUT (2 * DURATION_SECOND)
#define ANSWER_PAUSE   (DURATION_SECOND / 10)

/* How long the control daemon may take to quit. It gives its servers less time. */
#define QUIT_TIMEOUT (3 * DURATION_SECOND)
#define QUIT         "quit -t 2\n"

/* The maximum pause before the control daemon is started again. After it has run for this time, the
 * first pause is used again. */
#define PAUSE_MAX (60 * DURATION_SECOND)

/* ---- The owner ---- */

static const struct device *find_device(const struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    return events->device(events->context, control->slot);
}

static const char *find_program(const struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    return mps_program_find(control->program, events->program(events->context),
                            loop_now(control->settings->loop));
}

static void report_gone(const struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    events->gone(events->context, control->slot);
}

/* Ends a callback from the loop. */
static void report_change(const struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    events->changed(events->context);
}

static void ask_identity(const struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    events->identify(events->context, control->slot, control->site.persona.uid,
                     control->process.child.pid);
}

void mps_control_describe(const struct mps_control *control, struct mps_record *ret_record)
{
    *ret_record = (struct mps_record){
        .user = control->site.persona,
        .pid = control->process.child.pid,
        .started = control->process.started,
        .pipe = control->site.pipe,
        .log = control->site.log,
    };
}

/* Writes the record to the journal. Returns false if the journal is behind. */
static bool keep_record(struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;
    struct mps_record record;

    control->is_kept = true;
    mps_control_describe(control, &record);
    return events->keep(events->context, control->slot, &record);
}

static void drop_record(struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    if (control->is_kept)
        events->keep(events->context, control->slot, NULL);
    control->is_kept = false;
}

static void log_state(const struct mps_control *control, const char *state, const char *reason)
{
    const struct mps_settings *settings = control->settings;
    const struct device *device = find_device(control);
    struct log *log = settings->log;

    if (!settings->events.may_log(settings->events.context, control->site.persona.uid))
        return;
    log_begin(log, pool_clock_now(settings->clock), "mps");
    text_append(log_value(log, "state"), state);
    if (device != NULL)
        text_append(log_value(log, "device"), device_id_format(device->id).text);
    log_number(log, "uid", control->site.persona.uid);
    if (control->process.child.pid > 0)
        log_number(log, "pid", (uint64_t)control->process.child.pid);
    if (reason != NULL)
        text_append(log_value(log, "reason"), log_quote(reason).text);
    log_end(log);
}

static void set_timeout(struct mps_control *control, int64_t after)
{
    struct loop *loop = control->settings->loop;

    loop_set_timer(loop, &control->timeout,
                   after == LOOP_NEVER ? LOOP_NEVER : loop_now(loop) + after);
}

static void enter_state(struct mps_control *control, enum mps_state state, int64_t timeout)
{
    control->state = state;
    set_timeout(control, timeout);
    loop_set_timer(control->settings->loop, &control->ask_again, LOOP_NEVER);
}

/* ---- Commands ---- */

static void take_answer(void *context, const struct runner_end *end);

static struct mps_target describe_target(const struct mps_control *control)
{
    return (struct mps_target){
        .site = &control->site,
        .device = find_device(control),
        .socket = control->settings->socket,
    };
}

/* Sends a command, unless another one has no answer yet. Without memory or the program there is no
 * helper then. */
static void send_command(struct mps_control *control, const char *command, int64_t timeout)
{
    const char *program = find_program(control);

    if (control->helper == NULL && program != NULL)
        control->helper =
            mps_query_start(control->settings->runner, &(struct mps_query){
                                                           .launcher = control->settings->launcher,
                                                           .program = program,
                                                           .target = describe_target(control),
                                                           .words = command,
                                                           .deadline = timeout,
                                                           .answered = take_answer,
                                                           .context = control,
                                                       });
}

static void ask_later(struct mps_control *control)
{
    struct loop *loop = control->settings->loop;

    loop_set_timer(loop, &control->ask_again, loop_now(loop) + ANSWER_PAUSE);
}

static void ask_whether_it_answers(struct mps_control *control)
{
    send_command(control, "get_server_list\n", ANSWER_TIMEOUT);
    if (control->helper == NULL)
        ask_later(control);
}

static void ask_to_quit(struct mps_control *control)
{
    enter_state(control, MPS_QUITTING, QUIT_TIMEOUT);
    /* A command that has no answer yet comes first. */
    control->asks_to_quit = control->helper == NULL;
    if (!control->asks_to_quit)
        return;
    send_command(control, QUIT, QUIT_TIMEOUT);
    if (control->helper == NULL)
        set_timeout(control, 0);
}

/* ---- After its end ---- */

static void clear_processes(struct mps_control *control)
{
    enter_state(control, MPS_CLEARING, LOOP_NEVER);
    mps_clearing_begin(&control->clearing, control->site.persona.uid);
}

static void become_absent(struct mps_control *control)
{
    enter_state(control, MPS_NONE, LOOP_NEVER);
    drop_record(control);
    mps_site_finish(&control->site);
    control->failures = 0;
    control->was_there = false;
    report_gone(control);
}

/* Returns the pause before it is started again: none the first time, then longer ones. */
static int64_t find_pause(unsigned failures)
{
    int64_t pause = failures < 2 ? 0 : DURATION_SECOND;

    for (unsigned i = 2; i < failures && pause < PAUSE_MAX; i++)
        pause *= 2;
    return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

/* Takes the site that the tenants need now. Without memory the former one stays. */
static void update_site(struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;
    struct mps_site site;

    if (!events->find_site(events->context, control->slot, &site))
        return;
    if (site.persona.uid == control->site.persona.uid && site.persona.gid == USER_IDENTITY_NO_GROUP)
        site.persona.gid = control->site.persona.gid;
    mps_site_finish(&control->site);
    control->site = site;
}

/* All of its processes have ended. It is started again if there are tenants. */
static void handle_cleared(struct mps_clearing *clearing)
{
    struct mps_control *control = container_of(clearing, struct mps_control, clearing);
    const struct mps_events *events = &control->settings->events;

    log_state(control, "stopped", NULL);
    mps_process_forget(&control->process);
    if (!events->has_tenants(events->context, control->slot)) {
        become_absent(control);
        return;
    }
    update_site(control);
    keep_record(control);
    enter_state(control, MPS_PAUSING,
                events->is_awaited(events->context, control->slot) ? 0
                                                                   : find_pause(control->failures));
    report_gone(control);
}

void mps_control_found(struct mps_control *control, bool is_gone)
{
    mps_clearing_found(&control->clearing, is_gone);
    report_change(control);
}

/* ---- Starting ---- */

static void fail_start(struct mps_control *control, const char *why)
{
    const struct mps_events *events = &control->settings->events;

    log_state(control, "failed", why);
    control->failures++;
    /* The claims that are refused may be the last that need it. */
    enter_state(control, MPS_CLEARING, LOOP_NEVER);
    events->failed(events->context, control->slot, why);
    clear_processes(control);
}

static void fail_late_start(struct mps_control *control)
{
    struct text why = {0};

    if (control->failure[0] != '\0')
        text_append(&why, control->failure);
    else
        text_append_format(&why, "no answer within %s",
                           quantity_format_duration(control->settings->start_timeout).text);
    mps_append_words(&control->process.child, &why);
    fail_start(control, text_string(&why));
    text_finish(&why);
}

static void become_ready(struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    enter_state(control, MPS_READY, LOOP_NEVER);
    control->ready_at = loop_now(control->settings->loop);
    log_state(control, "ready", NULL);
    events->answers(events->context, control->slot);
}

/* Makes the process, writes it to the journal, and lets it go on. Returns 0 or an errno. */
static int launch_process(struct mps_control *control)
{
    const char *program = find_program(control);
    int number = program == NULL ? ENOENT
                                 : mps_process_make(&control->process,
                                                    &(struct mps_process_order){
                                                        .launcher = control->settings->launcher,
                                                        .program = program,
                                                        .base = control->base,
                                                        .target = describe_target(control),
                                                        .mark = mps_mark(control->slot),
                                                    });

    if (number != 0)
        return number;
    /* The next daemon would not find a process that the journal lacks. */
    if (!keep_record(control)) {
        mps_process_undo(&control->process);
        return ENOSPC;
    }
    mps_process_let_go(&control->process);
    ask_identity(control);
    return 0;
}

static void begin_start(struct mps_control *control)
{
    int number;

    enter_state(control, MPS_STARTING, control->settings->start_timeout);
    control->was_there = false;
    control->failure[0] = '\0';
    control->is_stale = control->helper != NULL;
    number = launch_process(control);
    if (number == 0) {
        log_state(control, "starting", NULL);
        return;
    }
    /* It is reported from the loop. */
    snprintf(control->failure, sizeof(control->failure), "%s", strerror(number));
    set_timeout(control, 0);
}

void mps_control_start(struct mps_control *control, struct mps_site *site)
{
    mps_site_finish(&control->site);
    control->site = *site;
    *site = (struct mps_site){0};
    begin_start(control);
}

void mps_control_stop(struct mps_control *control)
{
    const struct mps_events *events = &control->settings->events;

    if (control->state == MPS_NONE)
        return;
    events->leaving(events->context, control->slot);
    if (control->state == MPS_PAUSING) {
        become_absent(control);
    } else if (control->state == MPS_STARTING && !control->was_there) {
        log_state(control, "stopping", NULL);
        enter_state(control, MPS_CLEARING, LOOP_NEVER);
        mps_clearing_begin_soon(&control->clearing, control->site.persona.uid);
    } else if (control->state == MPS_STARTING || control->state == MPS_READY) {
        log_state(control, "stopping", NULL);
        ask_to_quit(control);
    }
}

/* ---- Events of the loop ---- */

static void handle_line(struct watch *watch, uint32_t events)
{
    struct mps_control *control = container_of(watch, struct mps_control, process.line);

    (void)events;
    /* Before, another control daemon in its directory could answer. */
    if (mps_process_has_begun(&control->process) && control->state == MPS_STARTING)
        ask_whether_it_answers(control);
    report_change(control);
}

static void handle_ask_again(struct timer *timer)
{
    ask_whether_it_answers(container_of(timer, struct mps_control, ask_again));
}

static void handle_timeout(struct timer *timer)
{
    struct mps_control *control = container_of(timer, struct mps_control, timeout);

    if (control->state == MPS_STARTING) {
        fail_late_start(control);
    } else if (control->state == MPS_QUITTING) {
        log_state(control, "late", NULL);
        clear_processes(control);
    } else if (control->state == MPS_PAUSING) {
        begin_start(control);
    }
    report_change(control);
}

static void take_answer(void *context, const struct runner_end *end)
{
    struct mps_control *control = context;
    bool is_good = runner_succeeded(end) && !control->is_stale;

    control->helper = NULL;
    control->is_stale = false;
    if (control->state == MPS_STARTING && is_good &&
        !pidfd_has_ended(control->process.child.process))
        become_ready(control);
    else if (control->state == MPS_STARTING && control->process.line.descriptor < 0)
        ask_later(control);
    else if (control->state == MPS_QUITTING && !control->asks_to_quit)
        ask_to_quit(control);
    else if (control->state == MPS_QUITTING && !is_good)
        clear_processes(control);
    report_change(control);
}

/* Notes that the control daemon ended by itself while it was needed. */
static void note_death(struct mps_control *control, const char *why)
{
    int64_t lived = loop_now(control->settings->loop) - control->ready_at;

    log_state(control, "died", why);
    control->failures = lived >= PAUSE_MAX ? 1 : control->failures + 1;
    clear_processes(control);
}

static void handle_end(struct watch *watch, uint32_t events)
{
    struct mps_control *control = container_of(watch, struct mps_control, process.end);
    struct text why = {0};

    (void)events;
    mps_process_ended(&control->process, &why);
    if (control->state == MPS_STARTING)
        fail_start(control, text_string(&why));
    else if (control->state == MPS_READY)
        note_death(control, text_string(&why));
    else if (control->state == MPS_QUITTING)
        clear_processes(control);
    else if (control->state == MPS_CLEARING)
        mps_clearing_process_ended(&control->clearing);
    text_finish(&why);
    report_change(control);
}

/* ---- One of an earlier daemon ---- */

void mps_control_take_over(struct mps_control *control)
{
    if (!mps_process_take_over(&control->process)) {
        clear_processes(control);
        return;
    }
    ask_identity(control);
    /* The earlier daemon may not have seen it answer. */
    log_state(control, "restored", NULL);
    enter_state(control, MPS_STARTING, control->settings->start_timeout);
    ask_whether_it_answers(control);
}

void mps_control_identified(struct mps_control *control, uint64_t started)
{
    uint64_t known = control->process.started;

    if (!mps_process_confirm(&control->process, started)) {
        clear_processes(control);
        report_change(control);
    } else if (control->process.started != known) {
        keep_record(control);
    }
}

/* ---- Making ---- */

void mps_control_init(struct mps_control *control, uint32_t slot,
                      const struct mps_settings *settings, const char *base,
                      struct mps_program *program)
{
    *control = (struct mps_control){
        .settings = settings,
        .base = base,
        .program = program,
        .slot = slot,
        .ask_again = {.fire = handle_ask_again, .skips_suspend = true},
        .timeout = {.fire = handle_timeout, .skips_suspend = true},
    };
    mps_process_init(&control->process, settings->loop);
    control->process.end.ready = handle_end;
    control->process.line.ready = handle_line;
    mps_clearing_init(&control->clearing, settings, slot, &control->process, handle_cleared);
}

void mps_control_finish(struct mps_control *control)
{
    mps_clearing_stop(&control->clearing);
    enter_state(control, MPS_NONE, LOOP_NEVER);
    mps_process_forget(&control->process);
    mps_site_finish(&control->site);
}
