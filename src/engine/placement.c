/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica takes its devices from one group: the devices of one vendor, or all of them where
 * vendors may mix. A device has room for one exclusive claim or several shared ones.
 */
#include "engine/placement.h"

#include <stdint.h>

#include "base/error.h"
#include "engine/filter.h"

struct search {
    const struct placement_question *question;
    size_t device_count;
    size_t counts[FILTER_VERDICTS]; /* devices by verdict */
    uint32_t *tenants;              /* by slot: claims an empty device has room for */
    uint32_t *room;                 /* by slot: what is left of that in this attempt */
    struct bitset possible;         /* might do some day */
    struct bitset available;        /* do now */
    struct bitset avoided;
    struct bitset must_left; /* required devices that no replica has yet */
    struct bitset candidates;
    struct bitset required;
    struct bitset chosen;
    struct slot_list slots;
    struct slot_list sizes; /* by replica */
};

static int search_init(struct search *search, const struct placement_question *question)
{
    size_t count = question->machine->devices.count;
    struct bitset *sets[] = {&search->possible,  &search->available,  &search->avoided,
                             &search->must_left, &search->candidates, &search->required,
                             &search->chosen};

    *search = (struct search){.question = question, .device_count = count};
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        if (bitset_init(sets[i], count) < 0)
            return BERTH_ERROR_MEMORY;
    }
    search->tenants = calloc(count + 1, sizeof(*search->tenants));
    search->room = calloc(count + 1, sizeof(*search->room));
    return search->tenants == NULL || search->room == NULL ? BERTH_ERROR_MEMORY : 0;
}

static void search_finish(struct search *search)
{
    free(search->tenants);
    free(search->room);
    bitset_finish(&search->possible);
    bitset_finish(&search->available);
    bitset_finish(&search->avoided);
    bitset_finish(&search->must_left);
    bitset_finish(&search->candidates);
    bitset_finish(&search->required);
    bitset_finish(&search->chosen);
    vector_finish(&search->slots);
    vector_finish(&search->sizes);
}

/* Judges every device once. */
static void judge(struct search *search)
{
    const struct placement_question *question = search->question;
    const struct request *request = question->request;

    for (size_t slot = 0; slot < search->device_count; slot++) {
        const struct device *device = &question->machine->devices.items[slot];
        enum filter_verdict verdict = filter_device(request, device);

        if (verdict == FILTER_PASSES && bitset_has(question->busy, slot))
            verdict = FILTER_BUSY;
        search->counts[verdict]++;
        search->tenants[slot] = filter_tenants(request, device);
        if (device_id_list_has(&request->avoided, device->id))
            bitset_add(&search->avoided, slot);
        if (verdict == FILTER_PASSES)
            bitset_add(&search->available, slot);
        if (verdict == FILTER_PASSES || filter_may_change(verdict))
            bitset_add(&search->possible, slot);
    }
}

static bool is_in_group(const struct search *search, size_t slot, size_t leader)
{
    const struct device *devices = search->question->machine->devices.items;

    return search->question->request->vendor_rule == VENDOR_RULE_MIXED ||
           devices[slot].id.vendor == devices[leader].id.vendor;
}

/* Makes `candidates` the devices of the leader's group in `from` that have room, and `required`
 * those of them that are still required. Returns how many candidates there are. */
static size_t gather_group(struct search *search, const struct bitset *from, size_t leader)
{
    bitset_clear(&search->candidates);
    bitset_for_each (slot, from) {
        if (search->room[slot] > 0 && is_in_group(search, slot, leader))
            bitset_add(&search->candidates, slot);
    }
    bitset_copy(&search->required, &search->must_left);
    bitset_intersect(&search->required, &search->candidates);
    return bitset_count(&search->candidates);
}

/* Keeps the `count` lowest members. */
static void keep_lowest(struct bitset *set, size_t count)
{
    size_t kept = 0;

    bitset_for_each (slot, set) {
        if (kept++ >= count)
            bitset_remove(set, slot);
    }
}

/* Leaves to the policy only a choice among equally roomy devices, the roomiest first: with equal
 * rows to fill, that finds a way whenever there is one. */
static void prefer_roomy(struct search *search, size_t count)
{
    size_t settled = bitset_count(&search->required);

    for (uint32_t level = UINT32_MAX; settled < count;) {
        uint32_t next = 0;
        size_t found = 0;

        bitset_for_each (slot, &search->candidates) {
            if (search->room[slot] < level && search->room[slot] > next)
                next = search->room[slot];
        }
        level = next;
        bitset_for_each (slot, &search->candidates) {
            if (search->room[slot] == level && !bitset_has(&search->required, slot))
                found++;
        }
        bitset_for_each (slot, &search->candidates) {
            if (search->room[slot] < level && !bitset_has(&search->required, slot) &&
                settled + found >= count)
                bitset_remove(&search->candidates, slot);
            if (search->room[slot] == level && settled + found < count)
                bitset_add(&search->required, slot);
        }
        settled += found;
    }
}

