/* SPDX-License-Identifier: Apache-2.0
 *
 * berth/berth.h: a fair pool of GPUs inside a program.
 *
 *     struct berth_pool *pool;
 *     struct berth_lease lease;
 *     struct berth_error error = BERTH_ERROR_INIT;
 *
 *     berth_pool_open(NULL, &pool, &error);
 *     if (berth_claim(pool, NULL, BERTH_FOR_EVER, &lease, &error) == 0) {
 *         ... work on the device ...
 *         berth_release(pool, lease, &error);
 *     }
 *     berth_pool_close(pool);
 *
 * Claims are served by class, then by arrival. A claim for many devices is not starved by later
 * claims for few. A device under an exclusive lease has no other lease.
 *
 * Any thread may make any call, also from a callback, unless the call's comment says otherwise.
 * Callbacks run without the pool's lock. They run in a thread that is inside a call on the pool, or
 * in one of the pool's own threads: "berth-timer" handles timers and starts with the first timer,
 * "berth-probing" queries the hardware. Both threads block all signals. If a callback causes
 * another callback, that one runs after the first one ends or blocks, so callbacks do not nest.
 * After fork() the child has no leases: every call there except berth_pool_close fails with
 * BERTH_ERROR_FORKED. The parent's pool is not affected.
 *
 * A call returns 0 (or the value its comment names) on success and a negative code of berth/error.h
 * on failure. On failure the last parameter, which may be NULL, receives a message of one line, and
 * outputs are unchanged. Strings that a call returns live as long as the pool.
 */
#ifndef BERTH_BERTH_H
#define BERTH_BERTH_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keep the symbols visible in programs that are compiled with hidden visibility. */
#pragma GCC visibility push(default)

#define BERTH_VERSION_MAJOR 0
#define BERTH_VERSION_MINOR 1
#define BERTH_VERSION_PATCH 0

/* Returns the version of the loaded library, such as "0.1.0". */
const char *berth_version(void);

/* An unknown amount of memory or load. */
#define BERTH_UNKNOWN INT64_MIN
/* A timeout that never ends. */
#define BERTH_FOR_EVER INT64_MAX
/* The value of `mig` for a whole GPU. */
#define BERTH_NO_MIG UINT32_MAX

/* ---- The pool and its devices ---- */

enum berth_vendor {
    BERTH_NVIDIA = 0,
    BERTH_AMD = 1,
    BERTH_INTEL = 2,
    BERTH_APPLE = 3,
    BERTH_DRI = 4, /* anything else with a DRM render node */
};

struct berth_device {
    enum berth_vendor vendor;
    uint32_t index;     /* the vendor's; may have gaps, and two vendors may both have 0 */
    uint32_t mig;       /* MIG number on that GPU; BERTH_NO_MIG for a whole GPU */
    const char *name;   /* the model, such as "NVIDIA A100-SXM4-80GB"; NULL: unknown */
    const char *uuid;   /* NULL: unknown */
    int64_t memory;     /* total bytes, or BERTH_UNKNOWN */
    uint16_t cap_major; /* compute capability; 0.0: unknown */
    uint16_t cap_minor;
};

/* The load of a device. Each figure may be BERTH_UNKNOWN. */
struct berth_load {
    int64_t memory_free; /* bytes */
    int64_t utilization; /* thousandths, 0 to 1000 */
};

/* A device that a policy may choose. */
struct berth_candidate {
    size_t slot;
    struct berth_load load;
    uint64_t queued; /* work reported with berth_report_work */
    uint64_t active;
    uint32_t tenants; /* leases that share the device */
    bool avoid;       /* the request prefers another device */
};

/* A lease, by value. Ids only grow within a pool, so an id can serve as a fencing token: of two
 * leases of one device the later has the greater id. */
struct berth_lease {
    uint64_t id;
    uint64_t pool; /* identifies the pool within the process */
};

struct berth_pool_options {
    size_t size; /* sizeof(struct berth_pool_options): the members that the caller knows */

    /* Samples one device. The pool calls it for each device before it opens, and then every
     * `sample_interval` nanoseconds (0: 250 ms) in one of its threads. Set unknown figures to
     * BERTH_UNKNOWN. It must not call the pool. NULL: no sampling; only a pool of the hardware then
     * queries the hardware, every `sample_interval` (0: 1 s). */
    void (*sample)(void *data, size_t slot, struct berth_load *ret_load);
    void *sample_data;
    int64_t sample_interval;

    /* The policy of requests that name none: "first", "round-robin", "least-loaded",
     * "best-available", "best-compute", "pack", "spread", "topology", "frag", "weighted"; NULL:
     * topology for several devices, frag for shares of devices, else first. */
    const char *policy;

