/* SPDX-License-Identifier: Apache-2.0 */
#include "promises/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/policies.h"

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

int run_create(const struct plan *plan, struct machine *machine, struct engine **ret_engine)
{
    struct engine_settings settings = {
        .time_slice_tenants = plan->time_slice_tenants,
        .mps_tenants = plan->mps_tenants,
        .age_step = plan->age_step,
        .grace = plan->grace,
        .slots_most = SLOTS_MOST,
        .affinity_by_user = plan->affinity_by_user,
    };

    if (plan->policy != NULL)
        policy_find(plan->policy, &settings.policy, NULL);
    return engine_create(machine, &settings, ret_engine, NULL);
}

void run_init(struct run *run, const struct plan *plan, struct tally *tally)
{
    struct machine machine = plan_machine(plan, plan->initial);

    *run = (struct run){.plan = plan, .tally = tally};
    run->sink = (struct event_sink){
        .tell = run_tell, .context = run, .wanted = EVENT_ALL, .waited_only = plan->quiet};
    model_init(&run->model, plan);
    if (run_create(plan, &machine, &run->engine) < 0)
        abort();
    machine_finish(&machine);
    engine_listen(run->engine, &run->sink);
}

void run_finish(struct run *run)
{
    /* Nothing of what closing leads to is looked at any more. */
    run->verdict.promise = -1;
    for (size_t i = 0; i < REQUESTS_MOST; i++) {
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

/* ---- Requests ---- */

static struct run_request *request_place(struct run *run)
{
    for (size_t i = 0; i < REQUESTS_MOST; i++) {
        if (run->requests[i].operation == 0)
            return &run->requests[i];
    }
    abort();
}

/* Opens the request of the operation; NULL when that fails, rightly or not. */
static struct run_request *open_request(struct run *run, const struct operation *operation)
{
    const struct asking *asking = &operation->asking;
    const struct model_lease *parent =
        asking->parent.operation == 0 ? NULL : run_lease(run, asking->parent);
    struct run_request *opened = request_place(run);
    struct device_id_list mask = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct party party = {
        .uid = asking->uid,
        .groups = asking->groups,
        .group_count = asking->group_count,
        .mask = asking->masked ? &mask : NULL,
        .parent = parent == NULL ? 0 : parent->id,
    };
    struct request request;
    int code;

    *opened = (struct run_request){
        .operation = operation->number, .scope = party.parent, .asking = asking};
    plan_ids(run->plan, asking->mask, &mask);
    asking_request(asking, run->plan, operation->number, &request);
    code = engine_request_open(run->engine, &request, &party, NULL, &opened->handle, &error);
    request_finish(&request);
    vector_finish(&mask);
    if (code < 0) {
        if (parent == NULL || code != BERTH_ERROR_NOT_FOUND || parent->state != LEASE_DRAINING)
            run_blame(run, 7, "a request cannot be opened: %s", error.message);
        *opened = (struct run_request){0};
        return NULL;
    }
    if (engine_request_claims(opened->handle) != asking_claims(asking))
        run_blame(run, 3, "a request stands for %" PRIu32 " claims, wanted %" PRIu32,
                  engine_request_claims(opened->handle), asking_claims(asking));
    return opened;
}

static bool is_used(const struct run *run, const struct run_request *request)
{
    for (size_t i = 0; i < run->model.lease_count; i++) {
        if (run->model.leases[i].asking == request->asking)
            return true;
    }
    for (size_t i = 0; i < run->model.claim_count; i++) {
        if (run->model.claims[i].asking == request->asking)
            return true;
    }
    return false;
}

void run_close(struct run *run, struct run_request *request)
{
    struct engine_request *handle = request->handle;

    request->handle = NULL;
    engine_request_close(run->engine, handle);
    if (request->operation != 0 && request->number == 0 && !is_used(run, request))
        *request = (struct run_request){0};
}

/* ---- Claims ---- */

static const char *outcome_name(int outcome)
{
    switch (outcome) {
    case CLAIM_GRANTED:
        return "granted at once";
    case CLAIM_WAITS:
        return "to wait";
    case BERTH_ERROR_IMPOSSIBLE:
        return "impossible";
    case BERTH_ERROR_NO_DEVICE:
        return "without any device";
    default:
        return berth_error_describe(outcome);
    }
}

static void compare_outcome(struct run *run, int promise, const char *call, int found, int wanted,
                            const char *message)
{
    if (found == wanted)
        return;
    if (found == BERTH_ERROR_IMPOSSIBLE || wanted == BERTH_ERROR_IMPOSSIBLE ||
        found == BERTH_ERROR_NO_DEVICE || wanted == BERTH_ERROR_NO_DEVICE)
        promise = 7;
    run_blame(run, promise, "%s says that the claim is %s (%s), wanted: %s", call,
              outcome_name(found), message, outcome_name(wanted));
}

/* What is to become of a claim made now. */
static int predict(struct run *run, const struct run_request *asker)
{
    struct model_claim claim = {
        .scope = asker->scope, .asking = asker->asking, .arrived = run->model.now};

    return model_predict(&run->model, &claim, &run->expected_size, &run->expected_allowed);
}

static void check_would_grant(struct run *run, const struct run_request *asker, int wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    size_t events = run->event_count;
    int found = engine_would_grant(run->engine, asker->handle, &error);

    compare_outcome(run, 5, "would_grant", found, wanted, error.message);
    if (run->event_count != events)
        run_blame(run, 5, "would_grant changed something");
    if (asker->scope == 0 && wanted == CLAIM_GRANTED && engine_is_full(run->engine))
        run_blame(run, 6, "the engine says that it is full, where a claim can be granted");
}

static int64_t later(int64_t now, int64_t by)
{
    return by >= TIME_NEVER - now ? TIME_NEVER : now + by;
}

/* Makes one claim (or tries to) and compares with what the model says. */
static void claim_once(struct run *run, struct run_request *asker, bool trying)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int wanted = predict(run, asker);
    struct text was = {0};
    struct text is = {0};
    bool compare = trying && run->operation->number % 4 == 0;
    uint64_t id = 0;
    int found;

    check_would_grant(run, asker, wanted);
    run->told_lease = run->told_claim = 0;
    run->origin = (struct reference){run->operation->number, asker->parts++};
    run->deadline =
        run->operation->known ? later(run->model.now, run->operation->amount) : TIME_NEVER;
    run->tally->impossible += wanted == BERTH_ERROR_IMPOSSIBLE;
    run->tally->no_device += wanted == BERTH_ERROR_NO_DEVICE;
    if (compare)
        run_dump(run, run->engine, &was);
    run_hold_back(run);
    if (trying)
        found = engine_try(run->engine, asker->handle, &id, &error);
    else
        found = engine_claim(run->engine, asker->handle, run->deadline, NULL, &id, &error);
    run_let_go(run, found == CLAIM_GRANTED ? id : 0);
    compare_outcome(run, trying ? 5 : 4, trying ? "try" : "claim", found, wanted, error.message);
    if (found == CLAIM_GRANTED && id != run->told_lease)
        run_blame(run, 6, "the claim is lease %" PRIu64 ", the event says %" PRIu64, id,
                  run->told_lease);
    if (found == CLAIM_WAITS && !trying && id != run->told_claim)
        run_blame(run, 6, "the claim is %" PRIu64 ", the event says %" PRIu64, id, run->told_claim);
    if (found != CLAIM_WAITS && run->told_claim != 0)
        run_blame(run, 6, "claim %" PRIu64 " was queued though it does not wait", run->told_claim);
    if (compare && found != CLAIM_GRANTED) {
        run_dump(run, run->engine, &is);
        if (was.length != is.length || memcmp(was.bytes, is.bytes, was.length) != 0)
            run_blame(run, 5, "a try that failed changed the state");
    }
    text_finish(&was);
    text_finish(&is);
}

static void pick_once(struct run *run, struct run_request *asker)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int wanted = predict(run, asker);
    uint32_t slots[LEASE_SLOTS_MOST];
    int found = engine_pick(run->engine, asker->handle, slots, LEASE_SLOTS_MOST, &error);
    uint32_t replicas =
        (uint32_t)(asker->asking->scheduling == SCHEDULING_BEST_EFFORT ? 1
                                                                       : asker->asking->replicas);

    compare_outcome(run, 12, "pick", found > 0 ? CLAIM_GRANTED : found, wanted, error.message);
    if (found > 0 && (uint32_t)found != replicas * run->expected_size)
        run_blame(run, 12, "pick gives %d slots, wanted %" PRIu32, found,
                  replicas * run->expected_size);
    for (int i = 0; i < found && i < LEASE_SLOTS_MOST; i++) {
        if (slots[i] >= SLOTS_MOST || (run->expected_allowed >> slots[i] & 1) == 0)
            run_blame(run, 12, "pick gives slot %" PRIu32 ", which is not to be had", slots[i]);
    }
    run->tally->picks++;
}

