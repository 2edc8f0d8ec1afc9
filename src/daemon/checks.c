/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/checks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "daemon/drains.h"
#include "daemon/ending.h"
#include "daemon/handover.h"
#include "daemon/helpers.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/names.h"
#include "daemon/notices.h"
#include "daemon/settle.h"
#include "daemon/variables.h"

/* Whom a program is run for. */
struct subject {
    uint64_t id;
    uint32_t uid;
    char *name; /* NULL: none */
};

/* What goes on at a slot. */
struct check {
    struct pool *pool;
    struct helper *helper;  /* that runs for it, or waits for its turn; NULL: none */
    struct subject subject; /* of the helper, and of the epilog that is due */
    bool is_prolog;         /* the helper is one */
    bool is_stale;          /* nobody wants to know any more what comes of the prolog */
    bool is_prepared;       /* the prolog was run for the leases that are on it */
    bool has_failed;        /* the last prolog did */
    bool epilog_due;        /* it is to be run, or run again */
    bool epilog_kept;       /* the journal knows that it is not over */
};

static uint32_t slot_of(const struct check *check)
{
    return (uint32_t)(check - check->pool->checks);
}

static const struct device *device_of(const struct check *check)
{
    return &engine_machine(check->pool->engine)->devices.items[slot_of(check)];
}

int checks_init(struct pool *pool, struct berth_error *error)
{
    size_t count = engine_slots_max(pool->engine);

    pool->checks = calloc(count, sizeof(*pool->checks));
    if (pool->checks == NULL)
        return error_set_memory(error);
    for (size_t slot = 0; slot < count; slot++)
        pool->checks[slot].pool = pool;
    return 0;
}

void checks_finish(struct pool *pool)
{
    for (size_t slot = 0; pool->checks != NULL && slot < engine_slots_max(pool->engine); slot++)
        free(pool->checks[slot].subject.name);
    free(pool->checks);
    pool->checks = NULL;
}

/* ---- Running one ---- */

static void set_subject(struct check *check, const struct job *job, const struct lease_view *view)
{
    const char *name = engine_request_what(view->request)->name;

    free(check->subject.name);
    /* Without memory it has no name. */
    check->subject = (struct subject){
        .id = job->by_id.id,
        .uid = job->holder->uid,
        .name = name == NULL ? NULL : strdup(name),
    };
}

static void fill_variables(const struct check *check, const char *event, struct variables *out)
{
    const struct device *device = device_of(check);
    struct text nodes = {0};
    char *const *node;

    vector_for_each (node, &device->nodes)
        text_append_format(&nodes, "%s%s", nodes.length == 0 ? "" : ":", *node);
    variables_add(out, "BERTH_EVENT", event);
    variables_add(out, "BERTH_DEVICE", device_id_format(device->id).text);
    variables_add(out, "BERTH_DEVICE_UUID", device->uuid);
    if (device->pci.known)
        variables_add(out, "BERTH_DEVICE_PCI", pci_format(device->pci).text);
    variables_add(out, "BERTH_DEVICE_NODES", nodes.length == 0 ? NULL : text_string(&nodes));
    variables_add_number(out, "BERTH_LEASE", check->subject.id);
    variables_add_number(out, "BERTH_UID", check->subject.uid);
    variables_add(out, "BERTH_NAME", check->subject.name);
    out->failed = out->failed || text_failed(&nodes);
    text_finish(&nodes);
}

/* Runs the command for the slot. */
static void run(struct check *check, const struct check_command *command, const char *event,
                void (*done)(void *context, const struct helper_end *end))
{
    struct pool *pool = check->pool;
    struct variables variables = {0};

    fill_variables(check, event, &variables);
    if (!variables.failed)
        check->helper =
            helper_start(pool, &(struct helper_order){
                                   .words = &command->argv,
                                   .last_word = device_id_format(device_of(check)->id).text,
                                   .environment = &variables.list,
                                   .deadline = command->deadline,
                                   .done = done,
                                   .context = check,
                               });
    string_list_finish(&variables.list);
    if (check->helper == NULL) {
        /* The journal knows that it has to be run; whoever reads it next will do so. */
        pool->lost = true;
        pool->loop.ended = true;
    }
}

