/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's inside: what it keeps. Only for the engine's own files.
 *
 * A scope is one place where claims compete: the whole pool, or the inside of a lease. It has a
 * ledger (what its leases take of each slot) and lanes (its waiting claims). All claims of one
 * compiled request stand in one lane, first come first; since they want the same, only the first
 * of a lane needs to be looked at.
 */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "base/bitset.h"
#include "base/id_map.h"
#include "base/list.h"
#include "base/lowest_set.h"
#include "base/vector.h"
#include "engine/engine.h"
#include "engine/filter.h"
#include "engine/placement_search.h"

/* What claims and leases have in common: a number and perhaps a time at which something is due. */
struct entry {
    struct id_link link;
    int64_t at;           /* TIME_NEVER: nothing is due */
    uint32_t timer_place; /* 1 + its place among the timers; 0: not there */
    bool is_lease;
};

/* A waiting claim. */
struct claim {
    struct entry entry; /* `at` is its deadline */
    struct list_link in_lane;
    int64_t arrived;
    struct engine_request *request;
    struct claim_owner owner;
};

/* Slots that a lease holds without memory of its own. */
enum { LEASE_OWN_SLOTS = 8 };

/* A lease. One that is spare is LEASE_HELD and not touched: it has no timer, time limit, notice,
 * claim, owner or inside, so that a plain grant need not say so again. */
enum {
    LEASE_TOUCHED_ORIGIN = 1, /* claim, owner */
    LEASE_TOUCHED_REST = 2,   /* state, times, hosts, limits, inside */
    LEASE_COUNTED = 4,        /* it is one of its request's references */
};

struct held {
    struct entry entry; /* `at` is the earlier of time limit and end of the grace */
    struct engine_request *request;
    uint32_t *slots; /* own_slots, or allocated and kept with the record */
    uint32_t slot_count;
    uint32_t replicas;
    uint32_t slot_capacity;
    uint32_t own_slots[LEASE_OWN_SLOTS];
    enum lease_state state;
    unsigned touched; /* LEASE_TOUCHED: what is not as in a spare one, to be put right at the end */
    uint64_t claim;
    int64_t granted;
    int64_t expires;
    int64_t force_at;
    struct claim_owner owner;
    struct scope *inside;       /* claims within it; NULL: there never were any */
    struct list_link in_engine; /* by id */
    bool candidate;             /* while it is worked out who gives way: for one claim */
    bool chosen;                /* for all claims */
};

/* What the leases on a slot take of it. */
struct usage {
    /* What an exclusive lease changes, in one word. */
    struct usage_brief {
        uint32_t share;
        uint16_t tenants;
        uint16_t sharing; /* enum sharing */
    } brief;
    uint32_t domain;     /* of MPS tenants; no matter otherwise */
    uint32_t unreserved; /* tenants that count with no memory */
    uint64_t memory;     /* that the others count with; 0 without tenants */
};

/* One slot of a scope: what is on it, and what it remembers. One cache line. */
struct ledger_slot {
    struct usage usage;
    uint64_t holder;      /* a lease that shares it; 0: none */
    uint64_t served;      /* how often it was given or picked */
    uint64_t last_served; /* stamp_of the last lease or pick; 0: never */
    uint64_t affinity;    /* the key that it served last; 0: none */
    bool usable;          /* present, well, not blocked */
};

/* What leases take of a host. */
struct host_usage {
    uint64_t cpus;
    uint64_t memory;
};

/* A user or group that has a limit. */
struct account {
    struct list_link in_engine;
    uint32_t key;
    bool is_group;
    uint64_t most; /* millionths of devices */
    uint64_t used;
    uint64_t imagined; /* how much of `used` is only thought of: */
    uint64_t started;  /* what claims take that start in thought, */
    uint64_t gone;     /* as far as it is more than what leases gave back that go for them */
};

/* A request as the engine keeps it, with its lane. */
struct engine_request {
    /* What most claims look at stands together. */
    struct engine *engine;
    struct scope *scope; /* NULL: the lease that it was made within ended */

    /* Compiled from the facts. */
    bool could_ever; /* by the facts */
    bool possible;   /* by the limits too */
    bool stale;      /* there was no memory to compile it again */
    bool simple;     /* exclusive, a fixed number, no choice to make: the lowest slots do */
    bool plain;      /* simple, and a lease of it is nothing but slots */
    bool swift;      /* plain, and any one slot does */
    bool everything; /* accepts every slot that anybody accepts */
    uint32_t replicas;
    struct usage alone; /* of a slot that has only one lease of this request */

    /* Its lane. */
    struct list waiting;
    size_t waiting_count;
    enum priority lane_class; /* of the first, as of the last ordering */
    uint64_t lane_id;
    struct claim *cursor; /* for walks through several lanes */

    size_t references; /* the opener's, claims', and those of leases that are counted */
    uint64_t number;
    uint64_t affinity;
    size_t account_count;
    struct account **accounts; /* that limit it; room for 1 + group_count */
    size_t least;              /* devices of each replica */
    size_t most;
    uint64_t memory; /* that it counts with on each device, 0 when with none */
    uint32_t share;  /* the same */
    uint32_t uid;
    uint32_t domain; /* 0: does not share by MPS */
    struct bitset accepts;
    struct bitset avoided;
    const struct policy *policy;

    struct request what;
    uint32_t *groups;
    size_t group_count;
    struct device_id_list mask;
    bool has_mask;
    bool restored;     /* by replay: nobody who opened it will close it */
    bool usual_policy; /* it names none */
    uint64_t parent;
    struct list_link in_scope;
};

