/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/mps_tenants.h"

#include "base/error.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps.h"
#include "daemon/mps/mps_site.h"

static bool has_nvidia(const struct pool *pool)
{
    return (pool->vendors & (UINT32_C(1) << VENDOR_NVIDIA)) != 0;
}

static int check_user(const struct pool *pool, uint32_t uid, struct berth_error *error)
{
    if (uid == pool->owner || pool->may_become_others)
        return 0;
    if (!pool->rules.mps)
        return error_set(
            error, BERTH_ERROR_IMPOSSIBLE,
            "sharing mps: this pool runs MPS only for user %u (others need mps: yes in "
            "its configuration)",
            pool->owner);
    return error_set(error, BERTH_ERROR_IMPOSSIBLE,
                     "sharing mps: the daemon cannot become user %u: it was started without "
                     "CAP_SETUID and CAP_SETGID, or before mps: yes",
                     uid);
}

int mps_tenants_check(struct pool *pool, const struct request *request, uint32_t uid,
                      struct berth_error *error)
{
    int code;

    /* Without a device that MPS can share, the engine gives that as the reason. */
    if (request->sharing != SHARING_MPS || !has_nvidia(pool))
        return 0;
    code = mps_check(pool->mps, error);
    return code < 0 ? code : check_user(pool, uid, error);
}

/* ---- Tenants of a slot ---- */

struct tenant_search {
    const struct pool *pool;
    uint32_t slot;
    uint64_t leaving;
    const struct job *found;
};

static bool shares_by_mps(const struct lease_view *view)
{
    return engine_request_what(view->request)->sharing == SHARING_MPS;
}

static bool has_slot(const struct lease_view *view, uint32_t slot)
{
    for (uint32_t i = 0; i < view->slot_count; i++) {
        if (view->slots[i] == slot)
            return true;
    }
    return false;
}

/* Returns whether the lease is `leaving`, or within it. */
static bool is_leaving(const struct engine *engine, const struct lease_view *view, uint64_t leaving)
{
    struct lease_view outer = *view;

    while (leaving != 0) {
        if (outer.id == leaving)
            return true;
        if (outer.parent == 0 || !engine_get_lease(engine, outer.parent, &outer))
            break;
    }
    return false;
}

static void check_lease(void *context, const struct lease_view *view)
{
    struct tenant_search *search = context;
    const struct job *job;

    if (search->found != NULL || !shares_by_mps(view) || !has_slot(view, search->slot) ||
        is_leaving(search->pool->engine, view, search->leaving))
        return;
    job = job_of_lease(search->pool, view->id);
    /* A claim that is being refused needs no control daemon any more. */
    if (job != NULL && !job->adopted && !job->leaves_mps &&
        !(job_is_preparing(job) && job->end != 0))
        search->found = job;
}

static const struct job *find_tenant(const struct pool *pool, uint32_t slot, uint64_t leaving)
{
    struct tenant_search search = {pool, slot, leaving, NULL};

    engine_each_lease(pool->engine, check_lease, &search);
    return search.found;
}

bool mps_tenants_has(const struct pool *pool, uint32_t slot, uint64_t leaving)
{
    return find_tenant(pool, slot, leaving) != NULL;
}

/* ---- Sites ---- */

static struct device_id device_of(const struct pool *pool, uint32_t slot)
{
    return engine_machine(pool->engine)->devices.items[slot].id;
}

static int make_site(const struct pool *pool, const struct job *job, const struct lease_view *view,
                     uint32_t slot, struct mps_site *ret_site, struct berth_error *error)
{
    const struct connection *connection = job->connection;
    struct mps_site_source source = {
        .base = mps_base(pool->mps),
        .user = {.uid = job->holder->uid, .gid = USER_IDENTITY_NO_GROUP},
        .request = engine_request_what(view->request),
        .device = device_of(pool, slot),
    };

    /* The group is only for users that are missing from the user database; it is never root's
     * group. */
    if (connection != NULL && connection->uid == job->holder->uid && connection->gid != 0)
        source.user.gid = connection->gid;
    return mps_site_make(&source, ret_site, error);
}

bool mps_tenants_find_site(const struct pool *pool, uint32_t slot, struct mps_site *ret_site)
{
    const struct job *job = find_tenant(pool, slot, 0);
    struct lease_view view;

    return job != NULL && engine_get_lease(pool->engine, job->by_lease.id, &view) &&
           make_site(pool, job, &view, slot, ret_site, NULL) == 0;
}

/* ---- Before the holder is notified ---- */

