/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/lost_leases.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bitset.h"
#include "base/error.h"
#include "daemon/core/accounts.h"
#include "daemon/core/pidfd.h"
#include "daemon/devices/device_locks.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/job.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps.h"
#include "daemon/processes/reader_pool.h"
#include "model/machine/device_id.h"

/* A process of a lost lease. */
struct lost_process {
    struct watch watch; /* pidfd */
    struct pool *pool;
    struct list_link in_processes;
    pid_t pid;
    struct optional_number uid;
    uint64_t lease;
    char *devices; /* its BERTH_DEVICES; NULL: unknown */
    bool is_found; /* the last answer has it */
};

struct lost_leases {
    struct pool *pool;
    bool are_sought;
    bool has_begun;
    bool is_reported; /* a report was applied, or there is no hardware */
    unsigned answers; /* answers with all processes, so far */
    struct reader_query *query;
    struct timer ask;
    int64_t asked_at; /* in the loop's time */
    struct list processes;
    size_t count;
    struct bitset used;     /* slots that processes of lost leases use */
    struct bitset released; /* put into service by an administrator */
};

int lost_leases_init(struct pool *pool, struct berth_error *error)
{
    struct lost_leases *lost = calloc(1, sizeof(*lost));
    size_t slots = engine_slots_max(pool->engine);

    pool->lost_leases = lost;
    if (lost == NULL)
        return error_set_memory(error);
    lost->pool = pool;
    list_init(&lost->processes);
    if (bitset_init(&lost->used, slots) < 0 || bitset_init(&lost->released, slots) < 0)
        return error_set_memory(error);
    return 0;
}

static void free_process(struct lost_process *process)
{
    struct pool *pool = process->pool;

    loop_remove(&pool->loop, &process->watch);
    close(process->watch.descriptor);
    list_remove(&process->in_processes);
    pool->lost_leases->count--;
    free(process->devices);
    free(process);
}

void lost_leases_finish(struct pool *pool)
{
    struct lost_leases *lost = pool->lost_leases;

    if (lost == NULL)
        return;
    list_for_each (link, &lost->processes)
        free_process(container_of(link, struct lost_process, in_processes));
    reader_pool_cancel(lost->query);
    loop_set_timer(&pool->loop, &lost->ask, LOOP_NEVER);
    bitset_finish(&lost->used);
    bitset_finish(&lost->released);
    free(lost);
    pool->lost_leases = NULL;
}

static uint32_t slot_count(const struct pool *pool)
{
    return (uint32_t)engine_machine(pool->engine)->devices.count;
}

/* ---- Blocked devices ---- */

static bool is_complete(const struct lost_leases *lost)
{
    return lost->answers >= LOST_LEASES_ANSWERS && lost->is_reported;
}

/* Blocks the devices that may be in use, and no others. The search is over when none is. */
static void apply_search(struct pool *pool)
{
    struct lost_leases *lost = pool->lost_leases;

    for (uint32_t slot = 0; slot < slot_count(pool); slot++) {
        if (!bitset_has(&lost->released, slot) &&
            (!is_complete(lost) || bitset_has(&lost->used, slot)))
            handover_need(pool, slot, HANDOVER_LOST);
        else
            handover_done(pool, slot, HANDOVER_LOST);
    }
    if (pool->device_locks != NULL)
        device_locks_update(pool->device_locks);
    if (!is_complete(lost) || !bitset_is_empty(&lost->used))
        return;
    lost->are_sought = lost->has_begun = false;
    journal_write_lost(pool, false);
    log_line(&pool->log, pool_clock_now(&pool->clock), "lost", "what=over");
}

/* ---- Processes ---- */

/* Returns whether a lease is known under this id. */
static bool get_lease(const struct pool *pool, uint64_t id, struct lease_view *ret_view)
{
    const struct job *job = job_of_id(pool, id);

    return job != NULL && job->by_lease.id != 0 &&
           engine_get_lease(pool->engine, job->by_lease.id, ret_view);
}

static bool has_slot(const struct lease_view *view, uint32_t slot)
{
    for (uint32_t i = 0; i < view->slot_count; i++) {
        if (view->slots[i] == slot)
            return true;
    }
    return false;
}

/* Adds the device of an MPS control daemon that the pool does not know. */
static bool add_slot_of_mps(const struct pool *pool, uint64_t slot, struct bitset *slots)
{
    if (slot >= slot_count(pool) || mps_is_present(pool->mps, (uint32_t)slot))
        return false;
    bitset_add(slots, slot);
    return true;
}

