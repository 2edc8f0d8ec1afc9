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
#include "engine/placement/expected.h"
#include "engine/placement/filter.h"
#include "engine/placement/placement_search.h"

/* What claims and leases have in common: a number and perhaps a time at which something is due. */
struct engine_entry {
    struct id_link link;
    int64_t at;           /* TIME_NEVER: nothing is due */
    uint32_t timer_index; /* 1 + its place among the timers; 0: not there */
    bool is_lease;
};

/* A waiting claim. */
struct claim {
    struct engine_entry entry; /* `at` is its deadline */
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

struct lease {
    struct engine_entry entry; /* `at` is the earlier of time limit and end of the grace */
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
    struct scope *inner_scope;  /* claims within it; NULL: there never were any */
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
    uint64_t last_served; /* engine_stamp the last lease or pick; 0: never */
    uint64_t affinity;    /* the key that it served last; 0: none */
    bool usable;          /* present, well, not blocked */
};

/* A user or group that has a limit. */
struct account {
    struct list_link in_engine;
    uint32_t key;
    bool is_group;
    uint64_t max; /* millionths of devices */
    uint64_t used;
    uint64_t simulated; /* how much of `used` is only thought of: */
    uint64_t started;   /* what claims take that start in thought, */
    uint64_t gone;      /* as far as it is more than what leases gave back that go for them */
};

/* Requests that differ in nothing but their time limits, their classes and what is for people, and
 * what the walk of this number found out about them. */
struct request_family {
    struct id_link link; /* by a hash */
    struct list members;
    uint64_t walk;
    bool blocked;         /* one of them is */
    bool failed;          /* one of them did not fit, */
    uint64_t failed_time; /* with this time limit, the shortest; UINT64_MAX: none */
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
    bool fast_path;  /* plain, any one slot does, and nobody keeps what nodes offer */
    bool everything; /* accepts every slot that anybody accepts */
    bool counted;    /* fits where a node has enough empty slots that it accepts */
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
    size_t min;                /* devices of each replica */
    size_t max;
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
    bool restored;       /* by replay: nobody who opened it will close it */
    bool default_policy; /* it names none */
    uint64_t parent;
    struct list_link in_scope;
    struct request_family *family;
    struct list_link in_family;
    struct node_index *index; /* what each node has to offer; NULL: not kept */
};

/* What a policy worked out from the facts. */
struct policy_tables {
    const struct policy *policy;
    void *tables;
};

struct tables_list {
    VECTOR_OF(struct policy_tables);
};

/* Which nodes changed, for those who keep what nodes have to offer: the last changes in turn. */
struct node_changes {
    uint64_t count;   /* there were so far */
    uint32_t *nodes;  /* of the last ones: change i is at (i - 1) % capacity */
    uint64_t *latest; /* by node: its last change; NULL: nobody keeps anything */
    size_t capacity;
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

/* A lease that ends by its time limit; may be out of date. */
struct ending {
    int64_t at;
    uint64_t id;
    struct lease *held;
};

struct ending_list {
    VECTOR_OF(struct ending);
};

struct scope {
    struct engine *engine;
    struct lane_list lanes;
    struct lane_list walked; /* a heap: those that a walk through all claims is not through with */
    bool walk_began;
    struct ledger_slot *ledger; /* by slot */
    size_t part_count;
    struct lowest_set empty;      /* usable slots without leases */
    size_t pending;               /* ordinary claims that wait */
    size_t opportunistic_leases;  /* opportunistic leases */
    size_t opportunistic_leaving; /* those that need no notice any more */
    size_t limited;               /* leases with a time limit */
    int64_t next_age;             /* when a lane's first claim may rise; TIME_NEVER: none will */
    size_t wanted_all;            /* lanes of ordinary claims that accept everything */
    uint32_t *wanted_by;          /* by slot: the others that accept it */
    struct bitset contested;      /* where that is not 0 */
    struct bitset part;           /* usable slots that are shared and not full */

