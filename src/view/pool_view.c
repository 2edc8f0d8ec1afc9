/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pool_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

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

/* Moves the place on to the next page. Sections that we do not know end the look. */
static int turn_page(const struct wire_message *page, struct pool_view_place *place,
                     struct berth_error *error)
{
    if (page->section == WIRE_SECTION_END || page->section > WIRE_SECTION_QUEUE)
        return false;
    if (page->section < place->section ||
        (page->section == place->section && page->after <= place->after))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected the next page of the pool, got one that was there already");
    if (++place->pages >= POOL_VIEW_PAGES_MAX)
        return error_set(error, BERTH_ERROR_LIMIT,
                         "expected at most %d pages of the pool, got more", POOL_VIEW_PAGES_MAX);
    place->section = page->section;
    place->after = page->after;
    return true;
}

int pool_view_add_page(struct pool_view *view, struct wire_message *page,
                       struct pool_view_place *place, struct berth_error *error)
{
    struct wire_message *look = &view->look;
    const struct slot_info *slot;

    vector_for_each (slot, &page->slots) {
        if (slot->device == NULL)
            return error_set(error, BERTH_ERROR_SYNTAX,
                             "expected a device in each slot of the pool, got none");
    }
    look->capacity = page->capacity;
    look->pending = page->pending;
    look->time = page->time;
    if (MOVE_ITEMS(&look->slots, &page->slots) < 0 ||
        MOVE_ITEMS(&look->leases, &page->leases) < 0 ||
        MOVE_ITEMS(&look->claims, &page->claims) < 0 ||
        MOVE_ITEMS(&look->problems, &page->problems) < 0)
        return error_set_memory(error);
    return turn_page(page, place, error);
}

void pool_view_finish(struct pool_view *view)
{
    wire_message_finish(&view->about);
    wire_message_finish(&view->look);
    vector_finish(&view->uses);
}

/* A device's id and its slot, to be found by the id. */
struct place {
    struct device_id id;
    size_t slot;
};

static int compare_numbers(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_places(const void *one, const void *other)
{
    const struct device_id *a = &((const struct place *)one)->id;
    const struct device_id *b = &((const struct place *)other)->id;

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

static int add_uses(struct pool_view *view, size_t lease, const struct place *places,
                    struct berth_error *error)
{
    const struct device_id_list *ids = &view->look.leases.items[lease].devices;

    for (size_t i = 0; i < ids->count; i++) {
        struct place wanted = {.id = ids->items[i]};
        const struct place *place =
            bsearch(&wanted, places, view->look.slots.count, sizeof(*places), compare_places);
        struct pool_use *use;

        if (place == NULL)
            continue;
        if (view->uses.count == POOL_VIEW_USES_MAX)
            return error_set(error, BERTH_ERROR_LIMIT,
                             "expected at most %d devices under leases, got more",
                             POOL_VIEW_USES_MAX);
        use = vector_append(&view->uses);
        if (use == NULL)
            return error_set_memory(error);
        *use = (struct pool_use){.slot = place->slot, .lease = lease, .number = (uint32_t)i};
    }
    return 0;
}

int pool_view_index(struct pool_view *view, struct berth_error *error)
{
    size_t count = view->look.slots.count;
    struct place *places = calloc(count + 1, sizeof(*places));
    int code = 0;

    if (places == NULL)
        return error_set_memory(error);
    for (size_t slot = 0; slot < count; slot++)
        places[slot] = (struct place){view->look.slots.items[slot].device->id, slot};
    qsort(places, count, sizeof(*places), compare_places);
    for (size_t i = 0; code == 0 && i < view->look.leases.count; i++)
        code = add_uses(view, i, places, error);
    if (view->uses.count > 0)
        qsort(view->uses.items, view->uses.count, sizeof(*view->uses.items), compare_uses);
    free(places);
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

/* FNV-1a over numbers. */
static void mix(uint64_t *fingerprint, uint64_t number)
{
    for (unsigned i = 0; i < sizeof(number); i++) {
        *fingerprint ^= (number >> (8 * i)) & 0xff;
        *fingerprint *= UINT64_C(0x100000001b3);
    }
}

static void mix_slot(uint64_t *fingerprint, const struct slot_info *slot)
{
    const struct device_process *process;

    mix(fingerprint, slot->device->id.vendor);
    mix(fingerprint, slot->device->id.index);
    mix(fingerprint, slot->device->id.mig);
    mix(fingerprint, slot->state);
    mix(fingerprint, slot->tenants);
    mix(fingerprint, slot->device->health == HEALTH_SICK);
    mix(fingerprint, slot->device->old);
    mix(fingerprint, slot->blocks);
    mix(fingerprint, (uint64_t)slot->reason_time);
    vector_for_each (process, &slot->device->processes) {
        if (process->squats)
            mix(fingerprint, process->pid);
    }
}

static void mix_lease(uint64_t *fingerprint, const struct lease_info *lease)
{
    mix(fingerprint, lease->id);
    mix(fingerprint, lease->draining);
    mix(fingerprint, lease->end);
    mix(fingerprint, lease->expires.known ? lease->expires.value : 0);
    mix(fingerprint, lease->idle_warned);
    mix(fingerprint, lease->preparing);
}

uint64_t pool_view_fingerprint(const struct pool_view *view)
{
    uint64_t fingerprint = UINT64_C(0xcbf29ce484222325);
    const struct slot_info *slot;
    const struct lease_info *lease;
    const struct claim_info *claim;
    const struct problem *problem;

    vector_for_each (slot, &view->look.slots)
        mix_slot(&fingerprint, slot);
    vector_for_each (lease, &view->look.leases)
        mix_lease(&fingerprint, lease);
    vector_for_each (claim, &view->look.claims) {
        mix(&fingerprint, claim->id);
        mix(&fingerprint, claim->position);
    }
    vector_for_each (problem, &view->look.problems)
        mix(&fingerprint, hash_bytes(problem->message, strlen(problem->message)));
    return fingerprint;
}
