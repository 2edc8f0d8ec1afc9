/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a history: the engine, the model, and the first broken promise.
 */
#ifndef PROMISES_RUN_H
#define PROMISES_RUN_H

#include "promises/model.h"
#include "support/random.h"

enum { REQUESTS_MAX = 512, NOTICES_MAX = LEASES_MAX };

/* The first promise that was broken, and how. The promises have numbers; 13 is not the engine's:
 *
 *      1  An exclusive device has one lease.
 *      2  A shared device has one mode, and its tenants together never exceed it.
 *      3  A grant is all or nothing, and it is what the request asks for.
 *      4  Claims are served in order, and reservations are kept.
 *      5  A try succeeds exactly when a claim would be granted at once.
 *      6  The queue has exactly the claims that wait.
 *      7  An impossible request is refused at once; blocked and sick devices are worth waiting for.
 *      8  A lease ends when it is released, drained or vacated, and not before.
 *      9  A restored engine continues with the same state.
 *     10  Opportunistic leases take only what no claim wants, and are preempted.
 *     11  Unknown free memory is never taken for enough.
 *     12  Picks and grants follow the policy.
 *     14  A lease within a lease stays inside it.
 *     99  The made-up fault of the shrinker's test.
 */
struct verdict {
    int promise; /* 0: none */
    uint32_t operation;
    char message[400];
};

/* Counts of events, to check that every kind occurs often enough. */
struct tally {
    unsigned long steps;
    unsigned long checks;
    unsigned long granted;
    unsigned long granted_later; /* after waiting */
    unsigned long overtakes; /* grants past an earlier blocked claim that wants the device too */
    unsigned long waits;
    unsigned long refused;
    unsigned long impossible;
    unsigned long no_device;
    unsigned long notices;
    unsigned long revoked;
    unsigned long expired;
    unsigned long timed_out;
    unsigned long reservations;
    unsigned long starts_known;
    unsigned long promises; /* starts that were compared with an earlier promise */
    unsigned long restores;
    unsigned long within; /* grants within a lease */
    unsigned long limited;
    unsigned long picks;
    unsigned long given;      /* direct grants */
    unsigned long given_past; /* direct grants where a claim would have to wait */
    unsigned long not_given;  /* direct grants that were refused */
    unsigned long returned;
    unsigned long returned_to_wait; /* returned leases that were not granted again at once */
    unsigned long ranked;           /* choices that involved a preferred device */
    unsigned long for_others;       /* claims that do not accept a reserved device */
};

/* A request of the engine. It has a handle while it is open, and a number while it is in use. */
struct run_request {
    uint32_t operation; /* that opened it; 0: this entry is free */
    uint64_t number;    /* in events; 0: no event has named it yet */
    uint64_t scope;
    const struct asking *asking;
    struct engine_request *handle; /* NULL: closed */
    uint32_t parts;                /* number of claims made with it */
};

struct run {
    const struct plan *plan;
    struct engine *engine;
    struct event_sink sink;
    struct model model;
    struct verdict verdict;
    struct tally *tally;
    struct run_request requests[REQUESTS_MAX];
    uint64_t last_id;
    struct text journal;   /* all events so far, encoded */
    struct text held_back; /* events that run_hold_back() delays, encoded */
    bool holding_back;
    struct text *trace; /* all events as text, each after its operation's number; NULL: none */
    size_t event_count;
    uint64_t fingerprint; /* hash of all events since the start */
    bool other_steps;     /* advance in one step where the default is moment by moment, and
                             moment by moment where the default is one step */

    /* The current operation, and its possible results. */
    const struct operation *operation;
    uint64_t target;           /* the lease or claim that the operation names; 0: none */
    struct run_request *asker; /* the request that claims; NULL: none */
    struct reference origin;   /* of the new claim */
    int64_t deadline;
    uint32_t expected_size; /* of the new claim; 0: it must wait */
    slot_set expected_allowed;
    uint64_t told_lease;           /* id of the new lease in its event; 0: no event yet */
    uint64_t told_claim;           /* id of the new claim in its event; 0: no event yet */
    uint64_t notices[NOTICES_MAX]; /* leases that were given notice in this step */
    size_t notice_count;
    bool granted_since; /* a claim was granted after a notice, which may have been for that claim */
    int64_t until;      /* the latest time that this step may reach */

