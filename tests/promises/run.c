/* SPDX-License-Identifier: Apache-2.0 */
#include "promises/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/policy/policies.h"

void run_blame(struct run *run, int promise, const char *format, ...)
{
    va_list arguments;

    if (run->verdict.promise != 0)
        return;
    run->verdict.promise = promise;
    run->verdict.operation = run->operation == NULL ? 0 : run->operation->number;
    va_start(arguments, format);
    vsnprintf(run->verdict.message, sizeof(run->verdict.message), format, arguments);
    va_end(arguments);
}

struct engine_settings run_settings(const struct plan *plan, const struct rules_plan *rules)
{
    struct engine_settings settings = {
        .time_slice_tenants = rules->time_slice_tenants,
        .mps_tenants = rules->mps_tenants,
        .age_step = rules->age_step,
        .grace = rules->grace,
        .slots_max = SLOTS_MAX,
        .affinity_by_user = plan->affinity_by_user,
    };

    if (rules->policy != NULL)
        policy_find(rules->policy, &settings.policy, NULL);
    return settings;
}

int run_create(const struct plan *plan, const struct rules_plan *rules, struct machine *machine,
               struct engine **ret_engine)
{
    struct engine_settings settings = run_settings(plan, rules);

    return engine_create(machine, &settings, ret_engine, NULL);
}

void run_init(struct run *run, const struct plan *plan, struct tally *tally)
{
    struct machine machine = plan_machine(plan, plan->initial);

    *run = (struct run){.plan = plan, .tally = tally};
    run->sink = (struct event_sink){
        .notify = run_tell, .context = run, .wanted = EVENT_ALL, .waited_only = plan->quiet};
    model_init(&run->model, plan);
    if (run_create(plan, &plan->rules, &machine, &run->engine) < 0)
        abort();
    machine_finish(&machine);
    engine_set_sink(run->engine, &run->sink);
}

void run_finish(struct run *run)
{
    /* Makes the run ignore the events of closing. */
    run->verdict.promise = -1;
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        if (run->requests[i].handle != NULL)
            engine_request_close(run->engine, run->requests[i].handle);
    }
    engine_destroy(run->engine);
    text_finish(&run->journal);
    text_finish(&run->held_back);
}

struct model_lease *run_lease(struct run *run, struct reference reference)
{
    for (size_t i = 0; i < run->model.lease_count; i++) {
        struct model_lease *lease = &run->model.leases[i];

        if (lease->origin.operation == reference.operation && lease->origin.part == reference.part)
            return lease;
    }
    return NULL;
}

struct model_claim *run_claim(struct run *run, struct reference reference)
{
    for (size_t i = 0; i < run->model.claim_count; i++) {
        struct model_claim *claim = &run->model.claims[i];

        if (claim->origin.operation == reference.operation && claim->origin.part == reference.part)
            return claim;
    }
    return NULL;
}

/* ---- Operations ---- */

void run_check_all(struct run *run)
{
    if (run->verdict.promise == 0)
        check_devices(run);
    if (run->verdict.promise == 0)
        check_due(run);
    if (run->verdict.promise == 0)
        check_views(run);
    if (run->verdict.promise == 0)
        check_impossible(run);
    if (run->verdict.promise == 0)
        check_queue(run);
    if (run->verdict.promise == 0)
        check_giving_way(run);
    run->notice_count = 0;
    run->granted_since = false;
}

/* Returns whether there are leases or claims within a lease. */
static bool is_inhabited(const struct run *run, uint64_t lease)
{
    for (size_t i = 0; i < run->model.lease_count; i++) {
        if (run->model.leases[i].scope == lease)
            return true;
    }
    for (size_t i = 0; i < run->model.claim_count; i++) {
        if (run->model.claims[i].scope == lease)
            return true;
    }
    return false;
}

/* Ends a lease. In a quiet run the engine does not report it, unless others end with the lease. */
static int end_lease(struct run *run, struct berth_error *error)
{
    bool quiet = run->plan->quiet && !is_inhabited(run, run->target);
    struct event_sink sink = run->sink;
    int code;

    if (quiet) {
        sink.wanted &= ~EVENT_BIT(EVENT_RELEASED);
        engine_set_sink(run->engine, &sink);
        run_hold_back(run);
    }
    code = run->operation->kind == OPERATION_RELEASE
               ? engine_release(run->engine, run->target, error)
               : engine_vacated(run->engine, run->target, error);
    if (quiet) {
        engine_set_sink(run->engine, &run->sink);
        run_let_go(run, EVENT_RELEASED, code == 0 ? run->target : 0);
    }
    return code;
}

static void do_lease(struct run *run, const struct operation *operation)
{
    const struct model_lease *lease = run_lease(run, operation->reference);
    struct berth_error error = BERTH_ERROR_INIT;
    enum lease_state state;
    int wanted = 0;
    int found = 0;

    if (lease == NULL)
        return;
    state = lease->state;
    run->target = lease->id;
    if (operation->kind != OPERATION_VACATED && state == LEASE_DRAINING)
        wanted = BERTH_ERROR_NOT_FOUND;
    if (operation->kind == OPERATION_RELEASE || operation->kind == OPERATION_VACATED) {
        found = end_lease(run, &error);
    } else if (operation->kind == OPERATION_DRAIN) {
        found = engine_drain_lease(run->engine, run->target, &error);
    } else {
        int64_t end = operation->known ? run_later(run->model.now, operation->amount) : TIME_NEVER;

        found = engine_extend(run->engine, run->target, end, &error);
        wanted = state == LEASE_HELD || state == LEASE_NOTICED ? 0 : found;
        lease = model_lease(&run->model, run->target);
        if (found == 0 && (lease == NULL || lease->expires != end))
            run_blame(run, 4, "lease %" PRIu64 " was not extended to %" PRId64, run->target, end);
        if (found == 0 && state != LEASE_HELD && state != LEASE_NOTICED)
            run_blame(run, 4, "lease %" PRIu64 " was extended, but is over", run->target);
    }
    if (found != wanted)
        run_blame(run, 8, "lease %" PRIu64 ": result of %s: %s, expected code %d", run->target,
                  operation->kind == OPERATION_EXTEND ? "extending it" : "ending it",
                  found < 0 ? error.message : "success", wanted);
    if (found == 0 && operation->kind != OPERATION_EXTEND &&
        (model_lease(&run->model, run->target) != NULL) != (operation->kind == OPERATION_DRAIN))
        run_blame(run, 8, "lease %" PRIu64 " ended, but the events do not say so", run->target);
}

