/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains in one line which devices a request gets, why it must wait, or why it can never be
 * satisfied.
 */
#include "engine/placement/placement_describe.h"

#include "engine/placement/placement_plan.h"

static void describe_must(const struct placement_obstacles *obstacles, struct text *why)
{
    const char *lead = " with ";

    bitset_for_each (slot, obstacles->must) {
        text_append_format(why, "%s%s", lead,
                           device_id_format(obstacles->machine->devices.items[slot].id).text);
        lead = ",";
    }
}

/* Appends how many devices fit now, and the reasons against the others. */
static void describe_free(const struct plan *plan, struct text *why)
{
    size_t found = bitset_count(&plan->available);
    bool shared = plan->question->request->sharing != SHARING_EXCLUSIVE;

    text_append_format(why, "%zu of %zu %s ", found, plan->device_count,
                       plan->device_count == 1 ? "device" : "devices");
    if (shared)
        text_append(why, found == 1 ? "fits and has room" : "fit and have room");
    else
        text_append(why, found == 1 ? "fits and is free" : "fit and are free");
    if (plan->counts[FILTER_PASSES] < plan->device_count) {
        text_append(why, ": ");
        filter_describe(plan->counts, why);
    }
}

/* Returns how many claims the devices have room for. */
static size_t sum_room(const struct placement_obstacles *obstacles, const struct bitset *devices)
{
    size_t room = 0;

    bitset_for_each (slot, devices)
        room += obstacles->room[slot];
    return room;
}

/* Returns how many replicas must be placed in one step. */
static size_t replicas_at_once(const struct placement_obstacles *obstacles)
{
    return placement_is_best_effort(obstacles->request) ? 1 : obstacles->request->replicas;
}

/* Returns whether the devices would be enough if all had one vendor and one host. */
static bool is_enough_in_all(const struct placement_obstacles *obstacles,
                             const struct bitset *devices)
{
    const struct request *request = obstacles->request;

    return (request->gpus.all || request->gpus.max > 1) &&
           sum_room(obstacles, devices) >= replicas_at_once(obstacles) * obstacles->min;
}

/* Returns the reason why the devices do not count together; NULL if they do. */
static const char *find_split(const struct placement_obstacles *obstacles,
                              const struct bitset *found)
{
    const struct device *devices = obstacles->machine->devices.items;
    size_t first = bitset_next(found, 0);
    bool vendors = false;
    bool hosts = false;

    bitset_for_each (slot, found) {
        vendors = vendors || devices[slot].id.vendor != devices[first].id.vendor;
        hosts = hosts || devices[slot].host != devices[first].host;
    }
    if (vendors && obstacles->request->vendor_rule != VENDOR_RULE_MIXED)
        return "all devices of a replica must have one vendor, unless vendor is any";
    return hosts ? "all devices of a replica must be on one host" : NULL;
}

/* Appends the reasons against devices, either those that may change or those that stay, with the
 * number of devices of each. */
static void describe_reasons(const struct placement_obstacles *obstacles, bool may_change,
                             const char *lead, struct text *why)
{
    size_t counts[FILTER_VERDICTS] = {0};
    size_t all = 0;

    for (size_t verdict = FILTER_PASSES + 1; verdict < FILTER_VERDICTS; verdict++) {
        if (filter_may_change((enum filter_verdict)verdict) == may_change)
            all += counts[verdict] = obstacles->counts[verdict];
    }
    if (all == 0)
        return;
    text_append(why, lead);
    filter_describe(counts, why);
}

/* Appends the minimum that the request waits for. */
static void describe_need(const struct placement_obstacles *obstacles, struct text *why)
{
    const struct request *request = obstacles->request;
    size_t room = sum_room(obstacles, obstacles->available);

    if (request->gpus.all)
        text_append(why, "needs all devices");
    else
        text_append_format(why, "needs %zu", obstacles->min);
    if (replicas_at_once(obstacles) > 1)
        text_append_format(why, " for each of %zu replicas", replicas_at_once(obstacles));
    describe_must(obstacles, why);
    if (room > 0)
        text_append_format(
            why, request->sharing == SHARING_EXCLUSIVE ? ", %zu free" : ", room for %zu", room);
}

/* Appends why the request must wait, the most useful part first, since the end may be cut:
 * "needs 2, 1 free: user 5 holds 3, 1 is sick, 4 are other models". */
