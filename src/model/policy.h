/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of a placement policy: which of the devices that would do are taken. A policy is a
 * pure function over a const view; filters have been applied before it is asked, and it answers
 * the same question always with the same set.
 */
#ifndef MODEL_POLICY_H
#define MODEL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitset.h"
#include "base/text/text.h"
#include "model/machine.h"

/* What a pool knows of one slot beside the machine's facts and loads. */
struct policy_slot {
    uint32_t tenants; /* leases on it */
    uint32_t picks;   /* advice given since its last figure: work that is on its way */
    uint64_t queued;  /* work that a program reported */
    uint64_t active;
    uint32_t weight;      /* 0 counts as 1 */
    uint32_t rank;        /* 1 is preferred to all others, then 2; 0: no rank */
    uint64_t served;      /* how often it was given or picked */
    uint64_t last_served; /* grows with every grant and pick of the pool; 0: never. The slots of
                             one grant have the same, or follow each other in their old order */
    uint64_t affinity;    /* the key that it served last; 0: none */
};

/* One question; all sets are over slots, 0 to machine->devices.count - 1 (their size may be
 * larger). */
struct policy_question {
    const struct machine *machine;
    const struct policy_slot *slots; /* by slot; NULL: nothing is known */
    const struct bitset *candidates; /* pass every filter and are free */
    const struct bitset *required;   /* must be among the chosen; a subset of the candidates */
    const struct bitset *avoided;    /* only if another will not do */
    size_t count;                    /* how many to choose: from the required ones' number to
                                        the candidates' */
    uint64_t affinity;               /* among equals, the devices that served it; 0: none */
    bool ranked;                     /* some of the slots have a rank */
};

/* Nodes with more devices are not rated. */
enum { POLICY_NODE_MAX = 64 };

/* What is said of a device that leases share. */
#define POLICY_SHARED UINT32_MAX

/* A kind of request that is expected, as policies see it. */
struct policy_typical {
    uint32_t weight;
    uint32_t count;               /* devices; 0: only the host's CPUs and memory */
    uint32_t share;               /* millionths of each device; SHARE_WHOLE: alone */
    uint64_t cpus;                /* thousandths of a CPU on the host; 0: none */
    uint64_t memory;              /* bytes of the host's; 0: none */
    const struct bitset *accepts; /* slots, by fixed facts */
};

/* Facts that stay, from which a policy works out its tables. */
struct policy_environment {
    const struct machine *machine;
    const struct policy_typical *typical;
    size_t typical_count;
};

/* One node, as a policy is asked about it. A device is known by its place among the node's: bit i
 * of a mask is device i. */
struct policy_node {
    const struct machine *machine;
    const void *tables; /* that `prepare` made; NULL: the policy has none */
    uint32_t host;
    uint32_t count;        /* its devices, at most POLICY_NODE_MAX */
    const uint32_t *slots; /* theirs, lowest first */
    const uint32_t *left;  /* of each: millionths that nobody has; 0: none, or not usable now */
    const uint32_t *held;  /* of each: how many devices of the node the lease has that has it alone;
                              POLICY_SHARED, 0 for none. NULL: not asked for, or not known */
    uint64_t candidates;   /* may be chosen: they pass every filter and have room */
    uint64_t required;     /* of the candidates: have to be chosen */
    uint64_t avoided;      /* only if others will not do */
    const uint8_t *order;  /* the candidates, first those to be taken first among equals: what is
                              not avoided, then by rank, affinity and slot */
    uint32_t order_count;
    struct optional_number cpus; /* that the host has, in thousandths */
    struct optional_number memory;
    uint64_t cpus_left; /* UINT64_MAX: not known */
    uint64_t memory_left;
    int64_t busy_for; /* nanoseconds until the last of its leases ends by its time limit; INT64_MAX:
                         one has none. 0 unless the policy asks for it */
};

/* What is wanted of one node. */
struct policy_demand {
    uint32_t count;  /* devices; 0: none, only the host counts */
    uint32_t share;  /* millionths of each; SHARE_WHOLE: alone */
    uint64_t cpus;   /* thousandths of the host's; 0: none */
    uint64_t memory; /* bytes of the host's; 0: none */
    uint64_t draw;   /* another for each decision, the same for all its nodes: for chance */
    int64_t lasts;   /* nanoseconds until it ends by its time limit; INT64_MAX: it has none */
};

/* The best that a node has to offer. */
struct policy_offer {
    uint64_t chosen; /* exactly as many as wanted, the required ones among them */
    int64_t cost;    /* the node with the least is taken, of equals that with the lowest slot */
    int64_t score;   /* for people, in the policy's own units */
    bool proven;     /* nothing is better by the policy's own measure */
};

struct policy {
    const char *name;
    const char *summary; /* what it prefers: "the lowest slots" */

    /* Compares two candidates: negative when `one` is to be preferred, positive when `other` is, 0
     * for equals; a strict weak order, or else which ones are chosen is not defined (as many as are
     * wanted all the same). NULL: all are equal. */
    int (*compare)(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other);

    /* Optional, in place of compare, for a policy that looks at whole sets: adds exactly
     * question->count candidates, the required ones among them, to ret_chosen, an empty set over
     * the same slots. Returns 0 or BERTH_ERROR_MEMORY. */
    int (*choose)(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen);

    /* Optional: works out from facts that stay what `rate` looks up. The caller owns it and gives
     * it back by `forget`. Returns 0 or BERTH_ERROR_MEMORY. */
    int (*prepare)(const struct policy *policy, const struct policy_environment *around,
                   void **ret_tables);
    void (*forget)(void *tables);

    /* Optional, before compare, for a policy that rates nodes: the best that this one has to offer,
     * with as few avoided devices as can be. Only asked where there are enough candidates and the
     * host has room. Of nodes whose offers have equally few avoided devices the one with the least
     * cost is taken. Where a node has too many devices to be rated, compare decides. */
    void (*rate)(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer);
    /* Optional: appends in words why it offers that: "joined by 12 NVLink lanes". */
    void (*explain)(const struct policy *policy, const struct policy_node *node,
                    const struct policy_demand *demand, const struct policy_offer *offer,
                    struct text *out);
    /* Whether rate goes by nothing but the node as it is shown, its tables and the demand without
     * the draw: then its answers may be kept until the node changes. */
    bool cacheable;
    /* Whether it is to be shown by whom devices are held. */
    bool sees_held;
    /* Whether it is to be shown how long nodes are busy. Then it is steady only for what has no
     * time limit, and goes by nothing but whether that of others is known. */
    bool sees_ends;

    void *context; /* of a program's own policy */
};

/* Compares two candidates that are equal to a policy: by rank, then by affinity, then the lower
 * slot. Never 0 for two slots. */
int policy_compare_equals(const struct policy_question *question, size_t one, size_t other);

/* Compares two candidates in full: what is to be avoided last, then by the policy, then by
 * rank, then by affinity, then the lower slot. Never 0 for two slots. */
int policy_compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other);

/* Adds the policy's choice to ret_chosen, an empty set over the same slots: required ones, then the
 * best by policy_compare. Returns 0, or BERTH_ERROR_MEMORY with nothing added unless by the
 * policy's own choose. Takes O(candidates) where slots need not be compared, else
 * O(candidates x log count); allocates only to compare for more than 64 places. */
int policy_choose(const struct policy *policy, const struct policy_question *question,
                  struct bitset *ret_chosen);

#endif
