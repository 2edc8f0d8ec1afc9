/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that open and close requests and claim with them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "promises/run.h"

/* ---- Requests ---- */

static struct run_request *request_place(struct run *run)
{
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        if (run->requests[i].operation == 0)
            return &run->requests[i];
    }
    abort();
}

/* Opens the operation's request. Returns NULL if that fails, expected or not. */
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

    if (asking->parent.operation != 0 && parent == NULL)
        return NULL;
    *opened = (struct run_request){
        .operation = operation->number, .scope = party.parent, .asking = asking};
    plan_ids(run->plan, asking->mask, &mask);
    asking_request(asking, run->plan, operation->number, &request);
    code = engine_request_open(run->engine, &request, &party, NULL, &opened->handle, &error);
    request_finish(&request);
    vector_finish(&mask);
    if (code < 0) {
        if (parent == NULL || code != BERTH_ERROR_NOT_FOUND || parent->state != LEASE_DRAINING)
            run_blame(run, 7, "cannot open a request: %s", error.message);
        *opened = (struct run_request){0};
        return NULL;
    }
    model_make(&run->model, party.parent, asking);
    if (engine_request_claims(opened->handle) != asking_claims(asking))
        run_blame(run, 3, "a request stands for %" PRIu32 " claims, expected %" PRIu32,
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
        return "waiting";
    case BERTH_ERROR_IMPOSSIBLE:
        return "impossible";
    case BERTH_ERROR_NO_DEVICE:
        return "without a device";
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
    run_blame(run, promise, "%s: the claim is %s (%s), expected: %s", call, outcome_name(found),
              message, outcome_name(wanted));
}

/* Returns the expected result of a claim that is made now. */
static int predict(struct run *run, const struct run_request *asker)
{
    struct model_claim claim = {
        .scope = asker->scope, .asking = asker->asking, .arrived = run->model.now};

    return model_predict(&run->model, &claim, &run->expected_size, &run->expected_allowed);
}

/* Returns whether a device is reserved and the request does not accept it. */
static bool is_kept_from(const struct run *run, const struct run_request *asker)
{
    slot_set accepted = model_accepts(&run->model, asker->scope, asker->asking);

    for (unsigned slot = 0; slot < run->plan->planned && asker->scope == 0; slot++) {
        if (run->model.devices[slot].reserved && (accepted >> slot & 1) == 0)
            return true;
    }
    return false;
}

static void check_would_grant(struct run *run, const struct run_request *asker, int wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    size_t events = run->event_count;
    int found = engine_would_grant(run->engine, asker->handle, &error);

    compare_outcome(run, 5, "would_grant", found, wanted, error.message);
    if (run->event_count != events)
        run_blame(run, 5, "would_grant caused an event");
    if (asker->scope == 0 && wanted == CLAIM_GRANTED && engine_is_full(run->engine))
        run_blame(run, 6, "the engine says that it is full, but a claim can be granted");
}

