/* SPDX-License-Identifier: Apache-2.0 */
#include "web/event_clients.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "view/pool_fingerprint.h"
#include "web/events.h"

/* If more leases change at once, the whole state is sent. */
enum { CHANGES_MAX = 200 };

/* The utilization of the last 6 minutes, for a page that is opened now. */
enum { RECENT_LENGTH = 72 };
#define RECENT_INTERVAL (5 * DURATION_SECOND)

/* The parts of the pool that differ from the state sent before. */
struct changed_parts {
    bool devices;
    bool queue;
};

struct event_client {
    struct list_link link;
    struct event_clients *clients;
    struct http_connection *connection;
    bool is_behind;
};

void event_clients_init(struct event_clients *clients, const struct follower *follower,
                        struct user_names *users)
{
    *clients = (struct event_clients){
        .follower = follower,
        .users = users,
        .recent = {.length = RECENT_LENGTH, .interval = RECENT_INTERVAL},
    };
    list_init(&clients->list);
    clients->state_since = clock_read(CLOCK_REALTIME);
}

void event_clients_finish(struct event_clients *clients)
{
    vector_finish(&clients->leases);
    load_history_finish(&clients->recent);
    web_shared_text_release(clients->greeting);
    clients->greeting = NULL;
}

static const char *state_reason(const struct event_clients *clients)
{
    const struct follower *follower = clients->follower;

    switch (clients->state) {
    case FOLLOWER_GONE:
    case FOLLOWER_SILENT:
        return follower->reason.message[0] == '\0' ? NULL : follower->reason.message;
    default:
        return NULL;
    }
}

/* Returns the whole state for a new client; NULL: no memory. */
static struct shared_text *make_greeting(struct event_clients *clients)
{
    const struct follower *follower = clients->follower;
    struct text text = {0};

    if (clients->greeting != NULL)
        return clients->greeting;
    text_append(&text, "retry: 2000\n");
    if (follower->has_view) {
        events_write_hello(&follower->view, &clients->recent, clients->state, clients->users,
                           &text);
        events_write_load(&follower->view, &text);
    }
    events_write_state(clients->state, clients->state_since, state_reason(clients), &text);
    clients->greeting = web_shared_text_create(&text);
    return clients->greeting;
}

static void forget_greeting(struct event_clients *clients)
{
    web_shared_text_release(clients->greeting);
    clients->greeting = NULL;
}

static void send_greeting(struct event_client *client)
{
    struct shared_text *greeting = make_greeting(client->clients);

    /* If memory ran out, the next event tries again. */
    client->is_behind = greeting == NULL;
    if (greeting != NULL)
        http_answer_send_stream(client->connection, greeting);
}

static void send_to_all(struct event_clients *clients, struct shared_text *shared)
{
    list_for_each (link, &clients->list) {
        struct event_client *client = container_of(link, struct event_client, link);

        if (!client->is_behind && http_answer_unsent(client->connection) > HTTP_STREAM_MAX)
            client->is_behind = true;
        if (!client->is_behind)
            http_answer_send_stream(client->connection, shared);
        else if (http_answer_unsent(client->connection) == 0)
            send_greeting(client); /* the last try had no memory */
    }
}

/* Sends the text to all clients and empties it. */
static void broadcast_text(struct event_clients *clients, struct text *text)
{
    struct shared_text *shared;

    if (clients->count == 0 || text->length == 0) {
        text_finish(text);
        return;
    }
    shared = web_shared_text_create(text);
    if (shared != NULL)
        send_to_all(clients, shared);
    web_shared_text_release(shared);
}

static void on_drained(void *context)
{
    struct event_client *client = context;

    if (client->is_behind)
        send_greeting(client);
}

static void on_closed(void *context)
{
    struct event_client *client = context;
    struct event_clients *clients = client->clients;

    list_unlink(&client->link);
    clients->count--;
    free(client);
    if (clients->changed != NULL)
        clients->changed(clients->context);
}

static int compare_sent(const void *one, const void *other)
{
    uint64_t left = ((const struct sent_lease *)one)->id;
    uint64_t right = ((const struct sent_lease *)other)->id;

    return left < right ? -1 : left > right;
}

