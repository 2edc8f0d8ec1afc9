/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing array of any type, typed at compile time:
 *
 *     struct device_list { VECTOR_OF(struct device); };
 *     struct device *device = vector_append(&list);      // NULL: out of memory, list unchanged
 *     vector_for_each (device, &list) ...
 *     vector_finish(&list);
 *
 * Zeroed memory is an empty vector. The vector owns its items, but not the memory that they point
 * to. Pointers to items are valid until the next append or reserve. Only one thread may use a
 * vector at a time.
 */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <stddef.h>
#include <stdlib.h>

/* Declares the members of a vector of `type`, within a struct. */
#define VECTOR_OF(type) \
    type *items;        \
    size_t count;       \
    size_t capacity

/* Makes room for `wanted` items in total. Returns 0, or BERTH_ERROR_MEMORY with the vector
 * unchanged. */
#define vector_reserve(vector, wanted) \
    vector_grow((void **)&(vector)->items, &(vector)->capacity, sizeof(*(vector)->items), (wanted))

/* Adds a zeroed item at the end. Returns it, or NULL when there is no memory. */
#define vector_append(vector)                                                                 \
    ((__typeof__((vector)->items))vector_append_zeroed((void **)&(vector)->items,             \
                                                       &(vector)->count, &(vector)->capacity, \
                                                       sizeof(*(vector)->items)))

/* Frees the memory and leaves an empty vector. */
#define vector_finish(vector)   \
    do {                        \
        free((vector)->items);  \
        (vector)->items = NULL; \
        (vector)->count = 0;    \
        (vector)->capacity = 0; \
    } while (0)

/* Runs `item`, a pointer declared by the caller, over all items in order. The count is checked
 * first, because the items of an empty vector may be NULL, and NULL + 0 is undefined. */
#define vector_for_each(item, vector) \
    for ((item) = (vector)->items;    \
         (vector)->count > 0 && (item) != (vector)->items + (vector)->count; (item)++)

/* Only the macros above call these. */
int vector_grow(void **items, size_t *capacity, size_t item_size, size_t wanted);
void *vector_append_zeroed(void **items, size_t *count, size_t *capacity, size_t item_size);

#endif
