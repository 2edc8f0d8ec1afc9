/* SPDX-License-Identifier: Apache-2.0
 *
 * What the policies compare by. Each comparison is negative when `one` is to be preferred. The
 * unknown comes after everything known, and two unknowns are equal: nothing passes for 0 because
 * nobody measured it.
 */
#ifndef ENGINE_POLICY_POLICY_TERMS_H
#define ENGINE_POLICY_POLICY_TERMS_H

#include "model/policy.h"

static inline int policy_terms_lower(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static inline int policy_terms_lower_known(struct optional_number one, struct optional_number other)
{
    if (!one.known || !other.known)
        return other.known - one.known;
    return policy_terms_lower(one.value, other.value);
}

static inline int policy_terms_higher_known(struct optional_number one,
                                            struct optional_number other)
{
    if (!one.known || !other.known)
        return other.known - one.known;
    return policy_terms_lower(other.value, one.value);
}

/* A figure that cannot be below 0; one that is tells nothing. */
static inline struct optional_number policy_terms_figure(struct figure figure)
{
    if (!figure.known || figure.value < 0)
        return (struct optional_number){0};
    return optional_number_of((uint64_t)figure.value);
}

static inline const struct device *policy_terms_device(const struct policy_question *question,
                                                       size_t slot)
{
    return &question->machine->devices.items[slot];
}

/* Where nothing is known of the slots, all are alike. */
static inline struct policy_slot policy_terms_slot(const struct policy_question *question,
                                                   size_t slot)
{
    static const struct policy_slot nothing = {0};

    return question->slots == NULL ? nothing : question->slots[slot];
}

#endif
