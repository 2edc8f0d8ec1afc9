/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/users.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/connection.h"

/* A second's worth of messages may come at once. One of a user that waits for its bucket is read
 * when this much has come together, so that there is something to do each time. */
#define BURST DURATION_SECOND
#define PAUSE (DURATION_SECOND / 50)

/* A message costs one of those that its user may send in a second, and one more for each of these.
 * Measured on a small machine: HELLO, CLAIM, RELEASE, CANCEL take the daemon 5 to 15 us, a CLAIM or
 * TEST with a request that is new 10 to 20 us and, with 4096 ids in it, 600 us; EXPLAIN 200 to 400
 * us behind a thousand different claims, and a page of them 3 to 12 ms. So what is dear depends on
 * what there is rather than on the type, and time is what is counted. Bytes are what the journal
 * takes. */
#define TIME_OF_MESSAGE (50 * (DURATION_SECOND / 1000000))
enum { BYTES_OF_MESSAGE = 1024 };

/* What one user may spend in a turn of the loop; the rest comes in later turns, after others. */
enum { MESSAGES_OF_TURN = 32 };

#define SILENCE_MAX (30 * DURATION_SECOND)

/* Lines of the log: so many at once, then one in so much time. */
#define LINE_TIME     (DURATION_SECOND / 10)
#define LINES_AT_ONCE 50

/* How soon what is loose is looked at. */
#define LOOSE_PERIOD DURATION_SECOND

enum {
    WAITING_BYTES_MAX = 8 * 1024 * 1024,
    UNREAD_MAX = 16 * 1024 * 1024,
    DESCRIPTORS_KEPT = 256,
    PART_KEPT = 4, /* of all descriptors, when that is more */
};

static int64_t now_of(const struct user *user)
{
    return loop_now(&user->pool->loop);
}

static uint32_t rate_of(const struct user *user)
{
    uint32_t rate = user->pool->rules.bounds.messages;

    return rate == 0 ? 1 : rate;
}

/* ---- Entries ---- */

static void forget(struct user *user)
{
    list_remove(&user->in_loose);
    id_map_remove(&user->pool->users.by_uid, &user->by_uid);
    user->pool->users.count--;
    free(user);
}

static void tell_left_out(struct user *user)
{
    struct pool *pool = user->pool;

    if (user->lines_left_out == 0)
        return;
    log_line(&pool->log, pool_now(pool), "left_out", "uid=%u lines=%zu", (unsigned)user->by_uid.id,
             user->lines_left_out);
    user->lines_left_out = 0;
}

/* Looks at it again after a while. */
static void loosen(struct user *user)
{
    struct users *users = &user->pool->users;

    if (!list_is_linked(&user->in_loose))
        list_append(&users->loose, &user->in_loose);
    if (!list_is_linked(&users->loose_timer.in_loop))
        timer_set_at(&user->pool->loop, &users->loose_timer, now_of(user) + LOOSE_PERIOD);
}

/* One that came back at once would have a full bucket if it were forgotten before it has. */
static void loose_is_due(struct timer *timer)
{
    struct users *users = container_of(timer, struct users, loose_timer);
    struct pool *pool = container_of(users, struct pool, users);

    list_for_each (link, &users->loose) {
        struct user *user = container_of(link, struct user, in_loose);

        tell_left_out(user);
        if (user->references > 0)
            list_remove(link);
        else if (bucket_is_full(&user->messages, now_of(user)))
            forget(user);
    }
    if (!list_is_empty(&users->loose))
        timer_set_at(&pool->loop, timer, loop_now(&pool->loop) + LOOSE_PERIOD);
}

static struct user *find(const struct pool *pool, uint32_t uid)
{
    struct id_link *link = id_map_find(&pool->users.by_uid, uid);

    return link == NULL ? NULL : container_of(link, struct user, by_uid);
}

int user_open(struct pool *pool, uint32_t uid, struct user **ret_user)
{
    struct user *user = NULL;

    if (uid != 0 && uid != pool->owner) {
        user = find(pool, uid);
        if (user == NULL) {
            user = calloc(1, sizeof(*user));
            if (user == NULL)
                return BERTH_ERROR_MEMORY;
            user->pool = pool;
            user->by_uid.id = uid;
            list_init(&user->queue);
            id_map_reserve(&pool->users.by_uid, ++pool->users.count);
            id_map_add(&pool->users.by_uid, &user->by_uid);
        }
        user->references++;
    }
    *ret_user = user;
    return 0;
}

void user_close(struct user *user)
{
    if (user != NULL && --user->references == 0)
        loosen(user);
}

