/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations (FAIRNESS.md section 3): when and where a blocked claim will be placeable, according
 * to time limits.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

/* Returns whether FAIRNESS.md section 3 assumes that a lease exists at that time. An opportunistic
 * lease is gone, and so is a lease past its limit, unless it overstays. */
static bool is_present_at(const struct lease *held, int64_t time)
{
    if (held->request->what.opportunistic)
        return false;
    if (held->expires > held->request->engine->now)
        return held->expires > time;
    return lifecycle_lease_overstays(held);
}

/* Returns whether a lease exists after the opportunistic leases with notice are gone. */
static bool is_not_leaving(const struct lease *held, int64_t time)
{
    (void)time;
    return !preempt_is_leaving(held);
}

/* Fills the engine's `future` with the usage by those of the scope's leases for which `there` is
 * true.
 */
static void predict_usage(const struct scope *scope, bool (*there)(const struct lease *, int64_t),
                          int64_t time)
{
    struct engine *engine = scope->engine;

    memset(engine->future, 0, engine->size * sizeof(*engine->future));
    memset(engine->future_hosts, 0, engine->host_count * sizeof(*engine->future_hosts));
    list_for_each (link, &engine->leases) {
        const struct lease *held = container_of(link, struct lease, in_engine);

        if (held->request->scope != scope || !there(held, time))
            continue;
        for (uint32_t i = 0; i < held->slot_count; i++)
            ledger_add_usage(&engine->future[held->slots[i]], held->request);
        ledger_add_hosts(engine->future_hosts, held->request, held->slots, held->slot_count);
    }
}

void reservation_predict_usage(const struct scope *scope, int64_t time)
{
    predict_usage(scope, is_present_at, time);
}

static int place_at_time(const struct engine_request *request, int64_t time)
{
    struct engine *engine = request->scope->engine;

    reservation_predict_usage(request->scope, time);
    return place_request(request, NULL, engine->future, engine->future_hosts, &engine->not_now);
}

/* Places the request as if the leases with notice were gone. Returns like place_request(). */
static int place_after_preemption(const struct engine_request *request)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;

    predict_usage(scope, is_not_leaving, engine->now);
    return place_request(request, NULL, engine->future, engine->future_hosts, NULL);
}

/* Places the request at its start. A start of now assumes that only the opportunistic leases with
 * notice are gone, if the request fits then (FAIRNESS.md section 3). Returns like place_request().
 */
static int place_reserved(const struct engine_request *request, int64_t start)
{
    const struct scope *scope = request->scope;

    if (start == scope->engine->now && scope->opportunistic_leaving > 0) {
        int code = place_after_preemption(request);

        if (code != 0)
            return code;
    }
    return place_at_time(request, start);
}

static int compare_endings(const void *one, const void *other)
{
    const struct ending *first = one;
    const struct ending *second = other;

    if (first->at != second->at)
        return first->at < second->at ? -1 : 1;
    return (first->id > second->id) - (first->id < second->id);
}

/* Returns whether the lease still exists and has this limit. Records of leases live as long as the
 * engine. */
static bool is_current_ending(const struct ending *ending)
{
    const struct lease *held = ending->held;

    return held->entry.link.id == ending->id && held->expires == ending->at;
}

/* Adds the leases with a time limit that were granted since the last call, in any order. */
static int gather_new_endings(struct scope *scope, struct ending_list *list)
{
    struct engine *engine = scope->engine;
    const struct list_link *link = engine->leases.ends.previous;
    uint64_t last = scope->endings_last;

    scope->endings_last = engine->last_id;
    for (; link != &engine->leases.ends; link = link->previous) {
        struct lease *held = container_of(link, struct lease, in_engine);
        struct ending *ending;

        if (held->entry.link.id <= last)
            break;
        if (held->request->scope != scope || held->expires == TIME_NEVER)
            continue;
        ending = vector_append(list);
        if (ending == NULL) {
            scope->endings_last = last;
            return BERTH_ERROR_MEMORY;
        }
        *ending = (struct ending){.at = held->expires, .id = held->entry.link.id, .held = held};
    }
    return 0;
}

/* Updates the scope's list of leases with a time limit: removes those that are gone and merges new
 * ones. Returns 0 or BERTH_ERROR_MEMORY. */
static int gather_endings(struct scope *scope)
{
    struct ending_list *list = &scope->endings;
    struct ending_list *added = &scope->engine->endings_added;
    size_t kept = 0;
    size_t place;

    added->count = 0;
    if (gather_new_endings(scope, added) < 0)
        return BERTH_ERROR_MEMORY;
    if (vector_reserve(list, list->count + added->count) < 0) {
        scope->endings_last = 0;
        list->count = 0;
        return BERTH_ERROR_MEMORY;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (is_current_ending(&list->items[i]))
            list->items[kept++] = list->items[i];
    }
    if (added->count > 1)
        qsort(added->items, added->count, sizeof(*added->items), compare_endings);
    list->count = kept + added->count;
    place = list->count;
    for (size_t left = added->count; left > 0;) {
        bool is_old =
            kept > 0 && compare_endings(&list->items[kept - 1], &added->items[left - 1]) > 0;

        list->items[--place] = is_old ? list->items[--kept] : added->items[--left];
    }
    return 0;
}

void reservation_forget_endings(struct scope *scope)
{
    scope->endings.count = 0;
    scope->endings_last = 0;
}

static int64_t later_of(int64_t now, int64_t time)
{
    return time > now ? time : now;
}

/* ---- Counted requests: empty devices only need to be counted ---- */

