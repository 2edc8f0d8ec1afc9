/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases added up.
 */
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/table.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/programs/history_program.h"
#include "history/history_csv.h"

static void add_row(struct table *table, const char *key, const struct history_row *row)
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

static int write_table(const struct history_report *report, enum history_by by, struct text *out)
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
        add_row(&table, row->key, row);
    if (report->count > 1)
        add_row(&table, "(all)", &report->total);
    code = table_print(&table, &terminal, out);
    table_finish(&table);
    return code;
}

int history_totals_print(struct history *history, const struct history_query *query,
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
    else if (code == 0 && write_table(&report, by, &out) < 0)
        code = error_set_memory(&error);
    code = code < 0 ? main_fail_verb("report", &error) : output_write(&out);
    history_report_finish(&report);
    text_finish(&out);
    return code;
}
