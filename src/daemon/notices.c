/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notices.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/container.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "daemon/connection.h"
#include "daemon/ending.h"
#include "daemon/hardware.h"
#include "daemon/helpers.h"
#include "daemon/jobs.h"
#include "daemon/news.h"
#include "daemon/settle.h"
#include "daemon/variables.h"

#define PROGRAM_DEADLINE (30 * DURATION_SECOND)

/* A lease is short when it is not longer than so many times what a warning comes before its end. */
enum { SHORT_TIMES = 4 };

/* A run of the program. */
struct notice {
    struct pool *pool;
    const char *event; /* NULL: it is free */
};

struct notices {
    struct pool *pool;
    int64_t since;        /* nothing is known of the time before; the loop's */
    int64_t judged_at;    /* the last time; 0: never */
    struct timer timer;   /* of the next warning */
    struct list warnings; /* guards of leases with a time limit */
    bool sees_all;        /* processes of every user */
    struct notice under_way[NOTICES_MAX];
    bool is_dropping; /* that there are too many was logged */
};

/* ---- The program ---- */

static void program_ended(void *context, const struct helper_end *end)
{
    struct notice *notice = context;
    struct pool *pool = notice->pool;
    struct text result = {0};

    if (!helper_succeeded(end)) {
        helper_describe(end, &result);
        log_line(&pool->log, pool_now(pool), "notify", "event=%s result=%s", notice->event,
                 log_quote(text_string(&result)).text);
    }
    text_finish(&result);
    notice->event = NULL;
}

/* Runs the program with these variables, and those that all have. */
static void run(struct notice *notice, const char *event, const char *message,
                struct variables *variables)
{
    struct pool *pool = notice->pool;

    variables_add(variables, "BERTH_EVENT", event);
    variables_add(variables, "BERTH_MESSAGE", message);
    /* Without memory nobody is told. */
    if (!variables->failed && helper_start(pool, &(struct helper_order){
                                                     .words = &pool->rules.notify,
                                                     .environment = &variables->list,
                                                     .deadline = PROGRAM_DEADLINE,
                                                     .is_patient = true,
                                                     .done = program_ended,
                                                     .context = notice,
                                                 }) != NULL)
        notice->event = event;
}

/* A run of the program, if there is one and it has not too much to do already; else NULL. */
static struct notice *find_room(struct pool *pool, const char *event)
{
    struct notices *notices = pool->notices;

    if (pool->rules.notify.count == 0)
        return NULL;
    for (size_t i = 0; i < NOTICES_MAX; i++) {
        if (notices->under_way[i].event != NULL)
            continue;
        notices->is_dropping = false;
        notices->under_way[i].pool = pool;
        return &notices->under_way[i];
    }
    if (!notices->is_dropping)
        log_line(&pool->log, pool_now(pool), "notify",
                 "event=%s result=\"dropped, as %d are under way\"", event, (int)NOTICES_MAX);
    notices->is_dropping = true;
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

/* Says about a lease: "lease 7 (train) of uid 1000 on nvidia0 " and then `what`. */
static void tell_of_lease(struct pool *pool, const struct job *job, const char *event,
                          const struct text *what)
{
    struct notice *notice = find_room(pool, event);
    struct variables variables = {0};
    struct text devices = {0};
    struct text message = {0};
    struct lease_view view;
    const char *name;

    if (notice == NULL || !engine_get_lease(pool->engine, job->by_lease.id, &view))
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
    variables_add_number(&variables, "BERTH_LEASE", job->by_id.id);
    variables_add_number(&variables, "BERTH_UID", job->holder->uid);
    variables_add(&variables, "BERTH_DEVICES", text_string(&devices));
    variables_add(&variables, "BERTH_NAME", name);
    run(notice, event, text_string(&message), &variables);
    string_list_finish(&variables.list);
    text_finish(&devices);
    text_finish(&message);
}

/* Says about a device, and adds what more there is to `variables`, which it finishes. */
static void tell_of_device(struct pool *pool, uint32_t slot, const char *event, const char *what,
                           struct variables *variables)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    struct notice *notice = find_room(pool, event);
    struct text message = {0};

