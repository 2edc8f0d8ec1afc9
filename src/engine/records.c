/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of claims and leases, and their timers. Records are allocated in chunks and recycled,
 * so that a claim that is granted at once allocates nothing.
 */
#include <stdlib.h>

#include "engine/internal.h"

enum { CLAIMS_OF_CHUNK = 256, LEASES_OF_CHUNK = 32 };

/* Makes room for every record's timer, so that setting a timer cannot fail. */
static int reserve_timers(struct engine *engine, size_t more)
{
    size_t records =
        engine->claim_chunks.count * CLAIMS_OF_CHUNK + engine->lease_chunks.count * LEASES_OF_CHUNK;

    return vector_reserve(&engine->timers, records + more);
}

static void *allocate_chunk(struct engine *engine, struct chunk_list *chunks, size_t count,
                            size_t size)
{
    void *chunk = reserve_timers(engine, count) < 0 ? NULL : calloc(count, size);
    void **place = chunk == NULL ? NULL : vector_append(chunks);

    if (place == NULL) {
        free(chunk);
        return NULL;
    }
    *place = chunk;
    return chunk;
}

static bool allocate_claims(struct engine *engine)
{
    struct claim *claims =
        allocate_chunk(engine, &engine->claim_chunks, CLAIMS_OF_CHUNK, sizeof(*claims));

    if (claims == NULL)
        return false;
    for (size_t i = CLAIMS_OF_CHUNK; i-- > 0;)
        records_recycle_claim(engine, &claims[i]);
    id_map_reserve(&engine->claim_ids, engine->claim_chunks.count * CLAIMS_OF_CHUNK);
    return true;
}

static bool allocate_leases(struct engine *engine)
{
    struct lease *leases =
        allocate_chunk(engine, &engine->lease_chunks, LEASES_OF_CHUNK, sizeof(*leases));

    if (leases == NULL)
        return false;
    for (size_t i = LEASES_OF_CHUNK; i-- > 0;) {
        leases[i].slots = leases[i].own_slots;
        leases[i].slot_capacity = LEASE_OWN_SLOTS;
        leases[i].state = LEASE_HELD;
        leases[i].expires = TIME_NEVER;
        leases[i].force_at = TIME_NEVER;
        leases[i].entry.at = TIME_NEVER;
        leases[i].entry.is_lease = true;
        leases[i].entry.link.next =
            engine->spare_leases == NULL ? NULL : &engine->spare_leases->entry.link;
        engine->spare_leases = &leases[i];
    }
    id_map_reserve(&engine->lease_ids, engine->lease_chunks.count * LEASES_OF_CHUNK * 2);
    return true;
}

struct claim *records_new_claim(struct engine *engine)
{
    struct claim *claim;

    if (engine->spare_claims == NULL && !allocate_claims(engine))
        return NULL;
    claim = engine->spare_claims;
    engine->spare_claims = (struct claim *)(void *)claim->entry.link.next;
    return claim;
}

int records_prepare_lease(struct engine *engine, size_t slots)
{
    struct lease *held;
    uint32_t *larger;

    if (engine->spare_leases == NULL && !allocate_leases(engine))
        return BERTH_ERROR_MEMORY;
    held = engine->spare_leases;
    if (slots <= held->slot_capacity)
        return 0;
    larger = malloc(slots * sizeof(*larger));
    if (larger == NULL)
        return BERTH_ERROR_MEMORY;
    if (held->slots != held->own_slots)
        free(held->slots);
    held->slots = larger;
    held->slot_capacity = (uint32_t)slots;
    return 0;
}

void records_recycle_claim(struct engine *engine, struct claim *claim)
{
    claim->entry.link.id = 0;
    claim->entry.link.next =
        engine->spare_claims == NULL ? NULL : &engine->spare_claims->entry.link;
    engine->spare_claims = claim;
}

void records_finish(struct engine *engine)
{
    void **chunk;

    vector_for_each (chunk, &engine->lease_chunks) {
        struct lease *leases = *chunk;

        for (size_t i = 0; i < LEASES_OF_CHUNK; i++) {
            if (leases[i].slots != leases[i].own_slots)
                free(leases[i].slots);
        }
        free(leases);
    }
    vector_for_each (chunk, &engine->claim_chunks)
        free(*chunk);
    vector_finish(&engine->lease_chunks);
    vector_finish(&engine->claim_chunks);
    vector_finish(&engine->timers);
}

/* Returns whether one timer fires before the other: by time, then by id. */
static bool is_due_before(const struct engine_entry *one, const struct engine_entry *other)
{
    return one->at != other->at ? one->at < other->at : one->link.id < other->link.id;
}

static void put_timer(struct timer_list *timers, size_t place, struct engine_entry *entry)
{
    timers->items[place] = entry;
    entry->timer_index = (uint32_t)place + 1;
}

static void sift_up(struct timer_list *timers, size_t place)
{
    struct engine_entry *entry = timers->items[place];

    while (place > 0 && is_due_before(entry, timers->items[(place - 1) / 2])) {
        put_timer(timers, place, timers->items[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put_timer(timers, place, entry);
}

static void sift_down(struct timer_list *timers, size_t place)
{
    struct engine_entry *entry = timers->items[place];

    for (size_t child = 2 * place + 1; child < timers->count; child = 2 * place + 1) {
        if (child + 1 < timers->count &&
            is_due_before(timers->items[child + 1], timers->items[child]))
            child++;
        if (!is_due_before(timers->items[child], entry))
            break;
        put_timer(timers, place, timers->items[child]);
        place = child;
    }
    put_timer(timers, place, entry);
}

void records_remove_timer(struct engine *engine, struct engine_entry *entry)
{
    struct timer_list *timers = &engine->timers;
    size_t place = entry->timer_index - 1;

    entry->timer_index = 0;
    timers->count--;
    if (place == timers->count)
        return;
    put_timer(timers, place, timers->items[timers->count]);
    sift_down(timers, place);
    sift_up(timers, place);
}

void records_set_timer(struct engine *engine, struct engine_entry *entry, int64_t at)
{
    engine_clear_timer(engine, entry);
    entry->at = at;
    if (at == TIME_NEVER)
        return;
    put_timer(&engine->timers, engine->timers.count++, entry);
    sift_up(&engine->timers, engine->timers.count - 1);
}
