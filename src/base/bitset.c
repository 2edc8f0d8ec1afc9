/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bitset.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"

/* The bits of the last word that lie at or above the size are always clear, so that whole words
 * can be counted and compared. */

enum { WORD_BITS = 64 };

static const char blanks[] = " \t\r\n";

static size_t word_count(const struct bitset *set)
{
    return set->size / WORD_BITS + (set->size % WORD_BITS != 0);
}

static uint64_t mask_of(size_t bit)
{
    return UINT64_C(1) << (bit % WORD_BITS);
}

int bitset_init(struct bitset *set, size_t size)
{
    *set = (struct bitset){.size = size};
    if (size == 0)
        return 0;
    set->words = calloc(word_count(set), sizeof(*set->words));
    if (set->words != NULL)
        return 0;
    set->size = 0;
    return BERTH_ERROR_MEMORY;
}

void bitset_finish(struct bitset *set)
{
    free(set->words);
    *set = (struct bitset){0};
}

void bitset_clear(struct bitset *set)
{
    for (size_t i = 0; i < word_count(set); i++)
        set->words[i] = 0;
}

void bitset_fill(struct bitset *set)
{
    for (size_t i = 0; i < word_count(set); i++)
        set->words[i] = UINT64_MAX;
    if (set->size % WORD_BITS != 0)
        set->words[word_count(set) - 1] = mask_of(set->size) - 1;
}

void bitset_copy(struct bitset *set, const struct bitset *from)
{
    assert(set->size == from->size);
    for (size_t i = 0; i < word_count(set); i++)
        set->words[i] = from->words[i];
}

void bitset_unite(struct bitset *set, const struct bitset *with)
{
    assert(set->size == with->size);
    for (size_t i = 0; i < word_count(set); i++)
        set->words[i] |= with->words[i];
}

void bitset_intersect(struct bitset *set, const struct bitset *with)
{
    assert(set->size == with->size);
    for (size_t i = 0; i < word_count(set); i++)
        set->words[i] &= with->words[i];
}

void bitset_subtract(struct bitset *set, const struct bitset *without)
{
    assert(set->size == without->size);
    for (size_t i = 0; i < word_count(set); i++)
        set->words[i] &= ~without->words[i];
}

size_t bitset_count(const struct bitset *set)
{
    size_t count = 0;

    for (size_t i = 0; i < word_count(set); i++)
        count += (size_t)__builtin_popcountll(set->words[i]);
    return count;
}

bool bitset_is_empty(const struct bitset *set)
{
    for (size_t i = 0; i < word_count(set); i++) {
        if (set->words[i] != 0)
            return false;
    }
    return true;
}

bool bitset_equals(const struct bitset *set, const struct bitset *other)
{
    assert(set->size == other->size);
    for (size_t i = 0; i < word_count(set); i++) {
        if (set->words[i] != other->words[i])
            return false;
    }
    return true;
}

bool bitset_is_subset(const struct bitset *set, const struct bitset *of)
{
    assert(set->size == of->size);
    for (size_t i = 0; i < word_count(set); i++) {
        if ((set->words[i] & ~of->words[i]) != 0)
            return false;
    }
    return true;
}

bool bitset_intersects(const struct bitset *set, const struct bitset *other)
{
    assert(set->size == other->size);
    for (size_t i = 0; i < word_count(set); i++) {
        if ((set->words[i] & other->words[i]) != 0)
            return true;
    }
    return false;
}

size_t bitset_next(const struct bitset *set, size_t from)
{
    size_t i = from / WORD_BITS;
    uint64_t word;

    if (from >= set->size)
        return set->size;
    word = set->words[i] & ~(mask_of(from) - 1);
    while (word == 0) {
        if (++i == word_count(set))
            return set->size;
        word = set->words[i];
    }
    return i * WORD_BITS + (size_t)__builtin_ctzll(word);
}

void bitset_format_ranges(const struct bitset *set, struct text *out)
{
    size_t first = bitset_next(set, 0);
    const char *separator = "";

    while (first < set->size) {
        size_t last = first;

        while (last + 1 < set->size && bitset_has(set, last + 1))
            last++;
        text_append_format(out, "%s%zu", separator, first);
        if (last > first)
            text_append_format(out, "-%zu", last);
        separator = ",";
        first = bitset_next(set, last + 1);
    }
}

struct number_range {
    size_t first;
    size_t last;
};

/* Reads a decimal number. A number that does not fit becomes SIZE_MAX, which is at or above every
 * limit. Returns where the number ends, or NULL when there is none. */
static const char *read_number(const char *at, size_t *ret_number)
{
    char *end;

    if (*at < '0' || *at > '9')
        return NULL;
    *ret_number = strtoul(at, &end, 10);
    return end;
}

/* Reads the element at `*at`, "3" or "0-7", of a list that ends at `end`. Moves `*at` to the next
 * element, or to NULL after the last one. */
static int read_range(const char **at, const char *end, size_t limit,
                      struct number_range *ret_range, struct berth_error *error)
{
    const char *comma = memchr(*at, ',', (size_t)(end - *at));
    const char *element_end = comma == NULL ? end : comma;
    struct quoted found = quote_bytes(*at, (size_t)(element_end - *at));
    const char *stop;

    *ret_range = (struct number_range){0};
    stop = read_number(*at, &ret_range->first);
    ret_range->last = ret_range->first;
    if (stop != NULL && *stop == '-')
        stop = read_number(stop + 1, &ret_range->last);
    if (stop != element_end)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a number or a range such as 0-3, got %s", found.text);
    if (ret_range->last >= limit)
        return error_set(error, BERTH_ERROR_RANGE, "expected numbers below %zu, got %s", limit,
                         found.text);
    if (ret_range->last < ret_range->first)
        return error_set(error, BERTH_ERROR_RANGE, "expected a range from small to large, got %s",
                         found.text);
    *at = comma == NULL ? NULL : comma + 1;
    return 0;
}

/* Checks the list between `start` and `end`, and counts the bits that it needs. */
static int measure_list(const char *start, const char *end, size_t limit, size_t *ret_size,
                        struct berth_error *error)
{
    struct number_range range;

    *ret_size = 0;
    for (const char *at = start; at != NULL;) {
        int code = read_range(&at, end, limit, &range, error);

        if (code < 0)
            return code;
        if (range.last >= *ret_size)
            *ret_size = range.last + 1;
    }
    return 0;
}

int bitset_parse_ranges(const char *string, size_t limit, struct bitset *ret_set,
                        struct berth_error *error)
{
    const char *start = string + strspn(string, blanks);
    const char *end = start + strlen(start);
    struct number_range range;
    struct bitset set;
    size_t size = 0;
    int code = 0;

    while (end > start && strchr(blanks, end[-1]) != NULL)
        end--;
    if (end > start)
        code = measure_list(start, end, limit, &size, error);
    if (code < 0)
        return code;
    if (bitset_init(&set, size) < 0)
        return error_set_memory(error);
    for (const char *at = end > start ? start : NULL; at != NULL;) {
        read_range(&at, end, limit, &range, NULL);
        for (size_t bit = range.first; bit <= range.last; bit++)
            bitset_add(&set, bit);
    }
    *ret_set = set;
    return 0;
}
