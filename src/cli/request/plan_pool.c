/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/request/plan_pool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/claim.h"
#include "client/session.h"
#include "engine/placement/filter.h"
#include "launch/masks/inherited_masks.h"
#include "view/pool_view_fetch.h"

/* Returns whether the machine has the pool's devices in the pool's order. If not, the inventory has
 * changed since the pool was opened. */
static bool is_same_machine(const struct machine *machine, const struct pool_view *view)
{
    bool same = machine->devices.count == view->snapshot.slots.count;

    for (size_t i = 0; same && i < machine->devices.count; i++)
        same = device_id_equals(machine->devices.items[i].id,
                                view->snapshot.slots.items[i].device->id);
    return same;
}

/* Copies the links and moves the hosts of devices that both machines have: the wire does not carry
 * them. */
static int copy_links_and_hosts(struct machine *to, struct machine *from, struct berth_error *error)
{
    const struct link *link;
    struct device *device;

    vector_for_each (link, &from->links) {
        size_t one = device_list_find(&to->devices, from->devices.items[link->between[0]].id);
        size_t other = device_list_find(&to->devices, from->devices.items[link->between[1]].id);
        struct link *taken;

        if (one == to->devices.count || other == to->devices.count)
            continue;
        taken = vector_append(&to->links);
        if (taken == NULL)
            return error_set_memory(error);
        *taken = *link;
        taken->between[0] = one < other ? one : other;
        taken->between[1] = one < other ? other : one;
    }
    vector_for_each (device, &to->devices) {
        size_t there = device_list_find(&from->devices, device->id);

        device->host = there < from->devices.count ? from->devices.items[there].host : 0;
    }
    to->hosts = from->hosts;
    from->hosts = (struct host_list){0};
    return 0;
}

/* Replaces the machine's devices with the pool's, which are moved out of the view: it keeps only
 * their ids. Keeps the links and hosts of devices that both have. */
static int move_devices(struct machine *machine, struct pool_view *view, struct berth_error *error)
{
    struct machine taken = {0};
    struct slot_info *slot;
    int code;

    if (view->snapshot.slots.count > 0 &&
        vector_reserve(&taken.devices, view->snapshot.slots.count) < 0)
        return error_set_memory(error);
    vector_for_each (slot, &view->snapshot.slots) {
        struct device *device = vector_append(&taken.devices);

        *device = *slot->device;
        *slot->device = (struct device){.id = device->id};
    }
    code = copy_links_and_hosts(&taken, machine, error);
    machine_finish(machine);
    *machine = taken;
    return code;
}

/* Returns the first lease on the slot with the request's own parent; NULL: none. */
static const struct lease_info *find_blocking_lease(const struct plan_pool *pool, size_t *use,
                                                    size_t slot)
{
    for (; *use < pool->view.uses.count && pool->view.uses.items[*use].slot == slot; (*use)++) {
        const struct lease_info *lease =
            &pool->view.snapshot.leases.items[pool->view.uses.items[*use].lease];

        if (lease->parent == pool->parent)
            return lease;
    }
    return NULL;
}

/* Returns whether the tenants leave too little memory for the request. The sampled free memory
 * counts if a lease reserves nothing. But such a lease may have required free memory, which the
 * pool counts as used and the wire does not carry. Then only the pool can tell whether the sample
 * counts. */
static bool lacks_memory(const struct plan_pool *pool, size_t slot, const struct device *device,
                         const struct request *request)
{
    uint64_t used = pool->view.snapshot.slots.items[slot].memory_used;
    const struct figure *sample = &device->load.memory_free;
    struct optional_number total = device->memory_total;
    uint64_t reserved = 0;
    bool open = false;

    if (filter_memory(request) == 0)
        return false;
    if (total.known && filter_fitting(request, total.value > used ? total.value - used : 0) == 0)
        return true;
    for (size_t use = pool_view_first_use(&pool->view, slot);
         use < pool->view.uses.count && pool->view.uses.items[use].slot == slot; use++) {
        const struct lease_info *lease =
            &pool->view.snapshot.leases.items[pool->view.uses.items[use].lease];

        reserved += lease->parent == 0 && lease->memory.known ? lease->memory.value : 0;
        open = open || (lease->parent == 0 && !lease->memory.known);
    }
    if (!open || reserved != used || !sample->known)
        return false;
    return filter_fitting(request, sample->value > 0 && (uint64_t)sample->value > used
                                       ? (uint64_t)sample->value - used
                                       : 0) == 0;
}