/* ---- Connections ---- */

int user_connect(struct pool *pool, uint32_t uid, struct user **ret_user, struct berth_error *error)
{
    uint32_t max = pool->rules.bounds.connections;
    struct user *user = NULL;
    int code = 0;

    if (user_open(pool, uid, &user) < 0)
        return error_set_memory(error);
    if (user != NULL) {
        user_charge_message(user, 0);
        if (user->connections >= max)
            code = error_set(error, BERTH_ERROR_LIMIT,
                             "too many connections of one user: the maximum is %u", max);
        else if (pool->users.connections >= pool->users.connections_max)
            code = error_set(error, BERTH_ERROR_LIMIT, "too many connections: the maximum is %zu",
                             pool->users.connections_max);
        if (code < 0) {
            user_close(user);
            return code;
        }
        user->connections++;
        pool->users.connections++;
    }
    *ret_user = user;
    return 0;
}

static void leave_queue(struct connection *connection)
{
    struct user *user = connection->user;

    list_remove(&connection->in_queue);
    if (list_is_empty(&user->queue))
        list_remove(&user->in_busy);
}

void user_disconnect(struct connection *connection)
{
    struct user *user = connection->user;

    if (user == NULL)
        return;
    list_remove(&connection->in_silent);
    leave_queue(connection);
    user->connections--;
    user->pool->users.connections--;
    connection->user = NULL;
    user_close(user);
}

void users_await(struct connection *connection)
{
    struct pool *pool = connection->pool;

    connection->silent_since = loop_now(&pool->loop);
    list_append(&pool->users.silent, &connection->in_silent);
    if (!list_is_linked(&pool->users.silence.in_loop))
        timer_set_at(&pool->loop, &pool->users.silence, connection->silent_since + SILENCE_MAX);
}

void users_heard(struct connection *connection)
{
    list_remove(&connection->in_silent);
}

static void silence_is_over(struct timer *timer)
{
    struct users *users = container_of(timer, struct users, silence);
    struct pool *pool = container_of(users, struct pool, users);
    struct berth_error error = BERTH_ERROR_INIT;

    error_set(&error, BERTH_ERROR_TIMED_OUT, "cannot keep the connection: no message within %s",
              quantity_format_duration(SILENCE_MAX).text);
    list_for_each (link, &users->silent) {
        struct connection *connection = container_of(link, struct connection, in_silent);

        if (connection->silent_since + SILENCE_MAX > loop_now(&pool->loop)) {
            timer_set_at(&pool->loop, timer, connection->silent_since + SILENCE_MAX);
            break;
        }
        list_remove(link);
        /* One that waits for its turn may have spoken long ago. */
        if (list_is_linked(&connection->in_queue))
            users_await(connection);
        else
            connection_fail(connection, &error);
    }
}

/* ---- Messages ---- */

static void charge(struct user *user, uint64_t messages)
{
    uint32_t rate = rate_of(user);

    /* Whatever it was, it is paid for in a second. */
    if (messages > rate)
        messages = rate;
    bucket_take(&user->messages, now_of(user), (int64_t)messages * (DURATION_SECOND / rate));
    if (user->turn != user->pool->users.turn)
        user->spent = 0;
    user->turn = user->pool->users.turn;
    user->spent += (uint32_t)messages;
}

void user_charge_message(struct user *user, size_t bytes)
{
    charge(user, 1 + bytes / BYTES_OF_MESSAGE);
}

void user_charge_time(struct user *user, int64_t time)
{
    if (time >= TIME_OF_MESSAGE)
        charge(user, (uint64_t)(time / TIME_OF_MESSAGE));
}

static bool has_spent_its_turn(const struct user *user)
{
    return user->turn == user->pool->users.turn && user->spent >= MESSAGES_OF_TURN;
}

static bool may_go_on(const struct user *user)
{
    return bucket_ready_at(&user->messages, BURST) < now_of(user) && !has_spent_its_turn(user);
}

bool user_may_speak(struct connection *connection)
{
    struct user *user = connection->user;

    if (user == NULL || (list_is_empty(&user->queue) && may_go_on(user)))
        return true;
    if (list_is_linked(&connection->in_queue))
        return false;
    /* Without being watched for anything it would still be reported when the other side hangs up.
     */
    loop_remove(&user->pool->loop, &connection->watch);
    list_append(&user->queue, &connection->in_queue);
    if (!list_is_linked(&user->in_busy))
        list_append(&user->pool->users.busy, &user->in_busy);
    return false;
}

static void turn_has_come(struct timer *timer)
{
    /* Waking up was all: what there is to do is done before the next wait. */
    (void)timer;
}

