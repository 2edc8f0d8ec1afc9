/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/handlers/handle_adopt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/permissions.h"
#include "daemon/clients/quota.h"
#include "daemon/core/pidfd.h"
#include "daemon/devices/device_locks.h"
#include "daemon/handlers/handle_claim.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/process_leases.h"
#include "daemon/leases/request_cache.h"
#include "daemon/leases/squatter_watch.h"
#include "daemon/leases/watcher.h"
#include "daemon/processes/membership.h"
#include "daemon/processes/process_attribution.h"
#include "daemon/processes/reader_pool.h"
#include "reader/reader.h"

struct used_slots {
    VECTOR_OF(uint32_t);
};

/* A claim whose process berth-reader describes at this moment. */
struct adoption {
    struct list_link in_pool;
    struct connection *connection;
    struct wire_message message;
    size_t packet_length;
    struct reader_query *query;
};

/* ---- The process, and its devices ---- */

/* Returns the job whose lease the process had on a device at the last report; NULL: none. */
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

/* Returns the job whose lease the process carries in its environment, which finds the processes of
 * containers; NULL: none. `uid` is the process's user, whose own leases it may name; root's
 * processes may name all leases. */
static const struct job *job_said(struct pool *pool, const struct reader_process *facts,
                                  uint32_t uid)
{
    bool is_ours = facts->socket != NULL && strcmp(facts->socket, pool->settings.socket) == 0;
    const struct job *job = is_ours && facts->lease != 0 ? job_of_id(pool, facts->lease) : NULL;

    return job != NULL && job->by_lease.id != 0 && (uid == 0 || uid == job->holder->uid) ? job
                                                                                         : NULL;
}

/* Returns whether the described process is the other one or descends from it. */
static bool is_below(const struct reader_process *facts, pid_t ancestor)
{
    if (facts->pid == (uint32_t)ancestor)
        return true;
    for (size_t i = 0; i < facts->ancestors.count; i++) {
        if (facts->ancestors.items[i] == (uint32_t)ancestor)
            return true;
    }
    return false;
}

/* Returns the job of the lease that the process already has; NULL: none. */
static const struct job *job_around(struct pool *pool, const struct reader_process *facts,
                                    uint32_t uid)
{
    const struct job *seen = job_seen(pool, (pid_t)facts->pid);

    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (job->by_lease.id != 0 && job->hold == LEASE_HOLD_PROCESS &&
            is_below(facts, job->holder->pid))
            return job;
    }
    return seen != NULL ? seen : job_said(pool, facts, uid);
}

/* Finds the process's user, and the groups of the claim. The user of a process in a user namespace
 * is the namespace's owner, because the owner has all rights over the process. The process's groups
 * do not count then. */
static int find_owner(struct connection *connection, const struct reader_process *facts,
                      uint32_t *ret_uid, struct number_list *groups)
{
    const uint32_t *from = facts->groups.items;
    size_t count = facts->groups.count;

    *ret_uid = (uint32_t)(facts->owner.known ? facts->owner.value : facts->uid.value);
    if (facts->owner.known) {
        count = 0;
        if (*ret_uid == connection->uid)
            from = permissions_groups(connection, &count);
    }
    if (vector_reserve(groups, count + 1) < 0)
        return BERTH_ERROR_MEMORY;
    if (!facts->owner.known && facts->gid.known)
        groups->items[groups->count++] = (uint32_t)facts->gid.value;
    for (size_t i = 0; i < count; i++)
        groups->items[groups->count++] = from[i];
    return 0;
}

static int set_gone_error(pid_t pid, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_NOT_FOUND, "cannot adopt process %d: no such process",
                     (int)pid);
}

static int set_foreign_error(pid_t pid, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_PERMISSION,
                     "cannot adopt process %d: it belongs to another user", (int)pid);
}

/* Checks that the process runs, has no lease, and that the client may decide about it. */
static int find_claimant(struct connection *connection, const struct reader_process *facts,
                         struct claimant *claimant, struct number_list *groups,
                         struct berth_error *error)
{
    pid_t pid = (pid_t)facts->pid;
    const struct job *around;
    uint32_t uid;

    if (facts->descriptor < 0 || pidfd_has_ended(facts->descriptor) || !facts->uid.known)
        return set_gone_error(pid, error);
    if (find_owner(connection, facts, &uid, groups) < 0)
        return error_set_memory(error);
    if (!permissions_may_decide(connection, uid))
        return set_foreign_error(pid, error);
    around = job_around(pool_of(connection), facts, uid);
    if (around != NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "cannot adopt process %d: it already has lease %" PRIu64, (int)pid,
                         around->by_id.id);
    *claimant = (struct claimant){
        .uid = uid,
        .groups = groups->items,
        .group_count = groups->count,
        .pid = pid,
        .began = facts->started,
        .adopted = true,
        .container = facts->container,
    };
    return 0;
}

