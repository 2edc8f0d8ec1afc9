/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine: who gets which devices, in which order. A deterministic state machine: it is told
 * things and answers with results and events. No threads, no clock, no I/O; the same calls always
 * give the same answers. docs/FAIRNESS.md says by which rules.
 *
 * Not for use by two threads at once. Nothing blocks. Nothing is half done: a call that fails
 * changes nothing.
 *
 * Ids of claims and leases come from one counter that grows for ever, so no two are the same and a
 * later lease of a device has a greater id than an earlier one.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitset.h"
#include "base/text/text.h"
#include "engine/event.h"
#include "model/machine.h"
#include "model/policy.h"
#include "model/request.h"

struct engine;
struct engine_request;

/* Whether it is kept what each node has to offer to a request, for policies whose answers stay
 * while the node does. The decisions are the same either way. */
enum engine_index {
    INDEX_BY_SIZE, /* where there are many nodes */
    INDEX_ALWAYS,
    INDEX_NEVER,
};

struct engine_settings {
    uint32_t time_slice_tenants; /* on one device at most; 0: 4 */
    uint32_t mps_tenants;        /* 0: 8 */
    int64_t age_step;            /* waiting that raises a claim one class; 0: one hour */
    int64_t grace;               /* from notice to force; 0: 10 s */
    size_t slots_max;            /* room for devices that appear later; 0: about twice as many */
    bool affinity_by_user;       /* a request that names no affinity has its uid's */
    const struct policy *policy; /* of requests that name none; NULL: by what they ask for, as
                                    policy_default says */
    uint64_t seed;               /* of what policies leave to chance */
    enum engine_index index;
};

/* An engine of this machine, which it takes over (on success; the caller's struct is empty then).
 * `settings` may be NULL. The time is 0. Fails with BERTH_ERROR_MEMORY or _LIMIT. */
int engine_create(struct machine *machine, const struct engine_settings *settings,
                  struct engine **ret_engine, struct berth_error *error);
void engine_destroy(struct engine *engine);

/* Other rules from now on: all but slots_max, affinity_by_user, seed and index, which stay; 0 and
 * NULL mean what they do at first. The grace is that of notices to come, the policy that of
 * requests that name none. With another age_step claims have the class that their arrival gives
 * them by it. With other bounds on tenants, a device that has more keeps them until they end, and a
 * request that is open and names no share keeps the one it had; claims that are impossible by them
 * are refused. Returns 0 or BERTH_ERROR_MEMORY with nothing changed. */
int engine_set_rules(struct engine *engine, const struct engine_settings *given);

/* Who is told of events from now on. */
void engine_set_sink(struct engine *engine, const struct event_sink *sink);

/* What kinds of requests are expected and how often each, for policies that keep room for them.
 * Copies. At first these are as often as each other: 1/8, 1/4 and 1/2 of a device; 1, 2, 4 and 8
 * whole ones. Fails with BERTH_ERROR_INVALID (a request contradicts itself; no weight at all) or
 * _MEMORY; nothing is changed then. */
int engine_expect(struct engine *engine, const struct request *requests, const uint32_t *weights,
                  size_t count, struct berth_error *error);

/* ---- Time ---- */

/* The time is now `now` (never backwards: an earlier one is ignored): deadlines, time limits,
 * graces and ageing take effect, in order of time. */
void engine_advance(struct engine *engine, int64_t now);
int64_t engine_now(const struct engine *engine);

/* When engine_advance has something to do next; TIME_NEVER: nothing. */
int64_t engine_next_time(const struct engine *engine);

/* ---- Requests and claims ---- */

/* Compiles a request for repeated use; request and party are copied. One that no device here could
 * ever satisfy is fine: claims with it fail. Fails with BERTH_ERROR_INVALID (it contradicts itself;
 * an unknown policy), _NOT_FOUND (no such parent), _MEMORY. `policy` overrides the request's own;
 * NULL: by its name. The caller closes it; claims and leases keep it alive. */
int engine_request_open(struct engine *engine, const struct request *request,
                        const struct party *party, const struct policy *policy,
                        struct engine_request **ret_request, struct berth_error *error);
void engine_request_close(struct engine *engine, struct engine_request *request);

/* How many claims the request stands for: its replicas when they are best-effort, else 1. */
uint32_t engine_request_claims(const struct engine_request *request);
const struct request *engine_request_what(const struct engine_request *request);
uint32_t engine_request_uid(const struct engine_request *request);

/* What belongs to the door that made a claim; handed back on grant and refusal. */
struct claim_owner {
    void *waiter;
    void *data;
};

