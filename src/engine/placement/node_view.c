/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement/node_view.h"

static uint64_t rest_of(struct optional_number all, uint64_t taken)
{
    if (!all.known)
        return UINT64_MAX;
    return all.value > taken ? all.value - taken : 0;
}

void node_view_begin(struct node_view *view, const struct machine *machine,
                     const struct placement_groups *groups, size_t node,
                     const struct host_usage *taken, const void *tables)
{
    static const struct host nothing_known;
    static const struct host_usage nothing_taken;
    const struct host *host =
        machine->hosts.count > 0 ? &machine->hosts.items[node] : &nothing_known;

    if (taken == NULL)
        taken = &nothing_taken;
    view->node = (struct policy_node){
        .machine = machine,
        .tables = tables,
        .host = (uint32_t)node,
        .count = (uint32_t)groups->nodes[node].count,
        .slots = groups->nodes[node].items,
        .left = view->left,
        .order = view->order,
        .cpus = host->cpus,
        .memory = host->memory,
        .cpus_left = rest_of(host->cpus, taken->cpus),
        .memory_left = rest_of(host->memory, taken->memory),
    };
}

/* Sorts the few candidates: avoided devices last, then by rank and affinity, then by slot. */
static void sort_order(struct node_view *view, const struct policy_question *question)
{
    const uint32_t *slots = view->node.slots;

    for (uint32_t i = 1; i < view->node.order_count; i++) {
        uint8_t device = view->order[i];
        uint32_t place = i;

        for (; place > 0; place--) {
            uint8_t before = view->order[place - 1];
            int order =
                (int)(view->node.avoided >> before & 1) - (int)(view->node.avoided >> device & 1);

            if (order == 0 && question != NULL)
                order = policy_compare_equals(question, slots[before], slots[device]);
            if (order <= 0)
                break;
            view->order[place] = before;
        }
        view->order[place] = device;
    }
}

void node_view_end(struct node_view *view, const struct policy_question *question)
{
    bool plain = question == NULL ||
                 (!question->ranked && (question->affinity == 0 || question->slots == NULL));
    uint32_t count = 0;

    for (uint64_t rest = view->node.candidates; rest != 0; rest &= rest - 1)
        view->order[count++] = (uint8_t)__builtin_ctzll(rest);
    view->node.order_count = count;
    if (!plain || (view->node.avoided & view->node.candidates) != 0)
        sort_order(view, plain ? NULL : question);
}

struct policy_demand node_view_demand(const struct request *request, uint32_t count, uint32_t share,
                                      uint64_t draw)
{
    return (struct policy_demand){
        .count = count,
        .share = share,
        .cpus = request->cpus.known ? request->cpus.value : 0,
        .memory = request->host_memory.known ? request->host_memory.value : 0,
        .draw = draw,
        .lasts = request->time.known && request->time.value < INT64_MAX
                     ? (int64_t)request->time.value
                     : INT64_MAX,
    };
}

/* Returns the slot of the first chosen device in the node's order. */
static uint32_t find_first_chosen(const struct policy_node *node, uint64_t chosen)
{
    for (uint32_t i = 0; i < node->order_count; i++) {
        if ((chosen >> node->order[i] & 1) != 0)
            return node->slots[node->order[i]];
    }
    return node->count > 0 ? node->slots[0] : 0;
}

struct bid node_view_rate(const struct node_view *view, const struct policy *policy,
                          const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    const struct policy_node *node = &view->node;

    *ret_offer = (struct policy_offer){0};
    policy->rate(policy, node, demand, ret_offer);
    return (struct bid){
        .avoided = (uint32_t)__builtin_popcountll(ret_offer->chosen & node->avoided),
        .slot = find_first_chosen(node, ret_offer->chosen),
        .cost = ret_offer->cost,
    };
}

bool node_view_is_better_bid(const struct bid *one, const struct bid *other,
                             const struct policy_question *question)
{
    int order = 0;

    if (one->avoided != other->avoided)
        return one->avoided < other->avoided;
    if (one->cost != other->cost)
        return one->cost < other->cost;
    if (question != NULL)
        order = policy_compare_equals(question, one->slot, other->slot);
    return order != 0 ? order < 0 : one->slot < other->slot;
}
