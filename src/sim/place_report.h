/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of 'berth sim place': JSON, a table and a chart.
 */
#ifndef SIM_PLACE_REPORT_H
#define SIM_PLACE_REPORT_H

#include <stdbool.h>

#include "base/text/terminal.h"
#include "base/text/text.h"
#include "base/vector.h"
#include "sim/place_replay.h"

/* The runs of one policy, one for each seed; at least one. */
struct place_series {
    const char *policy;
    VECTOR_OF(struct place_run);
};

struct place_report {
    const char *name; /* of the trace */
    const struct pod_trace *trace;
    bool several_seeds; /* --seeds was given, even with one seed */
    struct {
        VECTOR_OF(struct place_series);
    } series;
};

/* The type of place_replay_allocated() and place_replay_fragmented(). */
typedef bool place_value(const struct place_run *run, uint32_t percent, int64_t *ret_value);

/* Computes the rounded mean over the runs with a value at this demand. Returns whether there are
 * any. */
bool place_report_mean(const struct place_series *series, place_value *value, uint32_t percent,
                       int64_t *ret_mean);

/* Appends "seed 42" or "mean of seeds 42 to 51". */
void place_report_describe_seeds(const struct place_report *report, struct text *out);

/* Appends JSON (berth.sim-place/1). */
void place_report_write_json(const struct place_report *report, struct text *out);

/* Appends a table with a row for each policy. Returns 0 or BERTH_ERROR_MEMORY. */
int place_report_write_table(const struct place_report *report, const struct terminal *terminal,
                             struct text *out);

/* Appends an SVG image: allocation against demand, a line for each policy. */
void place_report_write_chart(const struct place_report *report, struct text *out);

#endif
