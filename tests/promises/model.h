/* SPDX-License-Identifier: Apache-2.0
 *
 * A second, slow and plain implementation of docs/FAIRNESS.md, written from that page alone. It
 * follows an engine's input and events, and says what may and what must happen.
 *
 * A set of slots is a bit mask. A scope is 0 (the pool) or the id of the lease in which claims are
 * made. Each scope has its own devices, leases and queue.
 */
#ifndef PROMISES_MODEL_H
#define PROMISES_MODEL_H

#include "promises/history.h"

enum {
    LEASES_MAX = 128,
    CLAIMS_MAX = 64,
    LEASE_SLOTS_MAX = 64,
    ASKINGS_MAX = 512,
    MODEL_GROUPS_MAX = 32,
};

struct model_device {
    const struct device_plan *plan;
    bool here; /* was ever added */
    bool present;
    uint32_t blocks;
    enum health health;
    bool free_known;
    uint64_t free;
    uint64_t last_lease; /* the last lease that was granted on it; 0: none */
    bool reserved;       /* only `people` may use it */
    struct people people;
    uint32_t rank; /* 0: none */

    /* Facts that only policies use. */
    struct figure utilization;
    uint64_t queued;
    uint64_t active;
    uint32_t weight;
};

struct model_lease {
    uint64_t id;
    uint64_t claim;
    uint64_t scope;
    const struct asking *asking;
    struct reference origin;
    uint32_t slots[LEASE_SLOTS_MAX];
    uint32_t slot_count;
    enum lease_state state;
    int64_t arrived; /* when its claim was made */
    int64_t granted;
    int64_t expires;
    int64_t force_at;
    bool overstayed; /* check_queue() has seen it overstay */
};

/* A waiting claim, or one that is about to be made. */
struct model_claim {
    uint64_t id;
    uint64_t scope;
    const struct asking *asking;
    struct reference origin;
    int64_t arrived;
    int64_t deadline;

    /* The reservation that the engine last reported. */
    bool reserved;
    int64_t start;
    slot_set set;
    /* The earliest start that was reported. An event that may move it clears `promised`. */
    bool promised;
    int64_t promised_start;
};

struct model {
    const struct plan *plan;
    int64_t now;
    struct model_device devices[SLOTS_MAX];
    struct model_lease leases[LEASES_MAX]; /* lowest id first */
    size_t lease_count;
    struct model_claim claims[CLAIMS_MAX]; /* lowest id first */
    size_t claim_count;
    uint64_t user_limits[USERS];
    uint64_t group_limits[GROUPS];
    struct rules_plan rules;
    uint32_t shares[ASKINGS_MAX]; /* share of each device, by the request's number; 0: not made */
};

void model_init(struct model *model, const struct plan *plan);

struct model_lease *model_lease(struct model *model, uint64_t id);
struct model_claim *model_claim(struct model *model, uint64_t id);
void model_remove_lease(struct model *model, uint64_t id);
void model_remove_claim(struct model *model, uint64_t id);
/* Inserts a claim, ordered by id. */
void model_add_claim(struct model *model, const struct model_claim *claim);
/* Returns whether the lease is `ancestor` or within it. */
bool model_is_within(struct model *model, const struct model_lease *lease, uint64_t ancestor);

/* Clears the promised starts of a scope, or of all scopes (SCOPE_ALL), after an event that may move
 * them. */
#define SCOPE_ALL UINT64_MAX
void model_excuse(struct model *model, uint64_t scope);

/* ---- Devices (model_room.c) ---- */

/* The leases' use of each slot. */
struct occupancy {
    struct {
        uint32_t tenants;
        uint64_t share;
        uint64_t memory;   /* that its tenants are counted with (FAIRNESS.md section 9) */
        uint64_t reserved; /* the part of `memory` that tenants reserved */
        uint32_t open;     /* tenants that are counted with no memory */
        enum sharing sharing;
        const struct asking *last; /* the request of the last tenant */
        bool mixed;                /* its tenants differ in mode, MPS user or MPS directories */
    } slots[SLOTS_MAX];
};

/* A moment, and the leases that count as gone then. */
struct moment {
    int64_t at;           /* leases with a limit up to this are gone; if it is now, none is */
    bool without_helpers; /* opportunistic leases are gone */
    bool without_noticed; /* opportunistic leases are gone, except those in state LEASE_HELD */
    bool without_late;    /* leases past their limits are gone, unless they overstay */
    const bool *left_out; /* by index of the lease: these are gone too; NULL: none */
};

/* Returns the share of each device that a claim takes. It stays the same after model_make(). */
uint32_t asking_share(const struct model *model, uint64_t scope, const struct asking *asking);
/* Records the share of a request that is made now. */
void model_make(struct model *model, uint64_t scope, const struct asking *asking);
uint32_t asking_tenants(const struct model *model, const struct asking *asking);

/* Returns the devices that a claim accepts. */
slot_set model_accepts(const struct model *model, uint64_t scope, const struct asking *asking);

/* Returns whether a lease is past its limit by twice the grace or more. */
bool model_overstays(const struct model *model, const struct model_lease *lease);

bool model_is_usable(const struct model *model, uint64_t scope, unsigned slot);

void model_occupancy(const struct model *model, uint64_t scope, const struct moment *moment,
                     struct occupancy *ret_occupancy);

/* ---- Memory and MPS (model_sharing.c) ---- */

/* Returns the memory that a tenant is counted with; 0: none. */
uint64_t asking_memory(const struct asking *asking);
/* Returns how many tenants fit into the memory, one after the other. `size` is the memory of the
 * device, or of the scope's part of the device. Other tenants are counted with `beside` bytes. */
