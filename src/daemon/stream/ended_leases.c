/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/stream/ended_leases.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id_map.h"
#include "base/list.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "daemon/stream/followers.h"
#include "wire/wire.h"

/* A message of ended leases ends when it holds about so many bytes. */
enum { MESSAGE_BYTES = 64 * 1024, RECORD_BYTES = 192, ID_BYTES = 9 };

/* A lease that is written down is kept for this long, for other followers. */
#define WRITTEN_KEPT (3 * DURATION_SECOND)

/* The ended leases of one user. */
struct user_records {
    struct id_link by_uid;
    struct list_link in_all;
    struct list list; /* of the records, oldest first */
    size_t bytes;
};

struct lease_record {
    struct id_link by_lease;   /* while the lease goes on */
    struct list_link in_ended; /* then */
    struct list_link in_user;
    struct user_records *user; /* NULL until the lease has ended */
    uint64_t order;            /* how many had ended with it */
    int64_t ended_at;          /* in the loop's time */
    size_t bytes;
    struct ended_lease ended;
    struct lease_info lease;
};

struct ended_leases {
    const struct loop *loop;
    struct followers *followers;
    struct id_map leases; /* that go on */
    size_t lease_count;
    struct list list; /* of ended ones, oldest first */
    struct id_map users;
    struct list all_users;
    size_t user_count;
    size_t count;
    size_t bytes;
    uint64_t total;    /* that have ended */
    uint64_t written;  /* of them, by another program */
    bool is_unwritten; /* no program writes them down */
};

int ended_leases_create(struct ended_leases **ret_ended, const struct loop *loop,
                        struct followers *followers, struct berth_error *error)
{
    struct ended_leases *ended = calloc(1, sizeof(*ended));

    if (ended == NULL || id_map_init(&ended->leases) < 0 || id_map_init(&ended->users) < 0) {
        if (ended != NULL)
            id_map_finish(&ended->leases);
        free(ended);
        return error_set_memory(error);
    }
    ended->loop = loop;
    ended->followers = followers;
    list_init(&ended->list);
    list_init(&ended->all_users);
    *ret_ended = ended;
    return 0;
}

static void clear_record(struct lease_record *record)
{
    free(record->lease.name);
    free(record->lease.command);
    vector_finish(&record->lease.devices);
    record->lease = (struct lease_info){0};
}

static void drop_record(struct lease_record *record)
{
    clear_record(record);
    free(record);
}

/* Returns the user's records; NULL without memory. */
static struct user_records *find_user(struct ended_leases *ended, uint32_t uid)
{
    struct id_link *link = id_map_find(&ended->users, uid);
    struct user_records *user;

    if (link != NULL)
        return container_of(link, struct user_records, by_uid);
    user = calloc(1, sizeof(*user));
    if (user == NULL)
        return NULL;
    user->by_uid.id = uid;
    list_init(&user->list);
    id_map_reserve(&ended->users, ++ended->user_count);
    id_map_add(&ended->users, &user->by_uid);
    list_append(&ended->all_users, &user->in_all);
    return user;
}

static void drop_ended(struct ended_leases *ended, struct lease_record *record)
{
    struct user_records *user = record->user;

    user->bytes -= record->bytes;
    list_remove(&record->in_user);
    if (list_is_empty(&user->list)) {
        id_map_remove(&ended->users, &user->by_uid);
        list_remove(&user->in_all);
        ended->user_count--;
        free(user);
    }
    list_remove(&record->in_ended);
    ended->count--;
    ended->bytes -= record->bytes;
    drop_record(record);
}

static struct lease_record *find_record(const struct ended_leases *ended, uint64_t lease)
{
    struct id_link *link = id_map_find(&ended->leases, lease);

    return link == NULL ? NULL : container_of(link, struct lease_record, by_lease);
}

void ended_leases_destroy(struct ended_leases *ended)
{
    if (ended == NULL)
        return;
    for (size_t i = 0; i <= ended->leases.mask; i++) {
        while (ended->leases.buckets[i] != NULL) {
            struct lease_record *record =
                container_of(ended->leases.buckets[i], struct lease_record, by_lease);

            id_map_remove(&ended->leases, &record->by_lease);
            drop_record(record);
        }
    }
    list_for_each (link, &ended->list)
        drop_ended(ended, container_of(link, struct lease_record, in_ended));
    id_map_finish(&ended->leases);
    id_map_finish(&ended->users);
    free(ended);
}

static char *copy_text(const char *string)
{
    return string == NULL ? NULL : strdup(string);
}

/* Copies the beginning of a command line: with whole ones, a user with many short leases would push
 * other users' records out. */
static char *copy_command(const char *command)
{
    size_t length = command == NULL ? 0 : strnlen(command, ENDED_COMMAND_MAX + 1);

    if (length > ENDED_COMMAND_MAX)
        length = utf8_boundary(command, ENDED_COMMAND_MAX);
    return command == NULL ? NULL : strndup(command, length);
}

