/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement/expected.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/error.h"
#include "engine/internal.h"

/* Parts of a device, then whole ones. */
static const struct {
    uint32_t count;
    uint32_t share;
} usual[] = {
    {1, SHARE_WHOLE / 8}, {1, SHARE_WHOLE / 4}, {1, SHARE_WHOLE / 2}, {1, SHARE_WHOLE},
    {2, SHARE_WHOLE},     {4, SHARE_WHOLE},     {8, SHARE_WHOLE},
};

void typical_list_finish(struct typical_list *list)
{
    struct typical *typical;

    vector_for_each (typical, list) {
        request_finish(&typical->what);
        bitset_finish(&typical->accepts);
    }
    vector_finish(list);
}

int typical_append(struct typical_list *list, const struct request *what, uint32_t weight)
{
    struct typical *typical = vector_append(list);

    if (typical == NULL)
        return BERTH_ERROR_MEMORY;
    request_init(&typical->what);
    typical->weight = weight;
    return request_copy(&typical->what, what);
}

int typical_append_usual(struct typical_list *list)
{
    int code = 0;

    for (size_t i = 0; i < COUNT(usual) && code == 0; i++) {
        struct request what;

        request_init(&what);
        what.gpus = (struct device_count){.least = usual[i].count, .most = usual[i].count};
        if (usual[i].share < SHARE_WHOLE) {
            what.sharing = SHARING_TIME_SLICE;
            what.share = optional_number_of(usual[i].share);
        }
        code = typical_append(list, &what, 1);
    }
    return code;
}

/* Which slots would do for it, by facts that stay. */
static int find_accepted(struct typical *typical, const struct machine *machine,
                         const struct filter_terms *terms, const struct bitset *gone)
{
    size_t size = gone != NULL ? gone->size : machine->devices.count;

    if (typical->accepts.size < size) {
        bitset_finish(&typical->accepts);
        if (bitset_init(&typical->accepts, size) < 0)
            return BERTH_ERROR_MEMORY;
    }
    bitset_clear(&typical->accepts);
    for (size_t slot = 0; slot < machine->devices.count; slot++) {
        if ((gone == NULL || !bitset_has(gone, slot)) &&
            filter_facts(&typical->what, &machine->devices.items[slot], terms) == FILTER_PASSES)
            bitset_add(&typical->accepts, slot);
    }
    return 0;
}

static struct policy_typical view_of(const struct typical *typical,
                                     const struct filter_terms *terms)
{
    const struct request *what = &typical->what;

    return (struct policy_typical){
        .weight = typical->weight,
        .count = what->gpus.most,
        .share = filter_share(what, terms),
        .cpus = what->cpus.known ? what->cpus.value : 0,
        .memory = what->host_memory.known ? what->host_memory.value : 0,
        .accepts = &typical->accepts,
    };
}

int tables_prepare(const struct policy *policy, const struct machine *machine,
                   struct typical_list *list, const struct filter_terms *terms,
                   const struct bitset *gone, void **ret_tables)
{
    struct policy_typical *views = calloc(list->count + 1, sizeof(*views));
    struct policy_surroundings around = {
        .machine = machine,
        .typical = views,
        .typical_count = list->count,
    };
    int code = views == NULL ? BERTH_ERROR_MEMORY : 0;

    for (size_t i = 0; i < list->count && code == 0; i++) {
        code = find_accepted(&list->items[i], machine, terms, gone);
        if (code == 0)
            views[i] = view_of(&list->items[i], terms);
    }
    if (code == 0)
        code = policy->prepare(policy, &around, ret_tables);
    free(views);
    return code;
}

int engine_expect(struct engine *engine, const struct request *requests, const uint32_t *weights,
                  size_t count, struct berth_error *error)
{
    struct typical_list list = {0};
    uint64_t sum = 0;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = request_validate(&requests[i], error);
        if (code == 0 && typical_append(&list, &requests[i], weights[i]) < 0)
            code = error_set_memory(error);
        sum += weights[i];
    }
    if (code == 0 && sum == 0)
        code = error_set(error, BERTH_ERROR_INVALID,
                         "wanted some request to be expected, found no weight");
    if (code < 0) {
        typical_list_finish(&list);
        return code;
    }
    typical_list_finish(&engine->typical);
    engine->typical = list;
    recompile_requests(engine);
    return 0;
}

void expected_forget(struct engine *engine)
{
    struct policy_tables *item;

    vector_for_each (item, &engine->tables)
        item->policy->forget(item->tables);
    engine->tables.count = 0;
}

void expected_finish(struct engine *engine)
{
    expected_forget(engine);
    vector_finish(&engine->tables);
    typical_list_finish(&engine->typical);
}

static int prepare(struct engine *engine, const struct policy *policy, void **ret_tables)
{
    struct bitset gone;
    int code = bitset_init(&gone, engine->size);

    if (code == 0 && engine->typical.count == 0) {
        code = typical_append_usual(&engine->typical);
        if (code < 0)
            typical_list_finish(&engine->typical);
    }
    for (size_t slot = 0; slot < engine->machine.devices.count && code == 0; slot++) {
        if (!engine->status[slot].present)
            bitset_add(&gone, slot);
    }
    if (code == 0)
        code = tables_prepare(policy, &engine->machine, &engine->typical, &engine->root.terms,
                              &gone, ret_tables);
    bitset_finish(&gone);
    return code;
}

int tables_find(struct engine *engine, const struct policy *policy, const void **ret_tables)
{
    struct policy_tables *item;
    void *tables = NULL;

    *ret_tables = NULL;
    if (policy->prepare == NULL)
        return 0;
    vector_for_each (item, &engine->tables) {
        if (item->policy != policy)
            continue;
        *ret_tables = item->tables;
        return 0;
    }
    if (vector_reserve(&engine->tables, engine->tables.count + 1) < 0 ||
        prepare(engine, policy, &tables) < 0)
        return BERTH_ERROR_MEMORY;
    engine->tables.items[engine->tables.count++] =
        (struct policy_tables){.policy = policy, .tables = tables};
    *ret_tables = tables;
    return 0;
}