enum { CLAIM_WAITS = 0, CLAIM_GRANTED = 1 };

/* Claims once. Returns CLAIM_GRANTED with the lease's id, or CLAIM_WAITS with the claim's id, which
 * EVENT_GRANTED or EVENT_REFUSED will name. Fails with BERTH_ERROR_NO_DEVICE (the engine has none),
 * _IMPOSSIBLE with the reason, or _MEMORY. `deadline` TIME_NEVER: waits for ever. `owner` may be
 * NULL. */
int engine_claim(struct engine *engine, struct engine_request *request, int64_t deadline,
                 const struct claim_owner *owner, uint64_t *ret_id, struct berth_error *error);

/* Claims if it is granted at once under the same rules; revokes nobody and never waits. Returns
 * CLAIM_GRANTED with the lease's id or CLAIM_WAITS with nothing done; fails as engine_claim. */
int engine_try(struct engine *engine, struct engine_request *request, uint64_t *ret_lease,
               struct berth_error *error);

/* Whether engine_try would succeed: CLAIM_GRANTED, CLAIM_WAITS or an error. Changes nothing. */
int engine_would_grant(struct engine *engine, struct engine_request *request,
                       struct berth_error *error);

/* Takes a waiting claim out of the queue: EVENT_REFUSED, REFUSAL_CANCELLED. Fails with
 * BERTH_ERROR_NOT_FOUND. */
int engine_cancel(struct engine *engine, uint64_t claim, struct berth_error *error);

/* Makes a lease of exactly these slots, past the queue and whatever blocks them: somebody is on
 * them already. Limits of users do not hold it up, but it counts. Free memory does not matter;
 * leases do. `slots` is in any order, none twice. Fails with BERTH_ERROR_BUSY (another lease leaves
 * no room: the message names the device and the lease), _INVALID (by the request it cannot be
 * these: one that it does not accept, another number, more than one replica), _NOT_FOUND (the lease
 * that it is made within has ended) or _MEMORY. */
int engine_grant_slots(struct engine *engine, struct engine_request *request, const uint32_t *slots,
                       size_t count, uint64_t *ret_lease, struct berth_error *error);

/* Work that takes a host's CPUs and memory and none of its devices: a request for 0 devices, which
 * cannot be claimed. Puts it on the host that the policy rates best, never waits and looks at no
 * queue. Returns CLAIM_GRANTED with the host, CLAIM_WAITS with nothing done when none has room;
 * fails with BERTH_ERROR_INVALID (it asks for devices) or _MEMORY. */
int engine_host_occupy(struct engine *engine, struct engine_request *request, uint32_t *ret_host,
                       struct berth_error *error);
/* That work has left the host. What waits for its CPUs and memory may start. */
void engine_host_leave(struct engine *engine, const struct engine_request *request, uint32_t host);

/* ---- Leases ---- */

/* Undoes a grant of which the holder was not told: the lease is a waiting claim again, with the
 * number that it had as one or, when it never waited, its own. It stands where it did, as one that
 * arrived at `arrived` (when it was first claimed; not later than now). Sub-leases and claims
 * within it end. What may start now does so, perhaps this claim too. EVENT_RETURNED; EVENT_REFUSED
 * after it when it is impossible by now. Fails with BERTH_ERROR_NOT_FOUND, also for one that is
 * draining, or _MEMORY. */
int engine_return(struct engine *engine, uint64_t lease, int64_t arrived, int64_t deadline,
                  struct berth_error *error);

/* Ends a lease, sub-leases and waiting claims within it included. Fails with
 * BERTH_ERROR_NOT_FOUND, also for one that is draining. */
int engine_release(struct engine *engine, uint64_t lease, struct berth_error *error);

/* Ends a lease whose processes may still be on the devices: they stay taken (draining) until
 * engine_vacated. */
int engine_drain_lease(struct engine *engine, uint64_t lease, struct berth_error *error);

/* Nobody of the lease is left on its devices: it is gone, whether it was held, expired, revoked or
 * draining. Fails with BERTH_ERROR_NOT_FOUND. */
int engine_vacated(struct engine *engine, uint64_t lease, struct berth_error *error);

/* Moves the time limit (TIME_NEVER: none). Fails with BERTH_ERROR_NOT_FOUND or _INVALID (it is over
 * already, or revoked). */
int engine_extend(struct engine *engine, uint64_t lease, int64_t expires,
                  struct berth_error *error);

/* ---- Devices ---- */

