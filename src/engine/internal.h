/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine's files do for each other, file by file, over what state.h keeps. Only for them.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "engine/state.h"

/* What tells when a slot was served: by lease or pick, then by its place therein. */
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

/* ---- records.c: memory, numbers and timers ---- */

/* A record to be filled in; NULL: no memory. */
struct claim *records_new_claim(struct engine *engine);
/* Makes sure that the first spare lease is there and has room for so many slots. Returns 0 or
 * BERTH_ERROR_MEMORY. */
int records_prepare_lease(struct engine *engine, size_t slots);
void records_recycle_claim(struct engine *engine, struct claim *claim);
void records_finish(struct engine *engine);

/* Sets when something is due for an entry; never fails, since every record has a place for it. */
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

/* ---- request.c ---- */

/* The first fixed reason against a slot. */
enum filter_verdict engine_request_verdict(const struct engine_request *request, uint32_t slot);
/* Works out again what the request accepts. Returns 0 or BERTH_ERROR_MEMORY, with nothing changed.
 */
int engine_request_compile(struct engine_request *request);
void engine_request_unreference(struct engine_request *request);
void engine_request_free(struct engine_request *request);
/* Makes a request of this number. `share` is what one that names none has; 0: by the rules. */
int engine_request_create(struct engine *engine, const struct request *what,
                          const struct party *party, const struct policy *policy, uint64_t number,
                          uint32_t share, struct engine_request **ret_request,
                          struct berth_error *error);
/* Finds the accounts that limit the request now, and what follows from them. */
void engine_request_apply_limits(struct engine_request *request);
/* Whether the slot has as much memory free as the request wants. */
static inline bool engine_has_free_memory(const struct engine_request *request, size_t slot)
{
    return !request->what.min_free.known ||
           filter_has_free(&request->what, &request->engine->machine.devices.items[slot]);
}

/* ---- domains.c ---- */

/* Gives the request its domain, and takes it back. Returns 0 or BERTH_ERROR_MEMORY. */
int mps_domain_join(struct engine_request *request);
void mps_domain_leave(struct engine_request *request);
uint32_t mps_domain_uid(const struct engine *engine, uint32_t domain);

/* ---- people.c ---- */

/* Whether the slot is reserved, and not for whoever makes the request. */
bool reserved_device_excludes(const struct engine_request *request, uint32_t slot);
void reserved_devices_finish(struct slot_allowed *allowed);

/* ---- scope.c ---- */

int scope_init(struct scope *scope, struct engine *engine, struct lease *parent);
/* The bounds on tenants are as the settings say now. */
void scope_apply_rules(struct scope *scope);
/* The scope within a lease, made when there is none yet; NULL: no memory. */
struct scope *scope_within(struct lease *parent);
void scope_finish(struct scope *scope);
/* The slot's facts changed: brings everything up to date. */
void scope_refresh(struct scope *scope, uint32_t slot);
/* The slot's leases changed: brings the sets up to date. */
void scope_refresh_sets(struct scope *scope, uint32_t slot);
static inline bool engine_scope_is_full(const struct scope *scope)
{
    return lowest_set_is_empty(&scope->empty) && scope->part_count == 0;
}

/* ---- ledger.c ---- */

/* What is left of a slot with this usage, in millionths; 0 also when it is not usable. */
uint32_t ledger_left(const struct scope *scope, uint32_t slot, const struct usage *usage);
/* How many such claims an empty slot that the request accepts carries at once. */
uint32_t ledger_tenants(const struct engine_request *request, uint32_t slot);
/* How many such claims fit on a slot with this usage, as far as it is usable. */
uint32_t ledger_room(const struct engine_request *request, uint32_t slot,
                     const struct usage *usage);
/* The same beside its leases alone, whatever memory is free. */
uint32_t ledger_room_beside(const struct engine_request *request, uint32_t slot,
                            const struct usage *usage);
