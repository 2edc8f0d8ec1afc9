/* SPDX-License-Identifier: Apache-2.0
 *
 * Rates nodes: a replica of a request whose policy rates nodes goes to the node with the best bid.
 * rating_index.c caches the bids of nodes that have not changed.
 */
#include "engine/internal.h"

struct policy_question rate_nodes_tie_breaker(const struct engine_request *request)
{
    /* A request for 0 devices has no preferred devices. */
    if (request->what.gpus.max == 0 && !request->what.gpus.all)
        return (struct policy_question){.machine = &request->engine->machine};
    return (struct policy_question){
        .machine = &request->engine->machine,
        .slots = request->scope->slots,
        .ranked = request->engine->ranked > 0,
        .affinity = request->affinity,
    };
}

static const struct usage *usage_of(const struct node_question *question, uint32_t slot)
{
    return question->usage != NULL ? &question->usage[slot]
                                   : &question->request->scope->ledger[slot].usage;
}

static bool can_use_slot(const struct node_question *question, uint32_t slot)
{
    const struct engine_request *request = question->request;

    return bitset_has(&request->accepts, slot) &&
           (question->legal == NULL || bitset_has(question->legal, slot)) &&
           request->scope->ledger[slot].usable &&
           ledger_room(request, slot, usage_of(question, slot)) > 0;
}

/* Fills in the node's devices. Affinity decides only among devices that may be taken, so it is
 * filled in only for these. */
static void fill_devices(const struct node_question *question, struct node_view *view)
{
    struct scope *scope = question->request->scope;
    bool equals = question->request->affinity != 0 || question->request->engine->ranked > 0;

    for (uint32_t i = 0; i < view->node.count; i++) {
        uint32_t slot = view->node.slots[i];
        uint64_t bit = UINT64_C(1) << i;

        view->left[i] = ledger_left(scope, slot, usage_of(question, slot));
        if (bitset_has(question->avoided, slot))
            view->node.avoided |= bit;
        if (question->count == 0 || view->left[i] == 0 || !can_use_slot(question, slot))
            continue;
        view->node.candidates |= bit;
        if (equals)
            scope->slots[slot].affinity = scope->ledger[slot].affinity;
    }
}

/* Fills in, for each device, the number of devices of the replica that holds it. */
static void fill_held(const struct node_question *question, struct node_view *view)
{
    const struct scope *scope = question->request->scope;

    for (uint32_t i = 0; i < view->node.count; i++) {
        uint32_t slot = view->node.slots[i];
        const struct usage *usage = usage_of(question, slot);
        const struct lease *held =
            usage->brief.tenants > 0
                ? engine_find_lease(scope->engine, engine_slot_holder(&scope->ledger[slot]))
                : NULL;

        view->held[i] = 0;
        if (usage->brief.tenants > 0 && usage->brief.sharing != SHARING_EXCLUSIVE)
            view->held[i] = POLICY_SHARED;
        else if (held != NULL)
            view->held[i] = held->slot_count / held->replicas;
    }
    view->node.held = view->held;
}

/* Fills in how long the node is busy: until the last of its leases ends. For a shared device the
 * oldest lease counts. */
static void fill_busy_time(const struct node_question *question, struct node_view *view)
{
    const struct scope *scope = question->request->scope;
    const struct engine *engine = scope->engine;

    for (uint32_t i = 0; i < view->node.count; i++) {
        uint32_t slot = view->node.slots[i];
        const struct lease *held =
            usage_of(question, slot)->brief.tenants > 0
                ? engine_find_lease(engine, engine_slot_holder(&scope->ledger[slot]))
                : NULL;

        if (held == NULL)
            continue;
        if (held->expires == TIME_NEVER)
            view->node.busy_for = INT64_MAX;
        else if (held->expires > engine->now && held->expires - engine->now > view->node.busy_for)
            view->node.busy_for = held->expires - engine->now;
    }
}

