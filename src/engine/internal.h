/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that the engine's files offer to each other, file by file. Private to the engine.
 * state.h has the data structures.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "engine/state.h"

/* Returns a number that orders slots by when they were served: by the id of the lease or pick, then
 * by the slot's place in it. */
static inline uint64_t engine_stamp(uint64_t id, uint32_t place)
{
    return (id << 20) + place;
}

static inline uint64_t engine_stamp_id(uint64_t stamp)
{
    return stamp >> 20;
}

static inline void engine_set_lease_owner(struct lease *held, const struct claim_owner *owner)
{
    held->owner = *owner;
    held->touched |= LEASE_TOUCHED_ORIGIN;
}

/* ---- records.c: memory, ids and timers ---- */

/* Returns a record that the caller fills in; NULL: no memory. */
struct claim *records_new_claim(struct engine *engine);
/* Ensures that there is a spare lease, and that the first one has room for `slots` slots. Returns 0
 * or BERTH_ERROR_MEMORY. */
int records_prepare_lease(struct engine *engine, size_t slots);
void records_recycle_claim(struct engine *engine, struct claim *claim);
void records_finish(struct engine *engine);

/* Sets the time at which an entry's timer fires. Never fails, because every record has a place
 * among the timers. */
void records_set_timer(struct engine *engine, struct engine_entry *entry, int64_t at);
void records_remove_timer(struct engine *engine, struct engine_entry *entry);
static inline void engine_clear_timer(struct engine *engine, struct engine_entry *entry)
{
    if (entry->timer_index != 0)
        records_remove_timer(engine, entry);
    entry->at = TIME_NEVER;
}

static inline struct claim *engine_find_claim(struct engine *engine, uint64_t id)
{
    return (struct claim *)(void *)id_map_find(&engine->claim_ids, id);
}

static inline struct lease *engine_find_lease(const struct engine *engine, uint64_t id)
{
    return (struct lease *)(void *)id_map_find(&engine->lease_ids, id);
}

/* ---- engine_request.c ---- */

/* Returns the first permanent reason against a slot; FILTER_PASSES: the request accepts the slot
 * (FAIRNESS.md section 1). */
enum filter_verdict engine_request_verdict(const struct engine_request *request, uint32_t slot);
/* Computes again what the request accepts. Returns 0, or BERTH_ERROR_MEMORY with nothing changed.
 */
int engine_request_compile(struct engine_request *request);
void engine_request_unreference(struct engine_request *request);
void engine_request_free(struct engine_request *request);
/* Makes a request with this number. `policy` NULL means the default; the policy that `what` names
 * is ignored. `share` is the share if the request names none; 0: by the rules. Fails like
 * engine_request_open(). */
int engine_request_create(struct engine *engine, const struct request *what,
                          const struct party *party, const struct policy *policy, uint64_t number,
                          uint32_t share, struct engine_request **ret_request,
                          struct berth_error *error);
/* Finds the accounts that limit the request, and updates the members that depend on them. */
void engine_request_apply_limits(struct engine_request *request);
/* Returns whether the slot has the free memory that the request asks for. */
static inline bool engine_has_free_memory(const struct engine_request *request, size_t slot)
{
    return !request->what.min_free.known ||
           filter_has_free(&request->what, &request->engine->machine.devices.items[slot]);
}

/* ---- mps_domains.c ---- */

/* Add the request to its domain, and remove it. Joining returns 0 or BERTH_ERROR_MEMORY. */
int mps_domain_join(struct engine_request *request);
void mps_domain_leave(struct engine_request *request);
uint32_t mps_domain_uid(const struct engine *engine, uint32_t domain);

/* ---- reserved_devices.c ---- */

/* Returns whether the slot is reserved for users other than the request's. */
bool reserved_device_excludes(const struct engine_request *request, uint32_t slot);
void reserved_devices_finish(struct slot_allowed *allowed);

/* ---- scope.c ---- */

