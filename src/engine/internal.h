/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine's files do for each other, file by file, over what state.h keeps. Only for them.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "engine/state.h"

/* What tells when a slot was served: by lease or pick, then by its place therein. */
static inline uint64_t stamp_of(uint64_t id, uint32_t place)
{
    return (id << 20) + place;
}

static inline uint64_t id_of_stamp(uint64_t stamp)
{
    return stamp >> 20;
}

static inline void lease_set_owner(struct held *held, const struct claim_owner *owner)
{
    held->owner = *owner;
    held->touched |= LEASE_TOUCHED_ORIGIN;
}

/* ---- records.c: memory, numbers and timers ---- */

/* A record to be filled in; NULL: no memory. */
struct claim *claim_new(struct engine *engine);
/* Makes sure that the first spare lease is there and has room for so many slots. Returns 0 or
 * BERTH_ERROR_MEMORY. */
int lease_prepare(struct engine *engine, size_t slots);
void claim_recycle(struct engine *engine, struct claim *claim);
void records_finish(struct engine *engine);

/* Sets when something is due for an entry; never fails, since every record has a place for it. */
void timer_set(struct engine *engine, struct entry *entry, int64_t at);
void timer_remove(struct engine *engine, struct entry *entry);
static inline void timer_clear(struct engine *engine, struct entry *entry)
{
    if (entry->timer_place != 0)
        timer_remove(engine, entry);
    entry->at = TIME_NEVER;
}

static inline struct claim *claim_of(struct engine *engine, uint64_t id)
{
    return (struct claim *)(void *)id_map_find(&engine->claim_ids, id);
}

static inline struct held *lease_of(const struct engine *engine, uint64_t id)
{
    return (struct held *)(void *)id_map_find(&engine->lease_ids, id);
}

/* ---- request.c ---- */

/* The first fixed reason against a slot. */
enum filter_verdict request_verdict(const struct engine_request *request, uint32_t slot);
/* Works out again what the request accepts. Returns 0 or BERTH_ERROR_MEMORY, with nothing changed.
 */
int request_compile(struct engine_request *request);
void request_unreference(struct engine_request *request);
void request_free(struct engine_request *request);
/* Makes a request of this number. `share` is what one that names none has; 0: by the rules. */
int request_keep(struct engine *engine, const struct request *what, const struct party *party,
                 const struct policy *policy, uint64_t number, uint32_t share,
                 struct engine_request **ret_request, struct berth_error *error);
/* Finds the accounts that limit the request now, and what follows from them. */
void request_apply_limits(struct engine_request *request);
/* Whether the slot has as much memory free as the request wants. */
static inline bool request_finds_free(const struct engine_request *request, size_t slot)
{
    return !request->what.min_free.known ||
           filter_has_free(&request->what, &request->engine->machine.devices.items[slot]);
}

/* ---- domains.c ---- */

/* Gives the request its domain, and takes it back. Returns 0 or BERTH_ERROR_MEMORY. */
int domain_join(struct engine_request *request);
void domain_leave(struct engine_request *request);
uint32_t domain_uid(const struct engine *engine, uint32_t domain);

/* ---- people.c ---- */

/* Whether the slot is reserved, and not for whoever makes the request. */
bool is_for_others(const struct engine_request *request, uint32_t slot);
void people_finish(struct slot_people *people);

/* ---- scope.c ---- */

int scope_init(struct scope *scope, struct engine *engine, struct held *parent);
/* The bounds on tenants are as the settings say now. */
void scope_apply_rules(struct scope *scope);
/* The scope within a lease, made when there is none yet; NULL: no memory. */
struct scope *scope_within(struct held *parent);
void scope_finish(struct scope *scope);
/* The slot's facts changed: brings everything up to date. */
void scope_refresh(struct scope *scope, uint32_t slot);
/* The slot's leases changed: brings the sets up to date. */
void scope_refresh_sets(struct scope *scope, uint32_t slot);
static inline bool scope_is_full(const struct scope *scope)
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
static inline uint64_t ledger_holder(const struct ledger_slot *ledger)
{
    if (ledger->usage.brief.tenants == 0)
        return 0;
    return ledger->usage.brief.sharing == SHARING_EXCLUSIVE ? id_of_stamp(ledger->last_served)
                                                            : ledger->holder;
}
void usage_add(struct usage *usage, const struct engine_request *request);
void usage_subtract(struct usage *usage, const struct engine_request *request);
void hosts_add(struct host_usage *hosts, const struct engine_request *request,
               const uint32_t *slots, size_t slot_count);
