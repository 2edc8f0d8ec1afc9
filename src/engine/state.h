/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's data structures. Private to the engine.
 *
 * A scope is where claims compete: the whole pool, or the inside of a lease. It has a ledger (the
 * usage of each slot by its leases) and lanes (its waiting claims). All claims of one compiled
 * request wait in one lane, in order of arrival. Since they need the same, the scheduler considers
 * only the first claim of a lane.
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

/* The common part of claims and leases: an id, and perhaps a timer. */
struct engine_entry {
    struct id_link link;
    int64_t at;           /* when the timer fires; TIME_NEVER: there is none */
    uint32_t timer_index; /* 1 + the index among the timers; 0: not there */
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

/* Slots that fit into the lease's record. */
enum { LEASE_OWN_SLOTS = 8 };

/* Members of a lease that differ from those of a spare lease. A spare lease is LEASE_HELD and has
 * no timer, time limit, notice, claim, owner or inner scope, so that a plain grant need not reset
 * them.
 */
enum {
    LEASE_TOUCHED_ORIGIN = 1, /* claim, owner */
    LEASE_TOUCHED_REST = 2,   /* state, times, hosts, limits, inner scope */
    LEASE_COUNTED = 4,        /* it holds a reference to its request */
};

struct lease {
    struct engine_entry entry; /* `at` is the next of time limit, end of grace and overstay */
    struct engine_request *request;
    uint32_t *slots; /* own_slots, or allocated and kept with the record */
    uint32_t slot_count;
    uint32_t replicas;
    uint32_t slot_capacity;
    uint32_t own_slots[LEASE_OWN_SLOTS];
    enum lease_state state;
    unsigned touched; /* LEASE_TOUCHED_* bits: members to reset at the end */
    uint64_t claim;
    int64_t granted;
    int64_t expires;
    int64_t force_at;
    struct claim_owner owner;
    struct scope *inner_scope;  /* for claims within it; NULL: there were none */
    struct list_link in_engine; /* in order of ids */
    bool candidate;             /* during preemption: may be ended for the present claim */
    bool chosen;                /* during preemption: will be ended for some claim */
};

/* The usage of a slot by its leases. */
struct usage {
    /* The part that an exclusive lease changes, in one machine word. */
    struct usage_brief {
        uint32_t share;
        uint16_t tenants;
        uint16_t sharing; /* enum sharing */
    } brief;
    uint32_t domain;     /* of MPS tenants; otherwise unused */
    uint32_t unreserved; /* tenants that are counted with no memory (FAIRNESS.md section 9) */
    uint64_t memory;     /* bytes that the other tenants are counted with; 0 without tenants */
};

/* One slot of a scope: its usage and its past. Fits into one cache line. */
struct ledger_slot {
    struct usage usage;
    uint64_t holder;      /* one of the leases that share it; valid only while it is shared */
    uint64_t served;      /* number of grants and picks */
    uint64_t last_served; /* engine_stamp() of the last lease or pick; 0: never */
    uint64_t affinity;    /* the last affinity key that it served; 0: none */
    bool usable;          /* present, not sick, not blocked */
};

/* A user or group with a limit. */
struct account {
    struct list_link in_engine;
    uint32_t key;
    bool is_group;
    uint64_t max; /* millionths of devices */
    uint64_t used;
    /* During preemption (FAIRNESS.md section 5): `simulated` is a part of `used`. It is the amount
     * by which `started`, the use of claims that start in the simulation, exceeds `gone`, the use
     * of leases that end for them. */
    uint64_t simulated;
    uint64_t started;
    uint64_t gone;
};

/* Requests that differ only in time limit, class and descriptive members, and the results of one
 * walk through the queue for them. */
struct request_family {
    struct id_link link; /* by a hash */
    struct list members;
    uint64_t walk;        /* the number of the walk */
    bool blocked;         /* one of the requests is blocked */
    bool failed;          /* one of the requests did not fit */
    uint64_t failed_time; /* the shortest time limit of those that did not fit; UINT64_MAX: none */
};

/* A compiled request, with its lane. */
struct engine_request {
    /* Members that most claims use are together. */
    struct engine *engine;
    struct scope *scope; /* NULL: the lease that it was made within ended */

    /* Compiled from the facts. */
    bool could_ever; /* the devices here can satisfy it */
    bool possible;   /* the devices and the limits can satisfy it */
    bool stale;      /* there was no memory to compile it again */
    bool simple;     /* exclusive, a fixed number, no choice: it takes the lowest slots */
    bool plain;      /* simple, and its leases need nothing but slots */
    bool fast_path;  /* plain, needs any one slot, and no ratings of nodes are cached */
    bool everything; /* accepts every slot that any request accepts */
    bool counted;    /* fits on a node that has enough empty slots that it accepts */
    uint32_t replicas;
    struct usage alone; /* of a slot whose only lease is one of this request */

    /* Its lane. */
    struct list waiting;
    size_t waiting_count;
    enum priority lane_class; /* of the first claim, when the lanes were last ordered */
    uint64_t lane_id;
    struct claim *cursor; /* the lane's next claim in a walk; NULL: none */

    size_t references; /* of the opener, the claims, and the leases with LEASE_COUNTED */
    uint64_t number;
    uint64_t affinity;
    size_t account_count;
    struct account **accounts; /* the accounts that limit it; room for 1 + group_count */
    size_t min;                /* devices of each replica */
    size_t max;
    uint64_t memory; /* bytes that it is counted with on each device; 0: none */
    uint32_t share;  /* of each device, in millionths */
    uint32_t uid;
    uint32_t domain; /* 0: it does not share by MPS */
    struct bitset accepts;
    struct bitset avoided;
    const struct policy *policy;

