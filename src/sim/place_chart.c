/* SPDX-License-Identifier: Apache-2.0
 *
 * The chart of 'berth sim place': a self-contained SVG image with its own background, in the
 * reader's light or dark colour scheme.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/text/utf8.h"
#include "sim/place_report.h"

enum {
    WIDTH = 900,
    HEIGHT = 550,
    LEFT = 72,
    RIGHT = 690,
    TOP = 100,
    BOTTOM = 486,
    LABEL_HEIGHT = 19, /* minimum distance of labels */
    LABEL_LEFT = RIGHT + 26,
    COLOURS = 10, /* later lines are dashed */
    GRID_STEP = 10,
    DEMAND_FIRST = 60, /* below it, every policy allocates the whole demand */
};

static const char style_sheet[] =
    "<style>\n"
    "svg { font: 14px system-ui, 'DejaVu Sans', Arial, sans-serif; }\n"
    ".ground { fill: #ffffff; }\n"
    "text { fill: #1f2328; }\n"
    ".title { font-size: 19px; font-weight: 600; }\n"
    ".faint { fill: #59636e; }\n"
    ".grid { stroke: #d8dee4; stroke-width: 1; }\n"
    ".axis { stroke: #59636e; stroke-width: 1; }\n"
    ".asked { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 2 4; fill: none; }\n"
    ".policy { fill: none; stroke-width: 2.25; stroke-linejoin: round; }\n"
    ".lead { fill: none; stroke-width: 1; opacity: 0.6; }\n"
    ".value { font-variant-numeric: tabular-nums; }\n"
    ".c0 { stroke: #0969da; } .c1 { stroke: #cf222e; } .c2 { stroke: #1a7f37; }\n"
    ".c3 { stroke: #8250df; } .c4 { stroke: #bc4c00; } .c5 { stroke: #0f7b86; }\n"
    ".c6 { stroke: #bf3989; } .c7 { stroke: #57606a; } .c8 { stroke: #7d6600; }\n"
    ".c9 { stroke: #24292f; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    ".ground { fill: #16191d; }\n"
    "text { fill: #e6edf3; }\n"
    ".faint { fill: #9aa4ae; }\n"
    ".grid { stroke: #30363d; }\n"
    ".axis { stroke: #9aa4ae; }\n"
    ".asked { stroke: #768390; }\n"
    ".c0 { stroke: #58a6ff; } .c1 { stroke: #ff7b72; } .c2 { stroke: #56d364; }\n"
    ".c3 { stroke: #bc8cff; } .c4 { stroke: #ffa657; } .c5 { stroke: #56d4dd; }\n"
    ".c6 { stroke: #ff9bce; } .c7 { stroke: #b1bac4; } .c8 { stroke: #e3c84b; }\n"
    ".c9 { stroke: #f0f6fc; }\n"
    "}\n"
    "</style>\n";

/* The visible ranges, in %. */
struct window {
    uint32_t demand_first;
    uint32_t demand_last;
    uint32_t allocated_first;
    uint32_t allocated_last;
};

/* The label of a line, beside its end. */
struct label {
    size_t series;
    int64_t value; /* at the end */
    double end;    /* y position of the line's end */
    double place;  /* y position of the label */
};

static void append_escaped(struct text *out, const char *string)
{
    struct text inert = {0};

    utf8_append_inert(&inert, string);
    for (const char *at = text_string(&inert); *at != '\0'; at++) {
        if (*at == '&')
            text_append(out, "&amp;");
        else if (*at == '<')
            text_append(out, "&lt;");
        else if (*at == '>')
            text_append(out, "&gt;");
        else if (*at == '"')
            text_append(out, "&quot;");
        else
            text_append_char(out, *at);
    }
    text_finish(&inert);
}

/* Return the x position of a demand and the y position of an allocation. */
static double x_position(const struct window *window, uint32_t percent)
{
    return LEFT + (double)(RIGHT - LEFT) * (percent - window->demand_first) /
                      (window->demand_last - window->demand_first);
}

static double y_position(const struct window *window, double percent)
{
    return BOTTOM - (BOTTOM - TOP) * (percent - window->allocated_first) /
                        (window->allocated_last - window->allocated_first);
}

static double percent_of(int64_t value)
{
    return (double)value / 1e4;
}

/* Returns the last demand with samples; 0: none. */
static uint32_t last_demand(const struct place_series *series)
{
    int64_t mean;

    for (uint32_t percent = PLACE_PERCENT_MAX; percent > 0; percent--) {
        if (place_report_mean(series, place_replay_allocated, percent, &mean))
            return percent;
    }
    return 0;
}

static uint32_t allocated_min(const struct place_report *report, const struct window *window)
{
    const struct place_series *series;
    int64_t min = INT64_C(1000000);
    int64_t mean;

    vector_for_each (series, &report->series) {
        for (uint32_t percent = window->demand_first; percent <= window->demand_last; percent++) {
            if (place_report_mean(series, place_replay_allocated, percent, &mean) && mean < min)
                min = mean;
        }
    }
    /* A value that rounds to a grid line counts as on it, not below. */
    return (uint32_t)(percent_of(min) + 0.5);
}

static struct window find_window(const struct place_report *report)
{
    struct window window = {.allocated_last = 100};
    const struct place_series *series;

    vector_for_each (series, &report->series) {
        uint32_t last = last_demand(series);

        window.demand_last = last > window.demand_last ? last : window.demand_last;
    }
    window.demand_last = (window.demand_last + GRID_STEP - 1) / GRID_STEP * GRID_STEP;
    if (window.demand_last > DEMAND_FIRST + 2 * GRID_STEP)
        window.demand_first = DEMAND_FIRST;
    window.allocated_first = allocated_min(report, &window) / GRID_STEP * GRID_STEP;
    if (window.allocated_first == window.allocated_last)
        window.allocated_first -= GRID_STEP;
    if (window.demand_last == window.demand_first)
        window.demand_last += GRID_STEP;
    return window;
}

/* Returns a distance between grid lines at which the numbers do not touch. */
static uint32_t grid_step(uint32_t first, uint32_t last, uint32_t max)
{
    uint32_t step = GRID_STEP;

    while ((last - first) / step > max)
        step *= step == 2 * GRID_STEP ? 5 : 2;
    return step;
}

static void append_grid(const struct window *window, struct text *out)
{
    uint32_t step = grid_step(window->allocated_first, window->allocated_last, 10);

    for (uint32_t at = window->allocated_first; at <= window->allocated_last; at += step) {
        double y = y_position(window, at);

        text_append_format(out,
                           "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n",
                           at == window->allocated_first ? "axis" : "grid", LEFT, y, RIGHT, y);
        text_append_format(out,
                           "<text class=\"faint\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%" PRIu32
                           "</text>\n",
                           LEFT - 10, y + 5, at);
    }
    step = grid_step(window->demand_first, window->demand_last, 14);
    for (uint32_t at = window->demand_first; at <= window->demand_last; at += step) {
        double x = x_position(window, at);

        text_append_format(out,
                           "<line class=\"axis\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n",
                           x, BOTTOM, x, BOTTOM + 5);
        text_append_format(
            out,
            "<text class=\"faint\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRIu32 "</text>\n",
            x, BOTTOM + 22, at);
    }
}

/* Draws the line of a policy that never drops a pod. */
static void append_requested(const struct window *window, struct text *out)
{
    uint32_t first = window->demand_first > window->allocated_first ? window->demand_first
                                                                    : window->allocated_first;
    uint32_t last = window->demand_last < 100 ? window->demand_last : 100;

    if (first >= last)
        return;
    text_append_format(out, "<path class=\"asked\" d=\"M%.1f %.1fL%.1f %.1f",
                       x_position(window, first), y_position(window, first),
                       x_position(window, last), y_position(window, last));
    if (window->demand_last > last)
        text_append_format(out, "H%d", RIGHT);
    text_append(out, "\"/>\n");
    text_append_format(out,
                       "<text class=\"faint\" x=\"%d\" y=\"%d\" text-anchor=\"end\">dotted: the "
                       "whole demand</text>\n",
                       RIGHT, TOP - 10);
}

static void append_heading(const struct place_report *report, struct text *out)
{
    text_append_format(out,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                       "width=\"%d\" height=\"%d\" role=\"img\">\n<title>Allocated GPUs against "
                       "demand: ",
                       WIDTH, HEIGHT, WIDTH, HEIGHT);
    append_escaped(out, report->name);
    text_append(out, "</title>\n");
    text_append(out, style_sheet);
    text_append_format(out, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
    text_append_format(out,
                       "<text class=\"title\" x=\"%d\" y=\"36\">Allocated GPUs against "
                       "demand</text>\n<text class=\"faint\" x=\"%d\" y=\"59\">",
                       LEFT, LEFT);
    append_escaped(out, report->name);
    text_append_format(out, ": %zu nodes, %" PRIu64 " GPUs, ", report->trace->nodes.count,
                       report->trace->capacity / TRACE_WHOLE);
    place_report_describe_seeds(report, out);
    text_append(out, "</text>\n");
}

static void append_axes(struct text *out)
{
    text_append_format(out,
                       "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">Demand, %% of all "
                       "GPUs</text>\n",
                       (LEFT + RIGHT) / 2, BOTTOM + 48);
    text_append_format(out,
                       "<text transform=\"translate(22 %d) rotate(-90)\" "
                       "text-anchor=\"middle\">Allocated, %% of all GPUs</text>\n",
                       (TOP + BOTTOM) / 2);
}

/* Appends the colour of a line. Lines after the first ten repeat the colours, dashed. */
static void append_stroke(size_t series, struct text *out)
{
    text_append_format(out, " c%zu\"", series % COLOURS);
    if (series >= COLOURS)
        text_append_format(out, " stroke-dasharray=\"%zu 3\"", 5 + 4 * (series / COLOURS - 1));
}

static void append_line(const struct place_report *report, size_t number,
                        const struct window *window, struct text *out)
{
    const struct place_series *series = &report->series.items[number];
    bool first = true;
    int64_t mean;

    text_append(out, "<polyline class=\"policy");
    append_stroke(number, out);
    text_append(out, " points=\"");
    for (uint32_t percent = window->demand_first; percent <= window->demand_last; percent++) {
        if (!place_report_mean(series, place_replay_allocated, percent, &mean))
            continue;
        text_append_format(out, "%s%.1f,%.1f", first ? "" : " ", x_position(window, percent),
                           y_position(window, percent_of(mean)));
        first = false;
    }
    text_append(out, "\"><title>");
    append_escaped(out, series->policy);
    text_append(out, "</title></polyline>\n");
}

static int compare_labels(const void *one, const void *other)
{
    const struct label *label = one;
    const struct label *next = other;

    if (label->value != next->value)
        return label->value < next->value ? 1 : -1;
    return (label->series > next->series) - (label->series < next->series);
}

/* Moves labels apart: each below the one before, then all up if the last one is too low. */
static void spread_labels(struct label *labels, size_t count)
{
    double lowest = BOTTOM;

    for (size_t i = 0; i < count; i++) {
        double min = i == 0 ? TOP : labels[i - 1].place + LABEL_HEIGHT;

        labels[i].place = labels[i].end > min ? labels[i].end : min;
    }
    for (size_t i = count; i-- > 0; lowest -= LABEL_HEIGHT) {
        if (labels[i].place > lowest)
            labels[i].place = lowest;
        lowest = labels[i].place;
    }
}

static void append_label(const struct place_report *report, const struct label *label,
                         struct text *out)
{
    text_append(out, "<path class=\"lead");
    append_stroke(label->series, out);
    text_append_format(out, " d=\"M%d %.1fL%d %.1f\"/>\n", RIGHT + 2, label->end, LABEL_LEFT - 14,
                       label->place);
    text_append(out, "<path class=\"policy");
    append_stroke(label->series, out);
    text_append_format(out, " d=\"M%d %.1fh10\"/>\n", LABEL_LEFT - 14, label->place);
    text_append_format(out, "<text x=\"%d\" y=\"%.1f\">", LABEL_LEFT + 2, label->place + 5);
    append_escaped(out, report->series.items[label->series].policy);
    text_append_format(out,
                       "</text>\n<text class=\"value\" x=\"%d\" y=\"%.1f\" "
                       "text-anchor=\"end\">%.2f</text>\n",
                       WIDTH - 18, label->place + 5, percent_of(label->value));
}

static void append_labels(const struct place_report *report, const struct window *window,
                          struct text *out)
{
    size_t count = report->series.count;
    struct label *labels = calloc(count + 1, sizeof(*labels));

    if (labels == NULL) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct place_series *series = &report->series.items[i];
        int64_t mean = 0;

        place_report_mean(series, place_replay_allocated, last_demand(series), &mean);
        labels[i] = (struct label){.series = i, .value = mean};
        labels[i].end = y_position(window, percent_of(mean));
    }
    qsort(labels, count, sizeof(*labels), compare_labels);
    spread_labels(labels, count);
    for (size_t i = 0; i < count; i++)
        append_label(report, &labels[i], out);
    free(labels);
}

void place_report_write_chart(const struct place_report *report, struct text *out)
{
    struct window window = find_window(report);

    append_heading(report, out);
    append_grid(&window, out);
    append_axes(out);
    append_requested(&window, out);
    for (size_t i = 0; i < report->series.count; i++)
        append_line(report, i, &window, out);
    append_labels(report, &window, out);
    text_append(out, "</svg>\n");
}
