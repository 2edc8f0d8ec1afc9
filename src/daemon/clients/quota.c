/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/quota.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/clients.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/quota_internal.h"
#include "spec/configuration/configuration.h"

/* The messages of a second may come at once. A user with an empty bucket is served again when the
 * bucket holds this much, so that each wake-up has something to do. */
#define BURST DURATION_SECOND
#define PAUSE (DURATION_SECOND / 50)

/* A message costs one of the messages that its user may send in a second, and one more for each of
 * these. Measured on a small machine: HELLO, CLAIM, RELEASE, CANCEL take the daemon 5 to 15 us, a
 * CLAIM or TEST with a new request 10 to 20 us and, with 4096 ids in it, 600 us; EXPLAIN 200 to 400
 * us behind a thousand different claims, and a page of them 3 to 12 ms. The cost depends on the
 * state of the pool rather than on the type, so time is counted. Bytes stand for the journal. */
#define TIME_OF_MESSAGE (50 * (DURATION_SECOND / 1000000))
enum { BYTES_OF_MESSAGE = 1024 };

/* A client that waits sends a ping every 2.5 s (client/silence.h). The pings of a user's waiting
 * clients must not use up the user's messages. */
#define FREE_PING_PERIOD (2 * DURATION_SECOND)

/* The maximum number of messages of one user in a turn of the loop. */
enum { MESSAGES_OF_TURN = 32 };

#define SILENCE_MAX (30 * DURATION_SECOND)

#define REVIEW_PERIOD DURATION_SECOND

enum {
    WAITING_BYTES_MAX = 8 * 1024 * 1024,
    UNREAD_MAX = 16 * 1024 * 1024,
    DESCRIPTORS_KEPT = 256,
    PART_KEPT = 4, /* a quarter of all descriptors, if that is more */
};

static int64_t now_of(const struct quota *user)
{
    return loop_now(user->clients->settings.loop);
}

static uint32_t rate_of(const struct quota *user)
{
    uint32_t rate = user->clients->settings.rules->bounds.messages;

    return rate == 0 ? 1 : rate;
}

/* ---- Entries ---- */

static void forget_user(struct quota *user)
{
    list_remove(&user->in_review);
    id_map_remove(&user->clients->quotas.by_uid, &user->by_uid);
    user->clients->quotas.count--;
    free(user);
}

void quota_review_later(struct quota *user)
{
    struct quotas *users = &user->clients->quotas;
    int64_t soonest = now_of(user) + REVIEW_PERIOD;

    if (!list_is_linked(&user->in_review))
        list_append(&users->review, &user->in_review);
    if (!list_is_linked(&users->review_timer.in_loop) || users->review_timer.at > soonest)
        loop_set_timer(user->clients->settings.loop, &users->review_timer, soonest);
}

/* Returns when all buckets of the user are full. */
static int64_t find_full_at(const struct quota *user)
{
    int64_t at = user->messages.full_at;

    at = user->lines.full_at > at ? user->lines.full_at : at;
    return user->lease_lines.full_at > at ? user->lease_lines.full_at : at;
}

/* Reviews one user. Forgets a user only with full buckets: the next connection would begin with
 * full ones. Returns when to review the user again; LOOP_NEVER: not before quota_review_later(). */
static int64_t review_user(struct quota *user)
{
    int64_t now = now_of(user);
    int64_t full_at = find_full_at(user);
    int64_t log_at = quota_log_review(user);

    if (log_at != LOOP_NEVER)
        return log_at;
    if (user->references == 0 && full_at > now)
        return full_at;
    if (user->references > 0)
        list_remove(&user->in_review);
    else
        forget_user(user);
    return LOOP_NEVER;
}

static void review_users(struct timer *timer)
{
    struct quotas *users = container_of(timer, struct quotas, review_timer);
    struct clients *clients = container_of(users, struct clients, quotas);
    int64_t soonest = loop_now(clients->settings.loop) + REVIEW_PERIOD;
    int64_t next = LOOP_NEVER;

    list_for_each (link, &users->review) {
        int64_t at = review_user(container_of(link, struct quota, in_review));

        next = at < next ? at : next;
    }
    loop_set_timer(clients->settings.loop, timer,
                   next == LOOP_NEVER || next > soonest ? next : soonest);
}

