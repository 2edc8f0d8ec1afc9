/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/prolog_epilog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "daemon/clients/quota.h"
#include "daemon/core/accounts.h"
#include "daemon/core/child_environment.h"
#include "daemon/core/runner.h"
#include "daemon/devices/device_locks.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/job.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/mps_tenants.h"
#include "daemon/leases/notify_program.h"
#include "daemon/leases/pool.h"

/* The lease for which a program runs. */
struct subject {
    uint64_t id;
    uint32_t uid;
    char *name; /* NULL: none */
};

/* The state of one slot. */
struct check {
    struct pool *pool;
    struct helper *helper;  /* runs, or waits for its turn; NULL: none */
    struct subject subject; /* of the helper and of the due epilog */
    bool is_prolog;         /* the helper is a prolog */
    bool is_stale;          /* the prolog's result no longer matters */
    bool is_prepared;       /* the prolog succeeded for the present leases */
    bool has_failed;        /* the last prolog failed */
    bool epilog_due;        /* the epilog must run, or run again */
    bool epilog_kept;       /* the journal says that the epilog has not ended */
};

static uint32_t slot_of(const struct check *check)
{
    return (uint32_t)(check - check->pool->checks);
}

static const struct device *device_of(const struct check *check)
{
    return &engine_machine(check->pool->engine)->devices.items[slot_of(check)];
}

int prolog_epilog_init(struct pool *pool, struct berth_error *error)
{
    size_t count = engine_slots_max(pool->engine);

    pool->checks = calloc(count, sizeof(*pool->checks));
    if (pool->checks == NULL)
        return error_set_memory(error);
    for (size_t slot = 0; slot < count; slot++)
        pool->checks[slot].pool = pool;
    return 0;
}

void prolog_epilog_finish(struct pool *pool)
{
    for (size_t slot = 0; pool->checks != NULL && slot < engine_slots_max(pool->engine); slot++)
        free(pool->checks[slot].subject.name);
    free(pool->checks);
    pool->checks = NULL;
}

/* ---- Programs ---- */

static void set_subject(struct check *check, const struct job *job, const struct lease_view *view)
{
    const char *name = engine_request_what(view->request)->name;

    free(check->subject.name);
    /* Without memory the name stays unknown. */
    check->subject = (struct subject){
        .id = job->by_id.id,
        .uid = job->holder->uid,
        .name = name == NULL ? NULL : strdup(name),
    };
}

static void fill_variables(const struct check *check, const char *event,
                           struct child_environment *out)
{
    const struct device *device = device_of(check);
    struct text nodes = {0};
    char *const *node;

    vector_for_each (node, &device->nodes)
        text_append_format(&nodes, "%s%s", nodes.length == 0 ? "" : ":", *node);
    child_environment_add(out, "BERTH_EVENT", event);
    child_environment_add(out, "BERTH_DEVICE", device_id_format(device->id).text);
    child_environment_add(out, "BERTH_DEVICE_UUID", device->uuid);
    if (device->pci.known)
        child_environment_add(out, "BERTH_DEVICE_PCI", pci_format(device->pci).text);
    child_environment_add(out, "BERTH_DEVICE_NODES",
                          nodes.length == 0 ? NULL : text_string(&nodes));
    child_environment_add_number(out, "BERTH_LEASE", check->subject.id);
    child_environment_add_number(out, "BERTH_UID", check->subject.uid);
    child_environment_add(out, "BERTH_NAME", check->subject.name);
    out->failed = out->failed || text_failed(&nodes);
    text_finish(&nodes);
}

/* Runs the command for the slot. */
static void run_program(struct check *check, const struct check_command *command, const char *event,
                        void (*done)(void *context, const struct runner_end *end))
{
    struct pool *pool = check->pool;
    struct child_environment variables = {0};

    fill_variables(check, event, &variables);
    if (!variables.failed)
        check->helper =
            runner_start(pool->runner, &(struct runner_order){
                                           .words = &command->argv,
                                           .last_word = device_id_format(device_of(check)->id).text,
                                           .environment = &variables.list,
                                           .deadline = command->deadline,
                                           .may_signal = command->may_signal,
                                           .done = done,
                                           .context = check,
                                       });
    string_list_finish(&variables.list);
    if (check->helper == NULL) {
        /* The journal says that the program must run, so the next daemon runs it. */
        pool->lost = true;
        pool->loop.ended = true;
    }
}

static void log_program_end(const struct check *check, const char *event,
                            const struct runner_end *end)
{
    struct pool *pool = check->pool;
    struct text result = {0};

    if (!quota_may_log_user(&pool->clients, accounts_find(&pool->accounts, check->subject.uid)))
        return;
    if (runner_succeeded(end))
        text_append(&result, "ok");
    else
        runner_describe_end(end, &result);
    log_line(&pool->log, pool_clock_now(&pool->clock), event,
             "device=%s id=%" PRIu64 " uid=%u result=%s",
             device_id_format(device_of(check)->id).text, check->subject.id, check->subject.uid,
             log_quote(text_string(&result)).text);
    text_finish(&result);
}

