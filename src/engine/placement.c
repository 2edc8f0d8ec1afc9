/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica takes its devices from one group: the devices of one vendor, or all of them where
 * vendors may mix. A device has room for one exclusive claim or several shared ones.
 */
#include <assert.h>

#include "base/error.h"
#include "engine/placement_search.h"

static size_t rounded_up(size_t number, size_t divisor)
{
    assert(divisor > 0);
    return (number + divisor - 1) / divisor;
}

/* Leaves all required devices but the `due` roomiest to later replicas, of equals the highest. */
static void put_off_required(struct search *search, size_t due)
{
    for (size_t left = bitset_count(&search->required); left > due; left--) {
        size_t last = bitset_next(&search->required, 0);

        bitset_for_each (slot, &search->required) {
            if (search->room[slot] <= search->room[last])
                last = slot;
        }
        bitset_remove(&search->required, last);
    }
}

/* How many candidates that are not required have room for at least so many. */
static size_t count_roomy(const struct search *search, uint32_t room)
{
    size_t count = 0;

    bitset_for_each (slot, &search->candidates)
        count += search->room[slot] >= room && !bitset_has(&search->required, slot);
    return count;
}

/* Leaves to the policy only a choice among equally roomy devices, the roomiest first: with equal
 * rows to fill, that finds a way whenever there is one. */
static void prefer_roomy(struct search *search, size_t count)
{
    size_t open = count - bitset_count(&search->required);
    uint32_t level = 1;

    if (open == 0)
        return;
    while (count_roomy(search, level + 1) >= open)
        level++;
    bitset_for_each (slot, &search->candidates) {
        if (bitset_has(&search->required, slot))
            continue;
        if (search->room[slot] > level)
            bitset_add(&search->required, slot);
        if (search->room[slot] < level)
            bitset_remove(&search->candidates, slot);
    }
}

/* What it costs to serve a replica from the candidates: avoided devices, then high slots. */
static size_t cost_of_group(const struct search *search, size_t count)
{
    size_t plain = bitset_count(&search->plain);
    size_t avoided = count > plain ? count - plain : 0;

    return avoided * search->device_count +
           bitset_next(avoided > 0 ? &search->candidates : &search->plain, 0);
}

/* Finds the group for the next replica: the cheapest with enough devices, but one that holds a
 * required device before all others. Leaves it in `candidates`. */
static bool find_group(struct search *search, size_t count)
{
    bool must = !bitset_is_empty(&search->must_left);
    size_t best = SEARCH_GROUPS;
    size_t least_cost = SIZE_MAX;

    for (size_t i = 0; i < search->group_count; i++) {
        if (search_gather(search, search->order[i]) < count ||
            (must && bitset_is_empty(&search->required)) ||
            cost_of_group(search, count) >= least_cost)
            continue;
        best = search->order[i];
        least_cost = cost_of_group(search, count);
    }
    return best < SEARCH_GROUPS && search_gather(search, best) > 0;
}

/* Gives a replica `count` of the candidates. Returns 1 or BERTH_ERROR_MEMORY. */
static int take_candidates(struct search *search, size_t count)
{
    const struct placement_question *question = search->question;
    size_t *size = vector_append(&search->placement->sizes);

    if (size == NULL)
        return BERTH_ERROR_MEMORY;
    *size = count;
    bitset_clear(&search->chosen);
    if (policy_choose(question->policy,
                      &(struct policy_question){
                          .machine = question->machine,
                          .candidates = &search->candidates,
                          .required = &search->required,
                          .avoided = &search->avoided,
                          .count = count,
                      },
                      &search->chosen) < 0)
        return BERTH_ERROR_MEMORY;
    bitset_subtract(&search->must_left, &search->chosen);
    bitset_for_each (slot, &search->chosen) {
        size_t *place = vector_append(&search->placement->slots);

        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = slot;
        if (--search->room[slot] == 0)
            bitset_remove(&search->groups[search_group(search, slot)], slot);
    }
    return 1;
}

/* Gives the next replica `count` devices. Returns 1, 0 when there are not enough, or
 * BERTH_ERROR_MEMORY. */
