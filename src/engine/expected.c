/* SPDX-License-Identifier: Apache-2.0
 *
 * What kinds of requests are expected, and what policies work out from them and from the facts.
 */
#include <stdlib.h>

#include "base/count.h"
#include "base/error.h"
#include "engine/parts.h"

/* Parts of a device, then whole ones; each as often as the others. */
static const struct {
    uint32_t count;
    uint32_t share;
} usual[] = {
    {1, SHARE_WHOLE / 8}, {1, SHARE_WHOLE / 4}, {1, SHARE_WHOLE / 2}, {1, SHARE_WHOLE},
    {2, SHARE_WHOLE},     {4, SHARE_WHOLE},     {8, SHARE_WHOLE},
};

static void typical_finish(struct typical_list *list)
{
    struct typical *typical;

    vector_for_each (typical, list) {
        request_finish(&typical->what);
        bitset_finish(&typical->accepts);
    }
    vector_finish(list);
}

static int append(const struct engine *engine, const struct request *what, uint32_t weight,
                  struct typical_list *list)
{
    struct typical *typical = vector_append(list);

    if (typical == NULL)
        return BERTH_ERROR_MEMORY;
    request_init(&typical->what);
    typical->weight = weight;
    return request_copy(&typical->what, what) < 0 ||
                   bitset_init(&typical->accepts, engine->size) < 0
               ? BERTH_ERROR_MEMORY
               : 0;
}

static int append_usual(const struct engine *engine, struct typical_list *list)
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
        code = append(engine, &what, 1, list);
    }
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
        if (code == 0 && append(engine, &requests[i], weights[i], &list) < 0)
            code = error_set_memory(error);
        sum += weights[i];
    }
    if (code == 0 && sum == 0)
        code = error_set(error, BERTH_ERROR_INVALID,
                         "wanted some request to be expected, found no weight");
    if (code < 0) {
        typical_finish(&list);
        return code;
    }
    expected_finish(engine);
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
    typical_finish(&engine->typical);
}

/* Which slots would do for it, by facts that stay. */
static void find_accepted(const struct engine *engine, struct typical *typical)
{
    bitset_clear(&typical->accepts);
    for (size_t slot = 0; slot < engine->machine.devices.count; slot++) {
        if (engine->status[slot].present &&
            filter_facts(&typical->what, &engine->machine.devices.items[slot],
                         &engine->root.terms) == FILTER_PASSES)
            bitset_add(&typical->accepts, slot);
    }
}

static void show(const struct engine *engine, const struct typical *typical,
                 struct policy_typical *ret_view)
{
    const struct request *what = &typical->what;

    *ret_view = (struct policy_typical){
        .weight = typical->weight,
        .count = what->gpus.most,
        .share = filter_share(what, &engine->root.terms),
        .cpus = what->cpus.known ? what->cpus.value : 0,
        .memory = what->host_memory.known ? what->host_memory.value : 0,
        .accepts = &typical->accepts,
    };
}

/* Has the policy work out its tables. Returns 0 or BERTH_ERROR_MEMORY. */
static int prepare(struct engine *engine, const struct policy *policy, void **ret_tables)
{
    struct policy_typical *views;
    struct policy_surroundings around = {.machine = &engine->machine};
    int code;

    if (engine->typical.count == 0 && append_usual(engine, &engine->typical) < 0) {
        typical_finish(&engine->typical);
        return BERTH_ERROR_MEMORY;
    }
    views = calloc(engine->typical.count, sizeof(*views));
    if (views == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < engine->typical.count; i++) {
        find_accepted(engine, &engine->typical.items[i]);
        show(engine, &engine->typical.items[i], &views[i]);
    }
    around.typical = views;
    around.typical_count = engine->typical.count;
    code = policy->prepare(policy, &around, ret_tables);
    free(views);
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
