/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/devices.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/process_stat.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/messages.h"
#include "daemon/names.h"
#include "engine/report.h"

/* How far up its ancestors a process is followed, and how many steps one report may cost. */
enum { ANCESTORS_MOST = 64, STEPS_MOST = 4096 };

/* The processes of a device that are kept take about so many bytes in a message. */
enum { PROCESS_BYTES = 16 * 1024 };

/* ---- Whose processes use a device ---- */

/* A process that holds a device, and by which lease. */
struct use {
    uint32_t slot;
    pid_t pid;
    uint64_t lease; /* its id for people */
};

struct uses {
    VECTOR_OF(struct use);
    size_t steps; /* that are left */
};

static void find_uses(const struct pool *pool, struct uses *uses)
{
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);
        struct lease_view view;

        if (job->by_lease.id == 0 || job->hold == WIRE_HOLD_NOTHING ||
            !engine_lease(pool->engine, job->by_lease.id, &view))
            continue;
        for (uint32_t i = 0; i < view.slot_count; i++) {
            struct use *use = vector_append(uses);

            if (use == NULL)
                return;
            *use = (struct use){view.slots[i], job->holder->pid, job->by_id.id};
        }
    }
}

/* The lease that the process, or the nearest ancestor of it, holds the device by; 0: none. The
 * last of several is within the others. */
static uint64_t lease_of(struct uses *uses, size_t slot, pid_t pid)
{
    for (int i = 0; i < ANCESTORS_MOST && pid > 1 && uses->steps > 0; i++) {
        for (size_t use = uses->count; use-- > 0;) {
            if (uses->items[use].slot == slot && uses->items[use].pid == pid)
                return uses->items[use].lease;
        }
        uses->steps--;
        pid = process_stat_parent(pid);
    }
    return 0;
}

static bool is_taken(const struct pool *pool, size_t slot)
{
    struct slot_view view;

    engine_slot(pool->engine, (uint32_t)slot, &view);
    return view.taken;
}

/* Says of the processes in the report by which leases they are there. */
static void join_processes(struct pool *pool, struct device_list *found)
{
    const struct device_list *known = &engine_machine(pool->engine)->devices;
    struct uses uses = {.steps = STEPS_MOST};
    struct device *device;

    vector_for_each (device, found) {
        size_t slot =
            device->processes.count == 0 ? known->count : device_list_find(known, device->id);
        struct device_process *process;

        if (slot == known->count || !is_taken(pool, slot))
            continue;
        if (uses.count == 0)
            find_uses(pool, &uses);
        vector_for_each (process, &device->processes) {
            if (process->pid <= INT32_MAX)
                process->lease = lease_of(&uses, slot, (pid_t)process->pid);
        }
    }
    vector_finish(&uses);
}

/* A message has no room for all processes of a device that very many use. */
static void cut_processes(struct device_process_list *list)
{
    size_t kept = 0;

    for (size_t bytes = 0; kept < list->count && bytes < PROCESS_BYTES; kept++)
        bytes += look_process_size(&list->items[kept]);
    while (list->count > kept) {
        struct device_process *last = &list->items[--list->count];

        free(last->command);
        free(last->container);
    }
}

/* ---- What has changed ---- */

static void log_change(struct pool *pool, const struct device *device, const char *what,
                       const char *reason)
{
    log_line(&pool->log, pool_now(pool), "device", "what=%s id=%s%s%s", what,
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
    keep_device(pool, slot);
    names_add(pool, slot);
}

int devices_take(struct pool *pool, struct report *report, struct berth_error *error)
{
    const struct report_taker taker = {.changed = device_changed, .context = pool};
    struct device *device;

    vector_for_each (device, &report->machine.devices)
        cut_processes(&device->processes);
    join_processes(pool, &report->machine.devices);
    engine_pause(pool->engine);
    return engine_report(pool->engine, report, &taker, error);
}