/* Calls for each group in `from` once, in the order of its lowest slot: returns the next leader at
 * or above `slot` whose vendor is not yet in *tried, and adds it; the device count at the end. */
static size_t next_group(const struct search *search, const struct bitset *from, size_t slot,
                         unsigned *tried)
{
    const struct device *devices = search->question->machine->devices.items;

    for (; slot < search->device_count; slot = bitset_next(from, slot + 1)) {
        unsigned group = search->question->request->vendor_rule == VENDOR_RULE_MIXED
                             ? 1U
                             : 1U << devices[slot].id.vendor;

        if ((*tried & group) == 0) {
            *tried |= group;
            return slot;
        }
    }
    return slot;
}

#define for_each_group(leader, search, from)                                               \
    for (unsigned tried = 0, more = 1; more; more = 0)                                     \
        for (size_t leader = next_group((search), (from), bitset_next((from), 0), &tried); \
             (leader) < (search)->device_count;                                            \
             leader = next_group((search), (from), leader, &tried))

/* Finds the group for the next replica: the first with enough devices, but one that holds a
 * required device before all others. Leaves it in `candidates`. */
static bool find_group(struct search *search, const struct bitset *from, size_t count)
{
    const struct bitset *leaders = bitset_is_empty(&search->must_left) ? from : &search->must_left;

    for_each_group (leader, search, leaders) {
        if (gather_group(search, from, leader) >= count)
            return true;
    }
    return false;
}

/* Gives the next replica `count` devices of `from`. Returns 1, 0 when there are not enough, or
 * BERTH_ERROR_MEMORY. */
static int place_replica(struct search *search, const struct bitset *from, size_t count,
                         bool balanced)
{
    const struct placement_question *question = search->question;
    size_t *size;

    if (!find_group(search, from, count))
        return 0;
    keep_lowest(&search->required, count);
    bitset_subtract(&search->must_left, &search->required);
    if (balanced)
        prefer_roomy(search, count);
    bitset_clear(&search->chosen);
    if (question->policy->choose(
            &(struct policy_question){
                .machine = question->machine,
                .candidates = &search->candidates,
                .required = &search->required,
                .avoided = &search->avoided,
                .count = count,
            },
            &search->chosen) < 0)
        return BERTH_ERROR_MEMORY;
    size = vector_append(&search->sizes);
    if (size == NULL)
        return BERTH_ERROR_MEMORY;
    *size = count;
    bitset_for_each (slot, &search->chosen) {
        size_t *place = vector_append(&search->slots);

        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = slot;
        search->room[slot]--;
    }
    return 1;
}

static void start_attempt(struct search *search)
{
    search->slots.count = search->sizes.count = 0;
    bitset_copy(&search->must_left, search->question->must);
    for (size_t slot = 0; slot < search->device_count; slot++)
        search->room[slot] = search->tenants[slot];
}

/* Places `replicas` replicas of `count` devices each, all or nothing. Returns as place_replica. */
static int place_gang(struct search *search, const struct bitset *from, size_t replicas,
                      size_t count, bool balanced)
{
    int code = 1;

    start_attempt(search);
    for (size_t replica = 0; replica < replicas && code == 1; replica++)
        code = place_replica(search, from, count, balanced);
    if (code == 1 && !bitset_is_empty(&search->must_left))
        code = 0;
    return code;
}

/* The same, trying a second time in the way that finds every possibility where devices are
 * shared. */
static int place_all(struct search *search, const struct bitset *from, size_t replicas,
                     size_t count)
{
    int code = place_gang(search, from, replicas, count, false);

    if (code == 0 && search->question->request->sharing != SHARING_EXCLUSIVE)
        code = place_gang(search, from, replicas, count, true);
    return code;
}

/* The size of the largest group in `from`; in `possible` that is what "all" means. */
static size_t largest_group(struct search *search, const struct bitset *from)
{
    size_t largest = 0;

    start_attempt(search);
    for_each_group (leader, search, from) {
        size_t size = gather_group(search, from, leader);

        if (size > largest)
            largest = size;
    }
    return largest;
}

static bool is_best_effort(const struct request *request)
{
    return request->scheduling == SCHEDULING_BEST_EFFORT && request->replicas > 1;
}

/* Every replica is a claim of its own: places as many as fit, each as large as it can be. */
static int place_each(struct search *search, size_t least, size_t most, size_t *ret_replicas)
{
    size_t replicas = 0;
    int code = 1;

    start_attempt(search);
    while (replicas < search->question->request->replicas && code == 1) {
        code = 0;
        for (size_t count = most; count >= least && code == 0; count--)
            code = place_replica(search, &search->available, count, false);
        replicas += code == 1;
    }
    if (!bitset_is_empty(&search->must_left)) {
        replicas = 0;
        search->slots.count = search->sizes.count = 0;
    }
    *ret_replicas = replicas;
    return code < 0 ? code : 0;
}

