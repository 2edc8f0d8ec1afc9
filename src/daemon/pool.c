/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "daemon/activation.h"
#include "daemon/asked.h"
#include "daemon/checks.h"
#include "daemon/connection.h"
#include "daemon/drains.h"
#include "daemon/handover.h"
#include "daemon/hardware.h"
#include "daemon/helpers.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/listener.h"
#include "daemon/mps.h"
#include "daemon/names.h"
#include "daemon/news.h"
#include "daemon/notices.h"
#include "daemon/postponed.h"
#include "daemon/privileges.h"
#include "daemon/recorder.h"
#include "daemon/restore.h"
#include "daemon/rules.h"
#include "daemon/settle.h"
#include "daemon/sources.h"
#include "daemon/squatters.h"
#include "daemon/users.h"

/* A journal that cannot be written is tried again this often. */
#define JOURNAL_RETRY (DURATION_SECOND / 5)

int64_t pool_now(const struct pool *pool)
{
    return loop_now(&pool->loop) + pool->clock_offset;
}

int64_t pool_loop_time(const struct pool *pool, int64_t time)
{
    return time == TIME_NEVER ? LOOP_NEVER : time - pool->clock_offset;
}

/* ---- Times ---- */

static void engine_is_due(struct timer *timer)
{
    /* The turn began with it: nothing is left to do but to have woken up. */
    (void)timer;
}

static void tests_are_due(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, test_timer);

    pool->changed = true;
    pool_settle(pool);
}

static void journal_is_due(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, journal_timer);

    if (!journal_file_is_behind(&pool->journal))
        connections_flush(pool);
}

/* Nothing is held, nobody waits or talks, no program of ours runs. */
static bool is_idle(const struct pool *pool)
{
    return pool->settings.own && pool->job_count == 0 && pool->connection_count == 0 &&
           !helpers_are_busy(pool) && !mps_is_busy(pool);
}

static void idle_is_over(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, idle_timer);

    if (is_idle(pool) && listener_close_unused(pool))
        pool->loop.ended = true;
}

static void set_if_other(struct pool *pool, struct timer *timer, int64_t at)
{
    if (timer->at != at || !list_is_linked(&timer->in_loop))
        timer_set_at(&pool->loop, timer, at);
}

/* Before each wait: what is due next, and what the turn left to do. */
static void before_waiting(void *context)
{
    struct pool *pool = context;
    int64_t next;

    users_serve(pool);
    news_tell(pool);
    connections_sweep(pool);
    pool->has_granted = false;
    if (journal_file_is_behind(&pool->journal)) {
        if (!list_is_linked(&pool->journal_timer.in_loop))
            timer_set_at(&pool->loop, &pool->journal_timer, loop_now(&pool->loop) + JOURNAL_RETRY);
    } else if (journal_file_is_long(&pool->journal)) {
        keep_anew(pool, NULL);
    }
    hardware_schedule(pool);
    next = engine_next_time(pool->engine);
    if (next != TIME_NEVER || list_is_linked(&pool->engine_timer.in_loop))
        set_if_other(pool, &pool->engine_timer, pool_loop_time(pool, next));
    if (is_idle(pool) != list_is_linked(&pool->idle_timer.in_loop))
        timer_set_at(&pool->loop, &pool->idle_timer,
                     is_idle(pool) ? loop_now(&pool->loop) + pool->settings.idle : LOOP_NEVER);
}

/* Whatever happens in this turn happens now. */
static void after_waiting(void *context)
{
    struct pool *pool = context;

    pool->users.turn++;
    engine_advance(pool->engine, pool_now(pool));
    pool_settle(pool);
}

/* ---- Signals ---- */

static void signal_came(struct watch *watch, uint32_t events)
{
    struct pool *pool = container_of(watch, struct pool, signals);
    struct signalfd_siginfo info;

    (void)events;
    if (read(watch->descriptor, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGHUP) {
        sources_reload(pool);
        pool_settle(pool);
        return;
    }
    log_line(&pool->log, pool_now(pool), "stopping", "signal=%u pid=%u", info.ssi_signo,
             info.ssi_pid);
    pool->loop.ended = true;
}

static int watch_signals(struct pool *pool, struct berth_error *error)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_SETMASK, &set, NULL);
    pool->signals = (struct watch){
        .descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
        .ready = signal_came,
    };
    if (pool->signals.descriptor < 0)
        return error_set_errno(error, errno, "cannot create a descriptor for signals");
    return loop_add(&pool->loop, &pool->signals, EPOLLIN, error);
}

/* ---- Starting and ending ---- */

static void somebody_connects(struct watch *watch, uint32_t events)
{
    struct pool *pool = container_of(watch, struct pool, listener);

    (void)events;
    connections_accept(pool);
}

/* One that was never used before. */
static int make_name(struct pool *pool, struct berth_error *error)
{
    uint64_t random;
    struct text name = {0};

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return error_set_errno(error, errno, "cannot read random bytes");
    text_append_format(&name, "%016llx", (unsigned long long)random);
    pool->name = text_detach(&name);
    return pool->name == NULL ? error_set_memory(error) : 0;
}

/* The journal stands beside the socket: berth.sock, berth.journal. */
static int find_journal(struct pool *pool, struct berth_error *error)
{
    struct text path = {0};

    listener_beside(pool->settings.socket, ".journal", &path);
    pool->journal_path = text_detach(&path);
    return pool->journal_path == NULL ? error_set_memory(error) : 0;
}

static void raise_limits(struct pool *pool)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        users_share(pool, limit.rlim_cur);
}

