/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a history: the engine, the model, and the first broken promise.
 */
#ifndef PROMISES_RUN_H
#define PROMISES_RUN_H

#include "promises/model.h"
#include "support/random.h"

enum { REQUESTS_MAX = 512, NOTICES_MAX = LEASES_MAX };

/* The first promise that was broken, and how. */
struct verdict {
    int promise; /* 0: none */
    uint32_t operation;
    char message[400];
};

/* How often each event happened, to see that none is missing. */
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
    unsigned long promises; /* starts that were looked at again */
    unsigned long restores;
    unsigned long within; /* grants within a lease */
    unsigned long limited;
    unsigned long picks;
    unsigned long given;
    unsigned long given_past; /* of those, what could not have been claimed now */
    unsigned long not_given;
    unsigned long returned;
    unsigned long returned_to_wait; /* of those, what was not granted again at once */
    unsigned long ranked;           /* choices in which a rank decided */
    unsigned long for_others;       /* claims to which a device was reserved for others */
};

/* A request by the engine's number, by the handle, or both. */
struct run_request {
    uint32_t operation; /* that opened it; 0: this place is free */
    uint64_t number;    /* in events; 0: not said yet */
    uint64_t scope;
    const struct asking *asking;
    struct engine_request *handle; /* NULL: closed */
    uint32_t parts;                /* claims that were made with it */
};

struct run {
    const struct plan *plan;
    struct engine *engine;
    struct event_sink sink;
    struct model model;
    struct model before; /* the model at the beginning of the step, where a check wants it */
    struct verdict verdict;
    struct tally *tally;
    struct run_request requests[REQUESTS_MAX];
    uint64_t last_id;
    struct text journal;   /* all events so far, encoded */
    struct text held_back; /* events of a claim of a quiet run, encoded */
    bool holding_back;
    struct text *trace; /* the same in words, after each operation's number; NULL: not wanted */
    size_t event_count;
    uint64_t fingerprint; /* of all events that ever were */
    bool other_steps;     /* advance the time in one step where the default is event by event */

    /* The current operation, and its possible results. */
    const struct operation *operation;
    uint64_t target;           /* the lease or claim that it names; 0: none */
    struct run_request *asker; /* of a claim, try or pick */
    struct reference origin;   /* of the claim that is being made */
    int64_t deadline;
    uint32_t expected_size; /* of the claim that is being made */
    slot_set expected_allowed;
    uint64_t told_lease; /* by an event, of the claim that is being made */
    uint64_t told_claim;
    uint64_t notices[NOTICES_MAX]; /* leases that were given notice in this step */
    size_t notice_count;
    bool granted_since; /* a notice: it may have been for that claim */
    int64_t until;      /* how far the time may go in this step */

    /* For the test of the shrinker: complain at the so many-th grant of slot 1. */
    unsigned fault_at;
    unsigned fault_seen;
};

/* Begins a run on the plan's machine. */
void run_init(struct run *run, const struct plan *plan, struct tally *tally);
void run_finish(struct run *run);

/* Runs one operation and all checks. Returns whether all promises hold. */
bool run_step(struct run *run, const struct operation *operation);

/* The operations that claim, try, give or pick; that claim once more or close a request. */
void run_claims(struct run *run, const struct operation *operation);
void run_again(struct run *run, const struct operation *operation);
/* All checks of the state as it is between two calls. */
void run_check_all(struct run *run);
static inline int64_t run_later(int64_t now, int64_t by)
{
    return by >= TIME_NEVER - now ? TIME_NEVER : now + by;
}

/* Tells the load of the model's device. */
void run_load(const struct run *run, struct engine *engine, uint32_t slot);
/* Reserves the slot as the model's device is. Returns as engine_reserve_device. */
int run_reserve(struct engine *engine, uint32_t slot, const struct model_device *device);
/* The operations on devices, limits and rules. */
void run_machine(struct run *run, const struct operation *operation);

/* Notes a broken promise, unless one was noted before. */
void run_blame(struct run *run, int promise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct run_request *run_request_of(struct run *run, uint64_t number);
/* The lease or waiting claim that came of a part of an operation; NULL: there is none now. */
struct model_lease *run_lease(struct run *run, struct reference reference);
struct model_claim *run_claim(struct run *run, struct reference reference);

/* An engine by these rules; takes the machine over on success. */
int run_create(const struct plan *plan, const struct rules_plan *rules, struct machine *machine,
               struct engine **ret_engine);
/* The settings that the rules are. */
struct engine_settings run_settings(const struct plan *plan, const struct rules_plan *rules);
/* Closes the handle of a request. */
void run_close(struct run *run, struct run_request *request);

/* ---- Events (events.c) ---- */

/* Handles every event: updates the model. */
void run_tell(void *context, const struct engine_event *event);
/* In a quiet run, keeps the events of a call until it is known what came before them and was not
 * told: that the claim was granted as this lease, or that this lease is gone (0: neither). */
void run_hold_back(struct run *run);
void run_let_go(struct run *run, enum event_type untold, uint64_t lease);

/* ---- Restoring (restore.c) ---- */

void run_log(struct run *run, const struct engine_event *event);
/* Goes on with an engine that was restored from the events so far, or from the state alone, which
 * takes their place then. */
void run_restore(struct run *run, bool from_state);
/* The engine's state in bytes. Returns how many events that are. */
size_t run_dump(struct run *run, struct engine *engine, struct text *out);

/* ---- Checks ---- */

/* Checks that a grant is right now. The claim waits or was just made (id 0). */
void check_grant(struct run *run, const struct model_claim *claim,
                 const struct engine_event *event);
/* Checks that a direct grant has its slots, and that they have room for it. */
void check_gift(struct run *run, const struct model_claim *claim, const struct engine_event *event);
/* Checks that a new claim got the right ones of its possible devices, where the rules decide that.
 */
void check_choice(struct run *run, const struct model_claim *claim,
                  const struct engine_event *event);
/* Checks that the claim does not overtake others that wait. */
void check_grant_order(struct run *run, const struct model_claim *claim,
                       const struct engine_event *event);
/* Checks that no device carries more than it can. */
void check_devices(struct run *run);
/* Checks that no claim waits that may start, and what the engine reports about waiting claims. */
void check_queue(struct run *run);
/* Copies the reservations of all waiting claims into the model. */
void check_reservations(struct run *run);
/* Checks that leases are preempted where that helps, and only there. */
void check_giving_way(struct run *run);
/* Checks that leases, claims and slots agree with the events. */
void check_views(struct run *run);
/* Checks that nothing that was due has been missed. */
void check_due(struct run *run);
/* Checks that no claim waits that can never be granted. */
void check_impossible(struct run *run);

#endif
