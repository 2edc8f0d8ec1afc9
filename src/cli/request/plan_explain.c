/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds a live pool's reasons to a plan: earlier claims, and the holders of blocking devices.
 */
#include "base/system/user_names.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "cli/request/plan_pool.h"
#include "engine/placement/filter.h"
#include "view/reason_text.h"
#include "view/view_facts.h"

/* The maximum number of leases or claims to name; the rest is counted. */
enum { NAMED_MAX = 4 };

/* Removes all devices from the placement: none is granted now. */
static void forget_devices(struct placement *placement)
{
    placement->now = false;
    placement->replicas = 0;
    placement->slots.count = 0;
    placement->sizes.count = 0;
}

static void append_user(struct text *out, struct user_names *users, uint32_t uid)
{
    utf8_append_inert(out, user_names_find(users, uid));
}

/* Returns whether the lease holds this slot and the request could otherwise use it. */
static bool is_blocking(const struct plan_pool *pool, const struct placement_question *question,
                        const struct lease_info *lease, size_t slot)
{
    const struct device *device = &question->machine->devices.items[slot];

    return lease->parent == pool->parent && bitset_has(&pool->busy, slot) &&
           filter_facts(question->request, device, &filter_default_terms) == FILTER_PASSES &&
           device_id_list_has(&lease->devices, device->id);
}

/* Appends the devices of a lease that block the request, and returns their number. */
static size_t append_devices(struct text *out, const struct plan_pool *pool,
                             const struct placement_question *question,
                             const struct lease_info *lease)
{
    size_t count = 0;

    for (size_t slot = 0; slot < question->machine->devices.count; slot++) {
        if (!is_blocking(pool, question, lease, slot))
            continue;
        text_append_format(out, "%s%s", count++ == 0 ? "; " : ",",
                           device_id_format(question->machine->devices.items[slot].id).text);
    }
    return count;
}

static void append_holder(struct text *out, const struct plan_pool *pool, struct user_names *users,
                          const struct lease_info *lease, size_t devices)
{
    text_append_format(out, " %s %s by ", devices == 1 ? "is" : "are",
                       lease->sharing == SHARING_EXCLUSIVE ? "held" : "shared");
    append_user(out, users, lease->uid);
    text_append_format(out, " (lease %llu", (unsigned long long)lease->id);
    if (lease->expires.known)
        text_append_format(
            out, ", %s left",
            quantity_format_duration(view_time_between(pool->view.snapshot.time,
                                                       view_time_from_wire(lease->expires.value)))
                .text);
    text_append_char(out, ')');
}

static void append_holders(const struct plan_pool *pool, const struct placement_question *question,
                           struct user_names *users, struct text *out)
{
    const struct lease_info *lease;
    struct text devices = {0};
    size_t named = 0;

    vector_for_each (lease, &pool->view.snapshot.leases) {
        size_t count;

        text_clear(&devices);
        count = append_devices(&devices, pool, question, lease);
        if (count == 0)
            continue;
        if (named++ < NAMED_MAX) {
            text_append(out, text_string(&devices));
            append_holder(out, pool, users, lease, count);
        }
        out->failed |= devices.failed;
    }
    if (named > NAMED_MAX)
        text_append_format(out, "; and %zu more %s", named - NAMED_MAX,
                           named == NAMED_MAX + 1 ? "lease" : "leases");
    text_finish(&devices);
}

/* Appends the claims that already wait, or the pool's reason if there are none. */
static void append_queue(const struct plan_pool *pool, struct user_names *users, struct text *out)
{
    const struct claim_info *claim;
    size_t count = 0;

    vector_for_each (claim, &pool->view.snapshot.claims)
        count += claim->parent == pool->parent && !claim->opportunistic;
    if (count == 0) {
        text_append(out, ": ");
        reason_text_append(out, pool->refusal.message, users);
    } else {
        text_append_format(out, ", but %zu %s before it", count,
                           count == 1 ? "claim is" : "claims are");
    }
    count = 0;
    vector_for_each (claim, &pool->view.snapshot.claims) {
        if (claim->parent != pool->parent || claim->opportunistic || count == NAMED_MAX)
            continue;
        text_append_format(out, "%s%llu of ", count++ == 0 ? ": " : ", ",
                           (unsigned long long)claim->id);
        append_user(out, users, claim->uid);
    }
}

void plan_pool_explain(const struct plan_pool *pool, const struct placement_question *question,
                       struct placement *placement)
{
    struct text *why = &placement->why;
    struct user_names users = {0};

    if (pool->verdict == BERTH_ERROR_BUSY && placement->now) {
        forget_devices(placement);
        text_clear(why);
        text_append(why, "needs ");
        request_describe(question->request, why);
        append_queue(pool, &users, why);
    } else if (pool->verdict != 0 && pool->verdict != BERTH_ERROR_BUSY && placement->satisfiable) {
        forget_devices(placement);
        placement->satisfiable = false;
        text_clear(why);
        reason_text_append(why, pool->refusal.message, &users);
    } else if (placement->satisfiable && !placement->now) {
        append_holders(pool, question, &users, why);
    }
    user_names_finish(&users);
}