int scope_init(struct scope *scope, struct engine *engine, struct lease *parent);
/* Takes the maximum of tenants from the settings again. */
void scope_apply_rules(struct scope *scope);
/* Returns the scope within a lease, a new one if there is none yet; NULL: no memory. */
struct scope *scope_within(struct lease *parent);
void scope_finish(struct scope *scope);
/* Updates everything that depends on the slot's facts. */
void scope_refresh(struct scope *scope, uint32_t slot);
/* Updates the sets that depend on the slot's leases. */
void scope_refresh_sets(struct scope *scope, uint32_t slot);
static inline bool engine_scope_is_full(const struct scope *scope)
{
    return lowest_set_is_empty(&scope->empty) && scope->part_count == 0;
}

/* ---- ledger.c ---- */

/* Returns the share that is left of a slot with this usage, in millionths; 0 if it is not usable.
 */
uint32_t ledger_left(const struct scope *scope, uint32_t slot, const struct usage *usage);
/* Returns how many claims of the request fit on one empty slot that it accepts. */
uint32_t ledger_tenants(const struct engine_request *request, uint32_t slot);
/* Returns how many claims of the request fit on a slot with this usage; the caller checks that the
 * slot is usable. */
uint32_t ledger_room(const struct engine_request *request, uint32_t slot,
                     const struct usage *usage);
/* Returns the same as ledger_room(), but ignores the sampled free memory. */
uint32_t ledger_room_beside(const struct engine_request *request, uint32_t slot,
                            const struct usage *usage);
/* Returns the first reason against a slot with this usage. Assumes that the slot has the requested
 * free memory. */
enum filter_verdict ledger_verdict(const struct engine_request *request, uint32_t slot,
                                   const struct usage *usage);
/* Returns the id of a lease on the slot; 0: none. If the lease is exclusive, it is the last that
 * the slot served. */
static inline uint64_t engine_slot_holder(const struct ledger_slot *ledger)
{
    if (ledger->usage.brief.tenants == 0)
        return 0;
    return ledger->usage.brief.sharing == SHARING_EXCLUSIVE ? engine_stamp_id(ledger->last_served)
                                                            : ledger->holder;
}
void ledger_add_usage(struct usage *usage, const struct engine_request *request);
void ledger_subtract_usage(struct usage *usage, const struct engine_request *request);
void ledger_add_hosts(struct host_usage *hosts, const struct engine_request *request,
                      const uint32_t *slots, size_t slot_count);
void ledger_subtract_hosts(struct host_usage *hosts, const struct engine_request *request,
                           const uint32_t *slots, size_t slot_count);
/* Returns whether the request is held by a limit (FAIRNESS.md section 1). If not, *ret_max is the
 * number of devices of each replica that the limits allow. */
bool ledger_is_limited(const struct engine_request *request, size_t *ret_max);

/* Count a lease, and stop counting it, in everything but slots: hosts, limits, time limits and
 * opportunistic leases. */
void ledger_begin_lease(struct lease *held);
void ledger_end_lease(struct lease *held);
/* Resets a lease that is gone to the state of a spare lease, and drops its reference to the
 * request.
 */
void ledger_reset_lease(struct lease *held);
/* Returns a lease on the slot other than `id`; 0: there is none. */
uint64_t ledger_other_holder(const struct scope *scope, uint32_t slot, uint64_t id);

/* ---- queue/lanes.c ---- */

/* Returns the claim's class after ageing (FAIRNESS.md section 2). */
enum priority lanes_claim_class(const struct claim *claim);
/* Makes room for one more lane. Returns 0 or BERTH_ERROR_MEMORY. */
int lanes_reserve(struct scope *scope);
void lane_append(struct claim *claim);
/* Adds a claim that may have arrived before others of its lane (FAIRNESS.md section 8). */
void lane_insert(struct claim *claim);
void lane_remove(struct claim *claim);
/* Adds the slots that the lane accepts to the contested ones (`comes`), or removes them. Call it
 * with false before the accepted slots change, and with true after. */
void lane_update_contested(struct engine_request *request, bool comes);
/* Updates the order of the lanes after claims have aged (FAIRNESS.md section 2). */
void lanes_age(struct scope *scope);
/* Orders all lanes again, because the rules changed. */
void lanes_order(struct scope *scope);
/* Returns how many lanes come before a new claim of this request. */
size_t lanes_before(const struct engine_request *request);
/* Start a walk through all waiting claims of a scope in order, and return the next claim; NULL: the
 * walk is over. */