void hosts_subtract(struct host_usage *hosts, const struct engine_request *request,
                    const uint32_t *slots, size_t slot_count);
/* Whether a limit holds the request back; *ret_max is how many devices of each replica it allows
 * otherwise. */
bool ledger_is_limited(const struct engine_request *request, size_t *ret_max);

/* What granting and ending do beyond the slots: hosts, limits, times, helpers. */
void lease_begin_rest(struct held *held);
void lease_end_rest(struct held *held);
/* Makes a lease that is gone as spare ones are, and its request one that it does not refer to. */
void lease_put_right(struct held *held);
/* Another lease on a slot that loses this one; 0 when there is none. */
uint64_t ledger_other_holder(const struct scope *scope, uint32_t slot, uint64_t id);

/* ---- lanes.c ---- */

enum priority claim_class(const struct claim *claim);
/* Makes room for one more lane. Returns 0 or BERTH_ERROR_MEMORY. */
int lanes_reserve(struct scope *scope);
void lane_append(struct claim *claim);
/* The same for a claim that may have arrived before others of its lane. */
void lane_insert(struct claim *claim);
void lane_remove(struct claim *claim);
/* What a lane accepts is about to change, or has changed. */
void lane_contest(struct engine_request *request, bool comes);
/* Orders the lanes again as of now: by the time that passed, or by other rules. */
void lanes_age(struct scope *scope);
void lanes_order(struct scope *scope);
/* How many lanes come before a new claim of this request. */
size_t lanes_before(const struct engine_request *request);
/* Starts a walk through all waiting claims of a scope, in order, and goes on. */
void lanes_rewind(struct scope *scope);
struct claim *lanes_next(struct scope *scope);
/* Ends the walk through the claims of this lane, which the last one was of. */
static inline void lane_skip(struct engine_request *request)
{
    request->cursor = NULL;
}

/* ---- walk.c ---- */

int walk_init(struct walk *walk, size_t size);
void walk_finish(struct walk *walk);
void walk_begin(struct walk *walk);

enum { WALK_JOINED = 0, WALK_START_UNKNOWN, WALK_START_KNOWN };

/* The request is blocked from here on. Returns WALK_JOINED, or whether its start is known when it
 * is the first of a group (the last of the heads then), or BERTH_ERROR_MEMORY. */
int walk_block(struct walk *walk, const struct engine_request *request);
/* Leaves in `set` what the request may take. Returns 0 or BERTH_ERROR_MEMORY. */
int walk_bar(struct walk *walk, const struct engine_request *request, struct bitset *set);
/* The same as far as no reservation with a start bars it. */
void walk_bar_closed(const struct walk *walk, const struct engine_request *request,
                     struct bitset *set);

/* ---- family.c ---- */

/* Puts the request into its family, and takes it out. Returns 0 or BERTH_ERROR_MEMORY. */
int family_join(struct engine_request *request);
void family_leave(struct engine_request *request);
/* Another of its family; NULL: it is the only one. */
const struct engine_request *family_other(const struct engine_request *request);

/* What the walk knows of the family; one that has to be compiled again has none. */
static inline struct family *family_known(const struct engine_request *request,
                                          const struct walk *walk)
{
    struct family *family = request->family;

    return family != NULL && family->walk == walk->number && !request->stale ? family : NULL;
}

/* Begins to know something of it; NULL: it has none. */
static inline struct family *family_learn(const struct engine_request *request,
                                          const struct walk *walk)
{
    struct family *family = request->stale ? NULL : request->family;

    if (family != NULL && family->walk != walk->number) {
        family->walk = walk->number;
        family->blocked = family->failed = false;
    }
    return family;
}

