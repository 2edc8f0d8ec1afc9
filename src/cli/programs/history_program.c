/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/history_program.h"

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
#include "history/history_csv.h"
#include "model/request.h"

int history_program_fail(const char *verb, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", verb);
    return output_error(error);
}

/* ---- berth history: one row per lease ---- */

/* The list may have millions of leases, so it is printed in pieces. */
enum { PIECE_BYTES = 64 * 1024, PIECE_ROWS = 2000 };

static const struct table_column list_columns[] = {
    {.heading = "LEASE", .right = true, .priority = TABLE_ALWAYS},
    {.heading = "USER", .min = 6, .priority = 90},
    {.heading = "DEVICES", .min = 8, .priority = 80},
    {.heading = "SHARE", .right = true, .hide_unknown = true, .priority = 30},
    {.heading = "GRANTED", .priority = 85},
    {.heading = "WAITED", .right = true, .priority = 60},
    {.heading = "HELD", .right = true, .priority = 88},
    {.heading = "IDLE", .right = true, .hide_unknown = true, .priority = 40},
    {.heading = "END", .priority = 70},
    {.heading = "EXIT", .right = true, .hide_unknown = true, .priority = 50},
    {.heading = "JOB", .min = 8, .priority = 75},
};

struct history_printer {
    enum history_form form;
    const struct kept_commands *kept;
    uint32_t uid;
    int64_t now;
    struct text out;
    struct json json;
    struct table table;
    size_t rows;  /* rows in the table */
    bool has_any; /* true once a lease was printed */
    int exit;     /* exit code of writing the output */
};

/* Prints the output so far and starts the next piece. */
static int print_piece(struct history_printer *printer, struct berth_error *error)
{
    if (printer->form == HISTORY_FORM_TABLE && printer->rows > 0) {
        const struct terminal terminal = terminal_detect(STDOUT_FILENO);

        if (table_print(&printer->table, &terminal, &printer->out) < 0)
            return error_set_memory(error);
        table_finish(&printer->table);
        table_init(&printer->table, list_columns, COUNT(list_columns));
        printer->rows = 0;
    }
    printer->exit = output_write(&printer->out);
    text_clear(&printer->out);
    /* output_write() has reported the reason. */
    return printer->exit == EXIT_GOOD
               ? 0
               : error_set(error, BERTH_ERROR_CANCELLED, "cannot write the output");
}

/* Adds a time in the local time zone. */
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

/* Adds a duration, in whole seconds if it is a second or longer. */
static void add_duration(struct table *table, int64_t nanoseconds)
{
    table_cell(table,
               quantity_format_duration(nanoseconds < DURATION_SECOND
                                            ? nanoseconds
                                            : nanoseconds / DURATION_SECOND * DURATION_SECOND)
                   .text);
}

/* Returns how the lease ended. "died" only means that the holder ended without a message. This is
 * how most leases end, because berth run becomes its command. */
static const char *describe_end(const struct history_lease *lease)
{
    if (lease->end == NULL)
        return "held";
    return strcmp(lease->end, "died") == 0 ? "ended" : lease->end;
}

static void add_lease_row(struct table *table, const struct history_lease *lease, int64_t now)
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
    if (history_lease_is_sum(lease))
        table_cell_format(table, "%llu leases", (unsigned long long)lease->leases);
    else
        table_cell(table, describe_end(lease));
    if (lease->exit_code.known)
        table_cell_format(table, "%llu", (unsigned long long)lease->exit_code.value);
    else
        table_cell(table, NULL);
    table_cell(table, lease->name != NULL ? lease->name : lease->command);
}

/* Puts the whole command line into one of the user's own leases. */
static void complete_command(const struct history_printer *printer, struct history_lease *lease)
{
    const char *command = NULL;

    if (lease->uid == printer->uid && !history_lease_is_sum(lease))
        command = kept_commands_find(printer->kept, lease->pool, lease->id, lease->command);
    if (command != NULL)
        lease->command = (char *)command;
}

static int print_lease(void *context, const struct history_lease *recorded,
                       struct berth_error *error)
{
    struct history_printer *printer = context;
    struct history_lease completed = *recorded;
    const struct history_lease *lease = &completed;

