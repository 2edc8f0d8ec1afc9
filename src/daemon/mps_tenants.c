/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom control daemons are for: who may have one, who waits for it, who needs it still.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/ending.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/mps_control.h"
#include "daemon/settle.h"
#include "model/mps_directories.h"

/* How long what was found out about the program is good. */
#define PROGRAM_GOOD DURATION_SECOND

#define PROGRAM_NAME "nvidia-cuda-mps-control"

/* ---- The program ---- */

/* Takes the program if it can be run; says what is wrong with it else. */
static bool try_program(struct mps *mps, const char *path)
{
    const char *fault = configuration_program_fault(path);

    text_clear(&mps->fault);
    if (fault != NULL) {
        text_append_format(&mps->fault, "%s: %s", path, fault);
        return false;
    }
    if (mps->program != NULL && strcmp(mps->program, path) == 0)
        return true;
    free(mps->program);
    mps->program = strdup(path);
    return mps->program != NULL;
}

static bool try_defaults(struct mps *mps)
{
    static const char *const default_programs[] = {
        "/usr/bin/" PROGRAM_NAME,
        "/usr/local/bin/" PROGRAM_NAME,
        "/bin/" PROGRAM_NAME,
        "/usr/sbin/" PROGRAM_NAME,
    };

    for (size_t i = 0; i < COUNT(default_programs); i++) {
        if (try_program(mps, default_programs[i]))
            return true;
    }
    text_clear(&mps->fault);
    text_append(&mps->fault,
                PROGRAM_NAME ": not found in /usr/bin, /usr/local/bin, /bin or /usr/sbin "
                             "(set mps_control in the configuration)");
    return false;
}

const char *mps_program(struct pool *pool)
{
    struct mps *mps = pool->mps;
    const char *named = getenv(MPS_CONTROL_VARIABLE);

    if (named == NULL || *named == '\0')
        named = pool->rules.mps_control;
    if (mps->looked_at == 0 || loop_now(&pool->loop) - mps->looked_at > PROGRAM_GOOD ||
        (named != NULL && mps->program != NULL && strcmp(named, mps->program) != 0)) {
        mps->looked_at = loop_now(&pool->loop);
        if (!(named != NULL ? try_program(mps, named) : try_defaults(mps))) {
            free(mps->program);
            mps->program = NULL;
        }
    }
    return mps->program;
}

static bool has_nvidia(const struct pool *pool)
{
    return (pool->vendors & (UINT32_C(1) << VENDOR_NVIDIA)) != 0;
}

int mps_check(struct pool *pool, const struct request *request, uint32_t uid,
              struct berth_error *error)
{
    /* Where no device can be shared so, that is what is told. */
    if (request->sharing != SHARING_MPS || !has_nvidia(pool))
        return 0;
    if (mps_program(pool) == NULL)
        return error_set(error, BERTH_ERROR_IMPOSSIBLE, "sharing mps: cannot use MPS: %s",
                         text_string(&pool->mps->fault));
    if (uid != pool->owner && !pool->mps->may_become_others)
        return error_set(error, BERTH_ERROR_IMPOSSIBLE,
                         "sharing mps: the daemon cannot become user %u: it has no CAP_SETUID and "
                         "CAP_SETGID",
                         uid);
    return 0;
}

/* ---- Sites ---- */

void mps_append_root(const struct pool *pool, uint32_t uid, struct text *out)
{
    text_append_format(out, "%s/%u", pool->mps->base, uid);
}

static bool is_of_mps(const struct lease_view *view)
{
    return engine_request_what(view->request)->sharing == SHARING_MPS;
}

/* Where the control daemon of the slot is to work for this lease. */
static int make_site(const struct pool *pool, const struct job *job, const struct lease_view *view,
                     uint32_t slot, struct mps_site *ret_site)
{
    const struct request *request = engine_request_what(view->request);
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    struct text root = {0};
    struct text pipe = {0};
    struct text log = {0};
    bool is_only_one = mps_directories_single_device(request);
    struct mps_site site = {
        .persona = {.uid = job->holder->uid, .gid = PERSONA_NO_GROUP},
        .is_pipe_given = is_only_one && request->mps_pipe_dir != NULL,
        .is_log_given = is_only_one && request->mps_log_dir != NULL,
    };

    if (job->connection != NULL && job->connection->uid == job->holder->uid)
        site.persona.gid = job->connection->gid;
    mps_append_root(pool, job->holder->uid, &root);
    mps_directories(&(struct mps_directory_source){text_string(&root), request}, device->id, &pipe,
                    &log);
    site.pipe = text_failed(&root) ? NULL : text_detach(&pipe);
    site.log = text_failed(&root) ? NULL : text_detach(&log);
    text_finish(&root);
    text_finish(&pipe);
    text_finish(&log);
    if (site.pipe == NULL || site.log == NULL) {
        mps_site_finish(&site);
        return BERTH_ERROR_MEMORY;
    }
    *ret_site = site;
    return 0;
}

static bool is_same_site(const struct mps_site *one, const struct mps_site *other)
{
    return one->persona.uid == other->persona.uid && strcmp(one->pipe, other->pipe) == 0 &&
           strcmp(one->log, other->log) == 0;
}

/* ---- Who needs it ---- */

struct search {
    const struct pool *pool;
    uint32_t slot;
    uint64_t leaving; /* the lease that does not count; 0: all do */
    const struct job *found;
};

static bool has_slot(const struct lease_view *view, uint32_t slot)
{
    for (uint32_t i = 0; i < view->slot_count; i++) {
        if (view->slots[i] == slot)
            return true;
    }
    return false;
}

