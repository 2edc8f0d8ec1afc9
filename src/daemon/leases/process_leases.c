/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/process_leases.h"

#include "daemon/leases/job.h"
#include "daemon/leases/pool.h"
#include "daemon/processes/process_attribution.h"

static void find_uses(const struct pool *pool, struct use_list *uses)
{
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);
        struct lease_view view;

        if (job->by_lease.id == 0 || !engine_get_lease(pool->engine, job->by_lease.id, &view))
            continue;
        for (uint32_t i = 0; i < view.slot_count; i++) {
            struct lease_use *use = vector_append(uses);

            if (use == NULL)
                return;
            *use = (struct lease_use){
                .slot = view.slots[i],
                .uid = job->holder->uid,
                .lease = job->by_id.id,
                .pid = job->hold == LEASE_HOLD_NOTHING ? 0 : job->holder->pid,
                .container = job->guard == NULL ? NULL : job->guard->container,
            };
        }
    }
}

static bool find_ended(void *context, uint64_t lease, uint32_t *ret_uid)
{
    const struct ended_job *ended = job_find_ended(context, lease);

    if (ended != NULL)
        *ret_uid = ended->uid;
    return ended != NULL;
}

static bool is_known(void *context, uint64_t lease)
{
    return job_of_id(context, lease) != NULL;
}

static struct attribution attribution_of(struct pool *pool, const struct use_list *uses)
{
    return (struct attribution){
        .uses = uses,
        .socket = pool->settings.socket,
        .find_ended = find_ended,
        .is_known = is_known,
        .context = pool,
    };
}

static bool has_processes(const struct device_list *devices)
{
    const struct device *device;

    vector_for_each (device, devices) {
        if (device->processes.count > 0)
            return true;
    }
    return false;
}

/* A process with a subordinate uid acts for the uid's owner. */
static void find_owner(const struct pool *pool, struct device_process *process)
{
    uint32_t uid = (uint32_t)process->uid.value;
    uint32_t owner = subordinate_uids_owner(&pool->accounts.ranges, uid);

    if (process->uid.known && !process->owner.known && owner != uid)
        process->owner = optional_number_of(owner);
}

void process_leases_join(struct pool *pool, struct device_list *found)
{
    const struct device_list *known = &engine_machine(pool->engine)->devices;
    struct use_list uses = {0};
    struct attribution attribution = attribution_of(pool, &uses);
    struct device_process *process;
    struct device *device;

    if (!has_processes(found))
        return;
    vector_for_each (device, found) {
        vector_for_each (process, &device->processes)
            find_owner(pool, process);
    }
    find_uses(pool, &uses);
    process_attribution_join(&attribution, known, found);
    vector_finish(&uses);
}

void process_leases_join_again(struct pool *pool, uint32_t slot)
{
    const struct device_list *known = &engine_machine(pool->engine)->devices;
    struct use_list uses = {0};
    struct attribution attribution = attribution_of(pool, &uses);

    find_uses(pool, &uses);
    process_attribution_join_again(&attribution, known, slot,
                                   engine_device_processes(pool->engine, slot));
    vector_finish(&uses);
}

bool process_leases_lingers(const struct pool *pool, const struct device_process *process)
{
    const struct job *job = process->lease == 0 ? NULL : job_of_id(pool, process->lease);

    return process->lease != 0 && (job == NULL || job_is_over(job));
}