/* The first reason against a slot with this usage that has enough memory free. */
enum filter_verdict ledger_verdict(const struct engine_request *request, uint32_t slot,
                                   const struct usage *usage);
/* A lease that is on a slot: one that has it alone is the last that it served; 0: none. */
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
/* Whether a limit holds the request back; *ret_max is how many devices of each replica it allows
 * otherwise. */
bool ledger_is_limited(const struct engine_request *request, size_t *ret_max);

/* What granting and ending do beyond the slots: hosts, limits, times, helpers. */
void ledger_begin_lease(struct lease *held);
void ledger_end_lease(struct lease *held);
/* Makes a lease that is gone as spare ones are, and its request one that it does not refer to. */
void ledger_reset_lease(struct lease *held);
/* Another lease on a slot that loses this one; 0 when there is none. */
uint64_t ledger_other_holder(const struct scope *scope, uint32_t slot, uint64_t id);

/* ---- lanes.c ---- */

enum priority lanes_claim_class(const struct claim *claim);
/* Makes room for one more lane. Returns 0 or BERTH_ERROR_MEMORY. */
int lanes_reserve(struct scope *scope);
void lane_append(struct claim *claim);
/* The same for a claim that may have arrived before others of its lane. */
void lane_insert(struct claim *claim);
void lane_remove(struct claim *claim);
/* What a lane accepts is about to change, or has changed. */
void lane_update_contested(struct engine_request *request, bool comes);
/* Orders the lanes again as of now: by the time that passed, or by other rules. */
void lanes_age(struct scope *scope);
void lanes_order(struct scope *scope);
/* How many lanes come before a new claim of this request. */
size_t lanes_before(const struct engine_request *request);
/* Starts a walk through all waiting claims of a scope, in order, and goes on. */
void lanes_rewind(struct scope *scope);
struct claim *lanes_next(struct scope *scope);
/* Ends the walk through the claims of this lane, which the last one was of. */
static inline void engine_lane_skip(struct engine_request *request)
{
    request->cursor = NULL;
}

/* ---- walk.c ---- */

int blocked_init(struct blocked_claims *walk, size_t size);
void blocked_finish(struct blocked_claims *walk);
void blocked_reset(struct blocked_claims *walk);

enum { BLOCKED_JOINED = 0, BLOCKED_START_UNKNOWN, BLOCKED_START_KNOWN };

/* The request is blocked from here on. Returns BLOCKED_JOINED, or whether its start is known when
 * it is the first of a group (the last of the heads then), or BERTH_ERROR_MEMORY. */
int blocked_add(struct blocked_claims *walk, const struct engine_request *request);
/* Leaves in `set` what the request may take. Returns 0 or BERTH_ERROR_MEMORY. */
int blocked_bar_slots(struct blocked_claims *walk, const struct engine_request *request,
                      struct bitset *set);
/* The same as far as no reservation with a start bars it. */
void blocked_bar_closed_slots(const struct blocked_claims *walk,
                              const struct engine_request *request, struct bitset *set);

/* ---- family.c ---- */

/* Puts the request into its family, and takes it out. Returns 0 or BERTH_ERROR_MEMORY. */
int request_family_join(struct engine_request *request);
void request_family_leave(struct engine_request *request);
/* Another of its family; NULL: it is the only one. */
const struct engine_request *request_family_other(const struct engine_request *request);

/* What the walk knows of the family; one that has to be compiled again has none. */
static inline struct request_family *engine_family_in_walk(const struct engine_request *request,
                                                           const struct blocked_claims *walk)
{
    struct request_family *family = request->family;

    return family != NULL && family->walk == walk->number && !request->stale ? family : NULL;
}

/* Begins to know something of it; NULL: it has none. */
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

/* Whether one of them is blocked in this walk: another adds nothing. */
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

/* Whether the request cannot start in this walk, since one that takes no longer cannot. */
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

/* ---- reservation.c ---- */