/* Makes one claim, or tries to, and compares the result with the model. */
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
    run->tally->for_others += is_kept_from(run, asker);
    run->told_lease = run->told_claim = 0;
    run->origin = (struct reference){run->operation->number, asker->parts++};
    run->deadline =
        run->operation->known ? run_later(run->model.now, run->operation->amount) : TIME_NEVER;
    run->tally->impossible += wanted == BERTH_ERROR_IMPOSSIBLE;
    run->tally->no_device += wanted == BERTH_ERROR_NO_DEVICE;
    if (compare)
        run_dump(run, run->engine, &was);
    run_hold_back(run);
    if (trying)
        found = engine_try(run->engine, asker->handle, &id, &error);
    else
        found = engine_claim(run->engine, asker->handle, run->deadline, NULL, &id, &error);
    run_let_go(run, EVENT_GRANTED, found == CLAIM_GRANTED ? id : 0);
    compare_outcome(run, trying ? 5 : 4, trying ? "try" : "claim", found, wanted, error.message);
    if (found == CLAIM_GRANTED && id != run->told_lease)
        run_blame(run, 6, "the call returned lease %" PRIu64 ", the event says %" PRIu64, id,
                  run->told_lease);
    if (found == CLAIM_WAITS && !trying && id != run->told_claim)
        run_blame(run, 6, "the call returned claim %" PRIu64 ", the event says %" PRIu64, id,
                  run->told_claim);
    if (found != CLAIM_WAITS && run->told_claim != 0)
        run_blame(run, 6, "claim %" PRIu64 " was queued, but does not wait", run->told_claim);
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
    uint32_t slots[LEASE_SLOTS_MAX];
    int found = engine_pick(run->engine, asker->handle, slots, LEASE_SLOTS_MAX, &error);
    uint32_t replicas =
        (uint32_t)(asker->asking->scheduling == SCHEDULING_BEST_EFFORT ? 1
                                                                       : asker->asking->replicas);

    compare_outcome(run, 12, "pick", found > 0 ? CLAIM_GRANTED : found, wanted, error.message);
    if (found > 0 && (uint32_t)found != replicas * run->expected_size)
        run_blame(run, 12, "pick returned %d slots, expected %" PRIu32, found,
                  replicas * run->expected_size);
    for (int i = 0; i < found && i < LEASE_SLOTS_MAX; i++) {
        if (slots[i] >= SLOTS_MAX || (run->expected_allowed >> slots[i] & 1) == 0)
            run_blame(run, 12, "pick returned slot %" PRIu32 ", which the claim may not use",
                      slots[i]);
    }
    run->tally->picks++;
}

/* Grants the operation's slots directly, and compares the result with the model. */
static void give_once(struct run *run, struct run_request *asker)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int wanted = model_judge_gift(&run->model, asker->scope, asker->asking, run->operation->slots);
    bool could_claim = predict(run, asker) == CLAIM_GRANTED;
    uint32_t slots[SLOTS_MAX];
    size_t count = 0;
    uint64_t lease = 0;
    int found;

    /* The engine must accept any order: highest first. */
    for (uint32_t slot = SLOTS_MAX; slot-- > 0;) {
        if ((run->operation->slots >> slot & 1) != 0)
            slots[count++] = slot;
    }
    run->told_lease = run->told_claim = 0;
    run->origin = (struct reference){run->operation->number, asker->parts++};
    run_hold_back(run);
    found = engine_grant_slots(run->engine, asker->handle, slots, count, &lease, &error);
    run_let_go(run, EVENT_GRANTED, found == 0 ? lease : 0);
    if (found != wanted)
        run_blame(run, wanted == BERTH_ERROR_BUSY ? 1 : 3, "granting slots %#x: %s, expected: %s",
                  run->operation->slots, found < 0 ? error.message : "success",
                  wanted < 0 ? berth_error_describe(wanted) : "success");
    if (found == 0 && lease != run->told_lease)
        run_blame(run, 6, "the call returned lease %" PRIu64 ", the event says %" PRIu64, lease,
                  run->told_lease);
    run->tally->given += found == 0;
    run->tally->given_past += found == 0 && !could_claim;
    run->tally->not_given += found != 0;
}

void run_claims(struct run *run, const struct operation *operation)
{
    struct run_request *asker = open_request(run, operation);
    uint32_t parts = asking_claims(&operation->asking);

    if (asker == NULL)
        return;
    run->asker = asker;
    if (operation->kind == OPERATION_PICK) {
        pick_once(run, asker);
    } else if (operation->kind == OPERATION_GIVE) {
        give_once(run, asker);
    } else {
        for (uint32_t part = 0; part < parts && run->verdict.promise == 0; part++) {
            claim_once(run, asker, operation->kind == OPERATION_TRY);
            run_check_all(run);
        }
    }
    run->asker = NULL;
    if (!operation->keep && asker->handle != NULL)
        run_close(run, asker);
}

/* Returns whether claims can still be made within a lease. */
static bool is_claimable(struct run *run, uint64_t lease)
{
    const struct model_lease *around = model_lease(&run->model, lease);

    return around != NULL && around->state != LEASE_DRAINING;
}

void run_again(struct run *run, const struct operation *operation)
{
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
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
