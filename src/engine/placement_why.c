/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a request gets what it gets, in one line.
 */
#include "engine/placement_plan.h"

/* What was wanted, in front of what was found. */
static void describe_wanted(const struct placement_question *question, struct text *why)
{
    const char *lead = " with ";

    text_append(why, "wanted ");
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
    size_t room = search_room(&plan->search, found_devices(plan));

    text_append_format(why, "%zu of %zu %s ", found, plan->device_count,
                       plan->device_count == 1 ? "device" : "devices");
    if (!placement->satisfiable)
        text_append(why, "could ever do");
    else
        text_append(why, found == 1 ? "fits and is free" : "fit and are free");
    if (!placement->now && plan->question->request->sharing != SHARING_EXCLUSIVE)
        text_append_format(why, ", with room for %zu such %s", room,
                           room == 1 ? "claim" : "claims");
    if (reasons > 0) {
        text_append(why, ": ");
        filter_describe(plan->counts, why);
    }
}

static bool have_several_groups(const struct plan *plan, const struct bitset *devices)
{
    size_t first = bitset_next(devices, 0);

    bitset_for_each (slot, devices) {
        if (search_group(&plan->search, slot) != search_group(&plan->search, first))
            return true;
    }
    return false;
}

/* Whether several vendors stand in the way: there is enough, but not of one. */
static bool needs_mixing(const struct plan *plan)
{
    const struct bitset *found = found_devices(plan);
    const struct request *request = plan->question->request;
    size_t replicas = plan_is_best_effort(plan) ? 1 : request->replicas;

    return have_several_groups(plan, found) && (request->gpus.all || request->gpus.most > 1) &&
           search_room(&plan->search, found) >= replicas * plan->least;
}

void plan_describe(const struct plan *plan)
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
        text_append_format(why, "; %s takes %s", question->policy->name, question->policy->summary);
    else if (placement->replicas > 0)
        text_append_format(why, "; enough for %zu of %u replicas now", placement->replicas,
                           question->request->replicas);
    else if (needs_mixing(plan))
        text_append(why, "; a replica gets devices of one vendor unless vendor is any");
}