    /* The program's own policy, used instead of the one above. All `count` members of `ret_chosen`
     * are false at first; it sets `wanted` of them to true. The candidates are in slot order. If it
     * chooses more or fewer, the pool corrects the choice with the lowest slots. It runs under the
     * pool's lock: it must be quick and must not call the pool. */
    void (*choose)(void *data, const struct berth_candidate *candidates, size_t count,
                   size_t wanted, bool *ret_chosen);
    void *choose_data;

    int64_t grace; /* nanoseconds from notice to force for opportunistic leases; 0: 10 s */

    /* Called when a lease has passed the time limit of its request ("time"). The pool does nothing
     * else: the lease keeps its devices until its holder releases it, which it should do now. May
     * be NULL. */
    void (*expired)(void *data, struct berth_lease lease);
    void *expired_data;
};

struct berth_pool;

/* Opens a pool of this machine's GPUs, or of the devices in the inventory file that BERTH_INVENTORY
 * names. Devices that an inherited mask hides (CUDA_VISIBLE_DEVICES and its like) are left out. The
 * pool may be empty, as with berth_pool_open_devices. `options` may be NULL. The pool belongs to
 * this process: it does not coordinate with other processes or with berthd.
 *
 * A helper program, berth-probe, queries the hardware, so that a driver that hangs or a library
 * that crashes does not harm this process. Opening takes at most 3 s, or BERTH_PROBE_DEADLINE. The
 * pool then queries the hardware regularly, unless the program samples the loads itself. Loads are
 * those of the last query. A device that is sick or gone is not granted until it recovers or is
 * back. While the helper does not answer, the pool uses the last known facts. New devices are not
 * added. The process is not forked and gets no SIGCHLD and no child.
 *
 * Fails with BERTH_ERROR_IO (no berth-probe, or none that answers in time), _SYNTAX or _RANGE (of
 * BERTH_PROBE_DEADLINE), or like the two functions below. */
int berth_pool_open(const struct berth_pool_options *options, struct berth_pool **ret_pool,
                    struct berth_error *error);

/* Opens a pool of these devices: device number i has slot i. The list may be empty: every claim
 * then fails at once with BERTH_ERROR_NO_DEVICE. The pool copies everything. `options` may be NULL.
 * Fails with BERTH_ERROR_INVALID (a duplicate device, an unknown policy), _LIMIT (too many devices)
 * or _MEMORY. */
int berth_pool_open_devices(const struct berth_device *devices, size_t count,
                            const struct berth_pool_options *options, struct berth_pool **ret_pool,
                            struct berth_error *error);

/* Opens a pool of the devices in an inventory file. Fails like berth_pool_open_devices, or because
 * the file cannot be read or is not valid. Blocks while it reads the file. */
int berth_pool_open_inventory(const char *path, const struct berth_pool_options *options,
                              struct berth_pool **ret_pool, struct berth_error *error);

/* Closes the pool. Waiting claims end with BERTH_ERROR_CANCELLED, also those with a callback;
 * arbiters stop and are freed; all leases end. Other threads may be blocked in a claim, or may
 * still be inside the call that woke the closing thread: the function waits until they return. No
 * other call may be under way or begin. Must not be called from a callback. In a child of fork() it
 * only frees memory. NULL is allowed. */
void berth_pool_close(struct berth_pool *pool);

/* Returns the number of devices. Slots are 0 to capacity-1. */
size_t berth_pool_capacity(const struct berth_pool *pool);

/* Returns the number of claims that wait now, without opportunistic ones. */
size_t berth_pool_pending(const struct berth_pool *pool);

/* Describes the device of a slot. Fails with BERTH_ERROR_RANGE. */
int berth_pool_device(const struct berth_pool *pool, size_t slot, struct berth_device *ret_device,
                      struct berth_error *error);

enum berth_health {
    BERTH_HEALTH_UNKNOWN = 0,
    BERTH_HEALTH_OK = 1,
    BERTH_HEALTH_SICK = 2,
};

#define BERTH_REASON_SIZE 128

/* The state of a device at the last query or report. Figures may be BERTH_UNKNOWN. */
struct berth_device_state {
    size_t size;              /* sizeof(struct berth_device_state), set by the caller */
    bool present;             /* false: it is gone; leases on it last until they are released */
    bool old;                 /* the driver does not answer now; the rest is from before */
    bool asleep;              /* powered down; it is not queried, so that it stays asleep */
    enum berth_health health; /* a sick device is not granted */
    int64_t sampled_at;       /* time of the oldest figure, nanoseconds since 1970 */
    int64_t memory_free;      /* bytes */
    int64_t utilization;      /* thousandths, 0 to 1000 */
    int64_t temperature;      /* thousandths of a degree Celsius */
    int64_t power;            /* milliwatts */
    char reason[BERTH_REASON_SIZE]; /* why it is sick; empty: unknown */
};

