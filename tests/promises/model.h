/* SPDX-License-Identifier: Apache-2.0
 *
 * A second, slow and plain implementation of docs/FAIRNESS.md, written from that page alone. It
 * follows an engine's input and events, and says what may and what must happen.
 *
 * Slots are bits of a number. A scope is 0, or the id of the lease that claims are made within; it
 * has its own devices, leases and queue.
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
    uint64_t last_lease; /* that was granted on it */
    bool reserved;       /* for these: */
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
    int64_t arrived; /* as a claim */
    int64_t granted;
    int64_t expires;
    int64_t force_at;
    bool overstayed; /* it was seen to */
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
    /* The earliest start that was promised, as long as nothing happens that may move it. */
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
    uint32_t shares[ASKINGS_MAX]; /* by number: what it takes of each device; 0: not made yet */
};

void model_init(struct model *model, const struct plan *plan);

struct model_lease *model_lease(struct model *model, uint64_t id);
struct model_claim *model_claim(struct model *model, uint64_t id);
void model_remove_lease(struct model *model, uint64_t id);
void model_remove_claim(struct model *model, uint64_t id);
/* Adds a claim in its place by its id. */
void model_add_claim(struct model *model, const struct model_claim *claim);
/* Whether the lease is `ancestor` or within it. */
bool model_is_within(struct model *model, const struct model_lease *lease, uint64_t ancestor);

/* Something happened that may move reservations: those of a scope, or of all (SCOPE_ALL). */
#define SCOPE_ALL UINT64_MAX
void model_excuse(struct model *model, uint64_t scope);

/* ---- Devices (model_room.c) ---- */

/* The leases' use of each slot. */
struct occupancy {
    struct {
        uint32_t tenants;
        uint64_t share;
        uint64_t memory;   /* that its tenants count with */
        uint64_t reserved; /* of it */
        uint32_t open;     /* tenants that count with none */
        enum sharing sharing;
        const struct asking *last; /* of its tenants */
        bool mixed;                /* two modes, two users of MPS or two pairs of directories */
    } slots[SLOTS_MAX];
};

/* A time to look at. */
struct moment {
    int64_t at;           /* leases with an end up to here are gone; the present: none is */
    bool without_helpers; /* opportunistic leases are gone */
    bool without_noticed; /* those of them that are not just held any more are */
    bool without_late;    /* leases over their limits are gone, unless they overstay */
    const bool *left_out; /* by lease, these are gone too; NULL: none */
};

/* Returns the share of each device that a claim takes. For a request that was made it stays the
 * same. */
uint32_t asking_share(const struct model *model, uint64_t scope, const struct asking *asking);
/* The request is made now. */
void model_make(struct model *model, uint64_t scope, const struct asking *asking);
uint32_t asking_tenants(const struct model *model, const struct asking *asking);

/* The devices that a claim accepts. */
slot_set model_accepts(const struct model *model, uint64_t scope, const struct asking *asking);

/* Whether a lease is over its limit by twice the grace or more. */
bool model_overstays(const struct model *model, const struct model_lease *lease);

bool model_is_usable(const struct model *model, uint64_t scope, unsigned slot);

void model_occupancy(const struct model *model, uint64_t scope, const struct moment *moment,
                     struct occupancy *ret_occupancy);

/* ---- Memory and MPS (model_sharing.c) ---- */

/* The memory that a tenant counts with; 0: none. */
uint64_t asking_memory(const struct asking *asking);
/* How many tenants fit by memory, one after the other, beside what others count with; `size` is
 * that of the device or the part of it. */
uint32_t model_memory_room(const struct asking *asking, struct optional_number size,
                           uint64_t beside);
/* The same by the last sample. */
uint32_t model_sample_room(const struct model_device *device, const struct asking *asking,
                           const struct occupancy *occupancy, unsigned slot);
/* Whether one control daemon serves both. */
bool model_is_one_mps(const struct asking *one, const struct asking *other);

/* ---- Room (model_room.c) ---- */

/* How many replicas of the claim each slot has room for: `room` by slot. Returns the slots that
 * have room for at least one. */
slot_set model_room(const struct model *model, uint64_t scope, const struct asking *asking,
                    const struct occupancy *occupancy, uint32_t room[SLOTS_MAX]);

