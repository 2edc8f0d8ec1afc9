/* SPDX-License-Identifier: Apache-2.0
 *
 * History as comma-separated values (RFC 4180: lines end with CR LF, what holds a comma, a quote or
 * a line break is quoted), with a header. Unknown is empty. A spreadsheet takes a text that begins
 * with = + - @ or a tab for a formula, and whoever names a job could so run something in the
 * spreadsheet of whoever reads the report: such texts get an apostrophe in front.
 */
#ifndef HISTORY_HISTORY_CSV_H
#define HISTORY_HISTORY_CSV_H

#include "base/text/text.h"
#include "history/history.h"

void history_csv_begin(struct text *out);
void history_csv_lease(const struct history_lease *lease, int64_t now, struct text *out);

/* The whole report, without the totals. */
void history_csv_report(const struct history_report *report, enum history_by by, struct text *out);

#endif
