/* SPDX-License-Identifier: Apache-2.0 */
#include "web/event_clients.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/system/clock.h"
#include "web/events.h"

/* More changes of leases at once are told by telling everything. */
enum { CHANGES_MAX = 200 };

struct reader {
    struct list_link link;
    struct readers *readers;
    struct connection *connection;
    bool is_behind;
};

void readers_init(struct readers *readers, const struct follower *follower,
                  struct user_names *users)
{
    *readers = (struct readers){.follower = follower, .users = users};
    list_init(&readers->list);
    readers->state_since = clock_read(CLOCK_REALTIME);
}

void readers_finish(struct readers *readers)
{
    vector_finish(&readers->leases);
    text_finish(&readers->devices);
    recent_finish(&readers->recent);
    text_finish(&readers->queue);
    shared_text_release(readers->greeting);
    readers->greeting = NULL;
}

static const char *reason_of(const struct readers *readers)
{
    const struct follower *follower = readers->follower;

    switch (readers->state) {
    case FOLLOW_GONE:
        return follower->reason.message[0] == '\0' ? NULL : follower->reason.message;
    case FOLLOW_SILENT:
        return "the daemon does not answer";
    default:
        return NULL;
    }
}

/* Everything, for somebody who knows nothing. */
static struct shared_text *greet(struct readers *readers)
{
    const struct follower *follower = readers->follower;
    struct text text = {0};

    if (readers->greeting != NULL)
        return readers->greeting;
    text_append(&text, "retry: 2000\n");
    if (follower->has_view) {
        events_write_hello(&follower->view, &readers->recent, readers->state, readers->users,
                           &text);
        events_write_load(&follower->view, &text);
    }
    events_write_state(readers->state, readers->state_since, reason_of(readers), &text);
    readers->greeting = shared_text_create(&text);
    return readers->greeting;
}

static void forget_greeting(struct readers *readers)
{
    shared_text_release(readers->greeting);
    readers->greeting = NULL;
}

static void greet_reader(struct reader *reader)
{
    struct shared_text *greeting = greet(reader->readers);

    /* Without memory it is tried again when there is something to say. */
    reader->is_behind = greeting == NULL;
    if (greeting != NULL)
        connection_send(reader->connection, greeting);
}

static void send_all(struct readers *readers, struct shared_text *shared)
{
    list_for_each (link, &readers->list) {
        struct reader *reader = container_of(link, struct reader, link);

        if (!reader->is_behind && connection_unsent(reader->connection) > SERVER_STREAM_MAX)
            reader->is_behind = true;
        if (!reader->is_behind)
            connection_send(reader->connection, shared);
        else if (connection_unsent(reader->connection) == 0)
            greet_reader(reader); /* there was no memory when it had caught up */
    }
}

/* Sends the text to all of them, and empties it. */
static void broadcast(struct readers *readers, struct text *text)
{
    struct shared_text *shared;

    if (readers->count == 0 || text->length == 0) {
        text_finish(text);
        return;
    }
    shared = shared_text_create(text);
    if (shared != NULL)
        send_all(readers, shared);
    shared_text_release(shared);
}

static void on_drained(void *context)
{
    struct reader *reader = context;

    if (reader->is_behind)
        greet_reader(reader);
}

static void on_closed(void *context)
{
    struct reader *reader = context;
    struct readers *readers = reader->readers;

    list_unlink(&reader->link);
    readers->count--;
    free(reader);
    if (readers->changed != NULL)
        readers->changed(readers->context);
}

static uint64_t mix_optional(struct optional_number number)
{
    return number.known ? hash_mix(number.value + 1) : 0;
}

/* What people would notice of a lease. */
static uint64_t fingerprint_of(const struct wire_lease *lease)
{
    uint64_t flags = (uint64_t)lease->draining | (uint64_t)lease->idle_warned << 1 |
                     (uint64_t)lease->preparing << 2 | (uint64_t)lease->adopted << 3 |
                     (uint64_t)lease->end << 4;
    uint64_t print = hash_mix(flags + 1);

    print = hash_mix(print ^ mix_optional(lease->expires));
    print = hash_mix(print ^ mix_optional(lease->force_at));
    print = hash_mix(print ^ (uint64_t)(uint32_t)lease->pid);
    if (lease->name != NULL)
        print = hash_mix(print ^ hash_bytes(lease->name, strlen(lease->name)));
    return print;
}