/* When it can go on: as soon as others have had their turns, or when its bucket has something. */
static int64_t time_to_go_on(const struct user *user)
{
    int64_t ready = bucket_ready_at(&user->messages, BURST);

    return ready < now_of(user) ? now_of(user) : ready + PAUSE;
}

void users_serve(struct pool *pool)
{
    struct users *users = &pool->users;
    int64_t next = LOOP_NEVER;

    if (list_is_empty(&users->busy))
        return;
    list_for_each (link, &users->busy) {
        struct user *user = container_of(link, struct user, in_busy);

        while (list_is_linked(&user->in_busy) && may_go_on(user)) {
            struct connection *connection =
                container_of(list_first(&user->queue), struct connection, in_queue);

            leave_queue(connection);
            connection_serve(connection);
        }
        if (list_is_linked(&user->in_busy) && time_to_go_on(user) < next)
            next = time_to_go_on(user);
    }
    timer_set_at(&pool->loop, &users->resume, next);
}

/* ---- What is kept for it ---- */

int user_check_waiting(const struct user *user, size_t bytes, struct berth_error *error)
{
    uint32_t max = user == NULL ? 0 : user->pool->rules.bounds.waiting;

    if (user == NULL)
        return 0;
    if (user->waiting >= max)
        return error_set(error, BERTH_ERROR_LIMIT,
                         "too many queued claims, pending requests and inner leases of one user: "
                         "the maximum is %u",
                         max);
    if (user->waiting_bytes + bytes > WAITING_BYTES_MAX)
        return error_set(error, BERTH_ERROR_LIMIT,
                         "too many bytes of pending requests of one user: the maximum is %d MiB",
                         WAITING_BYTES_MAX / (1024 * 1024));
    return 0;
}

void user_wait(struct user *user, size_t bytes)
{
    if (user == NULL)
        return;
    user->waiting++;
    user->waiting_bytes += bytes;
}

void user_wait_over(struct user *user, size_t bytes)
{
    if (user == NULL)
        return;
    user->waiting--;
    user->waiting_bytes -= bytes;
}

bool user_keep_unread(struct user *user, size_t bytes)
{
    if (user == NULL)
        return true;
    user->unread += bytes;
    return user->unread <= UNREAD_MAX;
}

void user_forget_unread(struct user *user, size_t bytes)
{
    if (user != NULL)
        user->unread -= bytes;
}

/* ---- The log ---- */

bool user_may_log(struct user *user)
{
    int64_t now;

    if (user == NULL)
        return true;
    now = now_of(user);
    if (bucket_ready_at(&user->lines, LINES_AT_ONCE * LINE_TIME) >= now) {
        user->lines_left_out++;
        loosen(user);
        return false;
    }
    bucket_take(&user->lines, now, LINE_TIME);
    return true;
}

/* ---- All of them ---- */

void users_share(struct pool *pool, size_t descriptors)
{
    size_t kept = descriptors / PART_KEPT;

    if (kept < DESCRIPTORS_KEPT)
        kept = DESCRIPTORS_KEPT;
    pool->users.connections_max = descriptors > 2 * kept ? descriptors - kept : descriptors / 2;
}

void users_apply_rules(struct pool *pool)
{
    struct users *users = &pool->users;

    for (size_t i = 0; i <= users->by_uid.mask; i++) {
        for (struct id_link *link = users->by_uid.buckets[i]; link != NULL; link = link->next)
            bucket_fill(&container_of(link, struct user, by_uid)->messages);
    }
}

int users_init(struct pool *pool, struct berth_error *error)
{
    struct users *users = &pool->users;

    list_init(&users->busy);
    list_init(&users->silent);
    list_init(&users->loose);
    users->resume.fire = turn_has_come;
    users->silence.fire = silence_is_over;
    users->loose_timer.fire = loose_is_due;
    users->connections_max = SIZE_MAX;
    return id_map_init(&users->by_uid) < 0 ? error_set_memory(error) : 0;
}

void users_finish(struct pool *pool)
{
    struct users *users = &pool->users;

    /* Nobody refers to any: connections and jobs are gone. */
    list_for_each (link, &users->loose) {
        struct user *user = container_of(link, struct user, in_loose);

        tell_left_out(user);
        forget(user);
    }
    timer_set_at(&pool->loop, &users->resume, LOOP_NEVER);
    timer_set_at(&pool->loop, &users->silence, LOOP_NEVER);
    timer_set_at(&pool->loop, &users->loose_timer, LOOP_NEVER);
    id_map_finish(&users->by_uid);
}
