/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine decides which claim gets which devices, and when, by the rules of docs/FAIRNESS.md.
 * It is a deterministic state machine: its functions are the input, their results and events are
 * the output. It has no threads, no clock and no I/O, and equal calls give equal answers.
 *
 * Only one thread may use an engine at a time. No function blocks. A call that fails changes
 * nothing.
 *
 * The ids of claims and leases come from one counter that only grows. So no id is used twice, and
 * a later lease of a device has a greater id than an earlier one.
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
#include "model/machine/machine.h"
#include "model/policy.h"
#include "model/request.h"

struct engine;
struct engine_request;

/* Whether the engine caches the ratings of nodes, for policies whose rating of a node changes only
 * when the node changes. The decisions are the same either way. */
enum engine_index {
    INDEX_BY_SIZE, /* if there are many nodes */
    INDEX_ALWAYS,
    INDEX_NEVER,
};

struct engine_settings {
    uint32_t time_slice_tenants; /* maximum on one device; 0: 4 */
    uint32_t mps_tenants;        /* maximum on one device; 0: 8 */
    int64_t age_step;            /* waiting time that raises a claim by one class; 0: one hour */
    int64_t grace;               /* time from notice to force; 0: 10 s */
    size_t slots_max;            /* maximum of devices; 0: about twice the number at the start */
    bool affinity_by_user;       /* the uid is the affinity of a request that names none */
    const struct policy *policy; /* for requests that name none; NULL: policy_default() chooses */
    uint64_t seed;               /* for random choices of policies */
    enum engine_index index;
};

/* Creates an engine for the machine's devices. On success the engine owns the machine, and the
 * caller's struct is empty. `settings` may be NULL. The engine's time is 0. Fails with
 * BERTH_ERROR_MEMORY, _INVALID or _LIMIT. */
int engine_create(struct machine *machine, const struct engine_settings *settings,
                  struct engine **ret_engine, struct berth_error *error);
void engine_destroy(struct engine *engine);

/* Changes the rules (FAIRNESS.md section 13), except slots_max, affinity_by_user, seed and index.
 * 0 and NULL mean the defaults of engine_create(). The new grace applies to future notices, the new
 * policy to all requests that name none, and the new age_step to all claims since their arrival.
 * A device that has more tenants than the new maximum keeps them until they end. An open request
 * that names no share keeps its share. Claims that become impossible are refused. Returns 0, or
 * BERTH_ERROR_MEMORY with nothing changed. */
int engine_set_rules(struct engine *engine, const struct engine_settings *given);

/* Sets the sink that future events go to. */
void engine_set_sink(struct engine *engine, const struct event_sink *sink);

/* Sets the kinds of requests that are expected, with their weights, for policies that keep room for
 * them. The engine copies both. By default 1/8, 1/4 and 1/2 of a device and 1, 2, 4 and 8 whole
 * devices have equal weight. Fails with BERTH_ERROR_INVALID (a request contradicts itself, or all
 * weights are 0) or _MEMORY. */
int engine_expect(struct engine *engine, const struct request *requests, const uint32_t *weights,
                  size_t count, struct berth_error *error);

/* ---- Time ---- */

/* Moves the time forward to `now`; an earlier time is ignored. Deadlines, time limits, graces and
 * ageing up to then take effect, in order of time. */
void engine_advance(struct engine *engine, int64_t now);
int64_t engine_now(const struct engine *engine);

/* Returns when engine_advance() must be called next; TIME_NEVER: nothing is due. */
int64_t engine_next_time(const struct engine *engine);

/* ---- Requests and claims ---- */

/* Compiles a request for repeated use; copies `request` and `party`. A request that the devices
 * here can never satisfy may be opened, but claims with it fail. `policy` overrides the policy that
 * the request names; NULL: that policy applies. `party` may be NULL. The caller closes the request;
 * claims and leases keep it alive after that. Fails with BERTH_ERROR_INVALID (the request
 * contradicts itself, or its policy is unknown), _NOT_FOUND (no such parent) or _MEMORY. */
int engine_request_open(struct engine *engine, const struct request *request,
                        const struct party *party, const struct policy *policy,
                        struct engine_request **ret_request, struct berth_error *error);
void engine_request_close(struct engine *engine, struct engine_request *request);

/* Returns how many claims the request stands for: its replicas if they are best-effort, else 1. */
uint32_t engine_request_claims(const struct engine_request *request);
const struct request *engine_request_what(const struct engine_request *request);

/* The caller's own data about a claim, and later about its lease. The engine only hands it back. */
struct claim_owner {
    void *waiter;
    void *data;
};

enum { CLAIM_WAITS = 0, CLAIM_GRANTED = 1 };