/* Drains the device because the program failed. */
static void drain_slot(struct check *check, const char *event, const struct runner_end *end)
{
    struct pool *pool = check->pool;
    struct text reason = {0};

    text_append_format(&reason, "%s: ", event);
    runner_describe_end(end, &reason);
    /* Without memory the device is drained without a reason. */
    if (text_failed(&reason) || device_drain_set(pool, slot_of(check), text_string(&reason),
                                                 (struct optional_number){0}, NULL) < 0)
        device_drain_set(pool, slot_of(check), NULL, (struct optional_number){0}, NULL);
    notify_program_drained(pool, slot_of(check), text_string(&reason));
    text_finish(&reason);
}

/* ---- Epilogs ---- */

/* Records in the journal whether the epilog is due. */
static void record_epilog(struct check *check, bool is_due)
{
    if (!is_due && !check->epilog_kept)
        return;
    check->epilog_kept = is_due;
    journal_write_epilog(check->pool, slot_of(check));
}

static void epilog_ended(void *context, const struct runner_end *end);

/* Lets the slot be granted again. */
static void free_slot(struct check *check)
{
    record_epilog(check, false);
    handover_done(check->pool, slot_of(check), HANDOVER_EPILOG);
    device_locks_update(check->pool->device_locks);
}

/* Runs the epilog, if one is due and configured; otherwise frees the slot. */
static void run_epilog(struct check *check)
{
    const struct check_command *command = &check->pool->rules.epilog;

    if (!check->epilog_due || command->argv.count == 0) {
        check->epilog_due = false;
        free_slot(check);
        return;
    }
    check->epilog_due = false;
    check->is_prolog = false;
    run_program(check, command, "epilog", epilog_ended);
}

static void epilog_ended(void *context, const struct runner_end *end)
{
    struct check *check = context;

    check->helper = NULL;
    log_program_end(check, "epilog", end);
    if (!runner_succeeded(end))
        drain_slot(check, "epilog", end);
    run_epilog(check);
    engine_events_settle(check->pool);
}

/* Prepares the slot for its next lease: the last one leaves it. */
static void leave_slot(struct check *check, const struct job *job, const struct lease_view *view)
{
    struct pool *pool = check->pool;
    bool prolog_runs = check->helper != NULL && check->is_prolog;

    check->is_prepared = check->has_failed = false;
    check->epilog_due = pool->rules.epilog.argv.count > 0;
    if (!check->epilog_due && !prolog_runs)
        return;
    set_subject(check, job, view);
    handover_need(pool, slot_of(check), HANDOVER_EPILOG);
    if (check->epilog_due)
        record_epilog(check, true);
    if (prolog_runs) {
        check->is_stale = true;
        runner_kill(check->helper);
    } else if (check->helper == NULL) {
        run_epilog(check);
    }
}

/* Returns whether the slot occurs first at this index. A lease may have shares of one device for
 * several replicas. */
static bool is_first(const struct lease_view *view, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (view->slots[i] == view->slots[index])
            return false;
    }
    return true;
}

/* Returns whether another lease is on the slot. */
static bool has_others(const struct pool *pool, const struct lease_view *view, uint32_t slot)
{
    struct slot_view carried;
    uint32_t own = 0;

    for (uint32_t i = 0; i < view->slot_count; i++)
        own += view->slots[i] == slot;
    engine_get_slot(pool->engine, slot, &carried);
    return carried.tenants > own;
}

void prolog_epilog_end(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    if (job->holder->parent != 0)
        return;
    /* A view is valid until the next call that changes the engine. */
    for (uint32_t i = 0;
         engine_get_lease(pool->engine, job->by_lease.id, &view) && i < view.slot_count; i++) {
        if (is_first(&view, i) && !has_others(pool, &view, view.slots[i]))
            leave_slot(&pool->checks[view.slots[i]], job, &view);
    }
}

/* ---- Prologs ---- */

static bool runs_prolog(const struct check *check)
{
    return check->helper != NULL && check->is_prolog && !check->is_stale;
}

/* Leaves the slots of a lease whose holder was never notified, except those whose prolog failed. */
static void leave_unused_slots(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    for (uint32_t i = 0;
         engine_get_lease(pool->engine, job->by_lease.id, &view) && i < view.slot_count; i++) {
        struct check *check = &pool->checks[view.slots[i]];

        if (!is_first(&view, i) || has_others(pool, &view, view.slots[i]))
            continue;
        if (check->has_failed)
            check->has_failed = false;
        else
            leave_slot(check, job, &view);
    }
}