    struct ending_list endings; /* of its leases up to this one, the earliest first */
    uint64_t endings_last;

    struct policy_slot *slots;     /* by slot: what policies see, filled in when they are asked */
    struct host_usage *host_usage; /* by host */
    struct list requests;
    struct lease *parent;  /* NULL: the whole pool */
    struct bitset members; /* the parent's slots; not used for the whole pool */
    struct filter_terms terms;
    enum sharing only_sharing; /* what a shared parent allows beside exclusive; else unused */
    uint32_t only_domain;      /* of MPS, where that is what it allows */
    struct list_link in_engine;
};

/* A blocked claim that is the first of its group, within one walk. */
struct blocked_head {
    const struct engine_request *request;
    int64_t start;
    bool placed;          /* the set is known */
    struct bitset set;    /* reserved */
    struct bitset region; /* what its group accepts; all heads of a group together */
    size_t group;
    bool closed; /* its group has an unknown start: it is in walk->closed now */
};

/* What blocked claims bar, within one walk through the lanes. */
struct blocked_claims {
    VECTOR_OF(struct blocked_head);
    struct bitset closed;               /* regions of groups with an unknown start */
    struct bitset opportunistic_closed; /* what earlier opportunistic claims accept */
    bool barring;                       /* anything is barred at all */
    size_t ready;                       /* heads that have their sets */
    uint64_t number;                    /* of the walk; each has its own */
};

/* Empty devices of a group, in one counting. */
struct group_count {
    uint64_t counting;
    size_t over; /* beyond those for whole replicas */
};

struct slot_status {
    bool present;
    uint32_t blocks;
};

/* Who may have a slot. */
struct slot_allowed {
    bool reserved; /* false: everybody */
    uint32_t *uids;
    uint32_t *groups;
    size_t uid_count;
    size_t group_count;
};

struct timer_list {
    VECTOR_OF(struct engine_entry *); /* a heap, the earliest first */
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
    bool notifies_at_once; /* somebody listens to grants that never waited */
    bool retry;            /* a grant failed for lack of memory and is to be tried again */
    bool paused;           /* nothing is decided until engine_resume */
    int64_t now;
    uint64_t last_id;
    struct claim *spare_claims; /* linked by entry.link.next */
    struct lease *spare_leases;
    struct list leases; /* of all scopes, by id */
    struct id_map lease_ids;
    struct id_map claim_ids;
    uint32_t *chosen; /* slots of a decision */
    size_t chosen_count;
    struct scope root;
    struct timer_list timers;
    struct list scopes; /* the root first */
    struct engine_settings settings;
    struct engine_event granted; /* what engine_notify_granted tells */

    struct machine machine;
    size_t size; /* of all sets: the most slots there can be */
    size_t host_count;
    uint64_t last_request;
    struct slot_status *status;   /* by slot */
    struct slot_allowed *allowed; /* by slot */
    size_t ranked;                /* slots that are preferred to others */
    struct list accounts;
    struct domain_list domains;
    struct list orphans; /* requests within leases that ended */
    struct id_map families;
    size_t family_count;
    struct expected_list expected;
    struct tables_list tables;
    struct node_changes changes;
    uint64_t occupied; /* works that were put on hosts */
    struct chunk_list claim_chunks;
    struct chunk_list lease_chunks;

    /* Room to work in. */
    struct placement_search search;
    uint32_t *room;          /* by slot */
    uint32_t *host_room;     /* by host */
    struct usage *simulated; /* by slot: a ledger as it might be */
    struct usage *future;    /* by slot: a ledger as it will be */
    struct host_usage *simulated_hosts;
    struct host_usage *future_hosts;
    struct bitset legal;
    struct bitset from;
    struct bitset not_now;
    struct blocked_claims walk;
    struct ending_list endings_added;
    struct group_count *group_counts; /* by group of the search */
    uint64_t counting;                /* the last that went on in them */
};

#endif
