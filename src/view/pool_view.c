/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pool_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Moves all items of one vector to the end of another of the same type. */
#define MOVE_ITEMS(to, from)                                               \
    ({                                                                     \
        int move_code = 0;                                                 \
                                                                           \
        if ((from)->count > 0)                                             \
            move_code = vector_reserve((to), (to)->count + (from)->count); \
        if ((from)->count > 0 && move_code == 0) {                         \
            memcpy((to)->items + (to)->count, (from)->items,               \
                   (from)->count * sizeof(*(from)->items));                \
            (to)->count += (from)->count;                                  \
            (from)->count = 0;                                             \
        }                                                                  \
        move_code;                                                         \
    })

int pool_view_add_page(struct pool_view *view, struct pool_snapshot *page,
                       struct berth_error *error)
{
    struct pool_snapshot *snapshot = &view->snapshot;
    const struct slot_info *slot;

    vector_for_each (slot, &page->slots) {
        if (slot->device == NULL)
            return error_set(error, BERTH_ERROR_SYNTAX,
                             "cannot read the pool: a slot has no device");
    }
    snapshot->capacity = page->capacity;
    snapshot->pending = page->pending;
    snapshot->time = page->time;
    if (MOVE_ITEMS(&snapshot->slots, &page->slots) < 0 ||
        MOVE_ITEMS(&snapshot->leases, &page->leases) < 0 ||
        MOVE_ITEMS(&snapshot->claims, &page->claims) < 0 ||
        MOVE_ITEMS(&snapshot->problems, &page->problems) < 0)
        return error_set_memory(error);
    return 0;
}

void pool_view_finish(struct pool_view *view)
{
    pool_info_finish_about(&view->about);
    pool_info_finish_snapshot(&view->snapshot);
    vector_finish(&view->uses);
}

/* A device's id and its slot, for a search by id. */
struct slot_of_device {
    struct device_id id;
    size_t slot;
};

static int compare_numbers(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_ids(const void *one, const void *other)
{
    const struct device_id *a = &((const struct slot_of_device *)one)->id;
    const struct device_id *b = &((const struct slot_of_device *)other)->id;

    if (a->vendor != b->vendor)
        return compare_numbers(a->vendor, b->vendor);
    if (a->index != b->index)
        return compare_numbers(a->index, b->index);
    return compare_numbers(a->mig, b->mig);
}

static int compare_uses(const void *one, const void *other)
{
    const struct pool_use *a = one;
    const struct pool_use *b = other;

    if (a->slot != b->slot)
        return compare_numbers(a->slot, b->slot);
    if (a->lease != b->lease)
        return compare_numbers(a->lease, b->lease);
    return compare_numbers(a->number, b->number);
}

static int add_uses(struct pool_view *view, size_t lease, const struct slot_of_device *slots_by_id,
                    struct berth_error *error)
{
    const struct device_id_list *ids = &view->snapshot.leases.items[lease].devices;

    for (size_t i = 0; i < ids->count; i++) {
        struct slot_of_device wanted = {.id = ids->items[i]};
        const struct slot_of_device *position = bsearch(
            &wanted, slots_by_id, view->snapshot.slots.count, sizeof(*slots_by_id), compare_ids);
        struct pool_use *use;

        if (position == NULL)
            continue;
        if (view->uses.count == POOL_VIEW_USES_MAX)
            return error_set(error, BERTH_ERROR_LIMIT,
                             "cannot read the pool: more than %d devices are leased",
                             POOL_VIEW_USES_MAX);
        use = vector_append(&view->uses);
        if (use == NULL)
            return error_set_memory(error);
        *use = (struct pool_use){.slot = position->slot, .lease = lease, .number = (uint32_t)i};
    }
    return 0;
}

int pool_view_index(struct pool_view *view, struct berth_error *error)
{
    size_t count = view->snapshot.slots.count;
    struct slot_of_device *slots_by_id = calloc(count + 1, sizeof(*slots_by_id));
    int code = 0;

    if (slots_by_id == NULL)
        return error_set_memory(error);
    for (size_t slot = 0; slot < count; slot++)
        slots_by_id[slot] =
            (struct slot_of_device){view->snapshot.slots.items[slot].device->id, slot};
    qsort(slots_by_id, count, sizeof(*slots_by_id), compare_ids);
    for (size_t i = 0; code == 0 && i < view->snapshot.leases.count; i++)
        code = add_uses(view, i, slots_by_id, error);
    if (view->uses.count > 0)
        qsort(view->uses.items, view->uses.count, sizeof(*view->uses.items), compare_uses);
    free(slots_by_id);
    return code;
}

size_t pool_view_first_use(const struct pool_view *view, size_t slot)
{
    size_t low = 0;
    size_t high = view->uses.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (view->uses.items[middle].slot < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low < view->uses.count && view->uses.items[low].slot == slot ? low : view->uses.count;
}