/* Who may share a device by MPS with each other; numbered from 1. */
struct mps_domain {
    size_t references; /* requests; 0: spare */
    uint32_t uid;
    struct request what; /* only what says its directories */
};

struct domain_list {
    VECTOR_OF(struct mps_domain);
};

struct lane_list {
    VECTOR_OF(struct engine_request *); /* in the order in which their first claims are served */
};

struct scope {
    struct engine *engine;
    struct lane_list lanes;
    struct lane_list walked; /* a heap: those that a walk through all claims is not through with */
    bool walk_began;
    struct ledger_slot *ledger; /* by slot */
    size_t part_count;
    struct lowest_set empty; /* usable slots without leases */
    size_t pending;          /* ordinary claims that wait */
    size_t helpers;          /* opportunistic leases */
    size_t helpers_noticed;  /* those that need no notice any more */
    size_t limited;          /* leases with a time limit */
    int64_t next_age;        /* when a lane's first claim may rise; TIME_NEVER: none will */
    size_t wanted_all;       /* lanes of ordinary claims that accept everything */
    uint32_t *wanted_by;     /* by slot: the others that accept it */
    struct bitset contested; /* where that is not 0 */
    struct bitset part;      /* usable slots that are shared and not full */

    struct policy_slot *slots;     /* by slot: what policies see, filled in when they are asked */
    struct host_usage *host_usage; /* by host */
    struct list requests;
    struct held *parent;   /* NULL: the whole pool */
    struct bitset members; /* the parent's slots; not used for the whole pool */
    struct filter_terms terms;
    enum sharing only_sharing; /* what a shared parent allows beside exclusive; else unused */
    uint32_t only_domain;      /* of MPS, where that is what it allows */
    struct list_link in_engine;
};

/* A blocked claim that is the first of its group, within one walk. */
struct head {
    int64_t start;
    struct bitset set;    /* reserved */
    struct bitset region; /* what its group accepts; all heads of a group together */
    size_t group;
    bool closed; /* its group has an unknown start: it is in walk->closed now */
};

/* What blocked claims bar, within one walk through the lanes. */
struct walk {
    VECTOR_OF(struct head);
    struct bitset closed;        /* regions of groups with an unknown start */
    struct bitset helper_closed; /* what earlier opportunistic claims accept */
    bool barring;                /* anything is barred at all */
    size_t ready;                /* heads that have their sets */
};

struct slot_status {
    bool present;
    uint32_t blocks;
};

/* Who may have a slot. */
struct slot_people {
    bool reserved; /* false: everybody */
    uint32_t *uids;
    uint32_t *groups;
    size_t uid_count;
    size_t group_count;
};

struct timer_list {
    VECTOR_OF(struct entry *); /* a heap, the earliest first */
};

struct time_list {
    VECTOR_OF(int64_t);
};

struct chunk_list {
    VECTOR_OF(void *);
};

struct engine {
    /* What most claims look at stands together. */
    struct event_sink sink;
    bool tells_at_once; /* somebody listens to grants that never waited */
    bool retry;         /* a grant failed for lack of memory and is to be tried again */
    bool paused;        /* nothing is decided until engine_resume */
    int64_t now;
    uint64_t last_id;
    struct claim *spare_claims; /* linked by entry.link.next */
    struct held *spare_leases;
    struct list leases; /* of all scopes, by id */
    struct id_map lease_ids;
    struct id_map claim_ids;
    uint32_t *chosen; /* slots of a decision */
    size_t chosen_count;
    struct scope root;
    struct timer_list timers;
    struct list scopes; /* the root first */
    struct engine_settings settings;
    struct engine_event granted; /* what tell_granted tells */

    struct machine machine;
    size_t size; /* of all sets: the most slots there can be */
    size_t host_count;
    uint64_t last_request;
    struct slot_status *status; /* by slot */
    struct slot_people *people; /* by slot */
    size_t ranked;              /* slots that are preferred to others */
    struct list accounts;
    struct domain_list domains;
    struct list orphans; /* requests within leases that ended */
    struct chunk_list claim_chunks;
    struct chunk_list lease_chunks;

    /* Room to work in. */
    struct search search;
    uint32_t *room;         /* by slot */
    uint32_t *host_room;    /* by host */
    struct usage *imagined; /* by slot: a ledger as it might be */
    struct usage *future;   /* by slot: a ledger as it will be */
    struct host_usage *imagined_hosts;
    struct host_usage *future_hosts;
    struct bitset legal;
    struct bitset from;
    struct bitset not_now;
    struct walk walk;
    struct time_list times;
};

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
/* Whether a limit holds the request back; *ret_most is how many devices of each replica it allows
 * otherwise. */
bool ledger_is_limited(const struct engine_request *request, size_t *ret_most);

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
/* Orders the lanes again as of now. */
void lanes_age(struct scope *scope);
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
/* The request is blocked from here on. Returns 0 or BERTH_ERROR_MEMORY. */
int walk_block(struct walk *walk, const struct engine_request *request);
/* Leaves in `set` what the request may take. */
void walk_bar(const struct walk *walk, const struct engine_request *request, struct bitset *set);
/* When the request will be placeable as time limits tell, and where. Returns 1, 0 (unknown), or
 * BERTH_ERROR_MEMORY. */
int reservation_find(const struct engine_request *request, struct bitset *ret_set,
                     int64_t *ret_start);

/* ---- place.c ---- */

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
/* Puts into the engine's `future` what the scope's leases will take at that time. */
void imagine_time(const struct scope *scope, int64_t time);

/* Says why no device here could ever do. Returns BERTH_ERROR_IMPOSSIBLE or _MEMORY. */
int explain_never(struct engine_request *request, struct berth_error *error);

#endif
