/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/adoption.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/namespaces.h"
#include "base/system/process_container.h"
#include "base/system/process_stat.h"
#include "daemon/asked.h"
#include "daemon/claims.h"
#include "daemon/connection.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/mark.h"
#include "daemon/membership.h"
#include "daemon/names.h"
#include "daemon/process.h"
#include "daemon/processes.h"
#include "daemon/rights.h"
#include "daemon/settle.h"
#include "daemon/squatters.h"

struct slot_list {
    VECTOR_OF(uint32_t);
};

/* ---- Which process, and on which devices ---- */

/* The job whose lease the process has on a device, as was seen there; NULL: none. */
static const struct job *job_seen(const struct pool *pool, pid_t pid)
{
    const struct device *device;

    vector_for_each (device, &engine_machine(pool->engine)->devices) {
        const struct device_process *process =
            device_process_find(&device->processes, (uint64_t)pid);

        if (process != NULL && process->lease != 0 && job_of_id(pool, process->lease) != NULL)
            return job_of_id(pool, process->lease);
    }
    return NULL;
}

/* The job whose lease the process carries, as one in a container does that is nobody's child; NULL:
 * none. `uid` is who answers for the process: he may name his own leases, root everybody's. */
static const struct job *job_said(struct pool *pool, pid_t pid, uint32_t uid)
{
    uint64_t lease = mark_said_lease(pool, pid);
    const struct job *job = lease == 0 ? NULL : job_of_id(pool, lease);

    return job != NULL && job->by_lease.id != 0 && (uid == 0 || uid == job->holder->uid) ? job
                                                                                         : NULL;
}

/* The job whose lease the process is under already; NULL: none. */
static const struct job *job_around(struct pool *pool, pid_t pid, uint32_t uid)
{
    const struct job *seen = job_seen(pool, pid);

    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (job->by_lease.id != 0 && job->hold == LEASE_HOLD_PROCESS &&
            process_is_below(pid, job->holder->pid))
            return job;
    }
    return seen != NULL ? seen : job_said(pool, pid, uid);
}

/* Whose the process is: in a user namespace, the owner's, as whom the kernel lets do anything to
 * it. His groups are not the process's. */
static int find_owner(struct connection *connection, pid_t pid, uint32_t *ret_uid,
                      struct number_list *groups)
{
    int code = process_credentials(pid, ret_uid, groups);
    const uint32_t *his;
    uint32_t owner;
    size_t count;

    if (code < 0 || !namespace_user_owner(pid, &owner))
        return code;
    *ret_uid = owner;
    groups->count = 0;
    if (owner != connection->uid)
        return 0;
    his = rights_groups(connection, &count);
    if (vector_reserve(groups, count) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        groups->items[groups->count++] = his[i];
    return 0;
}

/* The process must be there, be the one that is meant, and be the client's to decide about. */
static int find_claimant(struct connection *connection, const struct wire_message *message,
                         struct claimant *claimant, struct number_list *groups,
                         struct berth_error *error)
{
    struct pool *pool = connection->pool;
    pid_t pid = (pid_t)message->pid;
    int descriptor = pid == pool->pid ? -1 : process_open(pid, message->started);
    const struct job *around;
    uint32_t uid;

    if (descriptor < 0 || find_owner(connection, pid, &uid, groups) < 0) {
        if (descriptor >= 0)
            close(descriptor);
        return error_set(error, BERTH_ERROR_NOT_FOUND, "cannot adopt process %d: no such process",
                         (int)pid);
    }
    close(descriptor);
    if (!rights_may_decide(connection, uid))
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "cannot adopt process %d: it belongs to another user", (int)pid);
    around = job_around(pool, pid, uid);
    if (around != NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "cannot adopt process %d: it already has lease %" PRIu64, (int)pid,
                         around->by_id.id);
    *claimant = (struct claimant){
        .uid = uid,
        .groups = groups->items,
        .group_count = groups->count,
        .pid = pid,
        .started = process_stat_started(pid),
        .adopted = true,
    };
    return 0;
}

/* Whether a process on a device goes with the one that is adopted: it descends from it, or is in
 * the container that began with it (NULL: none did) and will be of its lease by that. */
static bool goes_with(const struct claimant *claimant, const char *container,
                      const struct device_process *process)
{
    struct device_process known = *process;

    if (process->pid <= INT32_MAX && process_is_below((pid_t)process->pid, claimant->pid))
        return true;
    if (container == NULL || process->container == NULL ||
        strcmp(container, process->container) != 0)
        return false;
    process_learn_owner(&known);
    return membership_is_trusted(&known, claimant->uid);
}

/* The slots whose devices are used by what goes with it. */
static int find_slots(struct pool *pool, const struct claimant *claimant,
                      struct slot_list *ret_slots, struct berth_error *error)
{
    struct text begun = {0};
    const char *container =
        process_container_begun(claimant->pid, &begun) ? text_string(&begun) : NULL;
    int code = 0;

    for (uint32_t slot = 0; code == 0 && slot < engine_machine(pool->engine)->devices.count;
         slot++) {
        const struct device_process *process;
        uint32_t *place;
        bool is_used = false;

        vector_for_each (process, engine_device_processes(pool->engine, slot))
            is_used = is_used || goes_with(claimant, container, process);
        if (!is_used)
            continue;
        place = vector_append(ret_slots);
        if (place == NULL)
            code = error_set_memory(error);
        else
            *place = slot;
    }
    text_finish(&begun);
    return code;
}

