/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/squatter_watch.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bitset.h"
#include "base/error.h"
#include "daemon/clients/quota.h"
#include "daemon/core/accounts.h"
#include "daemon/core/pidfd.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/job.h"
#include "daemon/leases/notify_program.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/process_leases.h"
#include "daemon/leases/visible_commands.h"
#include "daemon/processes/squatters.h"
#include "model/machine/occupancy.h"

/* The maximum of watched squatters. The ends of others are noticed by the next report. */
enum { WATCHED_MAX = 256 };

struct squatter {
    struct watch watch; /* pidfd */
    struct pool *pool;
    struct list_link in_squatters;
    pid_t pid;
    bool seen; /* in the last report */
};

struct squatters {
    struct list watched;
    size_t count;
    struct bitset untold; /* blocked slots that are not logged yet */
};

int squatter_watch_init(struct pool *pool, struct berth_error *error)
{
    pool->squatters = calloc(1, sizeof(*pool->squatters));
    if (pool->squatters == NULL)
        return error_set_memory(error);
    list_init(&pool->squatters->watched);
    if (bitset_init(&pool->squatters->untold, engine_slots_max(pool->engine)) < 0)
        return error_set_memory(error);
    return 0;
}

static void squatter_free(struct squatter *squatter)
{
    loop_remove(&squatter->pool->loop, &squatter->watch);
    close(squatter->watch.descriptor);
    list_remove(&squatter->in_squatters);
    squatter->pool->squatters->count--;
    free(squatter);
}

void squatter_watch_finish(struct pool *pool)
{
    if (pool->squatters == NULL)
        return;
    list_for_each (link, &pool->squatters->watched)
        squatter_free(container_of(link, struct squatter, in_squatters));
    bitset_finish(&pool->squatters->untold);
    free(pool->squatters);
    pool->squatters = NULL;
}

/* ---- Squatters of a device ---- */

/* Returns whether a line about the process may be logged. Users can start and end processes on
 * devices as often as they like. */
static bool may_log(struct pool *pool, const struct device_process *process)
{
    const struct optional_number *user = process->owner.known ? &process->owner : &process->uid;

    return !user->known || quota_may_log_user(&pool->clients, accounts_find(&pool->accounts,
                                                                            (uint32_t)user->value));
}

/* Logs a process that squats. NULL: an unknown process, of which only the memory is known. */
static void log_squatter(struct pool *pool, const struct device *device,
                         const struct device_process *process)
{
    struct text words = {0};

    if (process != NULL && !may_log(pool, process))
        return;
    log_begin(&pool->log, pool_clock_now(&pool->clock), "squatted");
    device_id_append(device->id, log_value(&pool->log, "device"));
    if (process == NULL) {
        log_number(&pool->log, "memory", occupancy_memory_used(device).value);
        log_end(&pool->log);
        return;
    }
    log_number(&pool->log, "pid", process->pid);
    if (process->uid.known)
        log_number(&pool->log, "uid", process->uid.value);
    if (process->command != NULL) {
        visible_commands_append(pool, process->command, &words);
        text_append(log_value(&pool->log, "command"), log_quote(text_string(&words)).text);
        text_clear(&words);
    }
    if (process->container != NULL) {
        text_append(log_value(&pool->log, "container"), log_quote(process->container).text);
        device_process_advise(process, &words);
        text_append(log_value(&pool->log, "advice"), log_quote(text_string(&words)).text);
    }
    log_end(&pool->log);
    text_finish(&words);
}

static bool has_slot(const struct lease_view *view, uint32_t slot)
{
    for (uint32_t i = 0; i < view->slot_count; i++) {
        if (view->slots[i] == slot)
            return true;
    }
    return false;
}

/* Returns whether a lease may use the device's memory. The last report may come while the processes
 * of an ended lease are still searched for. */
static bool has_lease(const struct pool *pool, uint32_t slot)
{
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);
        struct lease_view view;

        if (job->by_lease.id != 0 && job->state != JOB_LOOKING &&
            engine_get_lease(pool->engine, job->by_lease.id, &view) && has_slot(&view, slot))
            return true;
    }
    return false;
}

/* Returns whether an unknown process uses the device. A figure from before the end of the last
 * lease is that lease's memory. */
static bool has_hidden_use(const struct pool *pool, uint32_t slot, const struct slot_view *view)
{
    return !handover_is_unasked_for(pool, slot) &&
           occupancy_is_hidden(&engine_machine(pool->engine)->devices.items[slot],
                               pool->rules.squatter_memory.value) &&
           !(view->taken && has_lease(pool, slot));
}

