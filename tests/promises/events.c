/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that each event of the engine may happen now, and applies it to the model.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/journal/journal.h"
#include "promises/run.h"

struct run_request *run_request_of(struct run *run, uint64_t number)
{
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        if (run->requests[i].operation != 0 && run->requests[i].number == number)
            return &run->requests[i];
    }
    return NULL;
}

static bool is_operation(const struct run *run, enum operation_kind kind)
{
    return run->operation != NULL && run->operation->kind == kind;
}

static bool is_claiming(const struct run *run)
{
    return is_operation(run, OPERATION_CLAIM) || is_operation(run, OPERATION_TRY) ||
           is_operation(run, OPERATION_GIVE) || is_operation(run, OPERATION_AGAIN);
}

/* Returns the lease of an event. Returns NULL and blames the engine if there is none. */
static struct model_lease *lease_of(struct run *run, const struct engine_event *event)
{
    struct model_lease *lease = model_lease(&run->model, event->lease);

    if (lease == NULL)
        run_blame(run, 9, "event %d names lease %" PRIu64 ", which does not exist", event->type,
                  event->lease);
    return lease;
}

static void handle_request(struct run *run, const struct engine_event *event)
{
    static const char lead[] = "operation ";
    unsigned long operation = 0;

    if (event->what != NULL && event->what->name != NULL &&
        strncmp(event->what->name, lead, strlen(lead)) == 0)
        operation = strtoul(event->what->name + strlen(lead), NULL, 10);
    if (operation == 0) {
        run_blame(run, 9, "an event describes a request that no operation made");
        return;
    }
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        if (run->requests[i].operation == operation)
            run->requests[i].number = event->request;
    }
}

static void handle_forgotten(struct run *run, const struct engine_event *event)
{
    struct run_request *request = run_request_of(run, event->request);

    if (request == NULL)
        run_blame(run, 9, "request %" PRIu64 " is forgotten, but does not exist", event->request);
    else if (request->handle == NULL)
        *request = (struct run_request){0};
    else
        request->number = 0;
}

static void handle_queued(struct run *run, const struct engine_event *event)
{
    const struct run_request *request = run_request_of(run, event->request);
    struct model_claim *claim;

    if (!is_claiming(run) || request == NULL || request != run->asker) {
        run_blame(run, 6, "claim %" PRIu64 " was queued, but no operation made it", event->claim);
        return;
    }
    if (event->claim <= run->last_id)
        run_blame(run, 9, "the id of claim %" PRIu64 " is not above %" PRIu64, event->claim,
                  run->last_id);
    if (event->deadline != run->deadline)
        run_blame(run, 6, "claim %" PRIu64 " times out at %" PRId64 ", expected %" PRId64,
                  event->claim, event->deadline, run->deadline);
    run->last_id = event->claim;
    run->told_claim = event->claim;
    run->tally->waits++;
    claim = &run->model.claims[run->model.claim_count++];
    *claim = (struct model_claim){
        .id = event->claim,
        .scope = request->scope,
        .asking = request->asking,
        .origin = run->origin,
        .arrived = event->time,
        .deadline = event->deadline,
    };
}

static void add_lease(struct run *run, const struct model_claim *claim,
                      const struct engine_event *event)
{
    struct model_lease *lease = &run->model.leases[run->model.lease_count++];

    *lease = (struct model_lease){
        .id = event->lease,
        .claim = claim->id,
        .scope = claim->scope,
        .asking = claim->asking,
        .origin = claim->origin,
        .arrived = claim->arrived,
        .slot_count = event->slot_count,
        .granted = event->time,
        .expires = event->expires,
        .force_at = TIME_NEVER,
    };
    memcpy(lease->slots, event->slots, event->slot_count * sizeof(*event->slots));
    run->last_id = event->lease;
    run->granted_since = run->notice_count > 0;
    run->tally->granted++;
    run->tally->granted_later += claim->id != 0;
    run->tally->within += claim->scope != 0;
}

