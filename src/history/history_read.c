/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "history/history.h"
#include "history/history_database.h"
#include "history/history_internal.h"
#include "model/request.h"

/* If a held lease has not been seen for longer than this, its daemon is gone and its end is
 * unknown. */
#define SEEN_LATELY DURATION_MINUTE

struct history {
    struct history_database database;
};

int history_open_read(const char *path, struct history **ret_history, struct berth_error *error)
{
    struct history *history = calloc(1, sizeof(*history));
    int code;

    if (history == NULL)
        return error_set_memory(error);
    code = history_database_open_read(&history->database, path, error);
    if (code < 0) {
        free(history);
        return code;
    }
    *ret_history = history;
    return 0;
}

void history_close(struct history *history)
{
    if (history == NULL)
        return;
    history_database_close(&history->database);
    free(history);
}

/* ---- Times ---- */

/* Returns a duration that is never negative and never overflows. */
static int64_t time_between(int64_t from, int64_t to)
{
    int64_t between;

    if (to <= from)
        return 0;
    return __builtin_sub_overflow(to, from, &between) ? INT64_MAX : between;
}

static int64_t clip_time(uint64_t time)
{
    return time > INT64_MAX ? INT64_MAX : (int64_t)time;
}

int64_t history_lease_waited(const struct history_lease *lease)
{
    if (history_lease_is_sum(lease))
        return clip_time(lease->waited_time);
    return time_between(lease->claimed, lease->granted);
}

int64_t history_lease_last(const struct history_lease *lease, int64_t now)
{
    if (lease->ended != 0)
        return lease->ended;
    return time_between(lease->seen, now) <= SEEN_LATELY ? now : lease->seen;
}

int64_t history_lease_held(const struct history_lease *lease, int64_t now)
{
    if (history_lease_is_sum(lease))
        return clip_time(lease->held_time);
    return time_between(lease->granted, history_lease_last(lease, now));
}

int64_t history_query_now(const struct history_query *query)
{
    return query->now != 0 ? query->now : clock_read(CLOCK_REALTIME);
}

/* ---- Queries ---- */

/* The columns, in the order of the query. */
enum lease_column {
    COLUMN_POOL,
    COLUMN_ID,
    COLUMN_PARENT,
    COLUMN_NAME,
    COLUMN_USER,
    COLUMN_UID,
    COLUMN_COMMAND,
    COLUMN_DEVICES,
    COLUMN_SHARE,
    COLUMN_CLAIMED,
    COLUMN_GRANTED,
    COLUMN_ENDED,
    COLUMN_END,
    COLUMN_EXIT_CODE,
    COLUMN_JUDGED,
    COLUMN_IDLE,
    COLUMN_SEEN,
    COLUMN_LEASES,
    COLUMN_HELD,
    COLUMN_WAITED,
};

/* The columns of sums, in files with and without them. */
static const char sum_columns[] = ", lease.leases, lease.held, lease.waited";
static const char no_sum_columns[] = ", 1, NULL, NULL";

static const char question[] =
    "SELECT pool.name, lease.id, lease.parent, lease.name, lease.user, lease.uid, lease.command,"
    " lease.devices, lease.share, lease.claimed, lease.granted, lease.ended, lease.end,"
    " lease.exit_code, lease.judged, lease.idle, pool.seen";

static const char tables[] = " FROM lease LEFT JOIN pool ON pool.number = lease.pool WHERE 1";

static bool is_number(const char *string)
{
    if (*string == '\0')
        return false;
    while (isdigit((unsigned char)*string))
        string++;
    return *string == '\0';
}

/* Appends the statement. The plus signs keep SQLite from scanning every lease ever granted when the
 * query is about the last days. */
static void write_query(const struct history_query *query, int64_t version, struct text *out)
{
    const char *plus = query->since != 0 ? "+" : "";

    text_append(out, question);
    text_append(out, version < 2 ? no_sum_columns : sum_columns);
    text_append(out, tables);
    if (query->since != 0)
        text_append(out, " AND (lease.ended IS NULL OR lease.ended >= :since)"
                         " AND NOT (ifnull(lease.ended, 0) = :since AND lease.granted < :since)");
    if (query->until != 0)
        text_append_format(out, " AND %slease.granted < :until", plus);
    if (query->user != NULL)
        text_append(out, is_number(query->user) ? " AND (lease.user = :user OR lease.uid = :user)"
                                                : " AND lease.user = :user");
    if (query->name != NULL)
        text_append(out, " AND instr(lower(lease.name), lower(:name)) > 0");
    if (query->device != NULL)
        text_append(out, " AND instr(',' || lease.devices || ',', ',' || :device || ',') > 0");
    text_append_format(out, " ORDER BY %slease.granted DESC, %slease.id DESC", plus, plus);
    if (query->max != 0)
        text_append(out, " LIMIT :most");
}

static void bind_number(sqlite3_stmt *statement, const char *name, int64_t number)
{
    int place = sqlite3_bind_parameter_index(statement, name);

    if (place > 0)
        sqlite3_bind_int64(statement, place, number);
}

static void bind_text(sqlite3_stmt *statement, const char *name, const char *text)
{
    int place = sqlite3_bind_parameter_index(statement, name);

    if (place > 0 && text != NULL)
        sqlite3_bind_text(statement, place, text, -1, SQLITE_STATIC);
}