/* Refuses a claim whose holder was not notified of its lease yet. */
static void refuse_claim(struct pool *pool, struct job *job, uint32_t slot, const char *why)
{
    struct lease_watch *watch = job_lease_watch(pool, job);
    struct text refusal = {0};

    if (job->end != 0)
        return;
    text_append_format(&refusal, "cannot start the MPS control daemon of %s: %s",
                       device_id_format(device_of(pool, slot)).text, why);
    /* Without memory the client gets only the kind of the end. */
    if (watch != NULL)
        watch->refusal = text_detach(&refusal);
    text_finish(&refusal);
    job->end = LEASE_END_CANCELLED;
    lease_ending_done(pool, job);
}

/* Starts the slot's control daemon, if there is none. Returns whether the holder must wait. */
static bool prepare_slot(struct pool *pool, struct job *job, const struct lease_view *view,
                         uint32_t slot)
{
    struct berth_error error = BERTH_ERROR_INIT;
    enum mps_readiness readiness;
    struct mps_site site;

    if (make_site(pool, job, view, slot, &site, &error) < 0) {
        refuse_claim(pool, job, slot, error.message);
        return true;
    }
    readiness = mps_need(pool->mps, slot, &site);
    mps_site_finish(&site);
    if (readiness == MPS_BUSY)
        refuse_claim(pool, job, slot, "the outer lease already uses an MPS control daemon there");
    return readiness != MPS_ANSWERS;
}

bool mps_tenants_prepare(struct pool *pool, struct job *job)
{
    struct lease_view view;
    bool waits = false;

    if (job->adopted || !job->unprepared ||
        !engine_get_lease(pool->engine, job->by_lease.id, &view) || !shares_by_mps(&view))
        return false;
    job->waits_for_mps = true;
    for (uint32_t i = 0; i < view.slot_count && job->end == 0; i++)
        waits = prepare_slot(pool, job, &view, view.slots[i]) || waits;
    job->waits_for_mps = waits;
    return waits;
}

static bool waits_for_slot(const struct pool *pool, const struct job *job, uint32_t slot)
{
    struct lease_view view;

    return job->waits_for_mps && job->end == 0 && job_is_preparing(job) &&
           engine_get_lease(pool->engine, job->by_lease.id, &view) && has_slot(&view, slot);
}

bool mps_tenants_is_awaited(const struct pool *pool, uint32_t slot)
{
    list_for_each (link, &pool->jobs) {
        if (waits_for_slot(pool, container_of(link, struct job, in_pool), slot))
            return true;
    }
    return false;
}

void mps_tenants_notify(struct pool *pool, uint32_t slot)
{
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (waits_for_slot(pool, job, slot))
            engine_events_notify_holder(pool, job);
    }
}

void mps_tenants_refuse(struct pool *pool, uint32_t slot, const char *why)
{
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (waits_for_slot(pool, job, slot))
            refuse_claim(pool, job, slot, why);
    }
}

/* ---- When a lease ends ---- */

void mps_tenants_leave(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    /* A view is valid until the next call that changes the engine. */
    for (uint32_t i = 0;
         engine_get_lease(pool->engine, job->by_lease.id, &view) && i < view.slot_count; i++) {
        uint32_t slot = view.slots[i];

        if (mps_is_present(pool->mps, slot) && !mps_tenants_has(pool, slot, job->by_lease.id))
            mps_stop(pool->mps, slot);
    }
}

/* Returns whether a control daemon of the job's devices is ending, and has no other tenant. */
static bool is_any_ending(const struct pool *pool, const struct job *job)
{
    struct lease_view view;

    if (!engine_get_lease(pool->engine, job->by_lease.id, &view))
        return false;
    for (uint32_t i = 0; i < view.slot_count; i++) {
        if (mps_is_ending(pool->mps, view.slots[i]) &&
            !mps_tenants_has(pool, view.slots[i], job->by_lease.id))
            return true;
    }
    return false;
}

bool mps_tenants_must_keep(const struct pool *pool, struct job *job)
{
    job->leaves_mps = is_any_ending(pool, job);
    return job->leaves_mps;
}

void mps_tenants_gone(struct pool *pool)
{
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (job->leaves_mps && !mps_tenants_must_keep(pool, job))
            engine_vacated(pool->engine, job->by_lease.id, NULL);
    }
}

void mps_tenants_review(struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_slots_max(pool->engine); slot++) {
        struct mps_site site = {0};

        if (!mps_tenants_has(pool, slot, 0))
            mps_stop(pool->mps, slot);
        else if (mps_tenants_find_site(pool, slot, &site))
            mps_need(pool->mps, slot, &site);
        mps_site_finish(&site);
    }
}