static int place_replica(struct search *search, size_t count)
{
    if (!find_group(search, count))
        return 0;
    put_off_required(search, count);
    return take_candidates(search, count);
}

/* Places `replicas` replicas of `count` devices each, one after the other, all or nothing. Finds a
 * way whenever there is one if each device has room for one. Returns as place_replica. */
static int place_in_turn(struct search *search, const struct bitset *from, size_t replicas,
                         size_t count)
{
    int code = 1;

    search_start(search, from);
    for (size_t replica = 0; replica < replicas && code == 1; replica++)
        code = place_replica(search, count);
    return code == 1 ? bitset_is_empty(&search->must_left) : code;
}

/* Whether the candidates have room for `rows` replicas of `count` devices: each device can serve
 * each of them once. */
static bool have_room_for(const struct search *search, size_t rows, size_t count)
{
    size_t uses = 0;

    bitset_for_each (slot, &search->candidates)
        uses += search->room[slot] < rows ? search->room[slot] : rows;
    return uses >= rows * count;
}

/* How many such replicas they have room for, up to `limit`; what has room for more has room for
 * fewer. */
static size_t rows_of_candidates(const struct search *search, size_t count, size_t limit)
{
    size_t fits = 0;

    while (fits < limit) {
        size_t middle = limit - (limit - fits) / 2;

        if (have_room_for(search, middle, count))
            fits = middle;
        else
            limit = middle - 1;
    }
    return fits;
}

/* Places `rows` replicas, for which there is room, in the group. Only the required
 * devices for which later ones have no place come first, so that the roomy ones are not left over.
 * Returns 1 or BERTH_ERROR_MEMORY. */
static int place_rows(struct search *search, size_t group, size_t rows, size_t count)
{
    int code = 1;

    for (; rows > 0 && code == 1; rows--) {
        size_t later = (rows - 1) * count;
        size_t required;

        search_gather(search, group);
        required = bitset_count(&search->required);
        put_off_required(search, required > later ? required - later : 0);
        prefer_roomy(search, count);
        code = take_candidates(search, count);
    }
    return code;
}

/* Does what place_in_turn does in the way that finds every possibility where devices are shared:
 * says beforehand how many replicas each group serves, at least those that its required devices
 * need. */