    if (notice != NULL) {
        text_append_format(&message, "%s %s", device_id_format(device->id).text, what);
        variables_add(variables, "BERTH_DEVICES", device_id_format(device->id).text);
        run(notice, event, text_string(&message), variables);
    }
    string_list_finish(&variables->list);
    text_finish(&message);
}

void notice_drained(struct pool *pool, uint32_t slot, const char *reason)
{
    struct variables none = {0};
    struct text what = {0};

    text_append_format(&what, "was taken out of service: %s", reason);
    tell_of_device(pool, slot, "drained", text_string(&what), &none);
    text_finish(&what);
}

void notice_squatter(struct pool *pool, uint32_t slot, const struct device_process *process)
{
    struct variables variables = {0};
    struct text what = {0};

    text_append_format(&what, "is used without a lease by process %" PRIu64, process->pid);
    variables_add_number(&variables, "BERTH_PID", process->pid);
    if (process->uid.known) {
        text_append_format(&what, " of uid %" PRIu64, process->uid.value);
        variables_add_number(&variables, "BERTH_UID", process->uid.value);
    }
    if (process->container != NULL) {
        text_append_format(&what, " in container %.*s (",
                           container_shown_length(process->container), process->container);
        device_process_advise(process, &what);
        text_append(&what, ")");
        variables_add(&variables, "BERTH_CONTAINER", process->container);
    }
    if (process->command != NULL) {
        text_append(&what, ": ");
        utf8_append_inert(&what, process->command);
    }
    tell_of_device(pool, slot, "squatter", text_string(&what), &variables);
    text_finish(&what);
}

/* ---- Holders ---- */

/* A duration in a sentence, which nobody reads to the thousandth. */
static struct quantity_text in_words(int64_t duration)
{
    int64_t seconds = (duration + DURATION_SECOND / 2) / DURATION_SECOND;

    return quantity_format_duration(seconds * DURATION_SECOND);
}

/* Tells whoever holds the lease. `left` 0: nothing will happen by itself. */
static void warn(struct pool *pool, const struct job *job, enum lease_end end, int64_t left)
{
    news_note(pool, WIRE_NEWS_LEASE);
    log_line(&pool->log, pool_now(pool), "warning", "id=%" PRIu64 " uid=%u reason=\"%s\"",
             job->by_id.id, job->holder->uid, pool_info_describe_end(end));
    if (job->connection != NULL)
        connection_send(job->connection, &(struct wire_message){
                                             .type = WIRE_WARNING,
                                             .number = job->number,
                                             .id = job->by_id.id,
                                             .end = end,
                                             .duration = left > 0 ? (uint64_t)left : 0,
                                         });
}

bool notices_may_come(const struct pool *pool, const struct job *job)
{
    return pool->hardware != NULL && job->holder->parent == 0 &&
           (pool->rules.idle_warning != 0 || pool->rules.idle_reclaim != 0);
}

/* ---- Time limits ---- */

int64_t notice_limit_time(int64_t granted, int64_t expires, int64_t before)
{
    int64_t length = expires - granted;

    if (expires == TIME_NEVER || before == 0)
        return TIME_NEVER;
    if (length / SHORT_TIMES < before)
        before = length / SHORT_TIMES < DURATION_SECOND ? DURATION_SECOND : length / SHORT_TIMES;
    return before < length ? expires - before : TIME_NEVER;
}