/* Gets the state of a device. Fails with BERTH_ERROR_RANGE, _INVALID (wrong `size`) or _FORKED. */
int berth_pool_device_state(const struct berth_pool *pool, size_t slot,
                            struct berth_device_state *ret_state, struct berth_error *error);

/* ---- Requests ---- */

struct berth_request;

/* Creates a request for one whole device. The caller destroys it and may do so at any time: claims
 * keep what they need. Several threads may claim with one request as long as none changes it. */
int berth_request_create(struct berth_request **ret_request, struct berth_error *error);
void berth_request_destroy(struct berth_request *request);

/* Sets one property, named and written as the options of berth(1): ("gpus", "2-4"), ("model",
 * "A100"), ("sharing", "time-slice"), ("share", "0.25"), ("time", "10m"), ("opportunistic", NULL).
 * Properties: gpus replicas device avoid vendor model min-free min-memory min-cap sharing share
 * memory scheduling policy affinity priority opportunistic time name. Fails with
 * BERTH_ERROR_INVALID, _SYNTAX, _RANGE or _MEMORY; a refused value changes nothing. The claim
 * checks whether the properties fit together. An opportunistic claim gets only devices that no
 * other claim waits for; its holder gets no notice when another claim needs them: use an arbiter
 * for that. */
int berth_request_set(struct berth_request *request, const char *name, const char *value,
                      struct berth_error *error);

/* ---- Claims and leases ---- */

/* A claim that was started with berth_claim_start. */
struct berth_ticket {
    uint64_t id;
    uint64_t pool;
};

/* A NULL request below means one whole device. Any claim may fail with
 *   BERTH_ERROR_NO_DEVICE   the pool is empty
 *   BERTH_ERROR_IMPOSSIBLE  no device here can ever serve it; the message says why
 *   BERTH_ERROR_INVALID     the request contradicts itself, or it is best-effort with several
 *                           replicas: claim each replica separately
 *   BERTH_ERROR_MEMORY, BERTH_ERROR_FORKED */

/* Claims, and waits for at most `timeout` nanoseconds (BERTH_FOR_EVER: no limit). Further errors:
 * BERTH_ERROR_TIMED_OUT, BERTH_ERROR_CANCELLED (the pool closes). */
int berth_claim(struct berth_pool *pool, const struct berth_request *request, int64_t timeout,
                struct berth_lease *ret_lease, struct berth_error *error);

/* Claims if berth_claim would be granted at once, else fails with BERTH_ERROR_BUSY. It never
 * blocks, never overtakes a waiting claim, preempts no lease and is never counted as pending. */
int berth_try_claim(struct berth_pool *pool, const struct berth_request *request,
                    struct berth_lease *ret_lease, struct berth_error *error);

/* Releases the devices and grants the next claims before it returns. Fails with
 * BERTH_ERROR_NOT_FOUND if the lease is not held (released before, of another pool, never granted).
 * Any thread may release. */
int berth_release(struct berth_pool *pool, struct berth_lease lease, struct berth_error *error);

/* ---- Claims that do not block ---- */

struct berth_claim_options {
    size_t size;     /* sizeof(struct berth_claim_options) */
    int64_t timeout; /* nanoseconds to wait; 0 or BERTH_FOR_EVER: no limit */

    /* Called once with the outcome: 0 and the lease, or BERTH_ERROR_TIMED_OUT, _CANCELLED or
     * _IMPOSSIBLE (a device is gone). Like every callback, it usually runs in the thread that
     * caused the outcome, possibly before berth_claim_start returns. NULL: the pool keeps the
     * outcome for berth_claim_wait or berth_claim_next. */
    void (*done)(void *data, struct berth_ticket ticket, int code, struct berth_lease lease);
    void *data;
};

/* Starts a claim. The options say how the outcome is delivered (NULL: the pool keeps it). */
int berth_claim_start(struct berth_pool *pool, const struct berth_request *request,
                      const struct berth_claim_options *options, struct berth_ticket *ret_ticket,
                      struct berth_error *error);

/* Waits for at most `timeout` nanoseconds for the outcome of a claim without callback, and collects
 * it. Another thread may cancel the claim meanwhile. Fails with BERTH_ERROR_BUSY if the claim still
 * waits (it stays in the queue), with the claim's own error, or with BERTH_ERROR_NOT_FOUND (the
 * outcome was collected before, perhaps by another thread). */
int berth_claim_wait(struct berth_pool *pool, struct berth_ticket ticket, int64_t timeout,
                     struct berth_lease *ret_lease, struct berth_error *error);

/* Takes a claim out of the queue at once. Its outcome is BERTH_ERROR_CANCELLED. Fails with
 * BERTH_ERROR_NOT_FOUND if the claim is already granted (release its lease), or with
 * BERTH_ERROR_MEMORY (the claim stays in the queue). */
