/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement/placement.h"

#include "base/error.h"
#include "engine/placement/expected.h"
#include "engine/placement/filter.h"
#include "engine/placement/placement_plan.h"

/* Fills in counts, tenants, avoided, possible and available. */
static void classify_devices(struct plan *plan)
{
    const struct placement_question *question = plan->question;
    const struct request *request = question->request;

    for (size_t slot = 0; slot < plan->device_count; slot++) {
        const struct device *device = &question->machine->devices.items[slot];
        enum filter_verdict verdict = filter_device(request, device, &filter_default_terms);

        if (verdict == FILTER_PASSES && bitset_has(question->busy, slot))
            verdict = question->reason == NULL || question->reason[slot] == FILTER_PASSES
                          ? FILTER_BUSY
                          : question->reason[slot];
        plan->counts[verdict]++;
        plan->tenants[slot] = filter_tenants(request, device, &filter_default_terms);
        if (device_id_list_has(&request->avoided, device->id))
            bitset_add(&plan->avoided, slot);
        if (verdict == FILTER_PASSES)
            bitset_add(&plan->available, slot);
        if (verdict == FILTER_PASSES || filter_may_change(verdict))
            bitset_add(&plan->possible, slot);
    }
}

bool placement_is_best_effort(const struct request *request)
{
    return request->scheduling == SCHEDULING_BEST_EFFORT && request->replicas > 1;
}

/* Places best-effort replicas: as many as fit, each as large as possible. */
static int place_each_replica(struct plan *plan)
{
    struct placement_search *search = &plan->search;
    size_t max = plan->max;
    size_t group;
    int64_t largest = placement_search_largest_group(search, &plan->available, &group);
    int code = largest < 0 || placement_search_start(search, &plan->available) < 0
                   ? BERTH_ERROR_MEMORY
                   : 1;

    if (largest >= 0 && (size_t)largest < max)
        max = (size_t)largest;
    while (search->sizes.count < plan->question->request->replicas && code == 1) {
        code = 0;
        /* A size that did not fit once does not fit later. */
        for (; max >= plan->min && code == 0; max -= code == 0)
            code = placement_search_place_replica(search, max);
    }
    if (!bitset_is_empty(&search->must_left))
        placement_search_reset(search);
    return code < 0 ? code : 0;
}

/* Places the replicas on free devices, each as large as possible. */
static int place_on_free_devices(struct plan *plan)
{
    int code;

    if (placement_is_best_effort(plan->question->request))
        return place_each_replica(plan);
    code = placement_search_place_largest(&plan->search, &plan->available, plan->min, plan->max);
    return code < 0 ? code : 0;
}

/* Checks whether best-effort replicas could ever be placed. Each is a claim of its own, so they may
 * have to run one after the other. A group must be large enough, and there must be enough replicas
 * for the required devices. Returns like placement_search_place(). */
static int check_best_effort(struct plan *plan)
{
    struct placement_search *search = &plan->search;
    size_t needed = 0;

    if (placement_search_start(search, &plan->possible) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < search->group_count; i++) {
        size_t size = placement_search_gather_group(search, search->order[i].group);

        if (size < plan->min)
            continue;
        if (size > plan->max)
            size = plan->max;
        needed += (bitset_count(&search->required) + size - 1) / size;
        bitset_subtract(&search->must_left, &search->required);
    }
    return plan->max >= plan->min && needed <= plan->question->request->replicas &&
           bitset_is_empty(&search->must_left);
}

static int answer_question(struct plan *plan)
{
    struct placement_search *search = &plan->search;
    struct placement *placement = plan->placement;
    int code;

    classify_devices(plan);
    code = placement_search_bounds(search, &plan->possible, plan->tenants, &plan->min, &plan->max);
    if (code == 0)
        code = placement_is_best_effort(plan->question->request)
                   ? check_best_effort(plan)
                   : placement_search_could_ever(search, &plan->possible, plan->min, plan->max);
    if (code < 0)
        return code;
    placement->satisfiable = code == 1;
    placement_search_reset(search);
    if (placement->satisfiable && place_on_free_devices(plan) < 0)
        return BERTH_ERROR_MEMORY;
    placement->replicas = search->sizes.count;
    placement->rated = search->rated > 0;
    placement->score = search->score;
    placement->proven = search->proven;
    placement->now =
        placement->satisfiable && placement->replicas == plan->question->request->replicas;
    placement_plan_describe(plan);
    return text_failed(&placement->why) ? BERTH_ERROR_MEMORY : 0;
}

/* Prepares the policy's tables for the default expected requests. */
static int prepare_policy(struct plan *plan)
{
    const struct policy *policy = plan->question->policy;
    struct expected_list defaults = {0};
    int code;

    if (policy->prepare == NULL)
        return 0;
    code = expected_append_defaults(&defaults);
    if (code == 0)
        code = expected_prepare_tables(policy, plan->question->machine, &defaults,
                                       &filter_default_terms, NULL, &plan->tables);
    expected_list_finish(&defaults);
    return code;
}

static uint32_t left_as_given(const struct placement_search *search, size_t slot)
{
    const uint32_t *left = search->query.left_context;

    return left[slot];
}

static int plan_init(struct plan *plan, const struct placement_question *question,
                     struct placement *placement)
{
    size_t count = question->machine->devices.count;

    *plan = (struct plan){.question = question, .device_count = count, .placement = placement};
    if (placement_search_init(&plan->search, question->machine, count) < 0 ||
        bitset_init(&plan->possible, count) < 0 || bitset_init(&plan->available, count) < 0 ||
        bitset_init(&plan->avoided, count) < 0)
        return BERTH_ERROR_MEMORY;
    plan->tenants = calloc(count + 1, sizeof(*plan->tenants));
    if (plan->tenants == NULL || prepare_policy(plan) < 0)
        return BERTH_ERROR_MEMORY;
    plan->search.query = (struct placement_query){
        .request = question->request,
        .policy = question->policy,
        .replicas = question->request->replicas,
        .must = question->must,
        .avoided = &plan->avoided,
        .tables = plan->tables,
        .share = filter_share(question->request, &filter_default_terms),
        .left = question->left != NULL ? left_as_given : NULL,
        .left_context = question->left,
        .words = &plan->words,
    };
    return 0;
}

static void plan_finish(struct plan *plan)
{
    placement_search_finish(&plan->search);
    bitset_finish(&plan->possible);
    bitset_finish(&plan->available);
    bitset_finish(&plan->avoided);
    free(plan->tenants);
    text_finish(&plan->words);
    if (plan->tables != NULL)
        plan->question->policy->forget(plan->tables);
}

int placement_find(const struct placement_question *question, struct placement *ret_placement,
                   struct berth_error *error)
{
    struct placement placement = {0};
    struct plan plan;
    int code = plan_init(&plan, question, &placement);

    if (code == 0)
        code = answer_question(&plan);
    if (code == 0) {
        placement.slots = plan.search.slots_chosen;
        placement.sizes = plan.search.sizes;
        plan.search.slots_chosen = (struct slot_list){0};
        plan.search.sizes = (struct slot_list){0};
    }
    plan_finish(&plan);
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
