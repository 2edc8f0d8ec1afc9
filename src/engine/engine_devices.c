/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of devices, blocks, loads, ranks and limits.
 */
#include <stdlib.h>

#include "base/error.h"
#include "engine/internal.h"

void engine_refuse_impossible(struct engine *engine)
{
    if (engine->paused)
        return;
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        for (size_t i = 0; i < scope->lanes.count;) {
            struct engine_request *request = scope->lanes.items[i];

            if (request->possible)
                i++;
            else
                lifecycle_refuse_claim(
                    container_of(list_first(&request->waiting), struct claim, in_lane),
                    REFUSAL_IMPOSSIBLE);
        }
    }
}

/* Compiles a request again, and updates the slots that its lane contests. */
static void recompile_request(struct engine_request *request)
{
    if (request->waiting_count > 0)
        lane_update_contested(request, false);
    request->stale = engine_request_compile(request) < 0;
    if (request->stale) {
        request->simple = request->plain = request->fast_path = false;
        request->engine->retry = true;
    }
    if (request->waiting_count > 0)
        lane_update_contested(request, true);
}

void engine_recompile_requests(struct engine *engine)
{
    policy_tables_forget(engine);
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        list_for_each (request, &scope->requests)
            recompile_request(container_of(request, struct engine_request, in_scope));
    }
}

static void recompile_and_refuse(struct engine *engine)
{
    engine_recompile_requests(engine);
    engine_refuse_impossible(engine);
}

void engine_pause(struct engine *engine)
{
    engine->paused = true;
}

void engine_resume(struct engine *engine)
{
    engine->paused = false;
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        list_for_each (other, &scope->requests) {
            struct engine_request *request = container_of(other, struct engine_request, in_scope);

            if (request->stale)
                recompile_request(request);
        }
    }
    engine_refuse_impossible(engine);
    schedule_all(engine);
}

static void notify_device(const struct engine *engine, uint32_t slot)
{
    if (engine_wants_event(engine, EVENT_DEVICE))
        engine_notify(engine, (struct engine_event){
                                  .type = EVENT_DEVICE,
                                  .slot = slot,
                                  .blocks = engine->status[slot].blocks,
                                  .health = (uint8_t)engine->machine.devices.items[slot].health,
                                  .present = engine->status[slot].present,
                              });
}

/* Updates all scopes after a change of a slot. */
static void refresh_slot(struct engine *engine, uint32_t slot)
{
    list_for_each (link, &engine->scopes)
        scope_refresh(container_of(link, struct scope, in_engine), slot);
    engine_node_changed(engine, slot);
}

int engine_device_add(struct engine *engine, struct device *device, uint32_t *ret_slot,
                      struct berth_error *error)
{
    struct device_list *devices = &engine->machine.devices;
    size_t slot = device_list_find(devices, device->id);

    if (slot == engine->size)
        return error_set(error, BERTH_ERROR_LIMIT, "expected at most %zu devices, got one more: %s",
                         engine->size, device_id_format(device->id).text);
    if (device->host >= engine->host_count)
        return error_set(error, BERTH_ERROR_INVALID, "%s: expected a known host, got %u",
                         device_id_format(device->id).text, device->host);
    if (slot < devices->count && devices->items[slot].host != device->host)
        return error_set(error, BERTH_ERROR_INVALID, "%s: expected host %u as before, got %u",
                         device_id_format(device->id).text, devices->items[slot].host,
                         device->host);
    if (slot < devices->count) {
        /* The device was here before: replace its facts. */
        device_finish(&devices->items[slot]);
        devices->items[slot] = *device;
    } else {
        devices->items[devices->count++] = *device; /* the capacity is `size` from the start */
        if (placement_search_add_slot(&engine->search, slot) < 0) {
            devices->count--;
            return error_set_memory(error);
        }
    }
    *device = (struct device){0};
    engine->status[slot].present = true;
    refresh_slot(engine, (uint32_t)slot);
    notify_device(engine, (uint32_t)slot);
    recompile_and_refuse(engine);
    schedule_all(engine);
    *ret_slot = (uint32_t)slot;
    return 0;
}

static void set_present(struct engine *engine, uint32_t slot, bool present)
{
    if (engine->status[slot].present == present)
        return;
    engine->status[slot].present = present;
    refresh_slot(engine, slot);
    notify_device(engine, slot);
    recompile_and_refuse(engine);
    schedule_all(engine);
}

void engine_device_gone(struct engine *engine, uint32_t slot)
{
    set_present(engine, slot, false);
}

void engine_device_back(struct engine *engine, uint32_t slot)
{
    set_present(engine, slot, true);
}

void engine_device_health(struct engine *engine, uint32_t slot, enum health health)
{
    if (engine->machine.devices.items[slot].health == health)
        return;
    engine->machine.devices.items[slot].health = health;
    refresh_slot(engine, slot);
    notify_device(engine, slot);
    schedule_all(engine);
}

void engine_device_observe(struct engine *engine, uint32_t slot, struct device *from)
{
    struct device *device = &engine->machine.devices.items[slot];

    free(device->health_reason);
    device->health_reason = from->health_reason;
    from->health_reason = NULL;
    device_process_list_finish(&device->processes);
    device->processes = from->processes;
    from->processes = (struct device_process_list){0};
    device->asleep = from->asleep;
    device->old = from->old;
    device->hides_processes = from->hides_processes;
    if (from->memory_idle.known)
        device->memory_idle = from->memory_idle;
}