/* Several changes that belong together count as one: nothing is granted, refused as impossible or
 * given notice from here to engine_resume. Meanwhile only devices, blocks and loads may be told,
 * and leases and claims ended. */
void engine_pause(struct engine *engine);

/* A device appeared; it gets the next slot, or its old one when a device of this id was here
 * before. Takes the device over on success. Fails with BERTH_ERROR_LIMIT, _INVALID (a host that
 * there is not, or another than before) or _MEMORY. */
int engine_device_add(struct engine *engine, struct device *device, uint32_t *ret_slot,
                      struct berth_error *error);
/* How devices reach each other, by slot: in place of what was known of the same pairs; what is
 * known of others stays. Who decides by links goes by these from now on. Fails with
 * BERTH_ERROR_INVALID (a slot that has no device, or the higher one first) or _MEMORY; nothing is
 * changed then. */
int engine_set_links(struct engine *engine, const struct link_list *links,
                     struct berth_error *error);
/* A device is gone: nothing is granted on it, leases on it go on until they end. Claims that
 * nothing here could satisfy any more are refused. */
void engine_device_gone(struct engine *engine, uint32_t slot);
/* One that was gone is there again, and the same as before. */
void engine_device_back(struct engine *engine, uint32_t slot);
void engine_device_health(struct engine *engine, uint32_t slot, enum health health);
/* Takes over from `from` what nothing is decided by: health_reason, asleep, old and the processes,
 * which `from` has no more then. The rest of it is not looked at. */
void engine_device_observe(struct engine *engine, uint32_t slot, struct device *from);
/* Its processes, which are the door's to say more about. Good until the next observation. */
struct device_process_list *engine_device_processes(struct engine *engine, uint32_t slot);
/* Nobody answers for the device now: what is known of it is old. */
void engine_device_mark_old(struct engine *engine, uint32_t slot);
void engine_block(struct engine *engine, uint32_t slot, enum block reason);
void engine_unblock(struct engine *engine, uint32_t slot, enum block reason);
void engine_set_load(struct engine *engine, uint32_t slot, const struct load *load);
void engine_set_work(struct engine *engine, uint32_t slot, uint64_t queued, uint64_t active);
void engine_set_weight(struct engine *engine, uint32_t slot, uint32_t weight);

/* Among slots that are equal by the policy, those of rank 1 are taken first, then those of rank 2,
 * and those of rank 0 (all, at first) last; before affinity and the number of the slot count. The
 * slot is below engine_slots_max; it keeps its rank whatever device comes or goes. */
void engine_set_rank(struct engine *engine, uint32_t slot, uint32_t rank);

/* Users, and groups of users. */
struct allowed_users {
    const uint32_t *uids;
    size_t uid_count;
    const uint32_t *groups;
    size_t group_count;
};

/* Only these may have the slot, by their uid or one of the party's groups; NULL: everybody, as at
 * first. To requests of others it is no device that would do; those of their claims that nothing
 * else could satisfy are refused. Leases stay, and what is within them. The slot keeps it whatever
 * device comes or goes. No event tells of it. Fails with BERTH_ERROR_INVALID (no slot below
 * engine_slots_max) or _MEMORY. */
int engine_reserve_device(struct engine *engine, uint32_t slot, const struct allowed_users *who,
                          struct berth_error *error);

/* How many devices (in millionths: shares count as parts) a user or a group may hold at once.
 * UINT64_MAX: no limit. Claims that it makes impossible are refused; leases stay. Fails with
 * BERTH_ERROR_MEMORY. */
int engine_limit_user(struct engine *engine, uint32_t uid, uint64_t max, struct berth_error *error);
int engine_limit_group(struct engine *engine, uint32_t group, uint64_t max,
                       struct berth_error *error);

/* ---- Looking ---- */

const struct machine *engine_machine(const struct engine *engine);

/* How many claims are blocked; opportunistic ones do not count. */
size_t engine_pending(const struct engine *engine);

/* Whether no device has room for anybody: then every engine_try of a request that is possible says
 * CLAIM_WAITS. */
bool engine_is_full(const struct engine *engine);

enum lease_state {
    LEASE_HELD,
    LEASE_NOTICED,  /* asked to give way */
    LEASE_REVOKED,  /* the grace is over */
    LEASE_EXPIRED,  /* the time limit is over */
    LEASE_DRAINING, /* ended, not vacated */
};

