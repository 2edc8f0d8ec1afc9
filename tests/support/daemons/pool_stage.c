/* SPDX-License-Identifier: Apache-2.0 */
#include "support/daemons/pool_stage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "daemon/devices/device_locks.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/recorder_events.h"
#include "daemon/stream/recorder_process.h"
#include "support/engine/engines.h"

#define RUN_TIMEOUT (20 * DURATION_SECOND)

static struct pool_stage *stage_of(struct pool *pool)
{
    return container_of(pool, struct pool_stage, pool);
}

/* ---- A pool's callbacks ---- */

static void count_continued(struct pool *pool)
{
    stage_of(pool)->continued++;
}

static bool count_retried(struct watcher *watcher)
{
    struct pool_stage *stage = stage_of(pool_of(watcher->connection));

    stage->retried++;
    return stage->retry_succeeds;
}

static void ignore_received(void *context, struct connection *connection,
                            struct wire_message *message)
{
    (void)context;
    (void)connection;
    (void)message;
}

static void ignore_sent(void *context, int type)
{
    (void)context;
    (void)type;
}

static void settle_pool(void *context)
{
    engine_events_settle(context);
}

static bool is_journal_behind(void *context)
{
    struct pool *pool = context;

    return journal_file_is_behind(&pool->journal);
}

static void forget_connection(void *context, struct connection *connection)
{
    struct pool *pool = context;

    if (stage_of(pool)->closed != NULL) {
        stage_of(pool)->closed(pool, connection);
        return;
    }
    list_for_each (link, &connection->watchers)
        watcher_free(container_of(link, struct watcher, in_connection));
    job_detach_all(connection);
}

static bool is_never(void *context, uint32_t slot)
{
    (void)context;
    (void)slot;
    return false;
}

static bool is_never_wanted(void *context)
{
    (void)context;
    return false;
}

/* ---- Parts ---- */

static int start_recorder(struct pool *pool, struct berth_error *error)
{
    return recorder_process_create(&pool->recorder_process,
                                   &(struct recorder_process_settings){
                                       .loop = &pool->loop,
                                       .log = &pool->log,
                                       .clock = &pool->clock,
                                       .program = "/nonexistent/berth-recorder",
                                       .pool_name = "stage",
                                   },
                                   &(struct recorder_order){.file = NULL}, error);
}

const struct pool_part pool_stage_all[POOL_STAGE_ALL] = {
    {pool_init, pool_finish},
    {start_recorder, recorder_events_finish},
};

/* ---- Making and freeing ---- */

static void open_clients(struct pool *pool)
{
    listener_init(&pool->clients.listener, pool->settings.socket, -1, false);
    assert_int_equal(clients_init(&pool->clients,
                                  &(struct clients_settings){
                                      .loop = &pool->loop,
                                      .log = &pool->log,
                                      .clock = &pool->clock,
                                      .rules = &pool->rules,
                                      .accounts = &pool->accounts,
                                      .owner = pool->owner,
                                      .callbacks = {.received = ignore_received,
                                                    .sent_to_recorder = ignore_sent,
                                                    .settle = settle_pool,
                                                    .must_wait = is_journal_behind,
                                                    .closed = forget_connection,
                                                    .context = pool},
                                  },
                                  NULL),
                     0);
    quota_share_descriptors(&pool->clients, 1000000);
}

static void make_engine(struct pool *pool, const struct pool_stage_settings *settings)
{
    const struct engine_settings rules = {
        .time_slice_tenants = pool->rules.time_slice_tenants,
        .mps_tenants = pool->rules.mps_tenants,
        .age_step = pool->rules.age_step,
        .grace = pool->rules.grace,
        .slots_max = settings->slots,
    };
    struct machine machine = {0};
    const struct device *device;

    machine_add_ids(&machine, settings->devices != NULL ? settings->devices
                                                        : "nvidia0,nvidia1,nvidia2,nvidia3");
    vector_for_each (device, &machine.devices)
        pool->vendors |= UINT32_C(1) << device->id.vendor;
    assert_int_equal(engine_create(&machine, &rules, &pool->engine, NULL), 0);
    engine_advance(pool->engine, pool_clock_now(&pool->clock));
}

/* Device locks without slots: no name is taken. */
static void make_locks(struct pool *pool)
{
    assert_int_equal(
        device_locks_create(
            &pool->device_locks,
            &(struct device_locks_settings){
                .loop = &pool->loop,
                .events = {.context = pool, .is_leased = is_never, .is_wanted = is_never_wanted},
            },
            NULL),
        0);
}