/* Whether the lease is the one that is leaving, or within it. */
static bool is_leaving(const struct search *search, const struct lease_view *view)
{
    struct lease_view around = *view;

    while (search->leaving != 0) {
        if (around.id == search->leaving)
            return true;
        if (around.parent == 0 || !engine_get_lease(search->pool->engine, around.parent, &around))
            break;
    }
    return false;
}

static void look_at_lease(void *context, const struct lease_view *view)
{
    struct search *search = context;
    const struct job *job;

    if (search->found != NULL || !is_of_mps(view) || !has_slot(view, search->slot) ||
        is_leaving(search, view))
        return;
    job = job_of_lease(search->pool, view->id);
    /* One that was there before its lease does not know of our directories. One that is refused
     * needs nothing more. */
    if (job != NULL && !job->adopted && !(job_is_preparing(job) && job->end != 0))
        search->found = job;
}

static const struct job *find_tenant(const struct control *control, uint64_t leaving)
{
    struct search search = {control->pool, mps_slot(control), leaving, NULL};

    engine_each_lease(control->pool->engine, look_at_lease, &search);
    return search.found;
}

bool mps_has_tenants(const struct control *control, uint64_t leaving)
{
    return find_tenant(control, leaving) != NULL;
}

bool mps_find_site(const struct control *control, struct mps_site *ret_site)
{
    const struct job *job = find_tenant(control, 0);
    struct lease_view view;

    return job != NULL && engine_get_lease(control->pool->engine, job->by_lease.id, &view) &&
           make_site(control->pool, job, &view, mps_slot(control), ret_site) == 0;
}

/* ---- Before its holder is told ---- */

/* Refuses a claim whose holder does not know yet that it has devices. */
static void refuse(struct pool *pool, struct job *job, const struct control *control,
                   const char *why)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[mps_slot(control)];
    struct guard *guard = job_guard(pool, job);
    struct text words = {0};

    if (job->end != 0)
        return;
    text_append_format(&words, "cannot start the MPS control daemon of %s: %s",
                       device_id_format(device->id).text, why);
    /* Without memory it is refused for its end. */
    if (guard != NULL)
        guard->refusal = text_detach(&words);
    text_finish(&words);
    job->end = LEASE_END_CANCELLED;
    ending_done(pool, job);
}

/* Sees to it that the slot's answers. Returns whether that takes a while. */
static bool prepare_slot(struct pool *pool, struct job *job, const struct lease_view *view,
                         uint32_t slot)
{
    struct control *control = &pool->mps->controls[slot];
    struct mps_site site;
    bool is_other;

    if (make_site(pool, job, view, slot, &site) < 0) {
        refuse(pool, job, control, berth_error_describe(BERTH_ERROR_MEMORY));
        return true;
    }
    if (strlen(site.pipe) > MPS_DIRECTORY_MAX) {
        struct text why = {0};

        text_append_format(&why, "%s: expected at most %d bytes, got %zu", site.pipe,
                           MPS_DIRECTORY_MAX, strlen(site.pipe));
        refuse(pool, job, control, text_string(&why));
        text_finish(&why);
        mps_site_finish(&site);
        return true;
    }
    is_other = control->site.pipe != NULL && !is_same_site(&control->site, &site);
    if (control->state == MPS_NONE || control->state == MPS_PAUSING)
        mps_start(control, &site);
    else if (is_other && (control->state == MPS_READY || control->state == MPS_STARTING))
        refuse(pool, job, control, "the lease around it already uses one there");
    mps_site_finish(&site);
    return control->state != MPS_READY || job->end != 0;
}

bool mps_prepare(struct pool *pool, struct job *job)
{
    struct lease_view view;
    bool waits = false;

    if (job->adopted || !engine_get_lease(pool->engine, job->by_lease.id, &view) ||
        !is_of_mps(&view))
        return false;
    if (!job->unprepared)
        return false;
    job->waits_for_mps = true;
    for (uint32_t i = 0; i < view.slot_count && job->end == 0; i++)
        waits = prepare_slot(pool, job, &view, view.slots[i]) || waits;
    job->waits_for_mps = waits || job->end != 0;
    return job->waits_for_mps;
}

/* Those whose holders wait for the slot. */
static bool waits_for(const struct control *control, const struct job *job)
{
    struct lease_view view;

    return job->waits_for_mps && job->end == 0 && job_is_preparing(job) &&
           engine_get_lease(control->pool->engine, job->by_lease.id, &view) &&
           has_slot(&view, mps_slot(control));
}

bool mps_has_waiting(const struct control *control)
{
    list_for_each (link, &control->pool->jobs) {
        if (waits_for(control, container_of(link, struct job, in_pool)))
            return true;
    }
    return false;
}

void mps_tell_waiting(struct control *control)
{
    struct pool *pool = control->pool;

    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (waits_for(control, job))
            settle_told(pool, job);
    }
}

void mps_refuse_waiting(struct control *control, const char *why)
{
    struct pool *pool = control->pool;

    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (waits_for(control, job))
            refuse(pool, job, control, why);
    }
}

/* ---- When it ends ---- */

void mps_end(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    /* A view is only good until the engine is told something. */
    for (uint32_t i = 0;
         engine_get_lease(pool->engine, job->by_lease.id, &view) && i < view.slot_count; i++) {
        struct control *control = &pool->mps->controls[view.slots[i]];

        if (control->state != MPS_NONE && !mps_has_tenants(control, job->by_lease.id))
            mps_stop(control);
    }
}

void mps_review(struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_slots_max(pool->engine); slot++) {
        struct control *control = &pool->mps->controls[slot];
        struct mps_site site = {0};

        if (control->state != MPS_NONE && !mps_has_tenants(control, 0))
            mps_stop(control);
        else if (control->state == MPS_NONE && mps_find_site(control, &site))
            mps_start(control, &site);
    }
}