struct device_process_list *engine_device_processes(struct engine *engine, uint32_t slot)
{
    return &engine->machine.devices.items[slot].processes;
}

void engine_device_mark_old(struct engine *engine, uint32_t slot)
{
    engine->machine.devices.items[slot].old = true;
}

static void set_blocks(struct engine *engine, uint32_t slot, uint32_t blocks)
{
    if (engine->status[slot].blocks == blocks)
        return;
    engine->status[slot].blocks = blocks;
    refresh_slot(engine, slot);
    notify_device(engine, slot);
    schedule_all(engine);
}

void engine_block(struct engine *engine, uint32_t slot, enum block reason)
{
    set_blocks(engine, slot, engine->status[slot].blocks | (uint32_t)reason);
}

void engine_unblock(struct engine *engine, uint32_t slot, enum block reason)
{
    set_blocks(engine, slot, engine->status[slot].blocks & ~(uint32_t)reason);
}

void engine_set_load(struct engine *engine, uint32_t slot, const struct load *load)
{
    engine->machine.devices.items[slot].load = *load;
    list_for_each (link, &engine->scopes)
        container_of(link, struct scope, in_engine)->slots[slot].picks = 0;
    engine_node_changed(engine, slot);
    schedule_all(engine);
}

/* Schedules after a change that affects only policies. It may move the sets of reservations. */
static void schedule_all_moved(struct engine *engine)
{
    list_for_each (link, &engine->scopes)
        schedule_moved(container_of(link, struct scope, in_engine));
}

void engine_set_work(struct engine *engine, uint32_t slot, uint64_t queued, uint64_t active)
{
    list_for_each (link, &engine->scopes) {
        struct policy_slot *view = &container_of(link, struct scope, in_engine)->slots[slot];

        view->queued = queued;
        view->active = active;
        view->picks = 0;
    }
    schedule_all_moved(engine);
}

void engine_set_weight(struct engine *engine, uint32_t slot, uint32_t weight)
{
    list_for_each (link, &engine->scopes)
        container_of(link, struct scope, in_engine)->slots[slot].weight = weight;
    schedule_all_moved(engine);
}

/* Finds again which requests are simple, because the first rank was set or the last one removed. */
static void reapply_limits(struct engine *engine)
{
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        list_for_each (other, &scope->requests) {
            struct engine_request *request = container_of(other, struct engine_request, in_scope);

            if (!request->stale)
                engine_request_apply_limits(request);
        }
    }
}

void engine_set_rank(struct engine *engine, uint32_t slot, uint32_t rank)
{
    uint32_t before = engine->root.slots[slot].rank;
    bool ranked = engine->ranked > 0;

    if (before == rank)
        return;
    engine->ranked += rank != 0;
    engine->ranked -= before != 0;
    list_for_each (link, &engine->scopes)
        container_of(link, struct scope, in_engine)->slots[slot].rank = rank;
    rating_index_forget_all(engine);
    if (ranked != (engine->ranked > 0))
        reapply_limits(engine);
    schedule_all_moved(engine);
}

/* ---- Limits ---- */

static struct account *find_account(struct engine *engine, uint32_t key, bool is_group)
{
    list_for_each (link, &engine->accounts) {
        struct account *account = container_of(link, struct account, in_engine);

        if (account->key == key && account->is_group == is_group)
            return account;
    }
    return NULL;
}

/* Finds again which accounts limit each request, and how much they use. */
static void apply_limits(struct engine *engine)
{
    list_for_each (link, &engine->accounts)
        container_of(link, struct account, in_engine)->used = 0;
    list_for_each (link, &engine->root.requests)
        engine_request_apply_limits(container_of(link, struct engine_request, in_scope));
    list_for_each (link, &engine->leases) {
        struct lease *held = container_of(link, struct lease, in_engine);

        for (size_t i = 0; i < held->request->account_count; i++) {
            held->request->accounts[i]->used += (uint64_t)held->request->share * held->slot_count;
            held->touched |= LEASE_TOUCHED_REST; /* so that its end reduces the use */
        }
    }
    engine_refuse_impossible(engine);
    schedule_scope(&engine->root);
}

static int set_limit(struct engine *engine, uint32_t key, bool is_group, uint64_t max,
                     struct berth_error *error)
{
    struct account *account = find_account(engine, key, is_group);

    if (account == NULL && max == UINT64_MAX)
        return 0;
    if (account == NULL) {
        account = calloc(1, sizeof(*account));
        if (account == NULL)
            return error_set_memory(error);
        account->key = key;
        account->is_group = is_group;
        list_append(&engine->accounts, &account->in_engine);
    }
    account->max = max;
    if (max == UINT64_MAX)
        list_remove(&account->in_engine);
    apply_limits(engine);
    if (max == UINT64_MAX)
        free(account);
    return 0;
}

int engine_limit_user(struct engine *engine, uint32_t uid, uint64_t max, struct berth_error *error)
{
    return set_limit(engine, uid, false, max, error);
}

int engine_limit_group(struct engine *engine, uint32_t group, uint64_t max,
                       struct berth_error *error)
{
    return set_limit(engine, group, true, max, error);
}