static void start_parts(struct pool_stage *stage)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (pool_init_parts(&stage->pool, stage->parts, stage->part_count, &stage->started, &error) < 0)
        fail_msg("%s", error.message);
    /* The list of jobs is there even without the part that makes all parts. */
    if (stage->pool.part_count == 0)
        assert_int_equal(job_init_pool(&stage->pool, NULL), 0);
}

static void start_journal(struct pool *pool)
{
    const struct event_sink sink = {
        .notify = engine_events_receive, .context = pool, .wanted = EVENT_ALL};

    pool->journal.descriptor = memfd_create("journal", MFD_CLOEXEC);
    assert_true(pool->journal.descriptor >= 0);
    pool->journaling = true;
    engine_set_sink(pool->engine, &sink);
}

struct pool_stage *pool_stage_make(const struct pool_stage_settings *settings)
{
    struct pool_stage *stage = calloc(1, sizeof(*stage));
    struct pool *pool = &stage->pool;

    assert_non_null(stage);
    stage->parts = settings->parts;
    stage->part_count = settings->part_count;
    pool->settings = (struct pool_settings){
        .socket = STAGE_SOCKET,
        .inventory = settings->is_hardware ? NULL : "/run/stage/devices.json",
        .own = settings->is_own,
        .listener = -1,
        .log = memfd_create("log", MFD_CLOEXEC),
        .ready = -1,
    };
    pool->handlers = (struct pool_handlers){count_continued, count_retried};
    pool->owner = STAGE_OWNER;
    pool->pid = getpid();
    pool->name = copy_of("0123456789abcdef");
    pool->journal = (struct journal_file)JOURNAL_FILE_INIT;
    pool->signals.descriptor = -1;
    pool->launcher.socket = -1;
    assert_int_equal(loop_init(&pool->loop, NULL), 0);
    pool->loop.now = settings->is_live ? 0 : STAGE_LOOP_NOW;
    pool->clock = (struct pool_clock){.loop = &pool->loop, .offset = STAGE_OFFSET};
    log_init(&pool->log, &pool->loop, pool->settings.log, NULL);
    accounts_init(&pool->accounts,
                  &(struct accounts_settings){.loop = &pool->loop, .pool_owner = STAGE_OWNER});
    assert_int_equal(configuration_read(NULL, &pool->rules, NULL), 0);
    open_clients(pool);
    make_engine(pool, settings);
    make_locks(pool);
    start_parts(stage);
    start_journal(pool);
    return stage;
}

static void close_connections(struct pool *pool)
{
    list_for_each (link, &pool->clients.connections) {
        struct connection *connection = container_of(link, struct connection, in_clients);

        list_for_each (watching, &connection->watchers)
            watcher_free(container_of(watching, struct watcher, in_connection));
        job_detach_all(connection);
        stage_of(pool)->closed = NULL;
        connection_close(connection);
    }
}

void pool_stage_free(struct pool_stage *stage)
{
    struct pool *pool = &stage->pool;

    close_connections(pool);
    device_locks_destroy(pool->device_locks);
    pool->journaling = false;
    engine_set_sink(pool->engine, &(struct event_sink){.notify = engine_events_receive});
    if (pool->part_count == 0)
        job_finish_pool(pool);
    pool_finish_parts(pool, stage->parts, stage->started);
    engine_destroy(pool->engine);
    configuration_finish(&pool->rules);
    vector_finish(&pool->limited);
    vector_finish(&pool->pending_events);
    text_finish(&pool->key);
    text_finish(&pool->record);
    machine_report_finish_problems(&pool->problems);
    journal_file_finish(&pool->journal);
    free(pool->journal_path);
    free(pool->name);
    accounts_finish(&pool->accounts);
    clients_finish(&pool->clients);
    log_finish(&pool->log);
    close(pool->settings.log);
    loop_finish(&pool->loop);
    text_finish(&stage->log);
    text_finish(&stage->journal);
    free(stage);
}

int pool_stage_begin(void **state)
{
    *state = pool_stage_make(
        &(struct pool_stage_settings){.parts = pool_stage_all, .part_count = POOL_STAGE_ALL});
    return 0;
}

int pool_stage_end(void **state)
{
    pool_stage_free(*state);
    return 0;
}

