/* SPDX-License-Identifier: Apache-2.0 */
#include "web/metrics.h"

#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "view/view_facts.h"

/* Room for the digits of a number, its sign and its point. */
enum { NUMBER_MAX = 24 };

enum figure_kind {
    FIGURE_LEASED,
    FIGURE_UTILIZATION,
    FIGURE_MEMORY_USED,
    FIGURE_MEMORY_TOTAL,
    FIGURE_TEMPERATURE,
    FIGURE_POWER,
};
_Static_assert(FIGURE_POWER + 1 == METRICS_FIGURES, "a row has them all");

#define HEAD(name, type, help) "# HELP " name " " help "\n# TYPE " name " " type "\n"

/* One metric for each kind of figure. */
static const struct metric_family {
    const char *head;
    const char *prefix;
    bool is_thousandths;
} families[] = {
    [FIGURE_LEASED] = {HEAD("berth_device_leased", "gauge", "1 if the device is leased, else 0."),
                       "berth_device_leased{", false},
    [FIGURE_UTILIZATION] = {HEAD("berth_device_utilization_ratio", "gauge",
                                 "Utilization of the device, from 0 to 1."),
                            "berth_device_utilization_ratio{", true},
    [FIGURE_MEMORY_USED] = {HEAD("berth_device_memory_used_bytes", "gauge",
                                 "Used memory of the device."),
                            "berth_device_memory_used_bytes{", false},
    [FIGURE_MEMORY_TOTAL] = {HEAD("berth_device_memory_total_bytes", "gauge",
                                  "Total memory of the device."),
                             "berth_device_memory_total_bytes{", false},
    [FIGURE_TEMPERATURE] = {HEAD("berth_device_temperature_celsius", "gauge",
                                 "Temperature of the device."),
                            "berth_device_temperature_celsius{", true},
    [FIGURE_POWER] = {HEAD("berth_device_power_watts", "gauge", "Power draw of the device."),
                      "berth_device_power_watts{", true},
};

static void finish_labels(struct metrics_labels *labels)
{
    free(labels->uuid);
    free(labels->name);
    free(labels->text);
    *labels = (struct metrics_labels){0};
}

void metrics_finish(struct metrics *metrics)
{
    struct metrics_labels *labels;

    vector_for_each (labels, &metrics->labels)
        finish_labels(labels);
    vector_finish(&metrics->labels);
    vector_finish(&metrics->rows);
}

/* ---- Labels ---- */

void metrics_append_escaped(const char *value, struct text *out)
{
    size_t length = strlen(value);
    uint32_t character;

    for (size_t i = 0; i < length;) {
        i += utf8_decode(value + i, length - i, &character);
        if (character == '\n') {
            text_append(out, "\\n");
            continue;
        }
        if (character == '\\' || character == '"')
            text_append_char(out, '\\');
        utf8_append(out, character);
    }
}

static void append_label(const char *name, const char *value, struct text *out)
{
    text_append(out, name);
    text_append(out, "=\"");
    metrics_append_escaped(value == NULL ? "" : value, out);
    text_append_char(out, '"');
}

/* Stores the labels of a device. Returns false if memory runs out; nothing is stored then. */
static bool write_labels(const struct device *device, struct metrics_labels *labels)
{
    struct text text = {0};

    finish_labels(labels);
    append_label("gpu", device_id_format(device->id).text, &text);
    append_label(",UUID", device->uuid, &text);
    append_label(",vendor", vendor_name(device->id.vendor), &text);
    append_label(",model", device->name, &text);
    text_append(&text, "} ");
    labels->id = device->id;
    labels->uuid = device->uuid == NULL ? NULL : strdup(device->uuid);
    labels->name = device->name == NULL ? NULL : strdup(device->name);
    labels->length = text.length;
    labels->text = text_detach(&text);
    if (labels->text != NULL && (device->uuid == NULL || labels->uuid != NULL) &&
        (device->name == NULL || labels->name != NULL))
        return true;
    finish_labels(labels);
    return false;
}