/* Returns whether another user holds the device, which is shared by MPS. */
static bool is_held_by_another_user(const struct plan_pool *pool, size_t slot)
{
    size_t use = pool_view_first_use(&pool->view, slot);

    return use < pool->view.uses.count && pool->view.uses.items[use].slot == slot &&
           pool->view.snapshot.leases.items[pool->view.uses.items[use].lease].uid != geteuid();
}

/* Returns why a shared device cannot take one more tenant. Not all reasons are known here. The
 * pool's limit on tenants is unknown, so the default limit counts only if the pool refused the
 * request. */
static enum filter_verdict check_shared_slot(const struct plan_pool *pool, size_t slot,
                                             const struct device *device,
                                             const struct request *request)
{
    const struct slot_info *item = &pool->view.snapshot.slots.items[slot];
    const struct filter_terms *terms = &filter_default_terms;

    if (item->state != SLOT_STATE_SHARED || request->sharing == SHARING_EXCLUSIVE ||
        item->sharing != request->sharing)
        return FILTER_BUSY;
    if (item->sharing == SHARING_MPS && is_held_by_another_user(pool, slot))
        return FILTER_OTHER_USER;
    if (pool->verdict == BERTH_ERROR_BUSY &&
        item->tenants >=
            (item->sharing == SHARING_MPS ? terms->mps_tenants : terms->time_slice_tenants))
        return FILTER_TENANTS;
    if ((uint64_t)item->share_used + filter_share(request, terms) > SHARE_WHOLE)
        return FILTER_SHARED_OUT;
    return lacks_memory(pool, slot, device, request) ? FILTER_MEMORY_TAKEN : FILTER_PASSES;
}

static enum filter_verdict check_slot(const struct plan_pool *pool, size_t slot,
                                      const struct device *device, const struct request *request)
{
    size_t use = pool_view_first_use(&pool->view, slot);

    if (pool->parent != 0)
        return find_blocking_lease(pool, &use, slot) != NULL ? FILTER_BUSY : FILTER_PASSES;
    if (pool_info_state_is_free(pool->view.snapshot.slots.items[slot].state))
        return FILTER_PASSES;
    return check_shared_slot(pool, slot, device, request);
}

/* Returns whether the enclosing lease has the slot; true if there is no enclosing lease. */
static bool is_in_parent_lease(const struct plan_pool *pool, size_t slot)
{
    size_t use = pool_view_first_use(&pool->view, slot);

    if (pool->parent == 0)
        return true;
    for (; use < pool->view.uses.count && pool->view.uses.items[use].slot == slot; use++) {
        if (pool->view.snapshot.leases.items[pool->view.uses.items[use].lease].id == pool->parent)
            return true;
    }
    return false;
}

/* Removes the devices that the request may not see. */
static int keep_visible_devices(struct plan_pool *pool, struct machine *machine,
                                const struct string_list *masks, struct berth_error *error)
{
    struct bitset visible;
    int code;

    pool->slots = calloc(machine->devices.count + 1, sizeof(*pool->slots));
    if (pool->slots == NULL)
        return error_set_memory(error);
    code = inherited_masks_find_visible(masks, machine, &visible, error);
    if (code < 0)
        return code;
    for (size_t slot = 0; slot < machine->devices.count; slot++) {
        if (pool->view.snapshot.slots.items[slot].state == SLOT_STATE_GONE ||
            !is_in_parent_lease(pool, slot))
            bitset_remove(&visible, slot);
    }
    code = machine_keep(machine, &visible, pool->slots, error);
    bitset_finish(&visible);
    return code;
}

/* Returns the free share of a device in millionths. */
static uint32_t find_share_left(const struct plan_pool *pool, size_t slot)
{
    const struct slot_info *item = &pool->view.snapshot.slots.items[slot];

    if (pool->parent != 0 || pool_info_state_is_free(item->state))
        return SHARE_WHOLE;
    return item->state == SLOT_STATE_SHARED && item->share_used < SHARE_WHOLE
               ? SHARE_WHOLE - item->share_used
               : 0;
}

