/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/socket_files.h"
#include "daemon/client_events.h"
#include "daemon/clients/activation.h"
#include "daemon/configure.h"
#include "daemon/daemon_turn.h"
#include "daemon/devices/device_locks.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/handlers/deferred_claims.h"
#include "daemon/handlers/handle_adopt.h"
#include "daemon/leases/configure_engine.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/lock_events.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/mps_tenants.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/probe_events.h"
#include "daemon/leases/prolog_epilog.h"
#include "daemon/leases/recorder_events.h"
#include "daemon/mps/mps.h"
#include "daemon/privileges.h"
#include "daemon/restore.h"
#include "daemon/stream/recorder_process.h"

/* ---- Signals ---- */

static void signal_came(struct watch *watch, uint32_t events)
{
    struct pool *pool = container_of(watch, struct pool, signals);
    struct signalfd_siginfo info;

    (void)events;
    if (read(watch->descriptor, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGHUP) {
        configure_reload(pool);
        engine_events_settle(pool);
        return;
    }
    log_line(&pool->log, pool_clock_now(&pool->clock), "stopping", "signal=%u pid=%u",
             info.ssi_signo, info.ssi_pid);
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

static int open_loop(struct pool *pool, struct berth_error *error)
{
    int code = loop_init(&pool->loop, error);

    log_init(&pool->log, &pool->loop, pool->settings.log, pool->settings.log_path);
    pool_clock_init(&pool->clock, &pool->loop);
    return code;
}

static void close_loop(struct pool *pool)
{
    log_finish(&pool->log);
    loop_finish(&pool->loop);
}

static void raise_limits(struct pool *pool)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        quota_share_descriptors(&pool->clients, limit.rlim_cur);
}

static int prepare_process(struct pool *pool, struct berth_error *error)
{
    raise_limits(pool);
    return watch_signals(pool, error);
}

static void close_signals(struct pool *pool)
{
    if (pool->signals.descriptor >= 0)
        close(pool->signals.descriptor);
}

static void reread_accounts(void *context)
{
    struct pool *pool = context;

    accounts_read(&pool->accounts);
    log_line(&pool->log, pool_clock_now(&pool->clock), "accounts", "file=%s ranges=%zu",
             log_quote(pool->accounts.path).text, pool->accounts.ranges.count);
}

static int open_accounts(struct pool *pool, struct berth_error *error)
{
    const char *path = getenv("BERTH_SUBUID");

    (void)error;
    accounts_init(&pool->accounts, &(struct accounts_settings){
                                       .loop = &pool->loop,
                                       .path = path != NULL ? path : "/etc/subuid",
                                       .users_path = "/etc/passwd",
                                       .pool_owner = pool->owner,
                                       .changed = reread_accounts,
                                       .context = pool,
                                   });
    accounts_read(&pool->accounts);
    return 0;
}

static void close_accounts(struct pool *pool)
{
    accounts_finish(&pool->accounts);
}

/* Makes a random name, which no other pool had before. */
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

static void free_name(struct pool *pool)
{
    free(pool->name);
}

/* Derives the journal's path from the socket's: berth.sock, berth.journal. Only the process that
 * holds the lock may read or write the journal. */
static int lock_journal(struct pool *pool, struct berth_error *error)
{
    struct text path = {0};

    socket_files_append(pool->settings.socket, ".journal", &path);
    pool->journal_path = text_detach(&path);
    return pool->journal_path == NULL ? error_set_memory(error)
                                      : listener_lock(&pool->clients.listener, error);
}

static void close_journal(struct pool *pool)
{
    journal_file_finish(&pool->journal);
    free(pool->journal_path);
    text_finish(&pool->record);
}

static void close_devices(struct pool *pool)
{
    privileges_stop_launcher(pool);
    free(pool->mps_program);
    probe_poll_destroy(pool->probe_poll);
    engine_destroy(pool->engine);
    configuration_finish(&pool->rules);
    vector_finish(&pool->limited);
    vector_finish(&pool->pending_events);
    text_finish(&pool->key);
    machine_report_finish_problems(&pool->problems);
}

static int read_journal(struct pool *pool, struct berth_error *error)
{
    engine_advance(pool->engine, pool_clock_now(&pool->clock));
    return restore_read(pool, error);
}

/* Begins to write the journal. Decisions start when the leases, locks and devices are restored. */
static int start_journal(struct pool *pool, struct berth_error *error)
{
    const struct event_sink sink = {
        .notify = engine_events_receive, .context = pool, .wanted = EVENT_ALL};
    int code = journal_write_checkpoint(pool, error);

    if (code < 0)
        return code;
    pool->journaling = true;
    engine_set_sink(pool->engine, &sink);
    engine_advance(pool->engine, pool_clock_now(&pool->clock));
    engine_pause(pool->engine);
    return 0;
}

/* Ends the journal before the jobs are freed, because it must not record that. */
static void stop_journal(struct pool *pool)
{
    pool->journaling = false;
    engine_set_sink(pool->engine,
                    &(struct event_sink){.notify = engine_events_receive, .context = pool});
}

static void close_locks(struct pool *pool)
{
    device_locks_destroy(pool->device_locks);
    pool->device_locks = NULL;
}

static int restore_leases(struct pool *pool, struct berth_error *error)
{
    int code = configure_engine_limit_all(pool, error);

    if (code < 0)
        return code;
    handover_restored(pool);
    lost_leases_begin(pool);
    probe_events_begin(pool);
    prolog_epilog_restored(pool);
    mps_resume(pool->mps);
    code = restore_holders(pool, error);
    if (code < 0)
        return code;
    mps_tenants_review(pool);
    engine_resume(pool->engine);
    engine_close_restored(pool->engine);
    if (pool->job_count > 0)
        recorder_process_want(pool->recorder_process);
    engine_events_settle(pool);
    return 0;
}

static int start_listening(struct pool *pool, struct berth_error *error)
{
    int code = listener_open(&pool->clients.listener, error);

    return code < 0 ? code : clients_listen(&pool->clients, error);
}

/* The daemon starts in this order and ends in the reverse one. */
static const struct pool_part parts[] = {
    {open_loop, close_loop},
    {client_events_init, client_events_finish},
    {prepare_process, close_signals},
    {open_accounts, close_accounts},
    {make_name, free_name},
    {lock_journal, close_journal},
    {configure_open, close_devices},
    {pool_init, pool_finish},
    {read_journal, NULL}, /* it has the pool's name, which the recorder gets */
    {recorder_events_init, recorder_events_finish},
    {start_journal, stop_journal},
    {lock_events_init, close_locks},
    {NULL, client_events_close_all}, /* the recorder may be connected from here on */
    {restore_leases, NULL},
    {start_listening, NULL},
};

static void run_pool(struct pool *pool)
{
    log_line(&pool->log, pool_clock_now(&pool->clock), "started",
             "version=%s pid=%d devices=%zu socket=%s", BERTH_VERSION, (int)pool->pid,
             engine_machine(pool->engine)->devices.count, log_quote(pool->settings.socket).text);
    privileges_log(pool);
    privileges_note_problems(pool);
    daemon_turn_start_watchdog(pool);
    activation_ready(pool->settings.ready);
    loop_run(&pool->loop, &(struct loop_turn){daemon_turn_end, daemon_turn_begin, pool});
    activation_stopping();
    if (pool->watchdog_socket >= 0)
        close(pool->watchdog_socket);
}

int daemon_run(const struct pool_settings *settings, struct berth_error *error)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    size_t count;
    int code;

    if (pool == NULL)
        return error_set_memory(error);
    pool->settings = *settings;
    pool->handlers = (struct pool_handlers){
        .continue_claims = deferred_claims_continue,
        .retry_adoption = handle_adopt_again,
    };
    pool->owner = geteuid();
    pool->pid = getpid();
    pool->journal.descriptor = -1;
    pool->signals.descriptor = -1;
    pool->launcher.socket = -1;
    daemon_turn_init(pool);
    code = pool_init_parts(pool, parts, COUNT(parts), &count, error);
    if (code == 0) {
        run_pool(pool);
        if (pool->lost)
            code = error_set_memory(error);
        else if (pool->is_launcher_lost)
            code = error_set(error, BERTH_ERROR_IO, "cannot continue: berth-launcher has ended");
    }
    if (code < 0 && error != NULL)
        log_line(&pool->log, pool_clock_now(&pool->clock), "error", "reason=%s",
                 log_quote(error->message).text);
    pool_finish_parts(pool, parts, count);
    free(pool);
    return code;
}
