/* SPDX-License-Identifier: Apache-2.0
 *
 * The control daemons of MPS without a pool: a shell script as the control program, an owner whose
 * answers the test sets, and a time that the test can set forward.
 */
#ifndef TESTS_MPS_STAGE_H
#define TESTS_MPS_STAGE_H

#include "support/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/text/text.h"
#include "daemon/core/launcher.h"
#include "daemon/core/runner.h"
#include "daemon/mps/mps.h"
#include "daemon/mps/mps_launch.h"
#include "daemon/mps/mps_query.h"
#include "model/machine/device.h"
#include "support/daemons/mps_script.h"
#include "support/temporary_directory.h"

struct mps_stage {
    void *directory; /* of the test, and the current one */
    char program[256];
    char socket[256];
    struct loop loop;
    struct log log;
    struct pool_clock clock;
    struct runner *runner;
    struct launcher launcher; /* without a process of its own */
    struct mps *mps;
    int64_t give_up_at; /* of the real clock */
    int turns;
    bool (*is_done)(const struct mps_stage *stage);

    /* The owner's answers. */
    struct device device;
    bool is_device_gone;
    bool has_program;
    bool has_tenants;
    bool is_awaited;
    bool is_behind; /* the journal */
    bool may_not_log;
    bool keeps_tenants;     /* when it cannot be started */
    bool is_search_blind;   /* finds no process */
    uint64_t started;       /* of the process; 0: gone */
    bool is_never_answered; /* the question about that */

    /* Set by the callbacks. */
    int answers;
    int failures;
    int leavings;
    int gones;
    char why[256]; /* of the last failure */
    bool has_record;
    struct mps_record record;
    int last_signal;
    pid_t root; /* of the search; 0: unknown */
    pid_t asked_about;
    bool is_reported;
    struct timer found;
    struct timer identified;
};

static int64_t mps_stage_time;      /* goes on by 1 ms with each turn of the loop */
static int64_t mps_stage_suspended; /* added to the clock that counts suspended time */

static inline int64_t mps_stage_read_clock(clockid_t clock)
{
    return mps_stage_time + (clock == CLOCK_BOOTTIME ? mps_stage_suspended : 0);
}

/* ---- The owner ---- */

static inline const struct device *mps_stage_find_device(void *context, uint32_t slot)
{
    const struct mps_stage *stage = context;

    assert_int_equal(slot, 0);
    return stage->is_device_gone ? NULL : &stage->device;
}

static inline const char *mps_stage_find_program(void *context)
{
    const struct mps_stage *stage = context;

    return stage->has_program ? stage->program : "/nonexistent/program";
}

static inline bool mps_stage_has_tenants(void *context, uint32_t slot)
{
    const struct mps_stage *stage = context;

    (void)slot;
    return stage->has_tenants;
}

static inline bool mps_stage_is_awaited(void *context, uint32_t slot)
{
    const struct mps_stage *stage = context;

    (void)slot;
    return stage->is_awaited;
}

/* Makes a site in the test's directory, whose directories exist. */
static inline struct mps_site mps_stage_site(const struct mps_stage *stage, const char *name)
{
    struct mps_site site = {
        .persona = {.uid = getuid(), .gid = getgid()},
        .is_pipe_given = true,
        .is_log_given = true,
    };

    assert_true(asprintf(&site.pipe, "%s/%s", (const char *)stage->directory, name) > 0);
    site.log = strdup(site.pipe);
    mkdir(site.pipe, 0700);
    return site;
}

static inline bool mps_stage_find_site(void *context, uint32_t slot, struct mps_site *ret_site)
{
    const struct mps_stage *stage = context;

    (void)slot;
    if (stage->has_tenants)
        *ret_site = mps_stage_site(stage, "site");
    return stage->has_tenants;
}

static inline void mps_stage_note_answer(void *context, uint32_t slot)
{
    struct mps_stage *stage = context;

    (void)slot;
    stage->answers++;
    stage->is_awaited = false;
}

/* Refuses the claims, which were the only tenants unless the test says otherwise. */
static inline void mps_stage_note_failure(void *context, uint32_t slot, const char *why)
{
    struct mps_stage *stage = context;

    stage->failures++;
    stage->is_awaited = false;
    snprintf(stage->why, sizeof(stage->why), "%s", why);
    if (stage->keeps_tenants)
        return;
    stage->has_tenants = false;
    mps_stop(stage->mps, slot);
}

static inline void mps_stage_note_leaving(void *context, uint32_t slot)
{
    struct mps_stage *stage = context;

    (void)slot;
    stage->leavings++;
}

