/* SPDX-License-Identifier: Apache-2.0 */
#include "history/history_csv.h"

#include <string.h>

#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "model/request.h"

#define HOUR_UNIT (DURATION_HOUR / 1000000)

/* Appends a text; NULL: unknown. Texts from users are made inert, so they have no line breaks. */
static void add_text(struct text *out, const char *words)
{
    struct text inert = {0};

    if (words != NULL && *words != '\0' && strchr("=+-@\t\r", *words) != NULL)
        text_append_char(&inert, '\'');
    utf8_append_inert(&inert, words == NULL ? "" : words);
    if (text_failed(&inert)) {
        out->failed = true;
    } else if (strpbrk(text_string(&inert), ",\"") == NULL) {
        text_append(out, text_string(&inert));
    } else {
        text_append_char(out, '"');
        for (const char *byte = text_string(&inert); *byte != '\0'; byte++) {
            if (*byte == '"')
                text_append_char(out, '"');
            text_append_char(out, *byte);
        }
        text_append_char(out, '"');
    }
    text_finish(&inert);
}

static void add_decimal(struct text *out, uint64_t value, unsigned decimals)
{
    text_append(out, quantity_format_decimal((int64_t)value, decimals).text);
}

static void add_seconds(struct text *out, uint64_t nanoseconds)
{
    add_decimal(out, nanoseconds / (DURATION_SECOND / 1000), 3);
}

static void add_time(struct text *out, int64_t time)
{
    if (time != 0)
        text_append(out, quantity_format_time(time).text);
}

static void add_known(struct text *out, struct optional_number number)
{
    if (number.known)
        text_append_number(out, number.value);
}

static void add_idle(struct text *out, uint64_t idle, uint64_t judged)
{
    if (judged != 0)
        add_decimal(out, (uint64_t)((unsigned __int128)idle * 1000000 / judged), 6);
}

/* Appends the ids with blanks between them: a list in one cell. */
static void add_devices(struct text *out, const struct device_id_list *devices)
{
    const struct device_id *id;

    vector_for_each (id, devices) {
        if (id != devices->items)
            text_append_char(out, ' ');
        device_id_append(*id, out);
    }
}

static void add_comma(struct text *out)
{
    text_append_char(out, ',');
}

void history_csv_begin(struct text *out)
{
    text_append(out, "id,name,user,uid,command,devices,share,parent,waited_s,held_s,claimed_at,"
                     "granted_at,ended_at,end,exit_code,idle_share,pool,leases\r\n");
}

void history_csv_lease(const struct history_lease *lease, int64_t now, struct text *out)
{
    text_append_number(out, lease->id);
    add_comma(out);
    add_text(out, lease->name);
    add_comma(out);
    add_text(out, lease->user);
    add_comma(out);
    text_append_number(out, lease->uid);
    add_comma(out);
    add_text(out, lease->command);
    add_comma(out);
    add_devices(out, &lease->devices);
    add_comma(out);
    add_decimal(out, lease->share, SHARE_DECIMALS);
    add_comma(out);
    if (lease->parent != 0)
        text_append_number(out, lease->parent);
    add_comma(out);
    add_seconds(out, (uint64_t)history_lease_waited(lease));
    add_comma(out);
    add_seconds(out, (uint64_t)history_lease_held(lease, now));
    add_comma(out);
    add_time(out, lease->claimed);
    add_comma(out);
    add_time(out, lease->granted);
    add_comma(out);
    add_time(out, lease->ended);
    add_comma(out);
    add_text(out, lease->end);
    add_comma(out);
    add_known(out, lease->exit_code);
    add_comma(out);
    add_idle(out, lease->idle_time, lease->judged_time);
    add_comma(out);
    add_text(out, lease->pool);
    add_comma(out);
    text_append_number(out, lease->leases == 0 ? 1 : lease->leases);
    text_append(out, "\r\n");
}

void history_csv_report(const struct history_report *report, enum history_by by, struct text *out)
{
    const struct history_row *row;

    text_append(out, choice_name(history_by_names, (int)by));
    text_append(out, ",leases,gpu_hours,waited_s,idle_share\r\n");
    vector_for_each (row, report) {
        add_text(out, row->key);
        add_comma(out);
        text_append_number(out, row->leases);
        add_comma(out);
        add_decimal(out, row->gpu_time / HOUR_UNIT, 6);
        add_comma(out);
        add_seconds(out, row->waited);
        add_comma(out);
        add_idle(out, row->idle, row->judged);
        text_append(out, "\r\n");
    }
}