/* Returns false if memory runs out. */
static bool update_labels(struct metrics *metrics, const struct pool_view *view)
{
    size_t count = view->snapshot.slots.count;

    while (metrics->labels.count > count)
        finish_labels(&metrics->labels.items[--metrics->labels.count]);
    if (vector_reserve(&metrics->labels, count) < 0 || vector_reserve(&metrics->rows, count) < 0)
        return false;
    while (metrics->labels.count < count)
        vector_append(&metrics->labels);
    metrics->rows.count = count;
    for (size_t i = 0; i < count; i++) {
        const struct device *device = view->snapshot.slots.items[i].device;
        struct metrics_labels *labels = &metrics->labels.items[i];

        if (labels->text != NULL && device_id_equals(labels->id, device->id) &&
            text_equals(labels->uuid, device->uuid) && text_equals(labels->name, device->name))
            continue;
        if (!write_labels(device, labels))
            return false;
    }
    return true;
}

/* ---- Figures ---- */

static void set_figure(struct metrics_row *row, enum figure_kind kind, bool known, int64_t value)
{
    row->figures[kind] = value;
    row->known |= (uint64_t)known << kind;
}

static void set_optional(struct metrics_row *row, enum figure_kind kind,
                         struct optional_number number)
{
    set_figure(row, kind, number.known && number.value <= INT64_MAX, (int64_t)number.value);
}

static void set_row(const struct device *device, bool leased, const struct metrics_labels *labels,
                    struct metrics_row *row)
{
    const struct load *load = &device->load;

    *row = (struct metrics_row){.labels = labels->text, .length = labels->length};
    set_figure(row, FIGURE_LEASED, true, leased);
    set_optional(row, FIGURE_MEMORY_TOTAL, device->memory_total);
    /* Old values are not current values. */
    if (device->old)
        return;
    set_optional(row, FIGURE_MEMORY_USED, view_memory_used(device));
    set_figure(row, FIGURE_UTILIZATION, load->utilization.known, load->utilization.value);
    set_figure(row, FIGURE_TEMPERATURE, load->temperature.known, load->temperature.value);
    set_figure(row, FIGURE_POWER, load->power.known, load->power.value);
}

static void set_rows(struct metrics *metrics, const struct pool_view *view)
{
    size_t use = 0;

    for (size_t slot = 0; slot < view->snapshot.slots.count; slot++) {
        bool leased = use < view->uses.count && view->uses.items[use].slot == slot;

        set_row(view->snapshot.slots.items[slot].device, leased, &metrics->labels.items[slot],
                &metrics->rows.items[slot]);
        while (use < view->uses.count && view->uses.items[use].slot == slot)
            use++;
    }
}

/* ---- Numbers ---- */

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(at, digits + first, sizeof(digits) - first);
    return at + sizeof(digits) - first;
}

/* Formats number / 10^decimals without trailing zeros. */
static char *put_decimal(char *at, uint64_t number, unsigned decimals)
{
    uint64_t unit = 1;
    uint64_t rest;

    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    at = put_number(at, number / unit);
    rest = number % unit;
    if (rest == 0)
        return at;
    for (*at++ = '.'; rest > 0; rest %= unit) {
        unit /= 10;
        *at++ = (char)('0' + rest / unit);
    }
    return at;
}

static char *put_figure(char *at, int64_t figure, bool is_thousandths)
{
    uint64_t size = (uint64_t)figure;

    if (figure < 0) {
        *at++ = '-';
        size = 0 - size;
    }
    return is_thousandths ? put_decimal(at, size, 3) : put_number(at, size);
}

static void append_decimal(struct text *out, uint64_t number, unsigned decimals)
{
    char digits[NUMBER_MAX + 16];

    text_append_bytes(out, digits, (size_t)(put_decimal(digits, number, decimals) - digits));
}

/* ---- Families ---- */