/* ---- Operations ---- */

static void check_all(struct run *run)
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

static void do_claims(struct run *run, const struct operation *operation)
{
    struct run_request *asker = open_request(run, operation);
    uint32_t parts = asking_claims(&operation->asking);

    if (asker == NULL)
        return;
    run->asker = asker;
    if (operation->kind == OPERATION_PICK) {
        pick_once(run, asker);
    } else {
        for (uint32_t part = 0; part < parts && run->verdict.promise == 0; part++) {
            claim_once(run, asker, operation->kind == OPERATION_TRY);
            check_all(run);
        }
    }
    run->asker = NULL;
    if (!operation->keep && asker->handle != NULL)
        run_close(run, asker);
}

/* Whether claims can still be made within a lease. */
static bool is_claimable(struct run *run, uint64_t lease)
{
    const struct model_lease *around = model_lease(&run->model, lease);

    return around != NULL && around->state != LEASE_DRAINING;
}

static void do_again(struct run *run, const struct operation *operation)
{
    for (size_t i = 0; i < REQUESTS_MOST; i++) {
        struct run_request *request = &run->requests[i];

        if (request->operation != operation->reference.operation || request->handle == NULL)
            continue;
        if (operation->kind == OPERATION_CLOSE) {
            run_close(run, request);
        } else if (request->scope == 0 || is_claimable(run, request->scope)) {
            run->asker = request;
            claim_once(run, request, false);
            run->asker = NULL;
        }
        return;
    }
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
    if (operation->kind == OPERATION_RELEASE) {
        found = engine_release(run->engine, run->target, &error);
        wanted = state == LEASE_DRAINING ? BERTH_ERROR_NOT_FOUND : 0;
    } else if (operation->kind == OPERATION_DRAIN) {
        found = engine_drain_lease(run->engine, run->target, &error);
        wanted = state == LEASE_DRAINING ? BERTH_ERROR_NOT_FOUND : 0;
    } else if (operation->kind == OPERATION_VACATED) {
        found = engine_vacated(run->engine, run->target, &error);
    } else {
        int64_t end = operation->known ? later(run->model.now, operation->amount) : TIME_NEVER;

        found = engine_extend(run->engine, run->target, end, &error);
        wanted = state == LEASE_HELD || state == LEASE_NOTICED ? 0 : found;
        lease = model_lease(&run->model, run->target);
        if (found == 0 && (lease == NULL || lease->expires != end))
            run_blame(run, 4, "lease %" PRIu64 " was not extended to %" PRId64, run->target, end);
        if (found == 0 && state != LEASE_HELD && state != LEASE_NOTICED)
            run_blame(run, 4, "lease %" PRIu64 " was extended, but is over", run->target);
    }
    if (found != wanted)
        run_blame(run, 8, "lease %" PRIu64 ": %s %s, wanted %d", run->target,
                  operation->kind == OPERATION_EXTEND ? "extending says" : "ending says",
                  found < 0 ? error.message : "yes", wanted);
    if (found == 0 && operation->kind != OPERATION_EXTEND &&
        (model_lease(&run->model, run->target) != NULL) != (operation->kind == OPERATION_DRAIN))
        run_blame(run, 8, "lease %" PRIu64 " ended, but the events do not say so", run->target);
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
    run->until = later(run->model.now, operation->amount);
    if (run->until == TIME_NEVER)
        run->until = run->model.now;
    while (operation->known && run->verdict.promise == 0) {
        int64_t next = engine_next_time(run->engine);

        if (model_next_ageing(&run->model) < next)
            next = model_next_ageing(&run->model);
        if (next > run->until)
            break;
        if (next <= run->model.now) {
            run_blame(run, 4, "something is said to be due at %" PRId64 ", but it is %" PRId64,
                      next, run->model.now);
            break;
        }
        engine_advance(run->engine, next);
        run->model.now = next;
        check_all(run);
    }
    if (run->verdict.promise == 0) {
        engine_advance(run->engine, run->until);
        run->model.now = run->until;
        if (engine_now(run->engine) != run->until)
            run_blame(run, 4, "the time is %" PRId64 ", wanted %" PRId64, engine_now(run->engine),
                      run->until);
    }
}

bool run_step(struct run *run, const struct operation *operation)
{
    run->operation = operation;
    run->target = 0;
    run->until = run->model.now;
    run->notice_count = 0;
    run->tally->steps++;
    switch (operation->kind) {
    case OPERATION_CLAIM:
    case OPERATION_TRY:
    case OPERATION_PICK:
        do_claims(run, operation);
        break;
    case OPERATION_AGAIN:
    case OPERATION_CLOSE:
        do_again(run, operation);
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
    case OPERATION_ADVANCE:
        do_advance(run, operation);
        break;
    case OPERATION_RESTORE:
        run_restore(run);
        break;
    default:
        run_machine(run, operation);
        break;
    }
    check_all(run);
    return run->verdict.promise == 0;
}
