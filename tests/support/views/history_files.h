/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes small history files in the current directory.
 */
#ifndef TESTS_HISTORY_FILES_H
#define TESTS_HISTORY_FILES_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"
#include "history/history.h"
#include "history/history_record.h"

/* The start of all histories: 2026-11-01 00:00:00 UTC. */
#define NOW_BEGINS INT64_C(1793491200000000000)
/* The time this many seconds later. */
#define AT(seconds) (NOW_BEGINS + (int64_t)((seconds)*1e9))

#define HISTORY_FILE "history.db"

/* A short description of a lease. `devices` are ids between commas. It is held if `ended` is 0. */
struct written_lease {
    uint64_t id;
    const char *user;
    const char *name;
    const char *devices;
    int64_t claimed;
    int64_t granted;
    int64_t ended;
    const char *end;
    uint32_t share;  /* 0: whole devices */
    uint64_t parent; /* 0: none */
    uint64_t judged;
    uint64_t idle;
    uint64_t leases; /* 0: one */
    uint64_t held_time;
    uint64_t waited_time;
    int exit_code; /* -1, or 0: unknown */
};

/* Converts a description to a lease. The caller frees its devices. */
static inline struct history_lease lease_as_put(const struct written_lease *written)
{
    struct history_lease lease = {
        .id = written->id,
        .parent = written->parent,
        .name = (char *)written->name,
        .user = (char *)written->user,
        .uid = 1000 + (uint32_t)written->user[0],
        .command = (char *)"python train.py",
        .share = written->share == 0 ? 1000000 : written->share,
        .claimed = written->claimed,
        .granted = written->granted,
        .ended = written->ended,
        .end = (char *)written->end,
        .judged_time = written->judged,
        .idle_time = written->idle,
        .leases = written->leases,
        .held_time = written->held_time,
        .waited_time = written->waited_time,
    };
    char *copy = strdup(written->devices);
    char *rest = copy;
    const char *part;

    while ((part = strsep(&rest, ",")) != NULL) {
        struct device_id *id = vector_append(&lease.devices);

        assert_int_equal(device_id_parse(part, id, NULL), 0);
    }
    free(copy);
    if (written->exit_code > 0)
        lease.exit_code = optional_number_of((uint64_t)written->exit_code);
    return lease;
}

static inline struct history_record *open_record(const char *pool)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record;

    if (history_record_open(HISTORY_FILE, pool, HISTORY_FOR_OWNER, &record, &error) < 0)
        fail_msg("%s", error.message);
    return record;
}

/* Puts the leases into the file as one batch. */
static inline void put_leases(struct history_record *record, const struct written_lease *leases,
                              size_t count, const struct history_position *place)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = history_record_begin(record, &error);

    for (size_t i = 0; i < count && code == 0; i++) {
        struct history_lease lease = lease_as_put(&leases[i]);

        code = history_record_put(record, &lease, &error);
        vector_finish(&lease.devices);
    }
    if (code == 0)
        code = history_record_commit(record, place, &error);
    if (code < 0)
        fail_msg("%s", error.message);
}

/* Writes a file with these leases of one pool, which was last seen at `seen`. */
static inline void write_history(const struct written_lease *leases, size_t count, int64_t seen)
{
    struct history_record *record = open_record("one");

    put_leases(record, leases, count, &(struct history_position){.epoch = 1, .seen = seen});
    history_record_close(record);
}

static inline struct history *open_history(void)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history *history;

    if (history_open_read(HISTORY_FILE, &history, &error) < 0)
        fail_msg("%s", error.message);
    return history;
}

static inline int append_lease(void *context, const struct history_lease *lease,
                               struct berth_error *error)
{
    struct text *out = context;

    (void)error;
    text_append_format(out, "%s%llu", out->length == 0 ? "" : " ", (unsigned long long)lease->id);
    if (lease->end != NULL)
        text_append_format(out, ":%s", lease->end);
    return 0;
}

/* Returns the ids of the leases found and how each ended, with blanks between them. The caller
 * frees the text. */
static inline char *find_leases(const struct history_query *query)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history *history = open_history();
    struct text found = {0};

    if (history_each(history, query, append_lease, &found, &error) < 0)
        fail_msg("%s", error.message);
    history_close(history);
    text_append(&found, "");
    return text_detach(&found);
}

#define assert_found(query, wanted)                          \
    do {                                                     \
        char *found_ = find_leases(query);                   \
        assert_string_equal(found_ ? found_ : "", (wanted)); \
        free(found_);                                        \
    } while (0)

#endif