    struct request what;
    uint32_t *groups;
    size_t group_count;
    struct device_id_list mask;
    bool has_mask;
    bool restored;       /* by replay: its opener is gone and will not close it */
    bool default_policy; /* it names no policy, or an unknown one */
    uint64_t parent;
    struct list_link in_scope;
    struct request_family *family;
    struct list_link in_family;
    struct node_index *index; /* the cached ratings of nodes; NULL: none */
};

/* The tables that a policy computed from the facts. */
struct policy_tables {
    const struct policy *policy;
    void *tables;
};

struct tables_list {
    VECTOR_OF(struct policy_tables);
};

/* The last changes of nodes in a ring, for caches of ratings. */
struct node_changes {
    uint64_t count;   /* of all changes so far */
    uint32_t *nodes;  /* of the last changes: change i is at (i - 1) % capacity */
    uint64_t *latest; /* by node: its last change; NULL: no ratings are cached */
    size_t capacity;
};

/* Requests that may share a device by MPS with each other (FAIRNESS.md section 10). Domains are
 * numbered from 1. */
struct mps_domain {
    size_t references; /* requests; 0: spare */
    uint32_t uid;
    struct request what; /* only the members that determine the directories */
};

struct domain_list {
    VECTOR_OF(struct mps_domain);
};

struct lane_list {
    VECTOR_OF(struct engine_request *); /* in the order of their first claims in the queue */
};

/* The end of a lease by its time limit; may be out of date. */
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
    struct lane_list walked; /* a heap: lanes that a walk through all claims has not finished */
    bool walk_began;
    struct ledger_slot *ledger; /* by slot */
    size_t part_count;
    struct lowest_set empty; /* usable slots without leases */
    size_t pending;          /* waiting ordinary claims */
    size_t opportunistic_leases;
    size_t opportunistic_leaving; /* opportunistic leases that need no notice any more */
    size_t limited;               /* leases with a time limit */
    int64_t next_age;        /* when a lane's first claim may rise by a class; TIME_NEVER: none */
    size_t wanted_all;       /* lanes of ordinary claims that accept all slots */
    uint32_t *wanted_by;     /* by slot: other lanes of ordinary claims that accept it */
    struct bitset contested; /* slots whose wanted_by is not 0 */
    struct bitset part;      /* usable slots that are shared and not full */

    struct ending_list endings; /* of leases with ids up to endings_last, the earliest first */
    uint64_t endings_last;

    struct policy_slot *slots;     /* by slot: the policies' view, filled in before their calls */
    struct host_usage *host_usage; /* by host */
    struct list requests;
    struct lease *parent;  /* NULL: the whole pool */
    struct bitset members; /* the parent's slots; not used for the whole pool */
    struct filter_terms terms;
    enum sharing only_sharing; /* the mode that a shared parent allows; otherwise unused */
    uint32_t only_domain;      /* the domain that it allows if that mode is MPS */
    struct list_link in_engine;
};

/* A blocked claim that is the first of its group, during one walk (FAIRNESS.md section 3). */
struct blocked_head {
    const struct engine_request *request;
    int64_t start;
    bool placed;          /* `set` has been computed */
    struct bitset set;    /* the reserved slots */
    struct bitset region; /* the group's region is the union over all its heads */
    size_t group;
    bool closed; /* its group has an unknown start: its region is in blocked_claims.closed */
};

/* The slots that blocked claims bar, during one walk through the lanes (FAIRNESS.md section 4). */
struct blocked_claims {
    VECTOR_OF(struct blocked_head);
    struct bitset closed;               /* regions of groups with an unknown start */
    struct bitset opportunistic_closed; /* slots that earlier opportunistic claims accept */
    bool barring;                       /* at least one slot is barred */
    size_t ready;                       /* heads whose sets are allocated */
    uint64_t number;                    /* of the walk */
};

/* The empty devices of a group of devices, in one counting. */
struct group_count {
    uint64_t counting; /* the number of the counting */
    size_t over;       /* devices left over, too few for another replica */
};

struct slot_status {
    bool present;
    uint32_t blocks;
};

/* The users and groups that a slot is reserved for. */
struct slot_allowed {
    bool reserved; /* false: for all users */
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
    /* Members that most claims use are together. */
    struct event_sink sink;
    bool notifies_at_once; /* the sink gets grants of claims that never waited */
    bool retry;            /* a grant failed for lack of memory and must be tried again */
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
    struct engine_event granted; /* for engine_notify_granted() */

    struct machine machine;
    size_t size; /* of all sets: the maximum number of slots */
    size_t host_count;
    uint64_t last_request;
    struct slot_status *status;   /* by slot */
    struct slot_allowed *allowed; /* by slot */
    size_t ranked;                /* number of preferred slots */
    struct list accounts;
    struct domain_list domains;
    struct list orphans; /* open requests within leases that ended */
    struct id_map families;
    size_t family_count;
    struct expected_list expected;
    struct tables_list tables;
    struct node_changes changes;
    uint64_t occupied; /* calls of engine_host_occupy() that succeeded */
    struct chunk_list claim_chunks;
    struct chunk_list lease_chunks;

    /* Scratch memory. */
    struct placement_search search;
    uint32_t *room;          /* by slot */
    uint32_t *host_room;     /* by host */
    struct usage *simulated; /* by slot: the usage during preemption */
    struct usage *future;    /* by slot: the usage at a later time */
    struct host_usage *simulated_hosts;
    struct host_usage *future_hosts;
    struct bitset legal;
    struct bitset from;
    struct bitset not_now;
    struct blocked_claims walk;
    struct ending_list endings_added;
    struct group_count *group_counts; /* by group of the search */
    uint64_t counting;                /* the number of the last counting */
};

#endif