/* Withdraws a grant before its holder is told. If `what` is set, its first device is drained
 * before.
 */
static void do_return(struct run *run, const struct operation *operation)
{
    const struct model_lease *lease = run_lease(run, operation->reference);
    struct berth_error error = BERTH_ERROR_INIT;
    bool draining;
    uint64_t claim;
    int code;

    if (lease == NULL)
        return;
    draining = lease->state == LEASE_DRAINING;
    run->target = lease->id;
    claim = lease->claim != 0 ? lease->claim : lease->id;
    run->deadline = operation->known ? run_later(run->model.now, operation->amount) : TIME_NEVER;
    if (operation->what != 0) {
        uint32_t slot = lease->slots[0];

        run->model.devices[slot].blocks |= BLOCK_DRAINED;
        engine_block(run->engine, slot, BLOCK_DRAINED);
        run_check_all(run);
    }
    code = engine_return(run->engine, run->target, lease->arrived, run->deadline, &error);
    if (code != (draining ? BERTH_ERROR_NOT_FOUND : 0))
        run_blame(run, 8, "returning lease %" PRIu64 ": %s", run->target,
                  code < 0 ? error.message : "success");
    if (code == 0 && model_lease(&run->model, run->target) != NULL)
        run_blame(run, 8, "lease %" PRIu64 " was returned, but still exists", run->target);
    run->tally->returned += code == 0;
    run->tally->returned_to_wait += code == 0 && model_claim(&run->model, claim) != NULL;
}

static void do_cancel(struct run *run, const struct operation *operation)
{
    const struct model_claim *claim = run_claim(run, operation->reference);
    struct berth_error error = BERTH_ERROR_INIT;

    if (claim == NULL)
        return;
    run->target = claim->id;
    if (engine_cancel(run->engine, run->target, &error) < 0)
        run_blame(run, 6, "claim %" PRIu64 " cannot be cancelled: %s", run->target, error.message);
    if (model_claim(&run->model, run->target) != NULL)
        run_blame(run, 6, "cancelled claim %" PRIu64 " still waits", run->target);
}

static void do_advance(struct run *run, const struct operation *operation)
{
    run->until = run_later(run->model.now, operation->amount);
    if (run->until == TIME_NEVER)
        run->until = run->model.now;
    while (operation->known != run->other_steps && run->verdict.promise == 0) {
        int64_t next = engine_next_time(run->engine);

        if (model_next_ageing(&run->model) < next)
            next = model_next_ageing(&run->model);
        if (next > run->until)
            break;
        if (next <= run->model.now) {
            run_blame(run, 4, "the next event is due at %" PRId64 ", but it is already %" PRId64,
                      next, run->model.now);
            break;
        }
        engine_advance(run->engine, next);
        run->model.now = next;
        run_check_all(run);
    }
    if (run->verdict.promise == 0) {
        engine_advance(run->engine, run->until);
        run->model.now = run->until;
        if (engine_now(run->engine) != run->until)
            run_blame(run, 4, "the time is %" PRId64 ", expected %" PRId64, engine_now(run->engine),
                      run->until);
    }
}

/* Returns whether the operation may move reservations. Claims, cancellations, ends of leases,
 * restarts and the time must not move them. */
static bool is_excuse(const struct operation *operation)
{
    switch (operation->kind) {
    case OPERATION_CLAIM:
    case OPERATION_TRY:
    case OPERATION_PICK:
    case OPERATION_AGAIN:
    case OPERATION_CLOSE:
    case OPERATION_CANCEL:
    case OPERATION_RELEASE:
    case OPERATION_DRAIN:
    case OPERATION_VACATED:
    case OPERATION_ADVANCE:
    case OPERATION_RESTORE:
        return false;
    default:
        return true;
    }
}

bool run_step(struct run *run, const struct operation *operation)
{
    run->operation = operation;
    run->target = 0;
    run->until = run->model.now;
    run->notice_count = 0;
    run->tally->steps++;
    if (is_excuse(operation))
        model_excuse(&run->model, SCOPE_ALL);
    switch (operation->kind) {
    case OPERATION_CLAIM:
    case OPERATION_TRY:
    case OPERATION_GIVE:
    case OPERATION_PICK:
        run_claims(run, operation);
        break;
    case OPERATION_AGAIN:
    case OPERATION_CLOSE:
        run_again(run, operation);
        break;
    case OPERATION_CANCEL:
        do_cancel(run, operation);
        break;
    case OPERATION_RELEASE:
    case OPERATION_DRAIN:
    case OPERATION_VACATED:
    case OPERATION_EXTEND:
        do_lease(run, operation);
        break;
    case OPERATION_RETURN:
        do_return(run, operation);
        break;
    case OPERATION_ADVANCE:
        do_advance(run, operation);
        break;
    case OPERATION_RESTORE:
        run_restore(run, operation->known);
        break;
    default:
        run_machine(run, operation);
        break;
    }
    run_check_all(run);
    return run->verdict.promise == 0;
}
