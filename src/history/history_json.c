/* SPDX-License-Identifier: Apache-2.0
 *
 * History as JSON.
 */
#include "base/text/json.h"

#include "base/error.h"
#include "base/text/quantity.h"
#include "history/history_internal.h"
#include "model/request.h"

/* A millionth of an hour. */
#define HOUR_UNIT     (DURATION_HOUR / 1000000)
#define HOUR_DECIMALS 6
enum { RATIO_WHOLE = 1000000, RATIO_DECIMALS = 6 };

static void write_seconds(struct json *json, const char *key, uint64_t nanoseconds)
{
    json_key(json, key);
    json_decimal(json, (int64_t)(nanoseconds / (DURATION_SECOND / 1000)), 3);
}

/* Writes the idle share; null: the use was never measured. */
static void write_idle(struct json *json, uint64_t idle, uint64_t judged)
{
    json_key(json, "idle_share");
    if (judged == 0)
        json_null(json);
    else
        json_decimal(json, (int64_t)((unsigned __int128)idle * RATIO_WHOLE / judged),
                     RATIO_DECIMALS);
}

void history_json_begin(struct json *json)
{
    json_object_begin(json);
    json_string_member(json, "schema", "berth.history/1");
    json_key(json, "leases");
    json_array_begin(json);
}

void history_json_end(struct json *json)
{
    json_array_end(json);
    json_object_end(json);
}

void history_json_lease(struct json *json, const struct history_lease *lease, int64_t now)
{
    const struct device_id *id;

    json_object_begin(json);
    json_number_member(json, "id", true, lease->id);
    json_string_member(json, "name", lease->name);
    json_string_member(json, "user", lease->user);
    json_number_member(json, "uid", true, lease->uid);
    json_string_member(json, "command", lease->command);
    json_key(json, "devices");
    json_array_begin(json);
    vector_for_each (id, &lease->devices)
        json_string(json, device_id_format(*id).text);
    json_array_end(json);
    json_key(json, "share");
    json_decimal(json, lease->share, SHARE_DECIMALS);
    json_number_member(json, "parent", lease->parent != 0, lease->parent);
    write_seconds(json, "waited_s", (uint64_t)history_lease_waited(lease));
    write_seconds(json, "held_s", (uint64_t)history_lease_held(lease, now));
    json_time_member(json, "claimed_at", lease->claimed != 0, lease->claimed);
    json_time_member(json, "granted_at", lease->granted != 0, lease->granted);
    json_time_member(json, "ended_at", lease->ended != 0, lease->ended);
    json_string_member(json, "end", lease->end);
    json_number_member(json, "exit_code", lease->exit_code.known, lease->exit_code.value);
    write_idle(json, lease->idle_time, lease->judged_time);
    json_string_member(json, "pool", lease->pool);
    json_number_member(json, "leases", true, lease->leases == 0 ? 1 : lease->leases);
    json_object_end(json);
}

struct history_writer {
    struct json json;
    int64_t now;
};

static int write_lease(void *context, const struct history_lease *lease, struct berth_error *error)
{
    struct history_writer *writing = context;

    history_json_lease(&writing->json, lease, writing->now);
    return text_failed(writing->json.text) ? error_set_memory(error) : 0;
}

int history_write_json(struct history *history, const struct history_query *query,
                       enum json_layout layout, struct text *out, struct berth_error *error)
{
    struct history_writer writing = {.now = history_query_now(query)};
    int code;

    json_start(&writing.json, out, layout);
    history_json_begin(&writing.json);
    code = history_each(history, query, write_lease, &writing, error);
    if (code < 0)
        return code;
    history_json_end(&writing.json);
    json_finish(&writing.json);
    return text_failed(out) ? error_set_memory(error) : 0;
}

void history_write_json_empty(enum json_layout layout, struct text *out)
{
    struct json json;

    json_start(&json, out, layout);
    history_json_begin(&json);
    history_json_end(&json);
    json_finish(&json);
}

static void write_row(struct json *json, const struct history_row *row)
{
    json_number_member(json, "leases", true, row->leases);
    json_key(json, "gpu_hours");
    json_decimal(json, (int64_t)(row->gpu_time / HOUR_UNIT), HOUR_DECIMALS);
    write_seconds(json, "waited_s", row->waited);
    write_idle(json, row->idle, row->judged);
}

void history_write_report_json(const struct history_report *report, enum history_by by,
                               enum json_layout layout, struct text *out)
{
    const struct history_row *row;
    struct json json;

    json_start(&json, out, layout);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.report/1");
    json_string_member(&json, "by", choice_name(history_by_names, (int)by));
    json_key(&json, "rows");
    json_array_begin(&json);
    vector_for_each (row, report) {
        json_object_begin(&json);
        json_string_member(&json, "key", row->key);
        write_row(&json, row);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_key(&json, "total");
    json_object_begin(&json);
    write_row(&json, &report->total);
    json_object_end(&json);
    json_object_end(&json);
    json_finish(&json);
}