static int compare_told(const void *one, const void *other)
{
    uint64_t left = ((const struct told_lease *)one)->id;
    uint64_t right = ((const struct told_lease *)other)->id;

    return left < right ? -1 : left > right;
}

static struct told_lease *find_told(struct told_leases *leases, uint64_t id)
{
    const struct told_lease key = {.id = id};

    return leases->count == 0
               ? NULL
               : bsearch(&key, leases->items, leases->count, sizeof(*leases->items), compare_told);
}

/* All leases that are there now, as told. Returns false when there is no memory. */
static bool note_leases(const struct pool_view *view, struct told_leases *ret_leases)
{
    const struct wire_lease *lease;

    if (vector_reserve(ret_leases, view->look.leases.count) < 0)
        return false;
    vector_for_each (lease, &view->look.leases)
        *(struct told_lease *)vector_append(ret_leases) =
            (struct told_lease){.id = lease->id, .fingerprint = fingerprint_of(lease)};
    if (ret_leases->count > 0)
        qsort(ret_leases->items, ret_leases->count, sizeof(*ret_leases->items), compare_told);
    return true;
}

/* Writes the leases that are over. Returns how many. */
static size_t write_ended(struct readers *readers, struct told_leases *now, struct text *out)
{
    const struct follower *follower = readers->follower;
    const struct wire_ended *ended;
    size_t written = 0;

    vector_for_each (ended, &follower->ended) {
        struct told_lease *before = find_told(&readers->leases, ended->lease->id);
        struct told_lease *still = find_told(now, ended->lease->id);

        if (before != NULL && before->ended)
            continue;
        if (before == NULL)
            events_write_lease("granted", ended->lease, readers->users, out);
        events_write_ended(ended, readers->users, out);
        if (before != NULL)
            before->ended = true;
        if (still != NULL)
            still->ended = true;
        written++;
    }
    return written;
}

/* Writes the leases that are new or otherwise than they were. Returns how many. */
static size_t write_changed(struct readers *readers, struct told_leases *now, struct text *out)
{
    const struct wire_lease *lease;
    size_t written = 0;

    vector_for_each (lease, &readers->follower->view.look.leases) {
        struct told_lease *before = find_told(&readers->leases, lease->id);
        struct told_lease *mine = find_told(now, lease->id);

        if (before != NULL && before->ended)
            mine->ended = true;
        if (mine->ended || (before != NULL && before->fingerprint == mine->fingerprint))
            continue;
        events_write_lease(before == NULL ? "granted" : "changed", lease, readers->users, out);
        written++;
    }
    return written;
}

/* Adds those that are gone from the look, which is younger than the news that it follows: their
 * ends come with the next. Returns false when one's end did not come, or there is no memory. */
static bool keep_absent(const struct told_leases *before, uint64_t news, struct told_leases *now)
{
    const struct told_lease *lease;
    struct told_leases absent = {0};
    bool good = true;

    vector_for_each (lease, before) {
        struct told_lease *mine;

        if (lease->ended || find_told(now, lease->id) != NULL)
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
            *(struct told_lease *)vector_append(now) = absent.items[i];
        qsort(now->items, now->count, sizeof(*now->items), compare_told);
    }
    vector_finish(&absent);
    return good;
}

/* Appends what is new of the leases. Returns false when everything is to be told instead. */
static bool write_leases(struct readers *readers, struct text *out)
{
    const struct follower *follower = readers->follower;
    struct told_leases now = {0};
    bool good = follower->ended.count <= CHANGES_MAX && note_leases(&follower->view, &now);

    if (good) {
        size_t written = write_ended(readers, &now, out);

        good = keep_absent(&readers->leases, follower->news_count, &now) &&
               written + write_changed(readers, &now, out) <= CHANGES_MAX;
    }
    vector_finish(&readers->leases);
    readers->leases = now;
    return good;
}

/* Puts the new text in place of the old one. Returns whether it differs. */
static bool replace(struct text *before, struct text *now)
{
    bool differs = text_failed(now) || before->length != now->length ||
                   (now->length > 0 && memcmp(before->bytes, now->bytes, now->length) != 0);

    text_finish(before);
    *before = *now;
    *now = (struct text){0};
    return differs;
}

