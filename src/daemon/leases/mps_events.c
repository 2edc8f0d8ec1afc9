/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/mps_events.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/quota.h"
#include "daemon/core/accounts.h"
#include "daemon/devices/device_locks.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/mps_search.h"
#include "daemon/leases/mps_tenants.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps.h"

/* ---- Questions ---- */

static const struct device *find_device(void *context, uint32_t slot)
{
    const struct pool *pool = context;
    const struct device_list *devices = &engine_machine(pool->engine)->devices;

    return slot < devices->count ? &devices->items[slot] : NULL;
}

static bool may_log(void *context, uint32_t uid)
{
    struct pool *pool = context;

    return quota_may_log_user(&pool->clients, accounts_find(&pool->accounts, uid));
}

static const char *find_program(void *context)
{
    const struct pool *pool = context;
    const char *named = getenv(MPS_CONTROL_VARIABLE);

    /* A separate launcher runs only the program that was configured when it started. */
    if (launcher_is_separate(&pool->launcher))
        return pool->mps_rules.program;
    return named != NULL && *named != '\0' ? named : pool->rules.mps_control;
}

static bool has_tenants(void *context, uint32_t slot)
{
    return mps_tenants_has(context, slot, 0);
}

static bool is_awaited(void *context, uint32_t slot)
{
    return mps_tenants_is_awaited(context, slot);
}

static bool find_site(void *context, uint32_t slot, struct mps_site *ret_site)
{
    return mps_tenants_find_site(context, slot, ret_site);
}

/* ---- Reports ---- */

static void notify_tenants(void *context, uint32_t slot)
{
    mps_tenants_notify(context, slot);
}

static void refuse_tenants(void *context, uint32_t slot, const char *why)
{
    mps_tenants_refuse(context, slot, why);
}

static void block_slot(void *context, uint32_t slot)
{
    if (find_device(context, slot) != NULL)
        handover_need(context, slot, HANDOVER_MPS);
}

static void free_slot(void *context, uint32_t slot)
{
    struct pool *pool = context;

    if (find_device(pool, slot) == NULL)
        return;
    mps_tenants_gone(pool);
    handover_done(pool, slot, HANDOVER_MPS);
    device_locks_update(pool->device_locks);
}

/* Makes the record for the journal; NULL: there is no control daemon. */
static struct kept_mps make_kept(uint32_t slot, const struct mps_record *record)
{
    if (record == NULL)
        return (struct kept_mps){.slot = slot, .gid = USER_IDENTITY_NO_GROUP};
    return (struct kept_mps){
        .slot = slot,
        .is_there = true,
        .uid = record->user.uid,
        .gid = record->user.gid,
        .pid = record->pid,
        .started = record->started,
        .pipe = (char *)record->pipe,
        .log = (char *)record->log,
    };
}

static bool keep_record(void *context, uint32_t slot, const struct mps_record *record)
{
    struct pool *pool = context;
    const struct kept_mps kept = make_kept(slot, record);

    journal_write_mps(pool, &kept);
    return !journal_file_is_behind(&pool->journal);
}

static void settle_events(void *context)
{
    engine_events_settle(context);
}

/* ---- The journal ---- */

int mps_events_restore(struct pool *pool, const struct kept_mps *kept, struct berth_error *error)
{
    const struct mps_record record = {
        .user = {.uid = kept->uid, .gid = kept->gid},
        .pid = kept->pid,
        .started = kept->started,
        .pipe = kept->pipe,
        .log = kept->log,
    };
    int code = mps_restore(pool->mps, kept->slot, kept->is_there ? &record : NULL);

    return code < 0 ? error_set_memory(error) : 0;
}

bool mps_events_kept(const struct pool *pool, uint32_t slot, struct kept_mps *ret_kept)
{
    struct mps_record record;

    if (!mps_find_record(pool->mps, slot, &record))
        return false;
    *ret_kept = make_kept(slot, &record);
    return true;
}

/* ---- Making ---- */

static int read_timeout(int64_t *ret_timeout, struct berth_error *error)
{
    const char *given = getenv(MPS_TIMEOUT_VARIABLE);
    int64_t timeout = MPS_START_TIMEOUT;
    int code =
        given == NULL || *given == '\0' ? 0 : quantity_parse_duration(given, &timeout, error);

    if (code == 0 && (timeout < MPS_START_TIMEOUT_MIN || timeout > MPS_START_TIMEOUT_MAX))
        code = error_set(error, BERTH_ERROR_RANGE, "expected from %s to %s, got %s",
                         quantity_format_duration(MPS_START_TIMEOUT_MIN).text,
                         quantity_format_duration(MPS_START_TIMEOUT_MAX).text,
                         quantity_format_duration(timeout).text);
    if (code < 0)
        return error_wrap(error, code, MPS_TIMEOUT_VARIABLE);
    *ret_timeout = timeout;
    return 0;
}

int mps_events_init(struct pool *pool, struct berth_error *error)
{
    int64_t timeout = 0;
    int code = read_timeout(&timeout, error);

    if (code == 0)
        code = mps_search_init(pool, error);
    if (code < 0)
        return code;
    return mps_create(&pool->mps,
                      &(struct mps_settings){
                          .loop = &pool->loop,
                          .log = &pool->log,
                          .clock = &pool->clock,
                          .runner = pool->runner,
                          .socket = pool->settings.socket,
                          .launcher = &pool->launcher,
                          .slots_max = (uint32_t)engine_slots_max(pool->engine),
                          .start_timeout = timeout,
                          .events =
                              {
                                  .context = pool,
                                  .device = find_device,
                                  .program = find_program,
                                  .has_tenants = has_tenants,
                                  .is_awaited = is_awaited,
                                  .find_site = find_site,
                                  .answers = notify_tenants,
                                  .failed = refuse_tenants,
                                  .leaving = block_slot,
                                  .gone = free_slot,
                                  .keep = keep_record,
                                  .may_log = may_log,
                                  .changed = settle_events,
                                  .search = mps_search_begin,
                                  .signal = mps_search_signal,
                                  .identify = mps_search_identify,
                                  .forget = mps_search_forget,
                              },
                      },
                      error);
}

void mps_events_finish(struct pool *pool)
{
    mps_destroy(pool->mps);
    pool->mps = NULL;
    mps_search_finish(pool);
}