static void describe_wait(const struct placement_obstacles *obstacles, struct text *why)
{
    const char *lead = ": ";
    const char *split = NULL;

    describe_need(obstacles, why);
    if (*obstacles->holders != '\0') {
        text_append_format(why, ": %s", obstacles->holders);
        lead = ", ";
    }
    for (int fixed = 0; fixed < 2; fixed++) {
        size_t length = why->length;

        describe_reasons(obstacles, fixed == 0, lead, why);
        if (why->length > length)
            lead = ", ";
    }
    if (obstacles->replicas > 0)
        text_append_format(why, "; enough for %zu of %u replicas now", obstacles->replicas,
                           obstacles->request->replicas);
    else if (is_enough_in_all(obstacles, obstacles->available))
        split = find_split(obstacles, obstacles->available);
    if (split != NULL)
        text_append_format(why, "; %s", split);
}

/* Appends how many devices are suitable, if these are too few. */
static void describe_suitable(const struct placement_obstacles *obstacles, size_t found,
                              struct text *why)
{
    if (obstacles->machine->devices.count == 1) {
        size_t verdict = FILTER_PASSES + 1;

        while (verdict < FILTER_VERDICTS && obstacles->counts[verdict] == 0)
            verdict++;
        text_append_format(why, "the only device here %s",
                           verdict < FILTER_VERDICTS ? filter_reason((enum filter_verdict)verdict)
                                                     : "is not suitable");
        return;
    }
    if (found == 0)
        text_append_format(why, "none of %zu devices is suitable",
                           obstacles->machine->devices.count);
    else
        text_append_format(why, "only %zu of %zu devices %s suitable", found,
                           obstacles->machine->devices.count, found == 1 ? "is" : "are");
    describe_reasons(obstacles, false, ": ", why);
}

/* Returns whether the request names devices and none of them is here. */
static bool names_only_missing(const struct placement_obstacles *obstacles)
{
    const struct device_id_list *wanted = &obstacles->request->wanted;
    const struct device *device;

    vector_for_each (device, &obstacles->machine->devices) {
        if (device_id_list_has(wanted, device->id))
            return false;
    }
    return wanted->count > 0;
}

/* Appends that the first device that the request names is not here, and which devices are. */
static void describe_missing(const struct placement_obstacles *obstacles, struct text *why)
{
    struct device_id_list present = {0};

    if (device_list_ids(&obstacles->machine->devices, &present) < 0)
        why->failed = true;
    else
        device_id_list_describe_missing(&present, obstacles->request->wanted.items[0], why);
    vector_finish(&present);
}

/* Appends why the devices here can never satisfy the request: "requested 9 devices, but this pool
 * has only 8". */
static void describe_never(const struct placement_obstacles *obstacles, struct text *why)
{
    size_t found = bitset_count(obstacles->possible);
    bool enough = is_enough_in_all(obstacles, obstacles->possible);
    const char *split = enough ? find_split(obstacles, obstacles->possible) : NULL;

    text_append(why, "requested ");
    request_describe(obstacles->request, why);
    describe_must(obstacles, why);
    text_append(why, ", but ");
    if (split != NULL)
        text_append(why, split);
    else if (found < obstacles->machine->devices.count)
        describe_suitable(obstacles, found, why);
    else if (enough)
        text_append_format(why, "that names %zu devices", bitset_count(obstacles->must));
    else if (obstacles->request->sharing == SHARING_EXCLUSIVE)
        text_append_format(why, "this pool has only %zu", found);
    else
        text_append_format(why, "this pool has room for only %zu",
                           sum_room(obstacles, obstacles->possible));
}

void placement_describe_obstacles(const struct placement_obstacles *obstacles, bool satisfiable,
                                  struct text *why)
{
    if (obstacles->machine->devices.count == 0)
        text_append(why, "this pool has no devices");
    else if (satisfiable)
        describe_wait(obstacles, why);
    else if (names_only_missing(obstacles))
        describe_missing(obstacles, why);
    else
        describe_never(obstacles, why);
}

/* Appends the policy's preference, and its explanation of this choice. */
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
    const struct placement_obstacles obstacles = {
        .machine = question->machine,
        .request = question->request,
        .min = plan->min,
        .must = question->must,
        .counts = plan->counts,
        .possible = &plan->possible,
        .available = &plan->available,
        .room = plan->search.query.source,
        .replicas = placement->replicas,
        .holders = "",
    };

    if (plan->device_count > 0 && placement->now) {
        describe_free(plan, &placement->why);
        describe_choice(plan, &placement->why);
    } else {
        placement_describe_obstacles(&obstacles, placement->satisfiable, &placement->why);
    }
}
