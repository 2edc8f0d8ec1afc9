/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool for Prometheus: text exposition format 0.0.4. What is unknown is absent, never 0.
 */
#ifndef WEB_METRICS_H
#define WEB_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "view/pool_view.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* What stands between the braces for a device, kept as long as the device stays the same. */
struct metrics_labels {
    struct device_id id;
    char *uuid;
    char *name;
    char *text;
    size_t length;
};

/* The figures of a device, side by side. */
#define METRICS_FIGURES 6
struct metrics_row {
    const char *labels;
    size_t length;
    uint64_t known; /* a bit for each */
    int64_t figures[METRICS_FIGURES];
};

/* Zeroed memory knows no devices yet. */
struct metrics {
    struct {
        VECTOR_OF(struct metrics_labels); /* by slot */
    } labels;
    struct {
        VECTOR_OF(struct metrics_row);
    } rows;
};

void metrics_finish(struct metrics *metrics);

/* Appends everything; `tally` may be NULL: nothing is known of what was counted. A failed
 * allocation is remembered by the text. */
void metrics_write(struct metrics *metrics, const struct pool_view *view,
                   const struct pool_tally *tally, struct text *out);

/* Appends a label's value: backslashes, quotation marks and line breaks are escaped, broken UTF-8
 * is repaired. */
void metrics_append_escaped(const char *value, struct text *out);

#endif
