/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains why a claim waits or is impossible, and shows reservations.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "engine/internal.h"
#include "engine/placement/filter.h"
#include "engine/placement/placement_describe.h"

/* Appends a number of devices, whole or in part: "2", "0.5". */
static void describe_amount(uint64_t millionths, struct text *out)
{
    char digits[16];
    int length;

    text_append_format(out, "%llu", (unsigned long long)(millionths / SHARE_WHOLE));
    if (millionths % SHARE_WHOLE == 0)
        return;
    length = snprintf(digits, sizeof(digits), ".%06u", (unsigned)(millionths % SHARE_WHOLE));
    while (length > 0 && digits[length - 1] == '0')
        digits[--length] = '\0';
    text_append(out, digits);
}

/* Returns the smallest amount that a lease of the request counts towards limits, in millionths of
 * devices. */
static uint64_t amount_needed(const struct engine_request *request)
{
    return (uint64_t)request->share * request->replicas * request->min;
}

/* Returns the first limit that holds the request now or, with `when_idle`, even in an idle pool;
 * NULL: none (FAIRNESS.md sections 1 and 12). */
static const struct account *limit_below(const struct engine_request *request, bool when_idle)
{
    for (size_t i = 0; i < request->account_count; i++) {
        const struct account *account = request->accounts[i];
        uint64_t used = when_idle ? 0 : account->used;

        if (used > account->max || account->max - used < amount_needed(request))
            return account;
    }
    return NULL;
}

static void describe_limit(const struct account *account, bool with_use, struct text *out)
{
    text_append_format(out, "%s %u ", account->is_group ? "group" : "user", account->key);
    if (with_use) {
        text_append(out, "holds ");
        describe_amount(account->used, out);
        text_append(out, " of at most ");
    } else {
        text_append(out, "may hold at most ");
    }
    describe_amount(account->max, out);
    text_append(out, account->max == SHARE_WHOLE ? " device" : " devices");
}

static enum filter_verdict verdict_of_block(uint32_t blocks)
{
    static const struct {
        enum block block;
        enum filter_verdict verdict;
    } rows[] = {
        {BLOCK_DRAINED, FILTER_DRAINED},   {BLOCK_ELSEWHERE, FILTER_ELSEWHERE},
        {BLOCK_SQUATTED, FILTER_SQUATTED}, {BLOCK_DIRTY, FILTER_DIRTY},
        {BLOCK_ASLEEP, FILTER_ASLEEP},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((blocks & (uint32_t)rows[i].block) != 0)
            return rows[i].verdict;
    }
    return FILTER_PASSES;
}

/* Returns the first reason why the request cannot use a slot now. */
static enum filter_verdict verdict_now(const struct engine_request *request, uint32_t slot,
                                       const struct bitset *allowed)
{
    const struct scope *scope = request->scope;
    const struct engine *engine = scope->engine;
    const struct device *device = &engine->machine.devices.items[slot];
    enum filter_verdict verdict = engine_request_verdict(request, slot);

    if (verdict != FILTER_PASSES)
        return verdict;
    if (scope->parent == NULL && engine->status[slot].blocks != 0)
        return verdict_of_block(engine->status[slot].blocks);
    if (device->health == HEALTH_SICK)
        return FILTER_SICK;
    if (!filter_has_free(&request->what, device))
        return FILTER_LOW_ON_MEMORY;
    verdict = ledger_verdict(request, slot, &scope->ledger[slot].usage);
    if (verdict != FILTER_PASSES)
        return verdict;
    return bitset_has(allowed, slot) ? FILTER_PASSES : FILTER_KEPT;
}

/* The devices that one user holds alone, among those that a request waits for. */
struct explain_holding {
    uint32_t uid;
    size_t devices;
    int64_t until; /* the latest time limit; TIME_NEVER: a lease has none */
};

struct explain_holdings {
    VECTOR_OF(struct explain_holding);
};

/* Returns the user's entry, a new one if there is none yet; NULL: no memory. */
static struct explain_holding *find_holding(struct explain_holdings *holdings, uint32_t uid)
{
    struct explain_holding *holding;

    vector_for_each (holding, holdings) {
        if (holding->uid == uid)
            return holding;
    }
    holding = vector_append(holdings);
    if (holding != NULL)
        holding->uid = uid;
    return holding;
}