static int place_balanced(struct search *search, const struct bitset *from, size_t replicas,
                          size_t count)
{
    size_t later = 0; /* replicas that the groups to come need */

    search_start(search, from);
    for (size_t i = 0; i < search->group_count; i++) {
        search_gather(search, search->order[i]);
        later += rounded_up(bitset_count(&search->required), count);
    }
    for (size_t i = 0; i < search->group_count; i++) {
        size_t needed;
        size_t rows;

        search_gather(search, search->order[i]);
        needed = rounded_up(bitset_count(&search->required), count);
        later -= needed;
        rows = rows_of_candidates(search, count, replicas > later ? replicas - later : 0);
        if (rows < needed)
            return 0;
        replicas -= rows;
        if (place_rows(search, search->order[i], rows, count) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return replicas == 0 && bitset_is_empty(&search->must_left);
}

/* Places `replicas` replicas of `count` devices each, all or nothing. Returns as place_replica. */
static int place_gang(struct search *search, const struct bitset *from, size_t replicas,
                      size_t count)
{
    int code;

    if (replicas * count > search_room(search, from))
        return 0; /* seen at a glance, where trying would take long */
    code = place_in_turn(search, from, replicas, count);
    if (code == 0 && search->question->request->sharing != SHARING_EXCLUSIVE)
        code = place_balanced(search, from, replicas, count);
    return code;
}

/* Every replica is a claim of its own: places as many as fit, each as large as it can be. */
static int place_each(struct search *search, size_t most)
{
    int code = 1;

    search_start(search, &search->available);
    while (search->placement->sizes.count < search->question->request->replicas && code == 1) {
        code = 0;
        /* What was too much once is too much ever after. */
        for (; most >= search->least && code == 0; most -= code == 0)
            code = place_replica(search, most);
    }
    if (!bitset_is_empty(&search->must_left))
        search_forget(search);
    return code < 0 ? code : 0;
}

/* The size of the largest group in `from`, of equals that with the lowest slot; 0 when `from` has
 * no room. */
static size_t largest_group(struct search *search, const struct bitset *from, size_t *ret_group)
{
    size_t largest = 0;

    search_start(search, from);
    for (size_t i = 0; i < search->group_count; i++) {
        size_t size = bitset_count(&search->groups[search->order[i]]);

        if (size > largest) {
            largest = size;
            *ret_group = search->order[i];
        }
    }
    return largest;
}

/* How many devices a replica could get now at best, so that a long range is not counted down one
 * by one. */
static size_t most_devices_now(struct search *search)
{
    size_t room = search_room(search, &search->available);
    size_t group;
    size_t most = largest_group(search, &search->available, &group);

    if (!search_is_best_effort(search) && room / search->question->request->replicas < most)
        most = room / search->question->request->replicas;
    return most < search->most ? most : search->most;
}

/* As many devices for each replica as are free now. */
static int place_now(struct search *search)
{
    const struct request *request = search->question->request;
    size_t most = most_devices_now(search);
    int code = 0;

    if (search_is_best_effort(search))
        return place_each(search, most);
    for (size_t count = most; count >= search->least && code == 0; count--)
        code = place_gang(search, &search->available, request->replicas, count);
    if (code == 0)
        search_forget(search);
    return code < 0 ? code : 0;
}

/* Whether claims that stand alone could ever do, one after the other if need be: a group is large
 * enough, and there are as many claims as the required devices need. */
static bool claims_could_do(struct search *search)
{
    size_t needed = 0;

    search_start(search, &search->possible);
    for (size_t i = 0; i < search->group_count; i++) {
        size_t size = search_gather(search, search->order[i]);

        if (size < search->least)
            continue;
        needed +=
            rounded_up(bitset_count(&search->required), size < search->most ? size : search->most);
        bitset_subtract(&search->must_left, &search->required);
    }
    return search->most >= search->least && needed <= search->question->request->replicas &&
           bitset_is_empty(&search->must_left);
}

/* Whether all replicas of a gang could ever be placed. Fewer devices are easier to find, but may
 * be too few to hold the required ones. Returns as place_replica. */
static int gang_could_do(struct search *search)
{
    size_t replicas = search->question->request->replicas;
    int code = 0;

    for (size_t count = search->least; count <= search->most && code == 0; count++) {
        code = place_gang(search, &search->possible, replicas, count);
        if (bitset_is_empty(search->question->must))
            break;
    }
    return code;
}

/* Finds how many devices a replica may get: bounded by what is here, so that a request for a
 * million devices is not counted down one by one. "all" is every device of the largest group; the
 * others have no room then. */
static void find_bounds(struct search *search)
{
    const struct device_count *gpus = &search->question->request->gpus;
    size_t group = 0;
    size_t largest = largest_group(search, &search->possible, &group);

    search->least = gpus->all ? largest : gpus->least;
    search->most = gpus->all || gpus->most > largest ? largest : gpus->most;
    if (search->least == 0)
        search->least = 1;
    for (size_t slot = 0; slot < search->device_count && gpus->all && largest > 0; slot++) {
        if (search_group(search, slot) != group)
            search->tenants[slot] = 0;
    }
}

static int answer(struct search *search)
{
    const struct request *request = search->question->request;
    struct placement *placement = search->placement;
    int code;

    search_judge(search);
    find_bounds(search);
    code = search_is_best_effort(search) ? claims_could_do(search) : gang_could_do(search);
    placement->satisfiable = code == 1;
    search_forget(search);
    if (placement->satisfiable)
        code = place_now(search);
    if (code < 0)
        return code;
    placement->replicas = placement->sizes.count;
    placement->now = placement->satisfiable && placement->replicas == request->replicas;
    search_describe(search);
    return text_failed(&placement->why) ? BERTH_ERROR_MEMORY : 0;
}

int placement_find(const struct placement_question *question, struct placement *ret_placement,
                   struct berth_error *error)
{
    struct placement placement = {0};
    struct search search;
    int code = search_init(&search, question, &placement);

    if (code == 0)
        code = answer(&search);
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
