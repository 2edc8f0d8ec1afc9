/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of a placement policy, which chooses devices among the candidates. A policy is a
 * pure function over a const view: the same question always has the same answer. The engine applies
 * the filters first. docs/PLACEMENT.md describes the policies.
 */
#ifndef MODEL_POLICY_H
#define MODEL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitset.h"
#include "base/text/text.h"
#include "model/machine/machine.h"

/* The pool's state of one slot, beside the machine's facts and loads. */
struct policy_slot {
    uint32_t tenants; /* number of leases on it */
    uint32_t picks;   /* picks since its last load sample: work that is about to start */
    uint64_t queued;  /* work that a program reported */
    uint64_t active;
    uint32_t weight;      /* 0 counts as 1 */
    uint32_t rank;        /* 1 is preferred to all others, then 2; 0: no rank */
    uint64_t served;      /* number of grants and picks */
    uint64_t last_served; /* a number that grows with every grant and pick of the pool; 0: never.
                             Slots of one grant have the same number, or numbers in their old
                             order */
    uint64_t affinity;    /* the key that it served last; 0: none */
};

/* One question to a policy. All sets are over slots, 0 to machine->devices.count - 1; their size
 * may be larger. */
struct policy_question {
    const struct machine *machine;
    const struct policy_slot *slots; /* by slot; NULL: nothing is known */
    const struct bitset *candidates; /* slots that pass every filter and are free */
    const struct bitset *required;   /* a subset of the candidates that must be chosen */
    const struct bitset *avoided;    /* chosen only if there are not enough others */
    size_t count;                    /* slots to choose: from the number of required slots to the
                                        number of candidates */
    uint64_t affinity;               /* a key: slots that served it last win ties; 0: none */
    bool ranked;                     /* some slots have a rank */
};

/* Nodes with more devices are not rated. */
enum { POLICY_NODE_MAX = 64 };

/* The value of policy_node.held for a device that leases share. */
#define POLICY_SHARED UINT32_MAX

/* A typical request, as policies see it. */
struct policy_typical {
    uint32_t weight;
    uint32_t count;               /* devices; 0: only the host's CPUs and memory */
    uint32_t share;               /* millionths of each device; SHARE_WHOLE: alone */
    uint64_t cpus;                /* thousandths of a CPU on the host; 0: none */
    uint64_t memory;              /* bytes of the host's memory; 0: none */
    const struct bitset *accepts; /* slots that fit by their constant facts */
};

/* Constant facts, from which a policy computes its tables. */
struct policy_environment {
    const struct machine *machine;
    const struct policy_typical *typical;
    size_t typical_count;
};

/* One node that a policy rates. Bit i of a mask is the node's device i. */
struct policy_node {
    const struct machine *machine;
    const void *tables; /* made by `prepare`; NULL: the policy has none */
    uint32_t host;
    uint32_t count;        /* number of devices, at most POLICY_NODE_MAX */
    const uint32_t *slots; /* the slot of each device, in ascending order */
    const uint32_t *left;  /* free millionths of each device; 0: none, or not usable now */
    const uint32_t *held; /* for each device that a lease holds alone, the number of devices of this
                             node that the lease holds; POLICY_SHARED for a shared device, 0 for a
                             free one. NULL: not requested, or not known */
    uint64_t candidates;  /* devices that pass every filter and have room */
    uint64_t required;    /* candidates that must be chosen */
    uint64_t avoided;     /* devices that are chosen only if there are not enough others */
    const uint8_t *order; /* the candidates in the order for equals: avoided ones last, then by
                             rank, affinity and slot */
    uint32_t order_count;
    struct optional_number cpus; /* of the host, in thousandths */
    struct optional_number memory;
    uint64_t cpus_left; /* UINT64_MAX: not known */
    uint64_t memory_left;
    int64_t busy_for; /* nanoseconds until the last time limit of its leases; INT64_MAX: a lease has
                         none. 0 unless the policy has `sees_ends` */
};

/* The demand on one node. */
struct policy_demand {
    uint32_t count;  /* devices; 0: only the host's CPUs and memory */
    uint32_t share;  /* millionths of each; SHARE_WHOLE: alone */
    uint64_t cpus;   /* thousandths of a CPU of the host; 0: none */
    uint64_t memory; /* bytes of the host's memory; 0: none */
    uint64_t draw;   /* a random seed: different for each decision, the same for all its nodes */
    int64_t lasts;   /* the time limit in nanoseconds; INT64_MAX: none */
};

/* A policy's best choice on a node. */
struct policy_offer {
    uint64_t chosen; /* exactly as many devices as demanded, including the required ones */
    int64_t cost;    /* the node with the lowest cost wins, then the one with the lowest slot */
    int64_t score;   /* shown to users, in the policy's own units */
    bool proven;     /* no choice is better by the policy's own measure */
};

struct policy {
    const char *name;
    const char *summary; /* its preference: "the lowest slots" */

    /* Compares two candidates. Returns a negative number when `one` is preferred, a positive number
     * when `other` is, and 0 when they are equal. It must be a strict weak order; otherwise the
     * choice is undefined, but its number is right. NULL: all are equal. */
    int (*compare)(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other);

    /* Optional, instead of compare, for a policy that chooses whole sets. Adds exactly
     * question->count candidates, including the required ones, to ret_chosen, an empty set over the
     * same slots. Returns 0 or BERTH_ERROR_MEMORY. */
    int (*choose)(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen);

    /* Optional. Computes tables for `rate` from constant facts. The caller owns them and frees them
     * with `forget`. Returns 0 or BERTH_ERROR_MEMORY. */
    int (*prepare)(const struct policy *policy, const struct policy_environment *around,
                   void **ret_tables);
    void (*forget)(void *tables);

    /* Optional, used before compare, for a policy that rates nodes. Returns the best choice on this
     * node, with as few avoided devices as possible. Called only when the node has enough
     * candidates and the host has room. Among the nodes with the fewest avoided devices, the one
     * with the lowest cost wins. When a node has too many devices to be rated, compare decides. */
    void (*rate)(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer);
    /* Optional. Appends the reason for the offer as text: "joined by 12 NVLink lanes". */
    void (*explain)(const struct policy *policy, const struct policy_node *node,
                    const struct policy_demand *demand, const struct policy_offer *offer,
                    struct text *out);
    /* rate depends only on the node, its tables and the demand without the draw. Then its results
     * are cached until the node changes. */
    bool cacheable;
    /* rate needs policy_node.held. */
    bool sees_held;
    /* rate needs policy_node.busy_for. Then results are cached only for demands without a time
     * limit; for these, rate may only use whether busy_for is INT64_MAX. */
    bool sees_ends;

    void *context; /* of a program's own policy */
};

/* Compares two candidates that are equal to a policy: by rank, then by affinity, then by slot.
 * Never returns 0 for two slots. */
int policy_compare_equals(const struct policy_question *question, size_t one, size_t other);

/* Compares two candidates completely: avoided ones last, then by the policy, then as
 * policy_compare_equals. Never returns 0 for two slots. */
int policy_compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other);

/* Adds the policy's choice to ret_chosen, an empty set over the same slots: the required slots,
 * then the best by policy_compare. Returns 0, or BERTH_ERROR_MEMORY with nothing added, except by
 * the policy's own choose. Takes O(candidates) when no comparison is needed, else O(candidates x
 * log count). Allocates only to compare for more than 64 places. */
int policy_choose(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen);

#endif