/* Adds the devices that the process may use without a lease on them. Returns whether there is one.
 * A process whose BERTH_DEVICES is unknown may use any device. */
static bool add_slots(const struct pool *pool, const struct reader_process *process,
                      struct bitset *slots)
{
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    struct device_id_list ids = {0};
    struct lease_view view;
    bool is_known = get_lease(pool, process->lease, &view);
    bool has_list = false;
    bool any = false;

    if (process->lease >= mps_mark(0))
        return add_slot_of_mps(pool, process->lease - mps_mark(0), slots);
    if (process->devices != NULL)
        has_list =
            *process->devices == '\0' || device_id_list_parse(&ids, process->devices, NULL) == 0;
    for (uint32_t slot = 0; slot < devices->count; slot++) {
        if (has_list ? !device_id_list_has(&ids, devices->items[slot].id) ||
                           (is_known && has_slot(&view, slot))
                     : is_known)
            continue;
        bitset_add(slots, slot);
        any = true;
    }
    vector_finish(&ids);
    return any;
}

/* Asks the readers again, as soon as that is allowed. */
static void ask_soon(struct pool *pool)
{
    struct lost_leases *lost = pool->lost_leases;

    if (lost->query == NULL && !list_is_linked(&lost->ask.in_loop))
        loop_set_timer(&pool->loop, &lost->ask, lost->asked_at + LOST_LEASES_EVERY);
}

/* The process may have left children that started after the last answer. */
static void process_ended(struct watch *watch, uint32_t events)
{
    struct lost_process *process = container_of(watch, struct lost_process, watch);
    struct pool *pool = process->pool;

    (void)events;
    free_process(process);
    ask_soon(pool);
}

static struct lost_process *find_process(const struct lost_leases *lost, uint32_t pid)
{
    list_for_each (link, &lost->processes) {
        struct lost_process *process = container_of(link, struct lost_process, in_processes);

        if (process->pid == (pid_t)pid && !pidfd_has_ended(process->watch.descriptor))
            return process;
    }
    return NULL;
}

static void log_process(struct pool *pool, const struct lost_process *process)
{
    log_begin(&pool->log, pool_clock_now(&pool->clock), "lost");
    log_number(&pool->log, "id", process->lease);
    log_number(&pool->log, "pid", (uint64_t)process->pid);
    if (process->uid.known)
        log_number(&pool->log, "uid", process->uid.value);
    if (process->devices != NULL)
        text_append(log_value(&pool->log, "devices"), log_quote(process->devices).text);
    log_end(&pool->log);
}

/* Watches the process, unless too many are watched. Then takes its descriptor and its text. */
static void watch_process(struct pool *pool, struct reader_process *found)
{
    struct lost_leases *lost = pool->lost_leases;
    struct lost_process *process = find_process(lost, found->pid);

    if (process != NULL) {
        process->is_found = true;
        return;
    }
    if (lost->count >= LOST_LEASES_WATCHED_MAX || found->descriptor < 0)
        return;
    process = calloc(1, sizeof(*process));
    if (process == NULL)
        return;
    *process = (struct lost_process){
        .watch = {.descriptor = found->descriptor, .ready = process_ended},
        .pool = pool,
        .pid = (pid_t)found->pid,
        .uid = found->uid,
        .lease = found->lease,
        .is_found = true,
    };
    if (loop_add(&pool->loop, &process->watch, EPOLLIN, NULL) < 0) {
        free(process);
        return;
    }
    process->devices = found->devices;
    found->devices = NULL;
    found->descriptor = -1;
    list_append(&lost->processes, &process->in_processes);
    lost->count++;
    log_process(pool, process);
}

/* Cancels a claim whose grant was lost. Its command runs already. */
static void cancel_claim(struct pool *pool, const struct reader_process *process)
{
    const struct job *job = job_of_id(pool, process->lease);

    if (job != NULL && job->by_lease.id == 0 && process->uid.known &&
        process->uid.value == job->holder->uid)
        engine_cancel(pool->engine, job->by_id.id, NULL);
}