static void limit_is_near(struct pool *pool, const struct job *job)
{
    struct text what = {0};
    struct lease_view view;
    int64_t left;

    if (job->end != 0 || !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    left = view.expires - pool_now(pool);
    if (left <= 0)
        return;
    warn(pool, job, LEASE_END_EXPIRED, left);
    /* A client that has come back is told again, the program is not. */
    if (job->guard->told_limit == view.expires)
        return;
    job->guard->told_limit = view.expires;
    text_append_format(&what, "ends in %s by its time limit", in_words(left).text);
    tell_of_lease(pool, job, "ending", &what);
    text_finish(&what);
}

static void warnings_are_due(struct timer *timer)
{
    struct notices *notices = container_of(timer, struct notices, timer);
    struct pool *pool = notices->pool;
    int64_t next = TIME_NEVER;

    list_for_each (link, &notices->warnings) {
        struct guard *guard = container_of(link, struct guard, in_warnings);

        if (guard->warn_at > pool_now(pool)) {
            next = guard->warn_at < next ? guard->warn_at : next;
            continue;
        }
        list_remove(&guard->in_warnings);
        /* Whoever has to come back first is told then. */
        if (!guard->job->restored)
            limit_is_near(pool, guard->job);
    }
    timer_set_at(&pool->loop, timer, pool_loop_time(pool, next));
}

void notice_limit(struct pool *pool, struct job *job)
{
    struct notices *notices = pool->notices;
    struct lease_view view;
    int64_t at;

    if (!engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    at = notice_limit_time(view.granted, view.expires, pool->rules.time_warning);
    if (job->guard != NULL)
        list_remove(&job->guard->in_warnings);
    if (at == TIME_NEVER || job_guard(pool, job) == NULL)
        return;
    job->guard->warn_at = at;
    list_append(&notices->warnings, &job->guard->in_warnings);
    if (!list_is_linked(&notices->timer.in_loop) || pool_loop_time(pool, at) < notices->timer.at)
        timer_set_at(&pool->loop, &notices->timer, pool_loop_time(pool, at));
}

/* ---- Leases that are not used ---- */

enum device_use notice_use_of(const struct device *device, bool has_process, bool sees_all)
{
    if (device->old || device->health == HEALTH_SICK)
        return DEVICE_USE_UNKNOWN;
    if (device->asleep)
        return DEVICE_UNUSED;
    if (device->load.utilization.known)
        return device->load.utilization.value > 0 ? DEVICE_USED : DEVICE_UNUSED;
    if (has_process)
        return DEVICE_USED;
    return sees_all ? DEVICE_UNUSED : DEVICE_USE_UNKNOWN;
}

/* Whether the process may be of the job: it is known to be of it or of one within it, or it is not
 * known whose it is. */
static bool may_be_of(const struct pool *pool, const struct device_process *process,
                      const struct job *job)
{
    const struct job *owner = process->lease == 0 ? job : job_of_id(pool, process->lease);

    while (owner != NULL && owner != job && owner->holder->parent != 0)
        owner = job_of_id(pool, owner->holder->parent);
    return owner == job;
}

static enum device_use use_of(const struct pool *pool, const struct job *job, uint32_t slot)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    bool sees_all =
        job->holder->pid > 0 && (pool->notices->sees_all || job->holder->uid == pool->owner);
    const struct device_process *process;
    struct slot_view carried;
    bool has_process = false;

    engine_get_slot(pool->engine, slot, &carried);
    if (!carried.present)
        return DEVICE_USE_UNKNOWN;
    vector_for_each (process, &device->processes)
        has_process = has_process || may_be_of(pool, process, job);
    return notice_use_of(device, has_process, sees_all);
}

/* Whether the lease is used: one device that is says so, and all that are not. */
static enum device_use use_of_lease(const struct pool *pool, const struct job *job,
                                    const struct lease_view *view)
{
    enum device_use all = DEVICE_UNUSED;

    for (uint32_t i = 0; i < view->slot_count && all != DEVICE_USED; i++) {
        enum device_use use = use_of(pool, job, view->slots[i]);

        if (use != DEVICE_UNUSED)
            all = use;
    }
    return all;
}

/* What was found counts for the time since the last look. */
static void add_up(struct guard *guard, enum device_use use, int64_t since, int64_t now)
{
    if (use != DEVICE_USE_UNKNOWN && since < now) {
        guard->judged_time += (uint64_t)(now - since);
        if (use == DEVICE_UNUSED)
            guard->idle_time += (uint64_t)(now - since);
    }
    guard->judged_at = now;
}

static void warn_of_idleness(struct pool *pool, struct job *job, int64_t idle)
{
    int64_t reclaim = pool->rules.idle_reclaim;
    int64_t left = reclaim > idle ? reclaim - idle : 0;
    struct text what = {0};

    job->guard->idle_warned = true;
    warn(pool, job, LEASE_END_IDLE, left);
    text_append_format(&what, "has not been used for %s", in_words(idle).text);
    if (left > 0)
        text_append_format(&what, "; it is taken back in %s", in_words(left).text);
    tell_of_lease(pool, job, "idle", &what);
    text_finish(&what);
}

static void reclaim(struct pool *pool, struct job *job, int64_t idle)
{
    struct text what = {0};

    text_append_format(&what, "was not used for %s and is taken back", in_words(idle).text);
    tell_of_lease(pool, job, "reclaimed", &what);
    text_finish(&what);
    ending_begin(pool, job, LEASE_END_IDLE, pool_now(pool) + pool->rules.grace);
}

/* Since when the lease may have been unused, when that is judged for the first time: what was
 * before we began is not known. */
static int64_t first_used_at(const struct pool *pool, const struct lease_view *view)
{
    int64_t since = pool->notices->since + pool->clock_offset;

    return view->granted > since ? view->granted : since;
}

/* `unseen`: nobody has looked for so long, which does not count. */
static void judge(struct pool *pool, struct job *job, const struct lease_view *view, int64_t unseen)
{
    const struct configuration *rules = &pool->rules;
    struct guard *guard = job_guard(pool, job);
    int64_t now = pool_now(pool);
    enum device_use use;
    int64_t idle;

    if (guard == NULL)
        return;
    use = use_of_lease(pool, job, view);
    add_up(guard, use,
           guard->judged_at == 0 ? first_used_at(pool, view) : guard->judged_at + unseen, now);
    if (guard->used_at == 0)
        guard->used_at = first_used_at(pool, view);
    guard->used_at = guard->used_at + unseen > now ? now : guard->used_at + unseen;
    guard->is_idle = use == DEVICE_UNUSED;
    if (!guard->is_idle) {
        guard->used_at = now;
        guard->idle_warned = false;
        return;
    }
    idle = now - guard->used_at;
    if (rules->idle_reclaim != 0 && idle >= rules->idle_reclaim)
        reclaim(pool, job, idle);
    else if (rules->idle_warning != 0 && idle >= rules->idle_warning && !guard->idle_warned)
        warn_of_idleness(pool, job, idle);
}

void notices_judge(struct pool *pool)
{
    struct notices *notices = pool->notices;
    int64_t now = loop_now(&pool->loop);
    int64_t unseen = notices->judged_at == 0 ? 0 : now - notices->judged_at;

    /* The machine may have slept. */
    if (unseen <= HARDWARE_IDLE_EVERY)
        unseen = 0;
    notices->judged_at = now;
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);
        struct lease_view view;

        if (job->state == JOB_HELD && job->end == 0 && job->holder->parent == 0 &&
            !job_is_preparing(job) && engine_get_lease(pool->engine, job->by_lease.id, &view))
            judge(pool, job, &view, unseen);
    }
}

struct optional_number notice_idle_time(const struct pool *pool, const struct job *job)
{
    const struct guard *guard = job->guard;

    if (guard == NULL || !guard->is_idle || pool_now(pool) < guard->used_at)
        return (struct optional_number){0};
    return optional_number_of((uint64_t)(pool_now(pool) - guard->used_at));
}

/* ---- Beginning and end ---- */

/* Whether we may look at processes of other users, as the probe may that we start. */
static bool may_see_all(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capget, &header, data) == 0 &&
           (data[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE)) != 0;
}

int notices_init(struct pool *pool, struct berth_error *error)
{
    struct notices *notices = calloc(1, sizeof(*notices));

    if (notices == NULL)
        return error_set_memory(error);
    notices->pool = pool;
    notices->timer.fire = warnings_are_due;
    notices->since = loop_now(&pool->loop);
    notices->sees_all = may_see_all();
    list_init(&notices->warnings);
    pool->notices = notices;
    return 0;
}

void notices_finish(struct pool *pool)
{
    if (pool->notices == NULL)
        return;
    timer_set_at(&pool->loop, &pool->notices->timer, LOOP_NEVER);
    free(pool->notices);
    pool->notices = NULL;
}
