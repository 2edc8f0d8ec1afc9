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
 * Claims are served by class, then arrival; who waits for many devices is not starved by those who
 * want few. A device under an exclusive lease has no other lease.
 *
 * Every call may be made from any thread, also from within a callback, unless its comment says
 * otherwise. Callbacks run without the pool's lock, in a thread that is in a call on the pool or in
 * the pool's own: "berth-keeper", which is started when something first has to happen by the clock,
 * and "berth-looker", which looks at the hardware. They take no signals. A callback that is caused
 * from within a callback runs when that one ends or blocks, so they do not pile up. After fork()
 * the child has no leases: there every call but berth_pool_close fails with BERTH_ERROR_FORKED, and
 * the parent's pool is as it was.
 *
 * Calls return 0 (or what their comment says) on success and a negative code of berth/error.h on
 * failure. The last parameter, which may be NULL, then holds one line for people. Outputs are
 * untouched on failure. Strings that a call hands out live as long as the pool.
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

/* Public, also where a program is compiled with hidden visibility. */
#pragma GCC visibility push(default)

#define BERTH_VERSION_MAJOR 0
#define BERTH_VERSION_MINOR 1
#define BERTH_VERSION_PATCH 0

/* The version of the library that is loaded, such as "0.1.0". */
const char *berth_version(void);

/* A number that is not known, of memory or load. */
#define BERTH_UNKNOWN INT64_MIN
/* A time to wait, in nanoseconds, that never ends. */
#define BERTH_FOR_EVER INT64_MAX
/* The mig of a whole GPU. */
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
    uint32_t index;     /* the vendor's own; may be sparse, and two vendors may both have a 0 */
    uint32_t mig;       /* MIG number on that GPU; BERTH_NO_MIG for a whole GPU */
    const char *name;   /* the model, such as "NVIDIA A100-SXM4-80GB"; NULL: unknown */
    const char *uuid;   /* NULL: unknown */
    int64_t memory;     /* bytes in all, or BERTH_UNKNOWN */
    uint16_t cap_major; /* compute capability; 0.0: unknown */
    uint16_t cap_minor;
};

/* How busy a device is; each figure may be BERTH_UNKNOWN. */
struct berth_load {
    int64_t memory_free; /* bytes */
    int64_t utilization; /* thousandths, 0 to 1000 */
};

/* One device that a policy may choose. */
struct berth_candidate {
    size_t slot;
    struct berth_load load;
    uint64_t queued; /* work reported with berth_report_work */
    uint64_t active;
    uint32_t tenants; /* leases on it that share it */
    bool avoid;       /* the request would rather have another */
};

/* A lease, by value. The id grows for ever within a pool, so it serves as a fencing token: of two
 * leases of one device the later has the greater. */
struct berth_lease {
    uint64_t id;
    uint64_t pool; /* which pool of the process it belongs to */
};

struct berth_pool_options {
    size_t size; /* sizeof(struct berth_pool_options): which members the caller knows */

    /* Samples one device; called for each device before the pool opens and then every
     * `sample_interval` nanoseconds (0: 250 ms) in a thread of the pool. Figures it does not know
     * it sets to BERTH_UNKNOWN. It must not call the pool. NULL: no sampling, but for the pool of
     * the hardware, which is looked at every `sample_interval` (0: 1 s) then. */
    void (*sample)(void *data, size_t slot, struct berth_load *ret_load);
    void *sample_data;
    int64_t sample_interval;

    /* The policy of requests that name none: "first", "round-robin", "least-loaded",
     * "best-available", "best-compute", "pack", "spread", "topology", "frag", "weighted"; NULL:
     * topology for several devices, frag for shares of devices, else first. */
    const char *policy;

    /* A policy of the program's own, used instead of the above. Marks `wanted` of the `count`
     * candidates, which come in slot order, in `ret_chosen` (all false before). A choice of another
     * size is mended with the lowest slots. Called under the pool's lock: it must be quick and must
     * not call the pool. */
    void (*choose)(void *data, const struct berth_candidate *candidates, size_t count,
                   size_t wanted, bool *ret_chosen);
    void *choose_data;

    int64_t grace; /* nanoseconds from notice to force for opportunistic leases; 0: 10 s */

    /* A lease is past the time limit of its request ("time"). Nothing else happens: its devices
     * stay its own until its holder releases it, as it now should. NULL: nobody is told. */
    void (*expired)(void *data, struct berth_lease lease);
    void *expired_data;
};

