/* SPDX-License-Identifier: Apache-2.0
 *
 * A history: a made-up machine and the operations on its engine, all plain values. An operation
 * names claims and leases by the operation that made them, so it keeps its meaning when others are
 * removed. It does nothing if the operation that it names is removed.
 */
#ifndef PROMISES_HISTORY_H
#define PROMISES_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "engine/engine.h"
#include "engine/event.h"

enum {
    SLOTS_MAX = 16,       /* of a made-up machine, including devices that are added later */
    PARTY_GROUPS_MAX = 2, /* groups of one party */
    USERS = 4,            /* uids 1000 and up */
    GROUPS = 3,           /* gids 1, 2, 3 */
    FIRST_UID = 1000,
};

/* A set of slots: bit number i is slot i. */
typedef uint32_t slot_set;

/* A device as it is first declared. Only its health and its free memory change later. */
struct device_plan {
    struct device_id id;
    const char *name; /* NULL: unknown */
    const char *uuid;
    const char *parent;
    struct optional_number memory;
    struct capability cap;
    bool partitioned;
    bool free_known;
    uint64_t free;
    enum health health;
    int64_t numa; /* -1: unknown */
    uint32_t host;
};

/* The rules that may change; 0 and NULL mean the default. */
struct rules_plan {
    uint32_t time_slice_tenants;
    uint32_t mps_tenants;
    int64_t age_step;
    int64_t grace;
    const char *policy; /* of requests that name none */
};

struct plan {
    struct device_plan devices[SLOTS_MAX];
    unsigned planned; /* number of devices, including those that are added later */
    unsigned initial; /* number of devices at the start: the first ones */
    unsigned hosts;
    struct rules_plan rules; /* at the start */
    bool affinity_by_user;
    bool quiet; /* the engine reports no grant that never waited; the run looks it up instead */
};

/* Names the claim or lease that one part of an operation made. Only best-effort requests have more
 * than one part: one for each replica. */
struct reference {
    uint32_t operation; /* its number; 0: none */
    uint32_t part;
};

/* A request with its party, as plain values. */
struct asking {
    uint32_t number; /* of the operation that makes it; 0: none */
    struct device_count gpus;
    uint32_t replicas;
    enum scheduling scheduling;
    enum vendor_rule vendor_rule;
    enum vendor vendor;
    const char *model;
    slot_set wanted; /* 0: any */
    slot_set avoided;
    bool masked;
    slot_set mask;
    struct optional_number min_free;
    struct optional_number min_memory;
    struct capability min_cap;
    enum sharing sharing;
    struct optional_number share;
    struct optional_number memory;
    uint32_t pipe; /* number of the MPS pipe directory; 0: the request names none */
    uint32_t log;  /* number of the MPS log directory; 0: the request names none */
    enum priority priority;
    bool opportunistic;
    bool ranks;
    struct optional_number time;
    const char *policy;
    const char *affinity;
    uint32_t uid;
    uint32_t groups[PARTY_GROUPS_MAX];
    uint32_t group_count;
    struct reference parent; /* the lease in which it is made */
};

enum operation_kind {
    OPERATION_CLAIM,
    OPERATION_TRY,
    OPERATION_GIVE,
    OPERATION_PICK,
    OPERATION_AGAIN, /* claims once more with a request that is still open */
    OPERATION_CLOSE,
    OPERATION_CANCEL,
    OPERATION_RELEASE,
    OPERATION_DRAIN,
    OPERATION_VACATED,
    OPERATION_EXTEND,
    OPERATION_RETURN,
    OPERATION_ADVANCE,
    OPERATION_BLOCK,
    OPERATION_UNBLOCK,
    OPERATION_HEALTH,
    OPERATION_GONE,
    OPERATION_BACK,
    OPERATION_LOAD,
    OPERATION_WORK,
    OPERATION_WEIGHT,
    OPERATION_LIMIT_USER,
    OPERATION_LIMIT_GROUP,
    OPERATION_PREFER,
    OPERATION_RESERVE,
    OPERATION_RULES,
    OPERATION_RESTORE,
};

/* Bit number i is user FIRST_UID + i, or group i + 1. */
struct people {
    uint32_t users;
    uint32_t groups;
};

struct operation {
    uint32_t number; /* from 1; kept when other operations are removed */
    enum operation_kind kind;
    struct asking asking;       /* of OPERATION_CLAIM, _TRY, _GIVE and _PICK */
    bool keep;                  /* the request stays open */
    struct reference reference; /* the claim, lease or request that the operation names */
    uint32_t slot;
    uint32_t what;  /* a block, a health, a uid, a gid, a weight, a rank */
    bool known;     /* `amount` or `people` is set; _ADVANCE and _RESTORE use it as a flag */
    int64_t amount; /* nanoseconds, bytes, millionths, work */
    slot_set slots; /* that OPERATION_GIVE grants */
    struct people people;
    struct rules_plan rules;
};

struct history {
    uint64_t seed;
    struct plan plan;
    struct operation *operations;
    size_t count;
    size_t capacity;
};

/* Initialises an empty history with room for `capacity` operations. */
void history_init(struct history *history, uint64_t seed, size_t capacity);
void history_finish(struct history *history);

/* Append one line each. */
void device_plan_describe(const struct device_plan *device, unsigned slot, struct text *out);
void operation_describe(const struct operation *operation, struct text *out);
/* Appends the whole history, one line for each device and operation. */
void history_describe(const struct history *history, struct text *out);

/* Return one device, and the first `count` devices as a machine. The caller finishes them. */
struct device plan_device(const struct device_plan *plan);
struct machine plan_machine(const struct plan *plan, unsigned count);

/* Converts an asking to a request that is named after its operation. The caller finishes it. */
void asking_request(const struct asking *asking, const struct plan *plan, uint32_t number,
                    struct request *ret_request);
/* Appends the ids of a set of slots. */
void plan_ids(const struct plan *plan, slot_set slots, struct device_id_list *list);

/* Returns how many claims the asking stands for. */
uint32_t asking_claims(const struct asking *asking);

/* Returns `memory`. Aborts if it is NULL, because nothing can be tested without memory. */
void *need_memory(void *memory);

#endif