/* What is known of a lease; points into the engine, good until the next call that changes it. */
struct lease_view {
    uint64_t id;
    uint64_t claim;  /* that it was; 0: never waited */
    uint64_t parent; /* 0: none */
    const struct engine_request *request;
    const uint32_t *slots; /* replica after replica */
    uint32_t slot_count;
    uint32_t replicas;
    uint32_t share;                /* millionths of each device */
    struct optional_number memory; /* bytes reserved on each */
    enum lease_state state;
    int64_t granted;
    int64_t expires;  /* TIME_NEVER: never */
    int64_t force_at; /* when the grace ends; TIME_NEVER: no notice */
    struct claim_owner owner;
};
bool engine_get_lease(const struct engine *engine, uint64_t lease, struct lease_view *ret_view);

/* Only its owner; NULL: there is no such lease. Good as the view is. */
const struct claim_owner *engine_lease_owner(const struct engine *engine, uint64_t lease);

/* Calls `visit` for every lease, lowest id first. */
void engine_each_lease(const struct engine *engine,
                       void (*visit)(void *context, const struct lease_view *view), void *context);

/* What is known of a waiting claim. */
struct claim_view {
    uint64_t id;
    uint64_t parent;
    const struct engine_request *request;
    int64_t arrived;
    int64_t deadline;
    enum priority class_now; /* with ageing; PRIORITY_UNSAID: opportunistic */
    struct claim_owner owner;
};
bool engine_get_claim(const struct engine *engine, uint64_t claim, struct claim_view *ret_view);

/* Calls `visit` for every waiting claim in the order in which they are served; claims within a
 * lease after all others. */
void engine_each_claim(const struct engine *engine,
                       void (*visit)(void *context, const struct claim_view *view), void *context);

/* What a slot carries now. */
struct slot_view {
    bool present;
    uint32_t blocks;
    bool taken;           /* by at least one lease */
    enum sharing sharing; /* of its leases; exclusive when there are none */
    uint32_t tenants;
    uint32_t share_used;  /* millionths */
    uint64_t memory_used; /* bytes that they count with: reserved, or wanted free */
    uint32_t uid;         /* of its MPS tenants */
    uint64_t lease;       /* the first that is on it; 0: none */
};
void engine_get_slot(const struct engine *engine, uint32_t slot, struct slot_view *ret_view);

/* Which devices the request would best use now, without taking them; counts as picks. Returns how
 * many slots it put into ret_slots (at most capacity are), or as engine_try: 0 when it would have
 * to wait. */
int engine_pick(struct engine *engine, struct engine_request *request, uint32_t *ret_slots,
                size_t capacity, struct berth_error *error);

/* Why a claim waits, in one line, and when it will start as far as time limits tell (TIME_NEVER:
 * they do not). Fails with BERTH_ERROR_NOT_FOUND or _MEMORY. */
int engine_explain(struct engine *engine, uint64_t claim, struct text *ret_why, int64_t *ret_start,
                   struct berth_error *error);

/* The reservation of a claim that is the first of its group: the slots (an initialised set of
 * engine_slots_max bits) and the start (TIME_NEVER: unknown; the set is then what it accepts).
 * Returns whether it has one. */
bool engine_reservation(struct engine *engine, uint64_t claim, struct bitset *ret_slots,
                        int64_t *ret_start);
size_t engine_slots_max(const struct engine *engine);

/* What is known of a reservation; its slots are engine_reservation's to say. */
struct reservation_view {
    uint64_t claim;
    int64_t start; /* TIME_NEVER: unknown */
    struct claim_owner owner;
};

/* Calls `visit` for every claim that holds a reservation, in the order in which they are served;
 * claims within a lease after all others. Returns 0 or BERTH_ERROR_MEMORY. */
int engine_each_reservation(struct engine *engine,
                            void (*visit)(void *context, const struct reservation_view *view),
                            void *context);

/* ---- Restoring ---- */

/* Does what an event says, without deciding anything. Events are to be replayed in the order they
 * came, on an engine of the same devices and settings. Fails with BERTH_ERROR_INVALID for an event
 * that does not fit (an unknown lease, a device taken twice) or _MEMORY; nothing is changed then.
 * Nothing is told to the sink. */
int engine_replay(struct engine *engine, const struct engine_event *event,
                  struct berth_error *error);

/* After the last replayed event, or a pause: grants what is due. */
void engine_resume(struct engine *engine);

/* Whoever opened the requests that were restored is gone and cannot close them: closes them in
 * their place. Those that claims and leases use stay as long as these do, the others are forgotten.
 */
void engine_close_restored(struct engine *engine);

/* The whole state as the fewest events that restore it; equal states give equal events. Returns 0
 * or BERTH_ERROR_MEMORY. */
int engine_dump(const struct engine *engine, const struct event_sink *sink);

#endif