struct berth_pool;

/* Opens a pool of this machine's GPUs, or of the devices of the inventory file that BERTH_INVENTORY
 * names. What an inherited mask hides (CUDA_VISIBLE_DEVICES and its like) is not in it. None is
 * fine, as below. `options` may be NULL.
 *
 * The hardware is looked at by a helper program, berth-probe, so that a driver that hangs or a
 * library that crashes does so there: opening takes 3 s at most, or what BERTH_PROBE_DEADLINE says.
 * Then the pool goes on looking, unless the program samples by itself: loads are those of the last
 * look, a device that fell ill or is gone is not granted until it recovers or is back, and while
 * nobody answers the pool goes on with what it knows. Devices that are new are not taken in. The
 * program is not forked, gets no SIGCHLD and no child.
 *
 * Fails with BERTH_ERROR_IO (no berth-probe, or none that answers in time), _SYNTAX or _RANGE (of
 * BERTH_PROBE_DEADLINE), or as the two below. */
int berth_pool_open(const struct berth_pool_options *options, struct berth_pool **ret_pool,
                    struct berth_error *error);

/* Opens a pool of these devices, in this order: device number i has slot i. None is fine: every
 * claim is then refused at once with BERTH_ERROR_NO_DEVICE. Everything is copied. `options` may be
 * NULL. Fails with BERTH_ERROR_INVALID (a device twice, an unknown policy), _IO or _MEMORY. */
int berth_pool_open_devices(const struct berth_device *devices, size_t count,
                            const struct berth_pool_options *options, struct berth_pool **ret_pool,
                            struct berth_error *error);

/* The same with the devices of an inventory file. Blocks as long as reading the file does. */
int berth_pool_open_inventory(const char *path, const struct berth_pool_options *options,
                              struct berth_pool **ret_pool, struct berth_error *error);

/* Ends the pool: waiting claims end with BERTH_ERROR_CANCELLED, callbacks included, arbiters stop
 * and are gone, leases are gone. Other threads may be blocked in a claim, or still be in the call
 * that woke the one that closes: those return first. No other call may be under way or begin. NULL
 * is fine. Not to be called from a callback. In a child of fork() it only frees what it can. */
void berth_pool_close(struct berth_pool *pool);

/* How many devices the pool has; the slots are 0 to capacity-1. */
size_t berth_pool_capacity(const struct berth_pool *pool);

/* How many claims are blocked right now; opportunistic ones do not count. */
size_t berth_pool_pending(const struct berth_pool *pool);

/* What the device of a slot is. Fails with BERTH_ERROR_RANGE. */
int berth_pool_device(const struct berth_pool *pool, size_t slot, struct berth_device *ret_device,
                      struct berth_error *error);

enum berth_health {
    BERTH_HEALTH_UNKNOWN = 0,
    BERTH_HEALTH_OK = 1,
    BERTH_HEALTH_SICK = 2,
};

#define BERTH_REASON_SIZE 128

/* How a device is doing, as of the last look or report. Figures may be BERTH_UNKNOWN. */
struct berth_device_state {
    size_t size;  /* sizeof(struct berth_device_state), set by the caller: the members it knows */
    bool present; /* false: it is gone; leases on it go on until they are released */
    bool old;     /* nobody answers for it now: the rest was so before */
    bool asleep;  /* powered down; its figures are not looked at, so that it stays so */
    enum berth_health health;       /* what is sick is not granted */
    int64_t sampled_at;             /* of the oldest figure, nanoseconds since 1970 UTC */
    int64_t memory_free;            /* bytes */
    int64_t utilization;            /* thousandths, 0 to 1000 */
    int64_t temperature;            /* thousandths of a degree Celsius */
    int64_t power;                  /* milliwatts */
    char reason[BERTH_REASON_SIZE]; /* why it is sick, for people; empty: not known */
};

/* Fails with BERTH_ERROR_RANGE, _INVALID (`size` is none) or _FORKED. */
int berth_pool_device_state(const struct berth_pool *pool, size_t slot,
                            struct berth_device_state *ret_state, struct berth_error *error);

/* ---- What is wanted ---- */

struct berth_request;

/* A request for one whole device. The caller destroys it, at any time: claims keep what they need.
 * Two threads may claim with one request; it must not be changed meanwhile. */
