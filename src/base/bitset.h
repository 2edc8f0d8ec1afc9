/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of the numbers 0 to size-1, stored as bits. The size is fixed at init. Operations on two
 * sets require the same size (assert). Several threads may read a set at once; while one changes
 * it, no other thread may use it.
 */
#ifndef BASE_BITSET_H
#define BASE_BITSET_H

#include <assert.h>
#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"

struct bitset {
    uint64_t *words;
    size_t size;
};

/* Makes an empty set of `size` bits, which may be 0. Returns 0 or BERTH_ERROR_MEMORY. */
int bitset_init(struct bitset *set, size_t size);
void bitset_finish(struct bitset *set);

static inline void bitset_add(struct bitset *set, size_t bit)
{
    assert(bit < set->size);
    set->words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void bitset_remove(struct bitset *set, size_t bit)
{
    assert(bit < set->size);
    set->words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

static inline bool bitset_has(const struct bitset *set, size_t bit)
{
    assert(bit < set->size);
    return (set->words[bit / 64] >> (bit % 64) & 1) != 0;
}

void bitset_clear(struct bitset *set);
void bitset_fill(struct bitset *set);
void bitset_copy(struct bitset *set, const struct bitset *from);
void bitset_unite(struct bitset *set, const struct bitset *with);
void bitset_intersect(struct bitset *set, const struct bitset *with);
void bitset_subtract(struct bitset *set, const struct bitset *without);

size_t bitset_count(const struct bitset *set);
bool bitset_is_empty(const struct bitset *set);
bool bitset_equals(const struct bitset *set, const struct bitset *other);
bool bitset_is_subset(const struct bitset *set, const struct bitset *of);
bool bitset_intersects(const struct bitset *set, const struct bitset *other);

/* Returns the smallest member at or above `from`, or the set's size when there is none. */
size_t bitset_next(const struct bitset *set, size_t from);

/* Runs `bit`, a size_t declared here, over the members in ascending order. The body may remove the
 * current member. */
#define bitset_for_each(bit, set) \
    for (size_t bit = bitset_next((set), 0); bit < (set)->size; bit = bitset_next((set), bit + 1))

/* Appends the members in the kernel's format for CPU lists: "0-3,8,10-11". An empty set appends
 * nothing. */
void bitset_format_ranges(const struct bitset *set, struct text *out);

/* Parses a list in this format. Initialises *ret_set with as many bits as the list needs, at most
 * `limit`. Leading and trailing blanks are allowed, "" is the empty set, and elements may overlap
 * and come in any order. Fails with BERTH_ERROR_SYNTAX, BERTH_ERROR_RANGE (a range such as 3-0, a
 * number at or above `limit`) or BERTH_ERROR_MEMORY; *ret_set is untouched then. */
int bitset_parse_ranges(const char *string, size_t limit, struct bitset *ret_set,
                        struct berth_error *error);

#endif