static struct sent_lease *find_sent(struct sent_leases *leases, uint64_t id)
{
    const struct sent_lease key = {.id = id};

    return leases->count == 0
               ? NULL
               : bsearch(&key, leases->items, leases->count, sizeof(*leases->items), compare_sent);
}

/* Collects the current leases, sorted by id. Returns false if memory runs out. */
static bool collect_leases(const struct pool_view *view, struct sent_leases *ret_leases)
{
    const struct lease_info *lease;

    if (vector_reserve(ret_leases, view->snapshot.leases.count) < 0)
        return false;
    vector_for_each (lease, &view->snapshot.leases)
        *(struct sent_lease *)vector_append(ret_leases) =
            (struct sent_lease){.id = lease->id, .fingerprint = pool_fingerprint_lease(lease)};
    if (ret_leases->count > 0)
        qsort(ret_leases->items, ret_leases->count, sizeof(*ret_leases->items), compare_sent);
    return true;
}

/* Writes the leases that ended. Returns their number. */
static size_t write_ended(struct event_clients *clients, struct sent_leases *now, struct text *out)
{
    const struct follower *follower = clients->follower;
    const struct ended_lease *ended;
    size_t written = 0;

    vector_for_each (ended, &follower->ended) {
        struct sent_lease *before = find_sent(&clients->leases, ended->lease->id);
        struct sent_lease *still = find_sent(now, ended->lease->id);

        if (before != NULL && before->ended)
            continue;
        if (before == NULL)
            events_write_lease("granted", ended->lease, clients->users, out);
        events_write_ended(ended, clients->users, out);
        if (before != NULL)
            before->ended = true;
        if (still != NULL)
            still->ended = true;
        written++;
    }
    return written;
}

/* Writes the leases that are new or have changed. Returns their number. */
static size_t write_changed(struct event_clients *clients, struct sent_leases *now,
                            struct text *out)
{
    const struct lease_info *lease;
    size_t written = 0;

    vector_for_each (lease, &clients->follower->view.snapshot.leases) {
        struct sent_lease *before = find_sent(&clients->leases, lease->id);
        struct sent_lease *mine = find_sent(now, lease->id);

        if (before != NULL && before->ended)
            mine->ended = true;
        if (mine->ended || (before != NULL && before->fingerprint == mine->fingerprint))
            continue;
        events_write_lease(before == NULL ? "granted" : "changed", lease, clients->users, out);
        written++;
    }
    return written;
}

/* Adds the sent leases that are missing in the snapshot. The snapshot is newer than the last news,
 * so their ends come with the next news. Returns false if an end is overdue, or if memory runs
 * out. */
static bool keep_absent(const struct sent_leases *before, uint64_t news, struct sent_leases *now)
{
    const struct sent_lease *lease;
    struct sent_leases absent = {0};
    bool good = true;

    vector_for_each (lease, before) {
        struct sent_lease *mine;

        if (lease->ended || find_sent(now, lease->id) != NULL)
            continue;
        mine = vector_append(&absent);
        good = mine != NULL && (!lease->absent || lease->absent_since == news);
        if (!good)
            break;
        *mine = *lease;
        mine->absent = true;
        mine->absent_since = news;
    }
    if (good && absent.count > 0) {
        good = vector_reserve(now, now->count + absent.count) == 0;
        for (size_t i = 0; good && i < absent.count; i++)
            *(struct sent_lease *)vector_append(now) = absent.items[i];
        qsort(now->items, now->count, sizeof(*now->items), compare_sent);
    }
    vector_finish(&absent);
    return good;
}

/* Appends the changes of leases. Returns false if the whole state must be sent instead. */
static bool write_leases(struct event_clients *clients, struct text *out)
{
    const struct follower *follower = clients->follower;
    struct sent_leases now = {0};
    bool good = follower->ended.count <= CHANGES_MAX && collect_leases(&follower->view, &now);

    if (good) {
        size_t written = write_ended(clients, &now, out);

        good = keep_absent(&clients->leases, follower->news_count, &now) &&
               written + write_changed(clients, &now, out) <= CHANGES_MAX;
    }
    vector_finish(&clients->leases);
    clients->leases = now;
    return good;
}

