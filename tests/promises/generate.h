/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up machines and operations. The same seed and the same run always give the same ones.
 */
#ifndef PROMISES_GENERATE_H
#define PROMISES_GENERATE_H

#include "promises/run.h"

/* The emphasis of a history. Each flag makes some operations likely. */
struct flavour {
    bool filters;
    bool sharing;
    bool helpers;
    bool times;
    bool limits;
    bool within;
    bool faults; /* devices come, go and fall sick */
    bool replicas;
    bool policies;
    bool classes;
    bool gifts;      /* leases that bypass the queue or return to it */
    bool people;     /* devices that are reserved or ranked */
    bool rules;      /* the rules change */
    uint32_t widest; /* devices of one request */
};

struct generator {
    struct test_random random;
    struct flavour flavour;
};

/* Initialises the generator with a seed, and chooses a flavour and a machine. */
void generate_plan(struct generator *generator, uint64_t seed, struct plan *ret_plan);

/* Chooses rules that are likely to matter. */
void generate_rules(struct generator *generator, struct rules_plan *ret_rules);

/* Returns the name of a random policy. */
const char *generate_policy(struct generator *generator);

/* Chooses the next operation of a run. */
void generate_operation(struct generator *generator, struct run *run, uint32_t number,
                        struct operation *ret_operation);

/* Chooses a request and its party. `parent` is the lease in which it is made; NULL: none. */
void generate_asking(struct generator *generator, const struct plan *plan,
                     const struct model_lease *parent, struct asking *ret_asking);

static inline uint32_t below(struct generator *generator, uint32_t limit)
{
    return (uint32_t)test_random_below(&generator->random, limit);
}

static inline bool one_in(struct generator *generator, uint32_t times)
{
    return below(generator, times) == 0;
}

#endif
