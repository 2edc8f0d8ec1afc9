/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue (FAIRNESS.md section 2). Every request that has waiting claims is a lane. The lanes are
 * in the order of their first claims: by class after ageing, then by arrival.
 */
#include <string.h>

#include "engine/internal.h"

/* Returns the claim's class, which rises by one for each age_step of waiting. Opportunistic claims
 * have the lowest class and never age (FAIRNESS.md section 2). */
static inline enum priority aged_class(const struct engine *engine, const struct claim *claim)
{
    enum priority class = claim->request->what.priority;
    int64_t age = engine->now - claim->arrived;
    int64_t steps = age < engine->settings.age_step ? 0 : age / engine->settings.age_step;

    if (claim->request->what.opportunistic)
        return PRIORITY_UNSAID;
    if (class == PRIORITY_UNSAID)
        class = PRIORITY_NORMAL;
    return steps >= PRIORITY_HIGH - class ? PRIORITY_HIGH : class + (enum priority)steps;
}

enum priority lanes_claim_class(const struct claim *claim)
{
    return aged_class(claim->request->engine, claim);
}

static struct claim *first_claim(const struct engine_request *request)
{
    return container_of(list_first(&request->waiting), struct claim, in_lane);
}

static bool comes_before(const struct engine_request *one, const struct engine_request *other)
{
    return one->lane_class != other->lane_class ? one->lane_class > other->lane_class
                                                : one->lane_id < other->lane_id;
}