/* Makes one claim. Returns CLAIM_GRANTED with the lease's id, or CLAIM_WAITS with the claim's id,
 * which EVENT_GRANTED or EVENT_REFUSED will name. With `deadline` TIME_NEVER the claim has no
 * timeout. `owner` may be NULL. Fails with BERTH_ERROR_NO_DEVICE (the engine has no devices),
 * _IMPOSSIBLE with the reason (FAIRNESS.md section 12), _NOT_FOUND (the parent has ended) or
 * _MEMORY. */
int engine_claim(struct engine *engine, struct engine_request *request, int64_t deadline,
                 const struct claim_owner *owner, uint64_t *ret_id, struct berth_error *error);

/* Makes one claim if it is granted at once (FAIRNESS.md section 4). Never waits, and preempts no
 * lease for this claim. Returns CLAIM_GRANTED with the lease's id, or CLAIM_WAITS with nothing
 * changed. Fails like engine_claim(). */
int engine_try(struct engine *engine, struct engine_request *request, uint64_t *ret_lease,
               struct berth_error *error);

/* Returns what engine_try() would return, but changes nothing. */
int engine_would_grant(struct engine *engine, struct engine_request *request,
                       struct berth_error *error);

/* Removes a waiting claim from the queue, with EVENT_REFUSED and REFUSAL_CANCELLED. Fails with
 * BERTH_ERROR_NOT_FOUND. */
int engine_cancel(struct engine *engine, uint64_t claim, struct berth_error *error);

/* Makes a lease of exactly these slots, for a process that uses them already (FAIRNESS.md section
 * 7). The lease bypasses the queue, blocks, limits and free memory, but counts towards limits.
 * `slots` may be in any order, without duplicates. Fails with BERTH_ERROR_BUSY (another lease
 * leaves no room; the message names the device and the lease), _INVALID (the request does not
 * accept these slots or their number, or has several replicas), _NOT_FOUND (the parent has ended)
 * or _MEMORY. */
int engine_grant_slots(struct engine *engine, struct engine_request *request, const uint32_t *slots,
                       size_t count, uint64_t *ret_lease, struct berth_error *error);

/* Occupies CPUs and memory of a host for a request for 0 devices. Such a request cannot be claimed.
 * Chooses the host that the policy rates best, and bypasses the queue. Returns CLAIM_GRANTED with
 * the host, or CLAIM_WAITS with nothing changed if no host has room. Fails with BERTH_ERROR_INVALID
 * (the request is for devices) or _MEMORY. */
int engine_host_occupy(struct engine *engine, struct engine_request *request, uint32_t *ret_host,
                       struct berth_error *error);
/* Frees the CPUs and memory again, and starts the claims that may start now. */
void engine_host_leave(struct engine *engine, const struct engine_request *request, uint32_t host);

/* ---- Leases ---- */

/* Withdraws a grant before the holder is notified (FAIRNESS.md section 8). The lease becomes a
 * waiting claim, with the id of the claim that it was, or its own id if it never waited. `arrived`
 * is when it was first claimed, not later than now, and determines its position. Sub-leases and
 * claims within the lease end. Then every claim that may start does start, perhaps this one too.
 * Sends EVENT_RETURNED, and EVENT_REFUSED after it if the claim is impossible by now. Fails with
 * BERTH_ERROR_NOT_FOUND, also for a lease that is draining, or _MEMORY. */
int engine_return(struct engine *engine, uint64_t lease, int64_t arrived, int64_t deadline,
                  struct berth_error *error);

/* Ends a lease, with all sub-leases and waiting claims within it. Fails with BERTH_ERROR_NOT_FOUND,
 * also for a lease that is draining. */
int engine_release(struct engine *engine, uint64_t lease, struct berth_error *error);

/* Ends a lease whose processes may still use the devices. The lease drains: it keeps its devices
 * until engine_vacated(). Fails with BERTH_ERROR_NOT_FOUND. */
int engine_drain_lease(struct engine *engine, uint64_t lease, struct berth_error *error);

/* Frees the lease's devices, because no process of the lease uses them any more. The lease may be
 * in any state. Fails with BERTH_ERROR_NOT_FOUND. */
int engine_vacated(struct engine *engine, uint64_t lease, struct berth_error *error);

/* Changes the time limit; TIME_NEVER removes it. Fails with BERTH_ERROR_NOT_FOUND or _INVALID (the
 * new limit is in the past, or the lease has expired or is revoked). */
int engine_extend(struct engine *engine, uint64_t lease, int64_t expires,
                  struct berth_error *error);

/* ---- Devices ---- */

/* Makes all changes until engine_resume() count as one: until then no claim is granted or refused
 * as impossible, and no lease is given notice. Meanwhile the caller may only change devices,
 * blocks, loads and rules, and end leases and claims. */
void engine_pause(struct engine *engine);

