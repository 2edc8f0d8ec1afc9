/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: the usage of slots, hosts and limits by leases (FAIRNESS.md sections 1, 9 and 10).
 */
#include "engine/internal.h"

uint32_t ledger_tenants(const struct engine_request *request, uint32_t slot)
{
    const struct scope *scope = request->scope;
    const struct device *device = &scope->engine->machine.devices.items[slot];
    uint32_t tenants;

    if (request->what.sharing == SHARING_EXCLUSIVE)
        return 1;
    tenants = filter_tenants(&request->what, device, &scope->terms);
    /* The share of a request that names none may come from earlier rules (FAIRNESS.md section 13).
     */
    return scope->terms.share / request->share < tenants ? scope->terms.share / request->share
                                                         : tenants;
}

static uint32_t smaller_room(uint64_t one, uint32_t other)
{
    return one < other ? (uint32_t)one : other;
}

static uint64_t subtract_to_zero(uint64_t all, uint64_t part)
{
    return all > part ? all - part : 0;
}

/* Returns how many claims fit into the sampled free memory, less the amounts that tenants are
 * counted with, since these may not have allocated theirs yet. The sample matters only beside a
 * tenant that is counted with none, because that one may use any amount (FAIRNESS.md section 9). */
static uint64_t fitting_in_sample(const struct engine_request *request, const struct device *device,
                                  const struct usage *usage)
{
    const struct figure *sample = &device->load.memory_free;

    if (!sample->known || (usage->unreserved == 0 && device->memory_total.known))
        return UINT64_MAX;
    return filter_fitting(
        &request->what,
        subtract_to_zero(sample->value > 0 ? (uint64_t)sample->value : 0, usage->memory));
}

uint32_t ledger_room(const struct engine_request *request, uint32_t slot, const struct usage *usage)
{
    const struct device *device = &request->engine->machine.devices.items[slot];
    uint32_t room;

    if (!filter_has_free(&request->what, device))
        return 0;
    room = ledger_room_beside(request, slot, usage);
    if (room == 0 || request->memory == 0)
        return room;
    return smaller_room(fitting_in_sample(request, device, usage), room);
}

static uint32_t tenants_max(const struct engine_request *request)
{
    const struct filter_terms *terms = &request->scope->terms;

    return request->what.sharing == SHARING_MPS ? terms->mps_tenants : terms->time_slice_tenants;
}

uint32_t ledger_left(const struct scope *scope, uint32_t slot, const struct usage *usage)
{
    if (!scope->ledger[slot].usable)
        return 0;
    if (usage->brief.tenants == 0)
        return scope->terms.share;
    if (usage->brief.sharing == SHARING_EXCLUSIVE || usage->brief.share >= scope->terms.share)
        return 0;
    return scope->terms.share - usage->brief.share;
}

/* Returns how many claims fit beside the memory that the tenants are counted with. */
static uint64_t fitting_beside(const struct engine_request *request, uint32_t slot,
                               const struct usage *usage)
{
    const struct device *device = &request->engine->machine.devices.items[slot];
    struct optional_number bound =
        filter_memory_bound(&request->what, device, &request->scope->terms);

    if (request->memory == 0)
        return UINT64_MAX;
    if (!bound.known)
        return request->what.memory.known ? 0 : UINT64_MAX;
    return filter_fitting(&request->what, subtract_to_zero(bound.value, usage->memory));
}

uint32_t ledger_room_beside(const struct engine_request *request, uint32_t slot,
                            const struct usage *usage)
{
    const struct scope *scope = request->scope;
    uint32_t max = tenants_max(request);
    uint32_t room;

    if (usage->brief.tenants == 0)
        return ledger_tenants(request, slot);
    if (request->what.sharing == SHARING_EXCLUSIVE ||
        usage->brief.sharing != request->what.sharing ||
        (usage->brief.sharing == SHARING_MPS && usage->domain != request->domain) ||
        usage->brief.tenants >= max || usage->brief.share >= scope->terms.share)
        return 0;
    room = smaller_room((scope->terms.share - usage->brief.share) / request->share,
                        max - usage->brief.tenants);
    return smaller_room(fitting_beside(request, slot, usage), room);
}

enum filter_verdict ledger_verdict(const struct engine_request *request, uint32_t slot,
                                   const struct usage *usage)
{
    const struct scope *scope = request->scope;

    if (ledger_room(request, slot, usage) > 0)
        return FILTER_PASSES;
    if (request->what.sharing == SHARING_EXCLUSIVE || usage->brief.tenants == 0 ||
        usage->brief.sharing != request->what.sharing)
        return FILTER_BUSY;
    if (usage->brief.sharing == SHARING_MPS && usage->domain != request->domain)
        return mps_domain_uid(scope->engine, usage->domain) == request->uid ? FILTER_OTHER_MPS
                                                                            : FILTER_OTHER_USER;
    if (usage->brief.tenants >= tenants_max(request))
        return FILTER_TENANTS;
    if (subtract_to_zero(scope->terms.share, usage->brief.share) < request->share)
        return FILTER_SHARED_OUT;
    return FILTER_MEMORY_TAKEN;
}