/* Returns the claim to its place in the queue (docs/FAIRNESS.md, section 8). */
static void requeue_claim(struct pool *pool, struct job *job)
{
    int64_t deadline = clock_after(job->since, job->holder->wait);

    leave_unused_slots(pool, job);
    mps_tenants_leave(pool, job);
    if (engine_return(pool->engine, job->by_lease.id, job->since, deadline, NULL) < 0) {
        job->end = LEASE_END_CANCELLED;
        engine_vacated(pool->engine, job->by_lease.id, NULL);
        return;
    }
    if (quota_may_log_lease(job->holder->quota))
        log_line(&pool->log, pool_clock_now(&pool->clock), "returned", "id=%" PRIu64,
                 job->by_id.id);
    job_unset_lease(pool, job);
    job->state = JOB_WAITING;
    journal_write_job(pool, job);
}

/* Notifies the holder or returns the claim to the queue, once all prologs of the job have ended. */
static void finish_preparing(struct pool *pool, struct job *job)
{
    struct lease_view view;
    bool failed = false;

    if (!engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    for (uint32_t i = 0; i < view.slot_count; i++) {
        const struct check *check = &pool->checks[view.slots[i]];

        if (runs_prolog(check))
            return;
        failed = failed || check->has_failed;
    }
    if (failed)
        requeue_claim(pool, job);
    else
        engine_events_notify_holder(pool, job);
}

static void finish_all_preparing(struct pool *pool)
{
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (job_is_preparing(job) && job->end == 0)
            finish_preparing(pool, job);
    }
}

static void prolog_ended(void *context, const struct runner_end *end)
{
    struct check *check = context;
    struct pool *pool = check->pool;

    check->helper = NULL;
    if (check->is_stale) {
        check->is_stale = false;
        run_epilog(check);
        engine_events_settle(pool);
        return;
    }
    log_program_end(check, "prolog", end);
    check->is_prepared = runner_succeeded(end);
    check->has_failed = !check->is_prepared;
    if (check->has_failed)
        drain_slot(check, "prolog", end);
    finish_all_preparing(pool);
    engine_events_settle(pool);
}

/* Returns whether the prolog must run for the slot: no other lease uses it. `again`: after a
 * restart, when is_prepared says it for all leases on the slot. */
static bool needs_prolog(const struct pool *pool, const struct lease_view *view, uint32_t slot,
                         bool again)
{
    const struct check *check = &pool->checks[slot];

    return check->helper == NULL && !check->is_prepared && (again || !has_others(pool, view, slot));
}

static bool prepare_slots(struct pool *pool, struct job *job, bool again)
{
    const struct check_command *command = &pool->rules.prolog;
    struct lease_view view;
    bool waits = false;

    if (job->holder->parent != 0 || job->adopted || command->argv.count == 0 ||
        !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return false;
    for (uint32_t i = 0; i < view.slot_count; i++) {
        struct check *check = &pool->checks[view.slots[i]];

        if (needs_prolog(pool, &view, view.slots[i], again)) {
            set_subject(check, job, &view);
            check->is_prolog = true;
            check->has_failed = false;
            run_program(check, command, "prolog", prolog_ended);
        }
        waits = waits || runs_prolog(check) || check->has_failed || pool->lost;
    }
    return waits;
}

bool prolog_epilog_prepare(struct pool *pool, struct job *job)
{
    if (!prepare_slots(pool, job, false))
        return false;
    /* The claim is older than the configuration's prolog. */
    if (!job->unprepared) {
        job->unprepared = true;
        journal_write_job(pool, job);
    }
    return true;
}

bool prolog_epilog_prepare_again(struct pool *pool, struct job *job)
{
    return prepare_slots(pool, job, true);
}

/* ---- Restoring ---- */

void prolog_epilog_restore(struct pool *pool, struct kept_epilog *kept)
{
    struct check *check;

    if (kept->slot >= engine_slots_max(pool->engine))
        return;
    check = &pool->checks[kept->slot];
    free(check->subject.name);
    check->subject = (struct subject){.id = kept->lease, .uid = kept->uid, .name = kept->name};
    kept->name = NULL;
    check->epilog_due = check->epilog_kept = kept->is_due;
}

bool prolog_epilog_kept(const struct pool *pool, uint32_t slot, struct kept_epilog *ret_kept)
{
    const struct check *check = &pool->checks[slot];

    *ret_kept = (struct kept_epilog){
        .slot = slot,
        .is_due = check->epilog_kept,
        .lease = check->subject.id,
        .uid = check->subject.uid,
        .name = check->subject.name,
    };
    return check->epilog_kept;
}

void prolog_epilog_forget(struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_slots_max(pool->engine); slot++)
        pool->checks[slot].epilog_due = pool->checks[slot].epilog_kept = false;
}

/* Marks the slots of a lease as prepared if its holder was already notified. */
static void note_prepared(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    if (job->unprepared || job->holder->parent != 0 ||
        !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    for (uint32_t i = 0; i < view.slot_count; i++)
        pool->checks[view.slots[i]].is_prepared = true;
}

void prolog_epilog_restored(struct pool *pool)
{
    list_for_each (link, &pool->jobs)
        note_prepared(pool, container_of(link, struct job, in_pool));
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        if (!pool->checks[slot].epilog_due)
            continue;
        handover_need(pool, slot, HANDOVER_EPILOG);
        run_epilog(&pool->checks[slot]);
    }
}
