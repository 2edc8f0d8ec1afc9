/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/past.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/messages.h"
#include "daemon/news.h"

/* A message of leases that are over ends when it holds about so many bytes. */
enum { TOLD_BYTES = 64 * 1024, RECORD_BYTES = 192, ID_BYTES = 9 };

/* One that is written down is kept for this long, for others who follow. */
#define KNOWN_KEPT (3 * DURATION_SECOND)

struct record {
    struct id_link by_lease;   /* while it goes on */
    struct list_link in_ended; /* then */
    uint64_t order;            /* how many had ended with it */
    int64_t ended_at;          /* in the loop's time */
    size_t bytes;
    struct ended_lease ended;
    struct lease_info lease;
};

struct past {
    struct id_map leases; /* that go on */
    size_t lease_count;
    struct list ended; /* oldest first */
    size_t ended_count;
    size_t bytes;
    uint64_t total;  /* that have ended */
    uint64_t known;  /* of them, elsewhere */
    bool is_nowhere; /* nobody writes them down */
};

int past_init(struct pool *pool, struct berth_error *error)
{
    struct past *past = calloc(1, sizeof(*past));

    if (past == NULL || id_map_init(&past->leases) < 0) {
        free(past);
        return error_set_memory(error);
    }
    list_init(&past->ended);
    pool->past = past;
    return 0;
}

static void clear(struct record *record)
{
    free(record->lease.name);
    free(record->lease.command);
    vector_finish(&record->lease.devices);
    record->lease = (struct lease_info){0};
}

static void drop(struct record *record)
{
    clear(record);
    free(record);
}

static void drop_ended(struct past *past, struct record *record)
{
    list_remove(&record->in_ended);
    past->ended_count--;
    past->bytes -= record->bytes;
    drop(record);
}

static struct record *find(const struct pool *pool, uint64_t lease)
{
    struct id_link *link = id_map_find(&pool->past->leases, lease);

    return link == NULL ? NULL : container_of(link, struct record, by_lease);
}

void past_finish(struct pool *pool)
{
    struct past *past = pool->past;

    if (past == NULL)
        return;
    for (size_t i = 0; i <= past->leases.mask; i++) {
        while (past->leases.buckets[i] != NULL) {
            struct record *record = container_of(past->leases.buckets[i], struct record, by_lease);

            id_map_remove(&past->leases, &record->by_lease);
            drop(record);
        }
    }
    list_for_each (link, &past->ended)
        drop_ended(past, container_of(link, struct record, in_ended));
    id_map_finish(&past->leases);
    free(past);
    pool->past = NULL;
}

static char *copy_of(const char *string)
{
    return string == NULL ? NULL : strdup(string);
}

/* Without memory there is no record, and the lease will not be told of when it is over. */
static struct record *begin(struct pool *pool, uint64_t lease)
{
    struct past *past = pool->past;
    struct record *record = calloc(1, sizeof(*record));

    if (record == NULL)
        return NULL;
    record->by_lease.id = lease;
    id_map_reserve(&past->leases, ++past->lease_count);
    id_map_add(&past->leases, &record->by_lease);
    return record;
}

void past_lease(struct pool *pool, const struct job *job)
{
    struct lease_view view;
    struct record *record;

    if (!engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    record = find(pool, job->by_lease.id);
    if (record == NULL) {
        if (!job->restored)
            tally_granted(pool, view.granted - job->since);
        record = begin(pool, job->by_lease.id);
    }
    if (record == NULL)
        return;
    clear(record);
    look_fill_lease(pool, job, &view, &record->lease);
    /* What it borrows will be gone when it is told of. */
    record->lease.name = copy_of(record->lease.name);
    record->lease.command = copy_of(record->lease.command);
}

static struct record *take(struct pool *pool, uint64_t lease)
{
    struct record *record = find(pool, lease);

    if (record != NULL) {
        id_map_remove(&pool->past->leases, &record->by_lease);
        pool->past->lease_count--;
    }
    return record;
}

static size_t length_of(const char *string)
{
    return string == NULL ? 0 : strlen(string);
}

static size_t size_of(const struct lease_info *lease)
{
    return RECORD_BYTES + length_of(lease->name) + length_of(lease->command) +
           lease->devices.count * ID_BYTES;
}

/* What is known elsewhere for some time, and what is too much. */
static void tidy(struct pool *pool)
{
    struct past *past = pool->past;
    bool is_read = news_has_readers(pool);

    list_for_each (link, &past->ended) {
        struct record *oldest = container_of(link, struct record, in_ended);
        bool is_known = (past->is_nowhere || oldest->order <= past->known) &&
                        (!is_read || loop_now(&pool->loop) - oldest->ended_at > KNOWN_KEPT);

        if (!is_known && past->ended_count <= PAST_MAX && past->bytes <= PAST_BYTES)
            return;
        drop_ended(past, oldest);
    }
}

void past_ended(struct pool *pool, const struct job *job, enum lease_end end)
{
    struct past *past = pool->past;
    struct record *record = take(pool, job->by_lease.id);

    past->total++;
    if (record == NULL)
        return;
    tally_held(pool, pool_now(pool) - record->lease.granted);
    record->order = past->total;
    record->ended_at = loop_now(&pool->loop);
    record->lease.draining = false;
    record->lease.end = end;
    record->lease.force_at = record->lease.idle = (struct optional_number){0};
    if (job->guard != NULL) {
        record->lease.judged_time = job->guard->judged_time;
        record->lease.idle_time = job->guard->idle_time;
    }
    record->ended = (struct ended_lease){
        .lease = &record->lease,
        .end = end,
        .time = pool_now(pool),
    };
    if (job->exit_code != NO_EXIT_CODE)
        record->ended.exit_code = optional_number_of((uint64_t)job->exit_code);
    record->bytes = size_of(&record->lease);
    past->bytes += record->bytes;
    past->ended_count++;
    list_append(&past->ended, &record->in_ended);
    tidy(pool);
}

uint64_t past_count(const struct pool *pool)
{
    return pool->past->total;
}

void past_set_written(struct pool *pool, bool is_written)
{
    pool->past->is_nowhere = !is_written;
    tidy(pool);
}

void past_known(struct pool *pool, uint64_t count)
{
    if (count > pool->past->known)
        pool->past->known = count;
    tidy(pool);
}

void past_tell(struct pool *pool, uint64_t count, struct wire_message *message)
{
    struct past *past = pool->past;
    size_t bytes = 0;

    message->id = count;
    list_for_each (link, &past->ended) {
        const struct record *record = container_of(link, struct record, in_ended);
        struct ended_lease *item;

        if (record->order <= count)
            continue;
        if (bytes > TOLD_BYTES || message->ended.count == WIRE_PAGE_ITEMS) {
            message->more = true;
            return;
        }
        item = vector_append(&message->ended);
        if (item == NULL) {
            message->more = true;
            return;
        }
        *item = record->ended;
        bytes += record->bytes;
        message->lost += record->order - message->id - 1;
        message->id = record->order;
    }
    /* Those that came after the last one that is kept are lost, too. */
    message->lost += past->total - message->id;
    message->id = past->total;
}
