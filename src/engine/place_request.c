/* SPDX-License-Identifier: Apache-2.0
 *
 * Places a request: finds a set of slots for it.
 */
#include <string.h>

#include "engine/internal.h"

/* Copies the slots to `chosen`, which has room for every tenant of every slot. */
static void copy_chosen_slots(struct engine *engine)
{
    const struct placement_search *search = &engine->search;

    engine->chosen_count = search->slots_chosen.count;
    for (size_t i = 0; i < engine->chosen_count; i++)
        engine->chosen[i] = (uint32_t)search->slots_chosen.items[i];
}

uint32_t engine_host_room(const struct request *what, const struct host *host,
                          const struct host_usage *usage)
{
    uint64_t room = UINT32_MAX;

    if (what->cpus.known && what->cpus.value > 0 && host->cpus.known) {
        uint64_t left = host->cpus.value > usage->cpus ? host->cpus.value - usage->cpus : 0;

        room = left / what->cpus.value < room ? left / what->cpus.value : room;
    }
    if (what->host_memory.known && what->host_memory.value > 0 && host->memory.known) {
        uint64_t left = host->memory.value > usage->memory ? host->memory.value - usage->memory : 0;

        room = left / what->host_memory.value < room ? left / what->host_memory.value : room;
    }
    return (uint32_t)room;
}

static const uint32_t *find_host_room(const struct engine_request *request,
                                      const struct host_usage *hosts)
{
    struct engine *engine = request->scope->engine;

    if (engine->machine.hosts.count == 0 ||
        (!request->what.cpus.known && !request->what.host_memory.known))
        return NULL;
    for (size_t i = 0; i < engine->machine.hosts.count; i++)
        engine->host_room[i] =
            engine_host_room(&request->what, &engine->machine.hosts.items[i], &hosts[i]);
    return engine->host_room;
}

/* Fills in the policy's view of a slot. */
static void fill_policy_slot(const struct ledger_slot *ledger, struct policy_slot *view)
{
    view->tenants = ledger->usage.brief.tenants;
    view->served = ledger->served;
    view->last_served = ledger->last_served;
    view->affinity = ledger->affinity;
}

const uint32_t *engine_idle_host_room(const struct engine_request *request)
{
    struct engine *engine = request->scope->engine;

    memset(engine->future_hosts, 0, engine->host_count * sizeof(*engine->future_hosts));
    return find_host_room(request, engine->future_hosts);
}

static uint32_t left_by_usage(const struct placement_search *search, size_t slot)
{
    const struct node_question *question = search->query.left_context;
    const struct scope *scope = question->request->scope;

    return ledger_left(scope, (uint32_t)slot,
                       question->usage != NULL ? &question->usage[slot]
                                               : &scope->ledger[slot].usage);
}

/* Places the replicas by a search through the groups of devices. */
static int place_by_search(const struct node_question *question, size_t max)
{
    const struct engine_request *request = question->request;
    struct scope *scope = request->scope;
    struct engine *engine = scope->engine;
    struct placement_search *search = &engine->search;
    int code;

    bitset_copy(&engine->from, &request->accepts);
    if (question->legal != NULL)
        bitset_intersect(&engine->from, question->legal);
    bitset_for_each (slot, &engine->from) {
        const struct ledger_slot *ledger = &scope->ledger[slot];

        engine->room[slot] =
            ledger->usable
                ? ledger_room(request, (uint32_t)slot,
                              question->usage != NULL ? &question->usage[slot] : &ledger->usage)
                : 0;
        fill_policy_slot(ledger, &scope->slots[slot]);
        if (engine->room[slot] == 0)
            bitset_remove(&engine->from, slot);
    }
    search->query = (struct placement_query){
        .request = &request->what,
        .policy = request->policy,
        .replicas = request->replicas,
        .slots = scope->slots,
        .ranked = engine->ranked > 0,
        .affinity = request->affinity,
        .avoided = question->avoided,
        .source = engine->room,
        .node_source = find_host_room(request, question->hosts),
        .tables = question->tables,
        .share = request->share,
        .draw = question->draw,
        .left = left_by_usage,
        .left_context = question,
        .hosts = question->hosts,
    };
    code = placement_search_place_largest(search, &engine->from, request->min, max);
    if (code == 1)
        copy_chosen_slots(engine);
    return code;
}