static inline uint64_t request_time(const struct engine_request *request)
{
    return request->what.time.known ? request->what.time.value : UINT64_MAX;
}

/* Whether one of them is blocked in this walk: another adds nothing. */
static inline bool family_is_blocked(const struct engine_request *request, const struct walk *walk)
{
    const struct family *family = family_known(request, walk);

    return family != NULL && family->blocked;
}

static inline void family_block(const struct engine_request *request, const struct walk *walk)
{
    struct family *family = family_learn(request, walk);

    if (family != NULL)
        family->blocked = true;
}

/* Whether the request cannot start in this walk, since one that takes no longer cannot. */
static inline bool family_has_failed(const struct engine_request *request, const struct walk *walk)
{
    const struct family *family = family_known(request, walk);

    return family != NULL && family->failed && family->failed_time <= request_time(request);
}

static inline void family_fail(const struct engine_request *request, const struct walk *walk)
{
    struct family *family = family_learn(request, walk);

    if (family == NULL || (family->failed && family->failed_time <= request_time(request)))
        return;
    family->failed = true;
    family->failed_time = request_time(request);
}

/* ---- reservation.c ---- */

/* When the request will be placeable as time limits tell. Returns 1, 0 (unknown), or
 * BERTH_ERROR_MEMORY. */
int reservation_start(const struct engine_request *request, int64_t *ret_start);
/* Where it will be placed then. Returns 0 or BERTH_ERROR_MEMORY. */
int reservation_place(const struct engine_request *request, int64_t start, struct bitset *ret_set);
/* Whether a counted request fits on the empty slots of the set. */
bool counted_fits(const struct engine_request *request, const struct bitset *set);
/* Puts into the engine's `future` what the scope's leases will take at that time. */
void imagine_time(const struct scope *scope, int64_t time);
/* A time limit was changed. */
void endings_forget(struct scope *scope);

/* ---- policy_tables.c ---- */

/* Forgets what policies worked out: the facts changed. */
void expected_forget(struct engine *engine);
void expected_finish(struct engine *engine);
/* What the policy worked out from the facts, now if need be; NULL for one that does nothing of the
 * kind. Returns 0 or BERTH_ERROR_MEMORY. */
int tables_find(struct engine *engine, const struct policy *policy, const void **ret_tables);

/* ---- offers.c: nodes by what they have to offer ---- */