/* Finds the busy devices of the machine, and why they are busy. */
static int find_busy(struct plan_pool *pool, const struct machine *machine,
                     const struct request *request, struct berth_error *error)
{
    pool->reasons = calloc(machine->devices.count + 1, sizeof(*pool->reasons));
    pool->left = calloc(machine->devices.count + 1, sizeof(*pool->left));
    if (pool->reasons == NULL || pool->left == NULL ||
        bitset_init(&pool->busy, machine->devices.count) < 0)
        return error_set_memory(error);
    for (size_t slot = 0; slot < machine->devices.count; slot++) {
        pool->reasons[slot] =
            check_slot(pool, pool->slots[slot], &machine->devices.items[slot], request);
        pool->left[slot] = find_share_left(pool, pool->slots[slot]);
        if (pool->reasons[slot] != FILTER_PASSES)
            bitset_add(&pool->busy, slot);
    }
    return 0;
}

/* Queries whether the pool would grant the request at once. A refusal is not an error: it is stored
 * in `pool`. */
static int test_request(struct plan_pool *pool, struct session *session,
                        struct wire_message *question, struct berth_error *error)
{
    struct wire_message answer;
    int code = pool_view_fetch_answer(session, question, WIRE_DONE, &answer, &pool->refusal);

    switch (code) {
    case 0:
        wire_message_finish(&answer);
        break;
    case BERTH_ERROR_BUSY:
    case BERTH_ERROR_IMPOSSIBLE:
    case BERTH_ERROR_NO_DEVICE:
        break;
    default:
        return error_set(error, code, "%s", pool->refusal.message);
    }
    pool->verdict = code;
    return 0;
}

/* Replaces the machine with the pool's. If the hardware was scanned but the pool has an inventory,
 * no device is the same, even with an equal id. */
static int replace_machine(struct machine *machine, bool is_virtual, struct pool_view *view,
                           struct berth_error *error)
{
    if (is_virtual && is_same_machine(machine, view))
        return 0;
    if (!is_virtual && view->about.inventory != NULL)
        machine_finish(machine);
    return move_devices(machine, view, error);
}

/* Fetches the pool, queries its verdict, and replaces the machine with the pool's. */
static int query_live_pool(const struct request_options *options, struct session *session,
                           struct machine *machine, bool is_virtual, struct plan_pool *pool,
                           struct berth_error *error)
{
    struct request request = options->request; /* borrows its strings and lists */
    const struct claim_facts facts = {
        .request = &request,
        .inventory = session->address->inventory,
    };
    struct client_claim claim;
    int code = claim_init_test(&claim, &facts, error);

    /* Best-effort scheduling makes one claim per replica. */
    if (request.scheduling == SCHEDULING_BEST_EFFORT)
        request.replicas = 1;
    request.nonblock = true;
    request.wait = (struct optional_number){0};
    pool->parent = claim.question.parent;
    if (code == 0)
        code = pool_view_fetch_retrying(session, &pool->view, error);
    if (code == 0)
        code = test_request(pool, session, &claim.question, error);
    if (code == 0)
        code = replace_machine(machine, is_virtual, &pool->view, error);
    if (code == 0)
        code = keep_visible_devices(pool, machine, &claim.masks, error);
    if (code == 0)
        code = find_busy(pool, machine, &options->request, error);
    claim_finish(&claim);
    return code;
}

int plan_pool_find(const struct request_options *options, struct machine *machine, bool is_virtual,
                   struct plan_pool *ret_pool, struct berth_error *error)
{
    struct plan_pool pool = {.live = true};
    struct pool_address address;
    struct session session;
    int code = pool_address_find(options->inventory, &address, error);

    if (code < 0)
        return code;
    code = session_open(&session, &address, DIAL_ONLY, error);
    if (code == 0) {
        code = query_live_pool(options, &session, machine, is_virtual, &pool, error);
        session_close(&session);
    } else if (code == BERTH_ERROR_NOT_FOUND && address.own) {
        pool.live = false;
        code = is_virtual ? 0 : inherited_masks_narrow(environ, machine, error);
    }
    pool_address_finish(&address);
    if (code < 0)
        plan_pool_finish(&pool);
    else
        *ret_pool = pool;
    return code;
}

void plan_pool_finish(struct plan_pool *pool)
{
    pool_view_finish(&pool->view);
    bitset_finish(&pool->busy);
    free(pool->slots);
    free(pool->reasons);
    free(pool->left);
    *pool = (struct plan_pool){0};
}
