/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles requests: computes once, for many claims, which slots a request accepts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "engine/internal.h"
#include "engine/policy/policies.h"

static enum filter_verdict filter_slot(const struct engine_request *request, uint32_t slot)
{
    return filter_facts(&request->what, &request->engine->machine.devices.items[slot],
                        &request->scope->terms);
}

/* Returns the first reason against a slot; `facts` is the verdict of the facts alone. */
static enum filter_verdict combine_verdict(const struct engine_request *request, uint32_t slot,
                                           enum filter_verdict facts)
{
    const struct scope *scope = request->scope;
    const struct device *device = &scope->engine->machine.devices.items[slot];

    if (!scope->engine->status[slot].present)
        return FILTER_GONE;
    if (scope->parent != NULL &&
        (!bitset_has(&scope->members, slot) ||
         (scope->only_sharing != SHARING_EXCLUSIVE && request->what.sharing != SHARING_EXCLUSIVE &&
          (request->what.sharing != scope->only_sharing || request->domain != scope->only_domain))))
        return FILTER_OUTSIDE;
    if (request->has_mask && !device_id_list_has(&request->mask, device->id))
        return FILTER_MASKED;
    /* Within a lease reserved devices do not matter (FAIRNESS.md section 11). */
    if (facts == FILTER_PASSES && scope->parent == NULL && reserved_device_excludes(request, slot))
        return FILTER_RESERVED;
    return facts;
}

enum filter_verdict engine_request_verdict(const struct engine_request *request, uint32_t slot)
{
    return combine_verdict(request, slot, filter_slot(request, slot));
}

/* Returns the key of the request's affinity, or of its user; 0: none. */
static uint64_t affinity_of(const struct engine_request *request)
{
    const char *key = request->what.affinity;

    if (key == NULL)
        return request->scope->engine->settings.affinity_by_user ? request->uid * UINT64_C(2) + 1
                                                                 : 0;
    return hash_bytes(key, strlen(key)) | UINT64_C(1) << 63;
}

static void find_accounts(struct engine_request *request)
{
    request->account_count = 0;
    /* Sub-leases are not limited (FAIRNESS.md section 1). */
    if (request->scope->parent != NULL)
        return;
    list_for_each (link, &request->scope->engine->accounts) {
        struct account *account = container_of(link, struct account, in_engine);
        bool mine = !account->is_group && account->key == request->uid;

        for (size_t i = 0; account->is_group && i < request->group_count; i++)
            mine = mine || account->key == request->groups[i];
        if (mine)
            request->accounts[request->account_count++] = account;
    }
}

/* Returns whether the limits allow the minimum size if the user holds nothing (FAIRNESS.md section
 * 12). */
static bool is_within_limits(const struct engine_request *request)
{
    for (size_t i = 0; i < request->account_count; i++) {
        if (request->accounts[i]->max / request->share / request->replicas < request->min)
            return false;
    }
    return true;
}

/* Returns whether all accepted slots are in one group. */
static bool is_one_group(const struct engine_request *request)
{
    const struct placement_search *search = &request->scope->engine->search;
    size_t first = bitset_next(&request->accepts, 0);

    bitset_for_each (slot, &request->accepts) {
        if (placement_search_group(search, &request->what, slot) !=
            placement_search_group(search, &request->what, first))
            return false;
    }
    return true;
}

static bool is_simple(const struct engine_request *request)
{
    const struct request *what = &request->what;

    return request->possible && what->sharing == SHARING_EXCLUSIVE && request->replicas == 1 &&
           request->min == request->max && request->policy->compare == NULL &&
           request->policy->choose == NULL && request->policy->rate == NULL &&
           request->affinity == 0 && bitset_is_empty(&request->avoided) && !what->min_free.known &&
           !what->cpus.known && !what->host_memory.known && request->account_count == 0 &&
           request->engine->ranked == 0 && (request->min == 1 || is_one_group(request));
}

void engine_request_apply_limits(struct engine_request *request)
{
    find_accounts(request);
    request->possible = request->could_ever && is_within_limits(request);
    request->simple = is_simple(request);
    request->counted = request->what.sharing == SHARING_EXCLUSIVE && !request->what.cpus.known &&
                       !request->what.host_memory.known;
    request->plain = request->simple && !request->what.opportunistic && !request->what.time.known;
    request->fast_path = request->plain && request->everything && request->min == 1 &&
                         request->scope->empty.depth == 1 &&
                         request->engine->changes.latest == NULL;
}