/* A count of empty devices by group, until there are enough for all replicas. */
struct counting {
    const struct engine_request *request;
    size_t rows; /* replicas that have room */
};

static struct counting start_counting(const struct engine_request *request)
{
    struct engine *engine = request->engine;

    engine->counting++;
    return (struct counting){.request = request};
}

/* Counts one more empty slot. Returns whether there are enough. */
static bool count_slot(struct counting *counting, size_t slot)
{
    const struct engine_request *request = counting->request;
    struct engine *engine = request->engine;
    struct group_count *count =
        &engine->group_counts[placement_search_group(&engine->search, &request->what, slot)];

    if (count->counting != engine->counting)
        *count = (struct group_count){.counting = engine->counting};
    if (++count->over == request->min) {
        count->over = 0;
        counting->rows++;
    }
    return counting->rows >= request->replicas;
}

/* Counts the empty slots of a set (NULL: all) that the request accepts. Returns whether there are
 * enough. */
static bool count_empty(struct counting *counting, const struct bitset *set)
{
    const struct engine_request *request = counting->request;
    const struct scope *scope = request->scope;
    size_t words = (scope->engine->machine.devices.count + 63) / 64;

    for (size_t i = 0; i < words; i++) {
        uint64_t word = scope->empty.levels[0][i] & request->accepts.words[i];

        if (set != NULL)
            word &= set->words[i];
        for (; word != 0; word &= word - 1) {
            size_t slot = i * 64 + (size_t)__builtin_ctzll(word);

            if (engine_has_free_memory(request, slot) && count_slot(counting, slot))
                return true;
        }
    }
    return false;
}

bool reservation_counted_fits(const struct engine_request *request, const struct bitset *set)
{
    struct counting counting = start_counting(request);

    return count_empty(&counting, set);
}

/* Returns whether the slot becomes free for the request when one more tenant ends. `gone` counts
 * the ended tenants of each slot. */
static bool is_last_tenant(const struct engine_request *request, uint32_t slot, uint32_t *gone)
{
    const struct ledger_slot *ledger = &request->scope->ledger[slot];

    return ++gone[slot] == ledger->usage.brief.tenants && ledger->usable &&
           bitset_has(&request->accepts, slot) && engine_has_free_memory(request, slot);
}

/* Finds the time at which enough slots are empty, if leases end at their limits. Returns 1, or 0 if
 * there is no such time. */
static int count_endings(const struct engine_request *request, int64_t *ret_start)
{
    const struct scope *scope = request->scope;
    uint32_t *gone = scope->engine->room;
    struct counting counting = start_counting(request);
    const struct ending *ending;

    *ret_start = scope->engine->now;
    if (count_empty(&counting, NULL))
        return 1;
    memset(gone, 0, scope->engine->machine.devices.count * sizeof(*gone));
    vector_for_each (ending, &scope->endings) {
        const struct lease *held = ending->held;

        if (is_present_at(held, later_of(scope->engine->now, ending->at)))
            continue;
        for (uint32_t i = 0; i < held->slot_count; i++) {
            if (!is_last_tenant(request, held->slots[i], gone) ||
                !count_slot(&counting, held->slots[i]))
                continue;
            *ret_start = later_of(scope->engine->now, ending->at);
            return 1;
        }
    }
    return 0;
}

/* ---- Any request ---- */

/* Returns the time with this index: now, then the ends of leases. */
static int64_t time_at(const struct scope *scope, size_t place)
{
    return place == 0 ? scope->engine->now
                      : later_of(scope->engine->now, scope->endings.items[place - 1].at);
}

/* Avoids slots that are free now, so that other claims can use them until the start (FAIRNESS.md
 * section 3). */
static void avoid_free(const struct engine_request *request)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;
    size_t words = (engine->machine.devices.count + 63) / 64;

    bitset_copy(&engine->not_now, &request->avoided);
    for (size_t i = 0; i < words; i++)
        engine->not_now.words[i] |= scope->empty.levels[0][i];
}

/* Finds the first time at which the request is placeable. Returns 1, 0 (never) or an error. */
static int try_endings(const struct engine_request *request, int64_t *ret_start)
{
    const struct scope *scope = request->scope;
    size_t low = 0;
    size_t high = scope->endings.count;
    int code = place_at_time(request, time_at(scope, high));

    if (code != 1)
        return code < 0 ? code : 0;
    /* A binary search works because leases only end: a placeable request stays placeable. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        code = place_at_time(request, time_at(scope, middle));
        if (code < 0)
            return code;
        if (code == 1)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_start = time_at(scope, high);
    return 1;
}

int reservation_start(const struct engine_request *request, int64_t *ret_start)
{
    struct scope *scope = request->scope;
    int64_t start = TIME_NEVER;
    size_t max;
    int code;

    if (gather_endings(scope) < 0)
        return BERTH_ERROR_MEMORY;
    if (request->counted && scope->opportunistic_leases == 0) {
        code = ledger_is_limited(request, &max) ? 0 : count_endings(request, &start);
    } else {
        avoid_free(request);
        code = try_endings(request, &start);
    }
    if (code == 1)
        *ret_start = start;
    return code;
}

int reservation_place(const struct engine_request *request, int64_t start, struct bitset *ret_set)
{
    struct engine *engine = request->engine;
    int code;

    avoid_free(request);
    code = place_reserved(request, start);
    if (code < 0)
        return code;
    bitset_clear(ret_set);
    for (size_t i = 0; i < engine->chosen_count; i++)
        bitset_add(ret_set, engine->chosen[i]);
    return 0;
}
