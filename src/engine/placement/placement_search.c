/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement/placement_search.h"

#include "base/count.h"
#include "base/error.h"

int placement_search_init(struct placement_search *search, const struct machine *machine,
                          size_t size)
{
    struct bitset *sets[] = {&search->free,  &search->must_left, &search->candidates,
                             &search->plain, &search->required,  &search->chosen,
                             &search->used};
    size_t node_count = machine->hosts.count > 0 ? machine->hosts.count : 1;

    *search = (struct placement_search){.machine = machine, .size = size};
    if (placement_groups_init(&search->groups, node_count) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < COUNT(sets); i++) {
        if (bitset_init(sets[i], size) < 0)
            return BERTH_ERROR_MEMORY;
    }
    search->room = calloc(size + 1, sizeof(*search->room));
    search->node_room = calloc(node_count, sizeof(*search->node_room));
    search->node_replicas = calloc(node_count, sizeof(*search->node_replicas));
    if (search->room == NULL || search->node_room == NULL || search->node_replicas == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < machine->devices.count; slot++) {
        if (placement_search_add_slot(search, slot) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

void placement_search_finish(struct placement_search *search)
{
    placement_groups_finish(&search->groups);
    free(search->room);
    free(search->node_room);
    free(search->node_replicas);
    free(search->order);
    bitset_finish(&search->free);
    bitset_finish(&search->must_left);
    bitset_finish(&search->candidates);
    bitset_finish(&search->plain);
    bitset_finish(&search->required);
    bitset_finish(&search->chosen);
    bitset_finish(&search->used);
    vector_finish(&search->slots_chosen);
    vector_finish(&search->sizes);
}

int placement_search_add_slot(struct placement_search *search, size_t slot)
{
    const struct device *device = &search->machine->devices.items[slot];
    size_t max;

    if (placement_groups_add(&search->groups, device, (uint32_t)slot) < 0)
        return BERTH_ERROR_MEMORY;
    /* There are at least as many groups by vendor as groups by node. */
    max = search->groups.split.count;
    if (max <= search->group_capacity)
        return 0;
    return vector_grow((void **)&search->order, &search->group_capacity, sizeof(*search->order),
                       max);
}

bool placement_search_may_mix(const struct request *request)
{
    return request->vendor_rule == VENDOR_RULE_MIXED ||
           (request->gpus.max == 1 && !request->gpus.all);
}

size_t placement_search_group(const struct placement_search *search, const struct request *request,
                              size_t slot)
{
    const struct device *device = &search->machine->devices.items[slot];

    return placement_search_may_mix(request)
               ? placement_group_of_node(device->host)
               : placement_group_of_vendor(device->host, device->id.vendor);
}

/* Empties the sets of candidates. */
static void forget_gathered(struct placement_search *search)
{
    const struct placement_group *group = search->gathered;

    for (size_t i = 0; group != NULL && i < group->words; i++) {
        search->candidates.words[group->first + i] = 0;
        search->plain.words[group->first + i] = 0;
        search->required.words[group->first + i] = 0;
    }
    search->gathered = NULL;
}

size_t placement_search_gather_group(struct placement_search *search, size_t number)
{
    const struct placement_group *group = &search->groups.items[number];
    size_t count = 0;

    forget_gathered(search);
    if (search->node_room[placement_group_node(number)] == 0)
        return 0;
    search->gathered = group;
    search->plain_count = 0;
    for (size_t i = 0; i < group->words; i++) {
        size_t word = group->first + i;
        uint64_t candidates = search->free.words[word] & group->mask[i];

        search->candidates.words[word] = candidates;
        search->plain.words[word] = candidates & ~search->query.avoided->words[word];
        search->required.words[word] = candidates & search->must_left.words[word];
        count += (size_t)__builtin_popcountll(candidates);
        search->plain_count += (size_t)__builtin_popcountll(search->plain.words[word]);
    }
    return count;
}

void placement_search_reset(struct placement_search *search)
{
    search->slots_chosen.count = 0;
    search->sizes.count = 0;
    search->rated = 0;
    if (search->query.words != NULL)
        text_clear(search->query.words);
}

/* Returns the lowest slot of the group with room; search->size if there is none. */
static size_t find_lowest_slot(const struct placement_search *search,
                               const struct placement_group *group)
{
    for (size_t i = 0; i < group->words; i++) {
        uint64_t word = search->free.words[group->first + i] & group->mask[i];

        if (word != 0)
            return (group->first + i) * 64 + (size_t)__builtin_ctzll(word);
    }
    return search->size;
}

/* Adds the group to the order, by its lowest slot. */
static void insert_group(struct placement_search *search, size_t group, size_t lowest)
{
    size_t place = search->group_count++;

    for (; place > 0 && search->order[place - 1].lowest > lowest; place--)
        search->order[place] = search->order[place - 1];
    search->order[place] = (struct placement_search_group){.group = group, .lowest = lowest};
}

int placement_search_start(struct placement_search *search, const struct bitset *from)
{
    const struct placement_groups *groups = &search->groups;
    const struct group_numbers *numbers =
        placement_search_may_mix(search->query.request) ? &groups->whole : &groups->split;

    placement_search_reset(search);
    forget_gathered(search);
    bitset_clear(&search->used);
    bitset_clear(&search->free);
    if (search->query.must != NULL)
        bitset_copy(&search->must_left, search->query.must);
    else
        bitset_clear(&search->must_left);
    for (size_t node = 0; node < groups->node_count; node++) {
        search->node_room[node] =
            search->query.node_source != NULL ? search->query.node_source[node] : UINT32_MAX;
        search->node_replicas[node] = 0;
    }
    for (size_t word = 0; word * 64 < search->size; word++) {
        for (uint64_t rest = from->words[word]; rest != 0; rest &= rest - 1) {
            size_t slot = word * 64 + (size_t)__builtin_ctzll(rest);

            search->room[slot] = search->query.source[slot];
            if (search->room[slot] > 0)
                search->free.words[word] |= rest & -rest;
        }
    }
    search->group_count = 0;
    for (size_t i = 0; i < numbers->count; i++) {
        size_t lowest = find_lowest_slot(search, &groups->items[numbers->items[i]]);

        if (lowest < search->size)
            insert_group(search, numbers->items[i], lowest);
    }
    return 0;
}

size_t placement_search_room(const struct placement_search *search, const struct bitset *from)
{
    size_t room = 0;

    bitset_for_each (slot, from)
        room += search->query.source[slot];
    return room;
}

/* Returns how many devices of the group have room. */
static size_t count_free_devices(const struct placement_search *search,
                                 const struct placement_group *group)
{
    size_t size = 0;

    for (size_t i = 0; i < group->words; i++)
        size += (size_t)__builtin_popcountll(search->free.words[group->first + i] & group->mask[i]);
    return size;
}

bool placement_search_has_group(const struct placement_search *search, size_t count)
{
    for (size_t i = 0; i < search->group_count; i++) {
        size_t group = search->order[i].group;
        size_t node = placement_group_node(group);

        if ((search->query.node_source == NULL || search->query.node_source[node] > 0) &&
            count_free_devices(search, &search->groups.items[group]) >= count)
            return true;
    }
    return false;
}

int64_t placement_search_largest_group(struct placement_search *search, const struct bitset *from,
                                       size_t *ret_group)
{
    size_t largest = 0;

    if (placement_search_start(search, from) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < search->group_count; i++) {
        size_t size = count_free_devices(search, &search->groups.items[search->order[i].group]);

        if (size > largest) {
            largest = size;
            *ret_group = search->order[i].group;
        }
    }
    return (int64_t)largest;
}

struct policy_question placement_search_question(const struct placement_search *search,
                                                 size_t count)
{
    return (struct policy_question){
        .machine = search->machine,
        .slots = search->query.slots,
        .ranked = search->query.ranked,
        .candidates = &search->candidates,
        .required = &search->required,
        .avoided = search->query.avoided,
        .count = count,
        .affinity = search->query.affinity,
    };
}

bool placement_search_is_rated(const struct placement_search *search, size_t node)
{
    return search->query.policy->rate != NULL && node_view_is_possible(&search->groups, node);
}

/* Returns the free millionths of a slot, minus those taken by this attempt. */
static uint32_t left_of(const struct placement_search *search, size_t slot)
{
    uint64_t taken =
        bitset_has(&search->used, slot)
            ? (uint64_t)(search->query.source[slot] - search->room[slot]) * search->query.share
            : 0;
    uint32_t left;

    if (search->query.left != NULL)
        left = search->query.left(search, slot);
    else
        left = bitset_has(&search->free, slot) || taken > 0 ? SHARE_WHOLE : 0;
    return taken < left ? (uint32_t)(left - taken) : 0;
}

static struct host_usage host_usage_of(const struct placement_search *search, size_t node)
{
    const struct request *request = search->query.request;
    uint64_t placed = search->node_replicas[node];
    struct host_usage taken = {
        .cpus = placed * (request->cpus.known ? request->cpus.value : 0),
        .memory = placed * (request->host_memory.known ? request->host_memory.value : 0),
    };

    if (search->query.hosts != NULL) {
        taken.cpus += search->query.hosts[node].cpus;
        taken.memory += search->query.hosts[node].memory;
    }
    return taken;
}

/* Fills in the policy's view of the node with the gathered candidates. */
static void fill_node_view(const struct placement_search *search, size_t node,
                           struct node_view *ret_view)
{
    struct host_usage taken = host_usage_of(search, node);
    struct policy_question question = placement_search_question(search, 0);

    node_view_begin(ret_view, search->machine, &search->groups, node, &taken, search->query.tables);
    for (uint32_t i = 0; i < ret_view->node.count; i++) {
        size_t slot = ret_view->node.slots[i];
        uint64_t bit = UINT64_C(1) << i;

        ret_view->left[i] = left_of(search, slot);
        ret_view->node.candidates |= bitset_has(&search->candidates, slot) ? bit : 0;
        ret_view->node.required |= bitset_has(&search->required, slot) ? bit : 0;
        ret_view->node.avoided |= bitset_has(search->query.avoided, slot) ? bit : 0;
    }
    node_view_end(ret_view, &question);
}

static struct policy_demand demand_for(const struct placement_search *search, size_t count)
{
    return node_view_demand(search->query.request, (uint32_t)count, search->query.share,
                            search->query.draw);
}

struct bid placement_search_rate_node(const struct placement_search *search, size_t node,
                                      size_t count, struct policy_offer *ret_offer)
{
    struct policy_demand demand = demand_for(search, count);
    struct node_view view;

    fill_node_view(search, node, &view);
    return node_view_rate(&view, search->query.policy, &demand, ret_offer);
}

/* Chooses the devices that the policy offers on the node. */
static void choose_offer(struct placement_search *search, size_t node, size_t count)
{
    struct policy_demand demand = demand_for(search, count);
    struct policy_offer offer;
    struct node_view view;

    fill_node_view(search, node, &view);
    node_view_rate(&view, search->query.policy, &demand, &offer);
    for (uint64_t rest = offer.chosen; rest != 0; rest &= rest - 1)
        bitset_add(&search->chosen, view.node.slots[__builtin_ctzll(rest)]);
    search->score = search->rated == 0 ? offer.score : search->score + offer.score;
    search->proven = offer.proven && (search->rated == 0 || search->proven);
    search->rated++;
    if (search->query.words == NULL || search->query.policy->explain == NULL)
        return;
    if (search->query.words->length > 0)
        text_append(search->query.words, " | ");
    search->query.policy->explain(search->query.policy, &view.node, &demand, &offer,
                                  search->query.words);
}

/* Chooses among the candidates, all on one node. */
static int choose_devices(struct placement_search *search, size_t count)
{
    struct policy_question question = placement_search_question(search, count);
    size_t node = search->machine->devices.items[bitset_next(&search->candidates, 0)].host;

    bitset_clear(&search->chosen);
    if (!placement_search_is_rated(search, node))
        return policy_choose(search->query.policy, &question, &search->chosen);
    choose_offer(search, node, count);
    return 0;
}

int placement_search_assign(struct placement_search *search, size_t count)
{
    size_t *size = vector_append(&search->sizes);
    size_t node;

    if (size == NULL)
        return BERTH_ERROR_MEMORY;
    *size = count;
    if (choose_devices(search, count) < 0)
        return BERTH_ERROR_MEMORY;
    bitset_subtract(&search->must_left, &search->chosen);
    bitset_unite(&search->used, &search->chosen);
    bitset_for_each (slot, &search->chosen) {
        size_t *place = vector_append(&search->slots_chosen);

        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = slot;
        if (--search->room[slot] == 0)
            bitset_remove(&search->free, slot);
    }
    node = search->machine->devices.items[bitset_next(&search->chosen, 0)].host;
    search->node_replicas[node]++;
    if (search->node_room[node] != UINT32_MAX)
        search->node_room[node]--;
    return 1;
}