/* Stores the fingerprints of the devices and of the queue as sent. Returns which of them changed.
 */
static struct changed_parts update_fingerprints(struct event_clients *clients)
{
    const struct pool_view *view = &clients->follower->view;
    uint64_t devices = pool_fingerprint_devices(view);
    uint64_t queue = pool_fingerprint_queue(view, EVENTS_CLAIMS_MAX);
    struct changed_parts changed = {
        .devices = devices != clients->devices,
        .queue = queue != clients->queue,
    };

    clients->devices = devices;
    clients->queue = queue;
    return changed;
}

/* Replaces the text by the whole state. */
static void write_everything(struct event_clients *clients, struct text *out)
{
    text_clear(out);
    events_write_hello(&clients->follower->view, &clients->recent, clients->state, clients->users,
                       out);
    events_write_load(&clients->follower->view, out);
}

/* Records the current state as sent when the first client connects: its greeting contains
 * everything. */
static void reset_sent_state(struct event_clients *clients)
{
    forget_greeting(clients);
    vector_finish(&clients->leases);
    if (!clients->follower->has_view)
        return;
    collect_leases(&clients->follower->view, &clients->leases);
    update_fingerprints(clients);
}

enum follower_state event_clients_state(const struct event_clients *clients)
{
    enum follower_state state = follower_get_state(clients->follower);

    return state == FOLLOWER_LIVE && clients->is_awaiting ? FOLLOWER_GONE : state;
}

static bool update_state(struct event_clients *clients, uint32_t news)
{
    enum follower_state state;

    if (news != 0)
        clients->is_awaiting = false;
    else if (follower_get_state(clients->follower) == FOLLOWER_GONE)
        clients->is_awaiting = true;
    state = event_clients_state(clients);
    if (state == clients->state)
        return false;
    clients->state = state;
    clients->state_since = clock_read(CLOCK_REALTIME);
    return true;
}

void event_clients_notify(struct event_clients *clients, uint32_t news)
{
    bool is_other = update_state(clients, news);
    struct text text = {0};

    if (news == 0 && !is_other)
        return;
    if ((news & (WIRE_NEWS_HELLO | WIRE_NEWS_LOAD)) != 0)
        load_history_add_samples(&clients->recent, &clients->follower->view);
    forget_greeting(clients);
    if (clients->count == 0)
        return;
    if (news != 0) {
        const struct pool_view *view = &clients->follower->view;
        bool complete = write_leases(clients, &text);
        struct changed_parts changed = update_fingerprints(clients);

        if ((news & WIRE_NEWS_HELLO) != 0 || !complete) {
            write_everything(clients, &text);
        } else {
            if (changed.queue)
                events_write_queue(view, clients->users, &text);
            if (changed.devices)
                events_write_devices(view, clients->users, &text);
            /* Like "devices", "load" says whether a device is leased, so both are sent. */
            if (changed.devices || (news & WIRE_NEWS_LOAD) != 0)
                events_write_load(view, &text);
        }
    }
    if (is_other)
        events_write_state(clients->state, clients->state_since, state_reason(clients), &text);
    broadcast_text(clients, &text);
}

void event_clients_send_tick(struct event_clients *clients)
{
    struct text text = {0};

    event_clients_notify(clients, 0);
    events_write_tick(clock_read(CLOCK_REALTIME), &text);
    broadcast_text(clients, &text);
}

void event_clients_add(struct event_clients *clients, struct http_connection *connection)
{
    static const struct stream_events events = {.drained = on_drained, .closed = on_closed};
    struct event_client *client = calloc(1, sizeof(*client));

    if (client == NULL) {
        http_answer_send_line(connection, 503, "out of memory");
        return;
    }
    if (clients->count == 0)
        reset_sent_state(clients);
    *client = (struct event_client){.clients = clients, .connection = connection};
    list_append(&clients->list, &client->link);
    clients->count++;
    http_answer_start_stream(connection, "text/event-stream; charset=utf-8", &events, client);
    send_greeting(client);
    if (clients->changed != NULL)
        clients->changed(clients->context);
}
