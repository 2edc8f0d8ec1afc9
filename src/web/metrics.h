/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics for Prometheus: text exposition format 0.0.4. Unknown values are absent, never 0.
 */
#ifndef WEB_METRICS_H
#define WEB_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "view/pool_view.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The labels of a device as text, kept until the device changes. */
struct metrics_labels {
    struct device_id id;
    char *uuid;
    char *name;
    char *text;
    size_t length;
};

/* The figures of one device. */
#define METRICS_FIGURES 6
struct metrics_row {
    const char *labels;
    size_t length;
    uint64_t known; /* a bit for each figure */
    int64_t figures[METRICS_FIGURES];
};

/* Zeroed memory has no devices yet. */
struct metrics {
    struct {
        VECTOR_OF(struct metrics_labels); /* by slot */
    } labels;
    struct {
        VECTOR_OF(struct metrics_row);
    } rows;
};

void metrics_finish(struct metrics *metrics);

/* Appends all metrics. If `tally` is NULL, its counters are absent. The text remembers a failed
 * allocation. */
void metrics_write(struct metrics *metrics, const struct pool_view *view,
                   const struct pool_tally *tally, struct text *out);

/* Appends the value of a label. Escapes backslashes, quotation marks and line breaks, and repairs
 * broken UTF-8. */
void metrics_append_escaped(const char *value, struct text *out);

#endif