static int restore(struct pool *pool, struct berth_error *error)
{
    const struct event_sink sink = {.notify = pool_tell, .context = pool, .wanted = EVENT_ALL};
    int code;

    engine_advance(pool->engine, pool_now(pool));
    code = restore_read(pool, error);
    if (code < 0)
        return code;
    code = keep_anew(pool, error);
    if (code < 0)
        return code;
    pool->journaling = true;
    engine_set_sink(pool->engine, &sink);
    engine_advance(pool->engine, pool_now(pool));
    /* Nothing is decided before all is known. */
    engine_pause(pool->engine);
    code = names_init(pool, error);
    list_for_each (link, &pool->jobs) {
        if (code == 0)
            code =
                rules_limit_user(pool, container_of(link, struct job, in_pool)->holder->uid, error);
    }
    if (code < 0)
        return code;
    handover_restored(pool);
    hardware_take_first(pool);
    checks_restored(pool);
    mps_restored(pool);
    code = restore_holders(pool, error);
    if (code < 0)
        return code;
    mps_review(pool);
    engine_resume(pool->engine);
    engine_close_restored(pool->engine);
    if (pool->job_count > 0)
        recorder_want(pool);
    pool_settle(pool);
    return 0;
}

static int start(struct pool *pool, struct berth_error *error)
{
    int code = watch_signals(pool, error);

    privileges_keep_private();
    raise_limits(pool);
    pool->owner = geteuid();
    pool->pid = getpid();
    pool->clock_offset = clock_read(CLOCK_REALTIME) - loop_now(&pool->loop);
    pool->packet = malloc(WIRE_MESSAGE_MAX);
    if (code == 0 && pool->packet == NULL)
        code = error_set_memory(error);
    if (code == 0)
        code = make_name(pool, error);
    if (code == 0)
        code = find_journal(pool, error);
    if (code == 0)
        code = listener_lock(pool, error);
    if (code == 0)
        code = sources_open(pool, error);
    if (code == 0)
        code = drains_init(pool, error);
    if (code == 0)
        code = handover_init(pool, error);
    if (code == 0)
        code = squatters_init(pool, error);
    if (code == 0)
        code = helpers_init(pool, error);
    if (code == 0)
        code = checks_init(pool, error);
    if (code == 0)
        code = mps_init(pool, error);
    if (code == 0)
        code = notices_init(pool, error);
    if (code == 0)
        code = recorder_init(pool, error);
    if (code == 0)
        code = restore(pool, error);
    if (code == 0)
        code = listener_open(pool, error);
    if (code < 0)
        return code;
    pool->listener.ready = somebody_connects;
    return loop_add(&pool->loop, &pool->listener, EPOLLIN, error);
}

static void finish(struct pool *pool)
{
    list_for_each (link, &pool->connections) {
        struct connection *connection = container_of(link, struct connection, in_pool);

        /* What it holds and waits for is kept for whoever comes next. */
        jobs_detach(connection);
        connection_close(connection);
    }
    postponed_forget(pool, NULL);
    squatters_finish(pool);
    hardware_finish(pool);
    names_finish(pool);
    if (pool->engine != NULL) {
        pool->journaling = false;
        engine_set_sink(pool->engine, &(struct event_sink){.notify = pool_tell, .context = pool});
    }
    jobs_finish(pool);
    recorder_finish(pool);
    news_finish(pool);
    notices_finish(pool);
    helpers_finish(pool);
    mps_finish(pool);
    checks_finish(pool);
    users_finish(pool);
    drains_finish(pool);
    handover_finish(pool);
    engine_destroy(pool->engine);
    listener_finish(pool);
    log_finish(&pool->log);
    journal_file_finish(&pool->journal);
    vector_finish(&pool->happenings);
    configuration_finish(&pool->rules);
    vector_finish(&pool->limited);
    text_finish(&pool->answer);
    text_finish(&pool->record);
    text_finish(&pool->key);
    if (pool->signals.descriptor >= 0)
        close(pool->signals.descriptor);
    loop_finish(&pool->loop);
    free(pool->packet);
    free(pool->journal_path);
    free(pool->history_path);
    free(pool->name);
    free(pool);
}

int pool_run(const struct pool_settings *settings, struct berth_error *error)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    int code;

    if (pool == NULL)
        return error_set_memory(error);
    pool->settings = *settings;
    pool->journal.descriptor = -1;
    pool->listener.descriptor = settings->listener;
    pool->signals.descriptor = -1;
    pool->lock = -1;
    pool->directory = -1;
    pool->outer_directory = -1;
    list_init(&pool->connections);
    list_init(&pool->doomed);
    pool->engine_timer.fire = engine_is_due;
    pool->idle_timer.fire = idle_is_over;
    pool->journal_timer.fire = journal_is_due;
    pool->test_timer.fire = tests_are_due;
    code = jobs_init(pool, error);
    if (news_init(pool, error) < 0)
        code = BERTH_ERROR_MEMORY;
    if (users_init(pool, error) < 0)
        code = BERTH_ERROR_MEMORY;
    if (loop_init(&pool->loop, error) < 0)
        code = error == NULL ? BERTH_ERROR_IO : error->code;
    log_init(&pool->log, &pool->loop, settings->log, settings->log_path);
    if (code == 0)
        code = start(pool, error);
    if (code == 0) {
        log_line(&pool->log, pool_now(pool), "started", "version=%s pid=%d devices=%zu socket=%s",
                 BERTH_VERSION, (int)pool->pid, engine_machine(pool->engine)->devices.count,
                 log_quote(settings->socket).text);
        privileges_say(pool);
        activation_ready(settings->ready);
        loop_run(&pool->loop, &(struct loop_turn){before_waiting, after_waiting, pool});
        activation_stopping();
        if (pool->lost)
            code = error_set_memory(error);
    }
    if (code < 0 && error != NULL)
        log_line(&pool->log, pool_now(pool), "error", "reason=%s", log_quote(error->message).text);
    finish(pool);
    return code;
}