/* When the request will be placeable as time limits tell. Returns 1, 0 (unknown), or
 * BERTH_ERROR_MEMORY. */
int reservation_start(const struct engine_request *request, int64_t *ret_start);
/* Where it will be placed then. Returns 0 or BERTH_ERROR_MEMORY. */
int reservation_place(const struct engine_request *request, int64_t start, struct bitset *ret_set);
/* Whether a counted request fits on the empty slots of the set. */
bool reservation_counted_fits(const struct engine_request *request, const struct bitset *set);
/* Puts into the engine's `future` what the scope's leases will take at that time. */
void reservation_predict_usage(const struct scope *scope, int64_t time);
/* A time limit was changed. */
void reservation_forget_endings(struct scope *scope);

/* ---- policy_tables.c ---- */

/* Forgets what policies worked out: the facts changed. */
void policy_tables_forget(struct engine *engine);
void policy_tables_finish(struct engine *engine);
/* What the policy worked out from the facts, now if need be; NULL for one that does nothing of the
 * kind. Returns 0 or BERTH_ERROR_MEMORY. */
int policy_tables_find(struct engine *engine, const struct policy *policy, const void **ret_tables);

/* ---- offers.c: nodes by what they have to offer ---- */

/* A request for one replica, as nodes are asked about it. */
struct node_question {
    const struct engine_request *request;
    size_t count;                   /* devices */
    const struct bitset *legal;     /* only these; NULL: any */
    const struct usage *usage;      /* by slot; NULL: the ledger's */
    const struct host_usage *hosts; /* by node */
    const struct bitset *avoided;
    const void *tables;
    uint64_t draw;
};

/* What the node has to offer. */
struct bid rate_nodes_bid(const struct node_question *question, size_t node,
                          struct policy_offer *ret_offer);
/* Finds the best node by asking each, or by what is kept. Returns as place_request; ret_offer is
 * what the node offers. */
int rate_nodes_find_best(const struct node_question *question, size_t *ret_node,
                         struct policy_offer *ret_offer);
/* How ranks and affinity decide among the request's bids. */
struct policy_question rate_nodes_tie_breaker(const struct engine_request *request);

/* ---- index.c ---- */

/* Whether it is kept what nodes have to offer to this question. */
bool rating_index_applies(const struct node_question *question);
/* Asks the nodes of a pool where answers are kept before the first claim does; where there is no
 * memory, that will. */
void rating_index_prepare(struct engine_request *request);
/* The node with the best bid; SIZE_MAX: none has any. Returns 0 or BERTH_ERROR_MEMORY. */
int rating_index_find(const struct node_question *question, size_t *ret_node);
void rating_index_free(struct node_index *index);
/* What decides among equals changed. */
void rating_index_forget_all(struct engine *engine);
void rating_index_finish_changes(struct node_changes *changes);
/* Something of the node changed. */
void rating_index_note_change(struct node_changes *changes, uint32_t node);
static inline void engine_node_changed(struct engine *engine, uint32_t slot)
{
    if (engine->changes.latest != NULL)
        rating_index_note_change(&engine->changes, engine->machine.devices.items[slot].host);
}

/* ---- place.c ---- */

/* How many replicas of the request the host has room for. */
uint32_t engine_host_room(const struct request *what, const struct host *host,
                          const struct host_usage *usage);

enum { PLACE_LIMITED = 2 };

/* Places the request on slots of `legal` (all of them when NULL) by this usage (of the ledger when
 * NULL), into engine->chosen. Returns 1, 0 (it does not fit), PLACE_LIMITED or BERTH_ERROR_MEMORY.
 */
int place_request(const struct engine_request *request, const struct bitset *legal,
                  const struct usage *usage, const struct host_usage *hosts,
                  const struct bitset *avoided);
/* The same for a simple request on the empty slots. */
int place_request_simple(const struct engine_request *request);
/* By host: how many replicas it has room for when nothing is leased; NULL: any number. */
const uint32_t *engine_idle_host_room(const struct engine_request *request);

