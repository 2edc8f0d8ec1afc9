/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica takes its devices from one group: the devices of one vendor, or all of them where
 * vendors may mix. A device has room for one exclusive claim or several shared ones.
 */
#include <assert.h>

#include "base/count.h"
#include "base/error.h"
#include "engine/placement_search.h"

static int search_init(struct search *search, const struct placement_question *question,
                       struct placement *placement)
{
    size_t count = question->machine->devices.count;
    struct bitset *sets[] = {&search->possible,  &search->available,  &search->avoided,
                             &search->must_left, &search->candidates, &search->plain,
                             &search->required,  &search->chosen};

    *search = (struct search){.question = question, .device_count = count, .placement = placement};
    for (size_t i = 0; i < COUNT(sets); i++) {
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
    bitset_finish(&search->plain);
    bitset_finish(&search->required);
    bitset_finish(&search->chosen);
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

/* Makes `candidates` the devices of the leader's group in `from` that have room, `plain` those of
 * them that are not avoided and `required` those that are still required. Returns how many
 * candidates there are. */
static size_t gather_group(struct search *search, const struct bitset *from, size_t leader)
{
    bitset_clear(&search->candidates);
    bitset_for_each (slot, from) {
        if (search->room[slot] > 0 && is_in_group(search, slot, leader))
            bitset_add(&search->candidates, slot);
    }
    bitset_copy(&search->plain, &search->candidates);
    bitset_subtract(&search->plain, &search->avoided);
    bitset_copy(&search->required, &search->must_left);
    bitset_intersect(&search->required, &search->candidates);
    return bitset_count(&search->candidates);
}

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

size_t search_next_group(const struct search *search, const struct bitset *from, size_t slot,
                         unsigned *tried)
{
    const struct device *devices = search->question->machine->devices.items;
    bool mixed = search->question->request->vendor_rule == VENDOR_RULE_MIXED;

    for (; slot < search->device_count; slot = bitset_next(from, slot + 1)) {
        unsigned group = mixed ? 1U : 1U << devices[slot].id.vendor;

        if ((*tried & group) == 0) {
            *tried |= group;
            return slot;
        }
    }
    return slot;
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
static bool find_group(struct search *search, const struct bitset *from, size_t count)
{
    const struct bitset *leaders = bitset_is_empty(&search->must_left) ? from : &search->must_left;
    size_t best = search->device_count;
    size_t least_cost = SIZE_MAX;

    for_each_group (leader, search, leaders) {
        if (gather_group(search, from, leader) < count ||
            cost_of_group(search, count) >= least_cost)
            continue;
        best = leader;
        least_cost = cost_of_group(search, count);
    }
    return best < search->device_count && gather_group(search, from, best) > 0;
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
    bitset_subtract(&search->must_left, &search->chosen);
    bitset_for_each (slot, &search->chosen) {
        size_t *place = vector_append(&search->placement->slots);

        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = slot;
        search->room[slot]--;
    }
    return 1;
}

/* Gives the next replica `count` devices of `from`. Returns 1, 0 when there are not enough, or
 * BERTH_ERROR_MEMORY. */
static int place_replica(struct search *search, const struct bitset *from, size_t count)
{
    if (!find_group(search, from, count))
        return 0;
    put_off_required(search, count);
    return take_candidates(search, count);
}

static void forget_slots(struct search *search)
{
    search->placement->slots.count = 0;
    search->placement->sizes.count = 0;
}

static void start_attempt(struct search *search)
{
    forget_slots(search);
    bitset_copy(&search->must_left, search->question->must);
    for (size_t slot = 0; slot < search->device_count; slot++)
        search->room[slot] = search->tenants[slot];
}

/* Places `replicas` replicas of `count` devices each, one after the other, all or nothing. Finds a
 * way whenever there is one if each device has room for one. Returns as place_replica. */
static int place_in_turn(struct search *search, const struct bitset *from, size_t replicas,
                         size_t count)
{
    int code = 1;

    start_attempt(search);
    for (size_t replica = 0; replica < replicas && code == 1; replica++)
        code = place_replica(search, from, count);
    return code == 1 ? bitset_is_empty(&search->must_left) : code;
}

/* How many replicas of `count` devices the candidates have room for, up to `limit`: of r replicas
 * a device can serve each once. */
static size_t rows_of_candidates(const struct search *search, size_t count, size_t limit)
{
    size_t rows = 0;

    for (; rows < limit; rows++) {
        size_t uses = 0;

        bitset_for_each (slot, &search->candidates)
            uses += search->room[slot] <= rows ? search->room[slot] : rows + 1;
        if (uses < count * (rows + 1))
            break;
    }
    return rows;
}

/* Places `rows` replicas, for which there is room, in the leader's group. Only the required
 * devices for which later ones have no place come first, so that the roomy ones are not left over.
 * Returns 1 or BERTH_ERROR_MEMORY. */
static int place_rows(struct search *search, const struct bitset *from, size_t leader, size_t rows,
                      size_t count)
{
    int code = 1;

    for (; rows > 0 && code == 1; rows--) {
        size_t later = (rows - 1) * count;
        size_t required;

        gather_group(search, from, leader);
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

    start_attempt(search);
    for_each_group (leader, search, from) {
        gather_group(search, from, leader);
        later += rounded_up(bitset_count(&search->required), count);
    }
    for_each_group (leader, search, from) {
        size_t needed;
        size_t rows;

        gather_group(search, from, leader);
        needed = rounded_up(bitset_count(&search->required), count);
        later -= needed;
        rows = rows_of_candidates(search, count, replicas > later ? replicas - later : 0);
        if (rows < needed)
            return 0;
        replicas -= rows;
        if (place_rows(search, from, leader, rows, count) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return replicas == 0 && bitset_is_empty(&search->must_left);
}

size_t search_room(const struct search *search, const struct bitset *from)
{
    size_t room = 0;

    bitset_for_each (slot, from)
        room += search->tenants[slot];
    return room;
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

bool search_is_best_effort(const struct search *search)
{
    const struct request *request = search->question->request;

    return request->scheduling == SCHEDULING_BEST_EFFORT && request->replicas > 1;
}

/* Every replica is a claim of its own: places as many as fit, each as large as it can be. */
static int place_each(struct search *search, size_t most)
{
    int code = 1;

    start_attempt(search);
    while (search->placement->sizes.count < search->question->request->replicas && code == 1) {
        code = 0;
        /* What was too much once is too much ever after. */
        for (; most >= search->least && code == 0; most -= code == 0)
            code = place_replica(search, &search->available, most);
    }
    if (!bitset_is_empty(&search->must_left))
        forget_slots(search);
    return code < 0 ? code : 0;
}

/* How many devices a replica could get now at best, so that a long range is not counted down one
 * by one. */
static size_t most_devices_now(struct search *search)
{
    size_t room = search_room(search, &search->available);
    size_t most = 0;

    start_attempt(search);
    for_each_group (leader, search, &search->available) {
        size_t size = gather_group(search, &search->available, leader);

        if (size > most)
            most = size;
    }
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
        forget_slots(search);
    return code < 0 ? code : 0;
}

/* Whether claims that stand alone could ever do, one after the other if need be: a group is large
 * enough, and there are as many claims as the required devices need. */
static bool claims_could_do(struct search *search)
{
    size_t needed = 0;

    start_attempt(search);
    for_each_group (leader, search, &search->possible) {
        size_t size = gather_group(search, &search->possible, leader);

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
    size_t largest = 0;
    size_t largest_leader = 0;

    start_attempt(search);
    for_each_group (leader, search, &search->possible) {
        size_t size = gather_group(search, &search->possible, leader);

        if (size > largest) {
            largest = size;
            largest_leader = leader;
        }
    }
    search->least = gpus->all ? largest : gpus->least;
    search->most = gpus->all || gpus->most > largest ? largest : gpus->most;
    if (search->least == 0)
        search->least = 1;
    for (size_t slot = 0; slot < search->device_count && gpus->all && largest > 0; slot++) {
        if (!is_in_group(search, slot, largest_leader))
            search->tenants[slot] = 0;
    }
}

static int answer(struct search *search)
{
    const struct request *request = search->question->request;
    struct placement *placement = search->placement;
    int code;

    judge(search);
    find_bounds(search);
    code = search_is_best_effort(search) ? claims_could_do(search) : gang_could_do(search);
    placement->satisfiable = code == 1;
    forget_slots(search);
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
