/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/notify_program.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/system/container.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "daemon/clients/quota.h"
#include "daemon/core/child_environment.h"
#include "daemon/core/runner.h"
#include "daemon/leases/job.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/visible_commands.h"
#include "model/machine/occupancy.h"

#define PROGRAM_DEADLINE (30 * DURATION_SECOND)

/* A run of the program. */
struct notification_run {
    struct pool *pool;
    const char *event; /* NULL: this entry is free */
    uint32_t account;  /* the user whose lease it is about; 0: none */
};

struct notify_program {
    struct notification_run runs[NOTIFY_PROGRAM_RUNS_MAX];
    bool is_dropping; /* the log has a line that some were dropped */
};

int notify_program_init(struct pool *pool, struct berth_error *error)
{
    pool->notify_program = calloc(1, sizeof(*pool->notify_program));
    return pool->notify_program == NULL ? error_set_memory(error) : 0;
}

void notify_program_finish(struct pool *pool)
{
    free(pool->notify_program);
    pool->notify_program = NULL;
}

static void program_ended(void *context, const struct runner_end *end)
{
    struct notification_run *notification = context;
    struct pool *pool = notification->pool;
    struct text result = {0};

    if (!runner_succeeded(end) && quota_may_log_user(&pool->clients, notification->account)) {
        runner_describe_end(end, &result);
        log_line(&pool->log, pool_clock_now(&pool->clock), "notify", "event=%s result=%s",
                 notification->event, log_quote(text_string(&result)).text);
    }
    text_finish(&result);
    notification->event = NULL;
}

/* Runs the program with these variables and the common ones. */
static void run_program(struct notification_run *notification, const char *event,
                        const char *message, struct child_environment *variables)
{
    struct pool *pool = notification->pool;

    child_environment_add(variables, "BERTH_EVENT", event);
    child_environment_add(variables, "BERTH_MESSAGE", message);
    /* Without memory the program does not run. */
    if (!variables->failed && runner_start(pool->runner, &(struct runner_order){
                                                             .words = &pool->rules.notify,
                                                             .environment = &variables->list,
                                                             .deadline = PROGRAM_DEADLINE,
                                                             .is_low_priority = true,
                                                             .done = program_ended,
                                                             .context = notification,
                                                         }) != NULL)
        notification->event = event;
}

/* Returns a free entry, or NULL if there is no program or too many of its runs are under way. */
static struct notification_run *find_free_run(struct pool *pool, const char *event,
                                              uint32_t account)
{
    struct notify_program *program = pool->notify_program;

    if (pool->rules.notify.count == 0)
        return NULL;
    for (size_t i = 0; i < NOTIFY_PROGRAM_RUNS_MAX; i++) {
        if (program->runs[i].event != NULL)
            continue;
        program->is_dropping = false;
        program->runs[i].pool = pool;
        program->runs[i].account = account;
        return &program->runs[i];
    }
    if (!program->is_dropping && quota_may_log_user(&pool->clients, account))
        log_line(&pool->log, pool_clock_now(&pool->clock), "notify",
                 "event=%s result=\"dropped: %d programs already run or wait\"", event,
                 (int)NOTIFY_PROGRAM_RUNS_MAX);
    program->is_dropping = true;
    return NULL;
}

static void append_devices(const struct pool *pool, const struct lease_view *view, struct text *out)
{
    const struct machine *machine = engine_machine(pool->engine);

    for (uint32_t i = 0; i < view->slot_count; i++) {
        text_append(out, i == 0 ? "" : ",");
        device_id_append(machine->devices.items[view->slots[i]].id, out);
    }
}

void notify_program_lease(struct pool *pool, const struct job *job, const char *event,
                          const struct text *what)
{
    struct notification_run *notification = find_free_run(pool, event, job->holder->account);
    struct child_environment variables = {0};
    struct text devices = {0};
    struct text message = {0};
    struct lease_view view;
    const char *name;

    if (notification == NULL || !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    name = engine_request_what(view.request)->name;
    append_devices(pool, &view, &devices);
    text_append_format(&message, "lease %" PRIu64, job->by_id.id);
    if (name != NULL) {
        text_append(&message, " (");
        utf8_append_inert(&message, name);
        text_append(&message, ")");
    }
    text_append_format(&message, " of uid %u on %s %s", job->holder->uid, text_string(&devices),
                       text_string(what));
    child_environment_add_number(&variables, "BERTH_LEASE", job->by_id.id);
    child_environment_add_number(&variables, "BERTH_UID", job->holder->uid);
    child_environment_add(&variables, "BERTH_DEVICES", text_string(&devices));
    child_environment_add(&variables, "BERTH_NAME", name);
    run_program(notification, event, text_string(&message), &variables);
    string_list_finish(&variables.list);
    text_finish(&devices);
    text_finish(&message);
}

/* Runs the program about a device, with these additional variables, which it frees. */
static void report_device(struct pool *pool, uint32_t slot, const char *event, const char *what,
                          struct child_environment *variables)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    struct notification_run *notification = find_free_run(pool, event, 0);
    struct text message = {0};

    if (notification != NULL) {
        text_append_format(&message, "%s %s", device_id_format(device->id).text, what);
        child_environment_add(variables, "BERTH_DEVICES", device_id_format(device->id).text);
        run_program(notification, event, text_string(&message), variables);
    }
    string_list_finish(&variables->list);
    text_finish(&message);
}

void notify_program_drained(struct pool *pool, uint32_t slot, const char *reason)
{
    struct child_environment none = {0};
    struct text what = {0};

    text_append_format(&what, "was taken out of service: %s", reason);
    report_device(pool, slot, "drained", text_string(&what), &none);
    text_finish(&what);
}

/* Reports a process of which only the memory is known. */
static void report_hidden_squatter(struct pool *pool, uint32_t slot)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    struct child_environment none = {0};
    struct text what = {0};

    text_append_format(&what,
                       "is used without a lease: %s of its memory are in use, but its driver lists "
                       "no process%s",
                       quantity_format_size(occupancy_memory_used(device).value).text,
                       device->processes.count > 0 ? " that has it" : "");
    report_device(pool, slot, "squatter", text_string(&what), &none);
    text_finish(&what);
}

void notify_program_squatter(struct pool *pool, uint32_t slot, const struct device_process *process)
{
    struct child_environment variables = {0};
    struct text what = {0};

    if (process == NULL) {
        report_hidden_squatter(pool, slot);
        return;
    }
    text_append_format(&what, "is used without a lease by process %" PRIu64, process->pid);
    child_environment_add_number(&variables, "BERTH_PID", process->pid);
    if (process->uid.known) {
        text_append_format(&what, " of uid %" PRIu64, process->uid.value);
        child_environment_add_number(&variables, "BERTH_UID", process->uid.value);
    }
    if (process->container != NULL) {
        text_append_format(&what, " in container %.*s (",
                           container_shown_length(process->container), process->container);
        device_process_advise(process, &what);
        text_append(&what, ")");
        child_environment_add(&variables, "BERTH_CONTAINER", process->container);
    }
    if (process->command != NULL) {
        text_append(&what, ": ");
        visible_commands_append(pool, process->command, &what);
    }
    report_device(pool, slot, "squatter", text_string(&what), &variables);
    text_finish(&what);
}
