/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement_search.h"

#include "base/count.h"
#include "base/error.h"

int search_init(struct search *search, const struct machine *machine, size_t size)
{
    struct bitset *sets[] = {&search->must_left, &search->candidates, &search->plain,
                             &search->required,  &search->chosen,     &search->used};

    *search = (struct search){.machine = machine, .size = size};
    search->node_count = machine->hosts.count > 0 ? machine->hosts.count : 1;
    search->group_most = search->node_count * SEARCH_VENDORS;
    for (size_t i = 0; i < COUNT(sets); i++) {
        if (bitset_init(sets[i], size) < 0)
            return BERTH_ERROR_MEMORY;
    }
    search->room = calloc(size + 1, sizeof(*search->room));
    search->node_room = calloc(search->node_count, sizeof(*search->node_room));
    search->node_replicas = calloc(search->node_count, sizeof(*search->node_replicas));
    search->groups = calloc(search->group_most, sizeof(*search->groups));
    search->order = calloc(search->group_most, sizeof(*search->order));
    if (search->room == NULL || search->node_room == NULL || search->node_replicas == NULL ||
        search->groups == NULL || search->order == NULL)
        return BERTH_ERROR_MEMORY;
    return 0;
}

void search_finish(struct search *search)
{
    for (size_t group = 0; group < search->group_most && search->groups != NULL; group++)
        bitset_finish(&search->groups[group]);
    free(search->room);
    free(search->node_room);
    free(search->node_replicas);
    free(search->groups);
    free(search->order);
    bitset_finish(&search->must_left);
    bitset_finish(&search->candidates);
    bitset_finish(&search->plain);
    bitset_finish(&search->required);
    bitset_finish(&search->chosen);
    bitset_finish(&search->used);
    vector_finish(&search->slots_chosen);
    vector_finish(&search->sizes);
}

/* Whether vendors need not be told apart: they may mix, or there is only one device to mix. */
static bool may_mix(const struct request *request)
{
    return request->vendor_rule == VENDOR_RULE_MIXED ||
           (request->gpus.most == 1 && !request->gpus.all);
}

size_t search_group(const struct search *search, size_t slot)
{
    const struct device *device = &search->machine->devices.items[slot];

    return device->host * SEARCH_VENDORS + (may_mix(search->request) ? 0 : device->id.vendor);
}

size_t search_node(size_t group)
{
    return group / SEARCH_VENDORS;
}

size_t search_gather(struct search *search, size_t group)
{
    if (search->node_room[search_node(group)] == 0)
        return 0;
    bitset_copy(&search->candidates, &search->groups[group]);
    bitset_copy(&search->plain, &search->candidates);
    bitset_subtract(&search->plain, search->avoided);
    bitset_copy(&search->required, &search->must_left);
    bitset_intersect(&search->required, &search->candidates);
    return bitset_count(&search->candidates);
}

void search_forget(struct search *search)
{
    search->slots_chosen.count = 0;
    search->sizes.count = 0;
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

int search_prepare(struct search *search, size_t slot)
{
    const struct device *device = &search->machine->devices.items[slot];
    struct bitset *host = &search->groups[device->host * SEARCH_VENDORS];

    if (host->words == NULL && bitset_init(host, search->size) < 0)
        return BERTH_ERROR_MEMORY;
    host += device->id.vendor;
    return host->words == NULL ? bitset_init(host, search->size) : 0;
}

static int add_to_group(struct search *search, size_t slot)
{
    struct bitset *group = &search->groups[search_group(search, slot)];

    if (group->words == NULL && bitset_init(group, search->size) < 0)
        return BERTH_ERROR_MEMORY;
    bitset_add(group, slot);
    return 0;
}

int search_start(struct search *search, const struct bitset *from)
{
    search_forget(search);
    bitset_clear(&search->used);
    if (search->must != NULL)
        bitset_copy(&search->must_left, search->must);
    else
        bitset_clear(&search->must_left);
    for (size_t node = 0; node < search->node_count; node++) {
        search->node_room[node] =
            search->node_source != NULL ? search->node_source[node] : UINT32_MAX;
        search->node_replicas[node] = 0;
    }
    for (size_t group = 0; group < search->group_most; group++) {
        if (search->groups[group].words != NULL)
            bitset_clear(&search->groups[group]);
    }
    bitset_for_each (slot, from) {
        search->room[slot] = search->source[slot];
        if (search->room[slot] > 0 && add_to_group(search, slot) < 0)
            return BERTH_ERROR_MEMORY;
    }
    search->group_count = 0;
    for (size_t group = 0; group < search->group_most; group++) {
        if (search->groups[group].words != NULL && !bitset_is_empty(&search->groups[group]))
            insert_group(search, group);
    }
    return 0;
}

size_t search_room(const struct search *search, const struct bitset *from)
{
    size_t room = 0;

    bitset_for_each (slot, from)
        room += search->source[slot];
    return room;
}

int64_t search_largest_group(struct search *search, const struct bitset *from, size_t *ret_group)
{
    size_t largest = 0;

    if (search_start(search, from) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < search->group_count; i++) {
        size_t size = bitset_count(&search->groups[search->order[i]]);

        if (size > largest) {
            largest = size;
            *ret_group = search->order[i];
        }
    }
    return (int64_t)largest;
}

struct policy_question search_question(const struct search *search, size_t count)
{
    return (struct policy_question){
        .machine = search->machine,
        .slots = search->slots,
        .ranked = search->ranked,
        .candidates = &search->candidates,
        .required = &search->required,
        .avoided = search->avoided,
        .count = count,
        .affinity = search->affinity,
    };
}

int search_take(struct search *search, size_t count)
{
    struct policy_question question = search_question(search, count);
    size_t *size = vector_append(&search->sizes);
    size_t node;

    if (size == NULL)
        return BERTH_ERROR_MEMORY;
    *size = count;
    bitset_clear(&search->chosen);
    if (policy_choose(search->policy, &question, &search->chosen) < 0)
        return BERTH_ERROR_MEMORY;
    bitset_subtract(&search->must_left, &search->chosen);
    bitset_unite(&search->used, &search->chosen);
    bitset_for_each (slot, &search->chosen) {
        size_t *place = vector_append(&search->slots_chosen);

        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = slot;
        if (--search->room[slot] == 0)
            bitset_remove(&search->groups[search_group(search, slot)], slot);
    }
    node = search->machine->devices.items[bitset_next(&search->chosen, 0)].host;
    search->node_replicas[node]++;
    if (search->node_room[node] != UINT32_MAX)
        search->node_room[node]--;
    return 1;
}