void lanes_rewind(struct scope *scope);
struct claim *lanes_next(struct scope *scope);
/* Skips the other claims of the lane that the last claim came from. */
static inline void engine_lane_skip(struct engine_request *request)
{
    request->cursor = NULL;
}

/* ---- queue/blocked.c: groups of blocked claims, FAIRNESS.md sections 3 and 4 ---- */

int blocked_init(struct blocked_claims *walk, size_t size);
void blocked_finish(struct blocked_claims *walk);
void blocked_reset(struct blocked_claims *walk);

enum { BLOCKED_JOINED = 0, BLOCKED_START_UNKNOWN, BLOCKED_START_KNOWN };

/* Adds a blocked request. Returns BLOCKED_JOINED if it is not the first of a new group, else
 * whether its start is known. With a known start it becomes the last item of the walk. Returns
 * BERTH_ERROR_MEMORY on failure. */
int blocked_add(struct blocked_claims *walk, const struct engine_request *request);
/* Removes from `set` the slots that earlier blocked claims bar to the request. Returns 0 or
 * BERTH_ERROR_MEMORY. */
int blocked_bar_slots(struct blocked_claims *walk, const struct engine_request *request,
                      struct bitset *set);
/* Does the same as blocked_bar_slots(), but ignores reservations with a known start. */
void blocked_bar_closed_slots(const struct blocked_claims *walk,
                              const struct engine_request *request, struct bitset *set);

/* ---- request_family.c ---- */

/* Add the request to its family, and remove it. Joining returns 0 or BERTH_ERROR_MEMORY. */
int request_family_join(struct engine_request *request);
void request_family_leave(struct engine_request *request);
/* Returns another request of the family; NULL: there is none. */
const struct engine_request *request_family_other(const struct engine_request *request);

/* Returns the request's family if it has results of this walk, else NULL. A request that must be
 * compiled again has no family. */
static inline struct request_family *engine_family_in_walk(const struct engine_request *request,
                                                           const struct blocked_claims *walk)
{
    struct request_family *family = request->family;

    return family != NULL && family->walk == walk->number && !request->stale ? family : NULL;
}

/* Returns the request's family, reset if its results are those of an earlier walk; NULL: it has
 * none. */
static inline struct request_family *engine_family_enter_walk(const struct engine_request *request,
                                                              const struct blocked_claims *walk)
{
    struct request_family *family = request->stale ? NULL : request->family;

    if (family != NULL && family->walk != walk->number) {
        family->walk = walk->number;
        family->blocked = family->failed = false;
    }
    return family;
}

static inline uint64_t engine_request_time(const struct engine_request *request)
{
    return request->what.time.known ? request->what.time.value : UINT64_MAX;
}

/* Returns whether a request of the family is blocked in this walk. Then another one bars nothing
 * more. */
static inline bool engine_family_is_blocked(const struct engine_request *request,
                                            const struct blocked_claims *walk)
{
    const struct request_family *family = engine_family_in_walk(request, walk);

    return family != NULL && family->blocked;
}

static inline void engine_family_block(const struct engine_request *request,
                                       const struct blocked_claims *walk)
{
    struct request_family *family = engine_family_enter_walk(request, walk);

    if (family != NULL)
        family->blocked = true;
}

/* Returns whether a request of the family with an equal or shorter time limit could not start in
 * this walk. Then this one cannot either. */
static inline bool engine_family_has_failed(const struct engine_request *request,
                                            const struct blocked_claims *walk)
{
    const struct request_family *family = engine_family_in_walk(request, walk);

    return family != NULL && family->failed && family->failed_time <= engine_request_time(request);
}

static inline void engine_family_fail(const struct engine_request *request,
                                      const struct blocked_claims *walk)
{
    struct request_family *family = engine_family_enter_walk(request, walk);

    if (family == NULL || (family->failed && family->failed_time <= engine_request_time(request)))
        return;
    family->failed = true;
    family->failed_time = engine_request_time(request);
}

/* ---- queue/reservation.c: FAIRNESS.md section 3 ---- */