static struct quota *find_user(const struct clients *clients, uint32_t uid)
{
    struct id_link *link = id_map_find(&clients->quotas.by_uid, uid);

    return link == NULL ? NULL : container_of(link, struct quota, by_uid);
}

int quota_open(struct clients *clients, uint32_t uid, struct quota **ret_user)
{
    struct quota *user = NULL;

    if (uid != 0 && uid != clients->settings.owner) {
        user = find_user(clients, uid);
        if (user == NULL) {
            user = calloc(1, sizeof(*user));
            if (user == NULL)
                return BERTH_ERROR_MEMORY;
            user->clients = clients;
            user->by_uid.id = uid;
            list_init(&user->queue);
            list_init(&user->connections);
            id_map_reserve(&clients->quotas.by_uid, ++clients->quotas.count);
            id_map_add(&clients->quotas.by_uid, &user->by_uid);
        }
        user->references++;
    }
    *ret_user = user;
    return 0;
}

void quota_close(struct quota *user)
{
    if (user != NULL && --user->references == 0)
        quota_review_later(user);
}

/* ---- Connections ---- */

static struct quota *find_largest(const struct clients *clients)
{
    const struct id_map *map = &clients->quotas.by_uid;
    struct quota *largest = NULL;

    for (size_t i = 0; i <= map->mask; i++) {
        for (struct id_link *link = map->buckets[i]; link != NULL; link = link->next) {
            struct quota *user = container_of(link, struct quota, by_uid);

            if (largest == NULL || user->connection_count > largest->connection_count)
                largest = user;
        }
    }
    return largest;
}

/* Returns the newest connection without a job, or else the newest connection. */
static struct connection *choose_victim(const struct quota *user)
{
    struct list_link *newest = list_last(&user->connections);

    for (struct list_link *link = newest; link != &user->connections.ends; link = link->previous) {
        struct connection *connection = container_of(link, struct connection, in_quota);

        if (connection->job_count == 0)
            return connection;
    }
    return container_of(newest, struct connection, in_quota);
}

/* Closes a connection of the user with the most, unless a user with `count` connections has as
 * many. Returns whether there is room now. */
static bool make_room(struct clients *clients, size_t count)
{
    const struct quota *largest = find_largest(clients);
    struct berth_error error = BERTH_ERROR_INIT;
    struct connection *victim;

    if (largest == NULL || largest->connection_count <= count)
        return false;
    victim = choose_victim(largest);
    error_set(&error, BERTH_ERROR_LIMIT,
              "too many connections of one user: another user needs one of them");
    connection_fail(victim, &error);
    quota_disconnect(victim);
    return true;
}

static int check_connections(const struct quota *user, bool is_full, struct berth_error *error)
{
    struct clients *clients = user->clients;
    uint32_t max = clients->settings.rules->bounds.connections;
    size_t count = user->connection_count + 1;

    if (count > max)
        return error_set(error, BERTH_ERROR_LIMIT,
                         "too many connections of one user: the maximum is %u", max);
    if (clients->quotas.connections < clients->quotas.connections_max && !is_full)
        return 0;
    if (count <= QUOTA_CONNECTIONS_SURE && (make_room(clients, count) || is_full))
        return 0;
    return error_set(error, BERTH_ERROR_LIMIT, "too many connections: the maximum is %zu",
                     clients->quotas.connections_max);
}

int quota_connect(struct connection *connection, uint32_t uid, bool is_full,
                  struct berth_error *error)
{
    struct clients *clients = connection->clients;
    struct quota *user = NULL;
    int code = quota_open(clients, uid, &user);

    if (code < 0)
        return error_set_memory(error);
    if (user == NULL) {
        if (is_full)
            make_room(clients, 1);
        return 0;
    }
    quota_charge_message(user, 0);
    code = check_connections(user, is_full, error);
    if (code < 0) {
        quota_close(user);
        return code;
    }
    list_append(&user->connections, &connection->in_quota);
    user->connection_count++;
    clients->quotas.connections++;
    connection->quota = user;
    return 0;
}