/* The same with every accepted device usable, empty and with all its memory free. */
slot_set model_room_at_best(const struct model *model, uint64_t scope, const struct asking *asking,
                            uint32_t room[SLOTS_MAX]);

/* The bounds of a replica's size; those of `all` are the number of its devices, and only they are
 * left in *slots. */
void model_bounds(const struct model *model, uint64_t scope, const struct asking *asking,
                  slot_set *slots, uint32_t *ret_min, uint32_t *ret_max);

/* Whether all replicas fit, with so many devices each out of `slots`. */
bool model_fits(const struct model *model, const struct asking *asking, slot_set slots,
                const uint32_t room[SLOTS_MAX], uint32_t size);

/* The largest size with which the claim is placeable in `slots` and within the limits; 0: it is
 * not. */
uint32_t model_largest(const struct model *model, uint64_t scope, const struct asking *asking,
                       slot_set slots, const uint32_t room[SLOTS_MAX], bool within_limits);

/* Returns the result of granting these slots to a request: 0, BERTH_ERROR_INVALID or _BUSY. */
int model_judge_gift(const struct model *model, uint64_t scope, const struct asking *asking,
                     slot_set slots);

/* Whether two devices may be in one replica. */
bool model_may_be_together(const struct model *model, const struct asking *asking, unsigned one,
                           unsigned other);

/* ---- Limits (model_limits.c) ---- */

/* Returns how much the leases of a user or group hold, in millionths. */
uint64_t model_user_holds(const struct model *model, uint32_t uid);
uint64_t model_group_holds(const struct model *model, uint32_t group);
/* Whether replicas of this size fit below the limits beside what is held. */
bool model_within_limits(const struct model *model, uint64_t scope, const struct asking *asking,
                         uint32_t size);
/* Whether there is any limit for its user or groups. */
bool model_has_limit(const struct model *model, uint64_t scope, const struct asking *asking);
bool model_held_by_limit(const struct model *model, uint64_t scope, const struct asking *asking);
bool model_impossible(const struct model *model, uint64_t scope, const struct asking *asking);

/* ---- Queue order and starts (model_order.c) ---- */

/* The step by which claims age. */
int64_t model_age_step(const struct model *model);
enum priority model_class(const struct model *model, const struct model_claim *claim);
/* When the next claim rises one class. */
int64_t model_next_ageing(const struct model *model);
/* Whether `one` comes before `other`. */
bool model_before(const struct model *model, const struct model_claim *one,
                  const struct model_claim *other);
/* The waiting claims of a scope in order. Returns how many. */
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

/* Adds a blocked claim, which comes after those that were added before. Returns whether it is the
 * first of its group. */
bool model_groups_add(const struct model *model, struct model_groups *groups,
                      const struct model_claim *claim);

/* The groups of those that wait before the claim, are not held by a limit and not opportunistic. */
void model_groups_before(const struct model *model, const struct model_claim *claim,
                         struct model_groups *ret_groups);

/* The start of a claim's reservation by the rules; TIME_NEVER: unknown. */
int64_t model_start(const struct model *model, const struct model_claim *claim);
/* The room that it would have then. */
slot_set model_room_at(const struct model *model, const struct model_claim *claim, int64_t at,
                       uint32_t room[SLOTS_MAX]);

/* Returns the slots that the groups block for the claim, from the starts and sets that the engine
 * reported. */
slot_set model_bars(const struct model *model, const struct model_groups *groups,
                    const struct model_claim *claim);

/* Where the claim may start by the queue alone, behind these groups. */
slot_set model_open_to(const struct model *model, const struct model_groups *groups,
                       const struct model_claim *claim);

/* Whether the claim may start now: its size, 0 when not. */
uint32_t model_may_start(const struct model *model, const struct model_groups *groups,
                         const struct model_claim *claim, slot_set *ret_allowed);

/* Returns the result of a claim that is made now: BERTH_ERROR_NO_DEVICE, _IMPOSSIBLE, CLAIM_WAITS
 * or CLAIM_GRANTED. */
int model_predict(const struct model *model, const struct model_claim *claim, uint32_t *ret_size,
                  slot_set *ret_allowed);

#endif