int berth_request_create(struct berth_request **ret_request, struct berth_error *error);
void berth_request_destroy(struct berth_request *request);

/* Sets one property, named and written as the options of berth(1): ("gpus", "2-4"), ("model",
 * "A100"), ("sharing", "time-slice"), ("share", "0.25"), ("time", "10m"), ("opportunistic", NULL).
 * Properties: gpus replicas device avoid vendor model min-free min-memory min-cap sharing share
 * memory scheduling policy affinity priority opportunistic time name. Fails with
 * BERTH_ERROR_INVALID, _SYNTAX, _RANGE or _MEMORY. Whether all of it makes sense together, the
 * claim says. A value that is refused changes nothing. A claim with an opportunistic request is
 * granted only what nobody waits for; its holder is not asked to give it back when somebody does:
 * that is what arbiters are for. */
int berth_request_set(struct berth_request *request, const char *name, const char *value,
                      struct berth_error *error);

/* ---- Claims and leases ---- */

/* A claim that was started and may still wait. */
struct berth_ticket {
    uint64_t id;
    uint64_t pool;
};

/* A NULL request below means one whole device. Any claim may fail with
 *   BERTH_ERROR_NO_DEVICE   the pool is empty
 *   BERTH_ERROR_IMPOSSIBLE  no device here could ever do; the message says why
 *   BERTH_ERROR_INVALID     the request contradicts itself; or it is best-effort with several
 *                           replicas, each of which is to be claimed by itself
 *   BERTH_ERROR_MEMORY, BERTH_ERROR_FORKED */

/* Claims and waits for its turn, at most `timeout` nanoseconds (BERTH_FOR_EVER: without end).
 * Further errors: BERTH_ERROR_TIMED_OUT, BERTH_ERROR_CANCELLED (the pool closes). */
int berth_claim(struct berth_pool *pool, const struct berth_request *request, int64_t timeout,
                struct berth_lease *ret_lease, struct berth_error *error);

/* Claims if berth_claim would be granted at once, else fails with BERTH_ERROR_BUSY. Never blocks,
 * never overtakes a waiting claim, revokes nobody and is never pending. */
int berth_try_claim(struct berth_pool *pool, const struct berth_request *request,
                    struct berth_lease *ret_lease, struct berth_error *error);

/* Gives the devices back; the next claims are granted before it returns. A lease that is not held
 * (released already, of another pool, never granted) is BERTH_ERROR_NOT_FOUND and changes nothing.
 * Any thread may release. */
int berth_release(struct berth_pool *pool, struct berth_lease lease, struct berth_error *error);

/* ---- Claims that do not block ---- */

struct berth_claim_options {
    size_t size;     /* sizeof(struct berth_claim_options) */
    int64_t timeout; /* nanoseconds to wait; 0 or BERTH_FOR_EVER: without end */

    /* Called once with how the claim ended: 0 and the lease, or BERTH_ERROR_TIMED_OUT,
     * _CANCELLED, _IMPOSSIBLE (a device went away). It runs as all callbacks do, usually in the
     * thread that made it so, perhaps before berth_claim_start returns. NULL: the outcome is kept
     * for berth_claim_wait or berth_claim_next. */
    void (*done)(void *data, struct berth_ticket ticket, int code, struct berth_lease lease);
    void *data;
};

/* Starts a claim; the outcome comes as the options say (NULL: kept). */
int berth_claim_start(struct berth_pool *pool, const struct berth_request *request,
                      const struct berth_claim_options *options, struct berth_ticket *ret_ticket,
                      struct berth_error *error);

/* Waits for the outcome of a claim without callback, at most `timeout` nanoseconds, and collects
 * it. Another thread may cancel it meanwhile. Fails with BERTH_ERROR_BUSY while it waits on (the
 * claim stays), with how the claim ended, or with BERTH_ERROR_NOT_FOUND (collected already, perhaps
 * by another thread that waited for it, too). */
int berth_claim_wait(struct berth_pool *pool, struct berth_ticket ticket, int64_t timeout,
                     struct berth_lease *ret_lease, struct berth_error *error);

/* Takes a claim out of the queue at once; it ends with BERTH_ERROR_CANCELLED, which its callback is
 * told, or which is kept. One that was granted already is BERTH_ERROR_NOT_FOUND: its lease is to be
 * released. Fails with BERTH_ERROR_MEMORY, too; the claim waits on then. */
