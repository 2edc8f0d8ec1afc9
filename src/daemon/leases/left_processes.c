/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/left_processes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text/quantity.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/mps_search.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps.h"
#include "daemon/processes/leftovers.h"
#include "daemon/processes/reader_pool.h"

/* The maximum number of processes that are named. */
enum { NAMED_MAX = 16 };

/* SIGKILL has no effect within this time: the process is in the kernel. */
#define KILL_TIME DURATION_SECOND

struct description {
    const struct pool *pool;
    struct problem_list *problems;
    struct text owner; /* of the processes that are being described: "lease 7" */
};

static void describe_stalled(void *context, const struct stalled_process *process)
{
    const struct description *description = context;
    int64_t age = loop_now(&description->pool->loop) - process->since;

    if (description->problems->count < NAMED_MAX)
        machine_report_add_problem(
            description->problems, "processes",
            "process %d (uid %" PRIu64
            ") has blocked reads of its /proc files for %s: berth ignores it until it ends",
            (int)process->pid, process->owner.known ? process->owner.value : process->account,
            quantity_format_duration(age / DURATION_SECOND * DURATION_SECOND).text);
}

static void describe_left(void *context, const struct leftover_process *process)
{
    const struct description *description = context;
    int64_t age =
        process->killed_at == 0 ? 0 : loop_now(&description->pool->loop) - process->killed_at;

    if (age < KILL_TIME || description->problems->count >= NAMED_MAX)
        return;
    machine_report_add_problem(
        description->problems, "processes",
        "process %d (uid %" PRIu64
        ") of %s still runs %s after SIGKILL: its devices stay blocked until it ends",
        (int)process->pid, process->uid.value, text_string(&description->owner),
        quantity_format_duration(age / DURATION_SECOND * DURATION_SECOND).text);
}

static void describe_left_of_leases(struct description *description)
{
    list_for_each (link, &description->pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (job->state != JOB_DRAINING || job->guard == NULL || job->guard->leftovers == NULL)
            continue;
        text_clear(&description->owner);
        text_append_format(&description->owner, "lease %" PRIu64, job->by_id.id);
        leftovers_each(job->guard->leftovers, describe_left, description);
    }
}

static void describe_left_of_mps(struct description *description)
{
    const struct device_list *devices = &engine_machine(description->pool->engine)->devices;

    for (uint32_t slot = 0; slot < devices->count; slot++) {
        if (!mps_is_present(description->pool->mps, slot))
            continue;
        text_clear(&description->owner);
        text_append_format(&description->owner, "the MPS control daemon of %s",
                           device_id_format(devices->items[slot].id).text);
        mps_search_each(description->pool, slot, describe_left, description);
    }
}

static void describe_foreign(void *context, const struct foreign_process *process)
{
    const struct description *description = context;
    char owner[32] = "root";

    if (process->owner != 0)
        snprintf(owner, sizeof(owner), "uid %" PRIu32, process->owner);
    if (description->problems->count < NAMED_MAX)
        machine_report_add_problem(
            description->problems, "processes",
            "process %d of %s is left of lease %" PRIu64
            ": it was not ended, because uid %u, the lease's user, may not end it",
            (int)process->pid, owner, process->lease, process->uid);
}

void left_processes_describe(const struct pool *pool, struct problem_list *problems)
{
    struct description description = {.pool = pool, .problems = problems};

    describe_left_of_leases(&description);
    describe_left_of_mps(&description);
    text_finish(&description.owner);
    foreign_processes_each(&pool->foreign, describe_foreign, &description);
    lost_leases_describe(pool, NAMED_MAX, problems);
    reader_pool_each_stalled(pool->readers, describe_stalled, &description);
}