int berth_cancel(struct berth_pool *pool, struct berth_ticket ticket, struct berth_error *error);

/* Returns a descriptor that is readable while the pool keeps the outcome of a claim without
 * callback. The pool owns it. Fails with BERTH_ERROR_IO. */
int berth_pool_descriptor(struct berth_pool *pool, struct berth_error *error);

/* Collects the oldest kept outcome. *ret_code is 0 (then the lease is valid) or the claim's
 * error. Fails with BERTH_ERROR_BUSY if there is none. Never blocks. */
int berth_claim_next(struct berth_pool *pool, struct berth_ticket *ret_ticket, int *ret_code,
                     struct berth_lease *ret_lease, struct berth_error *error);

/* ---- Leases ---- */

struct berth_lease_device {
    size_t slot;
    enum berth_vendor vendor;
    uint32_t index;
    uint32_t mig;
    const char *name; /* NULL: unknown */
    const char *uuid; /* NULL: unknown */
    uint32_t share;   /* millionths of the device; 1000000: the whole device */
    int64_t memory;   /* reserved bytes; BERTH_UNKNOWN: none */
};

/* Fills in up to `capacity` devices of a lease, replica after replica, and returns their number.
 * Allocates nothing. Fails with BERTH_ERROR_NOT_FOUND like berth_release. */
int berth_lease_devices(const struct berth_pool *pool, struct berth_lease lease,
                        struct berth_lease_device *ret_devices, size_t capacity,
                        struct berth_error *error);

struct berth_slot {
    size_t slot;
    enum berth_vendor vendor;
    uint32_t index;
    uint32_t mig;
    const char *name; /* NULL: unknown */
    bool leased;
    uint32_t tenants; /* leases on the device */
    uint64_t lease;   /* the id of one of them; 0: none */
};

/* Takes a snapshot: fills in up to `capacity` slots in slot order, all of the same moment, and
 * returns the number of slots. Allocates nothing. Fails only with BERTH_ERROR_FORKED. */
int berth_snapshot_leases(const struct berth_pool *pool, struct berth_slot *ret_slots,
                          size_t capacity);

/* ---- Arbiters: opportunistic work that gives way ---- */

struct berth_arbiter_options {
    size_t size; /* sizeof(struct berth_arbiter_options) */
    size_t max;  /* maximum number of leases at once; 0: one per device */

    /* Offers a spare device under an opportunistic lease. Return true to use it, and release it
     * later with berth_release. Return false to decline; it is offered again after the next
     * release. An arbiter makes one offer at a time. */
    bool (*offer)(void *data, struct berth_lease lease, const struct berth_lease_device *device);

    /* A claim waits for the device: release it soon. It may have been released just now. */
    void (*take_back)(void *data, struct berth_lease lease);

    /* The grace period is over: release the device now. The waiting claim gets it only after that.
     * May be NULL. */
    void (*force)(void *data, struct berth_lease lease);
    void *data;
};

struct berth_arbiter;

/* Starts to offer spare devices while no claim waits for them. Devices that are spare now are
 * offered before it returns. Fails with BERTH_ERROR_INVALID (no offer or take_back) or _MEMORY. */
int berth_arbiter_start(struct berth_pool *pool, const struct berth_arbiter_options *options,
                        struct berth_arbiter **ret_arbiter, struct berth_error *error);

/* Stops the offers, waits until none of the arbiter's callbacks runs, and frees the arbiter. Must
 * not be called from its callbacks or after berth_pool_close. Its leases last until they are
 * released, and take_back is not called for them any more. NULL is allowed. */
void berth_arbiter_stop(struct berth_arbiter *arbiter);

/* ---- Loads and advice ---- */

/* Reports how much of the program's own work is queued and active on a device. The policy
 * least-loaded uses it at once. Fails with BERTH_ERROR_RANGE. */
int berth_report_work(struct berth_pool *pool, size_t slot, uint64_t queued, uint64_t active,
                      struct berth_error *error);

/* Reports figures that the program has measured itself. Fails with BERTH_ERROR_RANGE. */
int berth_report_load(struct berth_pool *pool, size_t slot, const struct berth_load *load,
                      struct berth_error *error);

/* Sets a device's weight under the policy weighted (default 1). Fails with BERTH_ERROR_RANGE, also
 * for 0. */
int berth_set_weight(struct berth_pool *pool, size_t slot, uint32_t weight,
                     struct berth_error *error);

/* Advises which devices the request would best use now, without a lease. Fills in up to `capacity`
 * slots and returns their number. A pick counts as work on its devices until their next load or
 * work figure, so that picks do not all go to one device. Fails like berth_try_claim. */
int berth_pick(struct berth_pool *pool, const struct berth_request *request, size_t *ret_slots,
               size_t capacity, struct berth_error *error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