/* Returns whether a process on a device will belong to the adopted process's lease: it descends
 * from that process, or is in the container that began with it. */
static bool goes_with(const struct claimant *claimant, const struct device_process *process)
{
    if (process_attribution_is_below(process, claimant->pid))
        return true;
    return claimant->container != NULL && process->container != NULL &&
           strcmp(claimant->container, process->container) == 0 &&
           membership_is_trusted(process, claimant->uid);
}

/* Finds the slots of the devices that the lease's processes use. */
static int find_slots(struct pool *pool, const struct claimant *claimant,
                      struct used_slots *ret_slots, struct berth_error *error)
{
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        const struct device_process *process;
        uint32_t *place;
        bool is_used = false;

        vector_for_each (process, engine_device_processes(pool->engine, slot))
            is_used = is_used || goes_with(claimant, process);
        if (!is_used)
            continue;
        place = vector_append(ret_slots);
        if (place == NULL)
            return error_set_memory(error);
        *place = slot;
    }
    return 0;
}

/* Makes the request one for exactly these slots. Fails if it wants another number or other devices.
 */
static int narrow_request(const struct pool *pool, const struct used_slots *slots,
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

static int grant_slots(struct connection *connection, const struct wire_message *message,
                       const struct claimant *claimant, struct cached_request *asked,
                       const struct used_slots *slots, struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    struct job *job = handle_claim_new_job(connection, message, claimant);
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
    journal_write_job(pool, job);
    vector_for_each (slot, slots) {
        process_leases_join_again(pool, *slot);
        squatter_watch_judge(pool, *slot);
    }
    engine_events_granted(pool, job);
    device_locks_update(pool->device_locks);
    return 0;
}

/* Grants the process the devices that it uses; if it uses none, claims some. */
static int try_adoption(struct connection *connection, struct wire_message *message,
                        const struct reader_process *facts, struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    struct used_slots slots = {0};
    struct number_list groups = {0};
    struct cached_request *asked = NULL;
    struct claimant claimant = {0};
    int code = find_claimant(connection, facts, &claimant, &groups, error);

    if (code == 0)
        code = find_slots(pool, &claimant, &slots, error);
    if (code == 0 && slots.count == 0 && message->present)
        code = error_set(error, BERTH_ERROR_NOT_FOUND,
                         "process %d uses no device; request some, for example with -n 1",
                         (int)claimant.pid);
    if (code == 0 && slots.count > 0)
        code = narrow_request(pool, &slots, message, error);
    if (code == 0)
        code = handle_claim_open_request(connection, message, &claimant, &asked, error);
    if (code == 0 && asked != NULL)
        code = slots.count > 0 ? grant_slots(connection, message, &claimant, asked, &slots, error)
                               : handle_claim_submit(connection, message, &claimant, asked, error);
    request_cache_release(pool, asked);
    vector_finish(&slots);
    vector_finish(&groups);
    return code;
}

/* Lets the claim wait for the end of the lease that is in its way. Takes the answer. */
static int wait_for_other(struct connection *connection, struct wire_message *message,
                          struct reader_answer *facts, struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    struct berth_error why = *error;
    struct watcher *watcher = watcher_new(connection, message->number, NULL, error);

    if (watcher == NULL)
        return error->code;
    watcher->adopting = malloc(sizeof(*watcher->adopting));
    if (watcher->adopting == NULL) {
        watcher_free(watcher);
        return error_set_memory(error);
    }
    watcher->deadline = handle_claim_deadline(pool, message->request);
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_WAITING,
                                    .number = message->number,
                                    .text = why.message,
                                });
    *watcher->adopting = *message;
    *message = (struct wire_message){.type = message->type, .number = message->number};
    watcher->facts = *facts;
    *facts = (struct reader_answer){0};
    pool->changed = true;
    return 0;
}

/* ---- Asking for the facts ---- */

static void free_adoption(struct adoption *adoption)
{
    reader_pool_cancel(adoption->query);
    list_remove(&adoption->in_pool);
    quota_wait_over(adoption->connection->quota, adoption->packet_length);
    wire_message_finish(&adoption->message);
    free(adoption);
}

/* Checks that the described process is the one that the client means. */
static int check_facts(const struct wire_message *message, const struct reader_answer *facts,
                       struct berth_error *error)
{
    const struct reader_process *found =
        facts == NULL || facts->processes.count == 0 ? NULL : &facts->processes.items[0];
    uint64_t tick = (uint64_t)DURATION_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);

    if (found == NULL || found->state == READER_STALLED)
        return error_set(error, BERTH_ERROR_BUSY,
                         "cannot adopt process %d: it does not answer (it may be in the middle of "
                         "an exec)",
                         (int)message->pid);
    if (found->state != READER_FOUND ||
        (message->started != 0 && found->started / tick != message->started))
        return set_gone_error((pid_t)message->pid, error);
    return 0;
}