/* A request for one replica, as nodes are asked about it. */
struct offer_question {
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
struct bid offer_of_node(const struct offer_question *question, size_t node,
                         struct policy_offer *ret_offer);
/* Finds the best node by asking each, or by what is kept. Returns as place_request; ret_offer is
 * what the node offers. */
int offer_find(const struct offer_question *question, size_t *ret_node,
               struct policy_offer *ret_offer);
/* How ranks and affinity decide among the request's bids. */
struct policy_question offer_equals(const struct engine_request *request);

/* ---- index.c ---- */

/* Whether it is kept what nodes have to offer to this question. */
bool index_applies(const struct offer_question *question);
/* Asks the nodes of a pool where answers are kept before the first claim does; where there is no
 * memory, that will. */
void index_begin(struct engine_request *request);
/* The node with the best bid; SIZE_MAX: none has any. Returns 0 or BERTH_ERROR_MEMORY. */
int index_find(const struct offer_question *question, size_t *ret_node);
void index_free(struct node_index *index);
/* What decides among equals changed. */
void index_forget_all(struct engine *engine);
void node_changes_finish(struct node_changes *changes);
/* Something of the node changed. */
void note_change(struct node_changes *changes, uint32_t node);
static inline void node_changed(struct engine *engine, uint32_t slot)
{
    if (engine->changes.latest != NULL)
        note_change(&engine->changes, engine->machine.devices.items[slot].host);
}

/* ---- place.c ---- */

/* How many replicas of the request the host has room for. */
uint32_t host_room(const struct request *what, const struct host *host,
                   const struct host_usage *usage);

enum { PLACE_LIMITED = 2 };

/* Places the request on slots of `legal` (all of them when NULL) by this usage (of the ledger when
 * NULL), into engine->chosen. Returns 1, 0 (it does not fit), PLACE_LIMITED or BERTH_ERROR_MEMORY.
 */
int place_request(const struct engine_request *request, const struct bitset *legal,
                  const struct usage *usage, const struct host_usage *hosts,
                  const struct bitset *avoided);
/* The same for a simple request on the empty slots. */
int place_simple(const struct engine_request *request);
/* By host: how many replicas it has room for when nothing is leased; NULL: any number. */
const uint32_t *hosts_when_idle(const struct engine_request *request);

/* ---- schedule.c, give_way.c ---- */

/* Grants what is due in the scope, in order, and gives notice where that helps. */
void settle(struct scope *scope);
void settle_all(struct engine *engine);
/* Whether a grant of this request may let those start who wait: only limits, known starts and
 * opportunistic leases make it so. */
bool grant_may_matter(const struct engine_request *request);
/* Settles after a change that can only have moved the sets of reservations. */
void settle_moved(struct scope *scope);
/* Whether a new claim may start now; its slots are in engine->chosen then. Returns as
 * place_request. */
int evaluate(struct engine_request *request);
/* Gives notice to opportunistic leases for the sake of waiting claims. Returns whether to any. */
bool give_way(struct scope *scope);

/* ---- devices.c ---- */

/* The facts changed: compiles all requests again. */
void recompile_requests(struct engine *engine);
/* Refuses the waiting claims of requests that are impossible. */
void refuse_impossible(struct engine *engine);

/* ---- lifecycle.c ---- */

/* A claim of this number that waits, but for its place in the lane; NULL: no memory. `owner` may be
 * NULL. */
struct claim *claim_begin(struct engine_request *request, uint64_t id, int64_t arrived,
                          int64_t deadline, const struct claim_owner *owner);
void refuse_claim(struct claim *claim, enum refusal reason);
/* Makes a lease of the chosen slots for a claim that never waited. Returns CLAIM_GRANTED or
 * BERTH_ERROR_MEMORY. */
int grant_chosen(struct engine_request *request, const struct claim_owner *owner, uint64_t *ret_id,
                 struct berth_error *error);
/* Advice to use a slot: it counts as served. */
void count_pick(struct scope *scope, uint32_t slot, uint64_t id, uint32_t place);
/* Ends everything within a lease. */
void end_inside(struct held *held);
void give_notice(struct held *held);
void lease_update_timer(struct held *held);
/* Whether a lease is so long over its limit that nobody can tell when it will be gone. */
bool lease_overstays(const struct held *held);
/* An opportunistic lease that needs no notice any more is counted as such. */
bool lease_is_going(const struct held *held);
void lease_set_state(struct held *held, enum lease_state state);
/* Fails with BERTH_ERROR_NOT_FOUND. */
int no_lease(uint64_t id, struct berth_error *error);

/* ---- give.c ---- */

/* The number that a lease has when it is a claim again. */
static inline uint64_t lease_claim_id(const struct held *held)
{
    return held->claim != 0 ? held->claim : held->entry.link.id;
}

/* Makes a lease a waiting claim again; everything within it ends. Returns NULL without memory, with
 * nothing changed. */
struct claim *lease_undo(struct held *held, int64_t arrived, int64_t deadline);

/* ---- Events ---- */

static inline bool is_wanted(const struct engine *engine, enum event_type type)
{
    return (engine->sink.wanted & EVENT_BIT(type)) != 0;
}

void tell(const struct engine *engine, struct engine_event event);
void tell_granted(const struct held *held, bool waited);
void tell_request(const struct engine_request *request);

/* ---- explain.c, forecast.c ---- */

/* When a waiting claim will start as far as time limits tell, if those before it start in order.
 * Returns 0 or BERTH_ERROR_MEMORY. */
int forecast_start(const struct claim *claim, int64_t *ret_start);

/* Says why no device here could ever do. Returns BERTH_ERROR_IMPOSSIBLE or _MEMORY. */
int explain_never(struct engine_request *request, struct berth_error *error);

#endif
