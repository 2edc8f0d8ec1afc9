/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests that the engine expects, and the tables that policies prepare from them.
 */
#include "base/error.h"
#include "engine/internal.h"

int engine_expect(struct engine *engine, const struct request *requests, const uint32_t *weights,
                  size_t count, struct berth_error *error)
{
    struct expected_list list = {0};
    uint64_t sum = 0;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = request_validate(&requests[i], error);
        if (code == 0 && expected_append(&list, &requests[i], weights[i]) < 0)
            code = error_set_memory(error);
        sum += weights[i];
    }
    if (code == 0 && sum == 0)
        code =
            error_set(error, BERTH_ERROR_INVALID, "expected at least one weight above 0, got none");
    if (code < 0) {
        expected_list_finish(&list);
        return code;
    }
    expected_list_finish(&engine->expected);
    engine->expected = list;
    engine_recompile_requests(engine);
    return 0;
}

void policy_tables_forget(struct engine *engine)
{
    struct policy_tables *item;

    vector_for_each (item, &engine->tables)
        item->policy->forget(item->tables);
    engine->tables.count = 0;
}

void policy_tables_finish(struct engine *engine)
{
    policy_tables_forget(engine);
    vector_finish(&engine->tables);
    expected_list_finish(&engine->expected);
}

static int prepare_tables(struct engine *engine, const struct policy *policy, void **ret_tables)
{
    struct bitset gone;
    int code = bitset_init(&gone, engine->size);

    if (code == 0 && engine->expected.count == 0) {
        code = expected_append_defaults(&engine->expected);
        if (code < 0)
            expected_list_finish(&engine->expected);
    }
    for (size_t slot = 0; slot < engine->machine.devices.count && code == 0; slot++) {
        if (!engine->status[slot].present)
            bitset_add(&gone, slot);
    }
    if (code == 0)
        code = expected_prepare_tables(policy, &engine->machine, &engine->expected,
                                       &engine->root.terms, &gone, ret_tables);
    bitset_finish(&gone);
    return code;
}

int policy_tables_find(struct engine *engine, const struct policy *policy, const void **ret_tables)
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
        prepare_tables(engine, policy, &tables) < 0)
        return BERTH_ERROR_MEMORY;
    engine->tables.items[engine->tables.count++] =
        (struct policy_tables){.policy = policy, .tables = tables};
    *ret_tables = tables;
    return 0;
}