static void find_accepted(struct engine_request *request)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;
    enum filter_verdict facts = FILTER_PASSES;
    uint32_t tenants = 0;

    request->everything = true;
    bitset_clear(&request->accepts);
    bitset_clear(&request->avoided);
    for (uint32_t slot = 0; slot < engine->machine.devices.count; slot++) {
        const struct device *device = &engine->machine.devices.items[slot];
        bool accepted;

        /* Most devices have the same facts as the one before. */
        if (slot == 0 || !filter_is_alike(&request->what, device, device - 1)) {
            facts = filter_slot(request, slot);
            tenants = facts == FILTER_PASSES ? ledger_tenants(request, slot) : 0;
        }
        accepted = combine_verdict(request, slot, facts) == FILTER_PASSES;
        engine->room[slot] = accepted ? tenants : 0;
        if (accepted)
            bitset_add(&request->accepts, slot);
        if (!accepted && engine->status[slot].present && !device->partitioned)
            request->everything = false;
        if (request->what.avoided.count > 0 &&
            device_id_list_has(&request->what.avoided, device->id))
            bitset_add(&request->avoided, slot);
    }
}

/* Restricts a request for "all" to its group (FAIRNESS.md section 1). */
static void drop_other_groups(struct engine_request *request)
{
    const struct engine *engine = request->scope->engine;

    bitset_for_each (slot, &request->accepts) {
        if (engine->room[slot] > 0)
            continue;
        bitset_remove(&request->accepts, slot);
        request->everything = false;
    }
}

/* Compiles a request for 0 devices, which accepts no slot. */
static void compile_without_devices(struct engine_request *request)
{
    bitset_clear(&request->accepts);
    bitset_clear(&request->avoided);
    request->min = request->max = 0;
    request->everything = false;
    request->could_ever = false;
    engine_request_apply_limits(request);
}

int engine_request_compile(struct engine_request *request)
{
    struct engine *engine = request->scope->engine;
    struct placement_search *search = &engine->search;
    int code;

    rating_index_free(request->index);
    request->index = NULL;
    search->query = (struct placement_query){
        .request = &request->what,
        /* It matters only whether the request fits, not where, so no policy needs to rate nodes. */
        .policy = request->policy->rate == NULL ? request->policy : &policy_first,
        .replicas = request->replicas,
        .avoided = &request->avoided,
    };
    request->memory = filter_memory(&request->what);
    request->affinity = affinity_of(request);
    request->alone = (struct usage){0};
    ledger_add_usage(&request->alone, request);
    if (request->what.gpus.max == 0 && !request->what.gpus.all) {
        compile_without_devices(request);
        return 0;
    }
    find_accepted(request);
    code = placement_search_bounds(search, &request->accepts, engine->room, &request->min,
                                   &request->max);
    if (code < 0)
        return code;
    drop_other_groups(request);
    search->query.node_source = engine_idle_host_room(request);
    code = placement_search_could_ever(search, &request->accepts, request->min, request->max);
    if (code < 0)
        return code;
    request->could_ever = code == 1;
    engine_request_apply_limits(request);
    return 0;
}

void engine_request_free(struct engine_request *request)
{
    list_remove(&request->in_scope);
    request_family_leave(request);
    mps_domain_leave(request);
    request_finish(&request->what);
    vector_finish(&request->mask);
    bitset_finish(&request->accepts);
    bitset_finish(&request->avoided);
    rating_index_free(request->index);
    free(request->groups);
    free(request->accounts);
    free(request);
}

/* Counts the references of leases that were granted on the fast path, which does not count them.
 * Returns their number. */
static size_t count_leases(struct engine_request *request)
{
    request->fast_path = false;
    list_for_each (link, &request->engine->leases) {
        struct lease *held = container_of(link, struct lease, in_engine);

        if (held->request != request || (held->touched & LEASE_COUNTED) != 0)
            continue;
        held->touched |= LEASE_COUNTED;
        request->references++;
    }
    return request->references;
}

void engine_request_unreference(struct engine_request *request)
{
    struct engine *engine = request->engine;

    if (--request->references > 0 || count_leases(request) > 0)
        return;
    /* If the scope is gone, the event was sent when the parent lease ended. */
    if (request->scope != NULL && engine_wants_event(engine, EVENT_FORGOTTEN))
        engine_notify(engine,
                      (struct engine_event){.type = EVENT_FORGOTTEN, .request = request->number});
    engine_request_free(request);
}

static int copy_party(struct engine_request *request, const struct party *party)
{
    request->uid = party->uid;
    request->parent = party->parent;
    request->group_count = party->group_count;
    request->groups = calloc(party->group_count + 1, sizeof(*request->groups));
    /* The user and each group have at most one account. */
    request->accounts = calloc(party->group_count + 1, sizeof(struct account *));
    if (request->groups == NULL || request->accounts == NULL)
        return BERTH_ERROR_MEMORY;
    if (party->group_count > 0)
        memcpy(request->groups, party->groups, party->group_count * sizeof(*request->groups));
    request->has_mask = party->mask != NULL;
    return party->mask == NULL ? 0 : device_id_list_copy(&request->mask, party->mask);
}