static uint64_t vendor_mask(const struct node_view *view, enum vendor vendor)
{
    uint64_t mask = 0;

    for (uint32_t i = 0; i < view->node.count; i++) {
        if (view->node.machine->devices.items[view->node.slots[i]].id.vendor == vendor)
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

/* Rates the node with only the candidates in the mask. */
static struct bid rate_candidates(const struct node_question *question, struct node_view *view,
                                  uint64_t mask, struct policy_offer *ret_offer)
{
    const struct engine_request *request = question->request;
    struct policy_question equals = rate_nodes_tie_breaker(request);
    struct policy_demand demand =
        node_view_demand(&request->what, (uint32_t)question->count, request->share, question->draw);

    view->node.candidates &= mask;
    if ((size_t)__builtin_popcountll(view->node.candidates) < question->count)
        return (struct bid){.avoided = UINT32_MAX};
    node_view_end(view, &equals);
    return node_view_rate(view, request->policy, &demand, ret_offer);
}

/* Rates the node once for each vendor, and returns the best bid. */
static struct bid rate_vendors(const struct node_question *question, struct node_view *view,
                               struct policy_offer *ret_offer)
{
    struct policy_question equals = rate_nodes_tie_breaker(question->request);
    struct bid best = {.avoided = UINT32_MAX};
    uint64_t candidates = view->node.candidates;

    for (uint64_t rest = candidates; rest != 0;) {
        uint32_t first = view->node.slots[__builtin_ctzll(rest)];
        uint64_t mask = vendor_mask(view, view->node.machine->devices.items[first].id.vendor);
        struct policy_offer offer;
        struct bid bid;

        view->node.candidates = candidates;
        bid = rate_candidates(question, view, mask, &offer);
        if (node_view_is_better_bid(&bid, &best, &equals)) {
            best = bid;
            *ret_offer = offer;
        }
        rest &= ~mask;
    }
    return best;
}

struct bid rate_nodes_bid(const struct node_question *question, size_t node,
                          struct policy_offer *ret_offer)
{
    const struct engine_request *request = question->request;
    struct engine *engine = request->engine;
    struct node_view view;

    if (engine->machine.hosts.count > 0 &&
        engine_host_room(&request->what, &engine->machine.hosts.items[node],
                         &question->hosts[node]) == 0)
        return (struct bid){.avoided = UINT32_MAX};
    node_view_begin(&view, &engine->machine, &engine->search.groups, node, &question->hosts[node],
                    question->tables);
    fill_devices(question, &view);
    if (request->policy->sees_held)
        fill_held(question, &view);
    if (request->policy->sees_ends)
        fill_busy_time(question, &view);
    if ((size_t)__builtin_popcountll(view.node.candidates) < question->count)
        return (struct bid){.avoided = UINT32_MAX};
    if (question->count <= 1 || placement_search_may_mix(&request->what))
        return rate_candidates(question, &view, UINT64_MAX, ret_offer);
    return rate_vendors(question, &view, ret_offer);
}

/* Rates every node. Returns the best with its offer; SIZE_MAX: no node fits. */
static size_t rate_all_nodes(const struct node_question *question, struct policy_offer *ret_offer)
{
    struct policy_question equals = rate_nodes_tie_breaker(question->request);
    struct bid best = {.avoided = UINT32_MAX};
    size_t best_node = SIZE_MAX;

    for (size_t node = 0; node < question->request->engine->search.groups.node_count; node++) {
        struct policy_offer offer;
        struct bid bid = rate_nodes_bid(question, node, &offer);

        if (bid.avoided == UINT32_MAX || !node_view_is_better_bid(&bid, &best, &equals))
            continue;
        best = bid;
        best_node = node;
        *ret_offer = offer;
    }
    return best_node;
}

int rate_nodes_find_best(const struct node_question *question, size_t *ret_node,
                         struct policy_offer *ret_offer)
{
    if (!rating_index_applies(question)) {
        *ret_node = rate_all_nodes(question, ret_offer);
    } else {
        if (rating_index_find(question, ret_node) < 0)
            return BERTH_ERROR_MEMORY;
        if (*ret_node != SIZE_MAX)
            rate_nodes_bid(question, *ret_node, ret_offer);
    }
    return *ret_node != SIZE_MAX;
}