/* ---- Time ---- */

static struct timer *first_timer(const struct pool *pool)
{
    struct list_link *link = list_first(&pool->loop.timers);

    return link == NULL ? NULL : container_of(link, struct timer, in_loop);
}

static int64_t next_time(const struct pool *pool)
{
    int64_t of_engine = pool_clock_loop_time(&pool->clock, engine_next_time(pool->engine));
    const struct timer *timer = first_timer(pool);

    return timer != NULL && timer->at < of_engine ? timer->at : of_engine;
}

static void advance_engine(struct pool *pool)
{
    engine_advance(pool->engine, pool_clock_now(&pool->clock));
    engine_events_settle(pool);
}

static void fire_timers(struct pool *pool)
{
    struct timer *timer = first_timer(pool);

    while (timer != NULL && timer->at <= pool->loop.now) {
        loop_set_timer(&pool->loop, timer, LOOP_NEVER);
        timer->fire(timer);
        timer = first_timer(pool);
    }
}

void pool_stage_go_to(struct pool_stage *stage, int64_t time)
{
    struct pool *pool = &stage->pool;

    assert_true(time >= pool->loop.now);
    for (int64_t next = next_time(pool); next <= time; next = next_time(pool)) {
        if (next > pool->loop.now)
            pool->loop.now = next;
        advance_engine(pool);
        fire_timers(pool);
    }
    pool->loop.now = time;
    advance_engine(pool);
}

void pool_stage_go_on(struct pool_stage *stage, int64_t duration)
{
    pool_stage_go_to(stage, stage->pool.loop.now + duration);
}

struct stage_run {
    struct pool_stage *stage;
    bool (*is_done)(struct pool_stage *stage);
    struct timer timeout;
    bool is_late;
};

static void end_late_run(struct timer *timer)
{
    struct stage_run *run = container_of(timer, struct stage_run, timeout);

    run->is_late = true;
}

static void check_run(void *context)
{
    struct stage_run *run = context;

    engine_events_settle(&run->stage->pool);
    run->stage->pool.loop.ended = run->is_late || run->is_done(run->stage);
}

static void begin_turn(void *context)
{
    struct stage_run *run = context;

    advance_engine(&run->stage->pool);
}

void pool_stage_run(struct pool_stage *stage, bool (*is_done)(struct pool_stage *stage))
{
    struct stage_run run = {.stage = stage, .is_done = is_done, .timeout.fire = end_late_run};
    struct loop *loop = &stage->pool.loop;

    loop_set_timer(loop, &run.timeout, clock_read(CLOCK_BOOTTIME) + RUN_TIMEOUT);
    loop_run(loop, &(struct loop_turn){check_run, begin_turn, &run});
    loop_set_timer(loop, &run.timeout, LOOP_NEVER);
    loop->ended = false;
    assert_false(run.is_late);
}

/* ---- Clients ---- */

/* Makes the connection one of another user. */
static void change_user(struct connection *connection, uint32_t uid)
{
    if (connection->uid == uid)
        return;
    quota_disconnect(connection);
    connection->quota = NULL;
    connection->uid = connection->account = uid;
    assert_int_equal(quota_connect(connection, uid, false, NULL), 0);
}

struct stage_client pool_stage_connect(struct pool_stage *stage, uint32_t uid)
{
    struct clients *clients = &stage->pool.clients;
    struct stage_client client;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    connection_open(clients, ends[0], false);
    client.end = ends[1];
    client.connection =
        container_of(list_last(&clients->connections), struct connection, in_clients);
    assert_int_equal(client.connection->watch.descriptor, ends[0]);
    change_user(client.connection, uid);
    /* As if it had sent a message: a silent one is closed after a while. */
    if (client.connection->quota != NULL)
        quota_heard(client.connection);
    return client;
}

void pool_stage_end_turn(struct pool_stage *stage)
{
    struct pool *pool = &stage->pool;

    if (pool->followers != NULL)
        followers_notify(pool->followers);
    clients_end_turn(&pool->clients);
    clients_begin_turn(&pool->clients);
    advance_engine(pool);
}

void pool_stage_hang_up(struct pool_stage *stage, struct stage_client *client)
{
    if (client->end >= 0)
        close(client->end);
    client->end = -1;
    if (client->connection != NULL) {
        client->connection->watch.ready(&client->connection->watch, EPOLLIN);
        pool_stage_end_turn(stage);
    }
    client->connection = NULL;
}