static struct lease_record *begin_record(struct ended_leases *ended, uint64_t lease)
{
    struct lease_record *record = calloc(1, sizeof(*record));

    if (record == NULL)
        return NULL;
    record->by_lease.id = lease;
    id_map_reserve(&ended->leases, ++ended->lease_count);
    id_map_add(&ended->leases, &record->by_lease);
    return record;
}

bool ended_leases_note(struct ended_leases *ended, uint64_t lease, struct lease_info *info)
{
    struct lease_record *record = find_record(ended, lease);
    bool is_new = record == NULL;

    if (is_new)
        record = begin_record(ended, lease);
    if (record == NULL) {
        vector_finish(&info->devices);
        return is_new;
    }
    clear_record(record);
    record->lease = *info;
    record->lease.name = copy_text(info->name);
    record->lease.command = copy_command(info->command);
    return is_new;
}

static struct lease_record *take_record(struct ended_leases *ended, uint64_t lease)
{
    struct lease_record *record = find_record(ended, lease);

    if (record != NULL) {
        id_map_remove(&ended->leases, &record->by_lease);
        ended->lease_count--;
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

static bool is_beyond(const struct ended_leases *ended, size_t count, size_t bytes)
{
    return ended->count > count || ended->bytes > bytes;
}

static struct user_records *find_largest(const struct ended_leases *ended)
{
    struct user_records *largest = NULL;

    list_for_each (link, &ended->all_users) {
        struct user_records *user = container_of(link, struct user_records, in_all);

        if (largest == NULL || user->bytes > largest->bytes)
            largest = user;
    }
    return largest;
}

/* Drops the oldest leases of the users with the most, so that a user with very many ended leases
 * does not push out those of other users. Drops more than necessary, so that this is rare. */
static void drop_largest(struct ended_leases *ended)
{
    if (!is_beyond(ended, ENDED_LEASES_MAX, ENDED_LEASES_BYTES))
        return;
    while (is_beyond(ended, ENDED_LEASES_MAX / 16 * 15, ENDED_LEASES_BYTES / 16 * 15)) {
        struct user_records *largest = find_largest(ended);

        drop_ended(ended, container_of(list_first(&largest->list), struct lease_record, in_user));
    }
}

/* Drops the oldest that are written down for some time, and those beyond the bounds. */
static void drop_oldest(struct ended_leases *ended)
{
    bool is_read = followers_read_leases(ended->followers);

    list_for_each (link, &ended->list) {
        struct lease_record *oldest = container_of(link, struct lease_record, in_ended);
        bool is_written = (ended->is_unwritten || oldest->order <= ended->written) &&
                          (!is_read || loop_now(ended->loop) - oldest->ended_at > WRITTEN_KEPT);

        if (!is_written)
            break;
        drop_ended(ended, oldest);
    }
    drop_largest(ended);
}

const struct lease_info *ended_leases_add(struct ended_leases *ended, uint64_t lease,
                                          const struct lease_ended *facts)
{
    struct lease_record *record = take_record(ended, lease);

    drop_oldest(ended);
    followers_note_ended(ended->followers, ++ended->total);
    if (record == NULL)
        return NULL;
    record->user = find_user(ended, record->lease.uid);
    if (record->user == NULL) {
        drop_record(record);
        return NULL;
    }
    record->order = ended->total;
    record->ended_at = loop_now(ended->loop);
    record->lease.draining = false;
    record->lease.end = facts->end;
    record->lease.force_at = record->lease.idle = (struct optional_number){0};
    record->lease.judged_time = facts->judged_time;
    record->lease.idle_time = facts->idle_time;
    record->ended = (struct ended_lease){
        .lease = &record->lease,
        .end = facts->end,
        .time = facts->time,
        .exit_code = facts->exit_code,
    };
    record->bytes = size_of(&record->lease);
    ended->bytes += record->bytes;
    ended->count++;
    list_append(&ended->list, &record->in_ended);
    record->user->bytes += record->bytes;
    list_append(&record->user->list, &record->in_user);
    return &record->lease;
}

uint64_t ended_leases_count(const struct ended_leases *ended)
{
    return ended->total;
}

void ended_leases_set_written(struct ended_leases *ended, bool is_written)
{
    ended->is_unwritten = !is_written;
    drop_oldest(ended);
}

void ended_leases_note_written(struct ended_leases *ended, uint64_t count)
{
    if (count > ended->written)
        ended->written = count;
    drop_oldest(ended);
}

void ended_leases_fill(const struct ended_leases *ended, uint64_t count,
                       struct wire_message *message)
{
    size_t bytes = 0;

    message->id = count;
    list_for_each (link, &ended->list) {
        const struct lease_record *record = container_of(link, struct lease_record, in_ended);
        struct ended_lease *item;

        if (record->order <= count)
            continue;
        if (bytes > MESSAGE_BYTES || message->ended.count == WIRE_PAGE_ITEMS) {
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
    /* The leases that ended after the last one in the list are lost, too. */
    message->lost += ended->total - message->id;
    message->id = ended->total;
}