int berth_cancel(struct berth_pool *pool, struct berth_ticket ticket, struct berth_error *error);

/* A descriptor that polls readable while the outcome of a claim without callback is kept. It
 * belongs to the pool. Fails with BERTH_ERROR_IO. */
int berth_pool_descriptor(struct berth_pool *pool, struct berth_error *error);

/* Collects the oldest kept outcome. *ret_code is 0 (the lease is good) or how the claim ended.
 * Fails with BERTH_ERROR_BUSY when none is kept. Never blocks. */
int berth_claim_next(struct berth_pool *pool, struct berth_ticket *ret_ticket, int *ret_code,
                     struct berth_lease *ret_lease, struct berth_error *error);

/* ---- What is held ---- */

struct berth_lease_device {
    size_t slot;
    enum berth_vendor vendor;
    uint32_t index;
    uint32_t mig;
    const char *name; /* NULL: unknown */
    const char *uuid; /* NULL: unknown */
    uint32_t share;   /* millionths of the device; 1000000 when it is leased whole */
    int64_t memory;   /* bytes reserved, or BERTH_UNKNOWN when none are */
};

/* Fills in up to `capacity` devices of a lease and returns how many it has, replica after replica.
 * Allocates nothing. Fails with BERTH_ERROR_NOT_FOUND as berth_release. */
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
    uint32_t tenants; /* leases on it */
    uint64_t lease;   /* the id of one that is; 0: none */
};

/* Fills in up to `capacity` slots, in slot order, all as of one moment, and returns how many the
 * pool has. Allocates nothing. Fails with BERTH_ERROR_FORKED only. */
int berth_snapshot_leases(const struct berth_pool *pool, struct berth_slot *ret_slots,
                          size_t capacity);

/* ---- Helpers: work that gives way ---- */

struct berth_arbiter_options {
    size_t size; /* sizeof(struct berth_arbiter_options) */
    size_t max;  /* leases to have out at once; 0: as many as there are devices */

    /* A spare device, under an opportunistic lease of its own. Return true to use it: give it back
     * with berth_release, later. Return false to decline; it is offered again after somebody has
     * released something. One offer of an arbiter runs at a time. */
    bool (*offer)(void *data, struct berth_lease lease, const struct berth_lease_device *device);

    /* Somebody waits for the device: give it back soon. It may have been given back just now. */
    void (*take_back)(void *data, struct berth_lease lease);

    /* The grace is over: give it back now. May be NULL. The device is not granted on before it is
     * given back. */
    void (*force)(void *data, struct berth_lease lease);
    void *data;
};

struct berth_arbiter;

/* Offers spare devices to the callbacks as long as nobody waits for them. What is spare already is
 * offered before it returns. Fails with BERTH_ERROR_INVALID (no offer or take_back), _MEMORY. */
int berth_arbiter_start(struct berth_pool *pool, const struct berth_arbiter_options *options,
                        struct berth_arbiter **ret_arbiter, struct berth_error *error);

/* Offers nothing more, waits until none of its callbacks runs (so not from within one) and frees
 * the arbiter. Leases that are out stay until they are released; nobody is asked to give them back
 * any more. NULL is fine. Not after berth_pool_close. */
void berth_arbiter_stop(struct berth_arbiter *arbiter);

/* ---- Loads and advice ---- */

/* Says how much of the program's own work is queued and running on a device. least-loaded counts it
 * at once. Fails with BERTH_ERROR_RANGE. */
int berth_report_work(struct berth_pool *pool, size_t slot, uint64_t queued, uint64_t active,
                      struct berth_error *error);

/* Gives figures that the program has measured itself. Fails with BERTH_ERROR_RANGE. */
int berth_report_load(struct berth_pool *pool, size_t slot, const struct berth_load *load,
                      struct berth_error *error);

/* How much of the grants a device is to get under the policy weighted (1 at first; 0 is refused
 * with BERTH_ERROR_RANGE). */
int berth_set_weight(struct berth_pool *pool, size_t slot, uint32_t weight,
                     struct berth_error *error);

/* Advice: which devices the request would best use now, without taking them. Fills in up to
 * `capacity` slots and returns how many there are. A pick counts as work on its devices until their
 * next load or work figure, so that picks do not herd. Fails as berth_try_claim. */
int berth_pick(struct berth_pool *pool, const struct berth_request *request, size_t *ret_slots,
               size_t capacity, struct berth_error *error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