    /* For the test of the shrinker: the grant of slot 1 with this number is a fault; 0: none. */
    unsigned fault_at;
    unsigned fault_seen;
};

/* Begins a run on the plan's machine. */
void run_init(struct run *run, const struct plan *plan, struct tally *tally);
void run_finish(struct run *run);

/* Runs one operation and all checks. Returns whether all promises hold. */
bool run_step(struct run *run, const struct operation *operation);

/* Runs an operation that claims, tries, gives or picks. */
void run_claims(struct run *run, const struct operation *operation);
/* Runs an operation that claims again or closes a request. */
void run_again(struct run *run, const struct operation *operation);
/* Runs all checks of the state between two calls. */
void run_check_all(struct run *run);
static inline int64_t run_later(int64_t now, int64_t by)
{
    return by >= TIME_NEVER - now ? TIME_NEVER : now + by;
}

/* Sets a device's load in the engine to the model's. */
void run_load(const struct run *run, struct engine *engine, uint32_t slot);
/* Reserves a slot for the users of the model's device. Returns what engine_reserve_device()
 * returns. */
int run_reserve(struct engine *engine, uint32_t slot, const struct model_device *device);
/* Runs an operation on devices, limits or rules. */
void run_machine(struct run *run, const struct operation *operation);

/* Records a broken promise, unless one is already recorded. */
void run_blame(struct run *run, int promise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct run_request *run_request_of(struct run *run, uint64_t number);
/* Return the lease or waiting claim that a part of an operation made; NULL: none exists now. */
struct model_lease *run_lease(struct run *run, struct reference reference);
struct model_claim *run_claim(struct run *run, struct reference reference);

/* Creates an engine with these rules. On success it takes over the machine. */
int run_create(const struct plan *plan, const struct rules_plan *rules, struct machine *machine,
               struct engine **ret_engine);
/* Converts rules to engine settings. */
struct engine_settings run_settings(const struct plan *plan, const struct rules_plan *rules);
/* Closes the handle of a request. */
void run_close(struct run *run, struct run_request *request);

/* ---- Events (events.c) ---- */

/* Handles an event: checks it and updates the model. */
void run_tell(void *context, const struct engine_event *event);
/* In a quiet run, the engine does not report every grant and release. run_hold_back() delays the
 * events of a call. run_let_go() makes up the `untold` event about `lease` (0: there is none) and
 * then handles the delayed events. */
void run_hold_back(struct run *run);
void run_let_go(struct run *run, enum event_type untold, uint64_t lease);

/* ---- Restoring (restore.c) ---- */

void run_log(struct run *run, const struct engine_event *event);
/* Replaces the engine with one that is restored from all events so far. If `from_state`, a dump of
 * the state first replaces these events. */
void run_restore(struct run *run, bool from_state);
/* Appends the engine's state as encoded events. Returns their number. */
size_t run_dump(struct run *run, struct engine *engine, struct text *out);

/* ---- Checks ---- */

/* Checks that a grant is correct. The claim waits or was just made (id 0). */
void check_grant(struct run *run, const struct model_claim *claim,
                 const struct engine_event *event);
/* Checks that a direct grant has the operation's slots, and that they have room for it. */
void check_gift(struct run *run, const struct model_claim *claim, const struct engine_event *event);
/* Checks that a new claim got its preferred devices, where the rules alone determine them. */
void check_choice(struct run *run, const struct model_claim *claim,
                  const struct engine_event *event);
/* Checks that the grant delays no earlier claim. */
void check_grant_order(struct run *run, const struct model_claim *claim,
                       const struct engine_event *event);
/* Checks that no device carries more than it can. */
void check_devices(struct run *run);
/* Checks that no claim waits that may start. Checks the engine's reports about waiting claims. */
void check_queue(struct run *run);
/* Checks that leases are preempted where that helps, and only there. */
void check_giving_way(struct run *run);
/* Checks that the leases, claims and slots that the engine shows agree with its events. */
void check_views(struct run *run);
/* Checks that everything due has happened. */
void check_due(struct run *run);
/* Checks that no impossible claim waits. */
void check_impossible(struct run *run);

#endif
