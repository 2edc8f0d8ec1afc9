/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates when waiting claims start, from time limits: each claim in order starts at the earliest
 * time at which the leases and the claims before it leave room. Leases end as FAIRNESS.md section 3
 * assumes. This is an estimate for users, not a promise.
 */
#include "engine/internal.h"

/* Maximum of claims in a forecast. Claims further back have no estimate. */
enum { CLAIMS_MAX = 64 };

/* A claim that is assumed to start, and its end. */
struct guess {
    const struct engine_request *request;
    int64_t end;
    size_t first; /* index of its slots in the forecast */
    size_t count;
};

struct forecast {
    VECTOR_OF(struct guess);
    struct {
        VECTOR_OF(uint32_t);
    } slots;
    struct time_list times;
    struct bitset unknown; /* slots that earlier claims with an unknown start accept */
};

static int add_time(struct forecast *forecast, int64_t time)
{
    int64_t *place;

    if (time == TIME_NEVER)
        return 0;
    place = vector_append(&forecast->times);
    if (place == NULL)
        return BERTH_ERROR_MEMORY;
    *place = time;
    return 0;
}

static int gather_times(struct forecast *forecast, const struct scope *scope)
{
    const struct engine *engine = scope->engine;

    if (add_time(forecast, engine->now) < 0)
        return BERTH_ERROR_MEMORY;
    list_for_each (link, &engine->leases) {
        const struct lease *held = container_of(link, struct lease, in_engine);

        if (held->request->scope == scope && held->expires > engine->now &&
            add_time(forecast, held->expires) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

static int place_at_time(const struct forecast *forecast, const struct engine_request *request,
                         int64_t time)
{
    struct engine *engine = request->engine;
    const struct guess *guess;

    reservation_predict_usage(request->scope, time);
    vector_for_each (guess, forecast) {
        const uint32_t *slots = forecast->slots.items + guess->first;

        if (guess->end <= time)
            continue;
        for (size_t i = 0; i < guess->count; i++)
            ledger_add_usage(&engine->future[slots[i]], guess->request);
        ledger_add_hosts(engine->future_hosts, guess->request, slots, guess->count);
    }
    return place_request(request, NULL, engine->future, engine->future_hosts, NULL);
}

/* Finds the earliest time at which the request is placeable, with its slots in engine->chosen.
 * Returns 1, 0 (never) or an error. */
static int find_time(const struct forecast *forecast, const struct engine_request *request,
                     int64_t *ret_start)
{
    int64_t best = TIME_NEVER;

    for (size_t i = 0; i < forecast->times.count; i++) {
        int64_t time = forecast->times.items[i];
        int code = time < best ? place_at_time(forecast, request, time) : 0;

        if (code < 0)
            return code;
        if (code == 1)
            best = time;
    }
    if (best == TIME_NEVER)
        return 0;
    *ret_start = best;
    return place_at_time(forecast, request, best);
}

/* Assumes that the claim starts on the chosen slots at that time. */
static int assume_started(struct forecast *forecast, const struct engine_request *request,
                          int64_t time)
{
    const struct engine *engine = request->engine;
    struct guess *guess = vector_append(forecast);

    if (guess == NULL)
        return BERTH_ERROR_MEMORY;
    guess->request = request;
    guess->first = forecast->slots.count;
    guess->end =
        request->what.time.known && request->what.time.value < (uint64_t)(TIME_NEVER - time)
            ? time + (int64_t)request->what.time.value
            : TIME_NEVER;
    for (size_t i = 0; i < engine->chosen_count; i++) {
        uint32_t *slot = vector_append(&forecast->slots);

        if (slot == NULL)
            return BERTH_ERROR_MEMORY;
        *slot = engine->chosen[i];
        guess->count++;
    }
    return add_time(forecast, guess->end);
}

/* Forecasts all claims in order up to `wanted`. Returns 0 or an error. */
static int forecast_claims(struct forecast *forecast, const struct claim *wanted,
                           int64_t *ret_start)
{
    struct scope *scope = wanted->request->scope;
    const struct claim *claim;
    int code = 0;

    *ret_start = TIME_NEVER;
    lanes_rewind(scope);
    for (size_t i = 0; i < CLAIMS_MAX && (claim = lanes_next(scope)) != NULL; i++) {
        const struct engine_request *request = claim->request;
        int64_t time = TIME_NEVER;
        size_t max;
        bool limited = ledger_is_limited(request, &max);

        /* The start of an opportunistic claim is unknown: later ordinary claims come before it
         * (FAIRNESS.md section 2). */
        code = limited || request->what.opportunistic ||
                       bitset_intersects(&forecast->unknown, &request->accepts)
                   ? 0
                   : find_time(forecast, request, &time);
        if (code == 1)
            code = assume_started(forecast, request, time);
        else if (code == 0 && !limited)
            bitset_unite(&forecast->unknown, &request->accepts);
        if (code < 0)
            return code;
        if (claim == wanted) {
            *ret_start = time;
            break;
        }
    }
    return 0;
}

int forecast_start(const struct claim *claim, int64_t *ret_start)
{
    const struct scope *scope = claim->request->scope;
    struct forecast forecast = {0};
    int code = bitset_init(&forecast.unknown, scope->engine->size);

    if (code == 0)
        code = gather_times(&forecast, scope);
    if (code == 0)
        code = forecast_claims(&forecast, claim, ret_start);
    bitset_finish(&forecast.unknown);
    vector_finish(&forecast.times);
    vector_finish(&forecast.slots);
    vector_finish(&forecast);
    return code;
}
