/* SPDX-License-Identifier: Apache-2.0
 *
 * Which k devices of a node are best connected. Pure but for the room it works in; the same
 * question has always the same answer, and the number of steps is bounded.
 */
#ifndef ENGINE_POLICY_CONNECTED_SET_H
#define ENGINE_POLICY_CONNECTED_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONNECTED_MAX = 64,       /* devices of a node */
    CONNECTED_EXACT_MAX = 16, /* up to as many candidates, every partition counts */
};

enum connected_rule {
    /* NVIDIA's: candidates are parted into sets of as many as are wanted (and one of what is left
     * over) so that the sum of the values of all pairs within sets is the greatest; of the first
     * such partition the first set with the greatest sum is chosen. What stays free is well
     * connected then too. */
    CONNECTED_PARTITION,
    /* AMD's: units (GPUs that are split into devices) are used up one after the other, those with
     * the fewest candidates first; of all ways to do so the first with the greatest sum is chosen.
     */
    CONNECTED_FILL,
};

/* Room to work in, for nodes of up to so many devices. */
struct connected_scratch;
struct connected_scratch *connected_set_scratch_create(uint32_t max); /* NULL: no memory */
void connected_set_scratch_destroy(struct connected_scratch *scratch);

/* Bit i of a mask is device i. */
struct connected_question {
    enum connected_rule rule;
    uint32_t count;        /* devices, as many as the scratch is for at most */
    const int32_t *values; /* count x count, symmetric, no more than 2^30 off 0: of a pair */
    const uint8_t *units;  /* of each device, below CONNECTED_MAX; for CONNECTED_FILL */
    uint64_t candidates;
    uint64_t required;    /* of them: have to be chosen; no more than wanted */
    uint64_t avoided;     /* of them: only if others will not do */
    const uint8_t *order; /* the candidates, first those that come first among equals */
    uint32_t wanted;      /* from 1 to the number of candidates */
};

struct connected_answer {
    uint64_t chosen;
    int64_t value; /* sum over its pairs */
    bool proven;   /* nothing is better by the rule */
    uint64_t steps;
};

/* No answer takes more steps; a step is a handful of instructions. */
extern const uint64_t connected_steps_max;

void connected_set_choose(const struct connected_question *question,
                          struct connected_scratch *scratch, struct connected_answer *ret_answer);

#endif
