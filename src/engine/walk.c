/* SPDX-License-Identifier: Apache-2.0
 *
 * What blocked claims bar to those that come after them: reservations and groups, as
 * docs/FAIRNESS.md says.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/parts.h"

int walk_init(struct walk *walk, size_t size)
{
    *walk = (struct walk){0};
    if (bitset_init(&walk->closed, size) < 0 || bitset_init(&walk->helper_closed, size) < 0)
        return BERTH_ERROR_MEMORY;
    return 0;
}

void walk_finish(struct walk *walk)
{
    for (size_t i = 0; i < walk->ready; i++) {
        bitset_finish(&walk->items[i].set);
        bitset_finish(&walk->items[i].region);
    }
    vector_finish(walk);
    bitset_finish(&walk->closed);
    bitset_finish(&walk->helper_closed);
}

void walk_begin(struct walk *walk)
{
    walk->count = 0;
    if (!walk->barring)
        return;
    walk->barring = false;
    bitset_clear(&walk->closed);
    bitset_clear(&walk->helper_closed);
}

/* Room for one more head, with its sets. */
static int reserve_head(struct walk *walk)
{
    struct head *head;

    if (walk->count < walk->ready)
        return 0;
    if (vector_reserve(walk, walk->count + 1) < 0)
        return BERTH_ERROR_MEMORY;
    head = &walk->items[walk->count];
    if (bitset_init(&head->set, walk->closed.size) < 0)
        return BERTH_ERROR_MEMORY;
    if (bitset_init(&head->region, walk->closed.size) < 0) {
        bitset_finish(&head->set);
        return BERTH_ERROR_MEMORY;
    }
    walk->ready++;
    return 0;
}

/* The groups with a known start become one with what is closed: their regions are barred. */
static void close_groups(struct walk *walk, const struct bitset *accepts)
{
    for (size_t i = 0; i < walk->count; i++) {
        size_t group = walk->items[i].group;

        if (walk->items[i].closed || !bitset_intersects(&walk->items[i].region, accepts))
            continue;
        for (size_t j = 0; j < walk->count; j++) {
            if (walk->items[j].group != group)
                continue;
            walk->items[j].closed = true;
            bitset_unite(&walk->closed, &walk->items[j].region);
        }
    }
    bitset_unite(&walk->closed, accepts);
}

/* Joins the claim to the groups that it competes with. Returns whether there are any. */
static bool join_groups(struct walk *walk, const struct bitset *accepts)
{
    struct head *joined = NULL;

    for (size_t i = 0; i < walk->count; i++) {
        struct head *head = &walk->items[i];
        size_t group = head->group;

        if (head->closed || !bitset_intersects(&head->region, accepts))
            continue;
        if (joined == NULL)
            joined = head;
        for (size_t j = 0; j < walk->count; j++) {
            if (walk->items[j].group == group)
                walk->items[j].group = joined->group;
        }
    }
    if (joined != NULL)
        bitset_unite(&joined->region, accepts);
    return joined != NULL;
}

int walk_block(struct walk *walk, const struct engine_request *request)
{
    const struct scope *scope = request->scope;
    struct head *head;
    int code = 0;

    walk->barring = true;
    if (request->what.opportunistic) {
        bitset_unite(&walk->helper_closed, &request->accepts);
        return 0;
    }
    if (bitset_intersects(&walk->closed, &request->accepts)) {
        close_groups(walk, &request->accepts);
        return 0;
    }
    if (join_groups(walk, &request->accepts))
        return 0;
    /* Without time limits and helpers nothing tells when it will start. */
    if (scope->limited > 0 || scope->helpers > 0) {
        if (reserve_head(walk) < 0)
            return BERTH_ERROR_MEMORY;
        head = &walk->items[walk->count];
        code = reservation_find(request, &head->set, &head->start);
        if (code < 0)
            return code;
    }
    if (code == 0) {
        bitset_unite(&walk->closed, &request->accepts);
        return 0;
    }
    head->group = walk->count;
    head->closed = false;
    bitset_copy(&head->region, &request->accepts);
    walk->count++;
    return 0;
}

/* Whether a claim that starts now is sure to have ended at that time. */
static bool ends_before(const struct engine_request *request, int64_t start)
{
    int64_t now = request->scope->engine->now;

    return request->what.time.known && start >= now &&
           request->what.time.value <= (uint64_t)(start - now);
}

