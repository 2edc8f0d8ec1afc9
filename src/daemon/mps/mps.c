/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/text.h"
#include "daemon/mps/mps_control.h"
#include "daemon/mps/mps_program.h"

/* The ids of leases are far smaller. */
#define FIRST_MARK (UINT64_C(1) << 63)

struct mps {
    struct mps_settings settings;
    char *base;
    struct mps_program program;
    struct mps_control *controls; /* by slot */
};

void mps_append_base(const char *socket, struct text *out)
{
    text_append_bytes(out, socket, (size_t)(strrchr(socket, '/') - socket));
    text_append(out, "/" MPS_BASE);
}

int mps_create(struct mps **ret_mps, const struct mps_settings *settings, struct berth_error *error)
{
    struct mps *mps = calloc(1, sizeof(*mps));
    struct text base = {0};

    if (mps == NULL)
        return error_set_memory(error);
    mps->settings = *settings;
    mps_append_base(settings->socket, &base);
    mps->base = text_detach(&base);
    mps->controls = calloc(settings->slots_max, sizeof(*mps->controls));
    if (mps->base == NULL || mps->controls == NULL) {
        free(mps->controls);
        free(mps->base);
        free(mps);
        return error_set_memory(error);
    }
    for (uint32_t slot = 0; slot < settings->slots_max; slot++)
        mps_control_init(&mps->controls[slot], slot, &mps->settings, mps->base, &mps->program);
    *ret_mps = mps;
    return 0;
}

void mps_destroy(struct mps *mps)
{
    if (mps == NULL)
        return;
    for (uint32_t slot = 0; slot < mps->settings.slots_max; slot++)
        mps_control_finish(&mps->controls[slot]);
    mps_program_finish(&mps->program);
    free(mps->controls);
    free(mps->base);
    free(mps);
}

const char *mps_base(const struct mps *mps)
{
    return mps->base;
}

uint64_t mps_mark(uint32_t slot)
{
    return FIRST_MARK | slot;
}

int mps_check(struct mps *mps, struct berth_error *error)
{
    const struct mps_events *events = &mps->settings.events;

    if (mps_program_find(&mps->program, events->program(events->context),
                         loop_now(mps->settings.loop)) == NULL)
        return error_set(error, BERTH_ERROR_IMPOSSIBLE, "sharing mps: cannot use MPS: %s",
                         text_string(&mps->program.fault));
    return 0;
}

enum mps_readiness mps_need(struct mps *mps, uint32_t slot, struct mps_site *site)
{
    struct mps_control *control = &mps->controls[slot];

    switch (control->state) {
    case MPS_NONE:
    case MPS_PAUSING:
        mps_control_start(control, site);
        return MPS_AWAITED;
    case MPS_STARTING:
        return mps_site_is_same(&control->site, site) ? MPS_AWAITED : MPS_BUSY;
    case MPS_READY:
        return mps_site_is_same(&control->site, site) ? MPS_ANSWERS : MPS_BUSY;
    default:
        return MPS_AWAITED;
    }
}

void mps_stop(struct mps *mps, uint32_t slot)
{
    mps_control_stop(&mps->controls[slot]);
}

bool mps_is_present(const struct mps *mps, uint32_t slot)
{
    return mps->controls[slot].state != MPS_NONE;
}

bool mps_is_ending(const struct mps *mps, uint32_t slot)
{
    enum mps_state state = mps->controls[slot].state;

    return state == MPS_QUITTING || state == MPS_CLEARING;
}

bool mps_is_busy(const struct mps *mps)
{
    for (uint32_t slot = 0; slot < mps->settings.slots_max; slot++) {
        if (mps_is_present(mps, slot))
            return true;
    }
    return false;
}

void mps_found(struct mps *mps, uint32_t slot, bool is_gone)
{
    mps_control_found(&mps->controls[slot], is_gone);
}

void mps_identified(struct mps *mps, uint32_t slot, uint64_t started)
{
    mps_control_identified(&mps->controls[slot], started);
}

/* ---- The journal ---- */

int mps_restore(struct mps *mps, uint32_t slot, const struct mps_record *record)
{
    struct mps_control *control;

    if (slot >= mps->settings.slots_max)
        return 0;
    control = &mps->controls[slot];
    mps_site_finish(&control->site);
    control->is_kept = control->was_there = record != NULL;
    if (record == NULL)
        return 0;
    control->site = (struct mps_site){
        .persona = record->user,
        .pipe = strdup(record->pipe == NULL ? "" : record->pipe),
        .log = strdup(record->log == NULL ? "" : record->log),
    };
    control->process.child.pid = record->pid;
    control->process.started = record->started;
    return control->site.pipe == NULL || control->site.log == NULL ? BERTH_ERROR_MEMORY : 0;
}

void mps_resume(struct mps *mps)
{
    for (uint32_t slot = 0; slot < mps->settings.slots_max; slot++) {
        if (mps->controls[slot].was_there)
            mps_control_take_over(&mps->controls[slot]);
    }
}

bool mps_find_record(const struct mps *mps, uint32_t slot, struct mps_record *ret_record)
{
    const struct mps_control *control = &mps->controls[slot];

    if (control->is_kept)
        mps_control_describe(control, ret_record);
    return control->is_kept;
}
