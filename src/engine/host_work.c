/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that occupies CPUs and memory of hosts, but no devices.
 */
#include "base/error.h"
#include "engine/internal.h"

/* Returns the first host that has room; SIZE_MAX: none has. */
static size_t find_host_with_room(const struct engine *engine, const struct request *what)
{
    for (size_t node = 0; node < engine->machine.hosts.count; node++) {
        if (engine_host_room(what, &engine->machine.hosts.items[node],
                             &engine->root.host_usage[node]) > 0)
            return node;
    }
    return engine->machine.hosts.count == 0 ? 0 : SIZE_MAX;
}

static int find_host(struct engine *engine, struct engine_request *request, size_t *ret_node)
{
    struct node_question question = {
        .request = request,
        .hosts = engine->root.host_usage,
        .avoided = &request->avoided,
        .draw = engine->settings.seed + engine->last_id + engine->occupied,
    };
    struct policy_offer offer;

    if (request->policy->rate == NULL || engine->search.groups.largest > POLICY_NODE_MAX) {
        *ret_node = find_host_with_room(engine, &request->what);
        return *ret_node != SIZE_MAX;
    }
    if (policy_tables_find(engine, request->policy, &question.tables) < 0)
        return BERTH_ERROR_MEMORY;
    return rate_nodes_find_best(&question, ret_node, &offer);
}

static void change_host(struct engine *engine, const struct engine_request *request, size_t node,
                        uint64_t sign)
{
    struct host_usage *usage = &engine->root.host_usage[node];
    const struct request *what = &request->what;

    usage->cpus += sign * (what->cpus.known ? what->cpus.value : 0);
    usage->memory += sign * (what->host_memory.known ? what->host_memory.value : 0);
    if (engine->changes.latest != NULL)
        rating_index_note_change(&engine->changes, (uint32_t)node);
}

int engine_host_occupy(struct engine *engine, struct engine_request *request, uint32_t *ret_host,
                       struct berth_error *error)
{
    size_t node = 0;
    int code;

    if (request->what.gpus.max != 0 || request->what.gpus.all || request->scope != &engine->root)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected a request for 0 devices outside a lease, got another one");
    code = find_host(engine, request, &node);
    if (code < 0)
        return error_set_memory(error);
    if (code == 0)
        return CLAIM_WAITS;
    engine->occupied++;
    change_host(engine, request, node, 1);
    *ret_host = (uint32_t)node;
    return CLAIM_GRANTED;
}

void engine_host_leave(struct engine *engine, const struct engine_request *request, uint32_t host)
{
    change_host(engine, request, host, UINT64_MAX);
    schedule_scope(&engine->root);
}
