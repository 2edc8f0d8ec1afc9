/* SPDX-License-Identifier: Apache-2.0
 *
 * Five policies of the openb study, scored as in its simulator. The sixth, fgd, has a file of its
 * own.
 */
#include "sim/baselines/baselines.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

/* The largest node of the study: thousandths of CPUs, millionths of devices. Scores are relative to
 * it. */
enum { STUDY_CPUS = 128000, STUDY_DEVICES = 8 * SHARE_WHOLE };

const struct policy *const baselines[] = {
    &baseline_random,
    &baseline_dotprod,
    &baseline_clustering,
    &baseline_packing,
    &baseline_bestfit,
    &baseline_fgd,
    NULL,
};

/* Appends the names of some policies, separated by commas. */
static void append_names(const struct policy *const *list, struct text *out)
{
    for (; *list != NULL; list++)
        text_append_format(out, "%s%s", out->length == 0 ? "" : ", ", (*list)->name);
}

static int refuse_name(const char *name, struct berth_error *error)
{
    struct text names = {0};
    int code;

    append_names(policies, &names);
    append_names(baselines, &names);
    code = text_failed(&names) ? error_set_memory(error)
                               : error_set(error, BERTH_ERROR_INVALID, "expected one of %s; got %s",
                                           text_string(&names), quote(name).text);
    text_finish(&names);
    return code;
}

int baseline_find(const char *name, const struct policy **ret_policy, struct berth_error *error)
{
    for (const struct policy *const *baseline = baselines; name != NULL && *baseline != NULL;
         baseline++) {
        if (strcmp((*baseline)->name, name) == 0) {
            *ret_policy = *baseline;
            return 0;
        }
    }
    return policy_find(name, ret_policy, NULL) == 0 ? 0 : refuse_name(name, error);
}

void baseline_offer(uint64_t chosen, int64_t score, struct policy_offer *ret_offer)
{
    *ret_offer = (struct policy_offer){
        .chosen = chosen,
        .cost = -score,
        .score = score,
        .proven = true,
    };
}

/* Returns a fraction as a score: hundredths, truncated to an integer. */
static int64_t hundredths_of(double fraction)
{
    const double max = 1e15; /* keeps the score within int64_t; beyond it only the sign matters */
    double hundredths = 100 * fraction;

    if (hundredths > max)
        hundredths = max;
    if (hundredths < -max)
        hundredths = -max;
    return (int64_t)hundredths;
}

/* Returns the demand's total, in millionths of a device. */
static uint64_t demanded_devices(const struct policy_demand *demand)
{
    return (uint64_t)demand->count * demand->share;
}

static uint64_t take_devices(const struct policy_node *node, const struct policy_demand *demand,
                             uint64_t from, uint64_t chosen, uint32_t count, void *context)
{
    uint64_t taken = 0;

    (void)chosen;
    (void)context;
    if (node_rating_is_whole(demand))
        return node_rating_first(node, from, count);
    for (; count > 0; count--)
        taken |= node_rating_bit(node_rating_fullest(node, from & ~taken));
    return taken;
}

/* Chooses as the study does: whole devices in the node's order, for shares the fullest devices. */
static uint64_t choose_devices(const struct policy_node *node, const struct policy_demand *demand)
{
    return node_rating_choose(node, demand, take_devices, NULL);
}

/* random: every node with room, and each of its devices, is equally likely. The randomness is the
 * demand's draw, so that a decision can be repeated. */

static uint64_t draw_lot(const struct policy_demand *demand, uint64_t number)
{
    return hash_mix(hash_mix(demand->draw) ^ number);
}

/* Devices draw by even numbers and nodes by odd ones, so that their lots differ. */
static uint64_t draw_device(const struct policy_node *node, const struct policy_demand *demand,
                            uint32_t device)
{
    return draw_lot(demand, (uint64_t)node->slots[device] << 1);
}

/* Draws by the lowest candidate, so that two groups of one host have different lots. */
static uint64_t draw_node(const struct policy_node *node, const struct policy_demand *demand)
{
    uint64_t lowest = node->host;

    if (node->candidates != 0)
        lowest = node->slots[node_rating_next(node->candidates, 0)];
    return draw_lot(demand, lowest << 1 | 1);
}

static uint64_t take_by_lot(const struct policy_node *node, const struct policy_demand *demand,
                            uint64_t from, uint64_t chosen, uint32_t count, void *context)
{
    uint64_t taken = 0;

    (void)context;
    (void)chosen;
    for (; count > 0; count--) {
        uint32_t best = node_rating_next(from & ~taken, 0);

        node_rating_for_each (device, from & ~taken) {
            if (draw_device(node, demand, device) < draw_device(node, demand, best))
                best = device;
        }
        taken |= node_rating_bit(best);
    }
    return taken;
}

static void rate_random(const struct policy *policy, const struct policy_node *node,
                        const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    (void)policy;
    *ret_offer = (struct policy_offer){
        .chosen = node_rating_choose(node, demand, take_by_lot, NULL),
        .cost = (int64_t)(draw_node(node, demand) >> 1),
        .proven = true,
    };
}

const struct policy baseline_random = {
    .name = "random",
    .summary = "any devices with room, at random",
    .rate = rate_random,
};

/* dotprod: the node with the smallest product of its free capacity and the demand. */

static double cpus_product(const struct policy_node *node, const struct policy_demand *demand)
{
    if (!node->cpus.known)
        return 0;
    return (double)node->cpus_left / STUDY_CPUS * ((double)demand->cpus / STUDY_CPUS);
}