static inline void mps_stage_note_gone(void *context, uint32_t slot)
{
    struct mps_stage *stage = context;

    (void)slot;
    stage->gones++;
}

static inline bool mps_stage_keep(void *context, uint32_t slot, const struct mps_record *record)
{
    struct mps_stage *stage = context;

    (void)slot;
    stage->has_record = record != NULL;
    stage->record = record == NULL ? (struct mps_record){0} : *record;
    /* They are borrowed. */
    stage->record.pipe = stage->record.log = NULL;
    return !stage->is_behind;
}

static inline void mps_stage_ignore(void *context)
{
    (void)context;
}

static inline void mps_stage_report_found(struct timer *timer)
{
    struct mps_stage *stage = container_of(timer, struct mps_stage, found);
    bool is_found = !stage->is_search_blind && mps_script_runs(stage->root);

    if (is_found)
        loop_set_timer(&stage->loop, timer, loop_now(&stage->loop) + DURATION_SECOND / 500);
    if (is_found && stage->is_reported)
        return;
    stage->is_reported = true;
    mps_found(stage->mps, 0, !is_found);
}

static inline bool mps_stage_search(void *context, uint32_t slot, uint32_t uid, pid_t root)
{
    struct mps_stage *stage = context;

    (void)slot;
    assert_int_equal(uid, getuid());
    stage->root = root;
    stage->is_reported = false;
    loop_set_timer(&stage->loop, &stage->found, 0);
    return true;
}

static inline void mps_stage_signal(void *context, uint32_t slot, int number)
{
    struct mps_stage *stage = context;

    (void)slot;
    stage->last_signal = number;
    if (mps_script_runs(stage->root))
        kill(stage->root, number);
}

static inline void mps_stage_report_start(struct timer *timer)
{
    struct mps_stage *stage = container_of(timer, struct mps_stage, identified);

    mps_identified(stage->mps, 0, stage->started);
}

static inline void mps_stage_identify(void *context, uint32_t slot, uint32_t uid, pid_t pid)
{
    struct mps_stage *stage = context;

    (void)slot;
    (void)uid;
    stage->asked_about = pid;
    loop_set_timer(&stage->loop, &stage->identified, stage->is_never_answered ? LOOP_NEVER : 0);
}

static inline void mps_stage_forget(void *context, uint32_t slot)
{
    struct mps_stage *stage = context;

    (void)slot;
    loop_set_timer(&stage->loop, &stage->found, LOOP_NEVER);
    loop_set_timer(&stage->loop, &stage->identified, LOOP_NEVER);
}

/* ---- The loop ---- */

/* Timers are due by the test's time, of which the loop's timerfd knows nothing. */
static inline void mps_stage_before_turn(void *context)
{
    struct mps_stage *stage = context;
    struct pollfd ready = {.fd = stage->loop.epoll, .events = POLLIN};

    if (stage->is_done(stage)) {
        stage->loop.ended = true;
        return;
    }
    if (clock_now() > stage->give_up_at)
        fail_msg("what the test waits for did not happen within 30 s");
    poll(&ready, 1, 2);
    mps_stage_time += DURATION_SECOND / 1000;
    stage->loop.is_due = true;
    stage->turns++;
}

static inline void mps_stage_run(struct mps_stage *stage,
                                 bool (*is_done)(const struct mps_stage *stage))
{
    stage->is_done = is_done;
    stage->give_up_at = clock_now() + 30 * DURATION_SECOND;
    stage->loop.ended = false;
    loop_run(&stage->loop, &(struct loop_turn){mps_stage_before_turn, mps_stage_ignore, stage});
}

static inline void mps_stage_skip(int64_t duration)
{
    mps_stage_time += duration;
}

static inline bool mps_stage_has_turned(const struct mps_stage *stage)
{
    return stage->turns > 10;
}

/* Takes ten turns. */
static inline void mps_stage_turn(struct mps_stage *stage)
{
    stage->turns = 0;
    mps_stage_run(stage, mps_stage_has_turned);
}

static inline bool mps_stage_may_log(void *context, uint32_t uid)
{
    const struct mps_stage *stage = context;

    (void)uid;
    return !stage->may_not_log;
}

/* ---- The beginning and the end ---- */

static const struct launcher_entry mps_stage_programs[LAUNCHER_PROGRAMS] = {
    [LAUNCHER_MPS_CONTROL] = {.run = mps_launch_run},
    [LAUNCHER_MPS_QUERY] = {.run = mps_query_run},
};