static void log_end_of(const struct check *check, const char *event, const struct helper_end *end)
{
    struct pool *pool = check->pool;
    struct text result = {0};

    if (helper_succeeded(end))
        text_append(&result, "ok");
    else
        helper_describe(end, &result);
    log_line(&pool->log, pool_now(pool), event, "device=%s id=%" PRIu64 " uid=%u result=%s",
             device_id_format(device_of(check)->id).text, check->subject.id, check->subject.uid,
             log_quote(text_string(&result)).text);
    text_finish(&result);
}

/* Takes the device out of service for what came of the program. */
static void drain(struct check *check, const char *event, const struct helper_end *end)
{
    struct pool *pool = check->pool;
    struct text reason = {0};

    text_append_format(&reason, "%s: ", event);
    helper_describe(end, &reason);
    /* Without memory for the reason there is none. */
    if (text_failed(&reason) || drain_set(pool, slot_of(check), text_string(&reason),
                                          (struct optional_number){0}, NULL) < 0)
        drain_set(pool, slot_of(check), NULL, (struct optional_number){0}, NULL);
    notice_drained(pool, slot_of(check), text_string(&reason));
    text_finish(&reason);
}

/* ---- Epilogs ---- */

/* The journal knows whether the epilog is over. */
static void keep(struct check *check, bool is_due)
{
    if (!is_due && !check->epilog_kept)
        return;
    check->epilog_kept = is_due;
    keep_epilog(check->pool, slot_of(check));
}

static void epilog_ended(void *context, const struct helper_end *end);

/* The slot needs nothing more of us. */
static void let_go(struct check *check)
{
    keep(check, false);
    handover_done(check->pool, slot_of(check), HANDOVER_EPILOG);
    names_update(check->pool);
}

/* What was to be run after the last lease, if anything, is run now. */
static void run_epilog(struct check *check)
{
    const struct check_command *command = &check->pool->rules.epilog;

    if (!check->epilog_due || command->argv.count == 0) {
        check->epilog_due = false;
        let_go(check);
        return;
    }
    check->epilog_due = false;
    check->is_prolog = false;
    run(check, command, "epilog", epilog_ended);
}

static void epilog_ended(void *context, const struct helper_end *end)
{
    struct check *check = context;

    check->helper = NULL;
    log_end_of(check, "epilog", end);
    if (!helper_succeeded(end))
        drain(check, "epilog", end);
    run_epilog(check);
    pool_settle(check->pool);
}

/* The last lease leaves the slot. */
static void leave(struct check *check, const struct job *job, const struct lease_view *view)
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
        keep(check, true);
    if (prolog_runs) {
        check->is_stale = true;
        helper_kill(check->helper);
    } else if (check->helper == NULL) {
        run_epilog(check);
    }
}

/* Whether the slot is the first of several equal ones in the list; a lease may have shares of one
 * device for several replicas. */
static bool is_first(const struct lease_view *view, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if (view->slots[i] == view->slots[index])
            return false;
    }
    return true;
}

/* Whether another lease is on the slot. */
static bool has_others(const struct pool *pool, const struct lease_view *view, uint32_t slot)
{
    struct slot_view carried;
    uint32_t own = 0;

    for (uint32_t i = 0; i < view->slot_count; i++)
        own += view->slots[i] == slot;
    engine_get_slot(pool->engine, slot, &carried);
    return carried.tenants > own;
}

