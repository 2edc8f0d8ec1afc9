/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a request gets what it gets, in one line.
 */
#include "engine/placement_search.h"

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
static const struct bitset *found_devices(const struct search *search)
{
    return search->placement->satisfiable ? &search->available : &search->possible;
}

static void describe_found(const struct search *search, struct text *why)
{
    const struct placement *placement = search->placement;
    size_t found = bitset_count(found_devices(search));
    size_t reasons = search->device_count - search->counts[FILTER_PASSES];
    size_t room = search_room(search, found_devices(search));

    text_append_format(why, "%zu of %zu %s ", found, search->device_count,
                       search->device_count == 1 ? "device" : "devices");
    if (!placement->satisfiable)
        text_append(why, "could ever do");
    else
        text_append(why, found == 1 ? "fits and is free" : "fit and are free");
    if (!placement->now && search->question->request->sharing != SHARING_EXCLUSIVE)
        text_append_format(why, ", with room for %zu such %s", room,
                           room == 1 ? "claim" : "claims");
    if (reasons > 0) {
        text_append(why, ": ");
        filter_describe(search->counts, why);
    }
}

static bool have_several_groups(const struct search *search, const struct bitset *devices)
{
    size_t first = bitset_next(devices, 0);

    bitset_for_each (slot, devices) {
        if (search_group(search, slot) != search_group(search, first))
            return true;
    }
    return false;
}

/* Whether several vendors stand in the way: there is enough, but not of one. */
static bool needs_mixing(const struct search *search)
{
    const struct bitset *found = found_devices(search);
    const struct request *request = search->question->request;
    size_t replicas = search_is_best_effort(search) ? 1 : request->replicas;

    return have_several_groups(search, found) && (request->gpus.all || request->gpus.most > 1) &&
           search_room(search, found) >= replicas * search->least;
}

void search_describe(const struct search *search)
{
    const struct placement_question *question = search->question;
    struct placement *placement = search->placement;
    struct text *why = &placement->why;

    if (search->device_count == 0) {
        text_append(why, "no device here");
        return;
    }
    if (!placement->now)
        describe_wanted(question, why);
    describe_found(search, why);
    if (placement->now)
        text_append_format(why, "; %s takes %s", question->policy->name, question->policy->summary);
    else if (placement->replicas > 0)
        text_append_format(why, "; enough for %zu of %u replicas now", placement->replicas,
                           question->request->replicas);
    else if (needs_mixing(search))
        text_append(why, "; a replica gets devices of one vendor unless vendor is any");
}