bool pool_stage_receive(const struct stage_client *client, struct wire_message *ret_message)
{
    static unsigned char packet[WIRE_MESSAGE_MAX];
    ssize_t length = recv(client->end, packet, sizeof(packet), MSG_DONTWAIT);
    struct berth_error error = BERTH_ERROR_INIT;

    if (length <= 0)
        return false;
    if (wire_decode(packet, (size_t)length, ret_message, &error) < 0)
        fail_msg("%s", error.message);
    return true;
}

/* ---- Claims ---- */

static uint64_t parent_lease(const struct pool *pool, uint64_t id)
{
    const struct job *parent = id == 0 ? NULL : job_of_id(pool, id);

    assert_true(id == 0 || (parent != NULL && parent->by_lease.id != 0));
    return parent == NULL ? 0 : parent->by_lease.id;
}

static struct job *make_job(struct pool_stage *stage, const struct stage_claim *claim, uint32_t uid)
{
    struct pool *pool = &stage->pool;
    struct holder *holder =
        job_holder_new(uid, claim->pid == 0 ? getpid() : claim->pid, claim->parent, claim->command);
    struct job *job;

    assert_non_null(holder);
    job = job_new(pool, claim->connection, holder);
    job_holder_release(holder);
    assert_non_null(job);
    job->number = ++stage->numbers;
    job->by_token.id = ++stage->tokens;
    job->hold = claim->hold;
    job->since = pool_clock_now(&pool->clock);
    return job;
}

struct job *pool_stage_claim(struct pool_stage *stage, const struct stage_claim *claim)
{
    struct pool *pool = &stage->pool;
    uint32_t uid = claim->uid == 0 && !claim->is_root ? STAGE_USER : claim->uid;
    struct job *job = make_job(stage, claim, uid);
    struct requester requester = {.uid = uid, .parent = parent_lease(pool, claim->parent)};
    struct cached_request *cached;
    struct berth_error error = BERTH_ERROR_INIT;
    struct world_asking asking;
    uint64_t id = 0;
    int code;

    asking_init(&asking, claim->words);
    if (request_cache_open(pool, &asking.what, &requester, &cached, &error) < 0)
        fail_msg("%s", error.message);
    code = engine_claim(pool->engine, cached->request, TIME_NEVER, NULL, &id, &error);
    if (code < 0)
        fail_msg("%s", error.message);
    job_add(pool, job, id, code == CLAIM_GRANTED ? id : 0);
    job->state = code == CLAIM_GRANTED ? JOB_HELD : JOB_WAITING;
    journal_write_job(pool, job);
    request_cache_release(pool, cached);
    asking_finish(&asking);
    return job;
}

void pool_stage_release_requests(struct pool_stage *stage)
{
    struct id_map *map = &stage->pool.requests;

    for (size_t i = 0; i <= map->mask; i++) {
        struct id_link *link = map->buckets[i];

        while (link != NULL) {
            struct cached_request *cached = container_of(link, struct cached_request, by_hash);

            link = link->next;
            if (cached->users > 0) {
                cached->users = 1;
                request_cache_release(&stage->pool, cached);
                request_cache_drop_unused(&stage->pool);
                link = map->buckets[i];
            }
        }
    }
}

struct wire_message pool_stage_message(struct pool_stage *stage, const char *words)
{
    struct wire_message message = {
        .type = WIRE_CLAIM, .number = ++stage->numbers, .hold = LEASE_HOLD_CONNECTION};
    struct world_asking asking;

    message.token[0] = message.token[1] = ++stage->tokens;
    message.request = malloc(sizeof(*message.request));
    assert_non_null(message.request);
    asking_init(&asking, words);
    *message.request = asking.what;
    vector_finish(&asking.own.mask);
    return message;
}

/* ---- The log and the journal ---- */

const char *pool_stage_log(struct pool_stage *stage)
{
    struct log *log = &stage->pool.log;
    char bytes[4096];
    ssize_t length;
    bool is_in_time = true;

    log_flush(log);
    text_clear(&stage->log);
    while ((length = pread(log->descriptor, bytes, sizeof(bytes), (off_t)stage->log_read)) > 0) {
        stage->log_read += (size_t)length;
        /* Each line begins with its time. */
        for (ssize_t i = 0; i < length; i++) {
            if (!is_in_time)
                text_append_char(&stage->log, bytes[i]);
            is_in_time = bytes[i] == '\n' || (is_in_time && bytes[i] != ' ');
        }
    }
    return text_string(&stage->log);
}