/* Finds the scope in which a party claims, and creates it for the first request within a lease. */
static int find_scope(struct engine *engine, const struct party *party, struct scope **ret_scope,
                      struct berth_error *error)
{
    struct lease *parent;

    if (party->parent == 0) {
        *ret_scope = &engine->root;
        return 0;
    }
    parent = engine_find_lease(engine, party->parent);
    if (parent == NULL || parent->state == LEASE_DRAINING)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "cannot claim within lease %llu: no such lease",
                         (unsigned long long)party->parent);
    *ret_scope = scope_within(parent);
    return *ret_scope == NULL ? error_set_memory(error) : 0;
}

/* Copies the compiled members of another request of the family, which accepts the same slots.
 * Returns whether there is one. */
static bool copy_compiled(struct engine_request *request)
{
    const struct engine_request *other = request_family_other(request);

    if (other == NULL || other->stale)
        return false;
    request->memory = other->memory;
    request->affinity = other->affinity;
    request->alone = other->alone;
    request->everything = other->everything;
    request->min = other->min;
    request->max = other->max;
    request->could_ever = other->could_ever;
    bitset_copy(&request->accepts, &other->accepts);
    bitset_copy(&request->avoided, &other->avoided);
    engine_request_apply_limits(request);
    return true;
}

static int fill_request(struct engine_request *request, const struct request *what,
                        const struct party *party, struct berth_error *error)
{
    size_t size = request->engine->size;

    if (request_copy(&request->what, what) < 0 || copy_party(request, party) < 0 ||
        bitset_init(&request->accepts, size) < 0 || bitset_init(&request->avoided, size) < 0 ||
        mps_domain_join(request) < 0)
        return error_set_memory(error);
    request->replicas =
        what->scheduling == SCHEDULING_BEST_EFFORT && !what->ranks ? 1 : what->replicas;
    /* The share never changes later, even if the rules do (FAIRNESS.md section 13). */
    if (request->share == 0)
        request->share = filter_share(&request->what, &request->scope->terms);
    if (request_family_join(request) < 0)
        return error_set_memory(error);
    if (copy_compiled(request))
        return 0;
    return engine_request_compile(request) < 0 ? error_set_memory(error) : 0;
}

int engine_request_create(struct engine *engine, const struct request *what,
                          const struct party *party, const struct policy *policy, uint64_t number,
                          uint32_t share, struct engine_request **ret_request,
                          struct berth_error *error)
{
    struct engine_request *request;
    struct scope *scope = NULL;
    int code = request_validate(what, error);

    if (code == 0)
        code = find_scope(engine, party, &scope, error);
    if (code != 0 || scope == NULL)
        return code;
    request = calloc(1, sizeof(*request));
    if (request == NULL)
        return error_set_memory(error);
    request_init(&request->what);
    request->engine = engine;
    request->policy = policy;
    if (policy == NULL)
        request->policy =
            engine->settings.policy != NULL ? engine->settings.policy : policy_default(what);
    request->default_policy = policy == NULL;
    request->scope = scope;
    request->number = number;
    request->share = filter_shares_evenly(what) && share <= scope->terms.share ? share : 0;
    request->references = 1;
    list_init(&request->waiting);
    code = fill_request(request, what, party, error);
    if (code < 0) {
        engine_request_free(request);
        return code;
    }
    list_append(&scope->requests, &request->in_scope);
    if (engine->last_request < number)
        engine->last_request = number;
    *ret_request = request;
    return 0;
}

int engine_request_open(struct engine *engine, const struct request *request,
                        const struct party *party, const struct policy *policy,
                        struct engine_request **ret_request, struct berth_error *error)
{
    static const struct party nobody;
    int code = 0;

    if (policy == NULL && request->policy != NULL)
        code = policy_find(request->policy, &policy, error);
    if (code == 0)
        code = engine_request_create(engine, request, party != NULL ? party : &nobody, policy,
                                     engine->last_request + 1, 0, ret_request, error);
    if (code == 0)
        rating_index_prepare(*ret_request);
    if (code == 0 && engine_wants_event(engine, EVENT_REQUEST))
        engine_notify_request(*ret_request);
    return code;
}

void engine_request_close(struct engine *engine, struct engine_request *request)
{
    (void)engine;
    if (request != NULL)
        engine_request_unreference(request);
}

uint32_t engine_request_claims(const struct engine_request *request)
{
    return request->what.replicas / request->replicas;
}

const struct request *engine_request_what(const struct engine_request *request)
{
    return &request->what;
}
