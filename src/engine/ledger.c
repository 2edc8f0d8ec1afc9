/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: what leases take of slots, hosts and limits.
 */
#include "engine/state.h"

uint32_t ledger_room(const struct engine_request *request, uint32_t slot, const struct usage *usage)
{
    const struct scope *scope = request->scope;
    const struct device *device = &scope->engine->machine.devices.items[slot];
    struct optional_number memory =
        scope->terms.memory.known ? scope->terms.memory : device->memory_total;
    uint32_t most = request->what.sharing == SHARING_MPS ? scope->terms.mps_tenants
                                                         : scope->terms.time_slice_tenants;
    uint64_t room;

    if (!filter_has_free(&request->what, device))
        return 0;
    if (usage->tenants == 0)
        return filter_tenants(&request->what, device, &scope->terms);
    if (request->what.sharing == SHARING_EXCLUSIVE || usage->sharing != request->what.sharing ||
        (usage->sharing == SHARING_MPS && usage->uid != request->uid) || usage->tenants >= most ||
        usage->share >= scope->terms.share)
        return 0;
    room = most - usage->tenants;
    if ((scope->terms.share - usage->share) / request->share < room)
        room = (scope->terms.share - usage->share) / request->share;
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
    usage->tenants++;
    usage->share += request->share;
    usage->memory += request->memory;
    usage->sharing = request->what.sharing;
    usage->uid = request->uid;
}

void usage_subtract(struct usage *usage, const struct engine_request *request)
{
    usage->tenants--;
    usage->share -= request->share;
    usage->memory -= request->memory;
    if (usage->tenants == 0)
        usage->sharing = SHARING_EXCLUSIVE;
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

/* Shared slots come up several times when several replicas are on them. */
static void take_slot(struct scope *scope, const struct engine_request *request, uint32_t slot,
                      uint64_t id)
{
    struct policy_slot *view = &scope->slots[slot];

    if (scope->holders[slot] == 0)
        scope->holders[slot] = id;

    usage_add(&scope->usage[slot], request);
    view->tenants++;
    view->served++;
    view->last_served = ++scope->stamp;
    if (request->affinity != 0)
        view->affinity = request->affinity;
    if (request->what.sharing == SHARING_EXCLUSIVE && lowest_set_has(&scope->empty, slot))
        lowest_set_remove(&scope->empty, slot);
    else
        scope_refresh(scope, slot);
}

/* Another lease that is on the slot, the oldest; 0 when there is none. */
static uint64_t other_holder(const struct scope *scope, uint32_t slot, uint64_t id)
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

static void give_slot(struct scope *scope, const struct held *held, uint32_t slot)
{
    struct usage *usage = &scope->usage[slot];

    usage_subtract(usage, held->request);
    scope->slots[slot].tenants--;
    if (scope->holders[slot] == held->entry.link.id)
        scope->holders[slot] =
            usage->tenants == 0 ? 0 : other_holder(scope, slot, held->entry.link.id);
    scope_refresh(scope, slot);
}

struct held *lease_grant(struct engine_request *request, uint64_t id, const uint32_t *slots,
                         uint32_t slot_count, uint32_t replicas)
{
    struct scope *scope = request->scope;
    struct engine *engine = scope->engine;
    struct held *held = lease_new(engine, slot_count);

    if (held == NULL)
        return NULL;
    held->entry.link.id = id;
    held->entry.at = TIME_NEVER;
    held->request = request;
    held->slot_count = slot_count;
    held->replicas = replicas;
    held->state = LEASE_HELD;
    held->claim = 0;
    held->granted = engine->now;
    held->expires = TIME_NEVER;
    held->force_at = TIME_NEVER;
    held->inside = NULL;
    for (uint32_t i = 0; i < slot_count; i++) {
        held->slots[i] = slots[i];
        take_slot(scope, request, slots[i], id);
    }
    request->references++;
    list_append(&engine->leases, &held->in_engine);
    id_map_add(&engine->lease_ids, &held->entry.link);
    hosts_add(scope->host_usage, request, held->slots, slot_count);
    charge(request, slot_count);
    scope->helpers += request->what.opportunistic;
    if (request->what.time.known) {
        held->expires = request->what.time.value > (uint64_t)(TIME_NEVER - engine->now)
                            ? TIME_NEVER
                            : engine->now + (int64_t)request->what.time.value;
        scope->limited += held->expires != TIME_NEVER;
        lease_update_timer(held);
    }
    return held;
}

void lease_remove(struct held *held)
{
    struct engine_request *request = held->request;
    struct scope *scope = request->scope;
    struct engine *engine = scope->engine;

    scope->limited -= held->expires != TIME_NEVER;
    scope->helpers -= request->what.opportunistic;
    scope->helpers_noticed -= lease_is_going(held);
    refund(request, held->slot_count);
    hosts_subtract(scope->host_usage, request, held->slots, held->slot_count);
    for (uint32_t i = 0; i < held->slot_count; i++)
        give_slot(scope, held, held->slots[i]);
    timer_clear(engine, &held->entry);
    id_map_remove(&engine->lease_ids, &held->entry.link);
    list_remove(&held->in_engine);
    lease_recycle(engine, held);
    request_unreference(request);
}