static void take_facts(void *context, struct reader_answer *facts)
{
    struct adoption *adoption = context;
    struct connection *connection = adoption->connection;
    struct pool *pool = pool_of(connection);
    struct wire_message message = adoption->message;
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    adoption->query = NULL;
    adoption->message = (struct wire_message){0};
    pool->clients.packet_length = adoption->packet_length;
    free_adoption(adoption);
    code = check_facts(&message, facts, &error);
    if (code == 0)
        code = handle_claim_reserve(pool, &error);
    if (code == 0) {
        code = try_adoption(connection, &message, &facts->processes.items[0], &error);
        if (code == BERTH_ERROR_BUSY && !message.request->nonblock)
            code = wait_for_other(connection, &message, facts, &error);
    }
    if (code < 0)
        handle_claim_refuse(connection, message.number, &error);
    wire_message_finish(&message);
    engine_events_settle(pool);
}

/* Checks the process's user as the kernel reports it, before anything else of the process is read.
 * *ret_uid is that user. */
static int check_user(struct connection *connection, pid_t pid, uint32_t *ret_uid,
                      struct berth_error *error)
{
    int descriptor = pid == pool_of(connection)->pid ? -1 : pidfd_open_process(pid);
    uint32_t uid = 0;
    bool is_known;

    if (descriptor < 0)
        return set_gone_error(pid, error);
    is_known = pidfd_find_user(descriptor, pid, &uid);
    close(descriptor);
    if (!is_known)
        return set_gone_error(pid, error);
    *ret_uid = uid;
    return permissions_may_decide(connection, uid) ||
                   subordinate_uids_owner(&pool_of(connection)->accounts.ranges, uid) ==
                       connection->uid
               ? 0
               : set_foreign_error(pid, error);
}

/* The process's user pays: the process may be one that stalls readers. */
static int ask_for_facts(struct connection *connection, struct wire_message *message, uint32_t uid,
                         struct berth_error *error)
{
    struct pool *pool = pool_of(connection);
    struct reader_request request = {.question = READER_DESCRIBE};
    uint32_t *pid = vector_append(&request.pids);
    struct adoption *adoption = pid == NULL ? NULL : calloc(1, sizeof(*adoption));

    if (adoption == NULL) {
        reader_request_finish(&request);
        return error_set_memory(error);
    }
    *pid = (uint32_t)message->pid;
    adoption->connection = connection;
    adoption->packet_length = pool->clients.packet_length;
    adoption->query = reader_pool_ask(pool->readers, accounts_find(&pool->accounts, uid), &request,
                                      take_facts, adoption);
    if (adoption->query == NULL) {
        free(adoption);
        return error_set_memory(error);
    }
    adoption->message = *message;
    *message = (struct wire_message){.type = message->type, .number = message->number};
    quota_wait(connection->quota, adoption->packet_length);
    list_append(&pool->adoptions, &adoption->in_pool);
    return 0;
}

int handle_adopt_claim(struct connection *connection, struct wire_message *message,
                       struct berth_error *error)
{
    uint32_t uid = 0;
    int code;

    if (message->hold != LEASE_HOLD_PROCESS || message->request == NULL || message->parent != 0 ||
        message->request->replicas > 1)
        return error_set(error, BERTH_ERROR_INVALID,
                         "cannot adopt with several replicas or inside another lease");
    /* The client's masks say nothing about the process. */
    string_list_finish(&message->masks);
    code = check_user(connection, (pid_t)message->pid, &uid, error);
    if (code == 0)
        code = quota_check_waiting(connection->quota, pool_of(connection)->clients.packet_length,
                                   error);
    return code < 0 ? code : ask_for_facts(connection, message, uid, error);
}

void handle_adopt_forget(struct pool *pool, const struct connection *connection)
{
    list_for_each (link, &pool->adoptions) {
        struct adoption *adoption = container_of(link, struct adoption, in_pool);

        if (connection == NULL || adoption->connection == connection)
            free_adoption(adoption);
    }
}

bool handle_adopt_again(struct watcher *watcher)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = try_adoption(watcher->connection, watcher->adopting,
                            &watcher->facts.processes.items[0], &error);

    if (code == BERTH_ERROR_BUSY &&
        watcher->deadline > pool_clock_now(&pool_of(watcher->connection)->clock))
        return false;
    if (code == BERTH_ERROR_BUSY)
        error.code = BERTH_ERROR_TIMED_OUT;
    if (code < 0)
        connection_refuse(watcher->connection, watcher->number, &error);
    return true;
}
