/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks berth-probe about the hardware, as often as it is needed, and passes on its reports. A probe
 * that hangs or dies is given up, and another one is started after a while.
 *
 * Functions that take a `poll` accept NULL, for a pool of an inventory. All belong to the loop's
 * thread; only probe_poll_await() blocks.
 */
#ifndef DAEMON_DEVICES_PROBE_POLL_H
#define DAEMON_DEVICES_PROBE_POLL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "daemon/core/log.h"
#include "daemon/core/loop.h"
#include "daemon/core/pool_clock.h"
#include "model/machine/device.h"
#include "model/machine/machine_report.h"
#include "probe/probe.h"

/* How long a user counts as watching after a snapshot of the devices, and how often the hardware is
 * probed: while a user watches; while a device is leased or a claim waits; otherwise. */
#define PROBE_POLL_WATCHED_FOR   (5 * DURATION_SECOND)
#define PROBE_POLL_WATCHED_EVERY DURATION_SECOND
#define PROBE_POLL_BUSY_EVERY    (10 * DURATION_SECOND)
#define PROBE_POLL_IDLE_EVERY    DURATION_MINUTE

/* The pauses before a lost probe is started again: the first one, which doubles each time, and the
 * longest. */
#define PROBE_POLL_RESTART_MIN DURATION_SECOND
#define PROBE_POLL_RESTART_MAX DURATION_MINUTE

/* How long a daemon that starts waits for the first report. The process that starts the daemon
 * waits for 10 s. */
#define PROBE_POLL_START_TIMEOUT (8 * DURATION_SECOND)

/* A report that decides a claim is no older than this, so that no claim gets a device with a
 * process that has no lease. */
#define PROBE_POLL_FRESH_FOR DURATION_SECOND
/* The same for a claim about a process that may just have begun to use devices. */
#define PROBE_POLL_NEW_FOR (DURATION_SECOND / 10)

struct probe_poll;

/* Callbacks. */
struct probe_poll_events {
    void *context;

    /* Whether a device is leased or a claim waits. */
    bool (*is_busy)(void *context);
    /* The shortest interval at which a follower wants loads; 0: none. */
    int64_t (*followed_interval)(void *context);
    /* Whether single devices need a report soon, that was not requested yet. */
    bool (*needs_report)(void *context);
    /* Whether a device waits for a report, requested or not. */
    bool (*awaits_report)(void *context);
    /* A request begins: about all devices, or about those that the callback adds to `only`. */
    void (*request)(void *context, struct device_id_list *only);

    /* Passes on a report, without its problems. The callback must finish it, or empty it. A failure
     * becomes a problem of the pool. */
    int (*take)(void *context, struct machine_report *report, struct berth_error *error);
    /* The probe was lost or never started: mark the facts as old. */
    void (*lost)(void *context);
    /* A report was applied, or the probe was lost: continue the waiting claims. */
    void (*answered)(void *context);
};

struct probe_poll_settings {
    struct loop *loop;
    struct log *log;
    const struct pool_clock *clock;
    /* Executes the probe (probe/probe.h); NULL: as probe_start() does. */
    probe_spawn_function *spawn;
    void *spawn_context;
    struct probe_poll_events events;
};

/* Returns the time from one report to the next. */
int64_t probe_poll_interval(bool watched, bool busy);
/* Returns the time until a probe is started again that was lost `failures` times in a row, 1 or
 * more. */
int64_t probe_poll_restart_after(unsigned failures);

/* Starts a probe and requests the first report. A probe that cannot be started is tried again
 * later. Fails with BERTH_ERROR_MEMORY. */
int probe_poll_create(struct probe_poll **ret_poll, const struct probe_poll_settings *settings,
                      struct berth_error *error);
void probe_poll_destroy(struct probe_poll *poll);

/* Waits for the first report, at most PROBE_POLL_START_TIMEOUT, or until `signals` is readable. */
void probe_poll_await(struct probe_poll *poll, int signals);
/* Returns how many devices the first report has; 0 without one. */
size_t probe_poll_first_count(const struct probe_poll *poll);
/* Passes on the first report, if there is one; later ones are passed on as they come. */
void probe_poll_begin(struct probe_poll *poll);

/* Notes that a user looks at the devices. */
void probe_poll_watched(struct probe_poll *poll);

/* Returns whether a claim must wait for a report, and requests the report then. `anew`: only a
 * report that starts now is good enough. */
bool probe_poll_must_wait(struct probe_poll *poll, bool anew);
/* Returns whether that report has not come yet. */
bool probe_poll_is_awaited(const struct probe_poll *poll);

/* Returns how many reports have come or failed. */
uint64_t probe_poll_report_count(const struct probe_poll *poll);
/* Returns the value of that count at which every device and claim that waits for a report now has
 * one; 0: none waits. */
uint64_t probe_poll_reports_needed(const struct probe_poll *poll);

/* Returns whether a probe runs. */
bool probe_poll_answers(const struct probe_poll *poll);

/* Sets the time of the next action. Called before each wait of the loop. */
void probe_poll_schedule(struct probe_poll *poll);

/* Returns the problems of the last report; NULL: there is no poll. */
const struct problem_list *probe_poll_problems(const struct probe_poll *poll);

/* Adds the likely reason to an error that says that there are no devices. */
void probe_poll_explain(const struct probe_poll *poll, struct berth_error *error);

#endif