/* Appends one metric for all devices whose figure is known. */
static void write_family(const struct metrics *metrics, enum figure_kind kind, struct text *out)
{
    const struct metric_family *family = &families[kind];
    size_t prefix = strlen(family->prefix);
    size_t max = 0;
    const struct metrics_row *row;
    char *begin;
    char *at;

    text_append(out, family->head);
    vector_for_each (row, &metrics->rows)
        max += prefix + row->length + NUMBER_MAX + 1;
    begin = at = text_reserve(out, max);
    if (begin == NULL)
        return;
    vector_for_each (row, &metrics->rows) {
        if ((row->known & UINT64_C(1) << kind) == 0)
            continue;
        memcpy(at, family->prefix, prefix);
        memcpy(at + prefix, row->labels, row->length);
        at = put_figure(at + prefix + row->length, row->figures[kind], family->is_thousandths);
        *at++ = '\n';
    }
    text_commit(out, (size_t)(at - begin));
}

static void write_gauge(const char *head, const char *name, uint64_t value, struct text *out)
{
    text_append(out, head);
    text_append(out, name);
    text_append_char(out, ' ');
    text_append_number(out, value);
    text_append_char(out, '\n');
}

/* Appends a histogram. Each bucket includes the counts of the buckets before it. */
static void write_histogram(const char *head, const char *name,
                            const struct duration_histogram *histogram, struct text *out)
{
    static const struct duration_histogram none = {0};
    uint64_t count = 0;

    if (histogram == NULL)
        histogram = &none;
    text_append(out, head);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        count += histogram->counts[i];
        text_append_format(out, "%s_bucket{le=\"", name);
        if (i == HISTOGRAM_BUCKETS - 1)
            text_append(out, "+Inf");
        else
            append_decimal(out, (uint64_t)histogram_bounds[i], 9);
        text_append(out, "\"} ");
        text_append_number(out, count);
        text_append_char(out, '\n');
    }
    text_append_format(out, "%s_sum ", name);
    append_decimal(out, histogram->sum, 9);
    text_append_format(out, "\n%s_count ", name);
    text_append_number(out, count);
    text_append_char(out, '\n');
}

static void write_tally(const struct pool_tally *tally, struct text *out)
{
    const struct {
        const char *result;
        uint64_t count;
    } results[] = {
        {"granted", tally->granted},     {"impossible", tally->impossible},
        {"refused", tally->refused},     {"busy", tally->busy},
        {"timed_out", tally->timed_out}, {"cancelled", tally->cancelled},
    };

    text_append(
        out, HEAD("berth_claims_total", "counter", "Claims by result, since the daemon started."));
    for (size_t i = 0; i < COUNT(results); i++) {
        text_append_format(out, "berth_claims_total{result=\"%s\"} ", results[i].result);
        text_append_number(out, results[i].count);
        text_append_char(out, '\n');
    }
    write_histogram(
        HEAD("berth_claim_wait_seconds", "histogram", "How long granted claims waited."),
        "berth_claim_wait_seconds", tally->waited, out);
    write_histogram(HEAD("berth_lease_seconds", "histogram", "How long ended leases were held."),
                    "berth_lease_seconds", tally->held, out);
}

void metrics_write(struct metrics *metrics, const struct pool_view *view,
                   const struct pool_tally *tally, struct text *out)
{
    const struct pool_snapshot *snapshot = &view->snapshot;

    write_gauge(HEAD("berth_devices", "gauge", "Devices in the pool."), "berth_devices",
                snapshot->slots.count, out);
    if (update_labels(metrics, view)) {
        set_rows(metrics, view);
        for (size_t kind = 0; kind < METRICS_FIGURES; kind++)
            write_family(metrics, (enum figure_kind)kind, out);
    } else {
        out->failed = true;
    }
    write_gauge(HEAD("berth_leases", "gauge", "Current leases."), "berth_leases",
                snapshot->leases.count, out);
    write_gauge(HEAD("berth_claims_pending", "gauge", "Waiting claims."), "berth_claims_pending",
                snapshot->pending, out);
    if (tally != NULL)
        write_tally(tally, out);
    text_append(out, HEAD("berth_build_info", "gauge", "Always 1; the version is its label."));
    text_append(out, "berth_build_info{version=\"" BERTH_VERSION "\"} 1\n");
}