/* Computes the start of the request's reservation. Returns 1, 0 (unknown) or BERTH_ERROR_MEMORY. */
int reservation_start(const struct engine_request *request, int64_t *ret_start);
/* Computes the set of the request's reservation. Returns 0 or BERTH_ERROR_MEMORY. */
int reservation_place(const struct engine_request *request, int64_t start, struct bitset *ret_set);
/* Returns whether a counted request fits on the empty slots of the set. */
bool reservation_counted_fits(const struct engine_request *request, const struct bitset *set);
/* Fills the engine's `future` with the usage by the scope's leases at that time. */
void reservation_predict_usage(const struct scope *scope, int64_t time);
/* Drops the cached ends of leases, because a time limit changed. */
void reservation_forget_endings(struct scope *scope);

/* ---- policy_tables.c ---- */

/* Drops the tables of all policies, because the facts changed. */
void policy_tables_forget(struct engine *engine);
void policy_tables_finish(struct engine *engine);
/* Finds the tables that the policy computes from the facts, and computes them if necessary. They
 * are NULL if the policy has none. Returns 0 or BERTH_ERROR_MEMORY. */
int policy_tables_find(struct engine *engine, const struct policy *policy, const void **ret_tables);

/* ---- rate_nodes.c ---- */

/* A request for one replica, for which nodes are rated. */
struct node_question {
    const struct engine_request *request;
    size_t count;                   /* devices */
    const struct bitset *legal;     /* only these slots; NULL: any */
    const struct usage *usage;      /* by slot; NULL: the ledger's */
    const struct host_usage *hosts; /* by node */
    const struct bitset *avoided;
    const void *tables;
    uint64_t draw;
};

/* Rates a node for the question. */
struct bid rate_nodes_bid(const struct node_question *question, size_t node,
                          struct policy_offer *ret_offer);
/* Finds the best node, by the index or by rating each node. Returns like place_request(). ret_offer
 * is the node's offer. */
int rate_nodes_find_best(const struct node_question *question, size_t *ret_node,
                         struct policy_offer *ret_offer);
/* Returns the question by which ranks and affinity decide among equal bids for the request. */
struct policy_question rate_nodes_tie_breaker(const struct engine_request *request);

/* ---- rating_index.c ---- */

/* Returns whether the ratings for this question are cached. */
bool rating_index_applies(const struct node_question *question);
/* Fills the cache for a new request, before its first claim. Without memory, the first claim fills
 * it. */
void rating_index_prepare(struct engine_request *request);
/* Finds the node with the best bid; SIZE_MAX: no node has one. Returns 0 or BERTH_ERROR_MEMORY. */
int rating_index_find(const struct node_question *question, size_t *ret_node);
void rating_index_free(struct node_index *index);
/* Drops all cached ratings, because the order among equal nodes changed. */
void rating_index_forget_all(struct engine *engine);
void rating_index_finish_changes(struct node_changes *changes);
/* Notes that the node changed. */
void rating_index_note_change(struct node_changes *changes, uint32_t node);
static inline void engine_node_changed(struct engine *engine, uint32_t slot)
{
    if (engine->changes.latest != NULL)
        rating_index_note_change(&engine->changes, engine->machine.devices.items[slot].host);
}

/* ---- place_request.c ---- */

/* Returns how many replicas of the request the host has room for. */
uint32_t engine_host_room(const struct request *what, const struct host *host,
                          const struct host_usage *usage);

enum { PLACE_LIMITED = 2 };

/* Places the request on slots of `legal` (NULL: all) with this usage (NULL: the ledger's), and puts
 * the slots into engine->chosen. Returns 1, 0 (it does not fit), PLACE_LIMITED (a limit holds it)
 * or BERTH_ERROR_MEMORY. */
int place_request(const struct engine_request *request, const struct bitset *legal,
                  const struct usage *usage, const struct host_usage *hosts,
                  const struct bitset *avoided);
/* Places a simple request on the empty slots. Returns like place_request(). */
int place_request_simple(const struct engine_request *request);
/* Returns how many replicas each host has room for if nothing is leased; NULL: any number. */
const uint32_t *engine_idle_host_room(const struct engine_request *request);

/* ---- queue/schedule.c: FAIRNESS.md section 4 ---- */