/* Adds a device. It gets the next slot, or its old slot if a device with this id was here before.
 * On success the engine owns the device. Fails with BERTH_ERROR_LIMIT, _INVALID (the host is
 * unknown, or not the same as before) or _MEMORY. */
int engine_device_add(struct engine *engine, struct device *device, uint32_t *ret_slot,
                      struct berth_error *error);
/* Sets the links between devices, by slot. The links of pairs that the list does not name stay.
 * Policies that use links use these from now on. Fails with BERTH_ERROR_INVALID (a slot without a
 * device, or the higher slot first) or _MEMORY. */
int engine_set_links(struct engine *engine, const struct link_list *links,
                     struct berth_error *error);
/* Marks a device as gone. It is not granted any more; leases on it stay until they end. Claims that
 * become impossible are refused. */
void engine_device_gone(struct engine *engine, uint32_t slot);
/* Marks a device as present again, unchanged. */
void engine_device_back(struct engine *engine, uint32_t slot);
void engine_device_health(struct engine *engine, uint32_t slot, enum health health);
/* Takes the members of `from` that do not influence decisions: health_reason, asleep, old, the
 * processes, and the figures that show unlisted processes (model/machine/occupancy.h). They are
 * moved out of `from`; its other members are ignored. */
void engine_device_observe(struct engine *engine, uint32_t slot, struct device *from);
/* Returns the device's processes, which the caller may complete. Valid until the next
 * engine_device_observe(). */
struct device_process_list *engine_device_processes(struct engine *engine, uint32_t slot);
/* Marks the facts about a device as old, because its driver does not answer. */
void engine_device_mark_old(struct engine *engine, uint32_t slot);
void engine_block(struct engine *engine, uint32_t slot, enum block reason);
void engine_unblock(struct engine *engine, uint32_t slot, enum block reason);
void engine_set_load(struct engine *engine, uint32_t slot, const struct load *load);
void engine_set_work(struct engine *engine, uint32_t slot, uint64_t queued, uint64_t active);
void engine_set_weight(struct engine *engine, uint32_t slot, uint32_t weight);

/* Sets a slot's rank among slots that are equal to the policy (FAIRNESS.md section 6): rank 1 is
 * taken first, then rank 2 and so on, and rank 0, the default, last. Affinity and slot number count
 * only within one rank. The slot must be below engine_slots_max(). It keeps its rank when its
 * device changes. */
void engine_set_rank(struct engine *engine, uint32_t slot, uint32_t rank);

/* The users and groups that a device is reserved for. */
struct allowed_users {
    const uint32_t *uids;
    size_t uid_count;
    const uint32_t *groups;
    size_t group_count;
};

/* Reserves a slot for these users and groups (FAIRNESS.md section 6); NULL: for all users, which is
 * the default. The requests of other users do not accept it, and their claims that become
 * impossible are refused. Leases stay, with everything within them. The slot stays reserved when
 * its device changes. No event is sent. Fails with BERTH_ERROR_INVALID (the slot is not below
 * engine_slots_max()) or _MEMORY. */
int engine_reserve_device(struct engine *engine, uint32_t slot, const struct allowed_users *who,
                          struct berth_error *error);

/* Limits the devices, in millionths, that a user or a group may hold at once; UINT64_MAX: no limit.
 * A shared device counts its share. Claims that become impossible are refused; leases stay. Fails
 * with BERTH_ERROR_MEMORY. */
int engine_limit_user(struct engine *engine, uint32_t uid, uint64_t max, struct berth_error *error);
int engine_limit_group(struct engine *engine, uint32_t group, uint64_t max,
                       struct berth_error *error);

/* ---- Queries ---- */

const struct machine *engine_machine(const struct engine *engine);

/* Returns the number of waiting claims, not counting opportunistic ones. */
size_t engine_pending(const struct engine *engine);

/* Returns whether no device of the pool has room for a claim. Then engine_try() returns CLAIM_WAITS
 * for every possible request that is not made within a lease. */
bool engine_is_full(const struct engine *engine);

enum lease_state {
    LEASE_HELD,
    LEASE_NOTICED,  /* must be given back before the grace is over */
    LEASE_REVOKED,  /* preempted: the grace is over */
    LEASE_EXPIRED,  /* the time limit is over */
    LEASE_DRAINING, /* ended, not vacated */
};

/* A lease as queries show it. Points into the engine; valid until the next call that changes it. */
struct lease_view {
    uint64_t id;
    uint64_t claim;  /* the claim that became this lease; 0: it never waited */
    uint64_t parent; /* 0: none */
    const struct engine_request *request;
    const uint32_t *slots; /* replica after replica */
    uint32_t slot_count;
    uint32_t replicas;
    uint32_t share;                /* millionths of each device */
    struct optional_number memory; /* bytes reserved on each device */
    enum lease_state state;
    int64_t granted;
    int64_t expires;  /* TIME_NEVER: no time limit */
    int64_t force_at; /* when the grace ends; TIME_NEVER: no notice was given */
    struct claim_owner owner;
};
bool engine_get_lease(const struct engine *engine, uint64_t lease, struct lease_view *ret_view);