static inline void mps_stage_create_mps(struct mps_stage *stage)
{
    assert_int_equal(mps_create(&stage->mps,
                                &(struct mps_settings){
                                    .loop = &stage->loop,
                                    .log = &stage->log,
                                    .clock = &stage->clock,
                                    .runner = stage->runner,
                                    .launcher = &stage->launcher,
                                    .socket = stage->socket,
                                    .slots_max = 1,
                                    .start_timeout = 20 * DURATION_SECOND,
                                    .events =
                                        {
                                            .context = stage,
                                            .device = mps_stage_find_device,
                                            .program = mps_stage_find_program,
                                            .has_tenants = mps_stage_has_tenants,
                                            .is_awaited = mps_stage_is_awaited,
                                            .find_site = mps_stage_find_site,
                                            .answers = mps_stage_note_answer,
                                            .failed = mps_stage_note_failure,
                                            .leaving = mps_stage_note_leaving,
                                            .gone = mps_stage_note_gone,
                                            .keep = mps_stage_keep,
                                            .may_log = mps_stage_may_log,
                                            .changed = mps_stage_ignore,
                                            .search = mps_stage_search,
                                            .signal = mps_stage_signal,
                                            .identify = mps_stage_identify,
                                            .forget = mps_stage_forget,
                                        },
                                },
                                NULL),
                     0);
}

/* A setup function for cmocka. */
static inline int mps_stage_begin(void **state)
{
    struct mps_stage *stage = calloc(1, sizeof(*stage));

    mps_stage_time = DURATION_HOUR;
    mps_stage_suspended = 0;
    if (stage == NULL || temporary_directory_enter(&stage->directory) < 0 ||
        loop_init(&stage->loop, NULL) < 0)
        return -1;
    stage->loop.read_clock = mps_stage_read_clock;
    stage->loop.suspended = 0;
    log_init(&stage->log, &stage->loop, open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), NULL);
    pool_clock_init(&stage->clock, &stage->loop);
    stage->runner = runner_create(&stage->loop);
    launcher_init(&stage->launcher, mps_stage_programs);
    stage->device = (struct device){.id = {.vendor = VENDOR_NVIDIA, .mig = DEVICE_NO_MIG},
                                    .uuid = (char *)"GPU-0"};
    stage->has_program = stage->has_tenants = stage->is_awaited = true;
    stage->started = 4711;
    stage->found.fire = mps_stage_report_found;
    stage->identified.fire = mps_stage_report_start;
    snprintf(stage->program, sizeof(stage->program), "%s/program", (const char *)stage->directory);
    snprintf(stage->socket, sizeof(stage->socket), "%s/berth.sock", (const char *)stage->directory);
    mps_script_install(stage->directory);
    mps_stage_create_mps(stage);
    *state = stage;
    return stage->runner == NULL ? -1 : 0;
}

static inline int mps_stage_end(void **state)
{
    struct mps_stage *stage = *state;
    int log = stage->log.descriptor;

    mps_destroy(stage->mps);
    runner_destroy(stage->runner);
    mps_script_end_processes();
    log_finish(&stage->log);
    close(log);
    loop_finish(&stage->loop);
    temporary_directory_leave(&stage->directory);
    free(stage);
    return 0;
}

/* ---- Checks ---- */

/* Returns the need of a lease at the site of this name. */
static inline enum mps_readiness mps_stage_need(struct mps_stage *stage, const char *name)
{
    struct mps_site site = mps_stage_site(stage, name);
    enum mps_readiness readiness = mps_need(stage->mps, 0, &site);

    mps_site_finish(&site);
    return readiness;
}

/* Checks the states in the log, such as "starting ready". */
static inline void mps_stage_check_states(struct mps_stage *stage, const char *expected)
{
    struct text content = {0};
    struct text states = {0};

    log_flush(&stage->log);
    mps_script_read("log", &content);
    for (const char *state = strstr(text_string(&content), "state="); state != NULL;
         state = strstr(state, "state=")) {
        state += strlen("state=");
        text_append(&states, states.length == 0 ? "" : " ");
        text_append_bytes(&states, state, strcspn(state, " \n"));
    }
    assert_string_equal(text_string(&states), expected);
    text_finish(&states);
    text_finish(&content);
}

static inline bool mps_stage_has_answered(const struct mps_stage *stage)
{
    return stage->answers > 0;
}

static inline bool mps_stage_is_absent(const struct mps_stage *stage)
{
    return !mps_is_present(stage->mps, 0);
}

#endif
