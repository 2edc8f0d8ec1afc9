/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement/placement_groups.h"

#include <berth/error.h>
#include <stdbool.h>
#include <string.h>

enum { WORD_BITS = 64 };

int placement_groups_init(struct placement_groups *groups, size_t node_count)
{
    *groups = (struct placement_groups){.node_count = node_count};
    groups->items = calloc(node_count * GROUPS_OF_NODE, sizeof(*groups->items));
    groups->nodes = calloc(node_count, sizeof(*groups->nodes));
    return groups->items == NULL || groups->nodes == NULL ? BERTH_ERROR_MEMORY : 0;
}

void placement_groups_finish(struct placement_groups *groups)
{
    for (size_t i = 0; i < groups->node_count * GROUPS_OF_NODE && groups->items != NULL; i++)
        free(groups->items[i].mask);
    for (size_t i = 0; i < groups->node_count && groups->nodes != NULL; i++)
        vector_finish(&groups->nodes[i]);
    free(groups->items);
    free(groups->nodes);
    vector_finish(&groups->whole);
    vector_finish(&groups->split);
    *groups = (struct placement_groups){0};
}

/* Extends the group's mask to include this word. */
static int widen_group(struct placement_group *group, uint32_t word)
{
    size_t first = group->words == 0 || word < group->first ? word : group->first;
    size_t end = group->words == 0 || word >= group->first + group->words
                     ? (size_t)word + 1
                     : group->first + group->words;
    uint64_t *mask;

    if (end - first == group->words)
        return 0;
    mask = calloc(end - first + 1, sizeof(*mask));
    if (mask == NULL)
        return BERTH_ERROR_MEMORY;
    if (group->words > 0)
        memcpy(mask + (group->first - first), group->mask, group->words * sizeof(*mask));
    free(group->mask);
    *group = (struct placement_group){.first = first, .words = end - first, .mask = mask};
    return 0;
}

static int add_to_group(struct placement_groups *groups, struct group_numbers *list, size_t number,
                        uint32_t slot)
{
    struct placement_group *group = &groups->items[number];
    bool is_new = group->words == 0;

    if (vector_reserve(list, list->count + 1) < 0 || widen_group(group, slot / WORD_BITS) < 0)
        return BERTH_ERROR_MEMORY;
    group->mask[slot / WORD_BITS - group->first] |= UINT64_C(1) << (slot % WORD_BITS);
    if (is_new)
        list->items[list->count++] = number;
    return 0;
}

int placement_groups_add(struct placement_groups *groups, const struct device *device,
                         uint32_t slot)
{
    struct slot_numbers *slots = &groups->nodes[device->host];
    size_t place = slots->count;

    while (place > 0 && slots->items[place - 1] >= slot)
        place--;
    if (vector_reserve(slots, slots->count + 1) < 0 ||
        add_to_group(groups, &groups->whole, placement_group_of_node(device->host), slot) < 0 ||
        add_to_group(groups, &groups->split,
                     placement_group_of_vendor(device->host, device->id.vendor), slot) < 0)
        return BERTH_ERROR_MEMORY;
    if (place < slots->count && slots->items[place] == slot)
        return 0;
    memmove(&slots->items[place + 1], &slots->items[place],
            (slots->count - place) * sizeof(*slots->items));
    slots->items[place] = slot;
    slots->count++;
    if (slots->count > groups->largest)
        groups->largest = slots->count;
    return 0;
}