static double devices_product(const struct policy_node *node, const struct policy_demand *demand)
{
    return (double)node_rating_left(node) / STUDY_DEVICES *
           ((double)demanded_devices(demand) / STUDY_DEVICES);
}

static void rate_dotprod(const struct policy *policy, const struct policy_node *node,
                         const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    double product = (cpus_product(node, demand) + devices_product(node, demand)) / 2;

    (void)policy;
    baseline_offer(choose_devices(node, demand), hundredths_of(1 - product), ret_offer);
}

const struct policy baseline_dotprod = {
    .name = "dotprod",
    .summary = "the nodes with the smallest product of free capacity and demand",
    .rate = rate_dotprod,
    .cacheable = true,
};

/* clustering: nodes that already hold requests of the same kind. All requests for shares are one
 * kind. Requests for whole devices are one kind for each number of devices. If the view does not
 * say how many devices a holder has, all holders of whole devices are one kind. */

/* The kinds of requests that hold devices of a node. */
struct held_kinds {
    bool same; /* the demand's kind */
    bool others;
};

/* Returns policy_node.held of a device, or a guess if the view does not have it. */
static uint32_t held_by(const struct policy_node *node, uint32_t device, uint32_t guess)
{
    if (node->held != NULL)
        return node->held[device];
    if (node->left[device] >= SHARE_WHOLE)
        return 0;
    return node->left[device] > 0 ? POLICY_SHARED : guess;
}

static struct held_kinds find_held_kinds(const struct policy_node *node,
                                         const struct policy_demand *demand)
{
    uint32_t kind = node_rating_is_whole(demand) ? demand->count : POLICY_SHARED;
    uint32_t guess = node_rating_is_whole(demand) ? demand->count : 1;
    struct held_kinds kinds = {0};

    for (uint32_t device = 0; device < node->count; device++) {
        uint32_t held = held_by(node, device, guess);

        if (held == kind)
            kinds.same = true;
        else if (held != 0)
            kinds.others = true;
    }
    return kinds;
}

static int64_t clustering_points(const struct policy_node *node, const struct policy_demand *demand)
{
    struct held_kinds kinds = find_held_kinds(node, demand);
    int64_t taken = STUDY_DEVICES - (int64_t)node_rating_left(node);
    int64_t points = 25 * taken / STUDY_DEVICES;

    if (kinds.same)
        return points + (kinds.others ? 50 : 75);
    return points + (kinds.others ? 0 : 25);
}

static void rate_clustering(const struct policy *policy, const struct policy_node *node,
                            const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    (void)policy;
    baseline_offer(choose_devices(node, demand),
                   demand->count > 0 ? clustering_points(node, demand) : 0, ret_offer);
}

const struct policy baseline_clustering = {
    .name = "clustering",
    .summary = "the nodes that hold requests of the same kind",
    .rate = rate_clustering,
    .cacheable = true,
    .sees_held = true,
};

/* packing: devices in use before free devices, then nodes in use before empty nodes. */

static int64_t larger_score(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* Returns the mean free part of the chosen devices, in tenths of a device. */
static int64_t tenths_left(const struct policy_node *node, uint64_t chosen)
{
    uint64_t left = 0;

    node_rating_for_each (device, chosen)
        left += node->left[device];
    return (int64_t)(left / node_rating_size(chosen) * 10 / SHARE_WHOLE);
}

static int64_t packing_points(const struct policy_node *node, uint64_t chosen)
{
    uint64_t free_ones = node_rating_free(node);
    int64_t begun = node_rating_size(chosen & free_ones);
    int64_t size = node->count;

    if (chosen == 0)
        return 0;
    if (node_rating_size(free_ones) == node->count)
        return larger_score(33 - size, size);
    if (begun > 0)
        return larger_score(50 - begun, 33);
    return larger_score(100 - tenths_left(node, chosen), 50);
}

static void rate_packing(const struct policy *policy, const struct policy_node *node,
                         const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    uint64_t chosen = choose_devices(node, demand);

    (void)policy;
    baseline_offer(chosen, packing_points(node, chosen), ret_offer);
}

const struct policy baseline_packing = {
    .name = "packing",
    .summary = "devices in use, then nodes in use",
    .rate = rate_packing,
    .cacheable = true,
};

/* bestfit: the node with the least left over, of CPUs and devices together. */

static uint64_t subtract_to_zero(uint64_t number, uint64_t taken)
{
    return number > taken ? number - taken : 0;
}

static double cpus_over(const struct policy_node *node, const struct policy_demand *demand)
{
    if (!node->cpus.known)
        return 0;
    return (double)subtract_to_zero(node->cpus_left, demand->cpus) / STUDY_CPUS;
}

static double devices_over(const struct policy_node *node, const struct policy_demand *demand)
{
    return (double)subtract_to_zero(node_rating_left(node), demanded_devices(demand)) /
           STUDY_DEVICES;
}

static void rate_bestfit(const struct policy *policy, const struct policy_node *node,
                         const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    double over = (cpus_over(node, demand) + devices_over(node, demand)) / 2;

    (void)policy;
    baseline_offer(choose_devices(node, demand), hundredths_of(1 - over), ret_offer);
}

const struct policy baseline_bestfit = {
    .name = "bestfit",
    .summary = "the nodes with the least left over",
    .rate = rate_bestfit,
    .cacheable = true,
};
