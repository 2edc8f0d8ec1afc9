/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a request gets what it gets, in one line.
 */
#include "engine/placement/placement_plan.h"

/* What was wanted, in front of what was found. */
static void describe_wanted(const struct placement_question *question, struct text *why)
{
    const char *lead = " with ";

    text_append(why, "expected ");
    request_describe(question->request, why);
    bitset_for_each (slot, question->must) {
        text_append_format(why, "%s%s", lead,
                           device_id_format(question->machine->devices.items[slot].id).text);
        lead = ",";
    }
    text_append(why, "; ");
}

/* The devices that a description counts: what is free, or what might be where nothing ever does. */
static const struct bitset *found_devices(const struct plan *plan)
{
    return plan->placement->satisfiable ? &plan->available : &plan->possible;
}

static void describe_found(const struct plan *plan, struct text *why)
{
    const struct placement *placement = plan->placement;
    size_t found = bitset_count(found_devices(plan));
    size_t reasons = plan->device_count - plan->counts[FILTER_PASSES];
    size_t room = placement_search_room(&plan->search, found_devices(plan));
    bool shared = plan->question->request->sharing != SHARING_EXCLUSIVE;

    text_append_format(why, "%zu of %zu %s ", found, plan->device_count,
                       plan->device_count == 1 ? "device" : "devices");
    if (!placement->satisfiable)
        text_append(why, shared && found > 0 ? "could ever do, with room" : "could ever do");
    else if (shared)
        text_append(why, found == 1 ? "fits and has room" : "fit and have room");
    else
        text_append(why, found == 1 ? "fits and is free" : "fit and are free");
    if (shared && found > 0 && !placement->now)
        text_append_format(why, " for %zu such %s", room, room == 1 ? "claim" : "claims");
    if (reasons > 0) {
        text_append(why, ": ");
        filter_describe(plan->counts, why);
    }
}

/* Whether there would be enough if it were all in one place. */
static bool is_enough_in_all(const struct plan *plan)
{
    const struct request *request = plan->question->request;
    size_t replicas = placement_plan_is_best_effort(plan) ? 1 : request->replicas;

    return (request->gpus.all || request->gpus.max > 1) &&
           placement_search_room(&plan->search, found_devices(plan)) >= replicas * plan->min;
}

/* Adds what splits the devices where there is enough, but not in one place. */
static void describe_split(const struct plan *plan, struct text *why)
{
    const struct device *devices = plan->question->machine->devices.items;
    const struct bitset *found = found_devices(plan);
    size_t first = bitset_next(found, 0);
    bool vendors = false;
    bool hosts = false;

    bitset_for_each (slot, found) {
        vendors = vendors || devices[slot].id.vendor != devices[first].id.vendor;
        hosts = hosts || devices[slot].host != devices[first].host;
    }
    if (vendors && plan->question->request->vendor_rule != VENDOR_RULE_MIXED)
        text_append(why, "; a replica gets devices of one vendor unless vendor is any");
    else if (hosts)
        text_append(why, "; a replica gets devices of one host");
}

/* What the policy goes by, and what it says of its choice. */
static void describe_choice(const struct plan *plan, struct text *why)
{
    const struct policy *policy = plan->question->policy;

    text_append_format(why, "; %s takes %s", policy->name, policy->summary);
    if (plan->words.length > 0)
        text_append_format(why, ": %s", text_string(&plan->words));
    if (plan->placement->rated && !plan->placement->proven)
        text_append(why, " (not proven best)");
    why->failed |= plan->words.failed;
}

void placement_plan_describe(const struct plan *plan)
{
    const struct placement_question *question = plan->question;
    struct placement *placement = plan->placement;
    struct text *why = &placement->why;

    if (plan->device_count == 0) {
        text_append(why, "no device here");
        return;
    }
    if (!placement->now)
        describe_wanted(question, why);
    describe_found(plan, why);
    if (placement->now)
        describe_choice(plan, why);
    else if (placement->replicas > 0)
        text_append_format(why, "; enough for %zu of %u replicas now", placement->replicas,
                           question->request->replicas);
    else if (is_enough_in_all(plan))
        describe_split(plan, why);
}