static void leave_queue(struct connection *connection)
{
    struct quota *user = connection->quota;

    list_remove(&connection->in_queue);
    if (list_is_empty(&user->queue))
        list_remove(&user->in_busy);
}

void quota_disconnect(struct connection *connection)
{
    struct quota *user = connection->quota;

    if (user == NULL)
        return;
    list_remove(&connection->in_silent);
    leave_queue(connection);
    list_remove(&connection->in_quota);
    user->connection_count--;
    user->clients->quotas.connections--;
    connection->quota = NULL;
    quota_close(user);
}

void quota_await_message(struct connection *connection)
{
    struct clients *clients = connection->clients;

    connection->silent_since = loop_now(clients->settings.loop);
    list_append(&clients->quotas.silent, &connection->in_silent);
    if (!list_is_linked(&clients->quotas.silence.in_loop))
        loop_set_timer(clients->settings.loop, &clients->quotas.silence,
                       connection->silent_since + SILENCE_MAX);
}

void quota_heard(struct connection *connection)
{
    list_remove(&connection->in_silent);
}

/* After a pause of the daemon, or while the connection waits for its turn, the first message may
 * wait to be read. */
static bool has_unread_message(const struct connection *connection)
{
    char byte;

    return list_is_linked(&connection->in_queue) ||
           recv(connection->watch.descriptor, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void close_silent(struct timer *timer)
{
    struct quotas *users = container_of(timer, struct quotas, silence);
    struct clients *clients = container_of(users, struct clients, quotas);
    struct berth_error error = BERTH_ERROR_INIT;

    error_set(&error, BERTH_ERROR_TIMED_OUT, "cannot keep the connection: no message within %s",
              quantity_format_duration(SILENCE_MAX).text);
    list_for_each (link, &users->silent) {
        struct connection *connection = container_of(link, struct connection, in_silent);

        if (connection->silent_since + SILENCE_MAX > loop_now(clients->settings.loop)) {
            loop_set_timer(clients->settings.loop, timer, connection->silent_since + SILENCE_MAX);
            break;
        }
        list_remove(link);
        if (has_unread_message(connection))
            quota_await_message(connection);
        else
            connection_fail(connection, &error);
    }
}

/* ---- Messages ---- */

static void count_in_turn(struct quota *user, uint64_t messages)
{
    if (user->turn != user->clients->quotas.turn)
        user->spent = 0;
    user->turn = user->clients->quotas.turn;
    user->spent += (uint32_t)messages;
}

static void charge_user(struct quota *user, uint64_t messages)
{
    uint32_t rate = rate_of(user);

    /* A message costs at most one second. */
    if (messages > rate)
        messages = rate;
    rate_limit_take(&user->messages, now_of(user), (int64_t)messages * (DURATION_SECOND / rate));
    count_in_turn(user, messages);
}

void quota_charge_message(struct quota *user, size_t bytes)
{
    charge_user(user, 1 + bytes / BYTES_OF_MESSAGE);
}

void quota_charge_ping(struct connection *connection, size_t bytes)
{
    int64_t now = now_of(connection->quota);
    bool is_due = connection->pinged_at != 0 && now - connection->pinged_at >= FREE_PING_PERIOD;

    if (is_due || connection->pinged_at == 0)
        connection->pinged_at = now;
    if (is_due && bytes < BYTES_OF_MESSAGE)
        count_in_turn(connection->quota, 1);
    else
        quota_charge_message(connection->quota, bytes);
}

void quota_charge_time(struct quota *user, int64_t time)
{
    if (time >= TIME_OF_MESSAGE)
        charge_user(user, (uint64_t)(time / TIME_OF_MESSAGE));
}

static bool has_spent_its_turn(const struct quota *user)
{
    return user->turn == user->clients->quotas.turn && user->spent >= MESSAGES_OF_TURN;
}

static bool may_go_on(const struct quota *user)
{
    return rate_limit_ready_at(&user->messages, BURST) < now_of(user) && !has_spent_its_turn(user);
}

bool quota_may_speak(struct connection *connection)
{
    struct quota *user = connection->quota;

    if (user == NULL || (list_is_empty(&user->queue) && may_go_on(user)))
        return true;
    if (list_is_linked(&connection->in_queue))
        return false;
    /* Even without events, epoll would report the peer's hang-up. */
    loop_remove(user->clients->settings.loop, &connection->watch);
    list_append(&user->queue, &connection->in_queue);
    if (!list_is_linked(&user->in_busy))
        list_append(&user->clients->quotas.busy, &user->in_busy);
    return false;
}

static void do_nothing(struct timer *timer)
{
    /* quota_serve() follows before the next wait. */
    (void)timer;
}

/* Returns the time at which the user can go on: at once, in the next turn, if the bucket is not
 * empty. */
static int64_t time_to_go_on(const struct quota *user)
{
    int64_t ready = rate_limit_ready_at(&user->messages, BURST);

    return ready < now_of(user) ? now_of(user) : ready + PAUSE;
}

void quota_serve(struct clients *clients)
{
    struct quotas *users = &clients->quotas;
    int64_t next = LOOP_NEVER;

    if (list_is_empty(&users->busy))
        return;
    list_for_each (link, &users->busy) {
        struct quota *user = container_of(link, struct quota, in_busy);

        while (list_is_linked(&user->in_busy) && may_go_on(user)) {
            struct connection *connection =
                container_of(list_first(&user->queue), struct connection, in_queue);

            leave_queue(connection);
            connection_serve(connection);
        }
        if (list_is_linked(&user->in_busy) && time_to_go_on(user) < next)
            next = time_to_go_on(user);
    }
    loop_set_timer(clients->settings.loop, &users->resume, next);
}

/* ---- Requests and answers in memory ---- */

int quota_check_waiting(const struct quota *user, size_t bytes, struct berth_error *error)
{
    uint32_t max = user == NULL ? 0 : user->clients->settings.rules->bounds.waiting;

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

void quota_wait(struct quota *user, size_t bytes)
{
    if (user == NULL)
        return;
    user->waiting++;
    user->waiting_bytes += bytes;
}

void quota_wait_over(struct quota *user, size_t bytes)
{
    if (user == NULL)
        return;
    user->waiting--;
    user->waiting_bytes -= bytes;
}

bool quota_keep_unread(struct quota *user, size_t bytes)
{
    if (user == NULL)
        return true;
    user->unread += bytes;
    return user->unread <= UNREAD_MAX;
}

void quota_forget_unread(struct quota *user, size_t bytes)
{
    if (user != NULL)
        user->unread -= bytes;
}

/* ---- All users ---- */

void quota_share_descriptors(struct clients *clients, size_t descriptors)
{
    size_t kept = descriptors / PART_KEPT;

    if (kept < DESCRIPTORS_KEPT)
        kept = DESCRIPTORS_KEPT;
    clients->quotas.connections_max = descriptors > 2 * kept ? descriptors - kept : descriptors / 2;
}

void quota_apply_bounds(struct clients *clients)
{
    struct quotas *users = &clients->quotas;

    for (size_t i = 0; i <= users->by_uid.mask; i++) {
        for (struct id_link *link = users->by_uid.buckets[i]; link != NULL; link = link->next)
            rate_limit_fill(&container_of(link, struct quota, by_uid)->messages);
    }
}

int quota_init(struct clients *clients, struct berth_error *error)
{
    struct quotas *users = &clients->quotas;

    list_init(&users->busy);
    list_init(&users->silent);
    list_init(&users->review);
    users->resume.fire = do_nothing;
    users->silence.fire = close_silent;
    users->review_timer.fire = review_users;
    users->connections_max = SIZE_MAX;
    return id_map_init(&users->by_uid) < 0 ? error_set_memory(error) : 0;
}

void quota_finish(struct clients *clients)
{
    struct quotas *users = &clients->quotas;

    /* No connection or job refers to a user any more. */
    list_for_each (link, &users->review) {
        struct quota *user = container_of(link, struct quota, in_review);

        quota_log_left_out(user);
        forget_user(user);
    }
    loop_set_timer(clients->settings.loop, &users->resume, LOOP_NEVER);
    loop_set_timer(clients->settings.loop, &users->silence, LOOP_NEVER);
    loop_set_timer(clients->settings.loop, &users->review_timer, LOOP_NEVER);
    id_map_finish(&users->by_uid);
}