void walk_bar(const struct walk *walk, const struct engine_request *request, struct bitset *set)
{
    bitset_subtract(set, &walk->closed);
    for (size_t i = 0; i < walk->count; i++) {
        const struct head *head = &walk->items[i];

        if (!head->closed && !ends_before(request, head->start))
            bitset_subtract(set, &head->set);
    }
    if (!request->what.opportunistic)
        return;
    if (request->scope->wanted_all > 0)
        bitset_clear(set);
    bitset_subtract(set, &request->scope->contested);
    bitset_subtract(set, &walk->helper_closed);
}

/* Whether a lease is taken to be there at that time. */
static bool is_there(const struct held *held, int64_t time)
{
    if (held->request->what.opportunistic)
        return false;
    return held->state != LEASE_HELD || held->expires > time;
}

/* Whether a lease is taken to be there once those that give way are gone. */
static bool is_not_going(const struct held *held, int64_t time)
{
    (void)time;
    return !lease_is_going(held);
}

/* Puts into the engine's `future` what those of the scope's leases take that are there. */
static void imagine(const struct scope *scope, bool (*there)(const struct held *, int64_t),
                    int64_t time)
{
    struct engine *engine = scope->engine;

    memset(engine->future, 0, engine->size * sizeof(*engine->future));
    memset(engine->future_hosts, 0, engine->host_count * sizeof(*engine->future_hosts));
    list_for_each (link, &engine->leases) {
        const struct held *held = container_of(link, struct held, in_engine);

        if (held->request->scope != scope || !there(held, time))
            continue;
        for (uint32_t i = 0; i < held->slot_count; i++)
            usage_add(&engine->future[held->slots[i]], held->request);
        hosts_add(engine->future_hosts, held->request, held->slots, held->slot_count);
    }
}

void imagine_time(const struct scope *scope, int64_t time)
{
    imagine(scope, is_there, time);
}

static int place_at(const struct engine_request *request, int64_t time)
{
    struct engine *engine = request->scope->engine;

    imagine_time(request->scope, time);
    return place_request(request, NULL, engine->future, engine->future_hosts, &engine->not_now);
}

/* Places the request where those that give way make room for it. Returns as place_request. */
static int place_as_helpers_go(const struct engine_request *request)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;

    imagine(scope, is_not_going, engine->now);
    return place_request(request, NULL, engine->future, engine->future_hosts, NULL);
}

/* Places the request at its start. Returns as place_request. */
static int place_reserved(const struct engine_request *request, int64_t start)
{
    const struct scope *scope = request->scope;

    if (start == scope->engine->now && scope->helpers_noticed > 0) {
        int code = place_as_helpers_go(request);

        if (code != 0)
            return code;
    }
    return place_at(request, start);
}

static int compare_times(const void *one, const void *other)
{
    int64_t first = *(const int64_t *)one;
    int64_t second = *(const int64_t *)other;

    return (first > second) - (first < second);
}

/* The times at which something may become free: now, and when leases end by their limits. */
static int gather_times(const struct scope *scope)
{
    struct engine *engine = scope->engine;

    engine->times.count = 0;
    if (vector_reserve(&engine->times, scope->limited + 1) < 0)
        return BERTH_ERROR_MEMORY;
    engine->times.items[engine->times.count++] = engine->now;
    list_for_each (link, &engine->leases) {
        const struct held *held = container_of(link, struct held, in_engine);

        if (held->request->scope == scope && held->state == LEASE_HELD &&
            held->expires != TIME_NEVER)
            engine->times.items[engine->times.count++] = held->expires;
    }
    qsort(engine->times.items, engine->times.count, sizeof(*engine->times.items), compare_times);
    return 0;
}

int reservation_find(const struct engine_request *request, struct bitset *ret_set,
                     int64_t *ret_start)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;
    size_t low = 0;
    size_t high;
    int code;

    /* What is free now is better left to others. */
    bitset_copy(&engine->not_now, &request->avoided);
    for (size_t slot = 0; slot < engine->machine.devices.count; slot++) {
        if (lowest_set_has(&scope->empty, slot))
            bitset_add(&engine->not_now, slot);
    }
    if (gather_times(scope) < 0)
        return BERTH_ERROR_MEMORY;
    high = engine->times.count - 1;
    code = place_at(request, engine->times.items[high]);
    if (code != 1)
        return code < 0 ? code : 0;
    /* What is placeable once stays so: leases only end. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        code = place_at(request, engine->times.items[middle]);
        if (code < 0)
            return code;
        if (code == 1)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_start = engine->times.items[high];
    code = place_reserved(request, *ret_start);
    if (code < 0)
        return code;
    bitset_clear(ret_set);
    for (size_t i = 0; i < engine->chosen_count; i++)
        bitset_add(ret_set, engine->chosen[i]);
    return 1;
}
