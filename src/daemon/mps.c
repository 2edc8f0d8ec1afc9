/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/keep.h"
#include "daemon/mps_control.h"
#include "daemon/privileges.h"

/* How long it may take until one answers. */
#define START_DEADLINE     (10 * DURATION_SECOND)
#define START_DEADLINE_MIN (DURATION_SECOND / 100)
#define START_DEADLINE_MAX (10 * DURATION_MINUTE)

uint32_t mps_slot(const struct control *control)
{
    return (uint32_t)(control - control->pool->mps->controls);
}

const struct device *mps_device(const struct control *control)
{
    const struct device_list *devices = &engine_machine(control->pool->engine)->devices;

    return mps_slot(control) < devices->count ? &devices->items[mps_slot(control)] : NULL;
}

void mps_site_finish(struct mps_site *site)
{
    free(site->pipe);
    free(site->log);
    *site = (struct mps_site){0};
}

static int read_deadline(int64_t *ret_deadline, struct berth_error *error)
{
    const char *given = getenv(MPS_DEADLINE_VARIABLE);
    int64_t deadline = START_DEADLINE;
    int code =
        given == NULL || *given == '\0' ? 0 : quantity_parse_duration(given, &deadline, error);

    if (code == 0 && (deadline < START_DEADLINE_MIN || deadline > START_DEADLINE_MAX))
        code = error_set(error, BERTH_ERROR_RANGE, "expected from %s to %s, got %s",
                         quantity_format_duration(START_DEADLINE_MIN).text,
                         quantity_format_duration(START_DEADLINE_MAX).text,
                         quantity_format_duration(deadline).text);
    if (code < 0)
        return error_wrap(error, code, MPS_DEADLINE_VARIABLE);
    *ret_deadline = deadline;
    return 0;
}

int mps_init(struct pool *pool, struct berth_error *error)
{
    size_t count = engine_slots_max(pool->engine);
    struct mps *mps = calloc(1, sizeof(*mps));
    struct text base = {0};
    int code;

    if (mps == NULL)
        return error_set_memory(error);
    pool->mps = mps;
    text_append_bytes(&base, pool->settings.socket,
                      (size_t)(strrchr(pool->settings.socket, '/') - pool->settings.socket));
    text_append(&base, "/" MPS_BASE);
    mps->base = text_detach(&base);
    mps->controls = calloc(count, sizeof(*mps->controls));
    mps->may_become_others = privileges_may_become_others();
    if (mps->controls == NULL || mps->base == NULL)
        return error_set_memory(error);
    code = read_deadline(&mps->start_deadline, error);
    for (size_t slot = 0; slot < count; slot++) {
        mps->controls[slot] = (struct control){
            .pool = pool,
            .child = {.process = -1, .output = -1, .line = -1},
            .process = {.descriptor = -1},
            .line = {.descriptor = -1},
        };
    }
    return code;
}

void mps_finish(struct pool *pool)
{
    struct mps *mps = pool->mps;

    if (mps == NULL)
        return;
    for (size_t slot = 0; mps->controls != NULL && slot < engine_slots_max(pool->engine); slot++) {
        mps_leave(&mps->controls[slot]);
        mps_site_finish(&mps->controls[slot].site);
    }
    free(mps->controls);
    free(mps->base);
    free(mps->program);
    text_finish(&mps->fault);
    free(mps);
    pool->mps = NULL;
}

bool mps_is_busy(const struct pool *pool)
{
    for (size_t slot = 0; slot < engine_slots_max(pool->engine); slot++) {
        if (pool->mps->controls[slot].state != MPS_NONE)
            return true;
    }
    return false;
}

/* ---- The journal ---- */

void mps_restore(struct pool *pool, struct kept_mps *kept)
{
    struct control *control;

    if (kept->slot >= engine_slots_max(pool->engine))
        return;
    control = &pool->mps->controls[kept->slot];
    mps_site_finish(&control->site);
    control->is_kept = control->was_there = kept->is_there;
    if (!kept->is_there)
        return;
    control->site = (struct mps_site){
        .persona = {.uid = kept->uid, .gid = kept->gid},
        .pipe = kept->pipe,
        .log = kept->log,
    };
    kept->pipe = kept->log = NULL;
    control->child.pid = kept->pid;
    control->started = kept->started;
}

bool mps_kept(const struct pool *pool, uint32_t slot, struct kept_mps *ret_kept)
{
    const struct control *control = &pool->mps->controls[slot];

    *ret_kept = (struct kept_mps){
        .slot = slot,
        .is_there = control->is_kept,
        .uid = control->site.persona.uid,
        .gid = control->site.persona.gid,
        .pid = control->child.pid,
        .started = control->started,
        .pipe = control->site.pipe,
        .log = control->site.log,
    };
    return control->is_kept;
}

void mps_restored(struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_slots_max(pool->engine); slot++) {
        if (pool->mps->controls[slot].was_there)
            mps_take_over(&pool->mps->controls[slot]);
    }
}