/* `first`: the first process that squats; NULL: none is listed. */
static void block_slot(struct pool *pool, uint32_t slot, const struct device_process *first)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    struct bitset *untold = &pool->squatters->untold;
    struct slot_view view;
    bool is_known;

    engine_get_slot(pool->engine, slot, &view);
    /* Another pool handles the processes on a device that it leases. */
    if ((first == NULL && !has_hidden_use(pool, slot, &view)) ||
        pool->rules.squatters == SQUATTING_IGNORED || (view.blocks & BLOCK_ELSEWHERE) != 0) {
        engine_unblock(pool->engine, slot, BLOCK_SQUATTED);
        bitset_remove(untold, slot);
        return;
    }
    is_known = (view.blocks & BLOCK_SQUATTED) != 0 && !bitset_has(untold, slot);
    engine_block(pool->engine, slot, BLOCK_SQUATTED);
    bitset_remove(untold, slot);
    if (is_known)
        return;
    /* The search may find the processes that have the memory. */
    if (first == NULL && view.taken) {
        bitset_add(untold, slot);
        return;
    }
    log_squatter(pool, device, first);
    notify_program_squatter(pool, slot, first);
}

void squatter_watch_judge(struct pool *pool, uint32_t slot)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct device_process *first = NULL;
    struct device_process *process;
    bool lingers = false;

    vector_for_each (process, engine_device_processes(pool->engine, slot)) {
        process->squats = squatters_has(device, process, &pool->rules.squatters_except, pool->pid);
        if (process->squats && first == NULL)
            first = process;
        lingers = lingers || process_leases_lingers(pool, process);
    }
    block_slot(pool, slot, first);
    if (lingers)
        handover_need(pool, slot, HANDOVER_LINGERS);
    else
        handover_done(pool, slot, HANDOVER_LINGERS);
}

/* ---- Watching them ---- */

/* The devices that it was on need a new report. */
static void squatter_ended(struct watch *watch, uint32_t events)
{
    struct squatter *squatter = container_of(watch, struct squatter, watch);
    struct pool *pool = squatter->pool;
    uint64_t pid = (uint64_t)squatter->pid;

    (void)events;
    squatter_free(squatter);
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        if (device_process_find(engine_device_processes(pool->engine, slot), pid) != NULL)
            handover_need(pool, slot, HANDOVER_LOOK);
    }
}

static struct squatter *find_squatter(struct squatters *squatters, pid_t pid)
{
    list_for_each (link, &squatters->watched) {
        struct squatter *squatter = container_of(link, struct squatter, in_squatters);

        if (squatter->pid == pid)
            return squatter;
    }
    return NULL;
}

static void watch_process(struct pool *pool, pid_t pid)
{
    struct squatter *squatter = find_squatter(pool->squatters, pid);
    int descriptor;

    if (squatter != NULL) {
        squatter->seen = true;
        return;
    }
    descriptor = pool->squatters->count >= WATCHED_MAX ? -1 : pidfd_open_process(pid);
    squatter = descriptor < 0 ? NULL : calloc(1, sizeof(*squatter));
    if (squatter == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    *squatter = (struct squatter){
        .watch = {.descriptor = descriptor, .ready = squatter_ended},
        .pool = pool,
        .pid = pid,
        .seen = true,
    };
    if (loop_add(&pool->loop, &squatter->watch, EPOLLIN, NULL) < 0) {
        close(descriptor);
        free(squatter);
        return;
    }
    list_append(&pool->squatters->watched, &squatter->in_squatters);
    pool->squatters->count++;
}

/* Watches the processes that keep a device from being granted, and no others. */
static void watch_all(struct pool *pool)
{
    list_for_each (link, &pool->squatters->watched)
        container_of(link, struct squatter, in_squatters)->seen = false;
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        const struct device_process *process;

        vector_for_each (process, engine_device_processes(pool->engine, slot)) {
            if (process->pid <= INT32_MAX &&
                (process->squats || process_leases_lingers(pool, process)))
                watch_process(pool, (pid_t)process->pid);
        }
    }
    list_for_each (link, &pool->squatters->watched) {
        struct squatter *squatter = container_of(link, struct squatter, in_squatters);

        if (!squatter->seen)
            squatter_free(squatter);
    }
}

bool squatter_watch_has_hidden(const struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        struct slot_view view;

        engine_get_slot(pool->engine, slot, &view);
        if ((view.blocks & BLOCK_SQUATTED) != 0 && has_hidden_use(pool, slot, &view))
            return true;
    }
    return false;
}

void squatter_watch_judge_all(struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++)
        squatter_watch_judge(pool, slot);
    watch_all(pool);
}