void checks_end(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    if (job->holder->parent != 0)
        return;
    /* A view is only good until the engine is told something. */
    for (uint32_t i = 0;
         engine_get_lease(pool->engine, job->by_lease.id, &view) && i < view.slot_count; i++) {
        if (is_first(&view, i) && !has_others(pool, &view, view.slots[i]))
            leave(&pool->checks[view.slots[i]], job, &view);
    }
}

/* ---- Prologs ---- */

static bool runs_prolog(const struct check *check)
{
    return check->helper != NULL && check->is_prolog && !check->is_stale;
}

/* What the slots of a lease that nobody was told of need before others get them: those that are all
 * right. */
static void leave_slots(struct pool *pool, const struct job *job)
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
            leave(check, job, &view);
    }
}

/* The claim goes back to its place in the queue. */
static void give_back(struct pool *pool, struct job *job)
{
    int64_t deadline = clock_after(job->since, job->holder->wait);

    leave_slots(pool, job);
    if (engine_return(pool->engine, job->by_lease.id, job->since, deadline, NULL) < 0) {
        job->end = LEASE_END_CANCELLED;
        engine_vacated(pool->engine, job->by_lease.id, NULL);
        return;
    }
    log_line(&pool->log, pool_now(pool), "returned", "id=%" PRIu64, job->by_id.id);
    job_unset_lease(pool, job);
    job->state = JOB_WAITING;
    keep_job(pool, job);
}

/* If nothing of the job is being checked any more, its holder is told, or it waits again. */
static void decide(struct pool *pool, struct job *job)
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
        give_back(pool, job);
    else
        settle_told(pool, job);
}

static void decide_all(struct pool *pool)
{
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (job_is_preparing(job) && job->end == 0)
            decide(pool, job);
    }
}

static void prolog_ended(void *context, const struct helper_end *end)
{
    struct check *check = context;
    struct pool *pool = check->pool;

    check->helper = NULL;
    if (check->is_stale) {
        check->is_stale = false;
        run_epilog(check);
        pool_settle(pool);
        return;
    }
    log_end_of(check, "prolog", end);
    check->is_prepared = helper_succeeded(end);
    check->has_failed = !check->is_prepared;
    if (check->has_failed)
        drain(check, "prolog", end);
    decide_all(pool);
    pool_settle(pool);
}

/* Whether the prolog is to be run for the slot: nobody uses it yet. `again`: after a restart, when
 * it is known of all that are on it. */
static bool needs_prolog(const struct pool *pool, const struct lease_view *view, uint32_t slot,
                         bool again)
{
    const struct check *check = &pool->checks[slot];

    return check->helper == NULL && !check->is_prepared && (again || !has_others(pool, view, slot));
}

static bool prepare(struct pool *pool, struct job *job, bool again)
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
            run(check, command, "prolog", prolog_ended);
        }
        waits = waits || runs_prolog(check) || check->has_failed || pool->lost;
    }
    return waits;
}

bool checks_prepare(struct pool *pool, struct job *job)
{
    if (!prepare(pool, job, false))
        return false;
    /* One that came before the rules had a prolog. */
    if (!job->unprepared) {
        job->unprepared = true;
        keep_job(pool, job);
    }
    return true;
}

bool checks_prepare_again(struct pool *pool, struct job *job)
{
    return prepare(pool, job, true);
}

/* ---- Restoring ---- */

void checks_restore(struct pool *pool, struct kept_epilog *kept)
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

bool checks_kept(const struct pool *pool, uint32_t slot, struct kept_epilog *ret_kept)
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

void checks_forget(struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_slots_max(pool->engine); slot++)
        pool->checks[slot].epilog_due = pool->checks[slot].epilog_kept = false;
}

/* The slots of leases whose holders were told are as they should be. */
static void note_prepared(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    if (job->unprepared || job->holder->parent != 0 ||
        !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    for (uint32_t i = 0; i < view.slot_count; i++)
        pool->checks[view.slots[i]].is_prepared = true;
}

void checks_restored(struct pool *pool)
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
