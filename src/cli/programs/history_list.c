/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases one by one.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/text/quantity.h"
#include "base/text/table.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/programs/history_program.h"
#include "history/history_csv.h"
#include "model/request.h"

/* There may be millions: they are printed piece by piece. */
enum { PIECE_BYTES = 64 * 1024, PIECE_ROWS = 2000 };

static const struct table_column columns[] = {
    {.heading = "LEASE", .right = true, .priority = TABLE_ALWAYS},
    {.heading = "USER", .min = 6, .priority = 90},
    {.heading = "DEVICES", .min = 8, .priority = 80},
    {.heading = "SHARE", .right = true, .hide_unknown = true, .priority = 30},
    {.heading = "GRANTED", .priority = 85},
    {.heading = "WAITED", .right = true, .priority = 60},
    {.heading = "HELD", .right = true, .priority = 88},
    {.heading = "IDLE", .right = true, .hide_unknown = true, .priority = 40},
    {.heading = "END", .priority = 70},
    {.heading = "CODE", .right = true, .hide_unknown = true, .priority = 50},
    {.heading = "JOB", .min = 8, .priority = 75},
};

struct history_printer {
    enum history_form form;
    int64_t now;
    struct text out;
    struct json json;
    struct table table;
    size_t rows;  /* in the table */
    bool has_any; /* lease */
    int exit;     /* of the output */
};

/* Prints what there is; the next piece begins anew. */
static int print_piece(struct history_printer *printer, struct berth_error *error)
{
    if (printer->form == HISTORY_FORM_TABLE && printer->rows > 0) {
        const struct terminal terminal = terminal_detect(STDOUT_FILENO);

        if (table_print(&printer->table, &terminal, &printer->out) < 0)
            return error_set_memory(error);
        table_finish(&printer->table);
        table_init(&printer->table, columns, COUNT(columns));
        printer->rows = 0;
    }
    printer->exit = output_write(&printer->out);
    text_clear(&printer->out);
    /* Why was said already. */
    return printer->exit == EXIT_GOOD ? 0 : error_set(error, BERTH_ERROR_CANCELLED, "output");
}

/* A time as the clock here shows it. */
static void add_time(struct table *table, int64_t time)
{
    time_t seconds = (time_t)(time / DURATION_SECOND);
    char text[64];
    struct tm local;

    if (localtime_r(&seconds, &local) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local) == 0)
        table_cell(table, NULL);
    else
        table_cell(table, text);
}

static void add_devices(struct table *table, const struct device_id_list *devices)
{
    struct text ids = {0};
    const struct device_id *id;

    vector_for_each (id, devices) {
        if (id != devices->items)
            text_append_char(&ids, ',');
        device_id_append(*id, &ids);
    }
    table->failed = table->failed || text_failed(&ids);
    table_cell(table, text_string(&ids));
    text_finish(&ids);
}

static void add_percent(struct table *table, uint64_t part, uint64_t whole)
{
    if (whole == 0)
        table_cell(table, NULL);
    else
        table_cell_format(table, "%u%%", (unsigned)((unsigned __int128)part * 100 / whole));
}

/* Whole seconds: less is only noise. */
static void add_duration(struct table *table, int64_t nanoseconds)
{
    table_cell(table,
               quantity_format_duration(nanoseconds < DURATION_SECOND
                                            ? nanoseconds
                                            : nanoseconds / DURATION_SECOND * DURATION_SECOND)
                   .text);
}

/* Most holders end without saying how: the command took berth run's place. */
static const char *describe_end(const struct history_lease *lease)
{
    if (lease->end == NULL)
        return "held";
    return strcmp(lease->end, "died") == 0 ? "ended" : lease->end;
}

static void add_row(struct table *table, const struct history_lease *lease, int64_t now)
{
    table_cell_format(table, "%llu", (unsigned long long)lease->id);
    table_cell(table, lease->user);
    add_devices(table, &lease->devices);
    table_cell(table, lease->share == SHARE_WHOLE
                          ? NULL
                          : quantity_format_decimal(lease->share, SHARE_DECIMALS).text);
    add_time(table, lease->granted);
    add_duration(table, history_lease_waited(lease));
    add_duration(table, history_lease_held(lease, now));
    add_percent(table, lease->idle_time, lease->judged_time);
    table_cell(table, describe_end(lease));
    if (lease->exit_code.known)
        table_cell_format(table, "%llu", (unsigned long long)lease->exit_code.value);
    else
        table_cell(table, NULL);
    table_cell(table, lease->name != NULL ? lease->name : lease->command);
}

static int print_lease(void *context, const struct history_lease *lease, struct berth_error *error)
{
    struct history_printer *printer = context;

    printer->has_any = true;
    switch (printer->form) {
    case HISTORY_FORM_JSON:
        history_json_lease(&printer->json, lease, printer->now);
        break;
    case HISTORY_FORM_CSV:
        history_csv_lease(lease, printer->now, &printer->out);
        break;
    case HISTORY_FORM_TABLE:
        add_row(&printer->table, lease, printer->now);
        printer->rows++;
        break;
    }
    if (printer->out.length >= PIECE_BYTES || printer->rows >= PIECE_ROWS)
        return print_piece(printer, error);
    return text_failed(&printer->out) || printer->table.failed ? error_set_memory(error) : 0;
}

static void begin_output(struct history_printer *printer)
{
    table_init(&printer->table, columns, COUNT(columns));
    if (printer->form == HISTORY_FORM_CSV)
        history_csv_begin(&printer->out);
    if (printer->form == HISTORY_FORM_JSON) {
        json_start(&printer->json, &printer->out, JSON_INDENTED);
        history_json_begin(&printer->json);
    }
}

static void end_output(struct history_printer *printer)
{
    if (printer->form == HISTORY_FORM_JSON) {
        history_json_end(&printer->json);
        json_finish(&printer->json);
    }
    if (printer->form == HISTORY_FORM_TABLE && !printer->has_any)
        text_append(&printer->out, "no leases\n");
}

int history_list_print(struct history *history, const struct history_query *query,
                       enum history_form form)
{
    struct history_printer printer = {.form = form, .now = query->now};
    struct berth_error error = BERTH_ERROR_INIT;
    int code = 0;

    begin_output(&printer);
    if (history != NULL)
        code = history_each(history, query, print_lease, &printer, &error);
    if (code == 0) {
        end_output(&printer);
        code = print_piece(&printer, &error);
    }
    if (code < 0 && printer.exit == EXIT_GOOD)
        printer.exit = main_fail_verb("history", &error);
    text_finish(&printer.out);
    table_finish(&printer.table);
    return printer.exit;
}