/* Counts a busy slot for the user that holds it alone. Returns whether there is one. */
static bool count_holder(const struct scope *scope, uint32_t slot,
                         struct explain_holdings *holdings)
{
    const struct ledger_slot *ledger = &scope->ledger[slot];
    const struct lease *held = engine_find_lease(scope->engine, engine_slot_holder(ledger));
    struct explain_holding *holding;

    if (held == NULL || ledger->usage.brief.sharing != SHARING_EXCLUSIVE)
        return false;
    holding = find_holding(holdings, held->request->uid);
    if (holding == NULL)
        return false;
    holding->devices++;
    if (held->expires > holding->until)
        holding->until = held->expires;
    return true;
}

static int compare_holdings(const void *one, const void *other)
{
    const struct explain_holding *left = one;
    const struct explain_holding *right = other;

    if (left->devices != right->devices)
        return left->devices > right->devices ? -1 : 1;
    return left->uid < right->uid ? -1 : left->uid > right->uid;
}

/* Appends the users that hold the most devices: "user 5 holds 4 until 2026-01-02T03:04Z, user 6
 * holds 1". */
static void describe_holders(const struct explain_holdings *holdings, int64_t now, struct text *out)
{
    enum { NAMED_MAX = 3, TIME_LENGTH = sizeof("2026-01-02T03:04") - 1 };
    size_t others = 0;

    for (size_t i = 0; i < holdings->count; i++) {
        const struct explain_holding *holding = &holdings->items[i];

        if (i >= NAMED_MAX) {
            others += holding->devices;
            continue;
        }
        text_append_format(out, "%suser %u holds %zu", i > 0 ? ", " : "", holding->uid,
                           holding->devices);
        if (holding->until != TIME_NEVER && holding->until - now >= DURATION_SECOND)
            text_append_format(out, " until %.*sZ", TIME_LENGTH,
                               quantity_format_time(holding->until).text);
    }
    if (others > 0)
        text_append_format(out, ", other users hold %zu", others);
}

/* Appends what the request needs and the reasons against it. */
static void describe_obstacles(const struct engine_request *request, const struct bitset *allowed,
                               const struct bitset *possible, struct text *out)
{
    struct engine *engine = request->engine;
    size_t counts[FILTER_VERDICTS] = {0};
    struct bitset nothing = {0};
    struct explain_holdings holdings = {0};
    struct text holders = {0};
    struct placement_obstacles obstacles = {
        .machine = &engine->machine,
        .request = &request->what,
        .min = request->min,
        .must = &nothing,
        .counts = counts,
        .possible = possible,
        .available = &engine->from,
        .room = engine->room,
    };

    bitset_clear(&engine->from);
    for (uint32_t slot = 0; slot < engine->machine.devices.count; slot++) {
        enum filter_verdict verdict = verdict_now(request, slot, allowed);

        if (verdict != FILTER_BUSY || !count_holder(request->scope, slot, &holdings))
            counts[verdict]++;
        if (verdict == FILTER_PASSES)
            bitset_add(&engine->from, slot);
        engine->room[slot] = ledger_room(request, slot, &request->scope->ledger[slot].usage);
        if (!request->could_ever)
            engine->room[slot] = ledger_tenants(request, slot);
    }
    if (holdings.count > 1)
        qsort(holdings.items, holdings.count, sizeof(*holdings.items), compare_holdings);
    describe_holders(&holdings, engine->now, &holders);
    obstacles.holders = text_string(&holders);
    placement_describe_obstacles(&obstacles, request->could_ever, out);
    out->failed |= holders.failed;
    text_finish(&holders);
    vector_finish(&holdings);
}

int explain_never(struct engine_request *request, struct berth_error *error)
{
    const struct account *account = limit_below(request, true);
    struct text why = {0};
    int code = BERTH_ERROR_IMPOSSIBLE;

    if (request->max == 0 && request->what.gpus.max == 0 && !request->what.gpus.all) {
        text_append(&why, "requested 0 devices, but a claim needs at least 1");
    } else if (request->could_ever && account != NULL) {
        text_append(&why, "requested ");
        request_describe(&request->what, &why);
        text_append(&why, ", but ");
        describe_limit(account, false, &why);
    } else {
        describe_obstacles(request, &request->accepts, &request->accepts, &why);
    }
    code = text_failed(&why) ? error_set_memory(error)
                             : error_set(error, code, "%s", text_string(&why));
    text_finish(&why);
    return code;
}

/* Walks through the claims before this one, and adds the blocked ones to the walk. Returns the
 * number of claims, or an error. */