static void take_processes(struct pool *pool, struct reader_answer *answer)
{
    struct lost_leases *lost = pool->lost_leases;
    struct reader_process *found;

    list_for_each (link, &lost->processes)
        container_of(link, struct lost_process, in_processes)->is_found = false;
    if (!answer->partial)
        bitset_clear(&lost->used);
    vector_for_each (found, &answer->processes) {
        if (found->state != READER_FOUND || !add_slots(pool, found, &lost->used))
            continue;
        cancel_claim(pool, found);
        watch_process(pool, found);
    }
    list_for_each (link, &lost->processes) {
        struct lost_process *process = container_of(link, struct lost_process, in_processes);

        if (!process->is_found && !answer->partial)
            free_process(process);
    }
}

/* ---- Questions ---- */

static void take_answer(void *context, struct reader_answer *answer)
{
    struct pool *pool = context;
    struct lost_leases *lost = pool->lost_leases;
    int64_t pause = LOST_LEASES_EVERY;

    lost->query = NULL;
    if (answer != NULL) {
        engine_pause(pool->engine);
        take_processes(pool, answer);
        lost->answers += !answer->partial;
        apply_search(pool);
        engine_resume(pool->engine);
        engine_events_settle(pool);
        if (answer->partial || lost->answers >= LOST_LEASES_ANSWERS)
            pause = LOST_LEASES_PARTIAL_EVERY;
    }
    /* The end of a watched process asks again. */
    if (answer == NULL || answer->partial || lost->answers < LOST_LEASES_ANSWERS ||
        (lost->count == 0 && !bitset_is_empty(&lost->used)))
        loop_set_timer(&pool->loop, &lost->ask, loop_now(&pool->loop) + pause);
}

static void ask_readers(struct timer *timer)
{
    struct lost_leases *lost = container_of(timer, struct lost_leases, ask);
    struct pool *pool = lost->pool;
    struct reader_request request = {.question = READER_MARKED,
                                     .socket = strdup(pool->settings.socket)};

    lost->asked_at = loop_now(&pool->loop);
    lost->query = reader_pool_ask(pool->readers, accounts_find(&pool->accounts, pool->owner),
                                  &request, take_answer, pool);
    if (lost->query == NULL)
        ask_soon(pool);
}

/* ---- The search ---- */

void lost_leases_note(struct pool *pool, bool are_lost)
{
    pool->lost_leases->are_sought = are_lost;
}

bool lost_leases_are_sought(const struct pool *pool)
{
    return pool->lost_leases != NULL && pool->lost_leases->are_sought;
}

void lost_leases_begin(struct pool *pool)
{
    struct lost_leases *lost = pool->lost_leases;

    if (!lost->are_sought)
        return;
    lost->has_begun = true;
    lost->answers = 0;
    lost->is_reported = pool->probe_poll == NULL;
    lost->ask.fire = ask_readers;
    apply_search(pool);
    ask_readers(&lost->ask);
}

void lost_leases_reported(struct pool *pool)
{
    struct lost_leases *lost = pool->lost_leases;

    if (lost == NULL || !lost->has_begun)
        return;
    lost->is_reported = true;
    apply_search(pool);
}

void lost_leases_release(struct pool *pool, uint32_t slot)
{
    struct lost_leases *lost = pool->lost_leases;

    if (lost == NULL || !lost->has_begun)
        return;
    bitset_add(&lost->released, slot);
    apply_search(pool);
}

/* ---- Status ---- */

/* `devices` come from a process's environment, which its user can choose. */
static void describe_process(const struct lost_process *process, struct problem_list *problems)
{
    struct text uid = {0};

    if (process->uid.known)
        text_append_format(&uid, " (uid %" PRIu64 ")", process->uid.value);
    machine_report_add_problem(
        problems, "journal",
        "process %d%s has the mark of lease %" PRIu64
        ", which the journal does not have: %s cannot be granted before it ends",
        (int)process->pid, text_string(&uid), process->lease,
        process->devices == NULL ? "devices" : log_quote(process->devices).text);
    text_finish(&uid);
}

void lost_leases_describe(const struct pool *pool, size_t max, struct problem_list *problems)
{
    const struct lost_leases *lost = pool->lost_leases;

    if (lost == NULL || !lost->has_begun)
        return;
    if (!is_complete(lost) && problems->count < max)
        machine_report_add_problem(
            problems, "journal",
            "records of the journal are missing: no device is granted before %s; "
            "berth undrain puts a device into service at once",
            lost->answers < LOST_LEASES_ANSWERS
                ? "berth-reader has found the processes of lost leases"
                : "there is a report of the hardware");
    list_for_each (link, &lost->processes) {
        if (problems->count < max)
            describe_process(container_of(link, struct lost_process, in_processes), problems);
    }
}