/* Places one replica on the best node, with as many devices as possible. */
static int place_by_offers(struct node_question *question, size_t max)
{
    struct engine *engine = question->request->engine;
    struct policy_offer offer;
    size_t node;
    int code = 0;

    for (size_t count = max; count >= question->request->min && code == 0; count--) {
        question->count = count;
        code = rate_nodes_find_best(question, &node, &offer);
    }
    if (code != 1)
        return code;
    engine->chosen_count = 0;
    for (uint64_t rest = offer.chosen; rest != 0; rest &= rest - 1)
        engine->chosen[engine->chosen_count++] =
            engine->search.groups.nodes[node].items[__builtin_ctzll(rest)];
    return 1;
}

/* Returns the random number for policies: the id of the claim that is placed, or the id that it
 * will get. It stays the same while the claim waits, so that its reservation does not move at
 * random. */
static uint64_t draw_for(const struct engine_request *request)
{
    const struct engine *engine = request->engine;
    uint64_t claim = engine->last_id + 1;

    if (request->waiting_count > 0)
        claim = container_of(list_first(&request->waiting), struct claim, in_lane)->entry.link.id;
    return engine->settings.seed + claim;
}

int place_request(const struct engine_request *request, const struct bitset *legal,
                  const struct usage *usage, const struct host_usage *hosts,
                  const struct bitset *avoided)
{
    struct engine *engine = request->scope->engine;
    struct node_question question = {
        .request = request,
        .legal = legal,
        .usage = usage,
        .hosts = hosts,
        .avoided = avoided != NULL ? avoided : &request->avoided,
        .draw = draw_for(request),
    };
    size_t max;

    if (ledger_is_limited(request, &max))
        return PLACE_LIMITED;
    if (request->policy->rate == NULL)
        return place_by_search(&question, max);
    if (policy_tables_find(engine, request->policy, &question.tables) < 0)
        return BERTH_ERROR_MEMORY;
    if (request->replicas > 1 || engine->search.groups.largest > POLICY_NODE_MAX)
        return place_by_search(&question, max);
    return place_by_offers(&question, max);
}

/* Chooses the lowest empty slots that the request accepts. */
static int place_on_accepted(const struct engine_request *request, size_t count)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;
    const uint64_t *empty = scope->empty.levels[0];
    const uint64_t *accepts = request->accepts.words;
    size_t words = (engine->machine.devices.count + 63) / 64;

    engine->chosen_count = 0;
    for (size_t i = 0; i < words; i++) {
        for (uint64_t word = empty[i] & accepts[i]; word != 0; word &= word - 1) {
            engine->chosen[engine->chosen_count++] =
                (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
            if (engine->chosen_count == count)
                return 1;
        }
    }
    return 0;
}

int place_request_simple(const struct engine_request *request)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;

    if (lowest_set_is_empty(&scope->empty))
        return 0;
    if (request->fast_path) {
        engine->chosen_count = 1;
        engine->chosen[0] = (uint32_t)lowest_set_first(&scope->empty);
        return 1;
    }
    if (!request->everything)
        return place_on_accepted(request, request->min);
    engine->chosen_count = 0;
    for (size_t slot = 0; engine->chosen_count < request->min; slot++) {
        slot = lowest_set_next(&scope->empty, slot);
        if (slot == SIZE_MAX)
            return 0;
        engine->chosen[engine->chosen_count++] = (uint32_t)slot;
    }
    return 1;
}