/* Returns whether there was something new. */
static bool write_devices(struct readers *readers, struct text *out)
{
    const struct pool_view *view = &readers->follower->view;
    struct text facts = {0};

    events_write_devices_facts(view, readers->users, &facts);
    if (!replace(&readers->devices, &facts))
        return false;
    events_write_devices(view, readers->users, out);
    return true;
}

static void write_queue(struct readers *readers, struct text *out)
{
    const struct pool_view *view = &readers->follower->view;
    struct text queue = {0};

    events_write_queue(view, readers->users, &queue);
    if (text_failed(&queue) || queue.length != readers->queue.length ||
        memcmp(queue.bytes, readers->queue.bytes, queue.length) != 0)
        text_append_bytes(out, queue.bytes, text_failed(&queue) ? 0 : queue.length);
    replace(&readers->queue, &queue);
}

/* Everything to all. */
static void tell_everything(struct readers *readers, struct text *out)
{
    struct text unsaid = {0};

    write_devices(readers, &unsaid);
    write_queue(readers, &unsaid);
    text_finish(&unsaid);
    text_clear(out);
    events_write_hello(&readers->follower->view, &readers->recent, readers->state, readers->users,
                       out);
    events_write_load(&readers->follower->view, out);
}

/* Nobody was there to be told: what is now is what they know. */
static void note_everything(struct readers *readers)
{
    struct text unsaid = {0};

    forget_greeting(readers);
    vector_finish(&readers->leases);
    if (!readers->follower->has_view)
        return;
    note_leases(&readers->follower->view, &readers->leases);
    write_devices(readers, &unsaid);
    write_queue(readers, &unsaid);
    text_finish(&unsaid);
}

enum follow_state readers_state(const struct readers *readers)
{
    enum follow_state state = follower_state(readers->follower);

    return state == FOLLOW_LIVE && readers->is_awaiting ? FOLLOW_GONE : state;
}

static bool is_state_new(struct readers *readers, uint32_t news)
{
    enum follow_state state;

    if (news != 0)
        readers->is_awaiting = false;
    else if (follower_state(readers->follower) == FOLLOW_GONE)
        readers->is_awaiting = true;
    state = readers_state(readers);
    if (state == readers->state)
        return false;
    readers->state = state;
    readers->state_since = clock_read(CLOCK_REALTIME);
    return true;
}

void readers_tell(struct readers *readers, uint32_t news)
{
    bool is_other = is_state_new(readers, news);
    struct text text = {0};

    if (news == 0 && !is_other)
        return;
    if ((news & (WIRE_NEWS_HELLO | WIRE_NEWS_LOAD)) != 0)
        recent_note(&readers->recent, &readers->follower->view);
    forget_greeting(readers);
    if (readers->count == 0)
        return;
    if (news != 0) {
        bool told = write_leases(readers, &text);

        if ((news & WIRE_NEWS_HELLO) != 0 || !told) {
            tell_everything(readers, &text);
        } else {
            write_queue(readers, &text);
            /* Whether a device is leased is a part of both. */
            if (write_devices(readers, &text) || (news & WIRE_NEWS_LOAD) != 0)
                events_write_load(&readers->follower->view, &text);
        }
    }
    if (is_other)
        events_write_state(readers->state, readers->state_since, reason_of(readers), &text);
    broadcast(readers, &text);
}

void readers_tick(struct readers *readers)
{
    struct text text = {0};

    readers_tell(readers, 0);
    events_write_tick(clock_read(CLOCK_REALTIME), &text);
    broadcast(readers, &text);
}

void readers_add(struct readers *readers, struct connection *connection)
{
    static const struct stream_events events = {.drained = on_drained, .closed = on_closed};
    struct reader *reader = calloc(1, sizeof(*reader));

    if (reader == NULL) {
        connection_answer_line(connection, 503, "out of memory");
        return;
    }
    if (readers->count == 0)
        note_everything(readers);
    *reader = (struct reader){.readers = readers, .connection = connection};
    list_append(&readers->list, &reader->link);
    readers->count++;
    connection_stream(connection, "text/event-stream; charset=utf-8", &events, reader);
    greet_reader(reader);
    if (readers->changed != NULL)
        readers->changed(readers->context);
}