/* Clears the promised starts of later claims, because this grant may move them. */
static void excuse_after(struct model *model, const struct model_claim *granted)
{
    for (size_t i = 0; i < model->claim_count; i++) {
        struct model_claim *other = &model->claims[i];

        if (other->scope == granted->scope && model_before(model, granted, other))
            other->promised = false;
    }
}

static void handle_granted(struct run *run, const struct engine_event *event)
{
    const struct run_request *request = run_request_of(run, event->request);
    struct model_claim *waiting = model_claim(&run->model, event->claim);
    struct model_claim claim;

    if (request == NULL || event->waited != (waiting != NULL) ||
        (waiting == NULL && event->claim != 0) ||
        (waiting == NULL && (!is_claiming(run) || request != run->asker))) {
        run_blame(run, 6,
                  "claim %" PRIu64 " was granted as lease %" PRIu64 ", but no operation made it",
                  event->claim, event->lease);
        return;
    }
    if (waiting != NULL)
        claim = *waiting;
    else
        claim = (struct model_claim){
            .scope = request->scope,
            .asking = request->asking,
            .origin = run->origin,
            .arrived = event->time,
        };
    if (is_operation(run, OPERATION_TRY) && waiting != NULL && run->told_lease == 0)
        run_blame(run, 5, "a try granted waiting claim %" PRIu64, claim.id);
    if (waiting == NULL && is_operation(run, OPERATION_GIVE))
        check_gift(run, &claim, event);
    else
        check_grant(run, &claim, event);
    if (run->verdict.promise != 0)
        return;
    excuse_after(&run->model, &claim);
    if (waiting == NULL)
        run->told_lease = event->lease;
    else
        model_remove_claim(&run->model, claim.id);
    add_lease(run, &claim, event);
}

/* Returns whether the operation named this lease or one around it. */
static bool is_target(struct run *run, const struct model_lease *lease)
{
    return run->target != 0 && model_is_within(&run->model, lease, run->target);
}

static bool is_refusal_right(struct run *run, const struct model_claim *claim, enum refusal reason,
                             int64_t time)
{
    const struct model_lease *around = model_lease(&run->model, claim->scope);

    switch (reason) {
    case REFUSAL_CANCELLED:
        return is_operation(run, OPERATION_CANCEL) && run->target == claim->id;
    case REFUSAL_TIMED_OUT:
        return claim->deadline == time;
    case REFUSAL_IMPOSSIBLE:
        return model_impossible(&run->model, claim->scope, claim->asking);
    case REFUSAL_PARENT_ENDED:
        return claim->scope != 0 && (around == NULL || is_target(run, around));
    }
    return false;
}

static void handle_refused(struct run *run, const struct engine_event *event)
{
    const struct model_claim *claim = model_claim(&run->model, event->claim);

    if (claim == NULL) {
        run_blame(run, 6, "claim %" PRIu64 " was refused, but did not wait", event->claim);
        return;
    }
    if (!is_refusal_right(run, claim, event->reason, event->time))
        run_blame(run, event->reason == REFUSAL_IMPOSSIBLE ? 7 : 6,
                  "claim %" PRIu64 " was refused for reason %d at %" PRId64
                  ", which does not apply",
                  claim->id, event->reason, event->time);
    run->tally->refused++;
    run->tally->timed_out += event->reason == REFUSAL_TIMED_OUT;
    model_remove_claim(&run->model, event->claim);
}

static int64_t grace_of(const struct run *run)
{
    return run->model.rules.grace == 0 ? INT64_C(10000000000) : run->model.rules.grace;
}