static int64_t block_claims_before(const struct claim *claim)
{
    struct scope *scope = claim->request->scope;
    struct blocked_claims *walk = &scope->engine->walk;
    const struct engine_request *last = NULL;
    int64_t before = 0;
    const struct claim *other;

    blocked_reset(walk);
    lanes_rewind(scope);
    while ((other = lanes_next(scope)) != NULL && other != claim) {
        size_t max;

        before++;
        if (other->request == last || list_first(&other->request->waiting) != &other->in_lane ||
            ledger_is_limited(other->request, &max))
            continue;
        last = other->request;
        if (blocked_add(walk, other->request) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return before;
}

int engine_explain(struct engine *engine, uint64_t claim_id, struct text *ret_why,
                   int64_t *ret_start, struct berth_error *error)
{
    struct claim *claim = engine_find_claim(engine, claim_id);
    const struct account *account;
    int64_t start = TIME_NEVER;
    int64_t before;

    if (claim == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "no claim %llu is waiting",
                         (unsigned long long)claim_id);
    if (forecast_start(claim, &start) < 0)
        return error_set_memory(error);
    before = block_claims_before(claim);
    if (before < 0)
        return error_set_memory(error);
    account = limit_below(claim->request, false);
    if (account != NULL) {
        text_append(ret_why, "needs ");
        describe_amount(amount_needed(claim->request), ret_why);
        text_append(ret_why, ", but ");
        describe_limit(account, true, ret_why);
    } else {
        bitset_fill(&engine->legal);
        if (blocked_bar_slots(&engine->walk, claim->request, &engine->legal) < 0)
            return error_set_memory(error);
        describe_obstacles(claim->request, &engine->legal, &claim->request->accepts, ret_why);
        if (before > 0)
            text_append_format(ret_why, "; %lld %s before it", (long long)before,
                               before == 1 ? "claim is" : "claims are");
    }
    if (text_failed(ret_why))
        return error_set_memory(error);
    *ret_start = start;
    return 0;
}

bool engine_reservation(struct engine *engine, uint64_t claim_id, struct bitset *ret_slots,
                        int64_t *ret_start)
{
    struct claim *claim = engine_find_claim(engine, claim_id);
    const struct engine_request *request;
    struct blocked_claims *walk = &engine->walk;
    size_t max;

    if (claim == NULL || claim->request->what.opportunistic || block_claims_before(claim) < 0)
        return false;
    request = claim->request;
    if (list_first(&request->waiting) != &claim->in_lane || ledger_is_limited(request, &max) ||
        bitset_intersects(&walk->closed, &request->accepts))
        return false;
    for (size_t i = 0; i < walk->count; i++) {
        if (!walk->items[i].closed && bitset_intersects(&walk->items[i].region, &request->accepts))
            return false;
    }
    if (reservation_start(request, ret_start) != 1 ||
        reservation_place(request, *ret_start, ret_slots) < 0) {
        bitset_copy(ret_slots, &request->accepts);
        *ret_start = TIME_NEVER;
    }
    return true;
}

/* Visits the reservations of one scope. */
static int each_reservation(struct scope *scope,
                            void (*visit)(void *context, const struct reservation_view *view),
                            void *context)
{
    struct blocked_claims *walk = &scope->engine->walk;

    blocked_reset(walk);
    for (size_t place = 0; place < scope->lanes.count; place++) {
        const struct engine_request *request = scope->lanes.items[place];
        const struct claim *claim;
        int64_t start;
        size_t max;
        int code;

        if (request->what.opportunistic)
            break;
        if (engine_family_is_blocked(request, walk) || ledger_is_limited(request, &max))
            continue;
        code = blocked_add(walk, request);
        if (code < 0)
            return code;
        if (code == BLOCKED_JOINED)
            continue;
        claim = container_of(list_first(&request->waiting), struct claim, in_lane);
        start = code == BLOCKED_START_KNOWN ? walk->items[walk->count - 1].start : TIME_NEVER;
        visit(context, &(struct reservation_view){
                           .claim = claim->entry.link.id, .start = start, .owner = claim->owner});
    }
    return 0;
}

int engine_each_reservation(struct engine *engine,
                            void (*visit)(void *context, const struct reservation_view *view),
                            void *context)
{
    list_for_each (link, &engine->scopes) {
        int code = each_reservation(container_of(link, struct scope, in_engine), visit, context);

        if (code < 0)
            return code;
    }
    return 0;
}
