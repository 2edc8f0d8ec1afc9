/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of the links between devices.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/internal.h"

static int compare_pairs(const struct link *one, const struct link *other)
{
    for (size_t end = 0; end < 2; end++) {
        if (one->between[end] != other->between[end])
            return one->between[end] < other->between[end] ? -1 : 1;
    }
    return 0;
}

/* Orders by pair, then by kind, fabrics first. */
static int compare_links(const void *one, const void *other)
{
    const struct link *mine = one;
    const struct link *theirs = other;
    int order = compare_pairs(mine, theirs);

    if (order != 0)
        return order;
    if (mine->kind != theirs->kind)
        return mine->kind < theirs->kind ? -1 : 1;
    return (mine->lanes > theirs->lanes) - (mine->lanes < theirs->lanes);
}

static void sort_links(struct link_list *list)
{
    if (list->count > 1)
        qsort(list->items, list->count, sizeof(*list->items), compare_links);
}

static int copy_links(struct link_list *to, const struct link_list *from)
{
    if (vector_reserve(to, from->count) < 0)
        return BERTH_ERROR_MEMORY;
    if (from->count > 0)
        memcpy(to->items, from->items, from->count * sizeof(*from->items));
    to->count = from->count;
    return 0;
}

/* Merges two sorted lists. The links of a pair come from `reported` if it names the pair. */
static int merge_links(const struct link_list *before, const struct link_list *reported,
                       struct link_list *ret_list)
{
    size_t old = 0;
    size_t next = 0;

    if (vector_reserve(ret_list, before->count + reported->count) < 0)
        return BERTH_ERROR_MEMORY;
    while (old < before->count || next < reported->count) {
        int order = 1;

        if (next == reported->count)
            order = -1;
        else if (old < before->count)
            order = compare_pairs(&before->items[old], &reported->items[next]);
        if (order < 0) {
            ret_list->items[ret_list->count++] = before->items[old++];
            continue;
        }
        while (old < before->count &&
               compare_pairs(&before->items[old], &reported->items[next]) == 0)
            old++;
        ret_list->items[ret_list->count++] = reported->items[next++];
        while (next < reported->count &&
               compare_pairs(&reported->items[next - 1], &reported->items[next]) == 0)
            ret_list->items[ret_list->count++] = reported->items[next++];
    }
    return 0;
}

static bool are_same_links(const struct link_list *one, const struct link_list *other)
{
    bool same = one->count == other->count;

    for (size_t i = 0; i < one->count && same; i++)
        same = compare_links(&one->items[i], &other->items[i]) == 0;
    return same;
}

int engine_set_links(struct engine *engine, const struct link_list *links,
                     struct berth_error *error)
{
    struct link_list *known = &engine->machine.links;
    struct link_list reported = {0};
    struct link_list merged = {0};
    const struct link *link;
    int code;

    vector_for_each (link, links) {
        if (link->between[0] >= link->between[1] ||
            link->between[1] >= engine->machine.devices.count)
            return error_set(error, BERTH_ERROR_INVALID,
                             "expected a link between two of %zu devices, got one between %zu and "
                             "%zu",
                             engine->machine.devices.count, link->between[0], link->between[1]);
    }
    sort_links(known);
    code = copy_links(&reported, links);
    if (code == 0) {
        sort_links(&reported);
        code = merge_links(known, &reported, &merged);
    }
    vector_finish(&reported);
    if (code == 0 && !are_same_links(known, &merged)) {
        struct link_list kept = *known;

        *known = merged;
        merged = kept;
        engine_recompile_requests(engine);
    }
    vector_finish(&merged);
    return code < 0 ? error_set_memory(error) : 0;
}