static void handle_notice(struct run *run, const struct engine_event *event)
{
    struct model_lease *lease = lease_of(run, event);

    if (lease == NULL)
        return;
    if (!lease->asking->opportunistic || lease->state != LEASE_HELD)
        run_blame(run, 10, "lease %" PRIu64 " was given notice, but is %s", lease->id,
                  lease->asking->opportunistic ? "not in state held" : "not opportunistic");
    if (event->expires != event->time + grace_of(run))
        run_blame(run, 10,
                  "lease %" PRIu64 " was given notice until %" PRId64 ", expected %" PRId64
                  " plus the grace",
                  lease->id, event->expires, event->time);
    if (is_operation(run, OPERATION_TRY) && run->told_lease == 0)
        run_blame(run, 5, "a try gave lease %" PRIu64 " notice", lease->id);
    lease->state = LEASE_NOTICED;
    lease->force_at = event->expires;
    run->notices[run->notice_count++] = lease->id;
    run->tally->notices++;
}

static void handle_revoked(struct run *run, const struct engine_event *event)
{
    struct model_lease *lease = lease_of(run, event);

    if (lease == NULL)
        return;
    if (lease->state != LEASE_NOTICED || lease->force_at != event->time)
        run_blame(run, 10,
                  "lease %" PRIu64 " was revoked at %" PRId64 ", but its grace ends at %" PRId64,
                  lease->id, event->time, lease->force_at);
    lease->state = LEASE_REVOKED;
    run->tally->revoked++;
}

static void handle_expired(struct run *run, const struct engine_event *event)
{
    struct model_lease *lease = lease_of(run, event);

    if (lease == NULL)
        return;
    if (lease->state == LEASE_EXPIRED || lease->state == LEASE_DRAINING ||
        lease->expires != event->time)
        run_blame(run, 4, "lease %" PRIu64 " expired at %" PRId64 ", but its limit is %" PRId64,
                  lease->id, event->time, lease->expires);
    lease->state = LEASE_EXPIRED;
    run->tally->expired++;
}

static void handle_ended(struct run *run, const struct engine_event *event)
{
    struct model_lease *lease = lease_of(run, event);
    bool draining = event->type == EVENT_DRAINING;

    if (lease == NULL)
        return;
    if (!is_target(run, lease) ||
        (lease->id == run->target && draining != is_operation(run, OPERATION_DRAIN)))
        run_blame(run, 8, "lease %" PRIu64 " %s, but no operation ended it", lease->id,
                  draining ? "is draining" : "is gone");
    if (draining)
        lease->state = LEASE_DRAINING;
    else
        model_remove_lease(&run->model, lease->id);
}

static void handle_extended(struct run *run, const struct engine_event *event)
{
    struct model_lease *lease = lease_of(run, event);

    if (lease == NULL)
        return;
    if (!is_operation(run, OPERATION_EXTEND) || run->target != lease->id)
        run_blame(run, 4, "lease %" PRIu64 " was extended, but no operation did so", lease->id);
    lease->expires = event->expires;
}

static void handle_returned(struct run *run, const struct engine_event *event)
{
    const struct model_lease *lease = lease_of(run, event);
    const struct run_request *request = run_request_of(run, event->request);
    struct model_claim claim;

    if (lease == NULL)
        return;
    claim = (struct model_claim){
        .id = lease->claim != 0 ? lease->claim : lease->id,
        .scope = lease->scope,
        .asking = lease->asking,
        .origin = lease->origin,
        .arrived = lease->arrived,
        .deadline = run->deadline,
    };
    if (!is_operation(run, OPERATION_RETURN) || run->target != lease->id ||
        lease->state == LEASE_DRAINING)
        run_blame(run, 8, "lease %" PRIu64 " was returned, but no operation did so", lease->id);
    if (event->claim != claim.id || event->time != claim.arrived ||
        event->deadline != claim.deadline || request == NULL || request->asking != claim.asking)
        run_blame(run, 6,
                  "lease %" PRIu64 " is returned as claim %" PRIu64 ", arrived %" PRId64
                  ", expected claim %" PRIu64 ", arrived %" PRId64,
                  lease->id, event->claim, event->time, claim.id, claim.arrived);
    model_remove_lease(&run->model, lease->id);
    model_add_claim(&run->model, &claim);
}

