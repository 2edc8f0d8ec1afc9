/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/device_report.h"

#include <stdlib.h>

#include "base/count.h"
#include "daemon/devices/device_locks.h"
#include "daemon/leases/configure_engine.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/pool_facts.h"
#include "daemon/leases/process_leases.h"
#include "daemon/leases/squatter_watch.h"
#include "engine/engine_report.h"

/* The maximum size of a device's processes in a message, in bytes. */
enum { PROCESS_BYTES = 16 * 1024 };

/* Drops processes if a device has more than a message has room for. */
static void cut_processes(struct device_process_list *list)
{
    size_t kept = 0;

    for (size_t bytes = 0; kept < list->count && bytes < PROCESS_BYTES; kept++)
        bytes += pool_facts_process_size(&list->items[kept]);
    while (list->count > kept)
        device_process_finish(&list->items[--list->count]);
}

/* ---- What has changed ---- */

static void log_change(struct pool *pool, const struct device *device, const char *what,
                       const char *reason)
{
    log_line(&pool->log, pool_clock_now(&pool->clock), "device", "what=%s id=%s%s%s", what,
             device_id_format(device->id).text,
             reason == NULL ? "" : " reason=", reason == NULL ? "" : log_quote(reason).text);
}

static void device_changed(void *context, uint32_t slot, unsigned changes)
{
    static const struct {
        unsigned change;
        const char *what;
    } words[] = {
        {DEVICE_ADDED, "added"},
        {DEVICE_BACK, "back"},
        {DEVICE_FACTS, "changed"},
        {DEVICE_GONE, "gone"},
    };
    struct pool *pool = context;
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];

    for (size_t i = 0; i < COUNT(words); i++) {
        if ((changes & words[i].change) != 0)
            log_change(pool, device, words[i].what, NULL);
    }
    if ((changes & DEVICE_HEALTH) != 0)
        log_change(pool, device, device->health == HEALTH_SICK ? "sick" : "well",
                   device->health == HEALTH_SICK ? device->health_reason : NULL);
    if ((changes & (DEVICE_ADDED | DEVICE_FACTS)) == 0)
        return;
    pool->vendors |= UINT32_C(1) << device->id.vendor;
    configure_engine_slot(pool, slot, NULL);
    journal_write_device(pool, slot);
    if (pool->device_locks != NULL)
        device_locks_add(pool->device_locks, slot, device);
}

int device_report_apply(struct pool *pool, struct machine_report *report, struct berth_error *error)
{
    const struct report_handler taker = {.changed = device_changed, .context = pool};
    struct device *device;
    int code;

    vector_for_each (device, &report->machine.devices)
        cut_processes(&device->processes);
    process_leases_join(pool, &report->machine.devices);
    engine_pause(pool->engine);
    code = engine_apply_report(pool->engine, report, &taker, error);
    squatter_watch_judge_all(pool);
    if (pool->device_locks != NULL)
        device_locks_update(pool->device_locks);
    return code;
}