/* Returns whether the request is a tenant that is counted with no memory. */
static bool is_unreserved(const struct engine_request *request)
{
    return request->memory == 0 && request->what.sharing != SHARING_EXCLUSIVE;
}

void ledger_add_usage(struct usage *usage, const struct engine_request *request)
{
    usage->brief.tenants++;
    usage->brief.share += request->share;
    usage->brief.sharing = (uint16_t)request->what.sharing;
    usage->unreserved += is_unreserved(request);
    usage->memory += request->memory;
    usage->domain = request->domain;
}

void ledger_subtract_usage(struct usage *usage, const struct engine_request *request)
{
    usage->brief.tenants--;
    usage->brief.share -= request->share;
    usage->unreserved -= is_unreserved(request);
    usage->memory -= request->memory;
    if (usage->brief.tenants == 0)
        usage->brief.sharing = SHARING_EXCLUSIVE;
}

/* Adds `sign` times the CPUs and memory of the replicas. The host of a replica is that of its first
 * device. */
static void change_hosts(struct host_usage *hosts, const struct engine_request *request,
                         const uint32_t *slots, size_t slot_count, uint64_t sign)
{
    const struct request *what = &request->what;
    size_t step = slot_count / request->replicas;

    if (!what->cpus.known && !what->host_memory.known)
        return;
    for (size_t i = 0; i < slot_count; i += step) {
        struct host_usage *host = &hosts[request->engine->machine.devices.items[slots[i]].host];

        host->cpus += sign * (what->cpus.known ? what->cpus.value : 0);
        host->memory += sign * (what->host_memory.known ? what->host_memory.value : 0);
    }
}

void ledger_add_hosts(struct host_usage *hosts, const struct engine_request *request,
                      const uint32_t *slots, size_t slot_count)
{
    change_hosts(hosts, request, slots, slot_count, 1);
}

void ledger_subtract_hosts(struct host_usage *hosts, const struct engine_request *request,
                           const uint32_t *slots, size_t slot_count)
{
    change_hosts(hosts, request, slots, slot_count, UINT64_MAX);
}

bool ledger_is_limited(const struct engine_request *request, size_t *ret_max)
{
    uint64_t step = (uint64_t)request->share * request->replicas;

    *ret_max = request->max;
    for (size_t i = 0; i < request->account_count; i++) {
        const struct account *account = request->accounts[i];
        uint64_t left = account->used < account->max ? account->max - account->used : 0;

        if (left / step < request->min)
            return true;
        if (left / step < *ret_max)
            *ret_max = (size_t)(left / step);
    }
    return false;
}

/* Adds `sign` times the share of the slots. */
static void change_accounts(const struct engine_request *request, uint32_t slot_count,
                            uint64_t sign)
{
    for (size_t i = 0; i < request->account_count; i++)
        request->accounts[i]->used += sign * request->share * slot_count;
}

uint64_t ledger_other_holder(const struct scope *scope, uint32_t slot, uint64_t id)
{
    list_for_each (link, &scope->engine->leases) {
        const struct lease *held = container_of(link, struct lease, in_engine);

        if (held->request->scope != scope || held->entry.link.id == id)
            continue;
        for (uint32_t i = 0; i < held->slot_count; i++) {
            if (held->slots[i] == slot)
                return held->entry.link.id;
        }
    }
    return 0;
}

void ledger_begin_lease(struct lease *held)
{
    struct engine_request *request = held->request;
    struct scope *scope = request->scope;
    int64_t now = request->engine->now;

    held->touched |= LEASE_TOUCHED_REST;
    ledger_add_hosts(scope->host_usage, request, held->slots, held->slot_count);
    change_accounts(request, held->slot_count, 1);
    scope->opportunistic_leases += request->what.opportunistic;
    if (!request->what.time.known)
        return;
    if (request->what.time.value < (uint64_t)(TIME_NEVER - now))
        held->expires = now + (int64_t)request->what.time.value;
    scope->limited += held->expires != TIME_NEVER;
    lifecycle_update_lease_timer(held);
}

void ledger_reset_lease(struct lease *held)
{
    bool counted = (held->touched & LEASE_COUNTED) != 0;

    held->claim = 0;
    held->owner = (struct claim_owner){0};
    held->touched = 0;
    if (counted)
        engine_request_unreference(held->request);
}

void ledger_end_lease(struct lease *held)
{
    struct engine_request *request = held->request;
    struct scope *scope = request->scope;

    scope->limited -= held->expires != TIME_NEVER;
    scope->opportunistic_leases -= request->what.opportunistic;
    scope->opportunistic_leaving -= preempt_is_leaving(held);
    change_accounts(request, held->slot_count, UINT64_MAX);
    ledger_subtract_hosts(scope->host_usage, request, held->slots, held->slot_count);
    engine_clear_timer(request->engine, &held->entry);
    held->state = LEASE_HELD;
    held->expires = TIME_NEVER;
    held->force_at = TIME_NEVER;
}