/* ---- schedule.c, preempt_leases.c ---- */

/* Grants what is due in the scope, in order, and gives notice where that helps. */
void schedule_scope(struct scope *scope);
void schedule_all(struct engine *engine);
/* Whether a grant of this request may let those start who wait: only limits, known starts and
 * opportunistic leases make it so. */
bool schedule_grant_matters(const struct engine_request *request);
/* Settles after a change that can only have moved the sets of reservations. */
void schedule_moved(struct scope *scope);
/* Whether a new claim may start now; its slots are in engine->chosen then. Returns as
 * place_request. */
int schedule_evaluate(struct engine_request *request);
/* Gives notice to opportunistic leases for the sake of waiting claims. Returns whether to any. */
bool preempt_leases(struct scope *scope);

/* ---- devices.c ---- */

/* The facts changed: compiles all requests again. */
void engine_recompile_requests(struct engine *engine);
/* Refuses the waiting claims of requests that are impossible. */
void engine_refuse_impossible(struct engine *engine);

/* ---- lifecycle.c ---- */

/* A claim of this number that waits, but for its place in the lane; NULL: no memory. `owner` may be
 * NULL. */
struct claim *lifecycle_begin_claim(struct engine_request *request, uint64_t id, int64_t arrived,
                                    int64_t deadline, const struct claim_owner *owner);
void lifecycle_refuse_claim(struct claim *claim, enum refusal reason);
/* Makes a lease of the chosen slots for a claim that never waited. Returns CLAIM_GRANTED or
 * BERTH_ERROR_MEMORY. */
int lifecycle_grant_chosen(struct engine_request *request, const struct claim_owner *owner,
                           uint64_t *ret_id, struct berth_error *error);
/* Advice to use a slot: it counts as served. */
void lifecycle_count_pick(struct scope *scope, uint32_t slot, uint64_t id, uint32_t place);
/* Ends everything within a lease. */
void lifecycle_end_inner_scope(struct lease *held);
void lifecycle_give_notice(struct lease *held);
void lifecycle_update_lease_timer(struct lease *held);
/* Whether a lease is so long over its limit that nobody can tell when it will be gone. */
bool lifecycle_lease_overstays(const struct lease *held);
/* An opportunistic lease that needs no notice any more is counted as such. */
bool preempt_is_leaving(const struct lease *held);
void lifecycle_set_lease_state(struct lease *held, enum lease_state state);
/* Fails with BERTH_ERROR_NOT_FOUND. */
int lifecycle_lease_not_found(uint64_t id, struct berth_error *error);

/* ---- give.c ---- */

/* The number that a lease has when it is a claim again. */
static inline uint64_t engine_lease_claim_id(const struct lease *held)
{
    return held->claim != 0 ? held->claim : held->entry.link.id;
}

/* Makes a lease a waiting claim again; everything within it ends. Returns NULL without memory, with
 * nothing changed. */
struct claim *direct_grant_requeue(struct lease *held, int64_t arrived, int64_t deadline);

/* ---- Events ---- */

static inline bool engine_wants_event(const struct engine *engine, enum event_type type)
{
    return (engine->sink.wanted & EVENT_BIT(type)) != 0;
}

void engine_notify(const struct engine *engine, struct engine_event event);
void engine_notify_granted(const struct lease *held, bool waited);
void engine_notify_request(const struct engine_request *request);

/* ---- explain.c, forecast.c ---- */

/* When a waiting claim will start as far as time limits tell, if those before it start in order.
 * Returns 0 or BERTH_ERROR_MEMORY. */
int forecast_start(const struct claim *claim, int64_t *ret_start);

/* Says why no device here could ever do. Returns BERTH_ERROR_IMPOSSIBLE or _MEMORY. */
int explain_never(struct engine_request *request, struct berth_error *error);

#endif
