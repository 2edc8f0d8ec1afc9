/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the queue of a pool in its order. If every line fits the terminal, the reason why a claim
 * waits is the last column. Otherwise the reason follows in lines of its own, wrapped and never
 * cut.
 */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "base/text/table.h"
#include "base/text/utf8.h"
#include "cli/options.h"
#include "cli/status/status_output.h"
#include "view/reason_text.h"

enum {
    INDENT = 7, /* of reasons in lines of their own */
    WRAP_WIDTH_MIN = 40
};

/* The last column is shown only if all lines fit. */
static const struct table_column columns[] = {
    {.heading = "QUEUE", .priority = 40, .right = true},
    {.heading = "CLAIM", .priority = TABLE_ALWAYS, .right = true},
    {.heading = "USER", .priority = 95, .min = 6},
    {.heading = "WAITING", .priority = 85, .right = true},
    {.heading = "STARTS", .priority = 80, .right = true, .hide_unknown = true},
    {.heading = "WANTS", .priority = 90, .min = 12},
    {.heading = "JOB", .priority = 70, .min = 8, .hide_unknown = true},
    {.heading = "WHY", .priority = 75, .min = 24, .hide_unknown = true},
};

static void add_claim(struct table *table, const struct status_picture *picture,
                      const struct claim_info *claim)
{
    int64_t now = picture->now;
    /* The daemon made the estimates at the time of the snapshot. */
    int64_t past = view_time_between(picture->view->snapshot.time, now);

    table_cell_format(table, "%u", claim->position);
    table_cell_format(table, "%llu", (unsigned long long)claim->id);
    table_cell(table, user_names_find(picture->users, claim->uid));
    table_cell(table, view_format_duration(claim->since, now).text);
    table_cell(table,
               claim->estimate.known ? view_format_start(claim->estimate.value, past).text : NULL);
    table_cell(table, claim->request);
    table_cell(table, claim->name != NULL ? claim->name : claim->command);
}

/* Appends the reason in lines of its own. */
static void append_reason(const struct claim_info *claim, const struct status_picture *picture,
                          struct text *out)
{
    size_t width =
        picture->terminal.width < WRAP_WIDTH_MIN ? WRAP_WIDTH_MIN : picture->terminal.width;
    struct text reason = {0};
    struct text inert = {0};
    struct text lines = {0};

    reason_text_append_claim(&reason, claim, picture->users);
    out->failed |= reason.failed;
    if (reason.length == 0) {
        text_finish(&reason);
        return;
    }
    utf8_append_inert(&inert, text_string(&reason));
    options_wrap(text_string(&inert), INDENT, width, &lines);
    text_append_repeated(out, ' ', INDENT);
    if (picture->terminal.colour && lines.length > 0)
        text_append_format(out, "%s%.*s%s\n", terminal_style_start(STYLE_FAINT),
                           (int)lines.length - 1, text_string(&lines), terminal_style_end());
    else
        text_append(out, text_string(&lines));
    out->failed |= inert.failed || lines.failed;
    text_finish(&reason);
    text_finish(&inert);
    text_finish(&lines);
}

/* Appends the printed table with each claim's reason below its line. */
static void append_with_reasons(const struct status_picture *picture, const char *table,
                                struct text *out)
{
    const struct claim_info *claim = picture->view->snapshot.claims.items;
    const struct claim_info *end = claim + picture->view->snapshot.claims.count;
    bool heading = true;

    while (*table != '\0') {
        size_t length = strcspn(table, "\n");

        length += table[length] == '\n';
        text_append_bytes(out, table, length);
        table += length;
        if (!heading && claim != end)
            append_reason(claim++, picture, out);
        heading = false;
    }
}

static void add_reason(struct table *table, const struct status_picture *picture,
                       const struct claim_info *claim)
{
    struct text reason = {0};

    reason_text_append_claim(&reason, claim, picture->users);
    table->failed |= text_failed(&reason);
    table_cell(table, reason.length == 0 ? NULL : text_string(&reason));
    text_finish(&reason);
}

static void print_table(const struct status_picture *picture, const struct terminal *terminal,
                        bool with_reasons, struct text *out)
{
    const struct claim_info *claim;
    struct table table;

    table_init(&table, columns, with_reasons ? COUNT(columns) : COUNT(columns) - 1);
    vector_for_each (claim, &picture->view->snapshot.claims) {
        add_claim(&table, picture, claim);
        if (with_reasons)
            add_reason(&table, picture, claim);
    }
    if (table_print(&table, terminal, out) < 0)
        out->failed = true;
    table_finish(&table);
}

/* Returns whether the table with its reasons fits the terminal uncut. */
static bool reasons_fit(const struct status_picture *picture, struct text *out)
{
    const struct terminal endless = {.unicode = picture->terminal.unicode};
    struct text lines = {0};
    bool all = true;

    if (picture->terminal.width == 0)
        return true;
    print_table(picture, &endless, true, &lines);
    for (size_t at = 0; all && at < lines.length;) {
        size_t length = strcspn(lines.bytes + at, "\n");

        lines.bytes[at + length] = '\0'; /* the line break, or the end */
        all = utf8_width(lines.bytes + at) <= picture->terminal.width;
        at += length + 1;
    }
    out->failed |= lines.failed;
    text_finish(&lines);
    return all;
}

void status_write_queue(const struct status_picture *picture, struct text *out)
{
    struct text lines = {0};

    if (picture->view->snapshot.claims.count == 0)
        return;
    if (reasons_fit(picture, out)) {
        print_table(picture, &picture->terminal, true, out);
        return;
    }
    print_table(picture, &picture->terminal, false, &lines);
    append_with_reasons(picture, text_string(&lines), out);
    out->failed |= lines.failed;
    text_finish(&lines);
}