/* Returns how many lanes of an ordered list come before a lane with this key. */
static size_t find_position(const struct lane_list *lanes, const struct engine_request *key)
{
    size_t low = 0;
    size_t high = lanes->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (comes_before(lanes->items[middle], key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void set_lane_key(struct engine_request *request)
{
    const struct claim *first = first_claim(request);
    struct scope *scope = request->scope;
    const struct engine *engine = scope->engine;
    int64_t age = engine->now - first->arrived;
    int64_t step = engine->settings.age_step;

    request->lane_class = aged_class(engine, first);
    request->lane_id = first->entry.link.id;
    if (request->lane_class == PRIORITY_UNSAID || request->lane_class == PRIORITY_HIGH)
        return;
    age = age < step ? age : age % step;
    if (step - age < scope->next_age - engine->now)
        scope->next_age = engine->now + (step - age);
}

static void remove_lane(struct lane_list *lanes, const struct engine_request *request)
{
    size_t place;

    if (lanes->count == 1) {
        lanes->count = 0;
        return;
    }
    place = find_position(lanes, request);
    memmove(&lanes->items[place], &lanes->items[place + 1],
            (lanes->count - place - 1) * sizeof(*lanes->items));
    lanes->count--;
}

static void insert_lane(struct lane_list *lanes, struct engine_request *request)
{
    size_t place = find_position(lanes, request);

    if (place < lanes->count)
        memmove(&lanes->items[place + 1], &lanes->items[place],
                (lanes->count - place) * sizeof(*lanes->items));
    lanes->items[place] = request;
    lanes->count++;
}

int lanes_reserve(struct scope *scope)
{
    return vector_reserve(&scope->walked, scope->lanes.count + 1) < 0
               ? BERTH_ERROR_MEMORY
               : vector_reserve(&scope->lanes, scope->lanes.count + 1);
}

void lane_update_contested(struct engine_request *request, bool comes)
{
    struct scope *scope = request->scope;

    if (request->what.opportunistic)
        return;
    if (request->everything) {
        scope->wanted_all += comes ? 1 : SIZE_MAX;
        return;
    }
    bitset_for_each (slot, &request->accepts) {
        scope->wanted_by[slot] += comes ? 1 : UINT32_MAX;
        if (scope->wanted_by[slot] > 0)
            bitset_add(&scope->contested, slot);
        else
            bitset_remove(&scope->contested, slot);
    }
}

void lane_append(struct claim *claim)
{
    struct engine_request *request = claim->request;
    struct scope *scope = request->scope;

    list_append(&request->waiting, &claim->in_lane);
    scope->pending += !request->what.opportunistic;
    if (request->waiting_count++ > 0)
        return;
    set_lane_key(request);
    insert_lane(&scope->lanes, request);
    lane_update_contested(request, true);
}

void lane_insert(struct claim *claim)
{
    struct engine_request *request = claim->request;
    struct scope *scope = request->scope;
    struct list_link *before = &request->waiting.ends;
    bool is_first;

    if (request->waiting_count == 0) {
        lane_append(claim);
        return;
    }
    while (before->previous != &request->waiting.ends &&
           container_of(before->previous, struct claim, in_lane)->entry.link.id >
               claim->entry.link.id)
        before = before->previous;
    is_first = before->previous == &request->waiting.ends;
    if (is_first)
        remove_lane(&scope->lanes, request);
    list_insert_before(before, &claim->in_lane);
    scope->pending += !request->what.opportunistic;
    request->waiting_count++;
    if (!is_first)
        return;
    set_lane_key(request);
    insert_lane(&scope->lanes, request);
}

void lane_remove(struct claim *claim)
{
    struct engine_request *request = claim->request;
    struct scope *scope = request->scope;
    bool was_first = list_first(&request->waiting) == &claim->in_lane;

    list_remove(&claim->in_lane);
    scope->pending -= !request->what.opportunistic;
    request->waiting_count--;
    if (!was_first)
        return;
    if (scope->lanes.count == 1 && request->waiting_count > 0) {
        set_lane_key(request);
        return;
    }
    remove_lane(&scope->lanes, request);
    if (scope->lanes.count == 0)
        scope->next_age = TIME_NEVER;
    if (request->waiting_count == 0) {
        lane_update_contested(request, false);
        return;
    }
    set_lane_key(request);
    insert_lane(&scope->lanes, request);
}

/* Orders all lanes after the first `kept` again. */
static void reorder_lanes(struct scope *scope, size_t kept)
{
    size_t count = scope->lanes.count;

    scope->next_age = TIME_NEVER;
    scope->lanes.count = kept;
    for (size_t i = kept; i < count; i++) {
        struct engine_request *request = scope->lanes.items[i];

        set_lane_key(request);
        insert_lane(&scope->lanes, request);
    }
}

void lanes_age(struct scope *scope)
{
    const struct engine_request last_of_high = {.lane_class = PRIORITY_HIGH, .lane_id = UINT64_MAX};

    /* Lanes of the highest class cannot rise. */
    reorder_lanes(scope, find_position(&scope->lanes, &last_of_high));
}

void lanes_order(struct scope *scope)
{
    reorder_lanes(scope, 0);
}

size_t lanes_before(const struct engine_request *request)
{
    struct engine_request key = {
        .lane_class =
            request->what.priority == PRIORITY_UNSAID ? PRIORITY_NORMAL : request->what.priority,
        .lane_id = UINT64_MAX,
    };

    if (request->what.opportunistic)
        key.lane_class = PRIORITY_UNSAID;
    return find_position(&request->scope->lanes, &key);
}

static bool is_served_before(const struct claim *one, const struct claim *other)
{
    enum priority class_one = lanes_claim_class(one);
    enum priority class_other = lanes_claim_class(other);

    return class_one != class_other ? class_one > class_other
                                    : one->entry.link.id < other->entry.link.id;
}

/* Moves the lane at `place` down in the heap of a walk, because its next claim may come later. */
static void sift_lane_down(struct lane_list *heap, size_t place)
{
    struct engine_request *lane = heap->items[place];

    for (;;) {
        size_t child = 2 * place + 1;

        if (child + 1 < heap->count &&
            is_served_before(heap->items[child + 1]->cursor, heap->items[child]->cursor))
            child++;
        if (child >= heap->count || !is_served_before(heap->items[child]->cursor, lane->cursor))
            break;
        heap->items[place] = heap->items[child];
        place = child;
    }
    heap->items[place] = lane;
}

void lanes_rewind(struct scope *scope)
{
    struct lane_list *heap = &scope->walked;

    heap->count = scope->lanes.count;
    for (size_t i = 0; i < heap->count; i++) {
        heap->items[i] = scope->lanes.items[i];
        heap->items[i]->cursor = first_claim(heap->items[i]);
    }
    /* Classes may have risen since the lanes were last ordered. */
    for (size_t i = heap->count / 2; i > 0; i--)
        sift_lane_down(heap, i - 1);
    scope->walk_began = false;
}

struct claim *lanes_next(struct scope *scope)
{
    struct lane_list *heap = &scope->walked;
    struct claim *next;
    const struct list_link *link;

    /* Remove the lane of the last claim if it has no further claim. */
    if (scope->walk_began && heap->count > 0 && heap->items[0]->cursor == NULL)
        heap->items[0] = heap->items[--heap->count];
    if (heap->count == 0)
        return NULL;
    if (scope->walk_began)
        sift_lane_down(heap, 0);
    scope->walk_began = true;
    next = heap->items[0]->cursor;
    link = next->in_lane.next;
    next->request->cursor =
        link == &next->request->waiting.ends ? NULL : container_of(link, struct claim, in_lane);
    return next;
}