static void handle_device(struct run *run, const struct engine_event *event)
{
    const struct model_device *device = &run->model.devices[event->slot];

    if (event->slot >= run->plan->planned || event->present != device->present ||
        event->blocks != device->blocks || event->health != (uint8_t)device->health)
        run_blame(run, 9,
                  "the event about slot %" PRIu32 " has present %d, blocks %" PRIu32
                  ", health %d, which is wrong",
                  event->slot, event->present, event->blocks, event->health);
}

static void check_time(struct run *run, const struct engine_event *event)
{
    if (event->type == EVENT_RETURNED)
        return; /* its time is the arrival of the claim */
    if (event->time < run->model.now || event->time > run->until)
        run_blame(run, 9, "event %d has time %" PRId64 ", expected %" PRId64 " to %" PRId64,
                  event->type, event->time, run->model.now, run->until);
    else
        run->model.now = event->time;
}

static void handle_event(struct run *run, const struct engine_event *event)
{
    static void (*const handlers[])(struct run *, const struct engine_event *) = {
        [EVENT_REQUEST] = handle_request,   [EVENT_FORGOTTEN] = handle_forgotten,
        [EVENT_QUEUED] = handle_queued,     [EVENT_GRANTED] = handle_granted,
        [EVENT_REFUSED] = handle_refused,   [EVENT_NOTICE] = handle_notice,
        [EVENT_REVOKED] = handle_revoked,   [EVENT_EXPIRED] = handle_expired,
        [EVENT_DRAINING] = handle_ended,    [EVENT_RELEASED] = handle_ended,
        [EVENT_EXTENDED] = handle_extended, [EVENT_DEVICE] = handle_device,
        [EVENT_RETURNED] = handle_returned, [EVENT_TYPES] = NULL,
    };

    run_log(run, event);
    if (run->verdict.promise != 0)
        return;
    check_time(run, event);
    if (run->verdict.promise == 0 && event->type < EVENT_TYPES && handlers[event->type] != NULL)
        handlers[event->type](run, event);
}

void run_tell(void *context, const struct engine_event *event)
{
    struct run *run = context;

    if (!run->holding_back)
        handle_event(run, event);
    else if (journal_encode(event, &run->held_back) < 0)
        run_blame(run, 9, "cannot encode event %d", event->type);
}

void run_hold_back(struct run *run)
{
    text_clear(&run->held_back);
    run->holding_back = run->plan->quiet;
}

/* ---- The events that a quiet run does not receive ---- */

static void make_up_release(struct run *run, uint64_t lease)
{
    handle_event(run, &(struct engine_event){
                          .type = EVENT_RELEASED, .time = run->model.now, .lease = lease});
}

static void make_up_grant(struct run *run, uint64_t lease)
{
    struct lease_view view;

    if (!engine_get_lease(run->engine, lease, &view)) {
        run_blame(run, 6, "lease %" PRIu64 " was granted, but does not exist", lease);
        return;
    }
    handle_event(run, &(struct engine_event){
                          .type = EVENT_GRANTED,
                          .time = run->model.now,
                          .lease = lease,
                          .request = run->asker->number,
                          .slots = view.slots,
                          .slot_count = view.slot_count,
                          .replicas = view.replicas,
                          .expires = view.expires,
                      });
}

void run_let_go(struct run *run, enum event_type untold, uint64_t lease)
{
    size_t at = 0;

    if (!run->holding_back)
        return;
    run->holding_back = false;
    if (lease != 0 && untold == EVENT_GRANTED)
        make_up_grant(run, lease);
    else if (lease != 0)
        make_up_release(run, lease);
    while (at < run->held_back.length) {
        struct journal_record record = {0};
        size_t used = 0;

        if (journal_decode(run->held_back.bytes + at, run->held_back.length - at, &record, &used,
                           NULL) != JOURNAL_COMPLETE) {
            run_blame(run, 9, "cannot decode an event");
            return;
        }
        handle_event(run, &record.event);
        journal_record_finish(&record);
        at += used;
    }
}
