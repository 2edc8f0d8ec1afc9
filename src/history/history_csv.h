/* SPDX-License-Identifier: Apache-2.0
 *
 * History as comma-separated values with a header (RFC 4180: lines end with CR LF; a value with a
 * comma, a quote or a line break is quoted). An unknown value is empty. Spreadsheets run a text
 * that begins with = + - @, a tab or a carriage return as a formula, so a job's name could run code
 * in the spreadsheet of another user: such texts get an apostrophe in front.
 */
#ifndef HISTORY_HISTORY_CSV_H
#define HISTORY_HISTORY_CSV_H

#include "base/text/text.h"
#include "history/history.h"

void history_csv_begin(struct text *out);
void history_csv_lease(const struct history_lease *lease, int64_t now, struct text *out);

/* Appends the whole report, without the totals. */
void history_csv_report(const struct history_report *report, enum history_by by, struct text *out);

#endif