/* Grants all claims of the scope that may start, in order, then gives notice to opportunistic
 * leases that other claims need. */
void schedule_scope(struct scope *scope);
void schedule_all(struct engine *engine);
/* Returns whether a grant of this request may let other claims start. Only limits, known starts and
 * opportunistic leases can cause that. */
bool schedule_grant_matters(const struct engine_request *request);
/* Schedules after a change that can only have moved the sets of reservations. */
void schedule_moved(struct scope *scope);
/* Returns whether a new claim may start now, like place_request(). */
int schedule_evaluate(struct engine_request *request);

/* ---- queue/preempt.c: FAIRNESS.md section 5 ---- */

/* Gives notice to opportunistic leases that waiting claims need. Returns whether it gave any. */
bool preempt_leases(struct scope *scope);
/* Returns whether the lease is opportunistic and needs no notice any more. */
bool preempt_is_leaving(const struct lease *held);

/* ---- engine_devices.c ---- */

/* Compiles all requests again, because the facts changed. */
void engine_recompile_requests(struct engine *engine);
/* Refuses the waiting claims of requests that became impossible (FAIRNESS.md section 12). */
void engine_refuse_impossible(struct engine *engine);

/* ---- lifecycle.c ---- */

/* Makes a waiting claim with this id, which the caller adds to its lane. `owner` may be NULL.
 * Returns the claim; NULL: no memory. */
struct claim *lifecycle_begin_claim(struct engine_request *request, uint64_t id, int64_t arrived,
                                    int64_t deadline, const struct claim_owner *owner);
void lifecycle_refuse_claim(struct claim *claim, enum refusal reason);
/* Makes a lease of the chosen slots for a claim that never waited. Returns CLAIM_GRANTED or
 * BERTH_ERROR_MEMORY. */
int lifecycle_grant_chosen(struct engine_request *request, const struct claim_owner *owner,
                           uint64_t *ret_id, struct berth_error *error);
/* Counts a pick of the slot, which also counts as served. */
void lifecycle_count_pick(struct scope *scope, uint32_t slot, uint64_t id, uint32_t place);
/* Ends everything within a lease (FAIRNESS.md section 11). */
void lifecycle_end_inner_scope(struct lease *held);
void lifecycle_give_notice(struct lease *held);
void lifecycle_update_lease_timer(struct lease *held);
/* Returns whether the lease overstays (FAIRNESS.md section 3). */
bool lifecycle_lease_overstays(const struct lease *held);
void lifecycle_set_lease_state(struct lease *held, enum lease_state state);
/* Sets the error to BERTH_ERROR_NOT_FOUND, and returns it. */
int lifecycle_lease_not_found(uint64_t id, struct berth_error *error);

/* ---- direct_grant.c ---- */

/* Returns the id of the claim that the lease becomes if its grant is withdrawn. */
static inline uint64_t engine_lease_claim_id(const struct lease *held)
{
    return held->claim != 0 ? held->claim : held->entry.link.id;
}

/* Makes a lease a waiting claim again (FAIRNESS.md section 8); everything within it ends. Returns
 * the claim; NULL: no memory, and nothing changed. */
struct claim *direct_grant_requeue(struct lease *held, int64_t arrived, int64_t deadline);

/* ---- Events ---- */

static inline bool engine_wants_event(const struct engine *engine, enum event_type type)
{
    return (engine->sink.wanted & EVENT_BIT(type)) != 0;
}

void engine_notify(const struct engine *engine, struct engine_event event);
void engine_notify_granted(const struct lease *held, bool waited);
void engine_notify_request(const struct engine_request *request);

/* ---- queue/forecast.c, queue/explain.c ---- */

/* Estimates when a waiting claim will start, from the time limits of leases and of the claims
 * before it; TIME_NEVER: unknown. Returns 0 or BERTH_ERROR_MEMORY. */
int forecast_start(const struct claim *claim, int64_t *ret_start);

/* Sets the error to the reason why the request is impossible (FAIRNESS.md section 12). Returns
 * BERTH_ERROR_IMPOSSIBLE or _MEMORY. */
int explain_never(struct engine_request *request, struct berth_error *error);

#endif
