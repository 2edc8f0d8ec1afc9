/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the k best-connected devices of a node (docs/PLACEMENT.md, "topology"). Pure except for
 * its scratch memory: the same question always has the same answer. The number of steps is bounded.
 */
#ifndef ENGINE_POLICY_CONNECTED_SET_H
#define ENGINE_POLICY_CONNECTED_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONNECTED_MAX = 64,       /* the most devices of a node */
    CONNECTED_EXACT_MAX = 16, /* the most candidates for which all partitions are compared */
};

enum connected_rule {
    /* NVIDIA's rule: partition the candidates into sets of the wanted size, and one set of the
     * rest, so that the sum of all pairs within sets is the greatest. From the first such
     * partition, choose the first set with the greatest sum. So the remaining devices are well
     * connected too. */
    CONNECTED_PARTITION,
    /* AMD's rule: use up one unit (a GPU split into devices) after the other, units with the fewest
     * candidates first. Among all such choices, take the first with the greatest sum. */
    CONNECTED_FILL,
};

/* Memory for nodes of up to `max` devices. The caller destroys it. */
struct connected_scratch;
struct connected_scratch *connected_set_scratch_create(uint32_t max); /* NULL: no memory */
void connected_set_scratch_destroy(struct connected_scratch *scratch);

/* Bit i of a mask stands for device i. */
struct connected_question {
    enum connected_rule rule;
    uint32_t count;        /* devices, at most the scratch's maximum */
    const int32_t *values; /* of pairs: count x count, symmetric, from -2^30 to 2^30 */
    const uint8_t *units;  /* by device, below CONNECTED_MAX; only for CONNECTED_FILL */
    uint64_t candidates;
    uint64_t required;    /* candidates that must be chosen; at most `wanted` */
    uint64_t avoided;     /* candidates chosen only if the others are too few */
    const uint8_t *order; /* the candidates; among equals, earlier ones come first */
    uint32_t wanted;      /* devices to choose, from 1 to the number of candidates */
};

struct connected_answer {
    uint64_t chosen;
    int64_t value; /* sum of its pairs */
    bool proven;   /* no choice is better by the rule */
    uint64_t steps;
};

/* The most steps of an answer. A step is a few instructions. */
extern const uint64_t connected_steps_max;

void connected_set_choose(const struct connected_question *question,
                          struct connected_scratch *scratch, struct connected_answer *ret_answer);

#endif
