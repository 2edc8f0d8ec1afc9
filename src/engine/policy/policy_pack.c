/* SPDX-License-Identifier: Apache-2.0
 *
 * pack: leaves the fewest devices partly used. A share goes to the fullest device with room, and to
 * a free device only if there is none. Nodes in use come before empty nodes; among them the node
 * with the fewest free devices, then the node whose busy time, by time limits, grows the least:
 * leases that end together leave whole nodes free. Within a node, NUMA nodes, switches and GPUs are
 * filled one after the other.
 */
#include "base/text/quantity.h"
#include "engine/policy/compare_devices.h"
#include "engine/policy/localities.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

/* A place with candidates: a NUMA node, switch or GPU. */
struct pack_source {
    uint64_t devices; /* its candidates; 0: no place */
    bool begun;       /* the demand already has devices there */
    bool enough;
};

/* Returns whether one place is better. A place where the demand has devices comes first, then the
 * smallest place with enough devices, then the largest place. */
static bool is_better(const struct pack_source *one, const struct pack_source *other)
{
    uint32_t first = node_rating_size(one->devices);
    uint32_t second = node_rating_size(other->devices);

    if (other->devices == 0 || one->begun != other->begun)
        return other->devices == 0 || one->begun;
    if (one->enough != other->enough)
        return one->enough;
    return one->enough ? first < second : first > second;
}

static struct pack_source find_best_source(const struct policy_node *node,
                                           enum locality_level level, uint64_t from,
                                           uint64_t chosen, uint32_t count)
{
    struct pack_source best = {0};

    for (uint64_t rest = from; rest != 0;) {
        uint32_t device = node_rating_foremost(node, rest);
        struct pack_source source = {.devices = localities_mates(node, level, from, device)};

        source.begun = localities_mates(node, level, chosen, device) != 0;
        source.enough = node_rating_size(source.devices) >= count;
        if (is_better(&source, &best))
            best = source;
        rest &= ~source.devices;
    }
    return best;
}

/* Takes `count` of the free devices `from` as few places of this level as possible. In the last of
 * these places it takes them from as few places of the next level as possible. */
static uint64_t take_together(const struct policy_node *node, enum locality_level level,
                              uint64_t from, uint64_t chosen, uint32_t count)
{
    uint64_t taken = 0;

    if (level == LOCALITY_LEVELS)
        return node_rating_first(node, from, count);
    while (count > 0) {
        struct pack_source source = find_best_source(node, level, from, chosen | taken, count);
        uint32_t size = node_rating_size(source.devices);

        taken |= size <= count ? source.devices
                               : take_together(node, level + 1, source.devices, chosen, count);
        from &= ~source.devices;
        count -= size <= count ? size : count;
    }
    return taken;
}

static uint64_t take_devices(const struct policy_node *node, const struct policy_demand *demand,
                             uint64_t from, uint64_t chosen, uint32_t count, void *context)
{
    uint64_t free_ones = node_rating_free(node) & from;
    uint64_t taken = 0;

    (void)context;
    (void)demand;
    for (uint64_t used = from & ~free_ones; used != 0 && count > 0; count--) {
        uint64_t fullest = node_rating_bit(node_rating_fullest(node, used));

        taken |= fullest;
        used &= ~fullest;
    }
    return taken | take_together(node, LOCALITY_NUMA, free_ones, chosen | taken, count);
}

/* Returns the cost of the node for a demand without devices. Nodes of little use to other demands
 * cost less. */
static int64_t cost_of_host(const struct policy_node *node)
{
    const uint64_t max = UINT32_MAX;

    return (int64_t)(node_rating_left(node) << 32 |
                     (node->cpus_left < max ? node->cpus_left : max));
}

/* Extensions are counted in seconds, up to 8 years. */
enum { EXTENSION_BITS = 28 };

/* Returns by how many seconds the demand extends the node's busy time. */
static int64_t extension_of(const struct policy_node *node, const struct policy_demand *demand)
{
    const int64_t max = (INT64_C(1) << EXTENSION_BITS) - 1;
    int64_t seconds;

    if (demand->lasts <= node->busy_for)
        return 0;
    if (demand->lasts == INT64_MAX)
        return max;
    seconds = (demand->lasts - node->busy_for) / DURATION_SECOND;
    return seconds < max ? seconds : max;
}

static int64_t cost_of(const struct policy_node *node, const struct policy_demand *demand,
                       uint64_t chosen)
{
    uint32_t free_ones = node_rating_size(node_rating_free(node));
    int64_t left = 0;

    node_rating_for_each (device, chosen)
        left += node->left[device];
    left = left << 8 | (int64_t)(free_ones == node->count) << 7 | free_ones;
    return left << EXTENSION_BITS | extension_of(node, demand);
}

static void rate_node(const struct policy *policy, const struct policy_node *node,
                      const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    uint64_t chosen = node_rating_choose(node, demand, take_devices, NULL);

    (void)policy;
    *ret_offer = (struct policy_offer){
        .chosen = chosen,
        .cost = demand->count > 0 ? cost_of(node, demand, chosen) : cost_of_host(node),
        .score = node_rating_size(node_rating_free(node) & ~chosen),
        .proven = true,
    };
}

static void explain_offer(const struct policy *policy, const struct policy_node *node,
                          const struct policy_demand *demand, const struct policy_offer *offer,
                          struct text *out)
{
    uint32_t begun = node_rating_size(node_rating_free(node) & offer->chosen);

    (void)policy;
    if (!node_rating_is_whole(demand))
        text_append(out, begun == 0 ? "beside other leases" : "no device in use has room");
    else
        text_append_format(out, "%lld of %u devices of the node stay free", (long long)offer->score,
                           node->count);
}

/* For nodes that are too large to rate: devices with more leases come first. */
static int compare_tenants(const struct policy *policy, const struct policy_question *question,
                           size_t one, size_t other)
{
    (void)policy;
    return compare_devices_tenants(question, other, one);
}

const struct policy policy_pack = {
    .name = "pack",
    .summary = "devices in use first, so that few are partly used",
    .compare = compare_tenants,
    .prepare = localities_prepare,
    .forget = localities_forget,
    .rate = rate_node,
    .explain = explain_offer,
    .cacheable = true,
    .sees_ends = true,
};
