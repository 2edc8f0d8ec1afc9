/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement_search.h"

#include "base/count.h"
#include "base/error.h"

int search_init(struct search *search, const struct placement_question *question,
                struct placement *placement)
{
    size_t count = question->machine->devices.count;
    struct bitset *sets[] = {&search->possible,  &search->available,  &search->avoided,
                             &search->must_left, &search->candidates, &search->plain,
                             &search->required,  &search->chosen};

    *search = (struct search){.question = question, .device_count = count, .placement = placement};
    for (size_t i = 0; i < COUNT(sets); i++) {
        if (bitset_init(sets[i], count) < 0)
            return BERTH_ERROR_MEMORY;
    }
    for (size_t group = 0; group < SEARCH_GROUPS; group++) {
        if (bitset_init(&search->groups[group], count) < 0)
            return BERTH_ERROR_MEMORY;
    }
    search->tenants = calloc(count + 1, sizeof(*search->tenants));
    search->room = calloc(count + 1, sizeof(*search->room));
    return search->tenants == NULL || search->room == NULL ? BERTH_ERROR_MEMORY : 0;
}

void search_finish(struct search *search)
{
    free(search->tenants);
    free(search->room);
    bitset_finish(&search->possible);
    bitset_finish(&search->available);
    bitset_finish(&search->avoided);
    bitset_finish(&search->must_left);
    bitset_finish(&search->candidates);
    bitset_finish(&search->plain);
    bitset_finish(&search->required);
    bitset_finish(&search->chosen);
    for (size_t group = 0; group < SEARCH_GROUPS; group++)
        bitset_finish(&search->groups[group]);
}

void search_judge(struct search *search)
{
    const struct placement_question *question = search->question;
    const struct request *request = question->request;

    for (size_t slot = 0; slot < search->device_count; slot++) {
        const struct device *device = &question->machine->devices.items[slot];
        enum filter_verdict verdict = filter_device(request, device);

        if (verdict == FILTER_PASSES && bitset_has(question->busy, slot))
            verdict = FILTER_BUSY;
        search->counts[verdict]++;
        search->tenants[slot] = filter_tenants(request, device);
        if (device_id_list_has(&request->avoided, device->id))
            bitset_add(&search->avoided, slot);
        if (verdict == FILTER_PASSES)
            bitset_add(&search->available, slot);
        if (verdict == FILTER_PASSES || filter_may_change(verdict))
            bitset_add(&search->possible, slot);
    }
}

size_t search_group(const struct search *search, size_t slot)
{
    if (search->question->request->vendor_rule == VENDOR_RULE_MIXED)
        return 0;
    return search->question->machine->devices.items[slot].id.vendor;
}

size_t search_gather(struct search *search, size_t group)
{
    bitset_copy(&search->candidates, &search->groups[group]);
    bitset_copy(&search->plain, &search->candidates);
    bitset_subtract(&search->plain, &search->avoided);
    bitset_copy(&search->required, &search->must_left);
    bitset_intersect(&search->required, &search->candidates);
    return bitset_count(&search->candidates);
}

void search_forget(struct search *search)
{
    search->placement->slots.count = 0;
    search->placement->sizes.count = 0;
}

/* Adds the group to the order, by its lowest slot. */
static void insert_group(struct search *search, size_t group)
{
    size_t lowest = bitset_next(&search->groups[group], 0);
    size_t place = search->group_count++;

    for (; place > 0; place--) {
        size_t before = search->order[place - 1];

        if (bitset_next(&search->groups[before], 0) < lowest)
            break;
        search->order[place] = before;
    }
    search->order[place] = group;
}

void search_start(struct search *search, const struct bitset *from)
{
    search_forget(search);
    bitset_copy(&search->must_left, search->question->must);
    for (size_t group = 0; group < SEARCH_GROUPS; group++)
        bitset_clear(&search->groups[group]);
    bitset_for_each (slot, from) {
        search->room[slot] = search->tenants[slot];
        if (search->room[slot] > 0)
            bitset_add(&search->groups[search_group(search, slot)], slot);
    }
    search->group_count = 0;
    for (size_t group = 0; group < SEARCH_GROUPS; group++) {
        if (!bitset_is_empty(&search->groups[group]))
            insert_group(search, group);
    }
}

size_t search_room(const struct search *search, const struct bitset *from)
{
    size_t room = 0;

    bitset_for_each (slot, from)
        room += search->tenants[slot];
    return room;
}

bool search_is_best_effort(const struct search *search)
{
    const struct request *request = search->question->request;

    return request->scheduling == SCHEDULING_BEST_EFFORT && request->replicas > 1;
}