/* As many devices for each replica as are free now. */
static int place_now(struct search *search, size_t least, size_t most, size_t *ret_replicas)
{
    size_t replicas = search->question->request->replicas;
    int code = 0;

    if (is_best_effort(search->question->request))
        return place_each(search, least, most, ret_replicas);
    for (size_t count = most; count >= least && code == 0; count--)
        code = place_all(search, &search->available, replicas, count);
    *ret_replicas = code == 1 ? replicas : 0;
    if (code == 0)
        search->slots.count = search->sizes.count = 0;
    return code < 0 ? code : 0;
}

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

/* How many claims fit on the devices that describe_found counts. */
static size_t room_in(const struct search *search, const struct placement *placement)
{
    const struct bitset *set = placement->satisfiable ? &search->available : &search->possible;
    size_t room = 0;

    bitset_for_each (slot, set)
        room += search->tenants[slot];
    return room;
}

static void describe_found(const struct search *search, const struct placement *placement,
                           struct text *why)
{
    size_t found = bitset_count(placement->satisfiable ? &search->available : &search->possible);
    size_t reasons = search->device_count - search->counts[FILTER_PASSES];

    text_append_format(why, "%zu of %zu %s ", found, search->device_count,
                       search->device_count == 1 ? "device" : "devices");
    if (!placement->satisfiable)
        text_append(why, "could ever do");
    else
        text_append(why, found == 1 ? "fits and is free" : "fit and are free");
    if (!placement->now && search->question->request->sharing != SHARING_EXCLUSIVE)
        text_append_format(why, ", with room for %zu such claims", room_in(search, placement));
    if (reasons > 0) {
        text_append(why, ": ");
        filter_describe(search->counts, why);
    }
}

static bool has_several_groups(const struct search *search)
{
    size_t groups = 0;

    for_each_group (leader, search, &search->possible)
        groups++;
    return groups > 1;
}

static void describe(const struct search *search, struct placement *placement)
{
    const struct placement_question *question = search->question;
    struct text *why = &placement->why;

    if (search->device_count == 0) {
        text_append(why, "no device here");
        return;
    }
    if (!placement->now)
        describe_wanted(question, why);
    describe_found(search, placement, why);
    if (placement->now)
        text_append_format(why, "; %s takes %s", question->policy->name, question->policy->summary);
    else if (placement->replicas > 0)
        text_append_format(why, "; enough for %zu of %u replicas now", placement->replicas,
                           question->request->replicas);
    else if (has_several_groups(search))
        text_append(why, "; a replica gets devices of one vendor unless vendor is any");
}

/* How many devices a replica may get: bounded by what is here, so that a request for a million
 * devices is not counted down one by one. */
static void bounds(struct search *search, size_t *ret_least, size_t *ret_most)
{
    const struct device_count *gpus = &search->question->request->gpus;
    size_t free_now = largest_group(search, &search->available);

    *ret_least = gpus->least;
    *ret_most = gpus->most < free_now ? gpus->most : free_now;
    if (gpus->all) {
        *ret_most = largest_group(search, &search->possible);
        *ret_least = *ret_most > 0 ? *ret_most : 1;
    }
}

/* How many replicas have to be possible: all of a gang; of claims that stand alone one, or as
 * many as the required devices need. */
static size_t replicas_to_satisfy(const struct search *search, size_t least)
{
    const struct request *request = search->question->request;
    size_t needed = (bitset_count(search->question->must) + least - 1) / least;

    if (!is_best_effort(request) || needed > request->replicas)
        return request->replicas;
    return needed > 0 ? needed : 1;
}

static int answer(struct search *search, struct placement *placement)
{
    const struct request *request = search->question->request;
    size_t least;
    size_t most;
    int code;

    judge(search);
    bounds(search, &least, &most);
    code = place_all(search, &search->possible, replicas_to_satisfy(search, least), least);
    if (code < 0)
        return code;
    placement->satisfiable = code == 1;
    search->slots.count = search->sizes.count = 0;
    if (placement->satisfiable) {
        code = place_now(search, least, most, &placement->replicas);
        if (code < 0)
            return code;
    }
    placement->now = placement->satisfiable && placement->replicas == request->replicas;
    placement->slots = search->slots;
    search->slots = (struct slot_list){0};
    placement->sizes = search->sizes;
    search->sizes = (struct slot_list){0};
    describe(search, placement);
    return text_failed(&placement->why) ? BERTH_ERROR_MEMORY : 0;
}

int placement_find(const struct placement_question *question, struct placement *ret_placement,
                   struct berth_error *error)
{
    struct placement placement = {0};
    struct search search;
    int code = search_init(&search, question);

    if (code == 0)
        code = answer(&search, &placement);
    search_finish(&search);
    if (code < 0) {
        placement_finish(&placement);
        return error_set_memory(error);
    }
    *ret_placement = placement;
    return 0;
}

void placement_finish(struct placement *placement)
{
    vector_finish(&placement->slots);
    vector_finish(&placement->sizes);
    text_finish(&placement->why);
    *placement = (struct placement){0};
}
