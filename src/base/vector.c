/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vector.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"

enum { SMALLEST_CAPACITY = 8 };

int vector_grow(void **items, size_t *capacity, size_t item_size, size_t wanted)
{
    size_t grown = *capacity == 0 ? SMALLEST_CAPACITY : *capacity;
    void *moved;

    if (wanted <= *capacity)
        return 0;
    while (grown < wanted)
        grown = grown > SIZE_MAX / 2 ? wanted : grown * 2;
    moved = reallocarray(*items, grown, item_size);
    if (moved == NULL)
        return BERTH_ERROR_MEMORY;
    *items = moved;
    *capacity = grown;
    return 0;
}

void *vector_append_zeroed(void **items, size_t *count, size_t *capacity, size_t item_size)
{
    unsigned char *item;

    if (*count == SIZE_MAX || vector_grow(items, capacity, item_size, *count + 1) < 0)
        return NULL;
    item = (unsigned char *)*items + *count * item_size;
    memset(item, 0, item_size);
    (*count)++;
    return item;
}