/* The request is about these and no others. What it says otherwise must fit. */
static int narrow(const struct pool *pool, const struct slot_list *slots,
                  const struct wire_message *message, struct berth_error *error)
{
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    struct request *request = message->request;
    struct device_id_list wanted = {0};
    const uint32_t *slot;

    if (!message->present && !request->gpus.all &&
        (slots->count < request->gpus.min || slots->count > request->gpus.max))
        return error_set(error, BERTH_ERROR_INVALID,
                         "requested %u devices, but process %d already uses %zu", request->gpus.min,
                         (int)message->pid, slots->count);
    if (vector_reserve(&wanted, slots->count) < 0)
        return error_set_memory(error);
    vector_for_each (slot, slots) {
        struct device_id id = devices->items[*slot].id;

        if (!message->present && request->wanted.count > 0 &&
            !device_id_list_has(&request->wanted, id)) {
            vector_finish(&wanted);
            return error_set(error, BERTH_ERROR_INVALID,
                             "process %d already uses %s, which was not requested",
                             (int)message->pid, device_id_format(id).text);
        }
        wanted.items[wanted.count++] = id;
    }
    vector_finish(&request->wanted);
    request->wanted = wanted;
    request->gpus = (struct device_count){(uint32_t)slots->count, (uint32_t)slots->count, false};
    if (message->present)
        request->vendor_rule = VENDOR_RULE_MIXED;
    return 0;
}

/* ---- The lease ---- */

static int give(struct connection *connection, const struct wire_message *message,
                const struct claimant *claimant, struct asked *asked, const struct slot_list *slots,
                struct berth_error *error)
{
    struct pool *pool = connection->pool;
    struct job *job = claim_new_job(connection, message, claimant);
    const uint32_t *slot;
    uint64_t lease;
    int code;

    if (job == NULL)
        return error_set_memory(error);
    code =
        engine_grant_slots(pool->engine, asked->request, slots->items, slots->count, &lease, error);
    if (code < 0) {
        job_free(pool, job);
        return code;
    }
    job_add(pool, job, lease, lease);
    keep_job(pool, job);
    vector_for_each (slot, slots) {
        processes_join_again(pool, *slot);
        squatters_judge(pool, *slot);
    }
    settle_granted(pool, job);
    names_update(pool);
    return 0;
}

/* Gives it its devices, or queues it for some. */
static int try(struct connection *connection, struct wire_message *message,
               struct berth_error *error)
{
    struct pool *pool = connection->pool;
    struct slot_list slots = {0};
    struct number_list groups = {0};
    struct asked *asked = NULL;
    struct claimant claimant = {0};
    int code = find_claimant(connection, message, &claimant, &groups, error);

    if (code == 0)
        code = find_slots(pool, &claimant, &slots, error);
    if (code == 0 && slots.count == 0 && message->present)
        code = error_set(error, BERTH_ERROR_NOT_FOUND,
                         "process %d uses no device; request some, for example with -n 1",
                         (int)claimant.pid);
    if (code == 0 && slots.count > 0)
        code = narrow(pool, &slots, message, error);
    if (code == 0)
        code = claim_open(connection, message, &claimant, &asked, error);
    if (code == 0 && asked != NULL)
        code = slots.count > 0 ? give(connection, message, &claimant, asked, &slots, error)
                               : claim_make(connection, message, &claimant, asked, error);
    asked_release(pool, asked);
    vector_finish(&slots);
    vector_finish(&groups);
    return code;
}

/* A lease of somebody else is in the way: waits for its end. */
static int wait_for_other(struct connection *connection, struct wire_message *message,
                          struct berth_error *error)
{
    struct pool *pool = connection->pool;
    struct berth_error why = *error;
    struct watcher *watcher = watcher_new(connection, message->number, NULL, error);

    if (watcher == NULL)
        return error->code;
    watcher->adopting = malloc(sizeof(*watcher->adopting));
    if (watcher->adopting == NULL) {
        watcher_free(watcher);
        return error_set_memory(error);
    }
    watcher->deadline = claim_deadline(pool, message->request);
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_WAITING,
                                    .number = message->number,
                                    .text = why.message,
                                });
    *watcher->adopting = *message;
    *message = (struct wire_message){.type = message->type, .number = message->number};
    pool->changed = true;
    return 0;
}

int adopt(struct connection *connection, struct wire_message *message, struct berth_error *error)
{
    int code;

    if (message->hold != LEASE_HOLD_PROCESS || message->request == NULL || message->parent != 0 ||
        message->request->replicas > 1)
        return error_set(error, BERTH_ERROR_INVALID,
                         "cannot adopt a process with several replicas or inside another lease");
    /* What the client may see says nothing of the process. */
    string_list_finish(&message->masks);
    code = try(connection, message, error);
    if (code == BERTH_ERROR_BUSY && !message->request->nonblock)
        code = wait_for_other(connection, message, error);
    return code;
}

bool adoption_answered(struct watcher *watcher)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = try(watcher->connection, watcher->adopting, &error);

    if (code == BERTH_ERROR_BUSY && watcher->deadline > pool_now(watcher->connection->pool))
        return false;
    if (code == BERTH_ERROR_BUSY)
        error.code = BERTH_ERROR_TIMED_OUT;
    if (code < 0)
        connection_refuse(watcher->connection, watcher->number, &error);
    return true;
}