    complete_command(printer, &completed);
    printer->has_any = true;
    switch (printer->form) {
    case HISTORY_FORM_JSON:
        history_json_lease(&printer->json, lease, printer->now);
        break;
    case HISTORY_FORM_CSV:
        history_csv_lease(lease, printer->now, &printer->out);
        break;
    case HISTORY_FORM_TABLE:
        add_lease_row(&printer->table, lease, printer->now);
        printer->rows++;
        break;
    }
    if (printer->out.length >= PIECE_BYTES || printer->rows >= PIECE_ROWS)
        return print_piece(printer, error);
    return text_failed(&printer->out) || printer->table.failed ? error_set_memory(error) : 0;
}

static void begin_output(struct history_printer *printer)
{
    table_init(&printer->table, list_columns, COUNT(list_columns));
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

int history_program_list(struct history *history, const struct history_query *query,
                         const struct kept_commands *kept, enum history_form form)
{
    struct history_printer printer = {
        .form = form,
        .kept = kept,
        .uid = (uint32_t)getuid(),
        .now = query->now,
    };
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
        printer.exit = history_program_fail("history", &error);
    text_finish(&printer.out);
    table_finish(&printer.table);
    return printer.exit;
}

/* ---- berth report: sums ---- */

static void add_total_row(struct table *table, const char *key, const struct history_row *row)
{
    uint64_t hundredths = row->gpu_time / (DURATION_HOUR / 100);
    int64_t waited = row->waited > INT64_MAX ? INT64_MAX : (int64_t)row->waited;

    table_cell(table, key);
    table_cell_format(table, "%llu", (unsigned long long)row->leases);
    table_cell_format(table, "%llu.%02llu", (unsigned long long)(hundredths / 100),
                      (unsigned long long)(hundredths % 100));
    table_cell(table, quantity_format_duration(waited).text);
    if (row->judged == 0)
        table_cell(table, NULL);
    else
        table_cell_format(table, "%u%%",
                          (unsigned)((unsigned __int128)row->idle * 100 / row->judged));
}

static int write_totals_table(const struct history_report *report, enum history_by by,
                              struct text *out)
{
    static const char *const headings[] = {
        [HISTORY_BY_USER] = "USER",
        [HISTORY_BY_NAME] = "NAME",
        [HISTORY_BY_DEVICE] = "DEVICE",
    };
    const struct table_column columns[] = {
        {.heading = headings[by], .min = 8, .priority = TABLE_ALWAYS},
        {.heading = "LEASES", .right = true, .priority = 70},
        {.heading = "GPU-HOURS", .right = true, .priority = TABLE_ALWAYS},
        {.heading = "WAITED", .right = true, .priority = 60},
        {.heading = "IDLE", .right = true, .hide_unknown = true, .priority = 50},
    };
    const struct terminal terminal = terminal_detect(STDOUT_FILENO);
    const struct history_row *row;
    struct table table;
    int code;

    if (report->count == 0) {
        text_append(out, "no leases\n");
        return 0;
    }
    table_init(&table, columns, COUNT(columns));
    vector_for_each (row, report)
        add_total_row(&table, row->key, row);
    if (report->count > 1)
        add_total_row(&table, "(total)", &report->total);
    code = table_print(&table, &terminal, out);
    table_finish(&table);
    return code;
}

int history_program_report(struct history *history, const struct history_query *query,
                           enum history_by by, enum history_form form)
{
    struct history_report report = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int code = 0;

    if (history != NULL)
        code = history_report(history, query, by, &report, &error);
    if (code == 0 && form == HISTORY_FORM_JSON)
        history_write_report_json(&report, by, JSON_INDENTED, &out);
    else if (code == 0 && form == HISTORY_FORM_CSV)
        history_csv_report(&report, by, &out);
    else if (code == 0 && write_totals_table(&report, by, &out) < 0)
        code = error_set_memory(&error);
    code = code < 0 ? history_program_fail("report", &error) : output_write(&out);
    history_report_finish(&report);
    text_finish(&out);
    return code;
}