/* Returns only the lease's owner; NULL: there is no such lease. Valid like a lease_view. */
const struct claim_owner *engine_lease_owner(const struct engine *engine, uint64_t lease);

/* Calls `visit` for every lease, lowest id first. */
void engine_each_lease(const struct engine *engine,
                       void (*visit)(void *context, const struct lease_view *view), void *context);

/* A waiting claim as queries show it. Valid like a lease_view. */
struct claim_view {
    uint64_t id;
    uint64_t parent;
    const struct engine_request *request;
    int64_t arrived;
    int64_t deadline;
    enum priority class_now; /* after ageing; PRIORITY_UNSAID: opportunistic */
    struct claim_owner owner;
};
bool engine_get_claim(const struct engine *engine, uint64_t claim, struct claim_view *ret_view);

/* Calls `visit` for every waiting claim in the order of the queue; claims within leases come last.
 */
void engine_each_claim(const struct engine *engine,
                       void (*visit)(void *context, const struct claim_view *view), void *context);

/* A slot as queries show it. */
struct slot_view {
    bool present;
    uint32_t blocks;
    bool taken;           /* there is at least one lease on it */
    enum sharing sharing; /* the mode of its leases; exclusive if there are none */
    uint32_t tenants;
    uint32_t share_used;  /* millionths */
    uint64_t memory_used; /* bytes that its leases are counted with (FAIRNESS.md section 9) */
    uint32_t uid;         /* the user of its MPS tenants */
    uint64_t lease;       /* one of its leases; 0: none */
};
void engine_get_slot(const struct engine *engine, uint32_t slot, struct slot_view *ret_view);

/* Advises which devices the request should use now, without a lease. Counts as a pick of each slot.
 * Returns the number of slots, of which up to `capacity` are in ret_slots; 0 if the request would
 * have to wait. Fails like engine_try(). */
int engine_pick(struct engine *engine, struct engine_request *request, uint32_t *ret_slots,
                size_t capacity, struct berth_error *error);

/* Appends the reason why a claim waits, in one line, and estimates its start from the time limits
 * of leases (TIME_NEVER: unknown). The most useful part comes first: "needs 2: user 1000 holds 4
 * until 2026-01-02T03:04Z". view/reason_text.h replaces "user 1000" by the name, and the time by
 * local time. Fails with BERTH_ERROR_NOT_FOUND or _MEMORY. */
int engine_explain(struct engine *engine, uint64_t claim, struct text *ret_why, int64_t *ret_start,
                   struct berth_error *error);

/* Finds the reservation of a claim that is the first of its group (FAIRNESS.md section 3): the
 * slots, in an initialized set of engine_slots_max() bits, and the start. With an unknown start
 * (TIME_NEVER) the set has all slots that the claim accepts. Returns whether the claim has one. */
bool engine_reservation(struct engine *engine, uint64_t claim, struct bitset *ret_slots,
                        int64_t *ret_start);
size_t engine_slots_max(const struct engine *engine);

/* A reservation as queries show it; engine_reservation() has its slots. */
struct reservation_view {
    uint64_t claim;
    int64_t start; /* TIME_NEVER: unknown */
    struct claim_owner owner;
};

/* Calls `visit` for every claim that holds a reservation, in the order of the queue; claims within
 * leases come last. Returns 0 or BERTH_ERROR_MEMORY. */
int engine_each_reservation(struct engine *engine,
                            void (*visit)(void *context, const struct reservation_view *view),
                            void *context);

/* ---- Restoring ---- */

/* Applies an event without making any decision. Events must be replayed in their order, on an
 * engine with the same devices and settings. A request that names an unknown policy gets the
 * default policy. The sink gets no events. Fails with BERTH_ERROR_INVALID for an event that
 * contradicts the state (an unknown lease, a device that is taken) or _MEMORY. */
int engine_replay(struct engine *engine, const struct engine_event *event,
                  struct berth_error *error);

/* Ends a replay or a pause: refuses claims that became impossible, grants those that may start. */
void engine_resume(struct engine *engine);

/* Closes the restored requests, since the process that opened them is gone. Requests that claims
 * and leases use stay as long as these do; the others are freed. */
void engine_close_restored(struct engine *engine);

/* Sends the whole state to the sink, in the fewest events that restore it. Equal states give equal
 * events. Returns 0 or BERTH_ERROR_MEMORY. */
int engine_dump(const struct engine *engine, const struct event_sink *sink);

#endif
