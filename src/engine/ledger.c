/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: what leases take of slots, hosts and limits.
 */
#include "engine/state.h"

uint32_t ledger_tenants(const struct engine_request *request, uint32_t slot)
{
    const struct scope *scope = request->scope;
    const struct device *device = &scope->engine->machine.devices.items[slot];
    uint32_t tenants;

    if (request->what.sharing == SHARING_EXCLUSIVE)
        return 1;
    tenants = filter_tenants(&request->what, device, &scope->terms);
    /* An even share may be that of earlier rules. */
    return scope->terms.share / request->share < tenants ? scope->terms.share / request->share
                                                         : tenants;
}

uint32_t ledger_room(const struct engine_request *request, uint32_t slot, const struct usage *usage)
{
    const struct device *device = &request->engine->machine.devices.items[slot];

    return filter_has_free(&request->what, device) ? ledger_room_beside(request, slot, usage) : 0;
}

uint32_t ledger_room_beside(const struct engine_request *request, uint32_t slot,
                            const struct usage *usage)
{
    const struct scope *scope = request->scope;
    const struct device *device = &scope->engine->machine.devices.items[slot];
    struct optional_number memory =
        scope->terms.memory.known ? scope->terms.memory : device->memory_total;
    uint32_t most = request->what.sharing == SHARING_MPS ? scope->terms.mps_tenants
                                                         : scope->terms.time_slice_tenants;
    uint64_t room;

    if (usage->brief.tenants == 0)
        return ledger_tenants(request, slot);
    if (request->what.sharing == SHARING_EXCLUSIVE ||
        usage->brief.sharing != request->what.sharing ||
        (usage->brief.sharing == SHARING_MPS && usage->uid != request->uid) ||
        usage->brief.tenants >= most || usage->brief.share >= scope->terms.share)
        return 0;
    room = most - usage->brief.tenants;
    if ((scope->terms.share - usage->brief.share) / request->share < room)
        room = (scope->terms.share - usage->brief.share) / request->share;
    if (request->memory == 0)
        return (uint32_t)room;
    if (!memory.known || usage->memory >= memory.value)
        return 0;
    if ((memory.value - usage->memory) / request->memory < room)
        room = (memory.value - usage->memory) / request->memory;
    return (uint32_t)room;
}

void usage_add(struct usage *usage, const struct engine_request *request)
{
    usage->brief.tenants++;
    usage->brief.share += request->share;
    usage->memory += request->memory;
    usage->brief.sharing = (uint16_t)request->what.sharing;
    usage->uid = request->uid;
}

void usage_subtract(struct usage *usage, const struct engine_request *request)
{
    usage->brief.tenants--;
    usage->brief.share -= request->share;
    usage->memory -= request->memory;
    if (usage->brief.tenants == 0)
        usage->brief.sharing = SHARING_EXCLUSIVE;
}

static bool uses_host(const struct engine_request *request)
{
    return request->what.cpus.known || request->what.host_memory.known;
}

/* Adds `sign` times what the replicas take; the host of each is that of its first device. */
static void change_hosts(struct host_usage *hosts, const struct engine_request *request,
                         const uint32_t *slots, size_t slot_count, uint64_t sign)
{
    const struct request *what = &request->what;
    size_t step = slot_count / request->replicas;

    if (!uses_host(request))
        return;
    for (size_t i = 0; i < slot_count; i += step) {
        struct host_usage *host = &hosts[request->engine->machine.devices.items[slots[i]].host];

        host->cpus += sign * (what->cpus.known ? what->cpus.value : 0);
        host->memory += sign * (what->host_memory.known ? what->host_memory.value : 0);
    }
}

void hosts_add(struct host_usage *hosts, const struct engine_request *request,
               const uint32_t *slots, size_t slot_count)
{
    change_hosts(hosts, request, slots, slot_count, 1);
}

void hosts_subtract(struct host_usage *hosts, const struct engine_request *request,
                    const uint32_t *slots, size_t slot_count)
{
    change_hosts(hosts, request, slots, slot_count, UINT64_MAX);
}

bool ledger_is_limited(const struct engine_request *request, size_t *ret_most)
{
    uint64_t step = (uint64_t)request->share * request->replicas;

    *ret_most = request->most;
    for (size_t i = 0; i < request->account_count; i++) {
        const struct account *account = request->accounts[i];
        uint64_t left = account->used < account->most ? account->most - account->used : 0;

        if (left / step < request->least)
            return true;
        if (left / step < *ret_most)
            *ret_most = (size_t)(left / step);
    }
    return false;
}

static void charge(const struct engine_request *request, uint32_t slot_count)
{
    for (size_t i = 0; i < request->account_count; i++)
        request->accounts[i]->used += (uint64_t)request->share * slot_count;
}

static void refund(const struct engine_request *request, uint32_t slot_count)
{
    for (size_t i = 0; i < request->account_count; i++)
        request->accounts[i]->used -= (uint64_t)request->share * slot_count;
}

uint64_t ledger_other_holder(const struct scope *scope, uint32_t slot, uint64_t id)
{
    list_for_each (link, &scope->engine->leases) {
        const struct held *held = container_of(link, struct held, in_engine);

        if (held->request->scope != scope || held->entry.link.id == id)
            continue;
        for (uint32_t i = 0; i < held->slot_count; i++) {
            if (held->slots[i] == slot)
                return held->entry.link.id;
        }
    }
    return 0;
}

void lease_begin_rest(struct held *held)
{
    struct engine_request *request = held->request;
    struct scope *scope = request->scope;
    int64_t now = request->engine->now;

    held->touched |= LEASE_TOUCHED_REST;
    hosts_add(scope->host_usage, request, held->slots, held->slot_count);
    charge(request, held->slot_count);
    scope->helpers += request->what.opportunistic;
    if (!request->what.time.known)
        return;
    if (request->what.time.value < (uint64_t)(TIME_NEVER - now))
        held->expires = now + (int64_t)request->what.time.value;
    scope->limited += held->expires != TIME_NEVER;
    lease_update_timer(held);
}

void lease_put_right(struct held *held)
{
    bool counted = (held->touched & LEASE_COUNTED) != 0;

    held->claim = 0;
    held->owner = (struct claim_owner){0};
    held->touched = 0;
    if (counted)
        request_unreference(held->request);
}

void lease_end_rest(struct held *held)
{
    struct engine_request *request = held->request;
    struct scope *scope = request->scope;

    scope->limited -= held->expires != TIME_NEVER;
    scope->helpers -= request->what.opportunistic;
    scope->helpers_noticed -= lease_is_going(held);
    refund(request, held->slot_count);
    hosts_subtract(scope->host_usage, request, held->slots, held->slot_count);
    timer_clear(request->engine, &held->entry);
    held->state = LEASE_HELD;
    held->expires = TIME_NEVER;
    held->force_at = TIME_NEVER;
}