static int run_query(struct history *history, const struct history_query *query,
                     sqlite3_stmt **ret_statement, struct berth_error *error)
{
    struct text words = {0};
    sqlite3_stmt *statement = NULL;
    int code;

    write_query(query, history->database.version, &words);
    code = text_failed(&words) ? error_set_memory(error)
                               : history_database_prepare(&history->database, text_string(&words),
                                                          &statement, error);
    text_finish(&words);
    if (code < 0)
        return code;
    bind_number(statement, ":since", query->since);
    bind_number(statement, ":until", query->until);
    bind_text(statement, ":user", query->user);
    bind_text(statement, ":name", query->name);
    bind_text(statement, ":device", query->device);
    bind_number(statement, ":most", query->max > INT64_MAX ? INT64_MAX : (int64_t)query->max);
    *ret_statement = statement;
    return 0;
}

/* ---- Results ---- */

/* Returns SQLite's text, valid until the next row; NULL if there is none or if SQLite has no
 * memory. */
static char *text_of(sqlite3_stmt *statement, enum lease_column lease_column)
{
    if (sqlite3_column_type(statement, lease_column) == SQLITE_NULL)
        return NULL;
    return (char *)sqlite3_column_text(statement, lease_column);
}

static uint64_t count_of(sqlite3_stmt *statement, enum lease_column lease_column)
{
    int64_t number = sqlite3_column_int64(statement, lease_column);

    return number < 0 ? 0 : (uint64_t)number;
}

static int add_device(struct device_id_list *list, const char *text, struct berth_error *error)
{
    struct device_id *added;
    struct device_id id;
    int code = device_id_parse(text, &id, error);

    if (code < 0)
        return code;
    if (list->count == DEVICE_ID_LIST_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "expected at most %d devices, got more",
                         DEVICE_ID_LIST_MAX);
    added = vector_append(list);
    if (added == NULL)
        return error_set_memory(error);
    *added = id;
    return 0;
}

/* Parses a list of device ids. A device may occur twice: replicas of one lease may share it. */
static int read_devices(const char *text, struct device_id_list *list, struct berth_error *error)
{
    char *copy = text == NULL ? NULL : strdup(text);
    char *rest = copy;
    char *part;
    int code = 0;

    if (text != NULL && copy == NULL)
        return error_set_memory(error);
    if (text != NULL && *text == '\0')
        rest = NULL;
    while (code == 0 && (part = strsep(&rest, ",")) != NULL)
        code = add_device(list, part, error);
    free(copy);
    return code;
}

static struct optional_number exit_code_of(sqlite3_stmt *statement)
{
    int64_t number = sqlite3_column_int64(statement, COLUMN_EXIT_CODE);

    if (sqlite3_column_type(statement, COLUMN_EXIT_CODE) == SQLITE_NULL || number < 0)
        return (struct optional_number){0};
    return optional_number_of((uint64_t)number);
}

static int64_t clip_number(int64_t number, int64_t max)
{
    return number < 0 ? 0 : number > max ? max : number;
}

/* Reads the current row; its texts still belong to SQLite. */
static int read_row(const struct history *history, sqlite3_stmt *statement,
                    struct history_lease *lease, struct berth_error *error)
{
    struct device_id_list devices = lease->devices;
    int code;

    devices.count = 0;
    *lease = (struct history_lease){
        .pool = text_of(statement, COLUMN_POOL),
        .id = count_of(statement, COLUMN_ID),
        .parent = count_of(statement, COLUMN_PARENT),
        .name = text_of(statement, COLUMN_NAME),
        .user = text_of(statement, COLUMN_USER),
        .uid = (uint32_t)sqlite3_column_int64(statement, COLUMN_UID),
        .command = text_of(statement, COLUMN_COMMAND),
        .devices = devices,
        .share = (uint32_t)clip_number(sqlite3_column_int64(statement, COLUMN_SHARE), SHARE_WHOLE),
        .claimed = sqlite3_column_int64(statement, COLUMN_CLAIMED),
        .granted = sqlite3_column_int64(statement, COLUMN_GRANTED),
        .ended = sqlite3_column_int64(statement, COLUMN_ENDED),
        .end = text_of(statement, COLUMN_END),
        .exit_code = exit_code_of(statement),
        .judged_time = count_of(statement, COLUMN_JUDGED),
        .idle_time = count_of(statement, COLUMN_IDLE),
        .seen = sqlite3_column_int64(statement, COLUMN_SEEN),
        .leases = count_of(statement, COLUMN_LEASES),
        .held_time = count_of(statement, COLUMN_HELD),
        .waited_time = count_of(statement, COLUMN_WAITED),
    };
    if (lease->ended != 0)
        lease->seen = lease->ended;
    else
        lease->end = NULL;
    if (lease->idle_time > lease->judged_time)
        lease->idle_time = lease->judged_time;
    code = read_devices(text_of(statement, COLUMN_DEVICES), &lease->devices, error);
    if (code < 0 && code != BERTH_ERROR_MEMORY)
        return error_wrap(error, BERTH_ERROR_SYNTAX, "%s: lease %llu", history->database.path,
                          (unsigned long long)lease->id);
    return code;
}

int history_each(struct history *history, const struct history_query *query,
                 history_visitor *visitor, void *context, struct berth_error *error)
{
    struct history_lease lease = {0};
    sqlite3_stmt *statement;
    int stepped = SQLITE_DONE;
    int code = run_query(history, query, &statement, error);

    if (code < 0)
        return code;
    while (code == 0 && (stepped = sqlite3_step(statement)) == SQLITE_ROW) {
        code = read_row(history, statement, &lease, error);
        if (code == 0)
            code = visitor(context, &lease, error);
    }
    if (code == 0 && stepped != SQLITE_DONE)
        code = history_database_fail(&history->database, stepped, error);
    vector_finish(&lease.devices);
    sqlite3_finalize(statement);
    return code;
}