uint32_t model_memory_room(const struct asking *asking, struct optional_number size,
                           uint64_t beside);
/* Returns the same by the last sample of free memory. */
uint32_t model_sample_room(const struct model_device *device, const struct asking *asking,
                           const struct occupancy *occupancy, unsigned slot);
/* Returns whether one MPS control daemon can serve both. */
bool model_is_one_mps(const struct asking *one, const struct asking *other);

/* ---- Room (model_room.c) ---- */

/* Sets `room`, by slot, to the number of replicas that each slot has room for. Returns the slots
 * that have room for at least one. */
slot_set model_room(const struct model *model, uint64_t scope, const struct asking *asking,
                    const struct occupancy *occupancy, uint32_t room[SLOTS_MAX]);

/* Does the same as if every accepted device were usable and empty, with all its memory free. */
slot_set model_room_at_best(const struct model *model, uint64_t scope, const struct asking *asking,
                            uint32_t room[SLOTS_MAX]);

/* Returns the minimum and maximum size of a replica. For `all`, both are the number of devices that
 * the claim accepts, and other devices are removed from *slots. */
void model_bounds(const struct model *model, uint64_t scope, const struct asking *asking,
                  slot_set *slots, uint32_t *ret_min, uint32_t *ret_max);

/* Returns whether all replicas fit, each with `size` devices of `slots`. */
bool model_fits(const struct model *model, const struct asking *asking, slot_set slots,
                const uint32_t room[SLOTS_MAX], uint32_t size);

/* Returns the largest size of a replica with which the claim is placeable in `slots`, and within
 * the limits if `within_limits`; 0: none. */
uint32_t model_largest(const struct model *model, uint64_t scope, const struct asking *asking,
                       slot_set slots, const uint32_t room[SLOTS_MAX], bool within_limits);

/* Returns the result of granting these slots to a request: 0, BERTH_ERROR_INVALID or _BUSY. */
int model_judge_gift(const struct model *model, uint64_t scope, const struct asking *asking,
                     slot_set slots);

/* Returns whether two devices may be in one replica. */
bool model_may_be_together(const struct model *model, const struct asking *asking, unsigned one,
                           unsigned other);

/* ---- Limits (model_limits.c) ---- */

/* Returns how much the leases of a user or group hold, in millionths. */
uint64_t model_user_holds(const struct model *model, uint32_t uid);
uint64_t model_group_holds(const struct model *model, uint32_t group);
/* Returns whether the limits allow replicas of this size in addition to the present leases. */
bool model_within_limits(const struct model *model, uint64_t scope, const struct asking *asking,
                         uint32_t size);
/* Returns whether its user or one of its groups has a limit. */
bool model_has_limit(const struct model *model, uint64_t scope, const struct asking *asking);
bool model_held_by_limit(const struct model *model, uint64_t scope, const struct asking *asking);
bool model_impossible(const struct model *model, uint64_t scope, const struct asking *asking);

/* ---- Queue order and starts (model_order.c) ---- */

/* Returns how long a claim waits for each class that it rises. */
int64_t model_age_step(const struct model *model);
enum priority model_class(const struct model *model, const struct model_claim *claim);
/* Returns the time when the next claim rises one class. */
int64_t model_next_ageing(const struct model *model);
/* Returns whether `one` comes before `other`. */
bool model_before(const struct model *model, const struct model_claim *one,
                  const struct model_claim *other);
/* Lists the waiting claims of a scope in order. Returns their number. */
size_t model_order(const struct model *model, uint64_t scope,
                   const struct model_claim *ret_claims[CLAIMS_MAX]);

struct model_group {
    slot_set region;
    const struct model_claim *firsts[CLAIMS_MAX];
    size_t first_count;
};

struct model_groups {
    struct model_group groups[MODEL_GROUPS_MAX];
    size_t count;
};

/* Adds a blocked claim. Call it for the claims in order. Returns whether the claim is the first of
 * its group. */
bool model_groups_add(const struct model *model, struct model_groups *groups,
                      const struct model_claim *claim);

/* Returns the groups of the ordinary claims that wait before the claim and that no limit holds. */
void model_groups_before(const struct model *model, const struct model_claim *claim,
                         struct model_groups *ret_groups);

/* Returns the start of a claim's reservation by the rules; TIME_NEVER: unknown. */
int64_t model_start(const struct model *model, const struct model_claim *claim);
/* Returns the slots with room for the claim at `at`, as reservations count it. */
slot_set model_room_at(const struct model *model, const struct model_claim *claim, int64_t at,
                       uint32_t room[SLOTS_MAX]);

/* Returns the slots that the groups bar for the claim. Uses the starts and sets that the engine
 * reported. */
slot_set model_bars(const struct model *model, const struct model_groups *groups,
                    const struct model_claim *claim);

/* Returns the slots that the queue leaves open to the claim, behind these groups. */
slot_set model_open_to(const struct model *model, const struct model_groups *groups,
                       const struct model_claim *claim);

/* Returns the size with which the claim may start now; 0: it may not. */
uint32_t model_may_start(const struct model *model, const struct model_groups *groups,
                         const struct model_claim *claim, slot_set *ret_allowed);

/* Returns the result of a claim that is made now: BERTH_ERROR_NO_DEVICE, _IMPOSSIBLE, CLAIM_WAITS
 * or CLAIM_GRANTED. */
int model_predict(const struct model *model, const struct model_claim *claim, uint32_t *ret_size,
                  slot_set *ret_allowed);

#endif
