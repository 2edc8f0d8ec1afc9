/* SPDX-License-Identifier: Apache-2.0
 *
 * pack: the fewest devices left partly used. A share goes to the fullest device that has room, and
 * a free one is begun only where there is none; nodes in use go before empty ones, and of these the
 * one with the fewest free devices, then the one that is kept busy the least longer, as far as time
 * limits tell: what ends together leaves whole nodes free. Within a node, NUMA nodes, switches and
 * GPUs are used up before others are begun.
 */
#include "base/text/quantity.h"
#include "engine/policy/localities.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"
#include "engine/policy/policy_terms.h"

/* A place that devices may be taken from. */
struct pack_source {
    uint64_t devices; /* that may be taken; none: no place at all */
    bool begun;       /* the demand has devices there already */
    bool enough;
};

/* What the demand has there already comes first; then the smallest place that has enough, or else
 * the largest. */
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

static struct pack_source best_source(const struct policy_node *node, enum locality_level level,
                                      uint64_t from, uint64_t chosen, uint32_t count)
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

/* Takes `count` of some free devices from as few places of this level as will do, and of the last
 * of these from as few as will do of the next level. */
static uint64_t take_together(const struct policy_node *node, enum locality_level level,
                              uint64_t from, uint64_t chosen, uint32_t count)
{
    uint64_t taken = 0;

    if (level == LOCALITY_LEVELS)
        return node_rating_first(node, from, count);
    while (count > 0) {
        struct pack_source source = best_source(node, level, from, chosen | taken, count);
        uint32_t size = node_rating_size(source.devices);

        taken |= size <= count ? source.devices
                               : take_together(node, level + 1, source.devices, chosen, count);
        from &= ~source.devices;
        count -= size <= count ? size : count;
    }
    return taken;
}

static uint64_t choose(const struct policy_node *node, const struct policy_demand *demand,
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

/* For work without devices: what is of the least use to those who want some. */
static int64_t cost_of_host(const struct policy_node *node)
{
    const uint64_t max = UINT32_MAX;

    return (int64_t)(node_rating_left(node) << 32 |
                     (node->cpus_left < max ? node->cpus_left : max));
}

/* Extensions are told apart to the second, up to some years. */
enum { EXTENSION_BITS = 28 };

/* For how long the node is busy beyond what it is without the demand, in seconds. */
static int64_t extension(const struct policy_node *node, const struct policy_demand *demand)
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
    return left << EXTENSION_BITS | extension(node, demand);
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    uint64_t chosen = node_rating_choose(node, demand, choose, NULL);

    (void)policy;
    *ret_offer = (struct policy_offer){
        .chosen = chosen,
        .cost = demand->count > 0 ? cost_of(node, demand, chosen) : cost_of_host(node),
        .score = node_rating_size(node_rating_free(node) & ~chosen),
        .proven = true,
    };
}

static void explain(const struct policy *policy, const struct policy_node *node,
                    const struct policy_demand *demand, const struct policy_offer *offer,
                    struct text *out)
{
    uint32_t begun = node_rating_size(node_rating_free(node) & offer->chosen);

    (void)policy;
    if (!node_rating_is_whole(demand))
        text_append(out, begun == 0 ? "beside what is there" : "none in use has room");
    else
        text_append_format(out, "%lld of %u devices of the node stay free", (long long)offer->score,
                           node->count);
}

/* Where there are too many devices to rate: those with more leases. */
static int compare(const struct policy *policy, const struct policy_question *question, size_t one,
                   size_t other)
{
    (void)policy;
    return policy_terms_lower(policy_terms_slot(question, other).tenants,
                              policy_terms_slot(question, one).tenants);
}

const struct policy policy_pack = {
    .name = "pack",
    .summary = "what is in use already, so that the fewest devices are left partly used",
    .compare = compare,
    .prepare = localities_prepare,
    .forget = localities_forget,
    .rate = rate,
    .explain = explain,
    .cacheable = true,
    .sees_ends = true,
};