static void describe_job(const struct journal_record *record, struct text *out)
{
    static const char *const holds[] = {"connection", "process", "nothing"};
    struct kept_job kept = {0};

    assert_int_equal(journal_decode_custom(record, &kept_job_tagged, &kept, NULL), 0);
    text_append_format(out, "job %" PRIu64 " uid %u pid %d held by %s", kept.id, kept.uid,
                       (int)kept.pid, holds[kept.hold]);
    if (kept.end != 0)
        text_append_format(out, " ends: %s", pool_info_describe_end(kept.end));
    text_append(out, kept.draining ? ", draining" : "");
    text_append(out, kept.adopted ? ", adopted" : "");
    text_append(out, kept.unprepared ? ", unprepared" : "");
    if (kept.force_at != TIME_NEVER)
        text_append_format(out, ", force at %" PRId64,
                           (kept.force_at - STAGE_NOW) / DURATION_SECOND);
    tagged_finish(&kept_job_tagged, &kept);
}

static void describe_own(const struct journal_record *record, struct text *out)
{
    struct kept_ended ended = {0};
    struct kept_drain drain = {0};
    struct kept_epilog epilog = {0};
    struct kept_devices devices = {0};
    struct device *device;

    switch ((int)record->event.type) {
    case KEEP_POOL:
        text_append(out, "pool");
        break;
    case KEEP_JOB:
        describe_job(record, out);
        break;
    case KEEP_ENDED:
        assert_int_equal(journal_decode_custom(record, &kept_ended_tagged, &ended, NULL), 0);
        text_append_format(out, "ended %" PRIu64 " uid %u exit %" PRIu64, ended.id, ended.uid,
                           ended.exit_code.value);
        break;
    case KEEP_DEVICES:
        assert_int_equal(journal_decode_custom(record, &kept_devices_tagged, &devices, NULL), 0);
        text_append(out, "devices");
        vector_for_each (device, &devices.devices)
            text_append_format(out, " %s", device_id_format(device->id).text);
        tagged_finish(&kept_devices_tagged, &devices);
        break;
    case KEEP_DRAIN:
        assert_int_equal(journal_decode_custom(record, &kept_drain_tagged, &drain, NULL), 0);
        text_append_format(out, "drain %u %s%s%s", drain.slot, drain.time == 0 ? "over" : "begun",
                           drain.reason == NULL ? "" : ": ",
                           drain.reason == NULL ? "" : drain.reason);
        tagged_finish(&kept_drain_tagged, &drain);
        break;
    case KEEP_EPILOG:
        assert_int_equal(journal_decode_custom(record, &kept_epilog_tagged, &epilog, NULL), 0);
        text_append_format(out, "epilog %u of lease %" PRIu64 " %s", epilog.slot, epilog.lease,
                           epilog.is_due ? "due" : "over");
        tagged_finish(&kept_epilog_tagged, &epilog);
        break;
    default:
        text_append_format(out, "record %d", (int)record->event.type);
    }
}

/* Appends an event of the engine without its time. */
static void describe_event(const struct engine_event *event, struct text *out)
{
    struct text words = {0};

    journal_describe(event, &words);
    text_append(out, strchr(text_string(&words), ' ') + 1);
    text_finish(&words);
}

const char *pool_stage_journal(struct pool_stage *stage)
{
    struct journal_file *file = &stage->pool.journal;
    size_t length = file->used - stage->journal_read;
    unsigned char *bytes = malloc(length + 1);
    size_t used = 0;

    assert_non_null(bytes);
    assert_int_equal(pread(file->descriptor, bytes, length, (off_t)stage->journal_read), length);
    text_clear(&stage->journal);
    for (size_t at = 0; at < length; at += used) {
        struct journal_record record = {0};

        assert_int_equal(journal_decode(bytes + at, length - at, &record, &used, NULL),
                         JOURNAL_COMPLETE);
        if (record.unknown)
            describe_own(&record, &stage->journal);
        else
            describe_event(&record.event, &stage->journal);
        text_append_char(&stage->journal, '\n');
        journal_record_finish(&record);
    }
    stage->journal_read = file->used;
    free(bytes);
    return text_string(&stage->journal);
}
